"""Seatings with so many cells of every row in every domain: which columns a domain touches.

A *column* is the cells at one place of all rows. What rows tell of a domain is paid if it touches
no more columns than it holds cells of any row. Columns are given sets of domains that may be in
them, so that every row can still be dealt out (Hall's theorem); where that is not found, domains
lie side by side in every row. It proves nothing: what comes out is priced.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from planner.place.clock import look
from planner.place.merge import least_split

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.question import Question
    from planner.place.row_sweep import Rowed

_TRIED_MOST = 20_000  # sets of domains for one more column
_LOOKED_MOST = 20_000_000  # of them, times sets asked for: a tenth of a second
_MORE_MOST = 2  # columns that domains touch together beyond the fewest


def seated_rows(question: Question, rowed: Rowed) -> NDArray[np.int64] | None:
    """Return homes of all cells with so many of every row in every domain, shape [cells].

    None where nothing is known of the rows.
    """
    if rowed.held is None:
        return None
    places = _places(question, rowed.axes)
    rows = np.array(_rows(rowed.held.T))
    return np.ascontiguousarray(rows[places[0], places[1]])


def _places(
    question: Question, axes: tuple[int, ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the row and the column of every cell; families that are dear have columns together."""
    weight = {
        i: sum(least_split(question, one) for one in question.charges if i in one.axes)
        for i in range(len(question.sizes))
    }
    across = sorted((i for i in weight if i not in axes), key=lambda i: (-weight[i], i))
    digits = np.unravel_index(np.arange(question.cells), tuple(reversed(question.sizes)))
    found = []
    for some in (axes, across):
        steps = [1, *accumulate((question.sizes[i] for i in some), lambda a, b: a * b)]
        of_cells = np.zeros(question.cells, dtype=np.int64)
        for axis, step in zip(some, steps, strict=False):
            of_cells += step * digits[len(question.sizes) - 1 - axis]
        found.append(of_cells)
    return found[0], found[1]


def _rows(held: NDArray[np.int64]) -> list[list[int]]:
    """Return the domain in every place of every row.

    Args:
        held: cells of every row, by domain, shape [rows, domains].
    """
    whole = held.min(axis=0)
    order = np.argsort(-whole, kind="stable").tolist()
    first = [s for s in order for _ in range(int(whole[s]))]
    rest = held - whole
    some = np.flatnonzero(rest.any(axis=0))
    columns = int(rest[0].sum())
    sets = _sets(rest[:, some], columns) if columns else []
    found = []
    for row in rest:
        domains = None
        if sets is not None:
            domains = _matched([[some[k] for k in one] for one in sets], row.tolist())
        if domains is None:
            domains = [s for s, n in enumerate(row.tolist()) for _ in range(n)]
        found.append([*first, *(int(s) for s in domains)])
    return found


def _sets(held: NDArray[np.int64], columns: int) -> list[list[int]] | None:
    """Return the domains that may be in each column, so few that none touches more than it must.

    Any domains U hold so many cells of some row; at least as many columns must be open to one of
    them. Nearly the fewest in all if the fewest are not found.

    Args:
        held: cells of every row, by domain, shape [rows, domains].
        columns: cells of a row [1].
    """
    domains = held.shape[1]
    among = np.arange(1, 2**domains)
    has = (among[:, None] >> np.arange(domains) & 1).astype(np.int64)
    missed = (among[:, None] & among[None, :]) == 0  # by the set of a column, and those asked for
    spare = columns - (held @ has.T).max(axis=0)
    sizes = has.sum(axis=1)
    fewest = int(held.max(axis=0).sum())
    for more in range(_MORE_MOST + 1):
        chosen = _covering(missed, sizes, spare, columns, fewest + more)
        if chosen is not None:
            return [np.flatnonzero(has[k]).tolist() for k in chosen]
    return None


def _covering(
    missed: NDArray[np.bool_],
    sizes: NDArray[np.int64],
    spare: NDArray[np.int64],
    columns: int,
    most: int,
) -> list[int] | None:
    """Return a set of domains for every column, *most* domains in all, none missed too often."""
    alone = np.flatnonzero(sizes == 1)  # one domain: what it must be in yet is known from those
    in_columns = columns - spare[alone]
    few = spare.astype(np.int16)  # no more than columns, of a small grid
    begun: list[tuple[list[int], NDArray[np.int16], int]] = [([], few, 0)]
    tried = looked_at = 0
    while begun:
        look()
        chosen, left, used = begun.pop()
        if len(chosen) == columns:
            return chosen
        after = columns - len(chosen) - 1
        held = len(chosen) - (spare[alone] - left[alone])
        least = max(2 * after, int(np.maximum(in_columns - held, 0).sum()) - int(sizes.max()))
        lowest = chosen[-1] if chosen else 0
        some = lowest + np.flatnonzero(used + sizes[lowest:] + least <= most)
        tried, looked_at = tried + 1, looked_at + some.size * len(left)
        if tried > _TRIED_MOST or looked_at > _LOOKED_MOST:
            return None
        next_left = left - missed[some]
        fits = (next_left >= 0).all(axis=1)
        begun += [
            ([*chosen, k], of_set, used + int(sizes[k]))
            for k, of_set in zip(some[fits].tolist(), next_left[fits], strict=True)
        ]
    return None


def _matched(sets: list[list[int]], needs: list[int]) -> list[int] | None:
    """Return a domain for every column, each as often as it needs; None if there is no way.

    Args:
        sets: the domains that may be in each column.
        needs: columns that each domain takes [1].
    """
    owner = [-1] * len(sets)
    for domain, times in enumerate(needs):
        for _ in range(times):
            if not _given(sets, owner, domain, set()):
                return None
    return owner if -1 not in owner else None


def _given(sets: list[list[int]], owner: list[int], domain: int, seen: set[int]) -> bool:
    """Give a domain one more column, others changing theirs for it; return whether that is done."""
    for column, one in enumerate(sets):
        if domain not in one or column in seen or owner[column] == domain:
            continue
        seen.add(column)
        if owner[column] < 0 or _given(sets, owner, owner[column], seen):
            owner[column] = domain
            return True
    return False
