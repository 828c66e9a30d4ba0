"""Rows of a space by their sets of parallel degrees, and by their steps: twins told as one."""

from __future__ import annotations

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


def least_of_each(steps_s: NDArray[np.float64]) -> list[int]:
    """Return the positions of *steps_s* [s], the least first, one of those alike to 1e-9.

    Those that are infinite are of no interest.

    >>> least_of_each(np.array([3.0, np.inf, 2.0, 3.0 + 1e-12]))
    [2, 0]
    """
    fitting = np.flatnonzero(np.isfinite(steps_s))
    _, first = np.unique(np.round(np.log(steps_s[fitting]) * 1e9), return_index=True)
    found: list[int] = fitting[first].tolist()
    return found
