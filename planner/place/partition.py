"""A bound that knows how the groups of a family fall into parts.

In a seating every group of n is cut into parts that sum to n, and every domain holds parts of many
groups that sum to its cells. A price on every part size ties both: the domains pay less by the
price of each part that they hold, and every group gives back the least that parts of n cost. Any
prices give a bound; a linear programme over shapes and partitions finds good ones. Proof:
``FORMULATION.md``.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from math import inf, prod
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.bound import rebate_bytes
from planner.place.fillings import cheapest_filling
from planner.place.part_choice import Choices
from planner.place.part_flow import Stock, alone_prices
from planner.place.part_tables import (
    PartTables,
    Seen,
    part_costs,
    part_prices,
    parts_of,
)
from planner.place.spread import tables
from planner.place.touch_search import least_cost, vectors_below

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from planner.place.part_tables import PartPrices
    from planner.place.question import Question
    from planner.place.spread import Tables

_PARTS_MOST = 128  # members of a group, for prices on its parts
_TABLE_MOST = 2_000_000  # part sizes x parts x cells of one table
_HELD_MOST = 96  # cells of a domain, where how full it is may be chosen
_LINKED = 3  # families with prices on their parts, the dearest
_TURNS = 300  # times that prices and shapes answer each other
_POOL = 40_000  # shapes chosen from, of all sizes of domains
_WINDOWS = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.01, 1e-3, 0.0)  # relative; above the cheapest
_JOINING = 10  # shapes of one size that join at a time
_FIRST_REACH = 0.3  # of what a part costs: how far from the best prices the next may be
_LEAST_REACH = 0.002
_FAILED = 40  # prices in a row that gave no better bound, after which the best are kept
_MET = 1e-6  # relative; less is no better


def partition_bound(
    question: Question, home: NDArray[np.int64], cut_bytes: float, ends_s: float = inf
) -> float:
    """Return a bound of every seating [bytes], 0 where the rule has nothing to say.

    Args:
        question: the grid and its charges.
        home: a good seating, shape [cells]; good prices are near those that it suggests.
        cut_bytes: stop when this is reached [bytes].
        ends_s: stop when ``time.monotonic()`` is past this [s].
    """
    spare = sum(question.capacities) > question.cells
    if len(question.capacities) < 2 or (spare and max(question.capacities) > _HELD_MOST):
        return 0.0
    search = _Search(question)
    if not search.linked:
        return 0.0
    return search.best(home, cut_bytes, ends_s)


class _Search:
    """Prices and shapes that answer each other."""

    def __init__(self, question: Question) -> None:
        self.question = question
        self.spare = sum(question.capacities) > question.cells
        self.largest = min(max(question.capacities), question.cells)
        held = Counter(min(c, question.cells) for c in question.capacities if c)
        self.stock = Stock(
            sizes=tuple(sorted(held)),
            counts=tuple(held[c] for c in sorted(held)),
            cells=question.cells,
        )
        self.counts = dict(zip(self.stock.sizes, self.stock.counts, strict=True))
        self.all = {held: tables(question, held) for held in self.stock.holding}
        all_terms = self.all[self.largest].terms
        worth = {
            i: term.groups * float(part_costs(term).max())
            for i, term in enumerate(all_terms)
            if term.size <= _PARTS_MOST
            and term.size * min(term.groups, self.largest) * self.largest <= _TABLE_MOST
        }
        self.linked = sorted(sorted(worth, key=lambda i: (-worth[i], i))[:_LINKED])
        self.terms = tuple(all_terms[i] for i in self.linked)
        self.plain = {held: every.of(self.linked) for held, every in self.all.items()}
        self.starts = np.cumsum([0, *(term.size for term in self.terms)]).tolist()
        self.rest_bytes = {held: self._rest_bytes(every) for held, every in self.all.items()}

    def best(self, home: NDArray[np.int64], cut_bytes: float, ends_s: float) -> float:
        """Return the best bound found."""
        pools = self._pools()
        if pools is None:
            return 0.0
        choices = Choices(
            part_bytes=tuple(part_costs(term)[1:] for term in self.terms),
            groups=tuple(term.groups for term in self.terms),
            stock=self.stock,
        )
        self._join_seating(home, choices)
        centre = np.zeros(self.starts[-1])
        best_near, reach, failed = self._answer(pools, centre, choices), _FIRST_REACH, 0
        for a in range(len(self.terms)):
            trial = centre.copy()
            trial[self.starts[a] : self.starts[a + 1]] = self._alone(a)
            near = self._answer(pools, trial, choices)
            if near > best_near:
                best_near, centre = near, trial
        trial = choices.prices(centre, reach)
        for _ in range(_TURNS):
            near = self._answer(pools, trial, choices)
            if near > best_near + _MET * abs(best_near):
                best_near, centre, reach, failed = near, trial, 2 * reach, 0
            else:
                reach, failed = max(reach / 2, _LEAST_REACH), failed + 1
            if best_near >= cut_bytes or failed > _FAILED or monotonic() > ends_s:
                break
            trial = choices.prices(centre, reach)
        return self._bound(centre)

    def _alone(self, a: int) -> NDArray[np.float64]:
        """Return the best prices of the parts k = 1 … n of one family, were there no other.

        A part of k meets k / n_(S and S') groups of every other family; of these its share k / C
        counts as its own.
        """
        term = self.terms[a]
        costs = part_costs(term)
        size = np.arange(term.size + 1)
        for other in self.all[self.largest].terms:
            common = prod(self.question.sizes[i] for i in other.axes if i in term.axes)
            if other.axes != term.axes:
                touch = other.touch_bytes + other.ring_bytes
                costs = costs + touch * size**2 / (common * self.largest)
        return alone_prices(costs, term.groups, self.stock)

    def _by_family(self, prices: NDArray[np.float64]) -> dict[int, PartPrices]:
        return {
            a: part_prices(
                term,
                np.concatenate([[0.0], prices[self.starts[a] : self.starts[a + 1]]]),
                self.largest,
            )
            for a, term in enumerate(self.terms)
        }

    def _bound(self, prices: NDArray[np.float64]) -> float:
        """Return the bound that these prices give, over all shapes of all families."""
        by_family = self._by_family(prices)
        of_all = {self.linked[a]: given for a, given in by_family.items()}
        families = tuple(term.axes for term in self.all[self.largest].terms)

        @cache
        def least(held: int) -> float:
            if held == 0:
                return 0.0
            priced = PartTables(self.all[held], of_all)
            return least_cost(
                self.question.sizes,
                families,
                priced.cost_bytes,
                held,
                priced.totals,
                priced.beyond,
            )

        if self.spare:
            total = cheapest_filling(self.question.capacities, self.question.cells, least)
        else:
            total = sum(times * least(held) for held, times in self.counts.items())
        given = self._given(by_family)
        size = abs(total) + sum(map(abs, given)) + rebate_bytes(self.question)
        return max(0.0, total + sum(given) - rebate_bytes(self.question) - 1e-12 * size)

    def _given(self, by_family: Mapping[int, PartPrices]) -> list[float]:
        """Return what the groups of each family give back at least [bytes]."""
        return [
            self.terms[a].groups * float(self._partition(p) @ p.price_bytes[1:])
            for a, p in by_family.items()
        ]

    def _partition(self, prices: PartPrices) -> NDArray[np.float64]:
        return _cheapest_partition(prices.price_bytes, self.largest)

    def _rest_bytes(self, every: Tables) -> float:
        """Return what the families without prices pay at least, by themselves [bytes]."""
        rest = [i for i in range(len(every.terms)) if i not in self.linked]
        return least_cost(
            self.question.sizes,
            tuple(every.terms[i].axes for i in rest),
            [every.cost_bytes[i] for i in rest],
            every.held,
        )

    def _pools(self) -> dict[int, Seen] | None:
        """Return the cheapest shapes of every size of domain; None where they are too many.

        They tell the families with prices only.
        """
        families = tuple(term.axes for term in self.terms)
        everything = range(len(families))
        for window in _WINDOWS:
            pools, left = {}, _POOL
            for held, plain in self.plain.items():
                totals = plain.totals
                least = least_cost(self.question.sizes, families, plain.cost_bytes, held, totals)
                found = vectors_below(
                    self.question.sizes,
                    families,
                    plain.cost_bytes,
                    held,
                    totals,
                    None,
                    least * (1 + window) * (1 + 1e-12),
                )
                left -= len(found.touches)
                if len(found.families) < len(families) or left < 0 or not len(found.touches):
                    break
                pools[held] = Seen(plain, found.touches, everything)
            else:
                return pools
        return None

    def _answer(
        self, pools: Mapping[int, Seen], prices: NDArray[np.float64], choices: Choices
    ) -> float:
        """Add the cheapest shapes and partitions at these prices; return the pools' bound."""
        by_family = self._by_family(prices)
        least = {}
        for held, pool in pools.items():
            costs = pool.priced(by_family)
            costs = costs + pool.beyond(by_family) + self.rest_bytes[held]
            least[held] = float(costs.min())
            for row in np.argsort(costs, kind="stable")[:_JOINING].tolist():
                if costs[row] < inf:
                    self._join(pool, row, by_family, choices)
        for a, p in by_family.items():
            choices.add_partition(a, self._partition(p))
        total = self._filled(least)
        return total + sum(self._given(by_family)) - rebate_bytes(self.question)

    def _filled(self, least: Mapping[int, float]) -> float:
        """Return what the domains pay at least, in fractions of domains where seats are spare."""
        if not self.spare:
            return sum(times * least[held] for held, times in self.counts.items())
        from scipy.optimize import linprog  # noqa: PLC0415 - most placements never need it

        possible = [held for held in self.plain if least[held] < inf]
        costs = np.array([least[held] for held in possible])
        scale = max(float(np.abs(costs).max()), 1e-300)
        limits, equal = self.stock.limits(possible), self.stock.equations(possible)
        solved = linprog(
            costs / scale,
            A_ub=limits.rows,
            b_ub=limits.sides,
            A_eq=equal.rows,
            b_eq=equal.sides,
            method="highs",
        )
        return float(solved.fun) * scale if solved.status == 0 else -inf

    def _join_seating(self, home: NDArray[np.int64], choices: Choices) -> None:
        """Add what a seating consists of: its domains and the parts of its groups."""
        held = np.bincount(home, minlength=len(self.question.capacities))
        used = np.flatnonzero(held)
        index = np.searchsorted(used, home)
        touches = np.zeros((len(used), len(self.terms)), dtype=np.int64)
        parts = np.zeros((len(used), self.starts[-1]))
        paid = np.zeros(len(used))
        for a, term in enumerate(self.terms):
            groups = groups_along(self.question.sizes, term.axes)
            inside = np.zeros((len(groups), len(used)), dtype=np.int64)
            np.add.at(inside, (np.arange(len(groups))[:, None], index[groups]), 1)
            touches[:, a] = (inside > 0).sum(axis=0)
            counted = inside[:, :, None] == np.arange(1, term.size + 1)
            parts[:, self.starts[a] : self.starts[a + 1]] = counted.sum(axis=0)
            for counts in np.unique(counted.sum(axis=1), axis=0):
                choices.add_partition(a, counts.astype(float))
        costs = np.concatenate([part_costs(term)[1:] for term in self.terms])
        for s, cells in enumerate(held[used].tolist()):
            seen = Seen(self.plain[cells], touches[s : s + 1], range(len(self.terms)))
            by_parts = float(parts[s] @ costs)
            paid[s] = max(float(seen.tied[0]), by_parts) + self.rest_bytes[cells]
        for row in np.unique(np.column_stack([held[used], paid, parts]), axis=0):
            choices.add_shape(int(row[0]), float(row[1]), row[2:])

    def _join(
        self, pool: Seen, row: int, by_family: Mapping[int, PartPrices], choices: Choices
    ) -> None:
        parts = np.zeros(self.starts[-1])
        cost_bytes = 0.0
        for a, given in by_family.items():
            most, t = int(pool.parts[a][row]), int(pool.touches[row, a])
            held = parts_of(given.net_bytes, most, t, pool.held)
            for k in held:
                parts[self.starts[a] + k - 1] += 1
            by_parts = float(part_costs(self.terms[a])[held].sum())
            cost_bytes += max(float(pool.paid[a][row]), by_parts)
        paid = max(cost_bytes, float(pool.tied[row])) + self.rest_bytes[pool.held]
        choices.add_shape(pool.held, paid, parts)


def _cheapest_partition(price: NDArray[np.float64], most: int) -> NDArray[np.float64]:
    """Return how many parts of each size k = 1 … n the cheapest partition of n has, k <= *most*.

    >>> _cheapest_partition(np.array([0.0, 2.0, 3.0, 6.0, 9.0]), 4).tolist()  # 2 + 2
    [0.0, 2.0, 0.0, 0.0]
    """
    n = len(price) - 1
    best, last = np.full(n + 1, inf), np.zeros(n + 1, dtype=int)
    best[0] = 0.0
    for c in range(1, n + 1):
        steps = min(c, most)
        tried = best[c - steps : c][::-1] + price[1 : steps + 1]
        last[c] = int(tried.argmin()) + 1
        best[c] = float(tried.min())
    counts = np.zeros(n)
    c = n
    while c:
        counts[last[c] - 1] += 1
        c -= last[c]
    return counts
