"""``planner topology``: the clusters on file, what one is made of, and what is wrong with it."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called
from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli import topology_draw, topology_import
from cli.planner_options import Cluster, Json, Out, Supernode, group_app

if TYPE_CHECKING:
    from planner.fabric import Fabric
    from topologies.fabric_spec import FabricSpec

app = group_app("The clusters on file: list, show, check, draw, import.")

for _module in (topology_draw, topology_import):
    _module.add_to(app)

Named = Annotated[
    str | None,
    typer.Argument(metavar="[NAME|FILE]", show_default=False, help="The cluster, as --cluster."),
]
SomeGpus = Annotated[
    int | None,
    typer.Option(
        "--gpus",
        min=1,
        max=1_000_000,
        show_default=False,
        help="GPUs of the job; left out, what the file says, or 1024 of the generic family.",
    ),
]


@app.command("list")
def list_clusters(as_json: Json = False, out: Out = None) -> None:
    """Name the clusters and accelerators on file."""
    from cli.topology_text import accelerator_rows, cluster_rows, list_text

    clusters, accelerators = cluster_rows(), accelerator_rows()
    body = {"clusters": clusters, "accelerators": accelerators}
    _put_out("topology-list", {}, body, as_json=as_json, out=out)
    if not as_json:
        list_text(clusters, accelerators)


@app.command("show")
def show(
    named: Named = None,
    cluster: Cluster = None,
    supernode: Supernode = None,
    gpus: SomeGpus = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Show a cluster's tiers, rates, oversubscription, parts, and where its figures come from."""
    from cli.topology_text import show_body, show_text
    from topologies.fabric_graph import build_fabric

    spec, fabric = None, _foreign(named, cluster, supernode, gpus)
    if fabric is None:
        spec = _spec(named, cluster, supernode, gpus)
        fabric = build_fabric(spec)
    inputs = _inputs(spec, named or cluster, supernode, gpus, fabric)
    _put_out("topology-show", inputs, show_body(spec, fabric), as_json=as_json, out=out)
    if not as_json:
        show_text(spec, fabric)


@app.command("check")
def check(
    named: Named = None,
    cluster: Cluster = None,
    supernode: Supernode = None,
    gpus: SomeGpus = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Look for parts cut off, dead, oversubscribed, over their radix, or without a second way.

    Exits with 2 where something cannot work as it is.
    """
    from cli.topology_text import check_text
    from planner.network.deadlock import premises
    from planner.network.deadlock_fabric import findings
    from topologies.fabric_check import findings_of
    from topologies.fabric_graph import build_graph, usable_gpus, whole_tiers

    spec, fabric = None, _foreign(named, cluster, supernode, gpus)
    if fabric is not None:
        name, names = fabric.name, fabric.gpus
        found = findings_of(fabric.graph, names, tiers=fabric.tiers, more=[findings])
    else:
        spec = _spec(named, cluster, supernode, gpus)
        name, names = spec.name, usable_gpus(spec)
        tiers = whole_tiers(spec)
        found = findings_of(build_graph(spec), names, tiers=tiers, dead=spec.dead, more=[findings])
    faults = sum(f.severity == "fault" for f in found)
    inputs = _inputs(spec, named or cluster, supernode, gpus, fabric)
    body = {"cluster": name, "faults": faults, "findings": found, "premises": premises()}
    _put_out("topology-check", inputs, body, as_json=as_json, out=out)
    if not as_json:
        check_text(name, len(names), found, premises())
    if faults:
        raise typer.Exit(2)


def _spec(
    named: str | None, cluster: str | None, supernode: int | None, gpus: int | None
) -> FabricSpec:
    """Return the cluster that the options name; without a name, of the generic family."""
    from topologies.fabric_catalogue import load_spec

    if named is not None and cluster is not None:
        raise typer.BadParameter(f"name one cluster, not both {named!r} and {cluster!r}")
    return load_spec(named or cluster or "generic", supernode=supernode, gpus=gpus)


def _foreign(
    named: str | None, cluster: str | None, supernode: int | None, gpus: int | None
) -> Fabric | None:
    """Return the cluster of another tool's file, or None where the options name none."""
    from cli.topology_foreign import foreign_fabric

    if (named is None) == (cluster is None):
        return None
    return foreign_fabric(str(named or cluster), supernode, gpus)


def _inputs(
    spec: FabricSpec | None,
    name: str | None,
    supernode: int | None,
    gpus: int | None,
    fabric: Fabric | None,
) -> dict[str, Any]:
    """Return every input after defaults, and the hash of a file that is not the catalogue's."""
    from cli.topology_foreign import foreign_inputs
    from planner.documents import read_bytes
    from topologies.fabric_catalogue import is_shipped

    cluster = name or "generic"
    if spec is None:
        return {} if fabric is None else foreign_inputs(cluster, fabric)
    inputs: dict[str, Any] = {
        "cluster": cluster,
        "supernode": spec.supernode.size if supernode is None else supernode,
        "gpus": spec.job_gpus if gpus is None else gpus,
    }
    if not is_shipped(cluster):
        inputs["file_sha256"] = sha256(read_bytes(cluster)).hexdigest()
    return inputs


def _put_out(
    command: str, inputs: dict[str, Any], body: dict[str, Any], *, as_json: bool, out: Path | None
) -> None:
    """Write the document to *out*, print it where JSON is asked for."""
    from cli.planner_output import document, emit, json_text, note, write_file

    if not as_json and out is None:
        return
    text = json_text(document(command, inputs, body))
    if out is not None:
        write_file(out, text)
        note(f"wrote {out}")
    if as_json:
        emit(text)
