"""The cheapest way to deal the rows of a grid out to domains that fill them, domain after domain.

A *state* is how many cells of every row are left after some domains. From each state the next
domain takes cells of the rows in every way that may still lead to less than a limit; the last one
takes what is left. Rows that can change places are not told apart, so states are few. No solver has
a part in it. Proof: ``FORMULATION.md``, "Row by row".
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import rebate_bytes
from planner.place.clock import look
from planner.place.row_costs import RowCosts, row_axes
from planner.place.sweep_states import cheapest_of_alike

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from planner.place.question import Question
    from planner.place.row_costs import Ways

_CELLS_MOST, _DOMAINS_MOST, _ROWS_MOST = 256, 8, 16
_TABLE_MOST = 400_000  # rows x cells of a domain x cells of a row, of what a domain pays at least
_KINDS_TRIED = 2  # of rows, those by which domains pay most
_SHARES = (0.1, 0.25, 0.5, 0.75)  # of what is open, one limit after another
_MET = 1e-9  # relative; less is no better
_ROUNDING = 1e-11  # relative; of sums of prices


@dataclass(frozen=True, slots=True, kw_only=True)
class Rowed:
    """What rows tell.

    Args:
        bound_bytes: what every seating cuts at least [bytes].
        axes: of the rows.
        held: cells of every row that each domain holds in the cheapest way to deal them out, shape
            [domains, rows]; None where none was found that may cut less than the cut in hand.
    """

    bound_bytes: float
    axes: tuple[int, ...]
    held: NDArray[np.int64] | None


def by_rows(question: Question, cut_bytes: float, known_bytes: float, most: int) -> list[Rowed]:
    """Return what the most telling kinds of rows tell of *question*, the best bound first.

    Nothing where the grid or its domains are too many, or some seats stay free.

    Args:
        question: a small grid, its charges, the domains' capacities.
        cut_bytes: of the best seating known [bytes].
        known_bytes: a bound of the cut that is known [bytes].
        most: ways that domains may take cells in that are looked at [1].
    """
    cells, capacities = question.cells, question.capacities
    if cells > _CELLS_MOST or not 2 <= len(capacities) <= _DOMAINS_MOST:
        return []
    if sum(capacities) != cells or min(capacities) < 1 or cut_bytes <= 0:
        return []
    kinds = []
    for axes in row_axes(question):
        look()
        rows, largest = question.cells // _length(question, axes), max(capacities)
        if rows <= _ROWS_MOST and rows * largest * _length(question, axes) <= _TABLE_MOST:
            kinds.append(_Dealing(question, axes))
    kinds.sort(key=lambda one: (-round(one.least_bytes / cut_bytes, 6), one.costs.rows, one.axes))
    found: list[Rowed] = []
    for kind in kinds[:_KINDS_TRIED]:
        rowed, looked_at = kind.swept(cut_bytes, known_bytes, most)
        most -= looked_at
        found.append(rowed)
        known_bytes = max(known_bytes, rowed.bound_bytes)
        if known_bytes >= cut_bytes * (1 - _MET) or most <= 0:
            break
    return sorted(found, key=lambda one: -one.bound_bytes)


def _length(question: Question, axes: tuple[int, ...]) -> int:
    return int(np.prod([n for i, n in enumerate(question.sizes) if i not in axes]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _States:
    """What is left of the rows after some domains.

    Args:
        left: cells of every row, shape [states, rows].
        paid_bytes: by these domains, shape [states] [bytes].
        before: the state before of each, shape [states].
        taken: cells that the last domain took, by the rows of the state before, [states, rows].
        order: which row of the state before each row is, shape [states, rows].
    """

    left: NDArray[np.int64]
    paid_bytes: NDArray[np.float64]
    before: NDArray[np.int64]
    taken: NDArray[np.int64]
    order: NDArray[np.int64]


class _Dealing:
    """One kind of rows, and the domains that take cells of them, the largest first."""

    def __init__(self, question: Question, axes: tuple[int, ...]) -> None:
        self.axes = axes
        self.costs = RowCosts(question, axes)
        capacities = np.array(question.capacities)
        self.domains = np.argsort(-capacities, kind="stable")
        self.cells = capacities[self.domains].tolist()
        self.given_bytes = rebate_bytes(question)
        self.least = {k: self.costs.cheapest_bytes(k) for k in set(self.cells)}
        self.least_bytes = sum(self.least[k] for k in self.cells) - self.given_bytes

    def swept(self, cut_bytes: float, known_bytes: float, most: int) -> tuple[Rowed, int]:
        """Return what these rows tell and how many ways were looked at.

        Arguments as of ``by_rows``.
        """
        proved, looked_at = self.least_bytes, 0
        known, held = max(known_bytes, proved), None
        for share in (*_SHARES, 1.0):
            limit = known + share * (cut_bytes * (1 - _MET) - known)
            if limit <= proved:
                continue
            found = self._below(limit, most - looked_at)
            looked_at += found.looked_at
            if found.too_many:
                break
            proved, held = found.bound_bytes, found.held
            if held is not None:
                break
        else:
            proved = cut_bytes
        rounding = _ROUNDING * (abs(proved) + self.given_bytes)
        bound = max(0.0, proved - rounding)
        return Rowed(bound_bytes=bound, axes=self.axes, held=held), looked_at

    def _below(self, limit_bytes: float, most: int) -> _Found:
        """Return the cheapest way to deal the rows out that costs *limit_bytes* at most."""
        total = limit_bytes + self.given_bytes
        total += _ROUNDING * total
        room = total - sum(self.least[k] for k in self.cells)  # for what is dearer than the least
        ways: dict[int, Ways] = {}
        for k in dict.fromkeys(self.cells):
            listed = self.costs.below(k, self.least[k] + room)
            if listed is None:
                return _Found(too_many=True)
            ways[k] = listed
        full = np.full((1, self.costs.rows), self.costs.length)
        nought = np.zeros((1, self.costs.rows), dtype=np.int64)
        states = _States(
            left=full,
            paid_bytes=np.zeros(1),
            before=np.zeros(1, dtype=np.int64),
            taken=nought,
            order=np.arange(self.costs.rows)[None, :],
        )
        steps, looked_at = [states], 0
        for place, cells in enumerate(self.cells[:-1]):
            look()
            rest = self.cells[place + 1 :]
            dealt = self._dealt(states, ways[cells], ways, rest, total, most - looked_at)
            if dealt is None:
                return _Found(too_many=True, looked_at=most)
            states, more = dealt
            looked_at += more
            if not len(states.left):
                return _Found(bound_bytes=limit_bytes, looked_at=looked_at)
            steps.append(states)
        all_bytes = states.paid_bytes + self.costs.paid_bytes(states.left)
        best = int(all_bytes.argmin())
        if all_bytes[best] > total:
            return _Found(bound_bytes=limit_bytes, looked_at=looked_at)
        return _Found(
            bound_bytes=float(all_bytes[best]) - self.given_bytes,
            held=self._held(steps, best),
            looked_at=looked_at,
        )

    def _dealt(
        self,
        states: _States,
        taking: Ways,
        ways: dict[int, Ways],
        rest: list[int],
        total_bytes: float,
        most: int,
    ) -> tuple[_States, int] | None:
        """Return the states after one more domain, and how many ways to them were looked at.

        None if those are more than *most*.

        Args:
            states: before it.
            taking: ways in which it may take cells.
            ways: the same of all domains, by their cells.
            rest: cells of the domains after it.
            total_bytes: what all domains may pay [bytes].
            most: [1].
        """
        least = sum(self.least[k] for k in rest)
        before: list[int] = []
        taken: list[tuple[int, ...]] = []
        for state, left in enumerate(states.left.tolist()):
            room = total_bytes - least - states.paid_bytes[state]
            fits = (taking.held <= -np.sort(-states.left[state])).all(axis=1)
            for way in np.flatnonzero(fits & (taking.cost_bytes <= room)).tolist():
                parts, room_left = taking.held[way].tolist(), most - len(before)
                placed = _placed(left, parts, room_left, alike=self.costs.alike)
                look()
                if placed is None:
                    return None
                before += [state] * len(placed)
                taken += placed
        came = np.array(before, dtype=np.int64)
        took = np.array(taken, dtype=np.int64).reshape(len(came), self.costs.rows)
        paid = states.paid_bytes[came] + self.costs.paid_bytes(took)
        left_after = states.left[came] - took
        order = self.costs.ordered(left_after)
        left_after = np.take_along_axis(left_after, order, axis=1)
        one = cheapest_of_alike(left_after, paid)
        one = one[paid[one] + self._rest_bytes(left_after[one], ways, rest) <= total_bytes]
        return _States(
            left=left_after[one],
            paid_bytes=paid[one],
            before=came[one],
            taken=took[one],
            order=order[one],
        ), len(came)

    def _rest_bytes(
        self, left: NDArray[np.int64], ways: dict[int, Ways], rest: list[int]
    ) -> NDArray[np.float64]:
        """Return what domains pay at least for what is left of rows, each by itself [bytes]."""
        if len(rest) == 1:
            return self.costs.paid_bytes(left)
        room = -np.sort(-left, axis=1)
        total = np.zeros(len(left))
        for cells, times in Counter(rest).items():
            one = ways[cells]
            if not len(one.held):
                return np.full(len(left), np.inf)
            for state, fullest in enumerate(room):
                fits = (one.held <= fullest).all(axis=1)
                first = int(fits.argmax())
                total[state] += times * one.cost_bytes[first] if fits[first] else np.inf
        return total

    def _held(self, steps: list[_States], best: int) -> NDArray[np.int64]:
        """Return the cells of every row that each domain holds on the way to a state."""
        way = [best]
        for states in reversed(steps[1:]):
            way.append(int(states.before[way[-1]]))
        way.reverse()
        held = np.zeros((len(self.cells), self.costs.rows), dtype=np.int64)
        rows = np.arange(self.costs.rows)
        for place, (states, state) in enumerate(zip(steps[1:], way[1:], strict=True)):
            held[self.domains[place], rows] = states.taken[state]
            rows = rows[states.order[state]]
        held[self.domains[-1], rows] = steps[-1].left[best]
        return held


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """The cheapest way under a limit; without one, that is a bound; if *too_many*, nothing is."""

    bound_bytes: float = 0.0
    held: NDArray[np.int64] | None = None
    too_many: bool = False
    looked_at: int = 0


def _placed(
    left: list[int], parts: list[int], most: int, *, alike: bool
) -> list[tuple[int, ...]] | None:
    """Return all ways to take one part from each row, of rows with as much left only one order.

    Args:
        left: cells of every row; in descending order if rows are alike.
        parts: as many.
        most: ways that are not too many, of whose beginnings there may not be more either; None
            where there are [1].
        alike: whether rows can change places.
    """
    sizes = Counter(parts)
    values = sorted(sizes, reverse=True)
    runs = sorted(Counter(left).items(), reverse=True) if alike else [(n, 1) for n in left]
    begun: list[tuple[tuple[int, ...], tuple[int, ...]]] = [((), tuple(sizes[v] for v in values))]
    for room, rows in runs:
        fitting = [i for i, v in enumerate(values) if v <= room]
        further = (
            (taken + some, tuple(now))
            for taken, counts in begun
            for some, now in _chosen(values, list(counts), fitting, rows)
        )
        begun = list(islice(further, most + 1))
        if len(begun) > most:
            return None
    return [taken for taken, _ in begun]


def _chosen(
    values: list[int], counts: list[int], fitting: list[int], rows: int
) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Yield so many of the values in descending order, and how many of each are left."""
    if not rows:
        yield (), counts
        return
    if sum(counts[i] for i in fitting) < rows:
        return
    first, rest = fitting[0], fitting[1:]
    for times in range(min(rows, counts[first]) + 1):
        now = [*counts[:first], counts[first] - times, *counts[first + 1 :]]
        for some, after in _chosen(values, now, rest, rows - times):
            yield (values[first],) * times + some, after
