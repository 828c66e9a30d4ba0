"""Tables of published steps that no fit is made on, predicted as a user would predict them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from planner.steptime.rates import Efficiency, default_efficiency
from planner.steptime.runs import Run
from planner.steptime.uncertainty import interval_s
from planner.steptime.validate import constant_mfu_error, predict
from topologies.efficiency_catalogue import shipped_efficiencies
from topologies.steps_table import read_steps

NAMES = ("published", "held_out", "blind", "unseen", "later")
OUTSIDE = tuple(f"{name}_runs.csv" for name in NAMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideTable:
    """One table's rows and what is predicted for them.

    Args:
        path: the file.
        runs: its rows; none is skipped.
        ratio: predicted over measured, by row [1].
    """

    path: Path
    runs: tuple[Run, ...]
    ratio: NDArray[np.float64]

    def error_share(self, *sources: str) -> float:
        """Return the mean error of the rows of *sources*, or of all [1]."""
        mine = [not sources or run.source in sources for run in self.runs]
        assert any(mine)
        return float(np.abs(self.ratio[mine] - 1).mean())

    def inside(self) -> NDArray[np.bool_]:
        """Return which rows the printed interval holds."""
        efficiencies: Mapping[str, Efficiency] = shipped_efficiencies()
        held = []
        for run, one in zip(self.runs, self.ratio, strict=True):
            reached = efficiencies.get(run.chip) or default_efficiency(run.accelerator)
            low, high = interval_s(float(one), reached.spread, reached.machine_spread)
            held.append(low <= 1 <= high)
        return np.array(held)

    def of_constant_mfu(self) -> float:
        """Return the error over that of a constant MFU set on these very rows [1]."""
        return self.error_share() / constant_mfu_error(self.runs)

    def predicted_s(self, name: str) -> float:
        """Return the predicted step of the row called *name* [s]."""
        at = [run.name for run in self.runs].index(name)
        return float(self.ratio[at]) * self.runs[at].measured_s


@cache
def outside_table(name: str) -> OutsideTable:
    """Return the table called *name* beside this module."""
    path = Path(__file__).with_name(name)
    table = read_steps(path)
    assert not table.skipped
    step_s = predict(table.runs, shipped_efficiencies())
    for run, one_s in zip(table.runs, step_s, strict=True):
        off = f"{one_s / run.measured_s - 1:+.1%}"
        print(f"{run.name:40s} {run.measured_s:8.2f} s {off}")  # noqa: T201 - shown by pytest -s
    return OutsideTable(
        path=path, runs=table.runs, ratio=step_s / [run.measured_s for run in table.runs]
    )
