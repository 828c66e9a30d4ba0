"""Flip points hold on both sides, and the pool stands for the space it was taken from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from cli.planner_inputs import Asked, Inputs, read_inputs
from planner.search import best_steps, candidates
from planner.search import flips as flip_points
from planner.search.anew import least_steps_s, work_of
from planner.search.candidates import shared_pools, thinned, whole_pool
from planner.search.evaluate import times_on
from planner.search.experts import best_with_experts
from planner.search.flips import PROPERTIES, flips, spelled_degrees
from planner.search.gains import BIGGER_SUPERNODE, ONE_MORE_NIC, gains
from planner.search.pool import AS_IT_IS, Change, Pool, steps_at_once_s
from planner.search.search import Swept, machine_of, sweep, sweep_on
from planner.steptime.memory import step_memory

GPUS = 64


@cache
def searched(supernode: int) -> tuple[Inputs, Swept, Pool]:
    inputs = read_inputs(Asked(supernode=supernode, gpus=GPUS, model="mixtral-8x7b"))
    machine = machine_of(inputs.fabric, GPUS, inputs.efficiency)
    swept = sweep(inputs.model, machine, GPUS, {**inputs.fixed, "cp": 1})
    (pool,) = thinned([whole_pool(f"sn{supernode}", inputs.model, inputs.fabric, swept)])
    return inputs, swept, pool


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
    assert "seq" in {one.name for one in layouts}
    winner = min(pools, key=lambda pool: pool.best()[0])
    for one in layouts:
        change = PROPERTIES[one.name]
        assert _searched_anew(winner, change(one.held_factor)) == one.before
        assert _searched_anew(winner, change(one.factor)) == one.after
        assert abs(np.log(one.held_factor / one.factor)) <= 1e-3


def _searched_anew(pool: Pool, change: Change) -> str:
    """Return the degrees of the best of all layouts of the space, each timed, none left out."""
    space, fixed = pool.swept.space, pool.swept.fixed
    columns = space.columns(fixed)
    columns = replace(columns, seq=columns.seq * change.seq)
    machine = replace(pool.machine, links=pool.changed_links(change))
    total_s = times_on(pool.model, columns, (machine,))[0, 0]
    fits = step_memory(pool.model, columns, machine.accelerator.memory_bytes).fits
    best = int(np.where(fits, total_s, np.inf).argmin())
    return spelled_degrees(space.layout(best, fixed)) if fits.any() else "nothing fits"


@pytest.mark.parametrize("seq", [1 / 32, 0.3, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("supernode", [8, 64])
def test_no_step_is_shorter_than_its_compute_alone(supernode: int, seq: float) -> None:
    _, swept, pool = searched(supernode)
    columns = swept.space.columns(swept.fixed)
    columns = replace(columns, seq=columns.seq * seq)

    least_s = least_steps_s(pool, work_of(swept), seq)

    total_s = times_on(pool.model, columns, (swept.machine,))[0, 0]
    assert (least_s <= total_s * (1 + 1e-9)).all()
    assert (least_s > 0.1 * total_s).any()


def test_no_flip_asks_for_less_than_one_transaction_in_flight() -> None:
    asked: list[float] = []

    def ask(factor: float) -> str:
        asked.append(factor)
        return "rate" if factor >= 0.1 else "less than one of eight in flight"

    found = flip_points.nearest("in_flight", "layout", ask, least_ratio=1 / 8)

    assert found == []
    assert min(asked) == pytest.approx(1 / 8)
    pools = [searched(8)[2], searched(64)[2]]
    for one in flips(pools, 0.1):
        if one.name == "in_flight":
            assert one.factor * pools[0].nic.in_flight >= 1.0 - 1e-9


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


Steps = Callable[..., NDArray[np.float64]]
every_step: Steps = steps_at_once_s


def test_pruned_rows_change_no_flip(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("nic_latency", "in_flight", "oversubscription"):
        monkeypatch.delitem(PROPERTIES, name)
    pools = [searched(8)[2], searched(64)[2]]

    found = flips(pools, 0.1)

    monkeypatch.setattr(best_steps, "steps_at_once_s", lambda asked, _=None: every_step(asked))
    assert flips(pools, 0.1) == found


def test_the_candidates_for_long_sequences_are_the_best_of_all_that_are_timed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    inputs, swept, _ = searched(8)
    timed: list[tuple[float, bool]] = []

    def spied(asked: Sequence[tuple[Pool, Change]], among: Any = None) -> Any:
        timed.extend((change.seq, among is None) for _, change in asked)
        return every_step(asked, among)

    monkeypatch.setattr(candidates, "steps_at_once_s", spied)
    thinned([whole_pool("sn8", inputs.model, inputs.fabric, swept)])

    assert {seq for seq, _ in timed} > {4.0, 16.0}
    assert all(every for seq, every in timed if seq != 1.0)


def test_every_layout_is_timed_at_every_sequence_length(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    def spied(asked: Sequence[tuple[Pool, Change]], among: Any = None) -> Any:
        seen.extend(among is None for _, change in asked if change.seq != 1.0)
        return every_step(asked, among)

    monkeypatch.setattr(best_steps, "steps_at_once_s", spied)
    for name in ("nic_rate", "nic_latency", "in_flight", "oversubscription"):
        monkeypatch.delitem(PROPERTIES, name)

    flips([searched(8)[2], searched(64)[2]], 0.1)

    assert seen
    assert all(seen)  # a step is not monotone in the length: no length bounds another


def test_machines_and_changes_timed_at_once_are_those_timed_alone() -> None:
    some = [searched(size)[0] for size in (8, 64, 24)]
    model, fixed = some[0].model, searched(8)[1].fixed
    machines = [machine_of(one.fabric, GPUS, one.efficiency) for one in some]
    alike = sweep_on(model, machines, GPUS, fixed)
    pools = shared_pools(thinned([
        whole_pool(inputs.fabric.name, model, inputs.fabric, one)
        for inputs, one in zip(some, alike, strict=True)
    ]))  # fmt: skip
    asked = [(pool, change) for pool in pools for change in (AS_IT_IS, Change(nic_rate=0.1))]

    together = every_step(asked)

    for machine, one in zip(machines, alike, strict=True):
        alone = sweep(model, machine, GPUS, fixed).evaluated
        assert np.array_equal(one.evaluated.total_s, alone.total_s)
        assert np.array_equal(one.evaluated.serial_s, alone.serial_s)
    for (pool, change), steps_s in zip(asked, together, strict=True):
        assert np.array_equal(steps_s, pool.steps_s(change))


def test_memory_never_tells_clusters_of_one_accelerator_apart() -> None:
    pools = shared_pools([searched(8)[2], searched(24)[2]])

    for factor in (0.1, 2.0, 8.0, 20.0, 32.0):
        fits = [pool.best(Change(seq=factor))[1] >= 0 for pool in pools]
        assert fits[0] == fits[1], factor
