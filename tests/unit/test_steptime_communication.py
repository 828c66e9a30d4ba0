"""Payloads and copies of a step's collectives, against the traffic tables and brute force."""

from __future__ import annotations

from dataclasses import fields
from itertools import combinations
from math import comb

import pytest

from planner.collectives.links import Spread, two_tiers
from planner.layout import Layout
from planner.model import Attention, ModelSpec
from planner.steptime.columns import columns_of
from planner.steptime.communication import (
    GradientTraffic,
    gradient_s,
    pipeline_hop_s,
    reached_share,
    tensor_s,
    volume_bytes,
)
from planner.steptime.parameters import stage_layers, stage_parameters
from planner.steptime.spread import Spreads, contiguous_spread, strided_spread
from planner.steptime.wires import Wires, wires_of
from planner.traffic import activation_bytes

SMALL = ModelSpec(
    name="small", hidden=1024, vocab=1000, layers=4, ffn=4096, experts=8, top_k=2, expert_ffn=512,
    moe_layers=(True,) * 4,
    attention=Attention(heads=8, kv_heads=8, head_dim=128, v_head_dim=128),
)  # fmt: skip
LINKS = two_tiers(inside_bytes_per_s=400e9, nic_bytes_per_s=50e9)


def wires(layout: Layout, supernode: float = 8.0) -> Wires:
    return wires_of(contiguous_spread(columns_of(layout), supernode), LINKS)


def test_the_volume_is_that_of_the_traffic_tables() -> None:
    layout = Layout(tp=2, cp=4, micro_batch=3, seq=4096, global_batch=3)

    assert volume_bytes(SMALL, columns_of(layout)) == activation_bytes(SMALL, layout)


@pytest.mark.parametrize(("inside", "top_k"), [(1, 2), (2, 2), (4, 3), (6, 1)])
def test_copies_per_domain_are_those_of_every_choice_of_experts(inside: int, top_k: int) -> None:
    model = ModelSpec(
        name="m", hidden=8, vocab=8, layers=1, ffn=8, experts=8, top_k=top_k, expert_ffn=8,
        moe_layers=(True,), attention=Attention(heads=1, kv_heads=1, head_dim=8, v_head_dim=8),
    )  # fmt: skip
    held = set(range(inside))
    visits = sum(1 for chosen in combinations(range(8), top_k) if held & set(chosen))

    assert reached_share(model, inside / 8) == pytest.approx(visits / comb(8, top_k))


def test_sequence_parallelism_moves_the_same_bytes_as_an_all_reduce_forward() -> None:
    with_sp = columns_of(Layout(tp=8, sequence_parallel=True))
    without = columns_of(Layout(tp=8, sequence_parallel=False))

    split = tensor_s(SMALL, with_sp, wires(Layout(tp=8)))[0]
    whole = tensor_s(SMALL, without, wires(Layout(tp=8)))[0]

    assert float(split) == pytest.approx(float(whole))


def test_a_group_of_eight_in_a_supernode_reduces_at_the_scale_up_rate() -> None:
    columns = columns_of(Layout(tp=8, sequence_parallel=False))

    found = tensor_s(SMALL, columns, wires(Layout(tp=8)))[0]

    # 2 (n - 1) / n V / B, by hand
    assert float(found) == pytest.approx(2 * 7 / 8 * 4096 * 1024 * 2 / 400e9)


def test_a_pipeline_hop_is_split_over_tensor_ranks() -> None:
    layout = Layout(tp=4, pp=4)

    found = pipeline_hop_s(SMALL, columns_of(layout), wires(layout, 4.0))

    assert float(found) == pytest.approx(4096 * 1024 * 2 / 4 / 50e9)


def test_a_chain_pays_the_network_only_where_it_leaves_a_supernode() -> None:
    layout = Layout(tp=4, pp=4)
    # two stages in each supernode of eight: one of the three hops crosses
    crossing, staying = 4096 * 1024 * 2 / 4 / 50e9, 4096 * 1024 * 2 / 4 / 400e9

    found = pipeline_hop_s(SMALL, columns_of(layout), wires(layout, 8.0))

    assert float(found) == pytest.approx((crossing + 2 * staying) / 3)


def test_one_rank_moves_nothing() -> None:
    columns = columns_of(Layout())

    forward, backward = tensor_s(SMALL, columns, wires(Layout()))

    assert float(forward) == float(backward) == 0.0


@pytest.mark.parametrize(
    ("layout", "digit", "expected"),
    [
        (Layout(tp=8, dp=16, global_batch=16), "dp", (16, 1, 16)),
        (Layout(tp=2, dp=16, global_batch=16), "dp", (16, 4, 4)),
        (Layout(tp=16), "tp", (16, 8, 2)),
        (Layout(tp=2, cp=2, dp=4, global_batch=4), "dp", (8, 4, 2)),
        (Layout(dp=16, ep=4, global_batch=16), "edp", (4, 2, 2)),
        (Layout(tp=8, pp=4), "pp", (4, 1, 4)),
        (Layout(tp=4, pp=2, dp=2, global_batch=2, order="tp-cp-ep-pp-dp"), "pp", (2, 2, 1)),
    ],
)
def test_rank_order_spreads_groups_as_counting_does(
    layout: Layout, digit: str, expected: tuple[int, int, int]
) -> None:
    spreads = contiguous_spread(columns_of(layout), 8.0, layout.order)

    spread: Spread = getattr(spreads, digit)

    assert (spread.group_size, spread.together, spread.supernodes) == expected


def test_a_partly_filled_supernode_counts_as_one_more() -> None:
    spread = strided_spread(12.0, 1.0, [5])

    assert (spread.supernodes, spread.least_members) == (3.0, 2.0)


def test_a_placement_may_say_how_its_groups_sit() -> None:
    whole = Spread.of(8, 8)
    split = Spread.of(8, 4)
    layout = Layout(tp=8)

    def seconds(spread: Spread) -> float:
        alone = Spread.of(1, 1)
        spreads = Spreads(tp=spread, cp=alone, ep=alone, etp=alone, dp=alone, edp=alone, pp=alone)
        columns = columns_of(layout)
        return float(tensor_s(SMALL, columns, wires_of(spreads, LINKS))[0])

    assert seconds(split) > seconds(whole)


def apart(layout: Layout, model: ModelSpec, latency_s: float) -> GradientTraffic:
    """Return what start-ups of *latency_s* each add to a step's data parallelism."""
    columns = columns_of(layout)
    held = stage_parameters(model, columns, stage_layers(model, columns), "first")
    spreads = contiguous_spread(columns, 8.0)

    def taken(start_s: float) -> GradientTraffic:
        links = two_tiers(inside_bytes_per_s=400e9, nic_bytes_per_s=50e9,
                          inside_latency_s=start_s, nic_latency_s=start_s)  # fmt: skip
        return gradient_s(columns, held, wires_of(spreads, links))

    late, soon = taken(latency_s), taken(0.0)
    return GradientTraffic(
        **{f.name: getattr(late, f.name) - getattr(soon, f.name) for f in fields(GradientTraffic)}
    )


DENSE = ModelSpec(
    name="dense", hidden=8192, vocab=128256, layers=80, ffn=28672,
    attention=Attention(heads=64, kv_heads=8, head_dim=128, v_head_dim=128),
)  # fmt: skip


def test_full_sharding_pays_the_start_ups_of_a_ring_for_each_layer_and_the_tables() -> None:
    layout = Layout(dp=64, zero_stage=3, global_batch=64, seq=4096)

    added = apart(layout, DENSE, 10e-6)

    # 64 ranks, 8 to a node: one collective hands on 63 times, 81 of them run
    assert added.gather_s == pytest.approx(81 * 63 * 10e-6, rel=1e-6)
    assert added.reduce_s == pytest.approx(81 * 63 * 10e-6, rel=1e-6)


def test_gradients_that_are_not_sharded_in_full_pay_them_once() -> None:
    added = apart(Layout(dp=64, zero_stage=1, global_batch=64, seq=4096), DENSE, 10e-6)

    assert added.gather_s == pytest.approx(63 * 10e-6, rel=1e-6)
