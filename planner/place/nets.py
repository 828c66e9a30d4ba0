"""What contents share: groups of the grid seen as nets over blocks of cells that move as one.

A *content* is what one inner domain holds, of whatever shape. Seating contents in outer domains
costs the same sums of set functions as seating cells: a net is a set of contents that one group
touches, a link a pair of contents that pay for each pair of members apart. Groups that touch the
same contents are one net with their weights added, so there are far fewer nets than groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.question import Kind, held_units

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.question import Question

_TABLE_MOST = 40_000_000  # contents x nets past which no table is made
_MARKS_SEED = 20  # of the 64-bit marks by which equal nets are told


@dataclass(frozen=True, slots=True, kw_only=True)
class Weave:
    """The grid's groups, by cell: made once, then asked about any subset of cells.

    Args:
        nets: (group of each cell, members of a group, kind, weight) of every charge that prices
            the domains a group touches.
        pairs: (group of each cell, weight) of every all-to-all; copies for each domain are taken
            for pairs of the same mean price, which only a search may.
        hops: (the next cell along a chain or its end, -1 for none, weight).
    """

    nets: tuple[tuple[NDArray[np.int64], int, Kind, float], ...]
    pairs: tuple[tuple[NDArray[np.int64], float], ...]
    hops: tuple[tuple[NDArray[np.int64], float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nets:
    """Contents, the nets that hold them, and the links between them.

    Args:
        touches: whether a net holds a content, shape [contents, nets].
        weights: of one more domain touched, shape [nets] [bytes].
        ring: whether a net that lies in one domain pays nothing at all, shape [nets]; of a net
            that does not, all k domains pay, of the others k - 1.
        links_bytes: what each ordered pair of contents pays when apart, shape
            [contents, contents] [bytes].
    """

    touches: NDArray[np.bool_]
    weights: NDArray[np.float64]
    ring: NDArray[np.bool_]
    links_bytes: NDArray[np.float64]

    def cost_bytes(self, home: NDArray[np.int64]) -> float:
        """Return what the contents pay when content c sits in outer domain ``home[c]`` [bytes]."""
        used, inner = np.unique(home, return_inverse=True)
        touched = np.zeros((len(used), len(self.weights)), dtype=bool)
        for domain in range(len(used)):
            touched[domain] = self.touches[inner == domain].any(axis=0)
        count = touched.sum(axis=0)
        units = np.where(self.ring, count * (count > 1), count - 1)
        apart = inner[:, None] != inner[None, :]
        return float((units * self.weights).sum() + self.links_bytes[apart].sum())


def weave(question: Question) -> Weave:
    """Return the groups of *question* by cell."""
    nets, pairs, hops = [], [], []
    for charge in question.charges:
        groups = groups_along(question.sizes, charge.axes)
        count, size = groups.shape
        if size < 2:
            continue
        if charge.kind in (Kind.CHAIN, Kind.ENDS):
            following = np.full(question.cells, -1)
            if charge.kind is Kind.CHAIN:
                following[groups[:, :-1]] = groups[:, 1:]
            else:
                following[groups[:, 0]] = groups[:, -1]
            hops.append((following, charge.weight_bytes))
            continue
        group_of = np.empty(question.cells, np.int64)
        group_of[groups] = np.arange(count)[:, None]
        if charge.kind in (Kind.PAIRS, Kind.COPIES):
            units = np.arange(size + 1) * np.arange(size, -1, -1)
            fit = sum(held_units(charge, size)) / float(units.sum())
            pairs.append((group_of, charge.weight_bytes * fit))
        else:
            nets.append((group_of, size, charge.kind, charge.weight_bytes))
    return Weave(nets=tuple(nets), pairs=tuple(pairs), hops=tuple(hops))


def nets_of(
    woven: Weave, cells: NDArray[np.int64], content: NDArray[np.int64], contents: int
) -> Nets | None:
    """Return the nets of *cells* (a whole grid, or one domain's), the i-th in ``content[i]``.

    None if there are too many for a table.

    Exact up to a constant for every seating of these contents (but for copies for each domain): a
    ring of which a part lies elsewhere pays for each domain that it touches here.
    """
    marks = np.random.default_rng(_MARKS_SEED).integers(1, 2**63, contents, dtype=np.uint64)
    links = np.zeros((contents, contents))
    columns: list[NDArray[np.bool_]] = []
    weights: list[NDArray[np.float64]] = []
    rings: list[NDArray[np.bool_]] = []
    for group_of, size, kind, weight in woven.nets:
        group, where, held = _held(group_of[cells], content, contents)
        starts = np.flatnonzero(np.diff(group, prepend=-1))
        if not len(starts):
            continue
        spread = np.diff(starts, append=len(group))
        whole = np.add.reduceat(held, starts) == size
        mark = np.add.reduceat(marks[where], starts)
        ring = whole if kind is Kind.RING else np.zeros(len(starts), bool)
        several = spread > 1
        _, first, same = np.unique(
            np.column_stack([mark, ring])[several], axis=0, return_index=True, return_inverse=True
        )
        chosen = np.flatnonzero(several)[first]
        alike = np.bincount(same.ravel(), minlength=len(first))
        weights.append(np.asarray(weight * alike, dtype=np.float64))
        rings.append(ring[chosen])
        if contents * (len(chosen) + sum(column.shape[1] for column in columns)) > _TABLE_MOST:
            return None
        touches = np.zeros((contents, len(chosen)), dtype=bool)
        for net, at in enumerate(chosen.tolist()):
            touches[where[starts[at] : starts[at] + spread[at]], net] = True
        columns.append(touches)
    for group_of, weight in woven.pairs:
        group, where, held = _held(group_of[cells], content, contents)
        links += weight * _together(group, where, held, contents)
    place = np.full(sum(len(hops) for hops, _ in woven.hops[:1]), -1)
    if len(place):
        place[cells] = content
    for following, weight in woven.hops:
        after = following[cells]
        inside = (after >= 0) & (place[after] >= 0)
        np.add.at(links, (content[inside], place[after[inside]]), weight / 2)
        np.add.at(links, (place[after[inside]], content[inside]), weight / 2)
    np.fill_diagonal(links, 0.0)
    return Nets(
        touches=np.concatenate(columns, axis=1) if columns else np.zeros((contents, 0), bool),
        weights=np.concatenate(weights) if weights else np.zeros(0),
        ring=np.concatenate(rings) if rings else np.zeros(0, bool),
        links_bytes=links,
    )


def _held(
    group: NDArray[np.int64], content: NDArray[np.int64], contents: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return (group, content, members of it there), by group, then by content."""
    keys, held = np.unique(group * contents + content, return_counts=True)
    return keys // contents, keys % contents, held


def _together(
    group: NDArray[np.int64], where: NDArray[np.int64], held: NDArray[np.int64], contents: int
) -> NDArray[np.float64]:
    """Return the ordered pairs of members of one group that lie in each two contents."""
    _, rows = np.unique(group, return_inverse=True)
    total = np.zeros((contents, contents))
    last = int(rows.max(initial=-1)) + 1
    step = max(1, _TABLE_MOST // 8 // contents)
    for first in range(0, last, step):
        mine = slice(*np.searchsorted(rows, [first, first + step]))
        table = np.zeros((min(step, last - first), contents))
        table[rows[mine] - first, where[mine]] = held[mine]
        with np.errstate(invalid="ignore"):  # finite factors; BLAS kernels flag their padding
            total += table.T @ table
    return total
