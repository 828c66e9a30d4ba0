"""Rows of a space by their sets of parallel degrees: the fastest of each, twins told as one."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from planner.search.space import DEGREES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.search.space import Space

    Degrees = tuple[int, ...]


def degrees_of(space: Space, row: int) -> Degrees:
    """Return the parallel degrees of one row."""
    return tuple(int(space.table[name][row]) for name in DEGREES)


def first_of_sets(
    space: Space,
    rows: NDArray[np.int64],
    steps_s: NDArray[np.float64],
    wanted: Collection[Degrees] = (),
) -> dict[Degrees, int]:
    """Return the position of the fastest row of each set of degrees, the fastest set first.

    Sets of one step to 1e-9 are twins: the first stands for them, or one that is wanted.

    Args:
        space: whose rows.
        rows: ascending.
        steps_s: theirs, infinite where a row is of no interest [s].
        wanted: sets that stand for their twins.
    """
    fitting = np.flatnonzero(np.isfinite(steps_s))
    alike = np.round(np.log(steps_s[fitting]) * 1e9)
    first: dict[Degrees, int] = {}
    unlike: dict[float, Degrees] = {}
    for position in np.argsort(alike, kind="stable").tolist():
        at, twins = int(fitting[position]), float(alike[position])
        one = degrees_of(space, int(rows[at]))
        if first.setdefault(one, at) == at and (one in wanted or twins not in unlike):
            unlike[twins] = one
    return {one: first[one] for one in unlike.values()}
