"""Data parallelism ends a step on the stage that holds most, not always on the first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.collectives.links import two_tiers
from planner.layout import Layout
from planner.model import Attention, ModelSpec
from planner.search.placed import placed_spreads
from planner.steptime.columns import columns_of
from planner.steptime.shared_links import Seating, seated_step_time
from planner.steptime.spread import contiguous_spread
from planner.steptime.step import Step, step_columns, step_time
from planner.traffic import step_families
from tests.unit.test_steptime_step import H100
from topologies.fabric_catalogue import generic_cluster

MIXED = ModelSpec(
    name="one dense layer, three of experts", hidden=4096, vocab=1024, layers=4, ffn=4096,
    experts=64, top_k=2, expert_ffn=4096, moe_layers=(False, True, True, True),
    attention=Attention(heads=32, kv_heads=32, head_dim=128, v_head_dim=128),
)  # fmt: skip
LINKS = two_tiers(inside_bytes_per_s=450e9, nic_bytes_per_s=50e9)


def step(layout: Layout) -> Step:
    spreads = contiguous_spread(columns_of(layout), 8.0)
    return step_time(MIXED, layout, accelerator=H100, links=LINKS, spreads=spreads)


def test_experts_behind_a_dense_first_stage_are_what_a_step_waits_for() -> None:
    layout = Layout(
        pp=4, ep=8, dp=16, global_batch=64, seq=1024, zero_stage=1, recompute="none",
        overlap_gradients=False, overlap_parameters=False,
    )  # fmt: skip

    found = step(layout)

    # By hand: a stage of experts holds 64 / 8 x 3 x 4096^2 parameters a rank in groups of 2, one
    # in each supernode, and 4 x 4096^2 of attention and 64 x 4096 of the router in groups of 16.
    # Rings of n over NICs at 0.7 of 50 GB/s send (n - 1) / n of 4 bytes (gradients) and 2
    # (parameters) each. The second stage ends one backward before the first.
    experts, rest = 8 * 3 * 4096**2, 4 * 4096**2 + 64 * 4096
    wire_s = 6 * (experts * 1 / 2 / (0.7 * 50e9) + rest * 15 / 16 / (8 * 0.7 * 50e9))
    backward_s = float(found.stages.backward.most(4.0))
    assert backward_s < 0.2 * wire_s
    assert found.communication_s["dp"] == pytest.approx(wire_s, rel=0.02)
    assert found.exposed_s["dp"] == pytest.approx(wire_s - backward_s, rel=0.02)


def test_a_dense_models_first_stage_with_the_embedding_still_decides() -> None:
    layout = Layout(pp=4, dp=16, global_batch=64, seq=1024, overlap_gradients=False,
                    overlap_parameters=False)  # fmt: skip
    dense = replace(MIXED, experts=0, top_k=0, expert_ffn=0, moe_layers=(), vocab=128256)
    spreads = contiguous_spread(columns_of(layout), 8.0)

    found = step_time(dense, layout, accelerator=H100, links=LINKS, spreads=spreads)

    held = dense.embedding_parameters + dense.dense_layer_parameters
    wire_s = 6 * held * 15 / 16 / (8 * 0.7 * 50e9)
    assert found.exposed_s["dp"] == pytest.approx(wire_s, rel=0.02)


def test_a_model_without_experts_pays_no_start_up_of_collectives_for_them() -> None:
    layout = Layout(dp=16, global_batch=64, seq=1024, overlap_gradients=False,
                    overlap_parameters=False)  # fmt: skip
    dense = replace(MIXED, experts=0, top_k=0, expert_ffn=0, moe_layers=())
    far = two_tiers(inside_bytes_per_s=450e9, nic_bytes_per_s=50e9, nic_latency_s=1.0)
    spreads = contiguous_spread(columns_of(layout), 8.0)

    steps = {
        latency_s: step_time(dense, layout, accelerator=H100, links=links, spreads=spreads)
        for latency_s, links in ((0.0, LINKS), (1.0, far))
    }

    # One scatter and one gather around two supernodes: two hops over NICs each.
    later_s = steps[1.0].communication_s["dp"] - steps[0.0].communication_s["dp"]
    assert later_s == pytest.approx(2 * 2 * 1.0)


def test_no_link_is_busy_longer_than_its_phase_with_experts_sharded_for_every_micro_batch() -> None:
    layout = Layout(pp=4, ep=8, dp=16, global_batch=64, seq=1024, zero_stage=3)
    fabric = generic_cluster(8, 64)
    seats = tuple(range(64))
    seating = Seating(
        fabric=fabric, families=step_families(MIXED, layout), rank_to_gpu=seats,
        spreads=placed_spreads(layout, seats, fabric),
    )  # fmt: skip

    found = seated_step_time(MIXED, layout, seating)

    passes = [phase for phase in found.phases if phase.phase in {"forward", "backward"}]
    busy = [link.busy_share for phase in passes for link in phase.links]
    shares = [share for share in busy if share is not None]
    assert len(passes) == 2
    assert 0.5 < max(shares) <= 1.0


def test_hybrid_shards_are_gathered_inside_a_supernode_and_summed_between_them() -> None:
    """64 GPUs in supernodes of 8: V stays inside, an eighth of it goes around each rail's ring."""
    dense = replace(MIXED, experts=0, top_k=0, expert_ffn=0, moe_layers=())
    layout = Layout(dp=64, global_batch=64, seq=1024, zero_stage=3)

    def traffic_s(shard_gpus: float) -> float:
        columns = columns_of(layout, shard_gpus=shard_gpus)
        found = step_columns(dense, columns, accelerator=H100, links=LINKS,
                             spreads=contiguous_spread(columns, 8.0))  # fmt: skip
        return float(found.communication_s["dp"])

    # gradients of 4 bytes, parameters of 2 gathered twice; scale-up at 0.78, NICs at 0.7
    parameters = float(dense.parameters())
    inside_s = (4 + 2 + 2) * parameters * 7 / 8 / (0.78 * 450e9)
    between_s = 2 * 4 * parameters / 8 * 7 / 8 / (0.7 * 50e9)
    plain_s = (4 + 2 + 2) * parameters * 63 / 64 / (8 * 0.7 * 50e9)
    assert traffic_s(8.0) == pytest.approx(inside_s + between_s, rel=0.02)
    assert traffic_s(0.0) == pytest.approx(plain_s, rel=0.02)
