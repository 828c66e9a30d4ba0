"""Flip points hold on both sides, and the pool stands for the space it was taken from."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from cli.planner_inputs import Asked, Inputs, read_inputs
from cli.search_inputs import fixed_fields
from planner.search.flips import PROPERTIES, flips, gains
from planner.search.pool import Change, Pool, pool_of
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

    layouts = [one for one in found if one.kind == "layout"]
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
    assert small["twice the NIC rate (one more NIC a GPU)"] > 0
    assert large["twice the NIC rate (one more NIC a GPU)"] == 0


def test_memory_never_tells_clusters_of_one_accelerator_apart() -> None:
    from planner.search.pool import shared_pools

    pools = shared_pools([searched(8)[2], searched(24)[2]])

    for factor in (0.1, 2.0, 8.0, 20.0, 32.0):
        fits = [pool.best(Change(seq=factor))[1] >= 0 for pool in pools]
        assert fits[0] == fits[1], factor
