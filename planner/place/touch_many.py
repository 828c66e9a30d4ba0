"""``touch_search.least_cost`` of several numbers of cells side by side.

A search of its own spends most of its time on calls for a few vectors each. Numbers of cells whose
families have the same order of prices go through it together: every vector carries the number that
it belongs to. Where vectors are too many for that, fewer numbers go together, one in the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.place import touch_search
from planner.place.touch_lines import ROUNDING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from planner.place.touch_search import Search

    Totals = Callable[[NDArray[np.int64], NDArray[np.int64], Sequence[int]], NDArray[np.float64]]
    Room = Callable[[NDArray[np.int64], NDArray[np.int64], Sequence[int]], NDArray[np.bool_]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paid:
    """What families cost, of touches that each belong to one of several numbers of cells.

    Args:
        totals: of touches [vectors, k], the number that each belongs to, and the k families; as in
            ``least_cost``.
        beyond: the same.
        room: the same.
    """

    totals: Totals | None
    beyond: Totals | None
    room: Room | None


class _TooManyError(Exception):
    """There are too many vectors for so many numbers of cells."""


def least_costs(searches: Sequence[Search | None], paid: Paid) -> NDArray[np.float64]:
    """Return the bound of each search; infinite where there is none, shape [searches] [bytes].

    Args:
        searches: of one grid and the same families, each of its own number of cells.
        paid: what the families cost; each search would say the same of its own number.
    """
    least = np.full(len(searches), inf)
    alike: dict[tuple[int, ...], list[int]] = {}
    for k, search in enumerate(searches):
        if search is not None:
            alike.setdefault(tuple(search.order), []).append(k)
    todo = list(alike.values())
    while todo:
        numbers = todo.pop()
        some = [search for k in numbers if (search := searches[k]) is not None]
        if len(some) == 1:
            least[numbers] = some[0].least()
            continue
        try:
            least[numbers] = _Together(some, np.array(numbers), paid).least()
        except _TooManyError:
            half = len(numbers) // 2
            todo += [numbers[:half], numbers[half:]]
    return least


@dataclass(frozen=True, slots=True, kw_only=True)
class _Level:
    """What the families that are still open cost at least, by number of cells and inequality.

    The names are those of ``Search.at_least``; all have the shape [numbers, inequalities].
    """

    live: NDArray[np.bool_]
    sums: NDArray[np.float64]
    mean: NDArray[np.float64]
    rest_bytes: NDArray[np.float64]


class _Together:
    """Searches with the same order of families."""

    def __init__(self, searches: Sequence[Search], numbers: NDArray[np.int64], paid: Paid) -> None:
        self.searches, self.numbers, self.paid = searches, numbers, paid
        self.order = searches[0].order
        self.back = np.argsort(self.order, kind="stable")
        self.costs = [np.array(tables) for tables in zip(*(s.costs for s in searches), strict=True)]
        self.prices = np.array([s.prices for s in searches])
        self.constants = np.array([s.constants for s in searches])
        self.least_of = np.array([s.least_of for s in searches])
        sums = np.cumsum(self.least_of[:, ::-1], axis=1)[:, ::-1]
        self.later = np.pad(sums, ((0, 0), (0, 1)))
        rows = max(len(s.lambdas) for s in searches)
        self.lambdas = np.zeros((len(searches), rows, len(self.order)))
        self.rhs = np.zeros((len(searches), rows))  # a row of noughts says nothing
        for k, search in enumerate(searches):
            self.lambdas[k, : len(search.lambdas)] = search.lambdas
            self.rhs[k, : len(search.rhs)] = search.rhs
        self.levels = [self._level(level) for level in range(1, len(self.order))]

    def _level(self, level: int) -> _Level:
        lam, prices = self.lambdas[:, :, level:], self.prices[:, None, level:]
        inside, sums = lam > 1e-12, lam.sum(axis=2)
        live = (sums > 1e-12) & (np.where(inside, prices, 1.0) > 0).all(axis=2)
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(inside, lam * np.log(prices / lam), 0.0).sum(axis=2)
        constants, least = self.constants[:, None, level:], self.least_of[:, None, level:]
        return _Level(
            live=live,
            sums=np.where(live, sums, 1.0),
            mean=np.where(live, mean, 0.0),
            rest_bytes=np.where(inside, constants, least).sum(axis=2),
        )

    def least(self) -> NDArray[np.float64]:
        """Return the bounds, as ``Search.least`` does, shape [numbers] [bytes]."""
        proved = np.array([search.real for search in self.searches])
        scale = np.maximum(np.maximum(np.abs(proved), np.abs(self.least_of).max(axis=1)), 1e-300)
        excess, hoped = touch_search.FIRST_EXCESS * scale, self._hoped()
        left = np.ones(len(proved), dtype=bool)
        while left.any():
            near = (proved < hoped) & (hoped < inf)
            limit = proved + excess
            limit[near] = np.where(hoped > 0, hoped * (1 + ROUNDING), hoped)[near]
            hoped[:] = inf
            least = self._least_of(*self._vectors(np.flatnonzero(left), limit))
            higher = left & (least > limit)
            if (excess > touch_search.EXCESS_MOST * scale)[higher].any():
                raise _TooManyError
            ended = left & ~higher
            proved[ended] = np.maximum(proved, least)[ended]
            proved[higher] = limit[higher]
            excess[higher] *= touch_search.RAISED
            left = higher
        return proved

    def _hoped(self) -> NDArray[np.float64]:
        """Return what ``Search.hoped`` does of each, shape [numbers] [bytes]."""
        touches = [search.whole_boxes() for search in self.searches]
        which = np.repeat(np.arange(len(touches)), [len(each) for each in touches])
        of_all = np.vstack(touches)
        if self.paid.totals is not None:
            costs = self.paid.totals(of_all, self.numbers[which], self.order)
        else:
            each = [cost[which, of_all[:, i]] for i, cost in enumerate(self.costs)]
            costs = np.sum(each, axis=0)
        hoped = np.full(len(touches), inf)
        np.minimum.at(hoped, which, costs)
        return hoped

    def _vectors(
        self, numbers: NDArray[np.int64], limit: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Return the vectors that may cost their limit or less, whose they are, and what they cost.

        Args:
            numbers: those that are looked for, ascending.
            limit: of all numbers [bytes].

        Returns:
            Arrays [vectors, families], [vectors], ascending, and [vectors] [bytes].
        """
        which, partial = numbers, np.zeros((len(numbers), 0), dtype=np.int64)
        spent = least = np.zeros(len(numbers))
        for level, table in enumerate(self.costs):
            if len(partial) * table.shape[1] > touch_search.WORK * touch_search.VECTORS:
                raise _TooManyError
            lowest = self._lowest(partial, which, level)
            room = limit[which] - spent - self.later[which, level + 1]
            t = np.arange(table.shape[1])
            rows, columns = np.nonzero((t >= lowest[:, None]) & (table[which] <= room[:, None]))
            if len(rows) > touch_search.VECTORS:
                raise _TooManyError
            partial, which = np.column_stack([partial[rows], columns]), which[rows]
            if self.paid.totals is None or not level:
                spent = spent[rows] + table[which, columns]
            else:
                of = self.numbers[which]
                spent = self.paid.totals(partial, of, self.order[: level + 1])
            least = self._at_least(partial, which, spent, level)
            keep = (least <= limit[which]) & (spent < inf)
            partial, which, spent, least = partial[keep], which[keep], spent[keep], least[keep]
        return partial[:, self.back], which, least

    def _used(self, partial: NDArray[np.int64], which: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what the touches told add to each inequality, shape [vectors, inequalities]."""
        told = np.log(np.maximum(partial, 1))
        used: NDArray[np.float64] = np.zeros((len(partial), self.lambdas.shape[1]))
        for s in range(partial.shape[1]):
            used += self.lambdas[which, :, s] * told[:, s, None]
        return used

    def _lowest(
        self, partial: NDArray[np.int64], which: NDArray[np.int64], level: int
    ) -> NDArray[np.float64]:
        """Return what ``Search.lowest`` does, shape [vectors]."""
        lam = self.lambdas[:, :, level]
        alone = (lam > 1e-12) & (self.lambdas[:, :, level + 1 :] <= 1e-12).all(axis=2)
        if not alone.any():
            return np.zeros(len(partial))
        missing = self.rhs[which] - self._used(partial, which)
        of = np.where(alone, lam, 1.0)[which]
        need = np.where(alone[which], missing / of, -inf).max(axis=1)
        rounded: NDArray[np.float64] = np.ceil(np.exp(need) * (1 - ROUNDING) - 1e-9)
        return rounded

    def _at_least(
        self,
        partial: NDArray[np.int64],
        which: NDArray[np.int64],
        spent: NDArray[np.float64],
        level: int,
    ) -> NDArray[np.float64]:
        """Return what ``Search.at_least`` does, the families up to *level* told [bytes]."""
        totals: NDArray[np.float64] = spent + self.later[which, level + 1]
        if level >= len(self.levels):
            return totals
        of = self.levels[level]
        if not of.live.any():
            return totals
        exponent = self.rhs[which] - self._used(partial, which) + of.mean[which]
        open_bytes = of.sums[which] * np.exp(exponent / of.sums[which]) * (1 - ROUNDING * 10)
        least = self.later[which, level + 1, None]
        open_bytes = np.where(of.live[which], open_bytes + of.rest_bytes[which], least)
        bounded: NDArray[np.float64] = np.maximum(totals, spent + open_bytes.max(axis=1))
        return bounded

    def _least_of(
        self, touches: NDArray[np.int64], which: NDArray[np.int64], costs: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the least of each number with what is paid beyond, shape [numbers] [bytes]."""
        best = np.full(len(self.numbers), inf)
        if self.paid.beyond is None and self.paid.room is None:
            np.minimum.at(best, which, costs)
            return best
        families, size = range(len(self.order)), touch_search.BATCH
        queue = _Queue(which, costs, len(best))
        while len(rows := queue.next(size, best)):
            paid = costs[rows]
            if self.paid.beyond is not None:
                of = self.numbers[which[rows]]
                paid = paid + self.paid.beyond(touches[rows], of, families)
            best = np.minimum(best, self._least_with_room(touches[rows], which[rows], paid))
            size *= 2
        return best

    def _least_with_room(
        self, touches: NDArray[np.int64], which: NDArray[np.int64], costs: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return the least of each number whose touches leave room, shape [numbers] [bytes]."""
        best = np.full(len(self.numbers), inf)
        if self.paid.room is None:
            np.minimum.at(best, which, costs)
            return best
        queue, asked = _Queue(which, costs, len(best)), 0
        while len(rows := queue.next(touch_search.ROOM_BATCH, best)):
            if asked >= touch_search.ROOM_MOST:
                roomy = np.ones(len(rows), dtype=bool)
            else:
                of = self.numbers[which[rows]]
                roomy = self.paid.room(touches[rows], of, range(len(self.order)))
            np.minimum.at(best, which[rows[roomy]], costs[rows[roomy]])
            asked += touch_search.ROOM_BATCH
        return best


class _Queue:
    """Vectors of every number, the cheapest first."""

    def __init__(self, which: NDArray[np.int64], costs: NDArray[np.float64], numbers: int) -> None:
        self.order = np.lexsort((costs, which))
        self.costs = costs[self.order]
        self.at = np.searchsorted(which[self.order], np.arange(numbers))
        self.ends = np.searchsorted(which[self.order], np.arange(numbers), side="right")

    def next(self, size: int, best: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the next *size* vectors of every number that may better its best."""
        go = np.flatnonzero(self.at < self.ends)
        go = go[self.costs[self.at[go]] < best[go]]
        ends = np.minimum(self.at[go] + size, self.ends[go])
        parts = [self.order[a:b] for a, b in zip(self.at[go].tolist(), ends.tolist(), strict=True)]
        self.at[go] = ends
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int64)
