"""Flip points hold on both sides, and the pool stands for the space it was taken from."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from cli.planner_inputs import Asked, Inputs, read_inputs, read_question
from planner.search.axes import Axis, axes_of
from planner.search.best_steps import Steps, fastest_of, is_as_fast
from planner.search.changed import AS_IT_IS, Change
from planner.search.evaluate import times_on
from planner.search.experts import Experts
from planner.search.fastest import SEATED, fastest_on
from planner.search.flips import Varied, flips
from planner.search.gains import BIGGER_SUPERNODE, ONE_MORE_NIC, gains
from planner.search.incumbent import spelled_degrees
from planner.search.least_steps import least_steps_s, with_gradients_s
from planner.search.pool import Pool, steps_at_once_s
from planner.search.search import Swept, machine_of, space_on, sweep, sweep_on, unlike
from planner.search.whole import Whole
from planner.steptime.memory import step_memory

GPUS = 64


@cache
def searched(supernode: int) -> tuple[Inputs, Swept, Pool]:
    inputs = read_inputs(Asked(supernode=supernode, gpus=GPUS, model="mixtral-8x7b"))
    machine = machine_of(inputs.fabric, GPUS, inputs.efficiency)
    swept = sweep(inputs.model, machine, GPUS, {**inputs.fixed, "cp": 1})
    whole = Whole.of(inputs.model, swept.space, swept.fixed, machine)
    rows = np.sort(swept.layout_rows(32))
    return inputs, swept, Pool.of(f"sn{supernode}", inputs.fabric, machine, whole, rows)


def test_the_pool_holds_the_best_of_the_space() -> None:
    _, swept, pool = searched(8)

    assert pool.best().step_s == pytest.approx(swept.evaluated.total_s.min(), rel=1e-12)


@pytest.mark.parametrize("name", ["nic_rate", "nic_latency", "in_flight", "oversubscription"])
@pytest.mark.parametrize("supernode", [8, 64])
def test_on_every_network_the_best_is_that_of_searching_anew(supernode: int, name: str) -> None:
    inputs, swept, pool = searched(supernode)
    axis = next(one for one in axes_of([pool]) if one.name == name)
    steps = Steps([pool], pool.name, [axis.change(x) for x in _slow_end(axis)], fastest_of([
        axis.change(axis.grid(direction)[-1]) for direction in (-1, 1)
    ]))  # fmt: skip
    changes = [axis.change(x) for direction in (-1, 1) for x in axis.grid(direction)[::3]]

    steps.find(changes)

    for change in changes:
        machine = replace(swept.machine, links=pool.changed_links(change))
        anew = sweep(inputs.model, machine, GPUS, swept.fixed).evaluated.total_s.min()
        assert steps.best(pool, change).step_s == pytest.approx(anew, rel=1e-12), change


def _slow_end(axis: Axis) -> list[float]:
    ends = [axis.grid(direction)[-1] for direction in (-1, 1)]
    return [x for x in ends if is_as_fast(AS_IT_IS, axis.change(x))]


@pytest.mark.parametrize("tokens", [128, 1280, 6144, 20480])
def test_at_every_length_the_best_is_that_of_searching_anew(tokens: int) -> None:
    inputs, swept, pool = searched(8)
    fixed = {**swept.fixed, "seq": tokens}

    best = Steps([pool], pool.name, [], AS_IT_IS).best(
        pool, Change(seq=tokens / swept.fixed["seq"])
    )

    anew = sweep(inputs.model, swept.machine, GPUS, fixed).evaluated.total_s.min()
    assert best.step_s == pytest.approx(anew, rel=1e-12)


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
    winner = min(pools, key=lambda pool: pool.best().step_s)

    found = flips(Varied(pools, winner.name)).found

    layouts = [one for one in found if one.kind == "layout" and one.name != "experts"]
    assert "seq" in {one.name for one in layouts}
    for one in layouts:
        axis = next(axis for axis in axes_of(pools) if axis.name == one.name)
        assert _searched_anew(winner, axis.change(one.held_factor)) == one.before
        assert _searched_anew(winner, axis.change(one.factor)) == one.after
        assert axis.between(one.held_factor, one.factor) is None


def test_lengths_and_transactions_are_asked_about_in_whole_numbers() -> None:
    pools = [searched(8)[2], searched(64)[2]]
    for axis in axes_of(pools):
        if axis.name in {"seq", "in_flight"}:
            now = pools[0].whole.fixed["seq"] if axis.name == "seq" else pools[0].nic.in_flight
            for factor in (*axis.grid(-1), *axis.grid(1)):
                assert factor * now == round(factor * now) >= 1


def _searched_anew(pool: Pool, change: Change) -> str:
    """Return the degrees of the best of all layouts of the space, each timed, none left out."""
    space, fixed = pool.whole.space, pool.whole.fixed
    columns = space.columns(fixed)
    columns = replace(columns, seq=columns.seq * change.seq)
    total_s = times_on(pool.model, columns, (pool.changed(change),))[0, 0]
    runs = step_memory(pool.model, columns, pool.machine.accelerator.memory_bytes).fits
    runs &= (fixed["seq"] * change.seq) % (space.table["tp"] * space.table["cp"]) == 0
    best = int(np.where(runs, total_s, np.inf).argmin())
    return spelled_degrees(space.layout(best, fixed)) if runs.any() else "nothing fits"


@pytest.mark.parametrize("seq", [1 / 32, 0.25, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("supernode", [8, 64])
def test_no_step_is_shorter_than_its_compute_and_what_its_layers_show(
    supernode: int, seq: float
) -> None:
    _, swept, pool = searched(supernode)
    columns = swept.space.columns(swept.fixed)
    columns = replace(columns, seq=columns.seq * seq)
    every = np.arange(swept.space.size)

    compute_s = pool.whole.compute_s(seq, every)
    (least_s,) = least_steps_s(pool.whole, [swept.machine], seq, every)

    total_s = times_on(pool.model, columns, (swept.machine,))[0, 0]
    assert (compute_s <= least_s * (1 + 1e-9)).all()
    assert (least_s <= total_s * (1 + 1e-9)).all()
    assert (compute_s > 0.1 * total_s).any()
    assert np.median(least_s / total_s) > 0.5


@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b"])
def test_no_step_on_uneven_stages_is_shorter_than_what_its_layers_show(model: str) -> None:
    inputs = read_question(Asked(supernode=8, gpus=48, model=model))
    machine = machine_of(inputs.fabric, 48, inputs.efficiency)
    space = space_on(inputs.model, (machine,), 48, inputs.fixed)
    whole = Whole.of(inputs.model, space, inputs.fixed, machine)
    slow = replace(machine.links.tiers[-1], bytes_per_s=1e9, shared_bytes_per_s=1e9)
    links = replace(machine.links, tiers=(*machine.links.tiers[:-1], slow))
    machine = replace(machine, links=links)  # so slow that gradients show
    uneven = np.flatnonzero(inputs.model.layers % (space.table["pp"] * space.table["vpp"]) != 0)
    rows = np.sort(np.random.default_rng(0).choice(uneven, min(uneven.size, 8_000), replace=False))

    for seq in (0.25, 1.0, 4.0):
        total_s = times_on(inputs.model, whole.longer(rows, seq), (machine,))[0, 0]
        least_s = least_steps_s(whole, [machine], seq, rows)
        closer_s = with_gradients_s(whole, [machine], seq, rows, least_s)
        assert (closer_s > 1.1 * least_s).any()
        assert (least_s <= closer_s).all()
        assert (closer_s[0] <= total_s * (1 + 1e-9)).all()


@pytest.mark.parametrize("supernode", [8, 24])
def test_what_is_found_without_timing_all_is_what_timing_all_finds(supernode: int) -> None:
    inputs, swept, _ = searched(supernode)

    _, (found,) = fastest_on(inputs.model, (swept.machine,), GPUS, swept.fixed)

    assert len(found.evaluated.rows) < len(swept.evaluated.rows)
    wanted = unlike(swept.evaluated, swept.best)[:SEATED]
    for (entry, twins), (anew, others) in zip(
        unlike(found.evaluated, found.best)[:SEATED], wanted, strict=True
    ):
        assert found.layout(entry) == swept.layout(anew)
        assert found.evaluated.total_s[entry] == swept.evaluated.total_s[anew]
        assert twins == others


def test_no_flip_asks_for_less_than_one_transaction_in_flight() -> None:
    pools = [searched(8)[2], searched(64)[2]]
    in_flight = next(axis for axis in axes_of(pools) if axis.name == "in_flight")

    assert min(in_flight.grid(-1)) * pools[0].nic.in_flight >= 1.0 - 1e-9


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
    assert found[BIGGER_SUPERNODE].step_s == pytest.approx(least, rel=1e-12)
    assert found[BIGGER_SUPERNODE].gain_share == pytest.approx(
        small[2].best().step_s / found[BIGGER_SUPERNODE].step_s - 1.0
    )


def test_a_second_nic_doubles_the_rate_and_a_fifth_adds_a_quarter() -> None:
    inputs, swept, pool = searched(8)

    for nics in (1.0, 4.0):
        found = gains(pool, nics_per_gpu=nics)
        links = pool.changed_links(Change(nic_rate=(nics + 1.0) / nics))
        machine = replace(swept.machine, links=links)
        anew = sweep(inputs.model, machine, GPUS, swept.fixed).evaluated.total_s.min()
        step_s = next(one.step_s for one in found if one.name == ONE_MORE_NIC)
        assert step_s == pytest.approx(anew, rel=1e-12)


@pytest.mark.parametrize("experts", [4, 16])
def test_with_more_or_fewer_experts_the_best_is_that_of_searching_anew(experts: int) -> None:
    inputs, swept, pool = searched(8)
    model = replace(inputs.model, experts=experts)

    (best,) = Experts([pool]).best(experts)

    anew = sweep(model, swept.machine, GPUS, swept.fixed).evaluated.total_s.min()
    assert best.layout is not None
    assert experts % best.layout.ep == 0
    assert best.step_s == pytest.approx(anew, rel=1e-12)


def test_experts_flip_by_doublings_where_they_no_longer_fit_or_spread_otherwise() -> None:
    pools = [searched(8)[2], searched(64)[2]]

    found = [one for one in flips(Varied(pools, "sn64")).found if one.name == "experts"]

    assert found
    for one in found:
        assert one.factor in {0.25, 0.5, 2.0, 4.0, 8.0}
        assert one.before != one.after


def test_machines_and_changes_timed_at_once_are_those_timed_alone() -> None:
    some = [searched(size)[0] for size in (8, 64, 24)]
    model, fixed = some[0].model, searched(8)[1].fixed
    machines = [machine_of(one.fabric, GPUS, one.efficiency) for one in some]
    alike = sweep_on(model, machines, GPUS, fixed)
    whole = Whole.of(model, alike[0].space, fixed, machines[0])
    rows = np.unique(np.concatenate([one.layout_rows(32) for one in alike]))
    pools = [
        Pool.of(inputs.fabric.name, inputs.fabric, machine, whole, rows)
        for inputs, machine in zip(some, machines, strict=True)
    ]
    asked = [(pool, change) for pool in pools for change in (AS_IT_IS, Change(nic_rate=0.1))]

    together = steps_at_once_s(asked)

    for machine, one in zip(machines, alike, strict=True):
        alone = sweep(model, machine, GPUS, fixed).evaluated
        assert np.array_equal(one.evaluated.total_s, alone.total_s)
        assert np.array_equal(one.evaluated.serial_s, alone.serial_s)
    for (pool, change), steps_s in zip(asked, together, strict=True):
        assert np.array_equal(steps_s, steps_at_once_s([(pool, change)])[0])


def test_memory_never_tells_clusters_of_one_accelerator_apart() -> None:
    pools = [searched(8)[2], searched(24)[2]]
    steps = Steps(pools, pools[0].name, [], AS_IT_IS)

    for factor in (0.125, 2.0, 8.0, 20.0, 32.0):
        fits = [steps.best(pool, Change(seq=factor)).step_s < np.inf for pool in pools]
        assert fits[0] == fits[1], factor


def test_degrees_of_today_stay_with_more_experts_until_others_are_a_thousandth_faster() -> None:
    # with 512 experts TP 2, DP 16 would be 0.03 % faster than what is best with 128
    inputs = read_question(
        Asked(supernode=32, gpus=32, model="qwen3-30b-a3b", layout={"global_batch": 128})
    )
    machine = machine_of(inputs.fabric, 32, inputs.efficiency)
    whole, (found,) = fastest_on(inputs.model, (machine,), 32, inputs.fixed)
    pool = Pool.of("it", inputs.fabric, machine, whole, found.layout_rows(32))
    varied = Varied([pool], "it")

    changed = [one for one in flips(varied).found if one.name == "experts" and one.factor > 1]

    (best,) = varied.experts.best(512)
    assert best.layout is not None
    assert spelled_degrees(best.layout) == "tp2 ep32 dp16"
    assert [one.after for one in changed] == ["nothing fits"]
    assert changed[0].before == "ep32 dp32"
    assert changed[0].held_factor == 4.0
