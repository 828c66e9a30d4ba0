"""The wiring of a plan's cluster: as the plan holds it, or as the cluster on file has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cli.report_pictures import picture
from cli.topology_picture import drawing_of
from cli.topology_wiring import Shown, dead_parts, shown_from, shown_of, wiring_of
from planner.errors import PlannerError
from topologies.fabric_catalogue import is_shipped, load_spec
from topologies.fabric_graph import build_fabric, build_graph

if TYPE_CHECKING:
    from topologies.fabric_spec import FabricSpec

_MOST_GPUS = 20_000  # beyond it the graph alone takes longer than the rest of a report


def drawing_of_cluster(document: Mapping[str, Any]) -> str:
    """Return the picture of the cluster's wiring, or a sentence that says why there is none.

    A plan file without its wiring is drawn only where the cluster is one of those on file, by
    name, and its tiers are those of the plan; no file that a plan names is opened.
    """
    shown = _shown(document)
    if shown is None:
        return (
            "<p>The wiring is not drawn: this plan file holds tiers only, and its cluster is not "
            "on file as the plan has it. Make it again with <code>planner place --json</code>.</p>"
        )
    drawn = drawing_of(shown)
    return picture(drawn.title, drawn.height, drawn.body)


def _shown(document: Mapping[str, Any]) -> Shown | None:
    if "wiring" in document:
        return shown_from(document["wiring"])
    spec = _spec_on_file(document)
    if spec is None:
        return None
    return shown_of(wiring_of(build_graph(spec)), spec.name, dead_parts(spec))


def dead_words(document: Mapping[str, Any]) -> str:
    """Return what is said of dead parts: how many, or that the plan does not know."""
    if "wiring" not in document:
        return "GPUs that are dead are not among them: a plan file lists only what works."
    dead = document["wiring"]["dead"]
    if not dead:
        return "Nothing is said to be dead."
    return f"{len(dead):,} {'parts are' if len(dead) > 1 else 'part is'} dead and not among them."


def _spec_on_file(document: Mapping[str, Any]) -> FabricSpec | None:
    inputs = document["inputs"]
    name = inputs["cluster_asked"]
    if not is_shipped(name) or inputs["gpus"] > _MOST_GPUS:
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
