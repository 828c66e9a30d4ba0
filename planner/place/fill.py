"""Seatings by filling: walk the grid in some order and fill one domain after the other.

The orders tried are the axes permuted, inside a tile and between tiles. Megatron's rank order is
one of them. ``improve.py`` mends what an order cannot say.
"""

from __future__ import annotations

from hashlib import blake2b
from itertools import permutations
from math import gcd, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.question import coarsen, refine_home
from planner.place.tiles import best_tiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from planner.place.question import Question

_TILES_TRIED = 12
_ORDERS_TRIED = 120


def fillings(
    capacities: Sequence[int], cells: int, volumes: Sequence[int] = ()
) -> tuple[tuple[int, ...], ...]:
    """Return how many cells each domain may hold, several ways where seats are spare.

    Full domains in order, the largest first, and all as evenly as their sizes allow; and for each
    of *volumes* whole boxes of so many cells only, where enough of them fit: two dead GPUs then
    cost their domains the rest of a box, not a box split elsewhere.
    """
    if sum(capacities) == cells:
        return (tuple(capacities),)
    ways = [_greedy(capacities, cells, range(len(capacities)))]
    by_size = sorted(range(len(capacities)), key=lambda s: (-capacities[s], s))
    ways.append(_greedy(capacities, cells, by_size))
    ways.append(_even(capacities, cells))
    for volume in volumes:
        boxed = [capacity // volume * volume for capacity in capacities]
        if cells % volume == 0 and sum(boxed) >= cells:
            ways.append(_greedy(boxed, cells, range(len(boxed))))
            ways.append(_greedy(boxed, cells, by_size))
            ways.append(_even_boxes(boxed, cells, volume))
    return tuple(dict.fromkeys(ways))


def _greedy(capacities: Sequence[int], cells: int, order: Sequence[int]) -> tuple[int, ...]:
    held, left = [0] * len(capacities), cells
    for s in order:
        held[s] = min(capacities[s], left)
        left -= held[s]
    return tuple(held)


def _even(capacities: Sequence[int], cells: int) -> tuple[int, ...]:
    held, left, open_domains = [0] * len(capacities), cells, len(capacities)
    for s in sorted(range(len(capacities)), key=lambda s: (capacities[s], s)):
        held[s] = min(capacities[s], -(-left // open_domains))
        left -= held[s]
        open_domains -= 1
    return tuple(held)


def _even_boxes(boxed: Sequence[int], cells: int, volume: int) -> tuple[int, ...]:
    held = _even([capacity // volume for capacity in boxed], cells // volume)
    return tuple(boxes * volume for boxes in held)


def fill(question: Question, held: Sequence[int], order: Sequence[int]) -> NDArray[np.int64]:
    """Return the home of each cell when domains are filled along the axes in *order*.

    Args:
        question: the grid.
        held: cells each domain gets, adding up to all cells [1].
        order: axes, the fastest running first.
    """
    last = len(question.sizes) - 1
    ranks = np.arange(question.cells).reshape(tuple(reversed(question.sizes)))
    walk = ranks.transpose([last - axis for axis in reversed(order)]).ravel()
    home = np.empty(question.cells, dtype=np.int64)
    home[walk] = np.repeat(np.arange(len(held)), held)
    return home


def ways_to_fill(question: Question) -> tuple[tuple[int, ...], ...]:
    """Return the ways to fill *question*'s domains that are worth trying: see ``fillings``."""
    volumes = sorted(
        {prod(question.sizes[i] for i in axes) for axes in _subsets(len(question.sizes))}
    )
    boxes = [v for v in volumes if 1 < v <= max(question.capacities)]
    return fillings(question.capacities, question.cells, boxes)


def filled(question: Question) -> Iterator[NDArray[np.int64]]:
    """Yield seatings by tile and order, for every way to fill the domains, each once."""
    told = set()
    for held in ways_to_fill(question):
        step = gcd(*held)
        for home in _filled_by_tiles(question, held, step):
            mark = blake2b(home.tobytes(), digest_size=16).digest()
            if mark not in told:
                told.add(mark)
                yield home


def _filled_by_tiles(
    question: Question, held: Sequence[int], step: int
) -> Iterator[NDArray[np.int64]]:
    volumes = [v for v in (step, *_smaller_volumes(question, held, step)) if v >= 1]
    for volume in dict.fromkeys(volumes):
        for tile in best_tiles(question, volume, _TILES_TRIED):
            if all(h % volume == 0 for h in held):
                coarse = coarsen(question, tile.sides, [h // volume for h in held])
                for order in _orders(coarse.sizes):
                    home = fill(coarse, coarse.capacities, order)
                    yield refine_home(question, tile.sides, home)
            else:
                yield from _filled_through(question, held, tile.sides)


def _smaller_volumes(question: Question, held: Sequence[int], step: int) -> tuple[int, ...]:
    """Return tile volumes worth trying besides the common divisor of the holdings."""
    largest = max(held)
    volumes = []
    for axes in _subsets(len(question.sizes)):
        volume = prod(question.sizes[i] for i in axes)
        if 1 < volume <= largest and volume != step:
            volumes.append(volume)
    return tuple(sorted(set(volumes), reverse=True)[:8])


def _subsets(count: int) -> Iterator[tuple[int, ...]]:
    for mask in range(1, 2**count):
        yield tuple(i for i in range(count) if mask >> i & 1)


def _filled_through(
    question: Question, held: Sequence[int], sides: Sequence[int]
) -> Iterator[NDArray[np.int64]]:
    """Fill cell by cell, tile after tile, so that only tiles at a domain's edge are split."""
    split = coarsen(question, sides, [question.cells])
    tiles_of = refine_home(question, sides, np.arange(split.cells))
    for order in _orders(split.sizes):
        rank = np.empty(split.cells, dtype=np.int64)
        grid = np.arange(split.cells).reshape(tuple(reversed(split.sizes)))
        last = len(split.sizes) - 1
        rank[grid.transpose([last - a for a in reversed(order)]).ravel()] = np.arange(split.cells)
        walk = np.argsort(rank[tiles_of], kind="stable")
        home = np.empty(question.cells, dtype=np.int64)
        home[walk] = np.repeat(np.arange(len(held)), held)
        yield home


def _orders(sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield the orders of the axes that differ (axes of one cell stay where they are)."""
    live = [i for i, n in enumerate(sizes) if n > 1]
    idle = tuple(i for i, n in enumerate(sizes) if n == 1)
    for count, order in enumerate(permutations(live)):
        if count == _ORDERS_TRIED:
            return
        yield (*order, *idle)
