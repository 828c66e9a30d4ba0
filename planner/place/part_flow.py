"""Prices of the parts of one family by itself: groups cut into parts, domains filled with parts.

Both are paths: a group of n is a path from 0 to n whose steps are its parts, a domain one from 0 to
what it holds. As many steps of every length belong to groups as to domains; what that is worth is
the price of a part. (The arc-flow form of cutting stock: Valério de Carvalho 1999.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.place.clock import left_s

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


# so many parts of every size fewer in domains than in groups: of all best prices the lowest, which
# leave the most to be said by the other families
_MISSING = 1e-5
_METHODS = (("highs", 5_000), ("highs-ipm", 500))
"""Ways to solve, and steps of each at most: simplex mostly takes 200 to 4,000, but tens of
thousands where the domains' sizes go together badly, for which the other takes 200. Either ends
within some 3 s, which Ctrl-C waits for."""
_CUT_SHORT = 1  # as scipy says it


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Rows and sides of equations or limits.

    Args:
        rows: shape [rules, columns].
        sides: shape [rules].
    """

    rows: NDArray[np.float64]
    sides: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """The domains that parts can be seated in.

    Args:
        sizes: cells of the domains of each sort, ascending [1].
        counts: domains of each sort.
        cells: cells to seat [1].
    """

    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    cells: int

    @property
    def spare(self) -> bool:
        """Whether the domains need not be full."""
        return int(np.dot(self.sizes, self.counts)) > self.cells

    @property
    def holding(self) -> tuple[int, ...]:
        """How many cells a domain may hold."""
        return tuple(range(1, self.sizes[-1] + 1)) if self.spare else self.sizes

    def equations(self, holding: Sequence[int]) -> Rules:
        """Return the equations on how many domains hold so many cells each.

        Args:
            holding: cells of each column [1].
        """
        held = np.array(holding)
        if self.spare:
            return Rules(rows=held[None, :].astype(float), sides=np.array([float(self.cells)]))
        rows = (held == np.array(self.sizes)[:, None]).astype(float)
        return Rules(rows=rows, sides=np.array(self.counts, dtype=float))

    def limits(self, holding: Sequence[int]) -> Rules:
        """Return the rules on how many domains there are, rows @ x <= sides.

        As many hold more than a size as are larger, at most; and all cells need so many at least.

        Args:
            holding: cells of each column [1].
        """
        smaller = np.array([0, *self.sizes[:-1]])
        larger = np.cumsum(np.array(self.counts)[::-1])[::-1].astype(float)
        rows = (np.array(holding) > smaller[:, None]).astype(float)
        all_sizes = np.repeat(self.sizes[::-1], self.counts[::-1])
        needed = 1 + int(np.searchsorted(np.cumsum(all_sizes), self.cells))
        return Rules(
            rows=np.vstack([rows, -np.ones(len(holding))]), sides=np.append(larger, -needed)
        )


def alone_prices(part_bytes: NDArray[np.float64], groups: int, stock: Stock) -> NDArray[np.float64]:
    """Return prices of parts k = 1 … n, nought where the linear programme fails [bytes].

    A part that no domain can hold has the price of those that it can be cut into.

    Args:
        part_bytes: what a part of k members pays, k = 0 … n [bytes].
        groups: groups of n [1].
        stock: the domains.
    """
    from scipy.optimize import linprog  # noqa: PLC0415 - most placements never need it
    from scipy.sparse import csr_array, hstack, vstack  # noqa: PLC0415 - as above

    n, largest = len(part_bytes) - 1, stock.sizes[-1]
    most = min(n, largest)  # cells of a part that a domain can hold
    starts, parts = _steps(n, most)
    starts_held, parts_held = _steps(largest, most)
    ends = np.array(stock.holding)
    scale = max(float(part_bytes.max()), 1e-300)
    none = csr_array((most, len(ends)))
    link = hstack([-_at(parts - 1, most), _at(parts_held - 1, most), none])
    cut = hstack(
        [
            _at(starts + parts, n + 1) - _at(starts, n + 1),
            csr_array((n + 1, len(parts_held) + len(ends))),
        ]
    )
    filled = hstack(
        [
            csr_array((largest + 1, len(parts))),
            _at(starts_held + parts_held, largest + 1) - _at(starts_held, largest + 1),
            _at(np.zeros_like(ends), largest + 1) - _at(ends, largest + 1),
        ]
    )
    sides = np.zeros(n + 1)
    sides[0], sides[n] = -groups, groups
    limits = stock.limits(stock.holding)
    before = len(parts) + len(parts_held)
    counted = None if stock.spare else stock.counts
    missing = _MISSING if stock.spare else 0.0
    for method, steps in _METHODS:
        solved = linprog(
            np.concatenate(
                [np.zeros(len(parts)), part_bytes[parts_held] / scale, np.zeros(len(ends))]
            ),
            A_eq=vstack([link, cut, filled]),
            b_eq=np.concatenate([np.full(most, -missing), sides, np.zeros(largest + 1)]),
            A_ub=hstack([csr_array((len(limits.rows), before)), csr_array(limits.rows)]),
            b_ub=limits.sides,
            bounds=[(0, None)] * before + [(c or 0, c) for c in counted or [None] * len(ends)],
            method=method,
            options={"maxiter": steps, "time_limit": left_s()},
        )
        if solved.status != _CUT_SHORT:
            break
    if solved.status != 0:
        return np.zeros(n)
    prices = np.zeros(n)
    prices[:most] = solved.eqlin.marginals[:most] * scale
    # no domain holds a larger part: it is no dearer than in parts that one can hold
    for k in range(most, n):
        prices[k] = prices[most - 1] + prices[k - most]
    return prices


def _steps(length: int, longest: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (starts, lengths) of the steps of all paths from 0 to *length*."""
    start, part = np.meshgrid(np.arange(length), np.arange(1, longest + 1), indexing="ij")
    fits = start + part <= length
    return start[fits], part[fits]


def _at(rows: NDArray[np.int64], height: int) -> Any:
    """Return a sparse matrix with a one in each column, at its row."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - most placements never need it

    return csr_array((np.ones(len(rows)), (rows, np.arange(len(rows)))), (height, len(rows)))
