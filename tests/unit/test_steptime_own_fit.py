"""A fit of one's own: all rows, scored by halves; the pace of its source; how narrow it may be."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.steptime.own_fit import drawn_spread, fit_alone, fit_and_score, with_own_pace
from planner.steptime.runs import Run, batches, predicted_s
from planner.steptime.uncertainty import MACHINE_SPREAD, few_rows_spread
from tests.unit.test_steptime_calibrate import TRUE, runs_made_with

CHIP = "H100-SXM"


@pytest.fixture(scope="module")
def made() -> list[Run]:
    return runs_made_with(TRUE)[:12]


def test_a_step_takes_its_only_sources_pace_times_as_long(made: list[Run]) -> None:
    slow = replace(TRUE, pace_ratio={"made": 1.05})

    alone = predicted_s(batches(made), {CHIP: replace(slow, pace_ratio={})}, len(made))
    folded = predicted_s(batches(made), {CHIP: with_own_pace(slow)}, len(made))

    # start-ups of the network are no share of a rate: they alone keep their time
    assert folded / alone == pytest.approx(np.full(len(made), 1.05), rel=2e-3)


def test_one_source_is_the_machine_itself_and_several_are_none_of_them() -> None:
    one = with_own_pace(replace(TRUE, pace_ratio={"made": 1.05}))
    several = with_own_pace(replace(TRUE, pace_ratio={"made": 1.05, "other": 0.95}))

    assert one.machine_spread == 0.0
    assert several.machine_spread == MACHINE_SPREAD
    assert several.gemm_share == TRUE.gemm_share


def test_no_rate_rises_above_the_nominal_one() -> None:
    fast = with_own_pace(replace(TRUE, inner_share=0.99, pace_ratio={"made": 0.9}))

    assert fast.inner_share == 1.0


def test_every_row_is_fitted_and_each_predicted_by_a_fit_that_has_not_seen_its_layout(
    made: list[Run],
) -> None:
    found = fit_and_score(CHIP, made)

    assert found.efficiency.rows == len(found.seen_log_ratio) == len(found.unseen_log_ratio) == 12


def test_too_few_layouts_for_halves_are_fitted_and_not_scored(made: list[Run]) -> None:
    again = [replace(made[0], name=f"again {i}") for i in range(6)]  # one layout, six times

    found = fit_and_score(CHIP, again)

    assert found.efficiency.rows == 6
    assert not len(found.unseen_log_ratio)
    assert not len(fit_alone(CHIP, made).unseen_log_ratio)


def test_a_few_rows_that_fit_by_luck_are_no_surer_than_other_machines_are() -> None:
    # by hand: n0 = 4 rows of 0.12, t(7) = 1.895 and t(304) = 1.650 from the tables, over 1.645
    few = (4 * 0.12**2 / 7 * (1 + 1 / 3)) ** 0.5 * 1.895 / 1.645
    many = ((4 * 0.12**2 + 300 * 0.1**2) / 304 * (1 + 1 / 300)) ** 0.5 * 1.650 / 1.645

    assert drawn_spread(np.zeros(3), told=0.0) == pytest.approx(few, rel=2e-3)
    assert drawn_spread(np.full(300, 0.1), told=0.0) == pytest.approx(many, rel=2e-3)


def test_what_a_fit_has_learnt_from_its_rows_they_cannot_vouch_for(made: list[Run]) -> None:
    seen = np.full(5, 0.1)

    assert drawn_spread(seen, told=2.0) > drawn_spread(seen, told=0.0)
    assert fit_alone(CHIP, made[:4]).efficiency.spread > few_rows_spread(0.0, 4, told=0.0)
