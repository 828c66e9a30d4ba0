"""Flip points hold on both sides, and the pool stands for the space it was taken from."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import pytest

from cli.planner_inputs import Asked, Inputs, read_inputs
from cli.search_inputs import fixed_fields
from planner.search.experts import best_with_experts
from planner.search.flips import PROPERTIES, flips
from planner.search.gains import BIGGER_SUPERNODE, ONE_MORE_NIC, gains
from planner.search.pool import AS_IT_IS, Change, Pool, pool_of
from planner.search.search import Swept, machine_of, sweep

GPUS = 64


@cache
def searched(supernode: int) -> tuple[Inputs, Swept, Pool]:
    inputs = read_inputs(Asked(supernode=supernode, gpus=GPUS, model="mixtral-8x7b"))
    machine = machine_of(inputs.fabric, GPUS, inputs.efficiency)
    swept = sweep(inputs.model, machine, GPUS, {**fixed_fields(inputs), "cp": 1})
    return inputs, swept, pool_of(f"sn{supernode}", inputs.model, inputs.fabric, swept)


def test_the_pool_holds_the_best_of_the_space() -> None:
    _, swept, pool = searched(8)

    assert pool.best()[0] == pytest.approx(swept.evaluated.total_s.min(), rel=1e-12)


@pytest.mark.parametrize(
    "change", [Change(nic_rate=0.1), Change(nic_rate=4.0), Change(crowding=8.0)]
)
def test_on_a_changed_network_the_pool_is_within_one_percent_of_searching_anew(
    change: Change,
) -> None:
    inputs, swept, pool = searched(8)
    machine = replace(swept.machine, links=pool.changed_links(change))

    anew = sweep(inputs.model, machine, GPUS, swept.fixed).evaluated.total_s.min()

    assert anew * (1 - 1e-12) <= pool.best(change)[0] <= anew * 1.01


def test_nothing_changed_is_the_network_as_it_is() -> None:
    _, swept, pool = searched(8)

    changed = pool.changed_links(Change())

    for was, now in zip(swept.machine.links.tiers, changed.tiers, strict=True):
        assert now.bytes_per_s == pytest.approx(was.bytes_per_s)
        assert now.shared_bytes_per_s == pytest.approx(was.shared_bytes_per_s)
        assert now.latency_s == pytest.approx(was.latency_s)


def test_the_in_flight_limit_binds_below_line_rate_by_littles_law() -> None:
    inputs, _, pool = searched(8)
    nic = inputs.fabric.nic

    changed = pool.changed_links(Change(in_flight=1 / nic.in_flight))

    assert changed.outer[0].bytes_per_s == pytest.approx(nic.transaction_bytes / nic.turnaround_s)


def test_what_a_flip_says_holds_on_both_sides_of_it() -> None:
    pools = [searched(8)[2], searched(64)[2]]
    found = flips(pools, 0.1)

    layouts = [one for one in found if one.kind == "layout" and one.name != "experts"]
    assert layouts
    winner = min(pools, key=lambda pool: pool.best()[0])
    for one in layouts:
        change = PROPERTIES[one.name]
        toward = 1.003 if one.factor < 1 else 1 / 1.003
        assert _degrees(winner, change(one.factor * toward)) == one.before
        assert _degrees(winner, change(one.factor)) == one.after


def _degrees(pool: Pool, change: Change) -> str:
    row = pool.best(change)[1]
    if row < 0:
        return "nothing fits"
    layout = pool.layout(row)
    pairs = [(n, getattr(layout, n)) for n in ("tp", "cp", "ep", "etp", "dp", "pp")]
    return " ".join(f"{n}{v}" for n, v in pairs if v > 1)


def test_half_of_no_oversubscription_buys_nothing_and_a_wider_nic_helps_small_supernodes() -> None:
    small = {one.name: one.gain_share for one in gains(searched(8)[2])}
    large = {one.name: one.gain_share for one in gains(searched(64)[2])}

    assert small["half the oversubscription"] == 0
    assert small[ONE_MORE_NIC] > 0
    assert large[ONE_MORE_NIC] == 0


def test_a_supernode_that_holds_the_whole_job_is_worth_what_it_is_faster() -> None:
    small, whole = searched(8), searched(64)

    found = {one.name: one for one in gains(small[2], bigger=whole[0].fabric)}

    least = whole[1].evaluated.total_s.min()
    assert found[BIGGER_SUPERNODE].step_s == pytest.approx(least, rel=0.01)
    assert found[BIGGER_SUPERNODE].gain_share == pytest.approx(
        small[2].best()[0] / found[BIGGER_SUPERNODE].step_s - 1.0
    )


def test_a_second_nic_doubles_the_rate_and_a_fifth_adds_a_quarter() -> None:
    pool = searched(8)[2]

    second, fifth = (
        next(g.step_s for g in gains(pool, nics_per_gpu=n) if g.name == ONE_MORE_NIC)
        for n in (1.0, 4.0)
    )

    assert second == pool.best(Change(nic_rate=2.0))[0]
    assert fifth == pool.best(Change(nic_rate=1.25))[0]


@pytest.mark.parametrize("experts", [4, 16])
def test_more_or_fewer_experts_are_within_one_percent_of_searching_anew(experts: int) -> None:
    inputs, swept, pool = searched(8)
    model = replace(inputs.model, experts=experts)

    (best,) = best_with_experts([pool], experts)

    anew = sweep(model, swept.machine, GPUS, swept.fixed).evaluated.total_s.min()
    assert best.layout is not None
    assert experts % best.layout.ep == 0
    assert anew * (1 - 1e-12) <= best.step_s <= anew * 1.01


def test_experts_flip_by_doublings_where_they_no_longer_fit_or_spread_otherwise() -> None:
    pools = [searched(8)[2], searched(64)[2]]

    found = [one for one in flips(pools, 0.1) if one.name == "experts"]

    assert found
    for one in found:
        assert one.factor in {0.25, 0.5, 2.0, 4.0, 8.0}
        assert one.before != one.after


def test_pruned_rows_change_no_flip(monkeypatch: pytest.MonkeyPatch) -> None:
    every = Pool.steps_s
    for name in ("nic_latency", "in_flight", "oversubscription"):
        monkeypatch.delitem(PROPERTIES, name)
    pools = [searched(8)[2], searched(64)[2]]

    found = flips(pools, 0.1)

    monkeypatch.setattr(Pool, "steps_s", lambda self, change=AS_IT_IS, _=None: every(self, change))
    assert flips(pools, 0.1) == found


def test_the_candidates_for_long_sequences_are_the_best_of_all_that_are_timed() -> None:
    inputs, swept, _ = searched(8)
    timed = []

    def spied(self: Pool, change: Change = AS_IT_IS, among: Any = None) -> Any:
        timed.append((change.seq, among is None))
        return steps_s(self, change, among)

    steps_s = Pool.steps_s
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Pool, "steps_s", spied)
        pool_of("sn8", inputs.model, inputs.fabric, swept)

    assert {seq for seq, _ in timed} > {4.0, 16.0}
    assert all(every for seq, every in timed if seq != 1.0)


def test_every_layout_is_timed_at_every_sequence_length(monkeypatch: pytest.MonkeyPatch) -> None:
    every, left_out = Pool.steps_s, []

    def spied(self: Pool, change: Change = AS_IT_IS, among: Any = None) -> Any:
        if change.seq != 1.0 and among is not None:
            left_out.append(change.seq)
        return every(self, change, among)

    monkeypatch.setattr(Pool, "steps_s", spied)
    for name in ("nic_rate", "nic_latency", "in_flight", "oversubscription"):
        monkeypatch.delitem(PROPERTIES, name)

    flips([searched(8)[2], searched(64)[2]], 0.1)

    assert left_out == []  # a step is not monotone in the length: no length bounds another


def test_memory_never_tells_clusters_of_one_accelerator_apart() -> None:
    from planner.search.pool import shared_pools

    pools = shared_pools([searched(8)[2], searched(24)[2]])

    for factor in (0.1, 2.0, 8.0, 20.0, 32.0):
        fits = [pool.best(Change(seq=factor))[1] >= 0 for pool in pools]
        assert fits[0] == fits[1], factor
