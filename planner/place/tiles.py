"""The tile choice: equal boxes, one to a domain, with the least cut.

Every box whose sides divide the axes and whose volume is the domain's capacity is priced in closed
form, all boxes side by side; there are at most a few thousand, so the choice is exact without a
solver. A box keeps k_S = n_S / a_S boxes to a group along axes S.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.question import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from planner.place.question import Question


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """A box of cells that one domain holds, and what seating all cells in such boxes cuts.

    Args:
        sides: cells along each axis [1].
        cut_bytes: bytes that cross when every box has a domain of its own [bytes].
    """

    sides: tuple[int, ...]
    cut_bytes: float


@lru_cache(maxsize=1024)
def divisors(number: int) -> tuple[int, ...]:
    """Return the divisors of *number*, ascending."""
    return tuple(d for d in range(1, number + 1) if number % d == 0)


def boxes(sizes: Sequence[int], volume: int) -> NDArray[np.int64]:
    """Return the sides of every box of *volume* cells whose sides divide the axes.

    Returns:
        Array [boxes, axes], in lexicographic order.

    >>> boxes((2, 4), 4).tolist()
    [[1, 4], [2, 2]]
    """
    found = list(_boxes(tuple(sizes), volume))
    return np.array(found, dtype=np.int64).reshape(len(found), len(sizes))


def _boxes(sizes: tuple[int, ...], volume: int) -> Iterator[tuple[int, ...]]:
    if not sizes:
        if volume == 1:
            yield ()
        return
    for side in divisors(gcd(sizes[0], volume)):
        left = volume // side
        if prod(sizes[1:]) % left == 0:
            for rest in _boxes(sizes[1:], left):
                yield (side, *rest)


def box_cut_bytes(question: Question, sides: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the cut when every box has a domain of its own [bytes].

    Args:
        question: the grid and its charges.
        sides: box sides, shape [boxes, axes].
    """
    total = np.zeros(len(sides))
    for charge in question.charges:
        axes = list(charge.axes)
        inside = sides[:, axes].prod(axis=1)
        size = question.group_size(axes)
        spread = size // inside
        crossing = spread > 1
        if charge.kind is Kind.PAIRS:
            units = size * (size - inside)
        elif charge.kind is Kind.COPIES:
            units = spread * np.array(charge.units)[inside]
        elif charge.kind is Kind.RING:
            units = spread * crossing
        elif charge.kind is Kind.ENDS:
            units = crossing.astype(np.int64)
        else:
            units = spread - 1
        total += charge.weight_bytes * question.groups(axes) * units
    return total


def best_tiles(question: Question, volume: int, most: int = 1) -> tuple[Tile, ...]:
    """Return the *most* cheapest tiles of *volume* cells, cheapest first; none if none divides."""
    sides = boxes(question.sizes, volume)
    if not len(sides):
        return ()
    cuts = box_cut_bytes(question, sides)
    order = np.argsort(cuts, kind="stable")[:most]
    return tuple(
        Tile(sides=tuple(int(a) for a in sides[i]), cut_bytes=float(cuts[i])) for i in order
    )
