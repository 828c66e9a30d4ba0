"""The least that a set of cells pays, over every vector of touches that Finner's inequality allows.

Families are fixed one after another, all partial vectors side by side. A partial vector is dropped
when what it has paid and the least that the open families can add exceed the limit. The limit
starts just above the bound over real boxes and is raised until a vector is found, so that few
vectors are ever looked at.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.finner import finner_rows
from planner.place.touch_lines import ROUNDING, hull, priced, with_dual

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Totals = Callable[[NDArray[np.int64], Sequence[int]], NDArray[np.float64]]
    Beyond = Totals
    Room = Callable[[NDArray[np.int64], Sequence[int]], NDArray[np.bool_]]

VECTORS = 30_000  # partial vectors kept; past it the search stops at what is proved
FIRST_EXCESS = 1e-3  # relative; the first limit is so much above the bound over real boxes
RAISED = 2.5  # times the excess, from one limit to the next
_SHARPENINGS = 4  # times the limit is drawn in where not all families could be told
ROOM_BATCH = 4  # vectors whose room is looked at at a time
ROOM_MOST = 500  # of one batch, after which there may be room for all we know
WORK = 40  # times as many touches are looked at to make them
EXCESS_MOST = 1e6  # times what families cost, past which there is most likely no vector at all
BATCH = 50  # vectors for which the slow prices are asked first, then twice as many each time


def least_cost(
    sizes: Sequence[int],
    families: Sequence[tuple[int, ...]],
    cost_bytes: Sequence[NDArray[np.float64]],
    held: int,
    totals: Totals | None = None,
    beyond: Beyond | None = None,
    room: Room | None = None,
) -> float:
    """Return a lower bound of what any set of *held* cells pays [bytes].

    Args:
        sizes: axis sizes n_i [1].
        families: axes S along which the groups of each family run, no two alike.
        cost_bytes: for each family what t touched groups cost, by t = 0 … G; infinite where C cells
            cannot lie in t groups.
        held: cells of the set [1].
        totals: of touches [vectors, k] of the k families given by index, what these cost, shape
            [vectors]; at least the sum of their *cost_bytes*. Left out, that sum.
        beyond: the same, what these families cost beyond *totals*; asked for few vectors only,
            for it may be slow.
        room: of the same, whether so many cells can lie in so many groups, as far as is known;
            slower still, and asked only of vectors that would be the cheapest.

    Returns:
        The least over all integer vectors that satisfy Finner's inequality, or, should the search
        grow too large, what was proved until then; infinite if there is none.

    >>> lines = [4.0 * np.arange(65), 1.0 * np.arange(9), 0.2 * np.arange(33)]
    >>> least_cost((2, 16, 4), ((0,), (1,), (2,)), lines, 8)
    19.6
    """
    search = searched(sizes, families, cost_bytes, held, totals, beyond, room)
    if search is None:
        return inf if families else 0.0
    return search.least()


def vectors_below(
    sizes: Sequence[int],
    families: Sequence[tuple[int, ...]],
    cost_bytes: Sequence[NDArray[np.float64]],
    held: int,
    totals: Totals | None,
    beyond: Beyond | None,
    limit: float,
) -> Vectors:
    """Return every vector of touches that may cost *limit* or less.

    Arguments as of ``least_cost``. The order is the same every time.
    """
    search = searched(sizes, families, cost_bytes, held, totals, beyond)
    if search is None:
        return Vectors(
            touches=np.zeros((0, 0), dtype=np.int64), families=(), cost_bytes=np.zeros(0)
        )
    found = search.vectors(limit)
    if beyond is None:
        return found
    all_bytes = found.cost_bytes + beyond(found.touches, found.families)
    return found.of(all_bytes <= limit, all_bytes)


def searched(
    sizes: Sequence[int],
    families: Sequence[tuple[int, ...]],
    cost_bytes: Sequence[NDArray[np.float64]],
    held: int,
    totals: Totals | None,
    beyond: Beyond | None,
    room: Room | None = None,
) -> Search | None:
    """Return the search over axes of several cells; None if no vector is possible."""
    live = [i for i, n in enumerate(sizes) if n > 1]
    index = {axis: i for i, axis in enumerate(live)}
    sets = tuple(tuple(index[a] for a in family if a in index) for family in families)
    if not sets or any(not np.isfinite(table).any() for table in cost_bytes):
        return None
    return Search(np.array([sizes[i] for i in live]), sets, cost_bytes, held, totals, beyond, room)


def least_touches(
    sizes: Sequence[int],
    families: Sequence[tuple[int, ...]],
    weights: Sequence[float],
    held: int,
) -> float:
    """Return a lower bound of sum_S w_S t_S over all sets of *held* cells of the grid [bytes].

    Args:
        sizes: axis sizes n_i [1].
        families: axes S along which the groups of each family run.
        weights: w_S, price of one touched group [bytes].
        held: cells of the set [1].

    >>> least_touches((2, 16, 4), ((0,), (1,), (2,)), (4.0, 1.0, 0.2), 8)
    19.6
    """
    merged: dict[tuple[int, ...], float] = {}
    for family, weight in zip(families, weights, strict=True):
        key = tuple(sorted(i for i in family if sizes[i] > 1))
        if weight > 0:
            merged[key] = merged.get(key, 0.0) + weight
    constant = merged.pop((), 0.0) * held
    costs = []
    for family, weight in merged.items():
        size = prod(sizes[i] for i in family)
        groups = prod(sizes) // size
        line = weight * np.arange(groups + 1.0)
        line[: -(-held // size)] = inf
        line[min(groups, held) + 1 :] = inf
        costs.append(line)
    return constant + least_cost(sizes, tuple(merged), costs, held)


@dataclass(frozen=True, slots=True, kw_only=True)
class Vectors:
    """Touches of some families, the others left open.

    Args:
        touches: shape [vectors, len(families)].
        families: indices of the families told.
        cost_bytes: what every family together costs at least, shape [vectors] [bytes].
    """

    touches: NDArray[np.int64]
    families: tuple[int, ...]
    cost_bytes: NDArray[np.float64]

    def of(self, kept: NDArray[np.bool_], cost_bytes: NDArray[np.float64]) -> Vectors:
        """Return some of them, with other prices."""
        return Vectors(
            touches=self.touches[kept], families=self.families, cost_bytes=cost_bytes[kept]
        )


class Search:
    """One search: its families ordered by price, their tables, lines under them, inequalities."""

    def __init__(
        self,
        sizes: NDArray[np.int64],
        sets: tuple[tuple[int, ...], ...],
        cost_bytes: Sequence[NDArray[np.float64]],
        held: int,
        totals: Totals | None,
        beyond: Beyond | None,
        room: Room | None,
    ) -> None:
        hulls = [hull(table) for table in cost_bytes]
        lines = priced(sizes, sets, hulls, held)
        self.sizes, self.held, self.box = sizes, held, np.exp(lines.box)
        self.real = lines.bound_bytes
        order = np.argsort(-lines.prices_bytes, kind="stable")
        self.order = [int(i) for i in order]
        self.sets = tuple(sets[i] for i in order)
        self.costs = [cost_bytes[i] for i in order]
        self.prices, self.constants = lines.prices_bytes[order], lines.constants_bytes[order]
        self.least_of = np.array([table[np.isfinite(table)].min() for table in self.costs])
        self.totals = totals
        self.beyond = beyond
        self.room = room
        lambdas, rhs = finner_rows(sizes, self.sets, held)
        self.lambdas, self.rhs = with_dual(
            lambdas, rhs, sizes, self.sets, self.prices, held, lines.box
        )

    def least(self) -> float:
        """Return the bound."""
        scale = max(abs(self.real), float(np.abs(self.least_of).max()), 1e-300)
        excess = FIRST_EXCESS * scale
        proved, tries = self.real, 0
        hoped = self._hoped()
        while True:
            limit = proved + excess
            if proved < hoped < inf and not tries:
                limit, hoped = hoped * (1 + ROUNDING) if hoped > 0 else hoped, inf
            found = self.vectors(limit)
            least = self._least_of(found)
            if least > limit:
                proved = limit
                if excess > EXCESS_MOST * scale:
                    return max(proved, self._least_of(self.vectors(inf)))
                excess *= RAISED
                continue
            told_all = len(found.families) == len(self.prices)
            proved, tries = max(proved, least), tries + 1
            if told_all or tries >= _SHARPENINGS:
                return proved
            excess = max(FIRST_EXCESS * scale, excess / RAISED**2)

    def _hoped(self) -> float:
        """Return what the best box of whole sides near the cheapest real box costs."""
        touches = self.whole_boxes()
        if not len(touches):
            return inf
        if self.totals is not None:
            return float(self.totals(touches, self.order).min())
        return float(sum(cost[touches[:, i]] for i, cost in enumerate(self.costs)).min())

    def whole_boxes(self) -> NDArray[np.int64]:
        """Return the touches of boxes of whole sides near the cheapest real box.

        Shape [boxes, families], the families in the order of their prices.
        """
        low = np.maximum(np.floor(self.box + 1e-9), 1)
        high = np.minimum(np.ceil(self.box - 1e-9), self.sizes)
        corners = np.array(np.meshgrid(*zip(low, high, strict=True))).reshape(len(low), -1).T
        outside = np.array([[i not in family for i in range(len(low))] for family in self.sets])
        touches = np.prod(np.where(outside[None, :, :], corners[:, None, :], 1.0), axis=2).astype(
            np.int64
        )
        touches = touches[np.prod(corners, axis=1) >= self.held]
        held: NDArray[np.int64] = np.minimum(touches, self.held)
        return held

    def _least_of(self, found: Vectors) -> float:
        """Return the least that any of the vectors costs, with what is paid beyond the totals."""
        if (self.beyond is None and self.room is None) or not len(found.touches):
            return float(found.cost_bytes.min(initial=inf))
        best = inf
        order = np.argsort(found.cost_bytes, kind="stable")
        first, size = 0, BATCH
        while first < len(order) and found.cost_bytes[order[first]] < best:
            batch = order[first : first + size]
            first, size = first + size, 2 * size
            costs = found.cost_bytes[batch]
            if self.beyond is not None:
                costs = costs + self.beyond(found.touches[batch], found.families)
            best = min(best, self._least_with_room(found.touches[batch], found.families, costs))
        return best

    def _least_with_room(
        self, touches: NDArray[np.int64], families: Sequence[int], costs: NDArray[np.float64]
    ) -> float:
        """Return the least of *costs* whose touches leave room for the cells."""
        order = np.argsort(costs, kind="stable")
        if self.room is None:
            return float(costs[order[0]])
        for first in range(0, len(order), ROOM_BATCH):
            rows = order[first : first + ROOM_BATCH]
            if first >= ROOM_MOST or costs[rows[0]] == inf:
                return float(costs[rows[0]])
            roomy = self.room(touches[rows], families)
            if roomy.any():
                return float(costs[rows[roomy.argmax()]])
        return inf

    def vectors(self, limit: float) -> Vectors:
        """Return the vectors that may cost *limit* or less.

        Of all families, or, where there are too many, of the dearest families only.
        """
        partial = np.zeros((1, 0), dtype=np.int64)
        spent, least = np.zeros(1), np.zeros(1)
        later = np.concatenate([np.cumsum(self.least_of[::-1])[::-1], [0.0]])
        for level in range(len(self.prices)):
            table = self.costs[level]
            lowest = self._lowest(partial, level)
            t = np.arange(len(table))
            room = limit - spent - later[level + 1]
            if level and len(partial) * len(table) > WORK * VECTORS:
                return self._told(partial, least)
            allowed = (t >= lowest[:, None]) & (table <= room[:, None])
            rows, columns = np.nonzero(allowed)
            if level and len(rows) > VECTORS:
                return self._told(partial, least)
            partial = np.column_stack([partial[rows], columns])
            if self.totals is None or not level:
                spent = spent[rows] + table[columns]
            else:
                spent = self.totals(partial, self.order[: level + 1])
            least = self._at_least(partial, spent, level + 1)
            keep = (least <= limit) & (spent < inf)
            partial, spent, least = partial[keep], spent[keep], least[keep]
        return self._told(partial, least)

    def _told(self, partial: NDArray[np.int64], least: NDArray[np.float64]) -> Vectors:
        """Return vectors with their families in the order in which they were given."""
        order = self.order[: partial.shape[1]]
        back = np.argsort(order, kind="stable")
        return Vectors(touches=partial[:, back], families=tuple(sorted(order)), cost_bytes=least)

    def _lowest(self, partial: NDArray[np.int64], level: int) -> NDArray[np.float64]:
        """Return the touches that the inequalities without later families ask of this one."""
        alone = (self.lambdas[:, level] > 1e-12) & (self.lambdas[:, level + 1 :] <= 1e-12).all(
            axis=1
        )
        if not alone.any():
            return np.zeros(len(partial))
        used = np.log(np.maximum(partial, 1)) @ self.lambdas[alone, :level].T
        need = ((self.rhs[alone] - used) / self.lambdas[alone, level]).max(axis=1)
        rounded: NDArray[np.float64] = np.ceil(np.exp(need) * (1 - ROUNDING) - 1e-9)
        return rounded

    def _at_least(
        self, partial: NDArray[np.int64], spent: NDArray[np.float64], level: int
    ) -> NDArray[np.float64]:
        """Return what each partial vector costs in the end at least [bytes].

        For one inequality with exponents lambda on the families still open, the arithmetic and
        geometric means give sum w t >= L (R prod (w / lambda)^lambda)^(1/L), L = sum lambda, for
        the lines w t + c under their tables; families outside it pay the least of their table.
        """
        prices, least = self.prices[level:], self.least_of[level:]
        totals: NDArray[np.float64] = spent + least.sum()
        lam = self.lambdas[:, level:]
        sums = lam.sum(axis=1)
        live = (sums > 1e-12) & (np.where(lam > 1e-12, prices, 1.0) > 0).all(axis=1)
        if not live.any():
            return totals
        lam, sums = lam[live], sums[live]
        used = np.log(np.maximum(partial, 1)) @ self.lambdas[live, :level].T
        inside = lam > 1e-12
        with np.errstate(divide="ignore", invalid="ignore"):
            mean = np.where(inside, lam * np.log(prices / lam), 0.0).sum(axis=1)
        rest = np.where(inside, self.constants[level:], least).sum(axis=1)
        exponent = (self.rhs[live] - used + mean) / sums
        open_costs = sums * np.exp(exponent) * (1 - ROUNDING * 10) + rest
        bounded: NDArray[np.float64] = np.maximum(totals, spent + open_costs.max(axis=1))
        return bounded
