"""Which of two layouts is faster: pairs in the right order, layout regret, and their ceiling.

*Layout regret*: of the layouts measured for one model on one cluster, how much slower is the one
the model would pick than the fastest measured? *Pairs*: of two layouts that differ by more than
2 %, is the faster one predicted faster? The *ceiling* is what the model would reach if each layout
were corrected by what the others of its own group are off by: see ``smoothness.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from planner.steptime.calibrate import layout_key
from planner.steptime.columns import LayoutColumns
from planner.steptime.runs import Run
from planner.steptime.smoothness import LEAST_LAYOUTS, told_by_others

PAIR_SHARE = 0.02
"""Layouts whose measured steps differ by less are no pair: they count as equally fast [1]."""

LEAST_PICKED = 3
"""Layouts of a group whose pick can be regretted: of two, a pair says as much [1]."""

_DEGREES = ("tp", "cp", "ep", "etp", "dp", "pp", "vpp", "micro_batch")
_CHOICES = ("zero_stage", "recompute", "sequence_parallel")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The layouts of one model on one cluster.

    Args:
        name: source, model, GPUs.
        source: the source.
        layouts: layouts measured [1].
        pairs: pairs that differ by more than 2 % [1].
        right: of them, in the right order [1].
        regret_share: measured step of the layout predicted fastest over the fastest, less 1 [1].
        picked: row of the layout predicted fastest.
        fastest: row of the one measured fastest.
    """

    name: str
    source: str
    layouts: int
    pairs: int
    right: int
    regret_share: float
    picked: str
    fastest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layouts:
    """The layouts of one group: one run of each, and the means of all its runs [s]."""

    runs: tuple[Run, ...]
    measured_s: NDArray[np.float64]
    step_s: NDArray[np.float64]


def orders(runs: Sequence[Run], step_s: NDArray[np.float64]) -> tuple[Group, ...]:
    """Return the groups with at least two measured layouts, in order of first appearance.

    Runs of one layout, such as those of several releases, count as one: their mean.
    """
    return tuple(_order(layouts, layouts.step_s) for layouts in _grouped(runs, step_s))


def ceilings(runs: Sequence[Run], step_s: NDArray[np.float64]) -> tuple[Group, ...]:
    """Return how groups of many layouts would be ordered if the model's misses were smooth.

    Every layout's prediction is corrected by what the other layouts of its group tell of it. It is
    no prediction, as it needs the group measured: it says how much of what is ordered wrongly a
    better model of TP, PP, DP or the micro-batch could mend, and how much is scatter.

    Args:
        runs: rows of a table.
        step_s: their predicted steps [s].
    """
    return tuple(
        _order(layouts, _corrected_s(layouts))
        for layouts in _grouped(runs, step_s)
        if len(layouts.runs) >= LEAST_LAYOUTS
    )


def _grouped(runs: Sequence[Run], step_s: NDArray[np.float64]) -> tuple[_Layouts, ...]:
    members: dict[str, dict[str, list[int]]] = {}
    for position, run in enumerate(runs):
        if run.measured_s > 0:
            members.setdefault(run.group, {}).setdefault(layout_key(run), []).append(position)
    measured_s = np.array([run.measured_s for run in runs])
    return tuple(
        _Layouts(
            runs=tuple(runs[rows[0]] for rows in layouts.values()),
            measured_s=np.array([np.mean(measured_s[rows]) for rows in layouts.values()]),
            step_s=np.array([np.mean(step_s[rows]) for rows in layouts.values()]),
        )
        for layouts in members.values()
        if len(layouts) > 1
    )


def _order(layouts: _Layouts, step_s: NDArray[np.float64]) -> Group:
    measured = layouts.measured_s
    above, below = np.triu_indices(len(measured), 1)
    apart = np.abs(np.log(measured[above] / measured[below])) > np.log1p(PAIR_SHARE)
    same = (measured[above] < measured[below]) == (step_s[above] < step_s[below])
    pick, best = int(np.argmin(step_s)), int(np.argmin(measured))
    return Group(
        name=layouts.runs[0].group,
        source=layouts.runs[0].source,
        layouts=len(measured),
        pairs=int(np.sum(apart)),
        right=int(np.sum(apart & same)),
        regret_share=float(measured[pick] / measured[best] - 1.0),
        picked=layouts.runs[pick].name,
        fastest=layouts.runs[best].name,
    )


def _corrected_s(layouts: _Layouts) -> NDArray[np.float64]:
    """Return each layout's predicted step times what the others of its group are off by [s]."""
    log_ratio = np.log(layouts.measured_s / layouts.step_s)
    told = told_by_others(_doublings([run.columns for run in layouts.runs]), log_ratio)
    answer: NDArray[np.float64] = layouts.step_s * np.exp(told)
    return answer


def _doublings(columns: Sequence[LayoutColumns]) -> NDArray[np.float64]:
    """Return log2 of the degrees, and what is chosen beside them, layouts x numbers [1]."""
    degrees = np.array([[getattr(one, name) for name in _DEGREES] for one in columns], dtype=float)
    choices = np.array([[getattr(one, name) for name in _CHOICES] for one in columns], dtype=float)
    return np.concatenate([np.log2(degrees), choices], axis=1)
