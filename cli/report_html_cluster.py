"""The wiring of a plan's cluster, where it is a cluster on file and still the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cli.report_pictures import picture
from cli.topology_picture import cluster_drawing
from planner.errors import PlannerError
from topologies.fabric_catalogue import catalogue_names, load_spec
from topologies.fabric_graph import build_fabric

if TYPE_CHECKING:
    from topologies.fabric_spec import FabricSpec

_MOST_GPUS = 20_000  # beyond it the graph alone takes longer than the rest of a report


def drawing_of_cluster(document: Mapping[str, Any]) -> str:
    """Return the picture of the cluster's wiring, or a sentence that says why there is none.

    A plan file holds tiers, not wires. They are drawn only where the cluster is one of those on
    file, by name, and its tiers are those of the plan; no file that a plan names is opened.
    """
    spec = _spec_on_file(document)
    if spec is None:
        return (
            "<p>The wiring is not drawn: a plan file holds tiers, and this cluster is not on file "
            "as the plan has it. <code>planner topology draw</code> draws it from its own file.</p>"
        )
    drawn = cluster_drawing(spec)
    return picture(drawn.title, drawn.height, drawn.body)


def _spec_on_file(document: Mapping[str, Any]) -> FabricSpec | None:
    inputs = document["inputs"]
    name = inputs["cluster_asked"]
    if name not in catalogue_names() or inputs["gpus"] > _MOST_GPUS:
        return None
    rebuilt = name == "generic" or "supernode.size" in inputs["assumed"]
    try:
        spec = load_spec(
            name, supernode=inputs["supernode"] if rebuilt else None, gpus=inputs["gpus"]
        )
        tiers = build_fabric(spec).tiers
    except PlannerError:
        return None
    ours = [
        (t.name, [len(d.gpus) for d in t.domains], t.bytes_per_s, t.shared_bytes_per_s)
        for t in tiers
    ]
    theirs = [
        (t["tier"], t["capacities"], t["bytes_per_s"], t["shared_bytes_per_s"])
        for t in inputs["fabric"]["tiers"]
    ]
    return spec if ours == theirs else None
