"""``planner export``: a plan as the file that a launcher, a scheduler or a tool reads."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cli.planner_options import command_app, writable

app = command_app()

KINDS = {
    "rank-map": ("export_launch", "rank_map_text"),
    "rank-map-json": ("export_launch", "rank_map_json_text"),
    "node-order": ("export_launch", "node_order_text"),
    "slurm": ("export_launch", "slurm_text"),
    "mpi-rankfile": ("export_launch", "mpi_rankfile_text"),
    "torchrun": ("export_launch", "torchrun_text"),
    "megatron": ("export_megatron", "megatron_text"),
    "kueue": ("export_launch", "kueue_text"),
    "nccl-env": ("export_launch", "nccl_env_text"),
    "slurm-topology": ("export_graph", "slurm_topology_text"),
    "slurm-topology-conf": ("export_graph", "slurm_topology_conf_text"),
    "astra-sim": ("export_graph", "astra_sim_text"),
    "dot": ("export_graph", "dot_text"),
    "graphml": ("export_graph", "graphml_text"),
}

PlanFile = Annotated[
    Path, typer.Argument(metavar="PLAN", help="The document of planner place --out.")
]
To = Annotated[
    str, typer.Option("--to", metavar="KIND", show_default=False, help=f"{', '.join(KINDS)}.")
]
Hosts = Annotated[
    Path | None,
    typer.Option(
        "--hosts",
        metavar="FILE",
        show_default=False,
        help="The machines' real names in the cluster's order: host lists, one or more a line.",
    ),
]
PlansCluster = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="NAME|FILE",
        show_default="the plan's",
        help="Where the plan's cluster is now, if its file was moved.",
    ),
]
Into = Annotated[
    Path | None,
    typer.Option(
        "--out",
        callback=writable,
        metavar="FILE",
        show_default="stdout",
        help="Write the file here instead.",
    ),
]


@app.command("export")
def export(
    plan: PlanFile,
    to: To,
    hosts: Hosts = None,
    cluster: PlansCluster = None,
    out: Into = None,
) -> None:
    """Write a plan's placement for a launcher or a scheduler, each rank where the plan seats it."""
    from importlib import import_module

    from cli.planner_output import emit, note, write_file
    from planner.errors import InputError

    if to not in KINDS:
        raise InputError(f"--to {to!r} is unknown: one of {', '.join(KINDS)}")
    module, name = KINDS[to]
    text: str = getattr(import_module(f"topologies.{module}"), name)(
        read_plan(plan, hosts, cluster=cluster)
    )
    if out is None:
        emit(text)
        return
    write_file(out, text)
    note(f"wrote {out}")


def read_plan(path: Path, hosts: Path | None, *, cluster: str | None = None) -> Any:
    """Return the SeatedPlan in the document at *path*."""
    from cli.plan_cluster import read_planned
    from cli.plan_seats import seats_of_plan
    from cli.planner_output import note
    from planner.errors import InputError
    from topologies.export_seats import seated_plan

    names = read_host_names(hosts) if hosts is not None else ()
    try:
        seated = read_planned(path, cluster=cluster)
    except InputError as error:
        alone = None if cluster else seats_of_plan(path, names)
        if alone is None or not any("there is no such file" in fault for fault in error.faults):
            raise
        note(f"{error.faults[0]}: the seats are those of the plan")
        return alone
    fabric = seated.inputs.fabric
    source = f"{len(seated.rank_to_gpu)} ranks on {fabric.name}, from {path.name}"
    return seated_plan(
        seated.inputs.layout,
        fabric,
        seated.rank_to_gpu,
        host_names=names,
        source="".join(c if c.isprintable() else "?" for c in source),
    )


def read_host_names(path: Path) -> tuple[str, ...]:
    """Return the names in a file of host lists, ``#`` comments left out."""
    from planner.documents import read_bytes
    from planner.errors import SpecError
    from topologies.fabric_import import decoded
    from topologies.host_lists import MOST_HOSTS, HostListError, expand_hosts
    from topologies.text_lines import numbered_lines

    names: list[str] = []
    for number, raw in numbered_lines(decoded(read_bytes(path), str(path)), str(path)):
        if line := raw.split("#", 1)[0].strip():
            try:
                names += expand_hosts(line)
                if len(names) > MOST_HOSTS:
                    raise HostListError(f"more than {MOST_HOSTS:,} machines")
            except HostListError as error:
                raise SpecError(*(f"{path}:{number}: {f}" for f in error.faults)) from None
    return tuple(names)
