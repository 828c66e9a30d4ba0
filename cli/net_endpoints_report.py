"""The text of ``planner net endpoints``, and the state that other layouts would make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from cli.net_cluster_reports import job_case
from cli.net_text import Row, net_text, table_text, with_table
from planner.network import endpoints
from planner.units import format_binary_bytes, format_bytes, format_share, format_time

if TYPE_CHECKING:
    from cli.net_seats import SeatedJob
    from planner.layout import Layout

_SHORT = {
    "reliable-connection": "reliable",
    "dynamic": "dynamic",
    "connectionless": "connectionless",
}
_MOST_SHOWN = 12
_DEGREES = ("tp", "cp", "ep", "etp", "dp", "pp")


@dataclass(frozen=True, slots=True, kw_only=True)
class OtherLayout:
    """A layout that a search lists, and the state it would make in rank order.

    Args:
        layout: its degrees.
        step_s: as the search estimates it [s].
        state: of its NICs.
    """

    layout: Layout
    step_s: float
    state: endpoints.EndpointState

    def fits(self, transport: str) -> bool:
        """Return whether the state of *transport* fits the cache."""
        return all(row.fits for row in self.state.transports if row.transport == transport)


def of_the_best(
    job: SeatedJob, most: int, connects: endpoints.Connects, options: Mapping[str, Any]
) -> tuple[OtherLayout, ...]:
    """Return the *most* fastest layouts of different degrees, with the state each would make."""
    if not most:
        return ()
    from planner.search.search import machine_of, sweep  # noqa: PLC0415 - only --best searches
    from planner.search.space import USUAL  # noqa: PLC0415
    from planner.traffic import step_families  # noqa: PLC0415

    given = job.given
    machine = machine_of(given.fabric, given.gpus, given.efficiency)
    swept = sweep(given.model, machine, given.gpus, given.fixed, USUAL)
    found = []
    for entry in swept.best[:most]:
        layout = swept.layout(int(entry))
        families = step_families(given.model, layout)
        state = endpoints.layout_endpoints(
            [(family.collective, family.members(layout)) for family in families],
            job.supernode_in_order,
            job.node_in_order,
            connects=connects,
            **options,
        )
        step_s = float(swept.evaluated.total_s[entry])
        found.append(OtherLayout(layout=layout, step_s=step_s, state=state))
    return tuple(found)


def endpoints_text(
    inputs: Mapping[str, Any],
    seen: endpoints.EndpointState,
    others: Sequence[OtherLayout],
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


def _layouts_table(others: Sequence[OtherLayout]) -> str:
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


def _degrees_of(other: OtherLayout) -> str:
    return " ".join(str(getattr(other.layout, name)) for name in _DEGREES)
