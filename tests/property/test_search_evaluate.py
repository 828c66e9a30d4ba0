"""A million layouts at once and one at a time give the same numbers."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from cli.planner_inputs import Asked, Inputs, read_inputs
from planner.search.evaluate import evaluate
from planner.search.placed import spreads_of, tier_indices
from planner.search.rules import Rule, parse_rule
from planner.search.search import machine_of
from planner.search.space import Space, layout_space, wide_choices
from planner.steptime.columns import columns_of
from planner.steptime.spread import contiguous_spread
from planner.steptime.step import layout_memory, step_time

ORDERS = ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")
CASES = {
    "gpt3-175b": Asked(supernode=64, gpus=1024, model="gpt3-175b"),
    "mixtral-8x7b": Asked(supernode=8, gpus=64, model="mixtral-8x7b"),
}


def differs_most(inputs: Inputs, count: int, seed: int, rules: tuple[Rule, ...] = ()) -> float:
    """Largest relative difference between both ways, over *count* random layouts that fit."""
    fixed = inputs.fixed
    choices = wide_choices(inputs.model, rules)
    space = layout_space(inputs.model, inputs.gpus, fixed, choices, rules=rules)
    machine = machine_of(inputs.fabric, inputs.gpus, inputs.efficiency)
    many = min(3 * count, space.size)
    rows = np.random.default_rng(seed).choice(space.size, size=many, replace=False)
    some = Space(table={n: c[rows] for n, c in space.table.items()},
                 considered=len(rows), rejected={})  # fmt: skip
    found = evaluate(inputs.model, some, fixed, machine)
    assert len(found.rows) >= min(count, 100)

    worst = 0.0
    for entry in range(min(count, len(found.rows))):
        layout = some.layout(int(found.rows[entry]), fixed)
        columns = columns_of(layout)
        supernode = float(max(inputs.fabric.capacities("supernode")))
        single = min(
            float(
                step_time(
                    inputs.model,
                    layout,
                    accelerator=inputs.fabric.accelerator,
                    links=machine.links,
                    efficiency=inputs.efficiency,
                    spreads=contiguous_spread(columns, [supernode], order),
                ).total_s
            )
            for order in ORDERS
        )
        held = layout_memory(inputs.model, layout, inputs.fabric.accelerator).worst_stage_bytes
        worst = max(
            worst,
            abs(found.total_s[entry] / single - 1.0),
            abs(found.worst_bytes[entry] / float(held) - 1.0),
        )
    return worst


@pytest.mark.parametrize("count", [60, pytest.param(200, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", sorted(CASES))
def test_arrays_and_single_layouts_agree(name: str, count: int) -> None:
    assert differs_most(read_inputs(CASES[name]), count, seed=1) < 1e-9


@pytest.mark.parametrize("count", [30, pytest.param(100, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", sorted(CASES))
def test_arrays_and_single_layouts_of_any_shard_group_agree(name: str, count: int) -> None:
    rules = (parse_rule("dp_replicate > 1"),)

    assert differs_most(read_inputs(CASES[name]), count, seed=3, rules=rules) < 1e-9


@pytest.mark.nightly
def test_arrays_and_single_layouts_agree_on_ten_thousand() -> None:
    assert differs_most(read_inputs(CASES["gpt3-175b"]), 10_000, seed=2) < 1e-9


@pytest.mark.parametrize("supernode", [24, 40, 64])
def test_layouts_on_uneven_domains_sit_as_their_ranks_do(supernode: int) -> None:
    inputs = read_inputs(Asked(supernode=supernode, gpus=64, model="llama-3.1-8b"))
    fixed = inputs.fixed
    homes = [home[:64] for home in tier_indices(inputs.fabric)]
    space = layout_space(inputs.model, 64, fixed)
    machine = machine_of(inputs.fabric, 64, None)
    rows = np.random.default_rng(3).choice(space.size, size=40, replace=False)

    columns = space.columns(fixed, np.sort(rows))
    spreads = machine.seats.spreads(columns)

    for position, row in enumerate(np.sort(rows)):
        layout = space.layout(int(row), fixed)
        if not homes:
            continue
        counted = spreads_of(layout, homes)
        for digit in ("tp", "cp", "dp", "pp"):
            fast, slow = getattr(spreads, digit), getattr(counted, digit)
            # the first rank order; what the order does not move has no axis for it
            domains, members = (np.atleast_2d(of)[0] for of in (fast.domains[0], fast.members[0]))
            assert domains[position] == slow.domains[0], (digit, layout)
            assert members[position] == slow.members[0], (digit, layout)


def test_a_wider_nic_never_slows_a_step() -> None:
    from planner.search.changed import Change
    from planner.search.pool import Pool, steps_at_once_s
    from planner.search.search import sweep
    from planner.search.whole import Whole

    inputs = read_inputs(Asked(supernode=8, gpus=64, model="mixtral-8x7b"))
    machine = machine_of(inputs.fabric, 64, inputs.efficiency)
    swept = sweep(inputs.model, machine, 64, inputs.fixed)
    whole = Whole.of(inputs.model, swept.space, swept.fixed, machine)
    pool = Pool.of("p", inputs.fabric, machine, whole, swept.evaluated.rows[::10])
    last_s = inf
    for factor in (0.1, 0.3, 1.0, 2.0, 8.0):
        steps_s = steps_at_once_s([(pool, Change(nic_rate=factor))])[0]
        assert (steps_s <= last_s * (1 + 1e-12)).all()
        last_s = steps_s
