"""What two families of one domain pay together, beyond what each pays alone.

The tables of ``spread.py`` let the cells of a domain lie as each family likes best. But cells that
fill groups of one family are not free to fill those of another: q whole groups along S and the x
fullest groups along S' have at most n_(S and S') x q cells in common, so that
q n_S + (cells of the x) - n_(S and S') x q is no more than the domain holds. Proof: FORMULATION.md.
"""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.layers import room_for
from planner.place.others import holding, part_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.spread import Tables

_ROOM_MOST = 500  # vectors of touches whose layers are looked at, each for itself
_STEPS = 10  # numbers of whole groups looked at; between them what is proved for the lower holds


def tied_bytes(
    tables: Tables, touches: NDArray[np.int64], families: Sequence[int]
) -> NDArray[np.float64]:
    """Return what some families cost a domain beyond ``Tables.totals``, shape [vectors] [bytes].

    Infinite for touches that no set of so many cells has.

    Args:
        tables: the domain.
        touches: t of each of *families*, shape [vectors, len(families)].
        families: indices of the families looked at; the others may touch any number.
    """
    known = tables.of(families)
    seen = _Families(known, touches)
    best = np.zeros(len(touches))
    for j, term in enumerate(known.terms):
        if term.part_bytes:
            best = np.maximum(best, seen.by_itself(j) - seen.alone(j))
    parted = [i for i, term in enumerate(known.terms) if term.ring_bytes or term.part_bytes]
    for i, j in combinations(parted, 2):
        for whole, other in ((i, j), (j, i)):
            if known.terms[whole].ring_bytes:
                best = np.maximum(best, seen.together(whole, other))
    return best


def roomy(tables: Tables, touches: NDArray[np.int64], families: Sequence[int]) -> NDArray[np.bool_]:
    """Return whether layers leave room for the domain's cells, shape [vectors].

    Arguments as of ``tied_bytes``.
    """
    axes = [tables.terms[i].axes for i in families]
    return room_for(tables.sizes, axes, touches, tables.cells)


def beyond_bytes(
    tables: Tables, touches: NDArray[np.int64], families: Sequence[int]
) -> NDArray[np.float64]:
    """Return ``tied_bytes``, infinite also for touches that layers leave too little room for.

    Of many vectors the layers are not asked.
    """
    more = np.zeros(len(touches))
    if len(touches) <= _ROOM_MOST:
        more = np.where(roomy(tables, touches, families), 0.0, np.inf)
    left = np.isfinite(more)
    if tables.coupled and left.any():
        more[left] += tied_bytes(tables, touches[left], families)
    return more


class _Families:
    """The families of one domain at some vectors of touches."""

    def __init__(self, tables: Tables, touches: NDArray[np.int64]) -> None:
        self.tables = tables
        self.touches = touches
        self.others = [
            tables.others(i, touches, range(len(tables.terms))) for i in range(len(tables.terms))
        ]
        self.part = [
            part_limit(term.size, self.others[i], len(touches))
            for i, term in enumerate(tables.terms)
        ]
        self.whole = [self._most_whole(i) for i in range(len(tables.terms))]

    def _common(self, i: int, j: int) -> int:
        """Return how many cells a group of family i and one of family j have in common at most."""
        axes = set(self.tables.terms[i].axes) & set(self.tables.terms[j].axes)
        return prod(self.tables.sizes[a] for a in axes)

    def _most_whole(self, i: int) -> NDArray[np.int64]:
        """Return the most groups of family i that can be held whole.

        q of them meet q n_i / n_(i and f) groups of f; the other ones touched hold a cell each.
        """
        term, held = self.tables.terms[i], self.tables.cells
        vectors = len(self.touches)
        most = np.minimum(self.touches[:, i], held // term.size)
        most = np.minimum(most, holding(term.groups, self.others[i], vectors, term.size))
        for f in range(len(self.tables.terms)):
            met = term.size // self._common(i, f)
            if met < term.size:
                most = np.minimum(most, (held - self.touches[:, f]) // (term.size - met))
        return np.where(self.part[i] >= term.size, np.maximum(most, 0), 0)

    def alone(self, i: int) -> NDArray[np.float64]:
        """Return what ``Tables.totals`` counts for rings and parts of family i [bytes]."""
        counted = self.tables.parted(i, self.touches)
        return np.where(np.isfinite(counted), counted, 0.0)  # infinite counts already

    def together(self, i: int, j: int) -> NDArray[np.float64]:
        """Return what family i's rings and family j's parts or rings cost beyond ``alone``."""
        term = self.tables.terms[i]
        whole = self.whole[i]
        least = np.full(len(whole), np.inf)
        for low, high in _intervals(int(whole.max(initial=0))):
            ring = term.ring_bytes * (self.touches[:, i] - np.minimum(high, whole))
            cost = ring + self._parted(j, i, low)
            least = np.minimum(least, np.where(low <= whole, cost, np.inf))
        return least + self._own_parts(i) - self.alone(i) - self.alone(j)

    def by_itself(self, j: int) -> NDArray[np.float64]:
        """Return what family j costs by the lines of ``parts`` [bytes]."""
        rings = self.tables.terms[j].ring_bytes * (self.touches[:, j] - self.whole[j])
        return self.parts(j, None, 0) + rings

    def _own_parts(self, i: int) -> NDArray[np.float64]:
        """Return what family i's parts cost where it has rings as well."""
        if not self.tables.terms[i].part_bytes:
            return np.zeros(len(self.touches))
        return self.parts(i, None, 0)

    def _parted(self, j: int, i: int, whole: int) -> NDArray[np.float64]:
        """Return what family j costs when *whole* groups of family i are held whole."""
        term = self.tables.terms[j]
        total = np.zeros(len(self.touches))
        if term.part_bytes:
            total = total + self.parts(j, i, whole)
        if term.ring_bytes:
            most = self.whole[j]
            room = self.tables.cells - self.tables.terms[i].size * whole
            net = term.size - self._common(i, j) * whole
            if net > 0:
                most = np.minimum(most, np.maximum(room, 0) // net)
            total = total + term.ring_bytes * (self.touches[:, j] - most)
        return total

    def parts(self, j: int, i: int | None, whole: int) -> NDArray[np.float64]:
        """Return the least that the parts of family j cost, *whole* groups of i being held whole.

        The x fullest groups of j hold at most so many cells as each of these lines says; the
        parts that use all of that are less alike than any others, and the price of parts is
        concave.
        """
        term, held = self.tables.terms[j], self.tables.cells
        vectors = len(self.touches)
        slopes = [self.part[j], np.zeros(vectors, dtype=np.int64)]
        starts = [np.zeros(vectors, dtype=np.int64), np.full(vectors, held)]
        levels = {term.size - 1}
        for f in range(len(self.tables.terms)):
            met = term.size // self._common(j, f)
            slopes.append(np.full(vectors, met))
            starts.append(held - self.touches[:, f])
            if f != j:
                levels |= {k * self._common(j, f) for k in _doublings(met)}
        for level in sorted(levels):
            if 0 < level < term.size:
                most = holding(term.groups, self.others[j], vectors, level + 1)
                slopes.append(np.full(vectors, level))
                starts.append(np.maximum(self.part[j] - level, 0) * most)
        if i is not None and whole:
            slopes.append(np.full(vectors, self._common(i, j) * whole))
            starts.append(np.full(vectors, held - self.tables.terms[i].size * whole))
        return _least_of_prefixes(
            np.array(term.part_bytes), self.touches[:, j], np.array(slopes), np.array(starts)
        )


def _doublings(most: int) -> list[int]:
    """Return 1, 2, 4 … below *most*."""
    return [1 << k for k in range(most.bit_length()) if 1 << k < most]


def _intervals(most: int) -> list[tuple[int, int]]:
    """Return (lowest, highest) of ranges that together are 0 … *most*, the first ones short."""
    ranges, low = [], 0
    while low <= most:
        high = min(most, low if low < _STEPS else low + low // 2)
        ranges.append((low, high))
        low = high + 1
    return ranges


def _least_of_prefixes(
    units: NDArray[np.float64],
    t: NDArray[np.int64],
    slopes: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> NDArray[np.float64]:
    """Return min sum units[v_x] over parts v_1 >= … >= v_t whose first x are at most the lines.

    Args:
        units: price of a part of v members, concave in v [bytes].
        t: how many parts, each of 1 or more, shape [vectors].
        slopes: of the lines, shape [lines, vectors].
        starts: of the lines at x = 0; one of them is the number of cells, with slope 0.

    Returns:
        Shape [vectors]; infinite where the lines leave no room for all cells.
    """
    everything = starts[1]
    x = np.zeros(len(t), dtype=np.int64)
    used = np.zeros(len(t), dtype=np.int64)
    total = np.zeros(len(t))
    columns = np.arange(len(t))
    impossible = np.zeros(len(t), dtype=bool)
    for _ in range(len(slopes) + 1):
        todo = x < t
        if not todo.any():
            break
        lines = starts + slopes * (x + 1)
        reached = lines.min(axis=0)
        part = reached - used
        impossible |= todo & (part < 1)
        part = np.clip(part, 0, len(units) - 1)
        total += np.where(todo, units[part], 0.0)
        used = np.where(todo, reached, used)
        x = np.where(todo, x + 1, x)
        flattest = np.where(lines == reached, slopes, np.iinfo(np.int64).max).argmin(axis=0)
        slope, start = slopes[flattest, columns], starts[flattest, columns]
        below = slopes < slope
        cross = np.where(
            below, (starts - start) // np.where(below, slope - slopes, 1), np.iinfo(np.int64).max
        ).min(axis=0)
        more = np.where(todo, np.clip(np.minimum(cross, t) - x, 0, None), 0)
        impossible |= (more > 0) & (slope < 1)
        total += more * units[np.clip(slope, 0, len(units) - 1)]
        used += more * slope
        x += more
    return np.where(impossible | (used < everything), np.inf, total)
