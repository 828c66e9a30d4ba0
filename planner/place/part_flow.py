"""Prices of the parts of one family by itself: groups cut into parts, domains filled with parts.

Both are paths: a group of n is a path from 0 to n whose steps are its parts, a domain one from 0 to
what it holds. As many steps of every length belong to groups as to domains; what that is worth is
the price of a part. (The arc-flow form of cutting stock: Valério de Carvalho 1999.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """The domains that parts can be seated in.

    Args:
        sizes: cells of the domains of each sort, ascending [1].
        counts: domains of each sort.
        spare: the domains need not be full.
    """

    sizes: tuple[int, ...]
    counts: tuple[int, ...]
    spare: bool

    @property
    def holding(self) -> tuple[int, ...]:
        """How many cells a domain may hold."""
        return tuple(range(1, self.sizes[-1] + 1)) if self.spare else self.sizes

    def limits(self, holding: Sequence[int]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return (rows, room): as many domains hold more than a size as are larger, at most.

        Args:
            holding: cells of each column [1].
        """
        smaller = np.array([0, *self.sizes[:-1]])
        room = np.cumsum(np.array(self.counts)[::-1])[::-1].astype(float)
        return (np.array(holding) > smaller[:, None]).astype(float), room


def alone_prices(costs: NDArray[np.float64], groups: int, stock: Stock) -> NDArray[np.float64]:
    """Return prices of parts k = 1 … n, nought where the linear programme fails [bytes].

    Args:
        costs: what a part of k members pays, k = 0 … n [bytes].
        groups: groups of n [1].
        stock: the domains.
    """
    from scipy.optimize import linprog  # noqa: PLC0415 - most placements never need it
    from scipy.sparse import csr_array, hstack, vstack  # noqa: PLC0415 - as above

    n, largest = len(costs) - 1, stock.sizes[-1]
    starts, parts = _steps(n, n)
    starts_held, parts_held = _steps(largest, n)
    ends = np.array(stock.holding)
    scale = max(float(costs.max()), 1e-300)
    none = csr_array((n, len(ends)))
    link = hstack([-_at(parts - 1, n), _at(parts_held - 1, n), none])
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
    rows, room = stock.limits(stock.holding)
    before = len(parts) + len(parts_held)
    counted = None if stock.spare else stock.counts
    solved = linprog(
        np.concatenate([np.zeros(len(parts)), costs[parts_held] / scale, np.zeros(len(ends))]),
        A_eq=vstack([link, cut, filled]),
        b_eq=np.concatenate([np.zeros(n), sides, np.zeros(largest + 1)]),
        A_ub=hstack([csr_array((len(rows), before)), csr_array(rows)]),
        b_ub=room,
        bounds=[(0, None)] * before + [(c or 0, c) for c in counted or [None] * len(ends)],
        method="highs",
    )
    if solved.status != 0:
        return np.zeros(n)
    prices: NDArray[np.float64] = solved.eqlin.marginals[:n] * scale
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
