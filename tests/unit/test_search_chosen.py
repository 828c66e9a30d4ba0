"""Choosing as seated: against seating every layout."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.search.chosen import Chooser
from planner.search.defaults import AS_GOOD_SHARE, Job, usual_spaces
from planner.search.finalist import finalists
from planner.search.search import machine_of, sweep
from planner.search.seated_rows import Seating
from planner.search.seated_steps import SeatedSteps
from planner.search.space import DEGREES
from planner.steptime.step import layout_memory
from topologies.fabric_catalogue import generic_cluster
from topologies.model_reader import read_model

CASES = [(5, 12, "llama-3.1-8b", 24), (9, 32, "mixtral-8x7b", 64), (8, 16, "qwen3-30b-a3b", 64)]


def job(supernode: int, gpus: int, model: str, batch: int, **given: int) -> Job:
    fixed = {"seq": 4096, "global_batch": batch, "precision": "bf16", "zero_stage": 1,
             "recompute": "selective", **given}  # fmt: skip
    return Job(
        model=read_model(model), fabric=generic_cluster(supernode, gpus), gpus=gpus, fixed=fixed
    )


def check_what_is_taken(one: Job) -> None:
    """Seat every usual layout, and hold what is taken to the rule."""
    steps = SeatedSteps(one.fabric, None)
    (usual,) = usual_spaces(one)
    every = [
        (steps.quick_s(one.model, usual.layout(entry)), usual.layout(entry), entry)
        for entry in range(len(usual.some.rows))
    ]
    shortest_s = min(step_s for step_s, _, _ in every)
    close = [each for each in every if each[0] <= shortest_s * (1.0 + AS_GOOD_SHARE)]
    expected = min(
        close, key=lambda each: (each[1].pp, round(np.log(usual.some.serial_s[each[2]]) * 1e9),
                                 usual.some.worst_bytes[each[2]]),
    )  # fmt: skip

    told: list[Seating] = []
    choice = Chooser(one, SeatedSteps(one.fabric, None), told=told.append).taken()

    assert choice.layout == expected[1]
    assert choice.seated_s == pytest.approx(expected[0], rel=1e-12)
    assert choice.seated <= len(told) + 1
    assert choice.seated < len(every)
    assert min(one.shortest_s for one in told) >= shortest_s


@pytest.mark.parametrize(("supernode", "gpus", "model", "batch"), CASES)
def test_what_is_taken_is_what_seating_every_layout_takes(
    supernode: int, gpus: int, model: str, batch: int
) -> None:
    check_what_is_taken(job(supernode, gpus, model, batch, micro_batch=2, vpp=1, cp=1))


@pytest.mark.nightly
@pytest.mark.parametrize(("supernode", "gpus", "model", "batch"), CASES)
def test_what_is_taken_is_what_seating_very_many_layouts_takes(
    supernode: int, gpus: int, model: str, batch: int
) -> None:
    check_what_is_taken(job(supernode, gpus, model, batch))


def test_the_fastest_of_all_is_the_fastest_of_those_that_look_it() -> None:
    one = job(9, 32, "mixtral-8x7b", 64)
    steps = SeatedSteps(one.fabric, None)
    chooser = Chooser(one, steps)
    machine = machine_of(one.fabric, one.gpus, None)
    swept = sweep(one.model, machine, one.gpus, one.fixed)

    found = chooser.fastest(chooser.taken())

    entries = np.argsort(swept.evaluated.total_s)[:40]
    every = [steps.quick_s(one.model, swept.layout(int(entry))) for entry in entries]
    assert found.step_s == pytest.approx(min(every), rel=1e-12)


def test_a_search_lists_the_fastest_of_each_set_of_degrees_after_what_is_taken() -> None:
    one = job(9, 32, "llama-3.1-8b", 64, cp=1)
    steps = SeatedSteps(one.fabric, None)
    chooser = Chooser(one, steps)
    swept = sweep(one.model, machine_of(one.fabric, one.gpus, None), one.gpus, one.fixed)
    taken = chooser.taken().layout

    found = finalists(chooser, swept, taken, most=4)

    assert found[0].layout == taken
    assert len({tuple(getattr(each.layout, name) for name in DEGREES) for each in found}) == 4
    listed = [steps.quick_s(one.model, each.layout) for each in found[1:]]
    best = [steps.quick_s(one.model, swept.layout(int(entry))) for entry in swept.best]
    own = tuple(getattr(taken, name) for name in DEGREES)
    others = sorted(
        step_s for step_s, entry in zip(best, swept.best, strict=True)
        if tuple(getattr(swept.layout(int(entry)), name) for name in DEGREES) != own
    )  # fmt: skip
    assert max(listed) <= others[2] * (1.0 + 1e-9)


def test_a_layout_that_leaves_no_margin_of_memory_is_not_taken_where_another_leaves_one() -> None:
    # ZeRO 3 as TP 4, DP 2 would be half as long, in 85.07 of 85.5 GB
    asked = job(4, 8, "qwen3-32b", 16, seq=26_112)
    one = replace(asked, fixed={k: v for k, v in asked.fixed.items() if k != "zero_stage"}
                  | {"recompute": "full"})  # fmt: skip
    chooser = Chooser(one, SeatedSteps(one.fabric, None))

    choice = chooser.taken()

    fastest = chooser.fastest(choice)
    for layout in (choice.layout, fastest.layout):
        assert layout_memory(one.model, layout, one.fabric.accelerator).fits
