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


@dataclass(slots=True)
class _Part:
    """A box with its stretch of the line, and what it pays in its cheapest cutting.

    Args:
        sides: cells along each axis.
        inside: seats of its own before each domain's end inside.
        bytes_least: what it pays at least; all of it, once known [bytes].
        known: whether no cutting is cheaper.
        axis: that the cheapest cut is across.
        side: cells along it of the first slab, 0 where nothing is cut.
    """

    sides: tuple[int, ...]
    inside: tuple[int, ...]
    bytes_least: float
    known: bool = False
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
        self.scraps: list[int] = []  # cells up to which a box is scrap, of each domain
        self.at: dict[tuple[tuple[int, ...], int], _Part] = {}  # along the line in hand
        self.met: dict[tuple[object, ...], _Part] = {}  # along all lines
        self.least: dict[tuple[tuple[int, ...], int, int], float] = {}

    def filled(self, held: Sequence[int]) -> NDArray[np.int64]:
        """Return a seating of *held* cells a domain, in their order along the line."""
        taken = [s for s, cells in enumerate(held) if cells]
        self.held = [held[s] for s in taken]
        self.ends, self.looked = list(accumulate(self.held)), 0
        self.scraps = [-(-cells // _SCRAP) - 1 for cells in self.held]
        self.at = {}
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
        part = self._part(sides, start)
        self._bytes(part, start, inf)
        if part.side == 0:
            home[...] = bisect_right(self.ends, start)
            return
        head, tail = np.split(home, [part.side], axis=len(sides) - 1 - part.axis)
        one, other = _slabs(sides, part.axis, part.side)
        self._seat(head, one, start)
        self._seat(tail, other, start + prod(one))

    def _part(self, sides: tuple[int, ...], start: int) -> _Part:
        """Return what is known of a box that begins at seat *start*."""
        found = self.at.get((sides, start))
        if found is None:
            found = self.at[sides, start] = self._met(sides, start)
        return found

    def _met(self, sides: tuple[int, ...], start: int) -> _Part:
        """Return the same from another place or line, where the box pays as much."""
        volume = prod(sides)
        first, last = bisect_right(self.ends, start), bisect_left(self.ends, start + volume)
        if first == last:
            share = self.scrap_share if volume <= self.scraps[first] else 1.0
            return _Part(sides, (), self.boxes.bytes_of(sides) * share, known=True)
        inside = tuple([end - start for end in self.ends[first:last]])
        key: tuple[object, ...] = (sides, inside)
        if self.scrap_share < 1.0:
            key = (sides, inside, self.scraps[first], self.scraps[last])
        found = self.met.get(key)
        if found is None:
            least = self._least(sides, inside[0], first)
            for domain in range(first + 1, last):
                least += self._least(sides, self.held[domain], domain)
            least += self._least(sides, volume - inside[-1], last)
            found = self.met[key] = _Part(sides, inside, least)
        return found

    def _least(self, sides: tuple[int, ...], cells: int, domain: int) -> float:
        """Return what a domain pays at least for *cells* in boxes within *sides* [bytes]."""
        scrap = min(cells, self.scraps[domain]) if self.scrap_share < 1.0 else 0
        least = self.least.get((sides, cells, scrap))
        if least is None:
            a_cell = self.boxes.least_a_cell(sides, cells)
            if scrap:
                a_cell = min(a_cell, self.scrap_share * self.boxes.least_a_cell(sides, scrap))
            least = self.least[sides, cells, scrap] = a_cell * cells
        return least

    def _bytes(self, part: _Part, start: int, most: float) -> float:
        """Return the price in the cheapest cutting; above *most*, a bound that is above it, too."""
        if not part.known and part.bytes_least <= most:
            look()
            self.looked += 1
            self._search(part, start, most)
        return part.bytes_least

    def _search(self, part: _Part, start: int, most: float) -> None:
        """Look for the cheapest cut, the first of several, that costs *most* at most."""
        ways = []
        for index, (axis, side) in enumerate(self._ways(part.sides, part.inside)):
            one, other = _slabs(part.sides, axis, side)
            middle = start + prod(one)
            head, tail = self._part(one, start), self._part(other, middle)
            least = head.bytes_least + tail.bytes_least
            ways.append((least, index, axis, side, head, tail, middle))
        ways.sort(key=lambda way: way[:2])
        if self.looked >= _STATES_MOST:  # look no further than the two slabs
            del ways[1:]
            most = inf
        best, best_index, beyond = inf, 0, inf
        for least, index, axis, side, head, tail, middle in ways:
            enough = min(best, most) * (1 + _ROUNDING)
            cost = least
            if cost <= enough:
                price = self._bytes(head, start, enough - tail.bytes_least)
                cost = price + tail.bytes_least
                if cost <= enough:
                    cost = price + self._bytes(tail, middle, enough - price)
            if cost > enough:
                beyond = min(beyond, cost)
            elif (cost, index) < (best, best_index):
                best, best_index = cost, index
                part.axis, part.side, part.known = axis, side, True
        least = min(best, beyond)
        part.bytes_least = best if part.known else max(part.bytes_least, least)

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


def _slabs(sides: tuple[int, ...], axis: int, side: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the sides of the two slabs of a box cut across *axis* after *side* cells."""
    before, after = sides[:axis], sides[axis + 1 :]
    return (*before, side, *after), (*before, sides[axis] - side, *after)
