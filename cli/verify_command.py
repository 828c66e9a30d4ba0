"""``planner verify``: how far an allocation is from the plan, and the best order of its ranks."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.export_command import PlansCluster
from cli.planner_options import Json, Out, Seed, TimeLimit, command_app, writable

app = command_app()

PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN", help="The document of planner place --out.")
]
AllocationFile = Annotated[
    Path,
    typer.Option(
        "--allocation",
        metavar="FILE",
        show_default=False,
        help="A host file, SLURM_JOB_NODELIST's text, a rank file, or a rank map.",
    ),
]
Hosts = Annotated[
    Path | None,
    typer.Option(
        "--hosts",
        metavar="FILE",
        show_default=False,
        help="The machines' real names in the order of the plan's cluster.",
    ),
]
TopologyFile = Annotated[
    Path | None,
    typer.Option(
        "--topology",
        metavar="FILE",
        show_default=False,
        help="The real cluster, as topology import reads it, instead of the plan's.",
    ),
]
BestOut = Annotated[
    Path | None,
    typer.Option(
        "--rank-map",
        callback=writable,
        metavar="FILE",
        show_default=False,
        help="Write the best order as a rank map.",
    ),
]


@app.command("verify")
def verify(
    plan: PlanFile,
    allocation: AllocationFile,
    hosts: Hosts = None,
    topology: TopologyFile = None,
    cluster: PlansCluster = None,
    rank_map: BestOut = None,
    seed: Seed = 0,
    time_limit: TimeLimit = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Hold what the scheduler gave against the plan: groups that cross, bytes, seconds.

    Then seat the ranks anew on the machines given, and say what that order would save.
    """
    from cli.planner_output import emit, json_text, note, write_file
    from cli.verify_report import print_verdict, verdict

    found = verdict(
        plan, allocation, hosts=hosts, topology=topology, cluster=cluster, seed=seed,
        time_limit_s=time_limit,
    )  # fmt: skip
    if rank_map is not None:
        write_file(rank_map, found.rank_map)
        note(f"wrote {rank_map}")
    if out is not None:
        write_file(out, json_text(found.document))
        note(f"wrote {out}")
    if as_json:
        emit(json_text(found.document))
        return
    _print(print_verdict, found.document)


def _print(show: Any, document: dict[str, Any]) -> None:
    from cli.planner_output import console

    show(console(), document)
