"""Rows of a table that cannot be what they say: a slip of a unit, a batch or a degree.

A fit bends little to one broken row, but its spread and its interval do. So rows that are further
off what the others give than any run was are left out of it, and said; those that are merely far
off stay, because runs are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from planner.steptime.calibrate import LEAST_ROWS, fit_chip, residuals_of, thinned
from planner.steptime.runs import Run, batches, predicted_memory_bytes

FAR_RATIO = 2.0
"""A row that is as many times off is told: releases of one program differ by as much [1]."""

BROKEN_RATIO = 5.0
"""A row that is as many times off what the others give is no run of that machine [1].

The furthest published step that was what it said took 4.5 times what was predicted
(``docs/steps.md``); a slip of a decimal point is ten times, of seconds and minutes sixty.
"""

OVERFULL_RATIO = 1.25
"""A run that is predicted to need as many times its GPU's memory has other degrees than stated [1].

Of 2,347 published steps that ran, 12 are beyond it and none beyond twice.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sifted:
    """A table's rows of one accelerator.

    Args:
        kept: rows to fit.
        broken: rows that are left out.
        expected_s: of each row in *broken*, what a fit of the others gives [s].
    """

    kept: tuple[Run, ...]
    broken: tuple[Run, ...] = ()
    expected_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Overfull:
    """A run that ran, predicted not to fit by far.

    Args:
        name: the row.
        needed_bytes: what it is predicted to need on a GPU [bytes].
        capacity_bytes: what that has [bytes].
    """

    name: str
    needed_bytes: float
    capacity_bytes: float


def everything(_chip: str, runs: Sequence[Run]) -> Sifted:
    """Return all *runs*, as ``sifted`` where none is broken."""
    return Sifted(kept=tuple(runs))


def sifted(chip: str, runs: Sequence[Run]) -> Sifted:
    """Return *runs*, measured rows of *chip*, without those that a fit of the others refutes.

    None is left out where too few would be left, or not most of them agree.
    """
    parts = batches(runs)
    off = residuals_of(parts, runs, fit_chip(chip, thinned(runs), ()).efficiency)
    apart = np.abs(off - np.median(off)) > log(FAR_RATIO)
    rest = [run for run, far in zip(runs, apart, strict=True) if not far]
    if len(rest) == len(runs) or len(rest) < LEAST_ROWS or 2 * len(rest) <= len(runs):
        return everything(chip, runs)
    off = residuals_of(parts, runs, fit_chip(chip, thinned(rest), ()).efficiency)
    broken = apart & (np.abs(off) > log(BROKEN_RATIO))
    return Sifted(
        kept=tuple(run for run, bad in zip(runs, broken, strict=True) if not bad),
        broken=tuple(run for run, bad in zip(runs, broken, strict=True) if bad),
        expected_s=tuple(
            run.measured_s * exp(one)
            for run, one, bad in zip(runs, off, broken, strict=True)
            if bad
        ),
    )


def overfull(runs: Sequence[Run]) -> tuple[Overfull, ...]:
    """Return the measured rows of *runs* that are predicted to need far more than a GPU has."""
    measured = [run for run in runs if run.measured_s > 0]
    return tuple(
        Overfull(name=run.name, needed_bytes=float(needed),
                 capacity_bytes=run.accelerator.memory_bytes)
        for run, needed in zip(measured, predicted_memory_bytes(measured), strict=True)
        if needed > OVERFULL_RATIO * run.accelerator.memory_bytes
    )  # fmt: skip
