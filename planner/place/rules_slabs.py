"""Named domains for whole slabs of the grid: part after part, each as a question of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from planner.place.question import Question
from planner.place.solve import solve_within

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.rules_bound import BoundRules

_CELLS = 20_000


def seated_by_slab(coarse: Question, rules: BoundRules) -> Iterator[NDArray[np.int64]]:
    """Yield seatings that take the parts of the grid one after the other, the most bound first.

    Only where all that may sit in the same domains is a set of values of one axis, such as a
    pipeline stage: such a part is a grid itself, and what it leaves free is there for the next.
    """
    if rules.allowed is None or coarse.cells > _CELLS:
        return
    for axis, n in enumerate(coarse.sizes):
        if n > 1 and (rows := rows_along(coarse, rules.allowed, axis)) is not None:
            home = _part_after_part(coarse, rows, axis)
            if home is not None:
                yield home


def _along(coarse: Question, values: NDArray[np.generic], axis: int) -> NDArray[np.generic]:
    """Return an array of cells with *axis* first, shape [n, other cells, ...]."""
    shape = tuple(reversed(coarse.sizes))
    grid = values.reshape(*shape, *values.shape[1:])
    first = np.moveaxis(grid, len(shape) - 1 - axis, 0)
    return first.reshape(coarse.sizes[axis], -1, *values.shape[1:])


def rows_along(coarse: Question, allowed: NDArray[np.bool_], axis: int) -> NDArray[np.bool_] | None:
    """Return the domains allowed to each value of *axis*; None if more than that decides."""
    rows = _along(coarse, allowed, axis)
    if (rows != rows[:, :1]).any():
        return None
    return np.asarray(rows[:, 0], dtype=bool)


def _part_after_part(
    coarse: Question, rows: NDArray[np.bool_], axis: int
) -> NDArray[np.int64] | None:
    parts, part_of = np.unique(rows, axis=0, return_inverse=True)
    left = np.array(coarse.capacities)
    home = np.full(coarse.cells, -1, np.int64)
    cells = np.asarray(_along(coarse, np.arange(coarse.cells), axis), np.int64)
    for part in np.argsort(parts.sum(axis=1), kind="stable").tolist():
        values = np.flatnonzero(part_of.ravel() == part)
        open_domains = np.flatnonzero(parts[part] & (left > 0))
        sizes = tuple(len(values) if i == axis else n for i, n in enumerate(coarse.sizes))
        mine = np.sort(cells[values].ravel())
        if left[open_domains].sum() < len(mine):
            return None
        question = replace(coarse, sizes=sizes, capacities=tuple(left[open_domains].tolist()))
        question = replace(
            question,
            charges=tuple(
                charge
                for charge in coarse.charges
                if not (charge.units and axis in charge.axes)
                and question.group_size(charge.axes) > 1
            ),
        )
        found = np.array(solve_within(question, time_limit_s=0.0).home)
        home[mine] = open_domains[found]
        left = left - np.bincount(home[mine], minlength=len(left))
    return home
