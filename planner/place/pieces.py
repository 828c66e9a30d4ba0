"""Seatings where seats are spare: the grid cut into boxes that domains can hold, none need be full.

Dead GPUs leave domains of 7 boxes beside some of 8, and more of them than are needed. The grid is
cut across its axes again and again until every box fits; up to a number of boxes may be of the
larger capacity, all others of a smaller one. What domains pay for boxes is additive, so the
cheapest way to cut is found by dynamic programming over the sides of boxes; equal boxes cost the
same wherever they lie.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.question import coarsen, refine_home, whole_boxes
from planner.place.seat_line import boxes_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from planner.place.question import Question

_LARGE_MOST = 16  # boxes of the larger capacity that are counted
_FINE_CELLS = 300  # cells past which fewer capacities are tried
_SIDES_MOST = 3000  # boxes by their sides, past which a grid is too fine
_CAPACITIES = 5  # larger capacities tried, and smaller ones beside each


def piece_fillings(question: Question) -> Iterator[NDArray[np.int64]]:
    """Yield seatings in boxes, on grids of whole axes kept together, the coarsest first."""
    capacities = np.array(question.capacities)
    for sides in whole_boxes(question.sizes):
        volume = prod(sides)
        if volume > capacities.max():
            continue
        if prod(n // a for n, a in zip(question.sizes, sides, strict=True)) > _SIDES_MOST:
            continue
        held = capacities // volume
        if int(held.sum()) * volume < question.cells:
            continue
        coarse = coarsen(question, sides, held.tolist())
        for home in _cut_up(coarse):
            yield refine_home(question, sides, home)


def _cut_up(question: Question) -> Iterator[NDArray[np.int64]]:
    """Yield seatings for several pairs of a larger and a smaller capacity."""
    by_size = sorted(range(len(question.capacities)), key=lambda s: (-question.capacities[s], s))
    sorted_capacities = [question.capacities[s] for s in by_size]
    values = sorted({c for c in sorted_capacities if c}, reverse=True)
    tried = set()
    fine = question.cells > _FINE_CELLS
    for at, large in enumerate(values[: 2 if fine else _CAPACITIES]):
        count = sum(c >= large for c in sorted_capacities)
        for small in _below(values[at:], 3 if fine else _CAPACITIES):
            if (large, small) in tried:
                continue
            tried.add((large, small))
            boxes = _Cutting(question, large, small, min(count, _LARGE_MOST)).boxes()
            home = _seated(question, boxes, by_size, sorted_capacities)
            if home is not None:
                yield home


def _below(values: Sequence[int], most: int) -> list[int]:
    """Return *most* of *values*, the first two and some spread over the rest."""
    if len(values) <= most:
        return list(values)
    spread = np.linspace(2, len(values) - 1, most - 2).astype(int)
    return [values[0], values[1], *(values[int(i)] for i in spread)]


def _seated(
    question: Question,
    boxes: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    by_size: Sequence[int],
    capacities: Sequence[int],
) -> NDArray[np.int64] | None:
    """Give the largest boxes to the largest domains; None where one does not fit."""
    order = sorted(boxes, key=lambda box: (-prod(box[1]), box))
    if len(order) > len(by_size):
        return None
    grid = np.empty(tuple(reversed(question.sizes)), dtype=np.int64)
    for (origin, sides), s, capacity in zip(order, by_size, capacities, strict=False):
        if prod(sides) > capacity:
            return None
        grid[
            tuple(slice(o, o + a) for o, a in zip(reversed(origin), reversed(sides), strict=True))
        ] = s
    return grid.ravel()


class _Cutting:
    """The cheapest cutting of every box into boxes of *small* cells, *count* of *large* at most."""

    def __init__(self, question: Question, large: int, small: int, count: int) -> None:
        self.question, self.large, self.small = question, large, small
        self.count = count if large > small else 0
        self.alone_bytes = boxes_bytes(question)
        sides = np.indices(question.sizes) + 1
        volume = np.prod(sides, axis=0)
        # with j large boxes at most, of the box of a x b x … cells at [a - 1, b - 1, …, j]
        self.costs = np.full((*question.sizes, self.count + 1), np.inf)
        self.costs[volume <= large, 1:] = self.alone_bytes[volume <= large, None]
        self.costs[volume <= small, 0] = self.alone_bytes[volume <= small]
        most = np.arange(self.count + 1)
        shared = np.minimum(most, most[:, None])  # of j, those in the first half
        self.shares = shared * (self.count + 1) + most[:, None] - shared
        left = np.flatnonzero(volume > small)
        for box in left[np.argsort(volume.ravel()[left], kind="stable")].tolist():
            self._cut(tuple(int(at) for at in np.unravel_index(box, question.sizes)))

    def boxes(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """Return (origin, sides) of the boxes of the cheapest cutting of the whole grid."""
        found: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
        self._gather(self.question.sizes, tuple(0 for _ in self.question.sizes), self.count, found)
        return found

    def _cut(self, box: tuple[int, ...]) -> None:
        """Lower the costs of a box to those of its halves together, across every axis."""
        costs: NDArray[np.float64] = self.costs[box]
        for axis, at in enumerate(box):
            if not at:
                continue
            place: tuple[int | slice, ...] = (*box[:axis], slice(at), *box[axis + 1 :])
            line: NDArray[np.float64] = self.costs[place]  # of boxes of 1 to n - 1 cells
            halves = (at + 1) // 2
            both = (line[:halves, :, None] + line[::-1][:halves, None]).min(axis=0)
            np.minimum(costs, both.ravel()[self.shares].min(axis=1), out=costs)

    def _costs(self, sides: tuple[int, ...]) -> NDArray[np.float64]:
        """Return the least cost with j large boxes at most, j = 0 to count [bytes]."""
        costs: NDArray[np.float64] = self.costs[tuple([n - 1 for n in sides])]
        return costs

    def _alone(self, sides: tuple[int, ...]) -> float:
        return self.alone_bytes.item(*[n - 1 for n in sides])

    def _gather(
        self,
        sides: tuple[int, ...],
        origin: tuple[int, ...],
        count: int,
        found: list[tuple[tuple[int, ...], tuple[int, ...]]],
    ) -> None:
        costs = self._costs(sides)
        volume = prod(sides)
        fits = volume <= self.small or (volume <= self.large and count)
        if fits and self._alone(sides) <= costs[count] * (1 + 1e-12):
            found.append((origin, sides))
            return
        ways = []
        for first, rest in _halves(sides):
            here, there = self._costs(first), self._costs(rest)
            ways += [(here[j] + there[count - j], first, rest, j) for j in range(count + 1)]
        _, first, rest, j = min(ways, key=lambda way: way[0])
        axis = next(i for i, (a, b) in enumerate(zip(first, sides, strict=True)) if a != b)
        after = (*origin[:axis], origin[axis] + first[axis], *origin[axis + 1 :])
        self._gather(first, origin, j, found)
        self._gather(rest, after, count - j, found)


def _halves(sides: tuple[int, ...]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Yield the two boxes of every cut across an axis, the first no larger than the second."""
    for axis, n in enumerate(sides):
        for side in range(1, n // 2 + 1):
            before, after = sides[:axis], sides[axis + 1 :]
            yield (*before, side, *after), (*before, n - side, *after)
