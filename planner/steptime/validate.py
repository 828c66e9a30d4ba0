"""Predictions against measurements: errors by source, order of pairs, regret, a constant MFU.

A *constant MFU* per accelerator is the line that a model must beat on every source. Pairs and
regret are those of ``ranking.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.errors import InputError
from planner.steptime.calibrate import content_half, fit, fitting_half
from planner.steptime.ranking import LEAST_PICKED, orders
from planner.steptime.rates import Efficiency
from planner.steptime.runs import Run, batches, predicted_s
from planner.steptime.step import model_flops
from planner.steptime.uncertainty import interval_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """How well the steps of one source are predicted.

    Args:
        source: the source.
        rows: rows scored [1].
        mape_share: mean of |predicted / measured - 1| [1].
        median_share, p90_share, worst_share: of the same [1].
        bias_share: mean of predicted / measured - 1 [1].
        constant_mfu_share: mean error of one MFU per accelerator, set on these very rows [1]; NaN
            where each accelerator has one row, which it fits exactly.
        published_share: mean error of the predictions published for these rows, NaN if none.
        pairs: pairs of one group that differ by more than 2 % [1].
        pairs_right_share: of them, in the right order [1]; NaN where there are none.
        regret_share: the largest regret of a group with a pair and at least three layouts [1];
            NaN if there is none.
    """

    source: str
    rows: int
    mape_share: float
    median_share: float
    p90_share: float
    worst_share: float
    bias_share: float
    constant_mfu_share: float
    published_share: float
    pairs: int
    pairs_right_share: float
    regret_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """How many measured rows the printed interval holds.

    Args:
        held, rows: rows held, of so many [1].
        mean_share: the share held of each source, their mean [1].
    """

    held: int
    rows: int
    mean_share: float


def inside_interval(
    runs: Sequence[Run], step_s: NDArray[np.float64], reached: Sequence[Efficiency]
) -> Held | None:
    """Return how many measured rows the printed interval holds; None where none is measured.

    Args:
        runs: rows of a table.
        step_s: their predicted steps [s].
        reached: of each row, the numbers whose interval a step of it has.
    """
    inside: dict[str, list[bool]] = {}
    for run, one_s, own in zip(runs, step_s, reached, strict=True):
        if run.measured_s > 0:
            low_s, high_s = interval_s(float(one_s), own.spread, own.machine_spread)
            inside.setdefault(run.source, []).append(low_s <= run.measured_s <= high_s)
    if not inside:
        return None
    return Held(
        held=sum(sum(some) for some in inside.values()),
        rows=sum(len(some) for some in inside.values()),
        mean_share=float(np.mean([np.mean(some) for some in inside.values()])),
    )


def scores(runs: Sequence[Run], step_s: NDArray[np.float64]) -> tuple[Score, ...]:
    """Return the score of every source, in order of first appearance."""
    order = dict.fromkeys(run.source for run in runs if run.measured_s > 0)
    return tuple(_score(source, runs, step_s) for source in order)


def _score(source: str, runs: Sequence[Run], step_s: NDArray[np.float64]) -> Score:
    rows = [i for i, run in enumerate(runs) if run.source == source and run.measured_s > 0]
    mine = [runs[i] for i in rows]
    measured = np.array([run.measured_s for run in mine])
    error = step_s[rows] / measured - 1.0
    size = np.abs(error)
    published = np.array([run.published_s for run in mine])
    stated = published > 0
    groups = orders(mine, step_s[rows])
    pairs = sum(group.pairs for group in groups)
    right = sum(group.right for group in groups)
    picks = [group for group in groups if group.layouts >= LEAST_PICKED and group.pairs]
    regrets = [group.regret_share for group in picks]
    return Score(
        source=source,
        rows=len(rows),
        mape_share=float(np.mean(size)),
        median_share=float(np.median(size)),
        p90_share=float(np.percentile(size, 90)),
        worst_share=float(np.max(size)),
        bias_share=float(np.mean(error)),
        constant_mfu_share=constant_mfu_error(mine),
        published_share=(
            float(np.mean(np.abs(published[stated] / measured[stated] - 1.0)))
            if np.any(stated)
            else float("nan")
        ),
        pairs=pairs,
        pairs_right_share=right / pairs if pairs else float("nan"),
        regret_share=max(regrets, default=float("nan")),
    )


def ideal_s(run: Run) -> float:
    """Return the step at an MFU of 1: model FLOPs over the 16-bit peaks of all GPUs [s]."""
    columns = run.columns
    peak = run.accelerator.peak_flops_per_s.get("bf16", 1.0)
    return float(model_flops(run.model, columns)) / (float(columns.gpus) * peak)


def constant_mfu_error(runs: Sequence[Run]) -> float:
    """Return the mean error of one MFU per accelerator, the median of these rows' own [1].

    NaN where no accelerator has two rows: of one it is the row itself.
    """
    ratio = np.array([run.measured_s / ideal_s(run) for run in runs])
    chips = np.array([run.chip for run in runs])
    error = np.zeros(len(runs))
    for chip in np.unique(chips):
        mine = chips == chip
        error[mine] = np.abs(np.median(ratio[mine]) / ratio[mine] - 1.0)
    if len(np.unique(chips)) == len(runs):
        return float("nan")
    return float(np.mean(error))


def predict(runs: Sequence[Run], efficiencies: Mapping[str, Efficiency]) -> NDArray[np.float64]:
    """Return the predicted step of every run with *efficiencies* by accelerator [s]."""
    return predicted_s(batches(runs), efficiencies, len(runs))


@dataclass(frozen=True, slots=True, kw_only=True)
class Refitted:
    """Predictions by fits on other rows of the same table.

    Args:
        step_s: predicted steps, in table order [s].
        unfitted: accelerator to its rows that were predicted by defaults, because the other rows
            had too few of it to fit on [1].
    """

    step_s: NDArray[np.float64]
    unfitted: Mapping[str, int]


def predict_halves(runs: Sequence[Run]) -> Refitted:
    """Return predictions of each half of the layouts from a fit on the other half.

    Raises:
        InputError: one half has no measured row.
    """
    sides = [content_half(run) for run in runs]
    if {side for side, run in zip(sides, runs, strict=True) if run.measured_s > 0} != {True, False}:
        raise InputError("fits on each half of the layouts need measured rows in both: give more")
    return _refitted(runs, sides)


def predict_left_out(runs: Sequence[Run]) -> Refitted:
    """Return predictions of each source from a fit on all others.

    Raises:
        InputError: only one source has measured rows.
    """
    sources = sorted({run.source for run in runs if run.measured_s > 0})
    if len(sources) < 2:
        known = sources[0] if sources else "none"
        raise InputError(f"fits on all other sources need measured rows of two; there is {known}")
    return _refitted(runs, [run.source for run in runs])


def _refitted(runs: Sequence[Run], labels: Sequence[object]) -> Refitted:
    """Predict the rows of each label by a fit on the rows of all others."""
    step_s = np.full(len(runs), np.nan)
    unfitted: dict[str, int] = {}
    for label in dict.fromkeys(labels):
        rows = [i for i, one in enumerate(labels) if one == label]
        fits = fit([run for run, one in zip(runs, labels, strict=True) if one != label])
        mine = [runs[i] for i in rows]
        step_s[rows] = predict(mine, {chip: one.efficiency for chip, one in fits.items()})
        for run in mine:
            if run.chip not in fits:
                unfitted[run.chip] = unfitted.get(run.chip, 0) + 1
    return Refitted(step_s=step_s, unfitted=unfitted)


def predict_by_halves(
    runs: Sequence[Run], halves: tuple[Mapping[str, Efficiency], Mapping[str, Efficiency]]
) -> NDArray[np.float64]:
    """Return predictions by fits that are on file: of each run, the one that has not seen it [s].

    Args:
        runs: measured rows.
        halves: by accelerator, fitted on the first half of the layouts, and on the second.
    """
    first, second = predict(runs, halves[0]), predict(runs, halves[1])
    return np.where([fitting_half(run) for run in runs], second, first)


def predict_by_left_out(
    runs: Sequence[Run], left_out: Mapping[str, Mapping[str, Efficiency]]
) -> NDArray[np.float64]:
    """Return predictions by fits on file that saw none of a run's source [s].

    Args:
        runs: measured rows.
        left_out: source to the numbers fitted on all others, by accelerator; an accelerator that
            is not listed is predicted by its defaults.
    """
    answer = np.full(len(runs), np.nan)
    for source in dict.fromkeys(run.source for run in runs):
        rows = [i for i, run in enumerate(runs) if run.source == source]
        answer[rows] = predict([runs[i] for i in rows], left_out[source])
    return answer


def explained(run: Run, error_share: float) -> str:
    """Return what may explain that a run is off by *error_share*."""
    columns, reasons = run.columns, []
    if columns.tokens * run.model.hidden < 2**22 and error_share < 0:
        reasons.append("tiny work: the host's launches set the pace, which varies by framework")
    if run.model.experts:
        reasons.append(
            "MoE: routing, permutation and host launches changed between releases by up to 2x"
        )
    if run.columns.tp > run.supernode:
        reasons.append("TP crosses supernodes")
    if run.weak:
        reasons.append("the source calls the row weak")
    elif error_share < 0 and not run.model.experts and columns.micro_batches <= 2:
        reasons.append("one or two large micro-batches: memory may be short and thrash")
    reasons += [f"{name}: {why}" for name, why in run.assumed.items()]
    return "; ".join(reasons) or "nothing in the row explains it: repeat runs differ by 6 %"
