"""The layout that is taken where none is given, against a plain search one layout at a time."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from planner.collectives.links import links_of
from planner.errors import InfeasibleError, LayoutError
from planner.fabric import Fabric
from planner.layout import Layout, check_layout, groups_along
from planner.model import Attention, ModelSpec
from planner.search.defaults import TOO_LARGE, WHOLE_FITS, Choice, Job, best_layout
from planner.search.given import given_faults
from planner.search.placed import placed_spreads, worst_chain_spread, worst_spread
from planner.search.space import layout_space
from planner.search.training import usual_batch
from planner.steptime.columns import columns_of
from planner.steptime.spread import contiguous_spread
from planner.steptime.step import layout_memory, step_time
from planner.steptime.uncertainty import faster
from topologies.efficiency_catalogue import efficiency_of
from topologies.fabric_catalogue import generic_cluster
from topologies.model_reader import read_model

DENSE = ModelSpec(
    name="dense", hidden=2048, vocab=32000, layers=12, ffn=8192,
    attention=Attention(heads=16, kv_heads=4, head_dim=128, v_head_dim=128),
)  # fmt: skip
MOE = ModelSpec(
    name="moe", hidden=2048, vocab=32000, layers=8, ffn=0, experts=12, top_k=2, expert_ffn=4096,
    moe_layers=(True,) * 8,
    attention=Attention(heads=16, kv_heads=4, head_dim=128, v_head_dim=128),
)  # fmt: skip


def chosen(model: ModelSpec, fabric: Fabric, gpus: int, **fixed: Any) -> Choice:
    return best_layout(Job(model=model, fabric=fabric, gpus=gpus, fixed=fixed))


def every_layout(model: ModelSpec, gpus: int, seq: int, batch: int) -> list[Layout]:
    """Every combination that Layout and check_layout themselves let pass."""
    found = []
    degrees = range(1, gpus + 1)
    experts = range(1, model.experts + 1) if model.experts else (1,)
    for tp, cp, pp, ep in product(degrees, degrees, degrees, experts):
        if gpus % (tp * cp * pp) or (model.experts and model.experts % ep):
            continue
        for vpp, micro, again in product((1, 2, 3, 4, 6, 8), (1, 2, 4, 8), ("selective", "full")):
            try:
                layout = Layout(
                    tp=tp, cp=cp, pp=pp, ep=ep, dp=gpus // (tp * cp * pp), vpp=vpp,
                    micro_batch=micro, recompute=again, seq=seq, global_batch=batch,
                )  # fmt: skip
                check_layout(layout, model, gpus)
            except LayoutError:
                continue
            found.append(layout)
    return found


@pytest.mark.parametrize(
    ("model", "gpus", "batch"), [(DENSE, 8, 32), (MOE, 12, 24), (DENSE, 6, 12), (MOE, 4, 16)]
)
def test_the_space_is_what_the_layout_itself_lets_pass(
    model: ModelSpec, gpus: int, batch: int
) -> None:
    fixed = {"seq": 1024, "global_batch": batch}

    space = layout_space(model, gpus, fixed)

    rows = [space.layout(row, fixed) for row in range(space.size)]
    expected = every_layout(model, gpus, 1024, batch)
    assert sorted(map(repr, rows)) == sorted(map(repr, expected))
    assert space.considered == space.size + sum(space.rejected.values())


def test_no_layout_that_fits_is_faster_by_more_than_one_percent() -> None:
    fabric = generic_cluster(4, 8)
    choice = chosen(DENSE, fabric, 8, seq=1024, global_batch=32)

    def step_s(layout: Layout) -> float:
        columns = columns_of(layout)
        return min(
            float(
                step_time(
                    DENSE, layout, accelerator=fabric.accelerator, links=links_of(fabric),
                    spreads=contiguous_spread(columns, [4], order),
                ).total_s
            )
            for order in ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")
        )  # fmt: skip

    fitting = [
        layout
        for layout in every_layout(DENSE, 8, 1024, 32)
        if layout_memory(DENSE, layout, fabric.accelerator).fits
    ]
    fastest = min(map(step_s, fitting))
    assert choice.feasible == len(fitting)
    assert fastest <= choice.step_s <= 1.01 * fastest
    assert choice.step_s == pytest.approx(step_s(choice.layout), rel=1e-9)
    assert choice.layout in fitting


def test_what_is_given_stays_and_the_rest_is_chosen() -> None:
    fabric = generic_cluster(4, 8)

    choice = chosen(DENSE, fabric, 8, seq=1024, global_batch=32, tp=2, pp=2, recompute="full")

    layout = choice.layout
    assert (layout.tp, layout.pp, layout.recompute) == (2, 2, "full")
    assert layout.gpus == 8


def test_the_same_question_gets_the_same_layout() -> None:
    fabric = generic_cluster(5, 12)

    first = chosen(MOE, fabric, 12, seq=1024, global_batch=24)
    second = chosen(MOE, fabric, 12, seq=1024, global_batch=24)

    assert first == second


def test_growing_the_supernode_brings_the_experts_inside() -> None:
    model = read_model("deepseek-v3")
    ep = {}
    for supernode in (8, 64, 384):
        fabric = generic_cluster(supernode, 1024)
        ep[supernode] = chosen(model, fabric, 1024, seq=4096, global_batch=15360).layout.ep

    assert ep[8] < ep[64] <= ep[384]
    assert ep[64] <= 64


def test_three_expert_groups_of_256_do_not_make_four_fit_in_384_384_256() -> None:
    fabric = generic_cluster(384, 1024)
    layout = Layout(tp=1, ep=256, dp=1024, global_batch=1024)

    spread = placed_spreads(layout, range(1024), fabric).ep

    assert (spread.supernodes, spread.together) == (2.0, 128.0)


def test_nothing_fits_is_proved_with_the_nearest_and_what_it_lacks() -> None:
    fabric = generic_cluster(8, 8)
    model = read_model("llama-3.1-405b")

    with pytest.raises(InfeasibleError, match=r"layouts fits in memory; the nearest .* too much"):
        chosen(model, fabric, 8, seq=4096, global_batch=8)


def test_a_layout_that_needs_more_memory_is_counted_as_such() -> None:
    fabric = generic_cluster(8, 64)
    choice = chosen(read_model("llama-3.1-70b"), fabric, 64, seq=4096, global_batch=64)

    assert choice.rejected[TOO_LARGE] > 0
    assert choice.considered == choice.feasible + sum(choice.rejected.values())


def test_sharded_weights_are_taken_where_the_model_tells_that_they_are_faster() -> None:
    model, fabric = read_model("deepseek-v3"), generic_cluster(72, 1008)
    fitted = efficiency_of(fabric.accelerator.name)
    assert fitted is not None

    choice, whole = (
        best_layout(
            Job(model=model, fabric=fabric, gpus=1008, efficiency=fitted,
                fixed={"seq": 4096, "global_batch": 16128, **more})
        )
        for more in ({}, {"zero_stage": 1})
    )  # fmt: skip

    assert choice.layout.zero_stage == 3
    assert faster(choice.fastest_s, whole.fastest_s, fitted.spread).told_apart
    assert choice.considered == choice.feasible + sum(choice.rejected.values())
    assert choice.rejected[WHOLE_FITS] == whole.feasible


def test_the_runner_up_has_other_degrees_and_is_no_better() -> None:
    choice = chosen(DENSE, generic_cluster(4, 8), 8, seq=1024, global_batch=32)

    assert choice.runner_up is not None
    degrees = [
        (one.tp, one.cp, one.ep, one.dp, one.pp) for one in (choice.layout, choice.runner_up)
    ]
    assert degrees[0] != degrees[1]
    assert choice.runner_up_step_s >= choice.step_s / 1.01


def test_no_combination_that_can_run_says_why() -> None:
    with pytest.raises(LayoutError, match="dp x micro-batch does not divide the global batch"):
        chosen(DENSE, generic_cluster(4, 8), 8, seq=1024, global_batch=5, dp=1, micro_batch=2)


@pytest.mark.parametrize(
    ("fixed", "fault"),
    [
        ({"tp": 3}, "tp=3 does not divide the 16 attention heads"),
        ({"tp": 2, "pp": 3}, "tp x pp = 2 x 3 = 6 does not divide the 8 GPUs asked for"),
        ({"tp": 2, "cp": 1, "dp": 2, "pp": 1}, "2 x 1 x 2 x 1 = 4 does not equal the 8 GPUs"),
        ({"ep": 2}, "ep=2 needs a model with experts; dense has none"),
        ({"pp": 8, "vpp": 2}, "pp x vpp = 8 x 2 = 16 exceeds the 12 layers"),
        ({"cp": 3, "seq": 1024}, "cp=3 does not divide seq = 1024"),
    ],
)  # fmt: skip
def test_a_given_degree_that_cannot_be_is_named(fixed: dict[str, Any], fault: str) -> None:
    assert fault in "\n".join(given_faults(DENSE, 8, fixed))


def test_degrees_that_can_be_have_no_fault() -> None:
    fixed = {"tp": 2, "pp": 2, "vpp": 3, "seq": 1024, "global_batch": 16, "zero_stage": 1}

    assert given_faults(DENSE, 8, fixed) == []


@pytest.mark.parametrize(
    ("gpus", "fixed", "batch"),
    [(1024, {}, 1024), (12, {}, 1020), (1008, {}, 1008), (7, {}, 1022), (1024, {"seq": 8192}, 512),
     (64, {"dp": 4, "micro_batch": 3}, 1020), (8, {"global_batch": 5}, 5), (100, {}, 1000),
     (1536, {}, 1152), (640, {"dp": 40, "micro_batch": 1}, 1040), (1023, {}, 1023)],
)  # fmt: skip
def test_the_usual_batch_gives_replicas_whole_micro_batches(
    gpus: int, fixed: dict[str, int], batch: int
) -> None:
    assert usual_batch(DENSE, gpus, fixed).global_batch == batch


@pytest.mark.parametrize(
    ("name", "seq", "whose"),
    [
        ("llama-2-70b", 4096, "Llama 2 trained on 4 M"),
        ("llama-2-7b", 4096, "as Llama 2"),
        ("llama-3.1-70b", 8192, "Llama 3's 405B"),
        ("llama-3.1-8b", 8192, "Llama 3's 405B"),
    ],
)
def test_llama_2_and_llama_3_of_one_shape_are_told_apart(name: str, seq: int, whose: str) -> None:
    usual = usual_batch(read_model(name), 64, {})

    assert usual.seq == seq
    assert whose in usual.source


def test_the_batch_of_llama_3_is_16_million_tokens() -> None:
    usual = usual_batch(read_model("llama-3.1-405b"), 1024, {})

    assert usual.seq * usual.global_batch == 16 * 2**20


def test_the_worst_group_stands_for_all() -> None:
    homes = np.array([0, 0, 0, 0, 0, 0, 1, 2])

    spread = worst_spread(groups_along((4, 2), (0,)), [homes])

    assert (spread.supernodes, spread.together, spread.least_members) == (3.0, 2.0, 1.0)


def test_a_chain_that_comes_back_counts_every_border() -> None:
    homes = np.array([0, 1, 0, 1])

    spread = worst_chain_spread(np.array([[0, 1, 2, 3]]), [homes])

    assert (spread.supernodes - 1) / (spread.group_size - 1) == 1.0


def test_a_number_of_gpus_that_nobody_asked_for_says_where_it_comes_from() -> None:
    whose = "of hgx-h100; --gpus N takes another number"

    found = given_faults(DENSE, 8, {"tp": 2, "pp": 3}, whose)

    assert found[-1] == (
        "tp x pp = 2 x 3 = 6 does not divide the 8 GPUs of hgx-h100; --gpus N takes another number"
    )
