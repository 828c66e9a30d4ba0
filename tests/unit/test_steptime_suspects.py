"""Rows that cannot be what they say: left out of a fit where the others refute them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.steptime.calibrate import content_half, content_key
from planner.steptime.own_fit import fit_alone, fit_and_score
from planner.steptime.runs import Run
from planner.steptime.suspects import overfull, sifted
from tests.unit.test_steptime_calibrate import TRUE, runs_made_with

CHIP = "H100-SXM"


@pytest.fixture(scope="module")
def made() -> list[Run]:
    return runs_made_with(TRUE)[:10]


def slipped(made: list[Run], times: float, *at: int) -> list[Run]:
    return [
        replace(run, measured_s=run.measured_s * (times if i in at else 1.0))
        for i, run in enumerate(made)
    ]


@pytest.mark.parametrize("times", [60.0, 1e-3, 1000.0])
def test_a_slip_of_a_unit_is_left_out_and_the_fit_is_that_of_the_others(
    made: list[Run], times: float
) -> None:
    found = sifted(CHIP, slipped(made, times, 3))

    assert [run.name for run in found.broken] == [made[3].name]
    assert found.expected_s[0] == pytest.approx(made[3].measured_s, rel=0.1)
    others = [run for i, run in enumerate(made) if i != 3]
    assert fit_alone(CHIP, found.kept).efficiency == fit_alone(CHIP, others).efficiency


def test_a_run_that_took_three_times_as_long_stays_for_runs_do(made: list[Run]) -> None:
    assert sifted(CHIP, slipped(made, 3.0, 3)).broken == ()


def test_where_most_rows_do_not_agree_none_is_left_out(made: list[Run]) -> None:
    half = slipped(made, 1000.0, 0, 1, 2, 3, 4)

    assert sifted(CHIP, half).kept == tuple(half)


def test_the_score_does_not_hang_on_the_files_name_or_how_its_gpu_is_spelled(
    made: list[Run],
) -> None:
    again = [
        replace(run, source="another.csv", group=run.group.replace("made", "another.csv"))
        for run in made
    ]

    assert [content_key(run) for run in again] == [content_key(run) for run in made]
    assert [content_half(run) for run in again] == [content_half(run) for run in made]
    one, other = fit_and_score(CHIP, made), fit_and_score(CHIP, again)
    assert np.sort(one.unseen_log_ratio) == pytest.approx(np.sort(other.unseen_log_ratio))
    assert one.efficiency.spread == pytest.approx(other.efficiency.spread, rel=1e-12)


def test_a_run_that_needs_many_times_its_gpus_memory_is_told_with_figures(made: list[Run]) -> None:
    """70B in 16 bit on one GPU: 16 bytes a parameter are 1.1 TB, an H100 has 80 GB."""
    large = next(run for run in runs_made_with(TRUE) if run.model.hidden == 8192)
    alone = replace(large.columns, tp=1.0, pp=1.0, dp=16.0, zero_stage=0.0)

    (found,) = overfull([replace(large, columns=alone), made[0]])

    assert found.name == large.name
    assert found.needed_bytes > 1e12
    assert found.capacity_bytes < 90e9
