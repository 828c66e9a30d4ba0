"""Seatings by boxes within boxes, for domains that no single box fills.

72 seats take one box of 64 cells and leave 8; so every domain first takes as many of the largest
boxes as fit, and the boxes left over are cut into smaller ones for the seats left over, and so on
down to single cells. Which boxes: the cheapest tiles of each volume, each inside the one before.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.place.question import cut_bytes
from planner.place.tiles import box_cut_bytes, boxes, divisors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from planner.place.question import Question

_TILES_OF_A_VOLUME = 3
_ORDERS = 6  # of the boxes of the largest tile, for each of the best chains
_CHAINS_ORDERED = 4
_BOXES_KEPT = 4_096
_FEW_CELLS, _MANY_WALKS = 2_048, 2_048
_MOST_CELLS, _FEW_WALKS = 32_768, 512
"""Walks of grids of so few cells are kept, so many of them: 8 MB and 32 MB, 2 bytes a cell."""


def nested_fillings(
    question: Question,
    held: Sequence[int],
    priced_bytes: Callable[[Question, NDArray[np.int64]], float] = cut_bytes,
) -> Iterator[NDArray[np.int64]]:
    """Yield seatings that fill domains with boxes within boxes, the most promising last.

    Args:
        question: the grid and its charges.
        held: cells that each domain is to hold, adding up to all cells [1].
        priced_bytes: the cut of a seating, for who has counted some before [bytes].
    """
    priced = []
    for chain in _chains(question, held):
        home = _seated(question, held, chain, range(len(question.sizes)))
        priced.append((priced_bytes(question, home), chain))
        yield home
    priced.sort(key=lambda entry: entry[0])
    for _, chain in priced[:_CHAINS_ORDERED]:
        for order in _orders(question, chain[0]):
            yield _seated(question, held, chain, order)


def _chains(question: Question, held: Sequence[int]) -> list[tuple[tuple[int, ...], ...]]:
    """Return chains of boxes, each inside the one before, the last a single cell."""
    single = tuple(1 for _ in question.sizes)
    found: dict[tuple[tuple[int, ...], ...], None] = {(single,): None}
    for volume in divisors(question.cells):
        if 1 < volume <= max(held):
            for first in _cheapest(question, question.sizes, volume, _TILES_OF_A_VOLUME):
                chain = [first]
                left = [h % volume for h in held]
                while max(left) > 1 and chain[-1] != single:
                    inner = _next_box(question, chain[-1], left)
                    left = [h % prod(inner) for h in left]
                    chain.append(inner)
                if chain[-1] != single:
                    chain.append(single)
                found[tuple(chain)] = None
    return list(found)


def _next_box(question: Question, outer: tuple[int, ...], left: Sequence[int]) -> tuple[int, ...]:
    """Return the box inside *outer* to go on with: the largest volume that fits most seats."""
    fitting = [v for v in divisors(prod(outer)) if v <= max(left) and v < prod(outer)]
    volume = max(fitting, key=lambda v: (sum(h // v * v for h in left), v))
    return _cheapest(question, outer, volume, 1)[0]


@lru_cache(maxsize=_BOXES_KEPT)
def _cheapest(
    question: Question, within: tuple[int, ...], volume: int, most: int
) -> tuple[tuple[int, ...], ...]:
    """Return the cheapest boxes of so many cells, for any way to fill the domains."""
    sides = boxes(within, volume)
    if not len(sides):
        return ()
    order = np.argsort(box_cut_bytes(question, sides), kind="stable")[:most]
    return tuple(tuple(int(a) for a in sides[i]) for i in order)


def _orders(question: Question, tile: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield rotations of the axes along which there are several boxes, both ways."""
    axes = [i for i, (n, a) in enumerate(zip(question.sizes, tile, strict=True)) if n > a]
    idle = [i for i in range(len(question.sizes)) if i not in axes]
    turns = [axes[k:] + axes[:k] for k in range(len(axes))]
    for turn in (turns + [turn[::-1] for turn in turns])[1 : 1 + _ORDERS]:
        yield (*turn, *idle)


def _seated(
    question: Question,
    held: Sequence[int],
    chain: Sequence[Sequence[int]],
    order: Sequence[int],
) -> NDArray[np.int64]:
    """Return the seating that fills with the boxes of *chain*, walking them in *order*."""
    walk = _walk(question.sizes, chain, order)
    home = np.empty(question.cells, dtype=np.int64)
    left = np.array(held)
    domains = np.arange(len(left))
    for tile in chain:
        volume = prod(tile)
        taken = left // volume
        cells = int(taken.sum()) * volume
        home[walk[:cells]] = np.repeat(domains, taken * volume)
        left = left - taken * volume
        walk = walk[cells:]
    return home


def _walk(
    sizes: Sequence[int], chain: Sequence[Sequence[int]], order: Sequence[int]
) -> NDArray[Any]:
    """Return all cells, box after box of the first tile, inside it of the second, and so on."""
    cells, boxes_of = prod(sizes), tuple(map(tuple, chain))
    if cells > _MOST_CELLS:
        return _walked(tuple(sizes), boxes_of, tuple(order))
    kept = _small_walk if cells <= _FEW_CELLS else _large_walk
    return kept(tuple(sizes), boxes_of, tuple(order))


def _walked(
    sizes: tuple[int, ...], chain: tuple[tuple[int, ...], ...], order: tuple[int, ...]
) -> NDArray[np.int64]:
    if not sizes:
        return np.zeros(1, dtype=np.int64)
    coordinates = np.unravel_index(np.arange(prod(sizes)), tuple(reversed(sizes)))
    along = list(reversed(coordinates))
    keys = []  # lexsort takes the most important last
    for tile in chain:
        keys += [[along[axis] // tile[axis] for axis in order]]
    flat = [key for level in reversed(keys) for key in level]
    return np.lexsort(flat)


def _in_two_bytes(
    sizes: tuple[int, ...], chain: tuple[tuple[int, ...], ...], order: tuple[int, ...]
) -> NDArray[np.uint16]:
    return _walked(sizes, chain, order).astype(np.uint16)


_small_walk = lru_cache(maxsize=_MANY_WALKS)(_in_two_bytes)
_large_walk = lru_cache(maxsize=_FEW_WALKS)(_in_two_bytes)
