"""Seatings where domains are of many sizes: the grid in strips, each filled up.

A strip is a section of some axes run along all of another. It is filled by as few domains as can
fill it, with the least waste, so that strips end where domains end; inside a strip a domain's edge
may lie anywhere. A busy cluster's fragments then fit together as bricks of unequal lengths do.
"""

from __future__ import annotations

from collections import Counter
from enum import Enum
from functools import cache, lru_cache, partial
from itertools import product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.question import coarsen, refine_home, whole_boxes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from planner.place.question import Question

_SECTIONS_MOST = 80  # sections of strips tried on one grid
_CELLS_MOST = 8192  # cells of a grid past which it is too fine
_DOMAINS_MOST = 48  # domains in one strip
_SPARE_DOMAINS = 1  # more domains than needed that a strip may take for less waste


def strip_fillings(question: Question) -> Iterator[NDArray[np.int64]]:
    """Yield seatings in strips, on grids of whole axes kept together, the coarsest first."""
    capacities = np.array(question.capacities)
    for sides in whole_boxes(question.sizes):
        if prod(sides) > capacities.max():
            continue
        held = capacities // prod(sides)
        coarse_cells = question.cells // prod(sides)
        if int(held.sum()) < coarse_cells or coarse_cells > _CELLS_MOST:
            continue
        coarse = coarsen(question, sides, held.tolist())
        for home in _in_strips(coarse):
            yield refine_home(question, sides, home)


def _in_strips(question: Question) -> Iterator[NDArray[np.int64]]:
    tried = 0
    largest = max(question.capacities)
    dealt, rests_shared = cache(partial(_dealt, question)), cache(partial(_rests_shared, question))
    for along, n in enumerate(question.sizes):
        if n == 1:
            continue
        others = [
            [1] if i == along else [a for a in range(1, m + 1) if m % a == 0]
            for i, m in enumerate(question.sizes)
        ]
        for section in sorted(product(*others), key=lambda sides: (prod(sides), sides)):
            if prod(section) > largest or tried >= _SECTIONS_MOST:
                continue
            tried += 1
            strip = prod(section) * n
            seats = _seats(question, along, section)
            alike = _turns(question.cells // strip)
            for held in (*(dealt(prod(section), strip, n) for n in alike), rests_shared(strip)):
                if held is not None:
                    yield _domains(held)[seats]


def _turns(strips: int) -> list[int]:
    """Return how many strips are filled with domains alike before the largest are taken."""
    return sorted({0, strips // 2, strips - 1, strips})


class Liking(Enum):
    """Which domains fill a strip, of those that do it equally well."""

    LARGE = "the largest"
    ALIKE = "those of nearly one size"


def _dealt(
    question: Question, layer: int, strip: int, alike: int
) -> list[list[tuple[int, int]]] | None:
    """Return for every strip (domain, cells), None where the domains do not suffice.

    Domains whose cells are no whole number of layers should come first, so that two of them can
    share a layer and what follows begins with a fresh one; the largest come first.
    """
    free = Counter(question.capacities)
    del free[0]
    of_size: dict[int, list[int]] = {}
    for s, capacity in enumerate(question.capacities):
        of_size.setdefault(capacity, []).append(s)
    strips = []
    for index in range(question.cells // strip):
        liking = Liking.ALIKE if index < alike else Liking.LARGE
        chosen = fewest_that_fill(free, strip, liking)
        if chosen is None:
            return None
        for capacity in chosen:
            free[capacity] -= 1
        left, filled = strip, []
        for capacity in chosen:
            filled.append((of_size[capacity].pop(0), min(capacity, left)))
            left -= filled[-1][1]
        strips.append(sorted(filled, key=lambda part: (part[1] % layer == 0, -part[1], part[0])))
    return strips


def _rests_shared(question: Question, strip: int) -> list[list[tuple[int, int]]] | None:
    """Return the same, each strip ending with a rest in a domain that it shares with other strips.

    The largest domains are dealt out, one or more to each strip; the rests are packed into the
    domains that are left, and strips that share one come one after the other. None where a strip
    fits in a domain, or the rests do not fit.
    """
    by_size = sorted(range(len(question.capacities)), key=lambda s: (-question.capacities[s], s))
    strips, largest = question.cells // strip, question.capacities[by_size[0]]
    rounds = strip // largest
    if not rounds or rounds * strips >= len(by_size):
        return None
    own: list[list[int]] = [[] for _ in range(strips)]
    for turn in range(rounds):  # there and back, so that sums are alike
        dealt = by_size[turn * strips : (turn + 1) * strips]
        for index, s in enumerate(dealt if turn % 2 == 0 else reversed(dealt)):
            own[index].append(s)
    rests = {i: strip - sum(question.capacities[s] for s in own[i]) for i in range(strips)}
    if min(rests.values()) < 0:
        return None
    found = [[(s, question.capacities[s]) for s in own[i]] for i in range(strips)]
    order = [i for i in range(strips) if not rests[i]]
    left = {i: rest for i, rest in rests.items() if rest}
    for s in by_size[rounds * strips :]:
        together = _best_fit(left, question.capacities[s])
        for i in sorted(together, key=lambda i: (-left[i], i)):
            found[i].append((s, left.pop(i)))
            order.append(i)
        if not left:
            return [found[i] for i in order]
    return None


def _best_fit(rests: Mapping[int, int], room: int) -> list[int]:
    """Return which rests fill *room* best together, the greatest first of those that do.

    >>> _best_fit({0: 18, 1: 17, 2: 10, 3: 9}, 45)
    [0, 1, 2]
    """
    items = sorted(rests, key=lambda i: (-rests[i], i))
    reach = [1]  # bit sets of the sums of the items from each on
    for i in reversed(items):
        reach.append(reach[-1] | reach[-1] << rests[i])
    reach.reverse()
    full = (reach[0] & ((1 << (room + 1)) - 1)).bit_length() - 1
    chosen = []
    for index, i in enumerate(items):
        if full >= rests[i] and reach[index + 1] >> (full - rests[i]) & 1:
            chosen.append(i)
            full -= rests[i]
    return chosen


def fewest_that_fill(free: Counter[int], cells: int, liking: Liking) -> list[int] | None:
    """Return sizes of domains that hold *cells* together, the largest first; None if none do.

    As few as can be and one more at most, with the least waste.

    >>> free = Counter({7: 6, 6: 18, 4: 2})
    >>> fewest_that_fill(free, 32, Liking.LARGE), fewest_that_fill(free, 32, Liking.ALIKE)
    ([7, 7, 7, 7, 4], [7, 7, 6, 6, 6])
    """
    sizes = [c for c in sorted(free, reverse=True) if free[c] > 0]
    fewest, room = 0, 0
    for c in sizes:
        take = min(free[c], -(-max(cells - room, 0) // c))
        fewest, room = fewest + take, room + take * c
    if room < cells or fewest > _DOMAINS_MOST:
        return None
    if liking is Liking.ALIKE:
        sizes.sort(key=lambda c: (abs(c - cells / fewest), -c))
    items = [c for c in sizes for _ in range(min(free[c], fewest + _SPARE_DOMAINS))]
    return list(_least_waste(tuple(items), cells, fewest))


@lru_cache(maxsize=4096)
def _least_waste(items: tuple[int, ...], cells: int, fewest: int) -> tuple[int, ...]:
    """Return which of *items* hold *cells* with the least waste, the largest first.

    As few as *fewest* or hardly more, the first of them rather than later ones.
    """
    most = fewest + _SPARE_DOMAINS
    # reach[i][k]: bit set of the sums that k of the items from the i-th on can have
    reach = [[1] + [0] * most]
    for c in reversed(items):
        after = reach[-1]
        reach.append([after[0]] + [after[k] | after[k - 1] << c for k in range(1, most + 1)])
    reach.reverse()
    waste, count = min(
        (_lowest_bit(reach[0][k] >> cells), k)
        for k in range(fewest, most + 1)
        if reach[0][k] >> cells
    )
    chosen: list[int] = []
    left = cells + waste
    for i, c in enumerate(items):
        if count and left >= c and reach[i + 1][count - 1] >> (left - c) & 1:
            chosen.append(c)
            count, left = count - 1, left - c
    return tuple(sorted(chosen, reverse=True))


def _lowest_bit(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _seats(question: Question, along: int, section: Sequence[int]) -> NDArray[np.int64]:
    """Return the seat of each cell: strip after strip, in each one layer upon another."""
    digits = np.unravel_index(
        np.arange(question.cells), tuple(reversed(question.sizes))
    )  # the last axis first
    position = [digits[len(question.sizes) - 1 - axis] for axis in range(len(question.sizes))]
    strip = np.zeros(question.cells, dtype=np.int64)
    inside = np.zeros(question.cells, dtype=np.int64)
    for axis, (n, side) in enumerate(zip(question.sizes, section, strict=True)):
        if axis != along:
            strip = strip * (n // side) + position[axis] // side
            inside = inside * side + position[axis] % side
    seats: NDArray[np.int64]
    seats = (strip * question.sizes[along] + position[along]) * prod(section) + inside
    return seats


def _domains(strips: Sequence[Sequence[tuple[int, int]]]) -> NDArray[np.int64]:
    """Return the domain of each seat, strip after strip."""
    parts = np.array([part for filled in strips for part in filled])
    return np.repeat(parts[:, 0], parts[:, 1])
