"""How far fitted collective times are off: left-out tables, left-out machines, lines to print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from planner.collectives.fit import fit_classes
from planner.collectives.library import FitError
from planner.collectives.measured import MeasuredCollective
from planner.collectives.predict import Vector, predicted_s


@dataclass(frozen=True, slots=True, kw_only=True)
class FitLine:
    """One line of a report: how one class and collective is predicted."""

    system: str
    collective: str
    error: FitError


def left_out_predictions(rows: Sequence[MeasuredCollective], left_out: str = "table") -> Vector:
    """Return each row's time as predicted by a fit that never saw its table [s].

    Args:
        rows: measured collectives.
        left_out: ``table``: the row's table is left out; ``scale_up``: its whole class of machine
            is, and the generic class stands in.
    """
    usable = [row for row in rows if not row.skipped_because and row.time_s > 0]
    names = tuple(sorted({row.scale_up for row in usable}))
    networks = tuple(sorted({row.network for row in usable if row.network})) or ("generic",)
    out = np.full(len(rows), np.nan)
    for value in sorted({getattr(row, left_out) for row in usable}):
        rest = [row for row in usable if getattr(row, left_out) != value]
        kept = names if left_out == "table" else tuple(n for n in names if n != value)
        calibration = fit_classes(rest, kept, networks)
        mine = [i for i, row in enumerate(rows) if getattr(row, left_out) == value]
        out[mine] = predicted_s([rows[i] for i in mine], calibration)
    return out


def error_of(predicted: Vector, measured: Vector) -> FitError:
    """Return median, 90th percentile and bias of predicted/measured - 1.

    >>> error_of(np.array([1.1, 0.9, 1.0]), np.ones(3)).median_share.__round__(3)
    0.1
    """
    off = predicted / measured - 1
    return FitError(
        median_share=float(np.median(np.abs(off))),
        p90_share=float(np.quantile(np.abs(off), 0.9)),
        bias_share=float(np.median(off)),
        rows=int(off.size),
    )


def report(rows: Sequence[MeasuredCollective], predicted: Vector) -> tuple[FitLine, ...]:
    """Return one line for each class and collective, groups that leave a supernode apart."""
    measured = np.array([row.time_s for row in rows])
    keys: dict[tuple[str, str], list[int]] = {}
    for index, row in enumerate(rows):
        if np.isfinite(predicted[index]) and row.time_s > 0:
            where = row.scale_up + (f" {row.network}" if row.network else "")
            keys.setdefault((where, row.collective), []).append(index)
    return tuple(
        FitLine(
            system=system,
            collective=collective,
            error=error_of(predicted[indices], measured[indices]),
        )
        for (system, collective), indices in sorted(keys.items())
    )
