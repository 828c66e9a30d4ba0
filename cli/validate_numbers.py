"""What ``planner validate`` times rows with, and the interval a step like each of them has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from planner.steptime.covered import beyond, widened
from planner.steptime.rates import Efficiency, default_efficiency
from planner.steptime.runs import Run, kind_of_run
from topologies.efficiency_catalogue import (
    efficiency_of,
    read_efficiencies,
    shipped_efficiencies,
)
from topologies.own_efficiency import OwnFits, read_own_fits


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """What rows are timed with.

    Args:
        numbers: accelerator to what it reaches.
        own: the file they are from, None where they ship.
    """

    numbers: Mapping[str, Efficiency]
    own: OwnFits | None = None

    def of_interval(self, run: Run) -> Efficiency:
        """Return the numbers whose interval a step like *run* has, wider if no row is."""
        fitted = self.numbers.get(run.chip) or default_efficiency(run.accelerator)
        covered = self.own.covered.get(run.chip) if self.own else None
        if covered is None or not beyond(covered, kind_of_run(run)):
            return fitted
        return widened(fitted, efficiency_of(run.accelerator.name))


def timing_of(efficiency: Path | None) -> Timing:
    """Return what ships, or the numbers of the file *efficiency* as ``step`` takes them.

    A file of several sources keeps the pace of each for its rows.
    """
    if efficiency is None:
        return Timing(numbers=shipped_efficiencies())
    filed = read_efficiencies(efficiency)
    own = read_own_fits(efficiency, elsewhere="shipped")
    folded = own.by_chip if own else {}
    numbers = {
        chip: folded[chip] if len(one.pace_ratio) == 1 else one for chip, one in filed.items()
    }
    return Timing(numbers=numbers, own=own)
