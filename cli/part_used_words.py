"""What is said where a part of every supernode would train faster than all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.planner_inputs import job_of
from planner.layout import layout_values
from planner.search.given import spelled_layout
from planner.search.part_used import faster_part
from planner.units import format_share, format_time
from topologies.fabric_catalogue import generic_cluster, load_cluster
from topologies.fabric_rebuild import REBUILT
from topologies.free_list import only_gpus

if TYPE_CHECKING:
    from cli.planner_inputs import Asked, Inputs, Question
    from cli.planner_plan import Plan
    from planner.fabric import Fabric
    from planner.search.part_used import PartUsed


def part_used(asked: Asked, inputs: Inputs, step_s: float) -> PartUsed | None:
    """Return what using a part of each supernode would bring.

    Nothing is looked for where the layout is given, where GPUs are named by a free list, or where
    layouts must meet conditions, which the command that is told could not be given.

    Args:
        asked: what the user gave.
        inputs: what that came to.
        step_s: the step of the layout that was chosen [s].
    """
    if inputs.choice.considered == 1:
        return None
    return part_of_question(asked, inputs, step_s)


def part_of_question(asked: Asked, question: Question, step_s: float) -> PartUsed | None:
    """Return the same of a cluster whose layouts were all looked at."""
    if asked.free is not None or asked.planned_free or asked.where:
        return None

    def cluster_of(supernodes: int, of_each: int) -> Fabric:
        return _part(_with_supernodes(asked, question.fabric, supernodes), of_each)

    return faster_part(job_of(question), step_s, cluster_of)


def part_of_plan(asked: Asked, plan: Plan) -> PartUsed | None:
    """Return the same of a plan; nothing where rules are kept, or where the user wants an end."""
    if plan.placement.interrupted or plan.placement.rule_price is not None:
        return None
    return part_used(asked, plan.inputs, float(plan.step.total_s))


def _with_supernodes(asked: Asked, fabric: Fabric, supernodes: int) -> Fabric:
    """Return the cluster with so many whole supernodes."""
    size = max(fabric.capacities("supernode"))
    if asked.cluster is None:
        return generic_cluster(size, size * supernodes)
    return load_cluster(asked.cluster, supernode=asked.supernode, gpus=size * supernodes)


def _part(whole: Fabric, of_each: int) -> Fabric:
    """Return the first *of_each* GPUs of every supernode."""
    domains = whole.tier("supernode").domains
    return only_gpus(whole, sorted(gpu for one in domains for gpu in sorted(one.gpus)[:of_each]))


def part_document(found: PartUsed | None) -> dict[str, Any]:
    """Return the part of a document that tells of it; nothing where there is nothing."""
    if found is None:
        return {}
    return {
        "part_used": {
            "gpus_of_each": found.of_each,
            "supernodes": found.supernodes,
            "cluster_gpus": found.gpus,
            "layout": layout_values(found.layout),
            "step_s": found.step_s,
        }
    }


def used_part_words(found: PartUsed | None, step_s: float, cluster: str) -> str:
    """Return what using a part of each supernode would bring, and how to ask for it; or nothing.

    Args:
        found: of ``part_used``.
        step_s: the step that it is held against [s].
        cluster: what the cluster was asked for as; ``generic`` is the family.
    """
    if found is None:
        return ""
    text = (
        f"With {found.of_each} of the {found.supernode} GPUs of each supernode used, of "
        f"{found.supernodes} supernodes ({found.gpus:,} GPUs), a step takes about "
        f"{format_time(found.step_s)}, {format_share(1.0 - found.step_s / step_s)} less: "
        f"{spelled_layout(found.layout)}. "
    )
    if cluster.partition(REBUILT)[0] == "generic":
        digits = max(2, len(str(found.supernodes - 1)))
        hosts = f"sn[{0:0{digits}}-{found.supernodes - 1:0{digits}}]*{found.of_each}"
        return text + (
            f"planner place with --supernode {found.supernode} --gpus {found.gpus} --free FILE "
            f"beside the same model and degrees shows it, with {hosts} in FILE."
        )
    return text + (
        f"A cluster file with count: {found.supernodes} under supernode and gpus: "
        f"{found.of_each * found.supernodes} shows it."
    )
