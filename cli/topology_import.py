"""``planner topology import``: a foreign file of a cluster, what it says and what it lacks."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.planner_options import Json, whole, writable

if TYPE_CHECKING:
    from planner.fabric import Fabric
    from topologies.fabric_import import ImportAsked
    from topologies.imported_fabric import ImportedFabric

_SHOWN = 20

File = Annotated[Path, typer.Argument(metavar="FILE", help="The file, of a kind that is listed.")]
GpusPerNode = Annotated[
    int | None,
    whole("--gpus-per-node", maximum=1024, help="GPUs of a machine, where the file does not say."),
]
Links = Annotated[
    Path | None,
    typer.Option(
        "--links",
        metavar="FILE",
        show_default=False,
        help="YAML with rates: nic, scale_up (of a GPU), uplinks (of a leaf, a spine, ...).",
    ),
]
Like = Annotated[
    str,
    typer.Option(
        "--rates-from",
        "--like",
        metavar="NAME|FILE",
        help="The cluster that lends what the file does not say.",
    ),
]
Machines = Annotated[
    int | None,
    whole("--machines", maximum=100_000, help="Machines like the one of the file, on one switch."),
]
ClusterOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        callback=writable,
        metavar="FILE",
        show_default=False,
        help="Write the cluster here for --cluster: FILE.yaml, or else the document of --json.",
    ),
]
Accelerator = Annotated[
    str,
    typer.Option("--accelerator", metavar="NAME", show_default=False, help="What every GPU is."),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="NAME",
        show_default="by content",
        help="slurm-conf, slurm-yaml, topograph, netq, ibnetdiscover, nccl-xml, nvidia-smi, "
        "infragraph, ns3, astra-sim, calculon, aiconfigurator, hwloc, node-link, graphml, "
        "cluster.",
    ),
]
Topology = Annotated[
    str,
    typer.Option(
        "--topology", metavar="NAME", show_default=False, help="Which one of a topology.yaml."
    ),
]
ScaleUpBlocks = Annotated[
    bool, typer.Option("--blocks-scale-up", help="Slurm's blocks are scale-up domains.")
]
Join = Annotated[
    bool, typer.Option("--join", help="Put a non-blocking switch above parts that share none.")
]
GraphOut = Annotated[
    Path | None,
    typer.Option(
        "--graph",
        metavar="FILE",
        show_default=False,
        help="Write the cluster here as node-link JSON, which can be imported again.",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add the command to the group *app*."""
    app.command("import")(import_file)


def import_file(
    file: File,
    gpus_per_node: GpusPerNode = None,
    links: Links = None,
    like: Like = "generic",
    accelerator: Accelerator = "",
    format: Format = "",  # noqa: A002 - the option's name
    topology: Topology = "",
    blocks_scale_up: ScaleUpBlocks = False,
    join: Join = False,
    machines: Machines = None,
    graph: GraphOut = None,
    as_json: Json = False,
    out: ClusterOut = None,
) -> None:
    """Read a cluster from a scheduler's, a fabric's, a library's or a simulator's file.

    What is odd in the file is listed; what it does not say is borrowed and listed as assumed.
    """
    from cli.planner_output import document, emit, json_text, note, write_file
    from planner.errors import SpecError
    from topologies.fabric_import import ImportAsked, fabric_of, import_fabric, resolved_import

    asked = ImportAsked(
        format=format, topology=topology, like=like, links=links, accelerator=accelerator,
        gpus_per_host=gpus_per_node, blocks_scale_up=blocks_scale_up, join=join, machines=machines,
    )  # fmt: skip
    found = import_fabric(file, asked)
    try:
        fabric = fabric_of(found, asked)
    except SpecError as error:
        raise SpecError(*error.faults, *_odd(found)) from None
    if graph is not None:
        from topologies.export_graph import node_link_text

        write_file(graph, node_link_text(fabric))
        note(f"wrote {graph}")
    if out is not None and out.suffix.lower() in {".yaml", ".yml"}:
        from topologies.imported_resolved import cluster_file_text

        write_file(out, cluster_file_text(resolved_import(found, asked)))
        note(f"wrote {out}")
        out = None
    if as_json or out is not None:
        text = json_text(
            document("topology-import", _inputs(file, asked), import_body(found, fabric, asked))
        )
        if out is not None:
            write_file(out, text)
            note(f"wrote {out}")
        if as_json:
            emit(text)
            return
    _show(found, fabric)


def _odd(found: ImportedFabric) -> list[str]:
    """Return the oddities that are not faults already."""
    return [f"{finding} ({finding.severity})" for finding in found.findings if
            finding.severity != "fault"][:_SHOWN]  # fmt: skip


def _inputs(file: Path, asked: ImportAsked) -> dict[str, Any]:
    from hashlib import sha256

    from planner.documents import read_bytes

    return {
        "file": file.name,
        "file_sha256": sha256(read_bytes(file)).hexdigest(),
        "like": asked.like,
        "gpus_per_node": asked.gpus_per_host,
        "format": asked.format or None,
        "topology": asked.topology or None,
        "accelerator": asked.accelerator or None,
        "blocks_scale_up": asked.blocks_scale_up,
        "join": asked.join,
        "machines": asked.machines,
        "links_sha256": None
        if asked.links is None
        else sha256(read_bytes(asked.links)).hexdigest(),
    }


def import_body(found: ImportedFabric, fabric: Fabric, asked: ImportAsked) -> dict[str, Any]:
    """Return the results for the document, the cluster file among them."""
    from topologies.fabric_import import resolved_import
    from topologies.imported_resolved import cluster_file_text

    return {
        "kind": found.kind,
        "provenance": found.provenance,
        "name": fabric.name,
        "hosts": len(fabric.hosts),
        "gpus": len(fabric.gpus),
        "switches": len(found.switches),
        "links": sum(one.links for one in found.links),
        "accelerator": fabric.accelerator.name,
        "tiers": [
            {
                "tier": tier.name,
                "domains": len(tier.domains),
                "capacities": fabric.capacities(tier.name),
                "bytes_per_s": tier.bytes_per_s,
                "shared_bytes_per_s": tier.shared_bytes_per_s,
                "latency_s": tier.latency_s,
            }
            for tier in fabric.tiers
        ],
        "assumed": fabric.assumed,
        "findings": found.findings,
        "cluster_file": cluster_file_text(resolved_import(found, asked)),
    }


def _show(found: ImportedFabric, fabric: Fabric) -> None:
    from cli.planner_output import console
    from planner.units import format_rate, format_time

    page = console()
    page.print(f"{found.provenance}: {found.kind}")
    page.print(
        f"{len(fabric.hosts)} machines, {len(fabric.gpus)} x {fabric.accelerator.name}, "
        f"{len(found.switches)} switches, {sum(one.links for one in found.links)} links"
    )
    for tier in fabric.tiers:
        sizes = sorted(set(fabric.capacities(tier.name)), reverse=True)
        few = "/".join(map(str, sizes[:6])) + ("/..." if len(sizes) > 6 else "")
        page.print(
            f"  {tier.name}: {len(tier.domains)} of {few} GPUs, "
            f"{format_rate(tier.bytes_per_s)} alone, "
            f"{format_rate(tier.shared_bytes_per_s)} when all send, "
            f"start-up {format_time(tier.latency_s)}"
        )
    for title, lines in (
        ("Odd in the file", [f"{f.severity}: {f}" for f in found.findings]),
        ("Assumed", [f"{name}: {why}" for name, why in fabric.assumed.items()]),
    ):
        if lines:
            page.print(f"\n{title}")
        for line in lines[:_SHOWN]:
            page.print(f"  {line}")
        if len(lines) > _SHOWN:
            page.print(f"  ... {len(lines) - _SHOWN} more, in --json")
