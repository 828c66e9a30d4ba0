"""``planner net endpoints``: connections and NIC state of a layout, or of the best of a search."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.net_inputs import Given, number_option, parts_of, put_out, text_option
from cli.net_job import JobOptions, about_a_job

if TYPE_CHECKING:
    from planner.network.endpoints import LayoutState


def add_to(app: typer.Typer) -> None:
    """Add the command of this module to *app*."""
    app.command("endpoints")(about_a_job(endpoints))


def endpoints(
    peers: Annotated[str, number_option("--peers", "Peer ranks over the network.")] = "1016",
    peer_nodes: Annotated[str, number_option("--peer-nodes", "Nodes these are in.")] = "127",
    queue_pairs: Annotated[
        str, number_option("--queue-pairs", "Connections to one peer: channels x queue pairs.")
    ] = "8",
    active_peers: Annotated[
        str, number_option("--active-peers", "Peers a dynamic transport serves at once.")
    ] = "64",
    ranks_per_nic: Annotated[
        str, number_option("--ranks-per-nic", "Ranks that share a NIC.")
    ] = "1",
    state: Annotated[str, text_option("--state", "State of one connection.")] = "375B",
    cache: Annotated[str, text_option("--cache", "What the NIC can keep.")] = "2MiB",
    every_pair: Annotated[
        bool, typer.Option("--every-pair", help="Connect all members of every group.")
    ] = False,
    best: Annotated[
        int,
        typer.Option(
            "--best", metavar="N", min=0, max=1000,
            help="Also of the N layouts that planner search lists first, in rank order.",
        ),
    ] = 0,
    *,
    job: JobOptions,
    as_json: bool,
    out: Path | None,
) -> None:  # fmt: skip
    """Count connections and NIC state by transport.

    Peers are counted from a layout where one is given or a cluster is named, with --best from
    those of a whole search: which of them overflow.
    """
    from cli.net_endpoints_report import endpoints_text
    from cli.net_seats import states_of_the_best
    from planner.network import endpoints as state_model
    from planner.units import parse_bytes

    given = Given()
    given.count("peers_per_rank", "--peers", peers, least=0, most=10**9)
    given.count("nodes_per_rank", "--peer-nodes", peer_nodes, least=0, most=10**9)
    given.count("queue_pairs", "--queue-pairs", queue_pairs)
    given.count("active_peers", "--active-peers", active_peers)
    given.count("ranks_per_nic", "--ranks-per-nic", ranks_per_nic)
    given.quantity("state_bytes", "--state", state, parse_bytes)
    given.quantity("cache_bytes", "--cache", cache, parse_bytes)
    connects = state_model.Connects.EVERY_PAIR if every_pair else state_model.Connects.WHO_TALK
    others: tuple[LayoutState, ...] = ()
    inputs = given.values
    with given.finish():
        if job.is_named or best:
            seated = job.seated()
            options = given.but("peers_per_rank", "nodes_per_rank")
            seen = state_model.layout_endpoints(
                [(family.collective, members) for family, members in seated.groups],
                seated.supernode_of_rank,
                seated.node_of_rank,
                connects=connects,
                **options,
            )
            others = states_of_the_best(seated, best, connects, options)
            inputs = {**options, **seated.inputs, "best": best}
        else:
            seen = state_model.endpoint_state(**inputs)
    inputs["every_pair"] = every_pair
    assumed = {
        **({"state_bytes": state_model.STATE_ASSUMED} if state == "375B" else {}),
        **({"cache_bytes": state_model.CACHE_ASSUMED} if cache == "2MiB" else {}),
    }
    body = {
        **parts_of(seen),
        "layouts": others,
        "assumed": assumed,
        "source": state_model.SOURCE,
    }
    text = endpoints_text(inputs, seen, others, assumed)
    put_out("endpoints", inputs, body, text, as_json=as_json, out=out)
