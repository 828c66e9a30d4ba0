"""What a plan's document says of its stages and its parts list: seconds, bytes, pieces of kit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from planner.procure.bill import bill_of_materials
from planner.steptime.columns import SCHEDULES, columns_of
from planner.steptime.memory import each_stage_memory
from planner.steptime.trace import stage_values

if TYPE_CHECKING:
    from cli.planner_inputs import Inputs
    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.steptime.schedule import StageSeconds
    from planner.steptime.step import Step


def stages_document(layout: Layout, step: Step) -> Mapping[str, Any]:
    """Return one micro-batch on every pipeline stage, enough to draw the step pass by pass.

    Args:
        layout: what the step was predicted of.
        step: the prediction.

    Returns:
        ``schedule``, ``chunks``, ``micro_batches``; ``hop_s`` from stage to stage; ``forward_s``,
        ``backward_s`` (weight gradients included), ``weights_s``, and by family ``traffic_s`` and
        ``exposed_s``, each a list with one entry for every stage [s].
    """
    columns = columns_of(layout)
    stages, chunks = int(columns.pp), int(columns.vpp)
    micro_batches, costs = int(columns.micro_batches), step.stages
    hops = 2 * micro_batches * chunks  # both ways, on every stage: the step's own count
    return {
        "schedule": SCHEDULES[int(columns.schedule)],
        "chunks": chunks,
        "micro_batches": micro_batches,
        "hop_s": float(step.communication_s["pp"]) / hops if stages > 1 else 0.0,
        "pipeline_s": float(step.pipeline.total_s),
        "forward_s": stage_values(costs.forward, stages),
        "backward_s": stage_values(costs.backward, stages),
        "weights_s": stage_values(costs.weights, stages),
        "traffic_s": _families(costs.traffic, stages),
        "exposed_s": _families(costs.exposed, stages),
    }


def _families(parts: Mapping[str, StageSeconds], stages: int) -> Mapping[str, list[float]]:
    """Return the families that take any time, stage by stage [s]."""
    found = {name: stage_values(each, stages) for name, each in parts.items()}
    return {name: values for name, values in found.items() if any(values)}


def stage_memory_document(inputs: Inputs) -> list[Mapping[str, Any]]:
    """Return what one GPU of every pipeline stage holds, part by part [bytes]."""
    found = each_stage_memory(inputs.model, columns_of(inputs.layout))
    kinds = {len(found) - 1: "last", 0: "first"}  # one stage alone is the first
    return [
        {
            "stage": stage,
            "kind": kinds.get(stage, "middle"),
            "parts": {part: float(value) for part, value in parts.items()},
        }
        for stage, parts in enumerate(found)
    ]


def bill_document(fabric: Fabric, used: Collection[int]) -> Mapping[str, Any]:
    """Return the cluster's parts with what they draw, without prices: a plan knows none.

    Args:
        fabric: all of it counts, with what a free list leaves out.
        used: GPUs that hold a rank, so that it can be said how much of what counts works.
    """
    ranked = frozenset(used)
    bill = bill_of_materials(fabric, None)
    lines = [asdict(line) for line in bill.lines]
    kept = ("item", "count", "link_bytes_per_s", "power_w")
    return {
        "lines": [{key: line[key] for key in kept} for line in lines],
        "ports": [asdict(one) for one in bill.ports],
        "with_ranks": {
            "gpus": len(used),
            "servers": sum(not ranked.isdisjoint(host.gpus) for host in fabric.hosts),
        },
    }
