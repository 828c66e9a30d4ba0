"""What is left out of a search cannot be among the fastest: against timing all of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cli.planner_inputs import Asked, read_question
from planner.model import ModelSpec
from planner.search.evaluate import times_on
from planner.search.fastest import SEATED, fastest_on
from planner.search.least_steps import least_steps_s, with_gradients_s
from planner.search.rules import parse_rules
from planner.search.search import machine_of, space_on, sweep, unlike
from planner.search.whole import Whole

CASES = [
    (name, supernode, gpus)
    for name, gpus in (("deepseek-v3", 1024), ("llama-3.1-405b", 1024), ("mixtral-8x7b", 96))
    for supernode in (8, 72, 384)
    if supernode <= gpus
]


@pytest.mark.nightly
@pytest.mark.parametrize("dear", [1, 8], ids=["as it is", "with leading layers of 8 times"])
@pytest.mark.parametrize(("name", "supernode", "gpus"), CASES)
def test_no_step_of_a_space_is_shorter_than_its_bounds(
    name: str, supernode: int, gpus: int, dear: int
) -> None:
    inputs = read_question(Asked(supernode=supernode, gpus=gpus, model=name))
    model: ModelSpec = replace(inputs.model, ffn=inputs.model.ffn * dear)
    machine = machine_of(inputs.fabric, gpus, inputs.efficiency)
    space = space_on(model, (machine,), gpus, inputs.fixed)
    whole = Whole.of(model, space, inputs.fixed, machine)
    rows = np.sort(np.random.default_rng(dear).choice(space.size, 20_000, replace=False))

    for seq in (0.25, 1.0, 4.0):
        total_s = times_on(model, whole.longer(rows, seq), (machine,))[0, 0]
        least_s = least_steps_s(whole, [machine], seq, rows)
        closer_s = with_gradients_s(whole, [machine], seq, rows, least_s)
        assert (whole.compute_s(seq, rows) <= least_s[0] * (1 + 1e-9)).all()
        assert (least_s <= closer_s).all()
        assert (closer_s[0] <= total_s * (1 + 1e-9)).all()


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "supernode", "gpus"), CASES)
def test_the_fastest_of_a_space_are_those_that_timing_all_finds(
    name: str, supernode: int, gpus: int
) -> None:
    inputs = read_question(Asked(supernode=supernode, gpus=gpus, model=name))
    machine = machine_of(inputs.fabric, gpus, inputs.efficiency)

    _, (found,) = fastest_on(inputs.model, (machine,), gpus, inputs.fixed)
    swept = sweep(inputs.model, machine, gpus, inputs.fixed)

    first = unlike(found.evaluated, found.best)[:SEATED]
    wanted = unlike(swept.evaluated, swept.best)[:SEATED]
    assert [found.layout(entry) for entry, _ in first] == [swept.layout(at) for at, _ in wanted]
    assert [float(found.evaluated.total_s[entry]) for entry, _ in first] == [
        float(swept.evaluated.total_s[entry]) for entry, _ in wanted
    ]


def test_bounds_hold_where_shard_groups_differ_and_leave_out_none_of_the_fastest() -> None:
    rules = parse_rules(["dp_replicate >= 2", "zero == 3", "tp <= 4"])
    inputs = read_question(Asked(supernode=8, gpus=48, model="llama-3.1-8b"))
    machine = machine_of(inputs.fabric, 48, inputs.efficiency)
    space = space_on(inputs.model, (machine,), 48, inputs.fixed, rules=rules)
    whole = Whole.of(inputs.model, space, inputs.fixed, machine)
    rows = np.arange(space.size)

    total_s = times_on(inputs.model, whole.longer(rows, 1.0), (machine,))[0, 0]
    least_s = least_steps_s(whole, [machine], 1.0, rows)
    closer_s = with_gradients_s(whole, [machine], 1.0, rows, least_s)
    _, (found,) = fastest_on(inputs.model, (machine,), 48, inputs.fixed, rules=rules)
    swept = sweep(inputs.model, machine, 48, inputs.fixed, rules=rules)

    shards = space.table["dp_shard"]
    assert len(np.unique(shards)) > 4
    assert (closer_s[0] <= total_s * (1 + 1e-9)).all()
    first = unlike(found.evaluated, found.best)[:SEATED]
    wanted = unlike(swept.evaluated, swept.best)[:SEATED]
    assert [found.layout(entry) for entry, _ in first] == [swept.layout(at) for at, _ in wanted]
    assert any(found.layout(entry).dp_shard for entry, _ in first)
