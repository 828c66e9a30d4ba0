"""Hybrid sharding (HSDP): groups, bytes, memory and seats worked out by hand or by trying all.

The rules are torchtitan's and Megatron's: a shard group is cp x ``dp_shard`` neighbouring ranks,
its replicas are ranks one shard group apart, and experts have as many replicas.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from planner.collectives.links import links_of
from planner.errors import LayoutError
from planner.layout import Layout, layout_values
from planner.place import place
from planner.place.question import ask
from planner.search.placed import placed_spreads, spreads_of
from planner.search.seats import RankOrderSeats
from planner.steptime.columns import columns_of
from planner.steptime.memory import stage_memory
from planner.steptime.remedies import remedies
from planner.steptime.shared_links import Seating, seated_step_time
from planner.steptime.spread import SHARDING, contiguous_spread
from planner.steptime.step import step_time
from planner.traffic import step_families
from tests.oracles import brute_force_cut, slow_cut_bytes
from topologies.fabric_catalogue import generic_cluster
from topologies.model_reader import read_model

LLAMA, MIXTRAL = read_model("llama-3.1-8b"), read_model("mixtral-8x7b")
SMALL = Layout(dp=8, dp_shard=4, zero_stage=3, micro_batch=1, global_batch=16, seq=4096)
PARAMETERS = 8_030_261_248  # of Llama 3.1 8B: the published count
STEPS = 2  # micro-batches of a replica: 16 sequences / 8 replicas / 1


def _members(layout: Layout, family: str) -> list[list[int]]:
    model = MIXTRAL if family.startswith("edp") else LLAMA
    found = {one.name: one for one in step_families(model, layout)}
    groups: list[list[int]] = found[family].members(layout).tolist()
    return groups


def test_a_shard_group_is_neighbours_and_a_replica_is_one_shard_group_away() -> None:
    assert _members(SMALL, "dp_scatter") == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert _members(SMALL, "dp_replica_reduce") == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_a_shard_group_has_the_ranks_of_context_parallelism_too() -> None:
    # torchtitan's mesh (dp_replicate, dp_shard_cp) of dp_replicate 2, dp_shard 2, cp 2, tp 2
    layout = Layout(tp=2, cp=2, dp=4, dp_shard=2, zero_stage=3, global_batch=4)

    assert _members(layout, "dp_scatter")[0] == [0, 2, 4, 6]
    assert _members(layout, "dp_replica_reduce")[0] == [0, 8]


def test_experts_have_as_many_replicas_and_shard_over_what_is_left() -> None:
    # Megatron's intra-partial expert group: edp / instances = (2 x 16 / 8) / 2 ranks, 8 apart
    layout = Layout(tp=2, ep=8, dp=16, dp_shard=8, zero_stage=1, global_batch=16)

    assert _members(layout, "edp_scatter")[:2] == [[0, 8], [1, 9]]
    assert _members(layout, "edp_replica_reduce")[0] == [0, 16]
    assert _members(layout, "dp_scatter")[0] == [0, 2, 4, 6, 8, 10, 12, 14]


def test_each_rank_sums_its_shard_over_the_replicas_and_gathers_in_its_shard_group() -> None:
    found = {one.name: one for one in step_families(LLAMA, SMALL)}
    told = {n: (f.group_size, f.groups, f.payload_bytes, f.times_per_step) for n, f in
            found.items()}  # fmt: skip

    assert told == {
        "dp_scatter": (4, 2, 4 * PARAMETERS, STEPS),
        "dp_replica_reduce": (2, 4, 4 * PARAMETERS / 4, STEPS),
        "dp_forward_gather": (4, 2, 2 * PARAMETERS, STEPS),
        "dp_backward_gather": (4, 2, 2 * PARAMETERS, STEPS),
    }
    once = {one.name: one for one in step_families(LLAMA, replace(SMALL, zero_stage=1))}
    assert once["dp_replica_reduce"].times_per_step == once["dp_gather"].times_per_step == 1


def test_in_supernodes_of_one_shard_group_only_the_replicas_cross() -> None:
    fabric = generic_cluster(4, 8)
    found = place(SMALL, step_families(LLAMA, SMALL), fabric)

    # an all-reduce of two sends its vector each way: 4 ranks, 2 times, 2 P / 4 each
    assert found.objective_bytes == 4 * STEPS * 2 * (4 * PARAMETERS / 4)
    assert found.gap == 0


@pytest.mark.parametrize(
    ("layout", "capacities"),
    [
        (SMALL, (4, 4)),
        (SMALL, (3, 3, 2)),
        (replace(SMALL, dp_shard=2), (4, 4)),
        (Layout(tp=2, dp=4, dp_shard=2, zero_stage=3, global_batch=4), (4, 4)),
        (Layout(cp=2, dp=4, dp_shard=2, zero_stage=1, global_batch=4), (3, 3, 2)),
    ],
)
def test_a_seating_cuts_no_more_than_the_best_of_all(
    layout: Layout, capacities: tuple[int, ...]
) -> None:
    families = step_families(LLAMA, layout)
    question = ask(layout, families, capacities)
    fabric = generic_cluster(max(capacities), sum(capacities))

    found = place(layout, families, fabric)
    home = fabric.domain_index("supernode")[np.array(found.rank_to_gpu)]
    assert tuple(fabric.capacities("supernode")) == capacities
    assert found.objective_bytes == pytest.approx(brute_force_cut(question))
    assert slow_cut_bytes(question, home.tolist()) == pytest.approx(found.objective_bytes)


def test_what_is_sharded_is_divided_by_the_shard_group_alone() -> None:
    layout = Layout(dp=64, dp_shard=8, zero_stage=3, global_batch=64)
    held = stage_memory(LLAMA, columns_of(layout))["first"]

    assert held["weights"] == pytest.approx(2 * PARAMETERS / 8, rel=1e-3)
    assert held["gradients"] == pytest.approx(4 * PARAMETERS / 8, rel=1e-3)
    assert held["optimizer"] == pytest.approx(12 * PARAMETERS / 8, rel=1e-3)


def test_what_does_not_fit_may_with_a_wider_shard_group() -> None:
    fabric = generic_cluster(8, 64)
    layout = Layout(dp=64, dp_shard=4, zero_stage=3, global_batch=64, seq=8192)

    found = remedies(LLAMA, layout, accelerator=fabric.accelerator, links=links_of(fabric),
                     domains=[8.0])  # fmt: skip
    changes = {one.change: one.layout.dp_shard for one in found}

    assert changes["dp_shard 4 -> 16"] == 16
    assert changes["dp_shard 4 -> 64"] == 0  # all of dp


def test_experts_are_divided_by_their_own_shard_group() -> None:
    whole = Layout(tp=2, ep=8, dp=16, zero_stage=1, global_batch=16)
    half = replace(whole, dp_shard=8)
    experts = 32 * 8 * 3 * 4096 * 14336  # of Mixtral 8x7B: layers x experts x three matrices
    rest = MIXTRAL.parameters() - experts

    for layout, dense, expert in ((whole, 16, 4), (half, 8, 2)):
        held = stage_memory(MIXTRAL, columns_of(layout))["first"]["optimizer"]
        assert held == pytest.approx(12 * (rest / 2 / dense + experts / 8 / expert), rel=1e-3)


def test_a_shard_group_of_all_ranks_is_the_layout_without_one() -> None:
    named, plain = Layout(dp=8, dp_shard=8, global_batch=8), Layout(dp=8, global_batch=8)

    assert named == plain
    assert json.dumps(layout_values(named)) == json.dumps(layout_values(plain))
    assert "dp_shard" not in layout_values(named)
    assert named.dp_replicate == 1
    assert step_families(LLAMA, named) == step_families(LLAMA, plain)
    assert named.axes == plain.axes


def test_a_shard_group_that_cannot_be_is_refused_with_every_fault() -> None:
    with pytest.raises(LayoutError) as refused:
        Layout(dp=16, dp_shard=3, zero_stage=0, ep=8, global_batch=16)

    assert refused.value.faults == (
        "dp_shard=3 does not divide dp = 16",
        "dp_shard=3 needs zero 1, 2 or 3: zero 0 shards nothing",
        (
            "etp x ep = 1 x 8 = 8 does not divide tp x cp x dp_shard = 1 x 1 x 3 = 3: "
            "an expert group cannot span two replicas"
        ),
    )


@pytest.mark.parametrize("order", ["tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"])
def test_ranks_in_order_sit_as_the_closed_form_says(order: str) -> None:
    layout = Layout(tp=2, cp=2, dp=8, dp_shard=4, pp=2, global_batch=8, order=order)
    homes = np.arange(layout.gpus) // 8
    counted = spreads_of(layout, [homes])
    said = contiguous_spread(columns_of(layout), [8.0], order)

    for digit in SHARDING[:1] + SHARDING[2:]:  # without experts edp spans more than its stride
        assert getattr(counted, digit) == getattr(said, digit), digit


def test_a_step_pays_the_scatter_in_the_shard_group_and_the_sum_over_the_replicas() -> None:
    fabric = generic_cluster(8, 64)
    layout = Layout(dp=64, dp_shard=8, zero_stage=1, global_batch=64, overlap_gradients=False,
                    overlap_parameters=False)  # fmt: skip
    step = step_time(
        LLAMA, layout, accelerator=fabric.accelerator, links=links_of(fabric),
        spreads=placed_spreads(layout, range(64), fabric),
    )  # fmt: skip
    port, nic = 450e9, 50e9  # of the generic family, a GPU and direction
    scatter_s = 7 / 8 * 4 * PARAMETERS / port
    gather_s = 7 / 8 * 2 * PARAMETERS / port
    sum_s = 2 * 7 / 8 * (4 * PARAMETERS / 8) / nic  # a ring of eight, each over its own NIC

    least = scatter_s + gather_s + sum_s
    assert least < step.communication_s["dp"] < 1.6 * least  # what collectives reach of the links


def test_shard_groups_and_replicas_are_routed_apart() -> None:
    fabric, seats = generic_cluster(8, 32), range(32)
    layout = Layout(dp=32, dp_shard=8, zero_stage=3, global_batch=32)
    families = step_families(LLAMA, layout)
    step = seated_step_time(
        LLAMA, layout, Seating(fabric=fabric, families=families, rank_to_gpu=seats,
                               spreads=placed_spreads(layout, seats, fabric)),
    )  # fmt: skip
    backward = next(phase for phase in step.phases if phase.phase == "backward")
    on = {link.kind: set(link.by_family_bytes) for link in backward.links}

    assert on["network"] == {"dp_replica_reduce"}
    assert on["scale-up"] == {"dp_scatter", "dp_backward_gather"}


@pytest.mark.parametrize("sizes", [(8, 8, 8, 8), (12, 12, 8)])
def test_many_layouts_at_once_sit_as_each_of_them_alone(sizes: tuple[int, ...]) -> None:
    homes = np.repeat(np.arange(len(sizes)), sizes)
    layouts = [
        Layout(tp=tp, dp=dp, dp_shard=shard, pp=pp, global_batch=dp)
        for tp, dp, pp, shard in ((1, 32, 1, 4), (1, 16, 2, 4), (2, 8, 2, 4), (2, 4, 4, 4))
    ]
    together = RankOrderSeats([homes]).spreads(columns_of(layouts))

    for row, layout in enumerate(layouts[:3]):
        alone = spreads_of(layout, [homes])
        for part in ("dp_shard", "dp_replicate"):
            fast, slow = getattr(together, part), getattr(alone, part)
            assert fast.members[0][0, row] == slow.members[0], (part, layout)
            assert fast.domains[0][0, row] == slow.domains[0], (part, layout)
    assert together.dp_shard is not None
    assert together.dp_replicate is not None
    assert together.dp_shard.group_size[3] == 4  # all of dp
    assert together.dp_replicate.group_size[3] == 1
