"""What a domain pays by the cells that it holds of every row of a grid.

The *rows* of a grid are the sets of its cells that agree along some axes, those of the rows. A
domain that holds so many cells of each pays least if it holds the first ones of every row: then it
touches as few groups as it can, and those that it shares with others are as full as they can be.
Proof: ``FORMULATION.md``, "Row by row".
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations, product
from math import factorial, inf, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.spread import terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from planner.place.question import Question
    from planner.place.spread import Term

_WAYS_MOST = 4_000  # to split a domain's cells among the rows, past which none is told
_TRIED_MOST = 40_000  # first parts of such ways that are looked at
_ORDERS_MOST = 200  # of the rows of several axes that are looked at
_ORDERED_MOST = 4  # rows of several axes: each order of each way is priced
_KEYS_MOST = 2**62
_RAISED_SHARE = 0.02  # of what cells cost at most, by which a limit is raised
_ROUNDING = 1e-11  # relative; of sums of prices


@dataclass(frozen=True, slots=True, kw_only=True)
class _Crossing:
    """A family whose groups take up several rows, and equal places of each.

    Args:
        width: cells of a group in each row, side by side [1].
        blocks: the rows that groups run through together, shape [blocks, rows of one].
        paid_bytes: by the cells held of a group, shape [cells of a group + 1] [bytes].
    """

    width: int
    blocks: NDArray[np.int64]
    paid_bytes: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """Ways to split a number of cells among rows, whatever their order, the cheapest first.

    Args:
        held: cells of each row, in descending order, shape [ways, rows].
        cost_bytes: what a domain pays at least, in the best order, shape [ways] [bytes].
    """

    held: NDArray[np.int64]
    cost_bytes: NDArray[np.float64]


class RowCosts:
    """What domains pay by the cells of every row.

    Args:
        question: the grid and its charges.
        axes: of the rows: cells of one row agree along them.
    """

    def __init__(self, question: Question, axes: tuple[int, ...]) -> None:
        sizes = question.sizes
        self.axes = axes
        self.rows = prod(sizes[i] for i in axes)
        self.length = question.cells // self.rows
        self.alike = sum(sizes[i] > 1 for i in axes) == 1  # in whatever order
        self.in_row_bytes = np.zeros(self.length + 1)
        self.crossing: list[_Crossing] = []
        held = np.arange(self.length + 1)
        for term in terms(question):
            paid = _paid_bytes(term)
            along = tuple(i for i in axes if i in term.axes and sizes[i] > 1)
            width = prod(sizes[i] for i in term.axes if i not in axes)
            if along:
                blocks = _blocks(sizes, axes, along)
                self.crossing.append(_Crossing(width=width, blocks=blocks, paid_bytes=paid))
            else:
                self.in_row_bytes += paid[width] * (held // width) + paid[held % width]
        self._known_steps: dict[int, tuple[NDArray[np.float64], NDArray[np.float64]]] = {}
        self._orders = np.zeros((0, self.rows), dtype=np.int64)
        if not self.alike:
            self._orders = _orders(sizes, axes)

    def paid_bytes(self, held: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what a domain pays at least that holds so many cells of every row [bytes].

        Args:
            held: shape [ways, rows].
        """
        total: NDArray[np.float64] = self.in_row_bytes[held].sum(axis=1)
        for one in self.crossing:
            first = np.arange(0, self.length, one.width)[None, :, None]
            for block in one.blocks:
                of_groups = np.clip(held[:, None, block] - first, 0, one.width).sum(axis=2)
                total = total + one.paid_bytes[of_groups].sum(axis=1)
        return total

    def ordered(self, held: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return an order of rows for each way, such that alike ways come to agree in it.

        Args:
            held: shape [ways, rows].
        """
        if self.alike:
            return np.argsort(-held, axis=1, kind="stable")
        digits = (self.length + 1) ** np.arange(self.rows)[::-1]
        keys = held[:, self._orders] @ digits
        found: NDArray[np.int64] = self._orders[keys.argmax(axis=1)]
        return found

    def cheapest_bytes(self, cells: int) -> float:
        """Return the least that a domain of so many cells pays, or less if that is hard [bytes].

        The limit below which ways are looked for is raised until one is found.
        """
        floor = float(self._steps(cells)[1][0, cells, self.length])
        limit = floor + _ROUNDING * abs(floor)
        step = _RAISED_SHARE * max(abs(floor), float(self.in_row_bytes.max(initial=0.0)))
        while step > 0:
            ways = self.below(cells, limit)
            if ways is None:
                break
            if len(ways.held):
                return float(ways.cost_bytes[0])
            floor, limit, step = limit, limit + step, 2 * step
        return floor

    def below(self, cells: int, limit_bytes: float) -> Ways | None:
        """Return all ways to split so many cells that cost *limit_bytes* at most.

        None if they are too many.
        """
        listed = self._listed(cells, limit_bytes)
        if listed is None:
            return None
        held = np.array(listed, dtype=np.int64).reshape(len(listed), self.rows)
        cost = self._best_order(held)
        order = np.lexsort((*held.T, cost))
        order = order[cost[order] <= limit_bytes]
        return Ways(held=held[order], cost_bytes=cost[order])

    def _best_order(self, held: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what ways pay with their rows in the cheapest order [bytes]."""
        if self.alike or not len(held):
            return self.paid_bytes(held)
        return np.array(
            [
                self.paid_bytes(np.array(sorted(set(permutations(one))))).min()
                for one in held.tolist()
            ]
        )

    def _steps(self, cells: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return what a row adds at least by its place among the fullest, and what all after it do.

        Returns:
            Arrays [rows, length + 1], by the cells held of a row; and [rows + 1, cells + 1,
            length + 1], by the cells that are left and the most of a row [bytes].
        """
        if cells not in self._known_steps:
            self._known_steps[cells] = self._steps_of(cells)
        return self._known_steps[cells]

    def _steps_of(self, cells: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        n = np.arange(min(self.length, cells) + 1)
        adds = np.full((self.rows, self.length + 1), inf)
        for rank in range(self.rows):
            paid = self.in_row_bytes[n].copy()
            for one in self.crossing:
                before = min(rank, one.blocks.shape[1] - 1) * one.width
                rest = n % one.width
                full = np.minimum(before, np.maximum(cells - one.width, 0))
                some = np.minimum(before, cells - rest)
                paid += (
                    n
                    // one.width
                    * (
                        one.paid_bytes[np.minimum(full + one.width, len(one.paid_bytes) - 1)]
                        - one.paid_bytes[full]
                    )
                )
                paid += one.paid_bytes[some + rest] - one.paid_bytes[some]
            adds[rank, n] = paid
        after = np.full((self.rows + 1, cells + 1, self.length + 1), inf)
        after[self.rows, 0] = 0.0
        for rank in reversed(range(self.rows)):
            for most in range(self.length + 1):
                least = after[rank, :, most - 1].copy() if most else np.full(cells + 1, inf)
                if most <= cells:
                    left = after[rank + 1, : cells + 1 - most, most] + adds[rank, most]
                    least[most:] = np.minimum(least[most:], left)
                after[rank, :, most] = least
        return adds, after

    def _listed(self, cells: int, limit_bytes: float) -> list[tuple[int, ...]] | None:
        """Return ways in descending order of the rows' cells that may cost the limit at most."""
        adds, after = self._steps(cells)
        slack = limit_bytes + _ROUNDING * abs(limit_bytes)
        found: list[tuple[int, ...]] = []
        begun: list[tuple[tuple[int, ...], int, int, float]] = [((), cells, self.length, 0.0)]
        tried = 0
        while begun:
            parts, left, most, paid = begun.pop()
            rank = len(parts)
            if rank == self.rows:
                found.append(parts)
                continue
            tried += 1
            if tried > _TRIED_MOST or len(found) > _WAYS_MOST:
                return None
            n = np.arange(min(most, left) + 1)
            total = paid + adds[rank, n] + after[rank + 1, left - n, n]
            begun += [
                ((*parts, k), left - k, k, paid + float(adds[rank, k]))
                for k in np.flatnonzero(total <= slack).tolist()
            ]
        return found


def row_axes(question: Question) -> Iterator[tuple[int, ...]]:
    """Yield the axes that rows may have: single ones, and a few small rows of several."""
    sizes = question.sizes
    live = [i for i, n in enumerate(sizes) if n > 1]
    for chosen in product((False, True), repeat=len(live)):
        axes = tuple(i for i, one in zip(live, chosen, strict=True) if one)
        if not axes or len(axes) == len(live):
            continue
        rows = prod(sizes[i] for i in axes)
        length = question.cells // rows
        if len(axes) == 1 or (
            rows <= _ORDERED_MOST
            and prod(factorial(sizes[i]) for i in axes) <= _ORDERS_MOST
            and (length + 1) ** rows <= _KEYS_MOST
        ):
            yield axes


def _paid_bytes(term: Term) -> NDArray[np.float64]:
    """Return what a domain pays that holds 0, 1, … cells of a group; concave [bytes]."""
    paid = np.zeros(term.size + 1)
    if term.part_bytes:
        paid += np.array(term.part_bytes)
    paid[1:] += term.touch_bytes
    paid[1:-1] += term.ring_bytes
    return paid


def _blocks(
    sizes: tuple[int, ...], axes: tuple[int, ...], along: tuple[int, ...]
) -> NDArray[np.int64]:
    """Return the rows that agree along all their axes but *along*, [blocks, rows of one]."""
    kept = [axis for axis in axes if axis not in along]
    grid = np.arange(prod(sizes[i] for i in axes)).reshape([sizes[i] for i in reversed(axes)])
    places = [len(axes) - 1 - axes.index(axis) for axis in (*kept, *along)]
    blocks: NDArray[np.int64] = grid.transpose(places).reshape(
        prod(sizes[i] for i in kept), prod(sizes[i] for i in along)
    )
    return blocks


def _orders(sizes: tuple[int, ...], axes: tuple[int, ...]) -> NDArray[np.int64]:
    """Return all orders of rows that come of orders of the values of each axis, [orders, rows]."""
    grid = np.arange(prod(sizes[i] for i in axes)).reshape([sizes[i] for i in reversed(axes)])
    orders = product(*(permutations(range(sizes[i])) for i in reversed(axes)))
    return np.array([grid[np.ix_(*one)].ravel() for one in orders], dtype=np.int64)
