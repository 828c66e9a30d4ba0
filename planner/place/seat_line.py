"""Seatings by halving: all seats in one line, the grid cut into slabs along the domains' borders.

A box of the grid gets a stretch of the line. If that lies in one domain the box is seated;
otherwise the box is cut across one axis, at or next to where a domain ends, and both slabs go on.
What a domain pays for boxes is additive but for groups that two of its boxes share, so the cheapest
way to cut is found by dynamic programming over boxes and stretches. What a stretch pays at least,
in whatever boxes, tells which cuts need not be looked into.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from itertools import accumulate, permutations
from math import gcd, inf, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.clock import look
from planner.place.question import Kind, coarsen, held_units, refine_home, whole_boxes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from planner.place.question import Question

_STATES_MOST = 4000  # boxes and stretches looked at, for one seating
_STATES_OF_ALL = 4000  # the same, after which no finer grid is tried
_ALL_ORDERS = 4  # domains up to which they stand along the line in every order
_SCRAP_SHARES = (1.0, 0.3)
_SCRAP = 4  # a box of less than this part of its domain is scrap
_FEW = 2  # domains' ends in a stretch up to which every way to cut is tried
_SIGNIFICANT_BITS = 3  # of a count of cells, rounded up, for which prices are worked out
_ROUNDING = 1e-9  # relative; of sums of prices
_NOT_NOW = -1.0  # the price of nothing: a bound will do


_Stretch = tuple[tuple[int, ...], tuple[int, ...], tuple[int, int]]
"""Sides of a box, domains' ends inside, and how much is scrap in the first and last domain."""


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
        boxes = _Boxes(coarse)
        halvings = [_Halving(boxes, share) for share in _SCRAP_SHARES]
        for order in orders:
            for halving in halvings:
                home = halving.filled([held[s] // volume for s in order])
                yield refine_home(question, sides, np.array(order)[home])
                left -= halving.looked
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
    return _Halving(_Boxes(question), scrap_share).filled(held)


class _Halving:
    """The best cut of every box and stretch met so far, along several lines of domains.

    Args:
        boxes: of the grid.
        scrap_share: as of ``line_filling``.
    """

    def __init__(self, boxes: _Boxes, scrap_share: float) -> None:
        self.boxes = boxes
        self.scrap_share = scrap_share
        self.looked = 0  # boxes and stretches, for the line in hand
        self.held: list[int] = []
        self.ends: list[int] = []
        self.known: dict[_Stretch, _Cut] = {}
        self.least_bytes: dict[_Stretch, float] = {}

    def filled(self, held: Sequence[int]) -> NDArray[np.int64]:
        """Return a seating of *held* cells a domain, in their order along the line."""
        taken = [s for s, cells in enumerate(held) if cells]
        self.held = [held[s] for s in taken]
        self.ends, self.looked = list(accumulate(self.held)), 0
        home = np.empty(tuple(reversed(self.boxes.sizes)), dtype=np.int64)
        self._seat(home, self.boxes.sizes, 0)
        return np.array(taken)[home.ravel()]

    def _seat(self, home: NDArray[np.int64], sides: tuple[int, ...], start: int) -> None:
        """Write the domains of a box that begins at seat *start* into *home*, its part of the grid.

        Args:
            home: shape [reversed sides].
            sides: cells along each axis.
            start: first seat of the stretch.
        """
        first, last = self._domains(sides, start)
        if first == last:
            home[...] = first
            return
        self._bytes(sides, start, inf)
        cut = self.known[self._stretch(sides, start, first, last)]
        head, tail = np.split(home, [cut.side], axis=len(sides) - 1 - cut.axis)
        one, other = _slabs(sides, cut.axis, cut.side)
        self._seat(head, one, start)
        self._seat(tail, other, start + prod(one))

    def _domains(self, sides: tuple[int, ...], start: int) -> tuple[int, int]:
        """Return the first and the last domain of a box that begins at seat *start*."""
        return bisect_right(self.ends, start), bisect_left(self.ends, start + prod(sides))

    def _stretch(self, sides: tuple[int, ...], start: int, first: int, last: int) -> _Stretch:
        """Return all that the price of a box depends on."""
        inside = tuple([end - start for end in self.ends[first:last]])
        if self.scrap_share == 1.0:
            return sides, inside, (0, 0)
        return sides, inside, (_scrap(self.held[first]), _scrap(self.held[last]))

    def _bytes(self, sides: tuple[int, ...], start: int, most: float) -> float:
        """Return the price of a box in its cheapest cutting; above *most*, a bound that is too."""
        first, last = self._domains(sides, start)
        if first == last:
            scrap = prod(sides) <= _scrap(self.held[first])
            return self.boxes.bytes_of(sides) * (self.scrap_share if scrap else 1.0)
        stretch = self._stretch(sides, start, first, last)
        found = self.known.get(stretch)
        if found is not None:
            return found.cost_bytes
        least = self.least_bytes.get(stretch)
        if least is None:
            least = self._least(sides, start, first, last)
        if least <= most:
            look()
            self.looked += 1
            least = max(least, self._searched(stretch, start, most))
        self.least_bytes[stretch] = least
        return least

    def _least(self, sides: tuple[int, ...], start: int, first: int, last: int) -> float:
        """Return what the parts of a stretch pay at least, each in boxes no larger than itself."""
        least, at, end = 0.0, start, start + prod(sides)
        for domain in range(first, last + 1):
            to = min(self.ends[domain], end)
            a_cell = self.boxes.least_a_cell(sides, to - at)
            scrap = min(to - at, _scrap(self.held[domain]))
            if scrap and self.scrap_share < 1.0:
                a_cell = min(a_cell, self.scrap_share * self.boxes.least_a_cell(sides, scrap))
            least += a_cell * (to - at)
            at = to
        return least

    def _searched(self, stretch: _Stretch, start: int, most: float) -> float:
        """Return the price as ``_bytes`` does, and keep the cheapest cut, the first of several."""
        sides, inside, _ = stretch
        ways = []
        for index, (axis, side) in enumerate(self._ways(sides, inside)):
            one, other = _slabs(sides, axis, side)
            middle = start + prod(one)
            rest = self._bytes(other, middle, _NOT_NOW)
            least = self._bytes(one, start, _NOT_NOW) + rest
            ways.append((least, index, rest, axis, side))
        ways.sort()
        if self.looked >= _STATES_MOST:  # look no further than the two slabs
            del ways[1:]
            most = inf
        best, best_index, beyond = _Cut(cost_bytes=inf), 0, inf
        for least, index, rest, axis, side in ways:
            enough = min(best.cost_bytes, most) * (1 + _ROUNDING)
            cost = least
            if least <= enough:
                one, other = _slabs(sides, axis, side)
                price = self._bytes(one, start, enough - rest)
                cost = price + rest
                if cost <= enough:
                    cost = price + self._bytes(other, start + prod(one), enough - price)
            if cost > enough:
                beyond = min(beyond, cost)
            elif (cost, index) < (best.cost_bytes, best_index):
                best, best_index = _Cut(cost_bytes=cost, axis=axis, side=side), index
        if best.side:
            self.known[stretch] = best
        return min(beyond, best.cost_bytes)

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


class _Boxes:
    """What domains pay for boxes, of every size up to the grid's own."""

    def __init__(self, question: Question) -> None:
        self.sizes = question.sizes
        self.cost_bytes = boxes_bytes(question)
        self.volume: NDArray[np.int64] = np.prod(_sides(question.sizes), axis=0)
        self.least: dict[int, NDArray[np.float64]] = {}

    def bytes_of(self, sides: tuple[int, ...]) -> float:
        """Return what a domain pays for a box of its own [bytes]."""
        return self.cost_bytes.item(*[n - 1 for n in sides])

    def least_a_cell(self, sides: tuple[int, ...], cells: int) -> float:
        """Return the least price of a cell in a box within *sides*, of *cells* or less [bytes].

        Or a little less than that, for a few cells more are allowed.
        """
        dropped = max(0, cells.bit_length() - _SIGNIFICANT_BITS)
        about = -(-cells >> dropped) << dropped
        least = self.least.get(about)
        if least is None:
            least = np.where(self.volume <= about, self.cost_bytes / self.volume, inf)
            for axis in range(least.ndim):
                np.minimum.accumulate(least, axis=axis, out=least)
            self.least[about] = least
        return least.item(*[n - 1 for n in sides])


def boxes_bytes(question: Question) -> NDArray[np.float64]:
    """Return what a domain pays for one box, that of a x b x ... cells at [a - 1, b - 1, ...].

    Shape [sizes] [bytes].
    """
    sides = _sides(question.sizes)
    paid_bytes = np.zeros(question.sizes)
    for charge in question.charges:
        size = question.group_size(charge.axes)
        if size < 2 or charge.kind is Kind.ENDS:
            continue
        part = np.prod([sides[i] for i in charge.axes], axis=0)
        groups = np.prod(sides, axis=0) // part
        if charge.kind in (Kind.PAIRS, Kind.COPIES):
            units = np.array(held_units(charge, size))[part]
        else:  # a ring within one domain is free
            units = np.where((part == size) & (charge.kind is Kind.RING), 0.0, 1.0)
        paid_bytes += charge.weight_bytes * groups * units
    return paid_bytes


def _sides(sizes: tuple[int, ...]) -> list[NDArray[np.int64]]:
    """Return the sides of boxes of every size, for each axis an array of shape [sizes]."""
    return list(np.meshgrid(*(np.arange(1, n + 1) for n in sizes), indexing="ij"))


def _scrap(held: int) -> int:
    """Return up to how many cells a box is scrap in a domain of *held*."""
    return -(-held // _SCRAP) - 1


def _slabs(sides: tuple[int, ...], axis: int, side: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sides of the two slabs of a box cut across *axis* after *side* cells."""
    before, after = sides[:axis], sides[axis + 1 :]
    return (*before, side, *after), (*before, sides[axis] - side, *after)
