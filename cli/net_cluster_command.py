"""``planner net walks · sharing · blast``: models of a layout on a cluster."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.net_inputs import Given, number_option, parts_of, put_out, text_option
from cli.net_job import JobOptions, about_a_job
from cli.planner_options import Json, Out


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    for command in (walks, about_a_job(sharing), about_a_job(blast)):
        app.command(command.__name__)(command)


def walks(
    ranks: Annotated[str, number_option("--ranks", "Members of the group.")] = "16",
    nodes: Annotated[str, number_option("--nodes", "Nodes they are spread over.")] = "2",
    size: Annotated[str, text_option("--size", "Vector to be reduced.")] = "192MiB",
    scale_up: Annotated[str, text_option("--scale-up", "Rate inside a node.")] = "450GB/s",
    nic: Annotated[str, text_option("--nic", "Line rate of a NIC.")] = "50GB/s",
    in_flight: Annotated[
        str, number_option("--in-flight", "Transactions a NIC may have out; 0: no limit.")
    ] = "0",
    payload: Annotated[str, text_option("--payload", "Data of a transaction.")] = "256B",
    turnaround: Annotated[str, text_option("--turnaround", "Until its slot is free.")] = "2us",
    compute: Annotated[str, text_option("--compute", "Compute of the step.")] = "20ms",
    update: Annotated[str, text_option("--update", "Update of the step.")] = "2ms",
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Compare two rings and a hierarchical reduction in a step."""
    from cli.net_cluster_reports import walks_text
    from planner.network import walks as table
    from planner.units import parse_bytes, parse_rate, parse_time

    given = Given()
    given.count("ranks", "--ranks", ranks, least=2, most=10**9)
    given.count("nodes", "--nodes", nodes, least=2, most=10**6)
    given.quantity("size_bytes", "--size", size, parse_bytes)
    given.quantity("scale_up_bytes_per_s", "--scale-up", scale_up, parse_rate)
    given.quantity("nic_bytes_per_s", "--nic", nic, parse_rate)
    given.count("in_flight", "--in-flight", in_flight, least=0)
    given.quantity("payload_bytes", "--payload", payload, parse_bytes)
    given.quantity("turnaround_s", "--turnaround", turnaround, parse_time)
    given.quantity("compute_s", "--compute", compute, parse_time)
    given.quantity("update_s", "--update", update, parse_time)
    with given.finish():
        seen = table.walk_table(table.WalkCase(**given.values))
    body = {**parts_of(seen), "source": table.SOURCE}
    put_out("walks", given.values, body, walks_text(given.values, seen), as_json=as_json, out=out)


def sharing(
    phase: Annotated[
        Literal["all", "forward", "backward", "end"],
        typer.Option("--phase", help="Families that are active together."),
    ] = "all",
    hashed: Annotated[
        bool, typer.Option("--hashed", help="One path a flow, by hash, instead of spraying.")
    ] = False,
    feedback: Annotated[
        str, text_option("--feedback", "Of the incast gate: until senders slow down.")
    ] = "20us",
    room: Annotated[
        str, text_option("--room", "Free buffer of a port where the cluster does not say.")
    ] = "256KiB",
    *,
    job: JobOptions,
    as_json: bool,
    out: Path | None,
) -> None:
    """Share links among all families, and name the bottleneck."""
    from cli.net_cluster_reports import sharing_text
    from cli.net_seats import incast_gates, job_flows
    from planner.network.routes import Paths
    from planner.network.sharing import share_links
    from planner.units import parse_bytes, parse_time

    given = Given()
    given.quantity("feedback_s", "--feedback", feedback, parse_time)
    given.quantity("room_bytes", "--room", room, parse_bytes)
    with given.finish():
        seated = job.seated()
        seen = share_links(
            seated.fabric,
            job_flows(seated, phase),
            paths=Paths.HASHED if hashed else Paths.SPRAYED,
        )
        gates = incast_gates(seated, **given.values)
    inputs = {
        **seated.inputs,
        "phase": phase,
        "hashed": hashed,
        **given.values,
    }
    source = "max-min fair sharing: D. Bertsekas, R. Gallager, Data Networks, 2nd ed., 1992"
    body = {**parts_of(seen), "incast": gates, "source": source}
    put_out("sharing", inputs, body, sharing_text(inputs, seen, gates), as_json=as_json, out=out)


def blast(
    failed: Annotated[
        list[str] | None,
        typer.Option(
            "--failed",
            metavar="PART",
            show_default=False,
            help="A vertex, A--B for a link, or a supernode; repeat it for several at once.",
        ),
    ] = None,
    relays: Annotated[
        bool, typer.Option("--relays", help="The job goes on where GPUs relay for others.")
    ] = False,
    *,
    job: JobOptions,
    as_json: bool,
    out: Path | None,
) -> None:
    """Show which ranks stall when a part of the cluster fails.

    Without --failed: one of each kind of part, the one with most ranks on it and in their groups.
    """
    from cli.net_cluster_reports import blast_text
    from planner.network import blast as model_of_failure
    from planner.network.worst_parts import worst_of_each_kind

    seated = job.seated()
    fabric, seats = seated.fabric, seated.rank_to_gpu
    groups = {family.name: members for family, members in seated.groups}
    kinds = () if failed else worst_of_each_kind(fabric, groups, seats)
    together = [[_part(name) for name in failed]] if failed else [[one.part] for one in kinds]
    relayed = model_of_failure.Relayed.GO_ON if relays else model_of_failure.Relayed.STALL
    seen = [
        model_of_failure.blast_radius(fabric, parts, groups, seats, relayed) for parts in together
    ]
    inputs = {**seated.inputs, "failed": list(failed or ()), "relays": relays}
    body = {
        "failures": seen,
        "kinds": kinds,
        "ranks": len(seats),
        "premises": seen[0].premises,
        "source": model_of_failure.SOURCE,
    }
    put_out(
        "blast", inputs, body, blast_text(inputs, seated, kinds, seen), as_json=as_json, out=out
    )


def _part(name: str) -> str | tuple[str, str]:
    """Return a vertex's or domain's name, or the two ends of a link."""
    ends = name.split("--")
    return (ends[0], ends[1]) if len(ends) == 2 else name
