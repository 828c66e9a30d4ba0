"""The step: its parts add up, one layout and many agree, and a better machine is never slower."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from planner.collectives.links import LinkNumbers, two_tiers
from planner.fabric import Accelerator
from planner.layout import Layout
from planner.model import Attention, ModelSpec
from planner.steptime.columns import columns_of
from planner.steptime.critical_path import critical_path
from planner.steptime.document import memory_document, step_document
from planner.steptime.rates import Efficiency, default_efficiency, rates_of
from planner.steptime.remedies import remedies
from planner.steptime.sensitivity import CHANGES, Case, sensitivities
from planner.steptime.spread import contiguous_spread
from planner.steptime.step import Step, layout_memory, step_columns, step_time
from topologies.fabric_accelerators import load_accelerator

H100 = Accelerator(
    name="H100-SXM",
    peak_flops_per_s={"bf16": 989e12, "fp16": 989e12, "fp8": 1979e12},
    memory_bytes=85.5e9,
    memory_bytes_per_s=3.35e12,
    efficiency_share={"bf16": 0.8, "fp16": 0.8, "fp8": 0.7},
    memory_efficiency_share=0.88,
)
DENSE = ModelSpec(
    name="llama-3.1-70b", hidden=8192, vocab=128256, layers=80, ffn=28672,
    attention=Attention(heads=64, kv_heads=8, head_dim=128, v_head_dim=128),
)  # fmt: skip
MOE = ModelSpec(
    name="qwen3-235b", hidden=4096, vocab=151936, layers=94, ffn=12288, experts=128, top_k=8,
    expert_ffn=1536, moe_layers=(True,) * 94,
    attention=Attention(heads=64, kv_heads=4, head_dim=128, v_head_dim=128),
)  # fmt: skip
LINKS = two_tiers(
    inside_bytes_per_s=450e9, nic_bytes_per_s=50e9, inside_latency_s=3e-6, nic_latency_s=1e-5
)
LAYOUTS = [
    Layout(tp=8, pp=4, dp=4, global_batch=128, seq=8192),
    Layout(tp=4, pp=8, dp=4, vpp=5, global_batch=128, seq=8192),
    Layout(tp=8, cp=2, pp=4, dp=2, global_batch=128, seq=8192, cp_kind="all_gather"),
    Layout(tp=2, dp=64, global_batch=128, seq=8192, zero_stage=3, recompute="full"),
    Layout(tp=8, pp=4, dp=4, global_batch=128, seq=8192, precision="fp8", schedule="zb-h1"),
    Layout(tp=16, pp=8, dp=1, global_batch=64, seq=4096, sequence_parallel=False,
           overlap_gradients=False),
]  # fmt: skip
EXPERT_LAYOUTS = [
    Layout(tp=1, pp=8, dp=16, ep=16, global_batch=256),
    Layout(tp=4, pp=4, dp=8, ep=32, global_batch=256, ep_copies="domain", dispatch_bytes=1),
    Layout(tp=4, pp=4, dp=8, ep=8, etp=2, global_batch=256),
]


def predicted(
    layout: Layout, model: ModelSpec = DENSE, *, accelerator: Accelerator = H100,
    links: LinkNumbers = LINKS, supernode: float = 8.0, efficiency: Efficiency | None = None,
) -> Step:  # fmt: skip
    return step_time(
        model, layout, accelerator=accelerator, links=links, efficiency=efficiency,
        spreads=contiguous_spread(columns_of(layout), supernode, layout.order),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("model", "layouts"), [(DENSE, LAYOUTS), (MOE, EXPERT_LAYOUTS)], ids=["dense", "experts"]
)
def test_many_layouts_get_the_answers_of_each_alone(
    model: ModelSpec, layouts: list[Layout]
) -> None:
    columns = columns_of(layouts)

    many = step_columns(
        model, columns, accelerator=H100, links=LINKS, spreads=contiguous_spread(columns, 8.0)
    )

    alone = [predicted(layout, model) for layout in layouts]
    assert np.allclose(many.total_s, [float(s.total_s) for s in alone], rtol=1e-9)
    assert np.allclose(many.serial_s, [float(s.serial_s) for s in alone], rtol=1e-9)
    assert np.allclose(many.bubble_s, [float(s.bubble_s) for s in alone], rtol=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS + EXPERT_LAYOUTS)
def test_the_critical_path_adds_up_to_the_step(layout: Layout) -> None:
    model = MOE if layout.ep > 1 else DENSE
    step = predicted(layout, model)

    path = critical_path(step)

    assert sum(entry.seconds for entry in path) == pytest.approx(float(step.total_s), rel=1e-9)
    assert sum(entry.share for entry in path) == pytest.approx(1.0)


@pytest.mark.parametrize("layout", LAYOUTS + EXPERT_LAYOUTS)
def test_nothing_is_exposed_beyond_its_own_time_and_overlap_never_hurts(layout: Layout) -> None:
    step = predicted(layout, MOE if layout.ep > 1 else DENSE)

    for family, shown in step.exposed_s.items():
        own = float(step.communication_s[family])
        # a pipeline's hops wait for each other: a micro-batch can pay each hop twice
        assert -1e-12 <= float(shown) <= (2 * own if family == "pp" else own) + 1e-9, family
    assert float(step.serial_s) >= float(step.total_s) - 1e-9


@pytest.mark.parametrize("name", sorted(set(CHANGES) - {"in_flight"}))
@pytest.mark.parametrize("layout", LAYOUTS + EXPERT_LAYOUTS)
def test_a_better_machine_never_slows_a_step(layout: Layout, name: str) -> None:
    columns = columns_of(layout)
    case = Case(
        model=MOE if layout.ep > 1 else DENSE, columns=columns, accelerator=H100, links=LINKS,
        spreads=contiguous_spread(columns, 8.0),
    )  # fmt: skip
    worse_when_more = name in {
        "scale_up_latency", "nic_latency", "oversubscription", "launch_time"
    }  # fmt: skip

    more = float(CHANGES[name](case, 2.0).step().total_s)

    before = float(case.step().total_s)
    assert more >= before - 1e-9 if worse_when_more else more <= before + 1e-9


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_larger_supernode_slows_no_step_by_more_than_a_tree_saves(layout: Layout) -> None:
    # A tree over two supernodes moves less than a ring inside one: 2-node all-reduces are known
    # to beat the bus bandwidth of one node. With eight fast NICs that is a few per cent of a step.
    steps = [float(predicted(layout, supernode=size).total_s) for size in (8.0, 64.0, 384.0)]

    assert steps[1] <= 1.05 * steps[0]
    assert steps[2] <= 1.05 * steps[1]


def test_tensor_parallelism_that_leaves_the_supernode_is_dear() -> None:
    # the chapter: at 8 a TP of 16 crosses machines; at 64 it stays inside
    thin = two_tiers(inside_bytes_per_s=450e9, nic_bytes_per_s=12.5e9)

    spanning, inside = (
        float(predicted(LAYOUTS[5], links=thin, supernode=size).total_s) for size in (8.0, 64.0)
    )

    assert spanning > 1.3 * inside


def test_what_was_not_measured_is_said() -> None:
    fitted = Efficiency(
        gemm_share={"bf16": 0.7}, attention_share={"fused": 0.4}, memory_share={"fused": 0.7}
    )

    assert "efficiency" in predicted(LAYOUTS[0]).assumed
    assert "efficiency.fp8" in predicted(LAYOUTS[4], efficiency=fitted).assumed
    assert not predicted(LAYOUTS[0], efficiency=fitted).assumed


def test_eight_bit_matrix_products_take_half_the_time_and_attention_stays() -> None:
    same = Efficiency(
        gemm_share={"bf16": 0.7, "fp8": 0.7}, attention_share={"fused": 0.4},
        memory_share={"fused": 0.7},
    )  # fmt: skip
    wide = rates_of(H100, columns_of(Layout()), same)
    narrow = rates_of(H100, columns_of(Layout(precision="fp8")), same)

    assert narrow.gemm_flops_per_s == pytest.approx(wide.gemm_flops_per_s * 1979 / 989)
    assert narrow.attention_flops_per_s == wide.attention_flops_per_s
    assert narrow.logits_flops_per_s == wide.logits_flops_per_s


def test_a_default_reaches_less_in_a_step_than_a_matrix_product_alone() -> None:
    found = default_efficiency(H100)

    assert found.gemm_share["bf16"] < 0.8
    assert found.attention_share["fused"] < found.gemm_share["bf16"]


def test_the_documents_have_the_keys_that_users_rely_on() -> None:
    step = step_document(predicted(LAYOUTS[0]))
    memory = memory_document(layout_memory(DENSE, LAYOUTS[0], H100))

    assert {
        "total_s", "serial_s", "compute_s", "communication_s", "exposed_s", "bubble_s",
        "update_s", "mfu", "tokens_per_s", "critical_path", "interval_s",
    } <= set(step)  # fmt: skip
    assert {"worst_stage_bytes", "capacity_bytes", "fits", "parts"} <= set(memory)
    assert memory["worst_stage_bytes"] == pytest.approx(sum(memory["parts"].values()))
    assert step["interval_s"][0] < step["total_s"] < step["interval_s"][1]


def test_sensitivities_name_what_the_step_waits_for() -> None:
    layout = Layout(tp=8, dp=16, global_batch=64, micro_batch=1, seq=8192)
    columns = columns_of(layout)
    slow = two_tiers(inside_bytes_per_s=450e9, nic_bytes_per_s=0.2e9)
    case = Case(model=DENSE, columns=columns, accelerator=H100, links=slow,
                spreads=contiguous_spread(columns, 8.0), in_flight_binds=True)  # fmt: skip

    found = {one.name: one for one in sensitivities(case)}

    assert found["nic_bandwidth"].elasticity_ratio < -0.5
    assert found["in_flight"].elasticity_ratio == found["nic_bandwidth"].elasticity_ratio
    assert found["oversubscription"].elasticity_ratio > 0.5
    assert found["nic_bandwidth"].gain_s > 0


def test_remedies_fit_and_the_cheapest_comes_first() -> None:
    layout = Layout(tp=8, dp=16, global_batch=64, micro_batch=2, seq=8192, recompute="none")
    assert not layout_memory(DENSE, layout, H100).fits

    found = remedies(DENSE, layout, accelerator=H100, links=LINKS, domains=[8.0])

    assert found
    assert [one.extra_s for one in found] == sorted(one.extra_s for one in found)
    assert all(layout_memory(DENSE, one.layout, H100).fits for one in found)
    assert all(one.layout.gpus == layout.gpus for one in found)


def test_one_layout_takes_at_most_two_milliseconds() -> None:
    predicted(LAYOUTS[1])
    best = 1.0
    for _ in range(5):
        start = time.process_time()
        for _ in range(20):
            predicted(LAYOUTS[1])
        best = min(best, (time.process_time() - start) / 20)

    # 0.6 ms on an idle core; twice the promise here, for a core that others use
    assert best < 4e-3


def test_a_quarter_of_a_million_layouts_take_a_core_second() -> None:
    rows = 16384
    few = columns_of(LAYOUTS[:2])
    columns = replace(few, **{
        name: np.resize(value, rows)
        for name in few.__dataclass_fields__
        if isinstance(value := getattr(few, name), np.ndarray)
    })  # fmt: skip
    best = 0.0
    for _ in range(4):
        start = time.process_time()
        step_columns(DENSE, columns, accelerator=H100, links=LINKS,
                     spreads=contiguous_spread(columns, 8.0))  # fmt: skip
        best = max(best, rows / (time.process_time() - start))

    # 500,000 on an idle core; half of the promise here, for a core that others use
    assert best > 125_000


@pytest.mark.parametrize(
    ("name", "alone_flops_per_s", "gemm_flops_per_s"),
    [("A100-SXM-80", 230e12, 271e12), ("H100-SXM", 350e12, 795e12)],
)
def test_flash_attention_2_is_assumed_at_what_it_was_published_to_do(
    name: str, alone_flops_per_s: float, gemm_flops_per_s: float
) -> None:
    """Against kernels written for the H100, 740 TFLOP/s alone, which whole steps keep 0.62 of."""
    found = default_efficiency(load_accelerator(name))

    kept = 0.62 / (740e12 / 795e12)
    expected = kept * alone_flops_per_s / gemm_flops_per_s
    assert found.attention_share["eager"] / found.gemm_share["bf16"] == pytest.approx(
        expected, rel=0.02
    )


def test_kernels_that_were_not_measured_stand_to_those_that_were_as_usual() -> None:
    measured = Efficiency(
        gemm_share={"bf16": 0.7}, attention_share={"fused": 0.4}, memory_share={"fused": 0.6}
    )
    columns = columns_of(Layout(seq=4096))
    usual = default_efficiency(H100)

    rates = [rates_of(H100, replace(columns, stack=stack), measured) for stack in (0.0, 1.0, 2.0)]

    attention = rates[1].attention_flops_per_s / rates[0].attention_flops_per_s
    assert attention == pytest.approx(
        usual.attention_share["eager"] / usual.attention_share["fused"]
    )
    assert rates[2].memory_bytes_per_s / rates[0].memory_bytes_per_s == pytest.approx(0.95 / 0.65)


def test_a_recomputation_that_stops_early_leaves_a_dense_layers_last_product() -> None:
    layout = Layout(dp=64, global_batch=64, seq=8192, zero_stage=3, recompute="full")

    def again_s(stops: float) -> float:
        columns = columns_of(layout, stops_early=stops)
        spreads = contiguous_spread(columns, 8.0)
        step = step_columns(DENSE, columns, accelerator=H100, links=LINKS, spreads=spreads)
        return float(step.compute_parts_s["recompute"])

    # 80 layers, 8192 tokens: 2 x tokens x 28672 x 8192 each, and 2 bytes of each operand
    rates = rates_of(H100, columns_of(layout))
    product = 2.0 * 8192 * 28672 * 8192 / float(rates.gemm_flops_per_s)
    operands = 2.0 * (8192 * 28672 + 28672 * 8192 + 8192 * 8192) / float(rates.memory_bytes_per_s)
    assert again_s(0.0) - again_s(1.0) == pytest.approx(80 * (product + operands))


def test_another_machine_may_be_further_off_than_the_one_that_was_fitted_on() -> None:
    own = replace(default_efficiency(H100), spread=0.06, machine_spread=0.0)
    other = replace(own, machine_spread=0.08)
    layout = Layout(tp=8, pp=4, dp=4, global_batch=128, seq=8192)
    spreads = contiguous_spread(columns_of(layout), 8.0)

    def width(efficiency: Efficiency) -> float:
        step = step_time(DENSE, layout, accelerator=H100, links=LINKS, spreads=spreads,
                         efficiency=efficiency)  # fmt: skip
        low_s, high_s = step_document(step)["interval_s"]
        return float(np.log(high_s / low_s))

    # variances add up: 0.06^2 + 0.08^2 = 0.1^2
    assert width(own) == pytest.approx(2 * 1.645 * 0.06)
    assert width(other) == pytest.approx(2 * 1.645 * 0.10)


@pytest.mark.parametrize(("chip", "faster"), [("H100-SXM", True), ("A100-SXM-80", False)])
def test_attention_written_for_hopper_is_faster_from_hopper_on(chip: str, faster: bool) -> None:
    accelerator = load_accelerator(chip)
    layout = Layout(dp=8, global_batch=8, seq=8192, zero_stage=3)

    def rate(newer: float) -> float:
        columns = columns_of(layout, stack=1.0, newer_attention=newer)
        return float(rates_of(accelerator, columns).attention_flops_per_s)

    # FlashAttention 2 does 350 TFLOP/s on an H100, kernels written for it 740 (arXiv 2407.08608)
    assert rate(1.0) / rate(0.0) == pytest.approx(740 / 350 if faster else 1.0, rel=0.02)


def test_in_dualpipe_both_ends_are_on_one_rank() -> None:
    """A rank runs half of its micro-batches through each: embedding and logits are shared out."""
    plain = Layout(tp=8, pp=4, dp=2, global_batch=32, seq=4096)

    in_turn = predicted(plain).stages.forward
    both_ways = predicted(replace(plain, schedule="dualpipe")).stages.forward

    assert in_turn.last > in_turn.first
    assert both_ways.first == both_ways.last == (in_turn.first + in_turn.last) / 2
    assert both_ways.middle == in_turn.middle


def test_dualpipe_leaves_twenty_of_132_multiprocessors_to_the_experts_traffic() -> None:
    """arXiv 2412.19437 §3.2.2; what only moves bytes is bound by memory and not by them."""
    plain = Layout(tp=4, pp=4, dp=8, ep=32, global_batch=256, schedule="zb-h1")

    apart = predicted(plain, MOE).stages.layers["moe"].compute
    beside = predicted(replace(plain, schedule="dualpipe"), MOE).stages.layers["moe"].compute

    assert beside["attention"] * 112 / 132 == pytest.approx(apart["attention"], rel=0.02)
    assert apart["gemm"] < beside["gemm"] < apart["gemm"] * 132 / 112
    assert beside["memory"] == apart["memory"]
