"""Seatings by halving: all seats in one line, the grid cut into slabs along the domains' borders.

A box of the grid gets a stretch of the line. If that lies in one domain the box is seated;
otherwise the box is cut across one axis, at or next to where a domain ends, and both slabs go on.
What a domain pays for boxes is additive but for groups that two of its boxes share, so the cheapest
way to cut is found by dynamic programming over boxes and stretches.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate, permutations
from math import gcd, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.clock import look
from planner.place.question import Kind, coarsen, held_units, refine_home, whole_boxes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from planner.place.question import Charge, Question

_STATES_MOST = 4000  # boxes and stretches looked at, for one seating
_STATES_OF_ALL = 4000  # the same, after which no finer grid is tried
_ALL_ORDERS = 4  # domains up to which they stand along the line in every order
_SCRAP_SHARES = (1.0, 0.3)
_FEW = 2  # domains' ends in a stretch up to which every way to cut is tried


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cut:
    """How to go on with a box: nothing (side 0), or a first slab of *side* cells along *axis*."""

    cost_bytes: float
    axis: int = 0
    side: int = 0


def line_fillings(question: Question, held: Sequence[int]) -> Iterator[NDArray[np.int64]]:
    """Yield seatings by halving: the domains in several orders, coarse grids first.

    Args:
        question: the grid and its charges.
        held: cells that each domain is to hold, adding up to all cells [1].
    """
    orders = _orders(held)
    left = _STATES_OF_ALL
    for sides in whole_boxes(question.sizes):
        if gcd(*held) % prod(sides):
            continue
        volume = prod(sides)
        coarse = coarsen(question, sides, [question.cells // volume])
        for order in orders:
            for share in _SCRAP_SHARES:
                home, states = _filled(coarse, [held[s] // volume for s in order], share)
                yield refine_home(question, sides, np.array(order)[home])
                left -= states
        if left <= 0:
            return


def _orders(held: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the orders of the domains along the line: all that differ, if they are few."""
    forward = tuple(range(len(held)))
    if len(held) > _ALL_ORDERS:
        return [forward, forward[::-1]]
    return list({tuple(held[s] for s in order): order for order in permutations(forward)}.values())


def line_filling(
    question: Question, held: Sequence[int], scrap_share: float = 1.0
) -> NDArray[np.int64]:
    """Return a seating of *held* cells a domain, in their order along the line.

    Args:
        question: the grid and its charges.
        held: cells that each domain is to hold, adding up to all cells [1].
        scrap_share: what a box of less than a quarter of its domain counts for while cuts are
            compared: it mostly touches groups that the rest of the domain touches anyway [share].

    >>> from planner.place.question import Charge, Question
    >>> lines = Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=1.0)
    >>> line_filling(Question(sizes=(2, 2), charges=(lines,), capacities=(2, 2)), (2, 2)).tolist()
    [0, 0, 1, 1]
    """
    return _filled(question, held, scrap_share)[0]


def _filled(
    question: Question, held: Sequence[int], scrap_share: float
) -> tuple[NDArray[np.int64], int]:
    """Return (the seating of ``line_filling``, boxes and stretches looked at)."""
    taken = [s for s, cells in enumerate(held) if cells]
    halving = _Halving(question, [held[s] for s in taken], scrap_share)
    home = np.empty(tuple(reversed(question.sizes)), dtype=np.int64)
    halving.seat(home, question.sizes, 0)
    return np.array(taken)[home.ravel()], len(halving.known)


class _Halving:
    """The best cut of every box and stretch met so far."""

    def __init__(self, question: Question, held: Sequence[int], scrap_share: float) -> None:
        self.question = question
        self.scrap_share = scrap_share
        self.ends = list(accumulate(held))
        self.known: dict[tuple[tuple[int, ...], tuple[int, ...]], _Cut] = {}
        self.leaf_costs: dict[tuple[int, ...], float] = {}

    def seat(self, home: NDArray[np.int64], sides: tuple[int, ...], start: int) -> None:
        """Write the domains of a box that begins at seat *start* into *home*, its part of the grid.

        Args:
            home: shape [reversed sides].
            sides: cells along each axis.
            start: first seat of the stretch.
        """
        cut = self._best(sides, start)
        if cut.side == 0:
            home[...] = bisect_right(self.ends, start)
            return
        first, rest = _slabs(sides, cut.axis, cut.side)
        place = len(sides) - 1 - cut.axis
        head, tail = np.split(home, [cut.side], axis=place)
        self.seat(head, first, start)
        self.seat(tail, rest, start + prod(first))

    def _best(self, sides: tuple[int, ...], start: int) -> _Cut:
        volume = prod(sides)
        first = bisect_right(self.ends, start)
        last = bisect_left(self.ends, start + volume)
        inside = tuple(end - start for end in self.ends[first:last])
        if not inside:
            scrap = 4 * volume < self.ends[first] - (self.ends[first - 1] if first else 0)
            return _Cut(cost_bytes=self._leaf(sides) * (self.scrap_share if scrap else 1.0))
        key = (sides, inside)
        found = self.known.get(key)
        if found is None:
            look()
            ways = self._ways(sides, inside)
            if len(self.known) >= _STATES_MOST:  # look no further than the two slabs
                ways = [min(ways, key=lambda way: sum(map(self._leaf, _slabs(sides, *way))))]
            cuts = [self._priced(sides, start, *way) for way in ways]
            found = min(cuts, key=lambda cut: cut.cost_bytes)
            self.known[key] = found
        return found

    def _priced(self, sides: tuple[int, ...], start: int, axis: int, side: int) -> _Cut:
        first, rest = _slabs(sides, axis, side)
        cost = self._best(first, start).cost_bytes
        cost += self._best(rest, start + prod(first)).cost_bytes
        return _Cut(cost_bytes=cost, axis=axis, side=side)

    def _ways(self, sides: tuple[int, ...], inside: Sequence[int]) -> list[tuple[int, int]]:
        """Return (axis, side of the first slab) of the cuts worth trying."""
        middle = inside[len(inside) // 2]
        few = len(inside) <= _FEW
        volume = prod(sides)
        ways = []
        for axis, n in enumerate(sides):
            across = volume // n
            if few:
                borders = (inside[0], middle, inside[-1])
                found = {b // across for b in borders} | {-(-b // across) for b in borders}
            else:
                found = {round(middle / across)}
            ways += [(axis, side) for side in sorted(found) if 0 < side < n]
        if not ways:  # all were rounded off the box
            axis = int(np.argmax(sides))
            ways = [(axis, sides[axis] // 2)]
        return ways

    def _leaf(self, sides: tuple[int, ...]) -> float:
        """Return what a domain pays for a box of its own [bytes]."""
        cost = self.leaf_costs.get(sides)
        if cost is None:
            cost = sum(
                (box_bytes(self.question, charge, sides) for charge in self.question.charges), 0.0
            )
            self.leaf_costs[sides] = cost
        return cost


def box_bytes(question: Question, charge: Charge, sides: tuple[int, ...]) -> float:
    """Return what a domain pays of *charge* that holds one box of *sides* cells [bytes]."""
    size = question.group_size(charge.axes)
    part = prod(sides[i] for i in charge.axes)
    groups = prod(sides) // part
    if size < 2 or charge.kind is Kind.ENDS:
        return 0.0
    if charge.kind in (Kind.PAIRS, Kind.COPIES):
        return charge.weight_bytes * groups * held_units(charge, size)[part]
    if charge.kind is Kind.RING and part == size:
        return 0.0
    return charge.weight_bytes * groups


def _slabs(sides: tuple[int, ...], axis: int, side: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sides of the two slabs of a box cut across *axis* after *side* cells."""
    before, after = sides[:axis], sides[axis + 1 :]
    return (*before, side, *after), (*before, sides[axis] - side, *after)
