"""What a plan says of its stages: its passes add up to its step, its parts to its cluster."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from cli.plan_stages import bill_document, stage_memory_document, stages_document
from cli.planner_inputs import Asked, read_inputs
from cli.planner_plan import Plan, make_plan
from cli.report_timeline import step_line

LAYOUTS: dict[str, dict[str, Any]] = {
    "one stage": {"pp": 1, "tp": 4, "dp": 16},
    "1f1b": {"pp": 4, "tp": 2, "dp": 8, "vpp": 1},
    "interleaved": {"pp": 4, "tp": 2, "dp": 8, "vpp": 4},
}


def plan_of(layout: dict[str, Any]) -> Plan:
    given = {"cp": 1, "micro_batch": 1, "global_batch": 512, **layout}
    return make_plan(
        read_inputs(
            Asked(supernode=8, gpus=64, model="llama-3.1-8b", layout=given, ignore_memory=True)
        )
    )


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_passes_add_up_to_the_pipeline_of_the_step(name: str) -> None:
    plan = plan_of(LAYOUTS[name])

    told = stages_document(plan.inputs.layout, plan.step)

    assert len(told["forward_s"]) == LAYOUTS[name]["pp"]
    assert step_line(told).pipeline_s == pytest.approx(told["pipeline_s"], rel=0.01)
    assert told["pipeline_s"] < float(plan.step.total_s)
    assert told["micro_batches"] * told["traffic_s"]["tp"][0] > 0


def test_memory_of_the_stages_has_the_fullest_among_them() -> None:
    plan = plan_of(LAYOUTS["1f1b"])

    told = stage_memory_document(plan.inputs)

    assert [(one["stage"], one["kind"]) for one in told] == [
        (0, "first"),
        (1, "middle"),
        (2, "middle"),
        (3, "last"),
    ]
    sums = [sum(one["parts"].values()) for one in told]
    assert max(sums) == pytest.approx(float(plan.memory.worst_stage_bytes))
    kept = [one["parts"]["activations"] for one in told]
    fewer = [more - less for more, less in pairwise(kept)]
    assert fewer == pytest.approx([fewer[0]] * 3)  # 1F1B: 4, 3, 2 and 1 micro-batches in flight
    assert fewer[0] > 0
    one_stage = stage_memory_document(plan_of(LAYOUTS["one stage"]).inputs)
    assert [one["kind"] for one in one_stage] == ["first"]


def test_the_bill_counts_what_the_cluster_is_made_of() -> None:
    bill = bill_document(plan_of(LAYOUTS["1f1b"]).inputs.fabric, range(64))
    lines = {line["item"]: line for line in bill["lines"]}

    assert lines["H100-SXM"] == {"item": "H100-SXM", "count": 64, "link_bytes_per_s": 0.0,
                                 "power_w": 700.0}  # fmt: skip
    assert lines["nic"]["count"] == 64
    assert lines["nic"]["power_w"] is None
    assert lines["nic-leaf"]["link_bytes_per_s"] == 50e9
