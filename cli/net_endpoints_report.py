"""The text of ``planner net endpoints``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.net_cluster_reports import job_case
from cli.net_text import Row, net_text, table_text, with_table
from planner.network import endpoints
from planner.units import format_binary_bytes, format_bytes, format_share, format_time

_SHORT = {
    "reliable-connection": "reliable",
    "dynamic": "dynamic",
    "connectionless": "connectionless",
}
_MOST_SHOWN = 12
_DEGREES = ("tp", "cp", "ep", "etp", "dp", "pp")


def endpoints_text(
    inputs: Mapping[str, Any],
    seen: endpoints.EndpointState,
    others: Sequence[endpoints.LayoutState],
    assumed: Mapping[str, str],
) -> str:
    """Return the text of ``planner net endpoints``."""
    case = (
        (job_case(inputs) + "; " if "layout" in inputs else "")
        + f"the busiest rank has {seen.peers} peers in {seen.peer_nodes} nodes over the network; "
        f"{inputs['queue_pairs']} connections to a peer of "
        f"{format_bytes(inputs['state_bytes'])} each; NIC memory "
        f"{format_binary_bytes(inputs['cache_bytes'])}"
    )
    table = table_text(
        ("transport", "connections", "state", "of cache", "fits"),
        [
            (
                row.transport,
                f"{row.connections}",
                format_binary_bytes(row.state_bytes),
                format_share(row.cache_share),
                "yes" if row.fits else "NO",
            )
            for row in seen.transports
        ],
    )
    rows = [Row("a cache holds", f"{seen.most_peers} peers", "with reliable connections")]
    rows += [
        Row(
            f"overflow {_SHORT[transport]}",
            f"{len(over)} of {len(others)} layouts",
            f"first {_degrees_of(over[0])}" if over else "",
        )
        for transport in endpoints.TRANSPORTS
        if others
        for over in [[other for other in others if not other.fits(transport)]]
    ]
    says = [
        (
            "Where transaction and transport are one, state grows with peers; apart (Jetty-like), "
            "with peer nodes only. What overflows the cache is fetched from host memory each time."
        ),
        *(f"Assumed: {name}: {why}." for name, why in assumed.items()),
    ]
    text = net_text("Endpoint state", case, rows, says, seen.premises, endpoints.SOURCE)
    return with_table(text, table + ("\n\n" + _layouts_table(others) if others else ""))


def _layouts_table(others: Sequence[endpoints.LayoutState]) -> str:
    return table_text(
        ("tp cp ep etp dp pp", "step", "peers", *(_SHORT[name] for name in endpoints.TRANSPORTS)),
        [
            (
                _degrees_of(other),
                format_time(other.step_s),
                str(other.state.peers),
                *(
                    format_share(row.cache_share) + ("" if row.fits else " NO")
                    for row in other.state.transports
                ),
            )
            for other in others[:_MOST_SHOWN]
        ],
    )


def _degrees_of(other: endpoints.LayoutState) -> str:
    return " ".join(str(getattr(other.layout, name)) for name in _DEGREES)
