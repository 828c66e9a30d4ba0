"""All fits a catalogue ships with: on every row, on each half of the layouts, without each source.

The first predicts; the others score it, so that no row is scored by numbers that have seen it.
The spread an accelerator ships with is that of its rows by halves, each predicted by the half
that has not seen its layout.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from planner.errors import InputError
from planner.steptime.calibrate import fit, fitting_half, robust_spread
from planner.steptime.rates import Efficiency
from planner.steptime.runs import Run, batches, predicted_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Refit:
    """The numbers of every accelerator, by what they were fitted on.

    Args:
        whole: on all rows.
        first, second: on the half of the layouts that ``fitting_half`` picks, and on the others.
        left_out: source to the numbers of its accelerators fitted on all other sources.
    """

    whole: Mapping[str, Efficiency]
    first: Mapping[str, Efficiency]
    second: Mapping[str, Efficiency]
    left_out: Mapping[str, Mapping[str, Efficiency]]


def refit(runs: Sequence[Run], say: Callable[[str], None]) -> Refit:
    """Return all fits of *runs*; rows without a measured step are left out.

    Args:
        runs: measured rows, of several sources.
        say: writes a line of progress.

    Raises:
        InputError: no row has a measured step, or one half of the layouts has none.
    """
    usable = [run for run in runs if run.measured_s > 0]
    halves = [[run for run in usable if fitting_half(run) == side] for side in (True, False)]
    if not all(halves):
        raise InputError("both halves of the layouts need measured rows: give more of them")
    say(f"fitting on all {len(usable):,} rows, and on each half of their layouts")
    whole, first, second = (_numbers(rows) for rows in (usable, *halves))
    spreads = _spreads(usable, first, second)
    left_out = {}
    for source in sorted({run.source for run in usable}):
        say(f"fitting without {source}")
        left_out[source] = _without(source, usable, spreads)
    return Refit(
        whole=_with_spread(whole, spreads),
        first=_with_spread(first, spreads),
        second=_with_spread(second, spreads),
        left_out=left_out,
    )


def _numbers(runs: Sequence[Run]) -> dict[str, Efficiency]:
    return {chip: fitted.efficiency for chip, fitted in fit(runs).items()}


def _without(
    source: str, runs: Sequence[Run], spreads: Mapping[str, float]
) -> dict[str, Efficiency]:
    """Fit the accelerators of *source* on the other sources; one that only it has is left out."""
    chips = {run.chip for run in runs if run.source == source}
    others = [run for run in runs if run.source != source and run.chip in chips]
    return _with_spread(_numbers(others), spreads) if others else {}


def _with_spread(
    numbers: Mapping[str, Efficiency], spreads: Mapping[str, float]
) -> dict[str, Efficiency]:
    return {
        chip: replace(one, spread=spreads.get(chip, one.spread)) for chip, one in numbers.items()
    }


def _spreads(
    runs: Sequence[Run], first: Mapping[str, Efficiency], second: Mapping[str, Efficiency]
) -> dict[str, float]:
    """Return the spread of each accelerator that both halves have, over all its rows [1]."""
    parts = batches(runs)
    by_first = predicted_s(parts, first, len(runs))
    by_second = predicted_s(parts, second, len(runs))
    unseen = np.where([fitting_half(run) for run in runs], by_second, by_first)
    ratio = np.log(unseen / np.array([run.measured_s for run in runs]))
    chips = np.array([run.chip for run in runs])
    return {chip: robust_spread(ratio[chips == chip]) for chip in first if chip in second}
