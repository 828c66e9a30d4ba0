"""Fits of few rows of tables that nothing was set on: does their interval hold the other rows?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from planner.steptime.own_fit import fit_alone, with_own_pace
from planner.steptime.runs import Run, batches, predicted_s
from planner.steptime.uncertainty import interval_s
from topologies.steps_table import read_steps

TABLES = (
    ("gh200_runs.csv", "jupiter_oellm_32b"),
    ("blind_runs.csv", "together_b200_dense"),
    ("held_out_runs.csv", "kempnerforge"),
)
"""The largest tables that no width was set on, 24 rows each; no shipped fit is used."""
STARTS = (0,)


def rows_of(file: str) -> tuple[Run, ...]:
    return read_steps(Path(__file__).with_name(file)).runs


def held(runs: list[Run], count: int, start: int) -> np.ndarray:
    """Return which of *runs* the interval of a fit on *count* others holds, from row *start* on."""
    few = runs[start :: len(runs) // count][:count]
    rest = [run for run in runs if run not in few]
    fitted = with_own_pace(fit_alone(few[0].chip, few).efficiency)
    step_s = predicted_s(batches(rest), {few[0].chip: fitted}, len(rest))
    low, high = np.array([interval_s(one, fitted.spread, 0.0) for one in step_s]).T
    measured = np.array([run.measured_s for run in rest])
    inside: np.ndarray = (low <= measured) & (measured <= high)
    return inside


@pytest.mark.parametrize("count", [3, pytest.param(5, marks=pytest.mark.nightly)])
def test_the_interval_of_a_fit_of_few_rows_holds_most_of_the_others(count: int) -> None:
    inside = np.concatenate(
        [
            held([run for run in rows_of(file) if run.source == source], count, start)
            for file, source in TABLES
            for start in STARTS
        ]
    )

    print(f"{count} rows: {inside.mean():.0%} of {len(inside)}")  # noqa: T201 - shown by pytest -s
    assert inside.mean() >= 0.9
