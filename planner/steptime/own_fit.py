"""A user's own fit: on every row, and how far off it is on layouts that a fit has not seen.

The numbers are those of all rows. Each half of the layouts is predicted by a fit on the other;
those residuals are what a layout of the same machine that nobody ran yet may be off by.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from planner.steptime.calibrate import (
    LEAST_ROWS,
    Fitted,
    content_key,
    fit_chip,
    robust_spread,
    thinned,
)
from planner.steptime.covered import Covered, covered_by
from planner.steptime.rates import Efficiency, with_sixteen_bits
from planner.steptime.runs import Run, batches, kind_of_run, predicted_s
from planner.steptime.uncertainty import few_rows_spread
from planner.units import format_share, format_time

_TOLD_SHARE = 0.5
"""A number is the rows' own where they halve the variance it had before them; else assumed [1]."""

LOGITS = "logits"
"""What the share in 16 bit is called among the assumed where no row of the table runs in it."""

_DEFAULT_OF = {
    "gemm": "0.88 of what such a chip's large products reach alone",
    "attention": "the usual ratio to its matrix products",
    "memory": "the usual part of what a copy reaches",
    "inner": "the 78 % usual of scale-up links",
    "outer": "the 70 % usual of NICs",
    "host": "usual of such kernels",
    "step": "the usual 30 ms",
}
"""Where the middle of each number is from: ``default_efficiency``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFit:
    """One accelerator's fit on a table.

    Args:
        chip: the accelerator.
        efficiency: the numbers, fitted on all of its rows.
        seen_log_ratio: log(predicted / measured) of those rows [1].
        unseen_log_ratio: the same of rows whose layout the fit that predicts them has not seen;
            empty where half of the layouts are too few for a fit, or nobody asked [1].
        assumed: numbers that the rows tell little of, by name, with their value and its source.
        covered: what kinds of steps the rows were.
    """

    chip: str
    efficiency: Efficiency
    seen_log_ratio: NDArray[np.float64]
    unseen_log_ratio: NDArray[np.float64]
    assumed: Mapping[str, str]
    covered: Covered


def fit_and_score(chip: str, runs: Sequence[Run]) -> OwnFit:
    """Return the fit of all *runs*, measured rows of *chip*, scored by halves of its layouts."""
    halves = _halves(runs)
    if any(len(half) < LEAST_ROWS for half in halves):
        return fit_alone(chip, runs)
    first, second = halves
    unseen = np.concatenate(
        [_log_ratio(first, _fit(chip, second)), _log_ratio(second, _fit(chip, first))]
    )
    whole = fit_alone(chip, runs)
    return replace(
        whole,
        efficiency=replace(whole.efficiency, spread=drawn_spread(unseen, told=0.0)),
        unseen_log_ratio=unseen,
    )


def fit_alone(chip: str, runs: Sequence[Run]) -> OwnFit:
    """Return the fit of all *runs*, measured rows of *chip*, scored by nothing that is unseen."""
    fitted = _fit(chip, runs)
    seen = _log_ratio(runs, fitted)
    told = sum(max(0.0, share) for share in fitted.told_share.values())
    whole = with_sixteen_bits(fitted.efficiency, runs[0].accelerator)
    return OwnFit(
        chip=chip,
        efficiency=replace(whole, spread=drawn_spread(seen, told=told)),
        seen_log_ratio=seen,
        unseen_log_ratio=np.empty(0),
        assumed=_assumed(fitted) | _guessed_logits(fitted.efficiency, whole),
        covered=covered_by(kind_of_run(run) for run in runs),
    )


def _guessed_logits(fitted: Efficiency, whole: Efficiency) -> dict[str, str]:
    """Return the share in 16 bit that *whole* has and *fitted* has not, with its source."""
    wide = [one for one in whole.gemm_share if one not in fitted.gemm_share]
    if not wide:
        return {}
    return {
        LOGITS: f"{format_share(whole.gemm_share[wide[0]])}: no row in 16 bit, in which the "
        "vocabulary's product runs: in the usual ratio to the narrower one"
    }


def _assumed(fitted: Fitted) -> dict[str, str]:
    """Return the numbers that the rows do not tell, each with its value and where that is from."""
    reached = fitted.efficiency
    hosts = {f"host.{stack}": format_time(one_s) for stack, one_s in reached.host_s.items()}
    shares = {
        **{f"gemm.{name}": share for name, share in reached.gemm_share.items()},
        **{f"attention.{name}": share for name, share in reached.attention_share.items()},
        **{f"memory.{name}": share for name, share in reached.memory_share.items()},
        "inner": reached.inner_share,
        "outer": reached.outer_share,
    }
    values = {name: format_share(share) for name, share in shares.items()} | hosts
    values["step"] = format_time(reached.step_s)
    return {
        name: f"{values[name]}: the rows tell {100 * max(0.0, told):.0f} % of it, the rest is "
        f"{_DEFAULT_OF[name.partition('.')[0]]}"
        for name, told in fitted.told_share.items()
        if told < _TOLD_SHARE
    }


def _fit(chip: str, runs: Sequence[Run]) -> Fitted:
    return fit_chip(chip, thinned(runs), ())


def drawn_spread(log_ratio: NDArray[np.float64], *, told: float) -> float:
    """Return the spread of *log_ratio*, drawn to what machines have: ``few_rows_spread`` [1].

    A handful of rows that fit well by luck promise nothing of the next.

    Args:
        log_ratio: of the rows, each by a fit that has seen it or, with *told* 0, that has not [1].
        told: numbers of the fit that these rows tell: each takes one row's part of the error [1].

    >>> round(drawn_spread(np.zeros(5), told=0.0), 3)
    0.098
    >>> round(drawn_spread(np.full(1000, 0.2), told=0.0), 2)
    0.2
    """
    rows = len(log_ratio)
    return few_rows_spread(rows * robust_spread(log_ratio) ** 2, rows, told)


def with_own_pace(fitted: Efficiency) -> Efficiency:
    """Return *fitted* with the pace of its source in its numbers, where it saw one source alone.

    All times x pace: rates / pace, none above the nominal one. Rows of that source are predicted
    with it, so that a layout of the same machine is, too, and is off by no other machine's spread.
    Of several sources, neither is meant.
    """
    paces = tuple(fitted.pace_ratio.values())
    pace = paces[0] if len(paces) == 1 else 1.0

    def slowed(shares: Mapping[str, float]) -> dict[str, float]:
        return {name: min(1.0, share / pace) for name, share in shares.items()}

    return replace(
        fitted,
        machine_spread=0.0 if len(paces) == 1 else fitted.machine_spread,
        gemm_share=slowed(fitted.gemm_share),
        attention_share=slowed(fitted.attention_share),
        memory_share=slowed(fitted.memory_share),
        inner_share=min(1.0, fitted.inner_share / pace),
        outer_share=min(1.0, fitted.outer_share / pace),
        host_s={name: one_s * pace for name, one_s in fitted.host_s.items()},
        step_s=fitted.step_s * pace,
        pace_ratio={},
        clock_ratio={},
    )


def _halves(runs: Sequence[Run]) -> tuple[list[Run], list[Run]]:
    """Return the rows of every other layout, and of the others, in the order of a hash."""
    of_row = [content_key(run) for run in runs]
    keys = sorted(set(of_row), key=lambda key: (crc32(key.encode()), key))
    even = set(keys[::2])
    return (
        [run for run, key in zip(runs, of_row, strict=True) if key in even],
        [run for run, key in zip(runs, of_row, strict=True) if key not in even],
    )


def _log_ratio(runs: Sequence[Run], fitted: Fitted) -> NDArray[np.float64]:
    """Return log(predicted / measured) of *runs* by *fitted*, the pace of its sources in it."""
    predicted = predicted_s(batches(runs), {fitted.chip: fitted.efficiency}, len(runs))
    answer: NDArray[np.float64] = np.log(predicted / [run.measured_s for run in runs])
    return answer
