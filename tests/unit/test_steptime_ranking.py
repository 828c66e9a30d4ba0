"""Pairs and regret, and what a smooth correction by a group's own layouts makes of them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from cli.validate_groups import regret_lines
from planner.steptime.ranking import ceilings, orders
from planner.steptime.runs import Run
from planner.steptime.smoothness import LEAST_LAYOUTS, told_by_others
from topologies.steps_table import steps_from_text

HEADER = (
    "id,source,model,layers,hidden,heads,vocab,seq,gpu,n_gpus,tp,pp,dp,micro_batch,global_batch,"
    "measured_step_s"
)
LAYOUTS = [
    (tp, pp, 64 // tp // pp, micro)
    for tp in (1, 2, 4, 8)
    for pp in (1, 2, 4)
    for micro in (1, 2, 4)
]
STEP_S = np.array(
    [10 + 0.3 * pp + 0.05 * tp * tp - 0.2 * micro for tp, pp, _, micro in LAYOUTS], dtype=float
)


def runs_measured(measured_s: NDArray[np.float64]) -> tuple[Run, ...]:
    rows = [
        f"r{i},s,m,24,2048,16,50000,2048,H100,64,{tp},{pp},{dp},{micro},256,{one_s}"
        for i, ((tp, pp, dp, micro), one_s) in enumerate(zip(LAYOUTS, measured_s, strict=True))
    ]
    table = steps_from_text("\n".join([HEADER, *rows]), "t.csv")
    assert not table.skipped
    return table.runs


def test_a_miss_that_goes_with_tp_is_told_by_the_other_layouts() -> None:
    doublings_of_tp = np.log2([tp for tp, *_ in LAYOUTS])
    runs = runs_measured(STEP_S * np.exp(-0.12 * doublings_of_tp))

    model, smooth = orders(runs, STEP_S)[0], ceilings(runs, STEP_S)[0]

    assert model.right < 0.9 * model.pairs
    assert smooth.right > 0.98 * smooth.pairs
    assert (smooth.source, smooth.layouts, smooth.pairs) == ("s", len(LAYOUTS), model.pairs)


def test_scatter_from_one_layout_to_the_next_is_told_by_none() -> None:
    scatter = np.random.default_rng(7).normal(0.0, 0.1, len(LAYOUTS))
    runs = runs_measured(STEP_S * np.exp(scatter))

    model, smooth = orders(runs, STEP_S)[0], ceilings(runs, STEP_S)[0]

    assert abs(smooth.right - model.right) < 0.05 * model.pairs


def test_a_layout_hears_nothing_of_its_own_step() -> None:
    degrees = np.log2(np.array(LAYOUTS, dtype=float))
    quiet = np.zeros(len(LAYOUTS))
    loud = quiet.copy()
    loud[5] = 0.5

    told = told_by_others(degrees, loud)

    assert told_by_others(degrees, quiet) == pytest.approx(quiet)
    assert abs(told[5]) < 0.05


def test_a_group_of_few_layouts_has_no_ceiling() -> None:
    few = runs_measured(STEP_S)[: LEAST_LAYOUTS - 1]

    assert len(orders(few, STEP_S[: len(few)])) == 1
    assert ceilings(few, STEP_S[: len(few)]) == ()


def test_the_worst_pick_of_a_source_is_named_where_it_costs_more_than_a_hundredth() -> None:
    slow = STEP_S.copy()
    slow[int(np.argmin(STEP_S))] *= 1.5
    runs = runs_measured(slow)
    order = np.argsort(slow)

    (told,) = regret_lines(orders(runs, STEP_S))

    pick = int(np.argmin(STEP_S))
    percent = 100 * (slow[pick] / slow[order[0]] - 1)
    assert f"r{pick} is predicted fastest" in told
    assert f"{percent:.1f} % longer than r{order[0]}" in told
    assert regret_lines(orders(runs, slow)) == ()
