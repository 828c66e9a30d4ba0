"""What bounds and rules leave open, to a solver: by slices first, then one binary for each seat."""

from __future__ import annotations

from functools import partial
from math import inf, log, prod
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.place.by_sheets import by_sheets
from planner.place.by_stages import again_by_stages, by_stages
from planner.place.merge import (
    MET,
    bounds_by_merging,
    coarse_home,
    kept,
    kept_together,
    least_when_split,
    merged,
    merges,
)
from planner.place.milp import solve_milp, solve_slices
from planner.place.partition import partition_bound
from planner.place.question import Kind, refine_home
from planner.place.shapes import shape_rules, whole_bound
from planner.place.whole_numbers import FEW, MANY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from planner.place.milp import Solved
    from planner.place.question import Question
    from planner.place.solve import Work

_SOLVER_SEATS = 6000  # cells x domains past which the assignment model is not worth building
_EXACT_SEATS = 200  # cells x domains up to which nothing is merged
_SHEETS_SHARE = 0.6  # of the time left, for parts of sheets: most of what is open ends there
_PARTS_SHARE = 0.4  # of the time left, for the prices of parts
_FURTHER = 1.02  # of bounds: a method that begins so much higher is likely to end the proof
_SHAPES_S = 10.0  # seconds for the choice of shapes at most
_SLICES_SHARE = 0.5  # of the time left, for slices; the rest is for one binary each seat
_WAYS_LIMIT = 7000  # ways to seat one slice
_LEVELS_LIMIT = 600  # level variables of all-to-all charges along the axis of the slices


def finish(work: Work, ends_s: float) -> None:
    """Let a solver prove or better what *work* has, until ``time.monotonic()`` is *ends_s*."""
    first = (by_stages, _by_many_parts)
    sheets_bytes = max((one.bound_bytes for one in work.priced.values()), default=0.0)
    if sheets_bytes > work.stages_bytes * _FURTHER:
        first = (_by_many_parts, by_stages)
    for attempt in (*first, _by_shapes, _by_parts, _by_slices, _by_seats):
        if monotonic() < ends_s:
            attempt(work, ends_s)
        if work.proved:
            return
    if work.stages_open and monotonic() < ends_s:  # what others left of the time is for that choice
        again_by_stages(work, ends_s)


def _by_many_parts(work: Work, ends_s: float) -> bool:
    return by_sheets(work, monotonic() + _SHEETS_SHARE * (ends_s - monotonic()), MANY)


def by_few_parts(work: Work, ends_s: float) -> bool:
    """Choose parts of sheets from few, shortly; return whether that proves."""
    return by_sheets(work, ends_s, FEW)


def _by_parts(work: Work, ends_s: float) -> None:
    """Raise the bound by what parts of every size are worth: proves, but seats nothing."""
    best = work.best
    priced = partial(_priced_parts, monotonic() + _PARTS_SHARE * (ends_s - monotonic()))
    for bound_bytes in bounds_by_merging(work.question, best.home, best.cut_bytes, priced):
        if work.raise_bound(bound_bytes):
            return


def _priced_parts(
    ends_s: float, question: Question, home: NDArray[np.int64], cut_bytes: float
) -> Iterator[float]:
    yield partition_bound(question, home, cut_bytes, ends_s=ends_s)


def _by_shapes(work: Work, ends_s: float) -> None:
    """Choose a shape for every domain in whole numbers: proves, but seats nothing."""
    best = work.best
    rules = shape_rules(kept(work.question, best.home, best.cut_bytes).question, best.cut_bytes)
    left_s = ends_s - monotonic()
    if rules is None or left_s <= 0:
        return
    work.believe(whole_bound(rules, min(left_s, _SHAPES_S)))


def _by_slices(work: Work, ends_s: float) -> None:
    """Count slices, on the grid of the boxes that no better seating splits."""
    question, best = work.question, work.best
    sides = kept_together(question, best.home, best.cut_bytes)
    coarse = merged(question, sides)
    axis = sliceable_axis(coarse)
    half_s = (ends_s - monotonic()) * _SLICES_SHARE
    if axis is None or half_s <= 0:
        return
    solved = solve_slices(coarse, axis, _unit(work), half_s, work.seed)
    _take(work, solved, sides, f"solver on {coarse.sizes[axis]} slices of the grid")
    work.believe(solved.lower_bound_bytes)


def _by_seats(work: Work, ends_s: float) -> None:
    """Solve the assignment on the most promising grids.

    First the coarsest whose boxes cost too much to split, because its optimum is the question's;
    then the finest, for a better seating only.
    """
    question = work.question
    for sides in _grids(work):
        left_s = ends_s - monotonic()
        if left_s <= 0:
            return
        grid = merged(question, sides)
        start = coarse_home(question, sides, work.best.home)
        solved = solve_milp(grid, start, _unit(work), left_s, work.seed)
        split = least_when_split(question, sides)
        _take(work, solved, sides, f"solver on a grid of {grid.cells} blocks")
        if split >= work.best.cut_bytes * (1 - MET):
            split = inf  # no better seating parts a box
        if work.believe(min(solved.lower_bound_bytes, split)):
            return


def _grids(work: Work) -> list[tuple[int, ...]]:
    question, best = work.question, work.best
    domains = len(question.capacities)
    if question.cells * domains <= _EXACT_SEATS:
        return [tuple(1 for _ in question.sizes)]
    fitting = [
        sides
        for sides in merges(question, best.home)
        if question.cells // prod(sides) * domains <= _SOLVER_SEATS
    ]
    proving = [g for g in fitting if least_when_split(question, g) >= best.cut_bytes * (1 - MET)]
    return list(dict.fromkeys([*sorted(proving, key=prod, reverse=True)[:1], *fitting[:1]]))


def _unit(work: Work) -> float:
    return max(work.best.cut_bytes / 1000.0, 1e-300)


def _take(work: Work, solved: Solved, sides: tuple[int, ...], method: str) -> None:
    if solved.home is not None:
        work.offer(refine_home(work.question, sides, np.array(solved.home)), method)


def sliceable_axis(question: Question) -> int | None:
    """Return the axis to cut into slices, the longest that leaves few enough ways; None if none."""
    domains = len(question.capacities)
    fitting = []
    for axis, n in enumerate(question.sizes):
        along = [charge for charge in question.charges if axis in charge.axes]
        ordered = any(charge.kind in (Kind.CHAIN, Kind.ENDS) for charge in along)
        levels = sum(
            question.cells // n * domains * question.group_size(charge.axes)
            for charge in along
            if charge.kind in (Kind.PAIRS, Kind.COPIES)
        )
        few = question.cells // n * log(domains) <= log(_WAYS_LIMIT)
        if n > 1 and not ordered and few and levels <= _LEVELS_LIMIT:
            fitting.append((n, axis))
    return max(fitting)[1] if fitting else None
