"""A seating from the cells of every stage that each domain is to hold.

Stage after stage: a domain keeps the places that it had in the stage before, as far as it holds
cells of both, so that no pipeline is cut needlessly; the rest of the stage goes to those that want
more, whole groups and groups that they hold a part of first. What that leaves is for exchanges.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.question import Kind, touched_units

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.question import Charge
    from planner.place.stages import Staged

_DIGITS = 3  # of a byte, below which prices for a cell differ by rounding alone


def seated(of: Staged, held: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """Return seatings with these counts, begun at the first stage and at the last.

    Args:
        of: the question cut along its pipeline.
        held: cells of every stage that each domain holds, shape [domains, stages].

    Returns:
        Homes of all cells, shape [cells] each.
    """
    forwards = _in_order(of, held)
    backwards = _in_order(of, held[:, ::-1])[:, ::-1]
    return [home_of(of, forwards), home_of(of, backwards)]


def home_of(of: Staged, by_stage: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the homes of all cells from those of each stage's, shape [sheet cells, stages]."""
    sizes = of.question.sizes
    inner = tuple(reversed([n for i, n in enumerate(sizes) if i != of.axis]))
    grid = by_stage.reshape((*inner, of.stages))
    return np.ascontiguousarray(np.moveaxis(grid, -1, len(sizes) - 1 - of.axis)).ravel()


def _in_order(of: Staged, held: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the homes of all stages' cells, shape [sheet cells, stages]."""
    sheet = _Sheet(of)
    homes: list[NDArray[np.int64]] = []
    before = np.full(sheet.cells, -1)
    for wanted in held.T:
        before = sheet.seat(wanted, before)
        homes.append(before)
    return np.column_stack(homes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Groups:
    """The groups of a family in one stage.

    Args:
        members: cells of each group, shape [groups, n].
        of_cell: the group of each cell, shape [cells].
        pays_bytes: what a domain pays that holds 0 … n members of one [bytes].
    """

    members: NDArray[np.int64]
    of_cell: NDArray[np.int64]
    pays_bytes: NDArray[np.float64]

    def held(self, cells: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return how many of *cells* lie in each group, shape [groups]."""
        return np.bincount(self.of_cell[cells], minlength=len(self.members))


class _Sheet:
    """One stage: its groups, small ones first, the last all its cells."""

    def __init__(self, of: Staged) -> None:
        sheet = of.sheet
        self.cells, self.domains = sheet.cells, len(of.question.capacities)
        charges = [c for c in sheet.charges if c.kind is not Kind.ENDS]
        charges.sort(key=lambda c: (sheet.group_size(c.axes), -c.weight_bytes))
        self.families = [_groups(groups_along(sheet.sizes, c.axes), c) for c in charges]
        everything = np.arange(self.cells)[None, :]
        self.families.append(
            _Groups(
                members=everything,
                of_cell=np.zeros(self.cells, dtype=np.int64),
                pays_bytes=np.zeros(self.cells + 1),
            )
        )

    def seat(self, wanted: NDArray[np.int64], before: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the home of each cell.

        Args:
            wanted: cells that each domain is to hold [1].
            before: the home of the same cell one stage before, -1 where there is none.
        """
        home = np.full(self.cells, -1)
        for s in np.flatnonzero(wanted).tolist():
            home[self._kept(np.flatnonzero(before == s), int(wanted[s]))] = s
        missing = wanted - np.bincount(home[home >= 0], minlength=self.domains)
        growing = wanted > missing
        order = np.lexsort([-missing, ~growing])
        for s in order[missing[order] > 0].tolist():
            left = int(missing[s])
            while left:
                taken = self._cheapest(home, s, left)
                home[taken] = s
                left -= len(taken)
        return home

    def _kept(self, mine: NDArray[np.int64], most: int) -> NDArray[np.int64]:
        """Return the cells of a domain that it had better keep: of the groups it holds most of."""
        while len(mine) > most:
            counts = [-family.held(mine)[family.of_cell[mine]] for family in self.families]
            mine = np.sort(mine[np.lexsort([mine, *reversed(counts)])][:-1])
        return mine

    def _cheapest(self, home: NDArray[np.int64], s: int, most: int) -> NDArray[np.int64]:
        """Return free cells of one group: those that *s* takes at the least price for a cell.

        Of groups that are as cheap, one that has no free cell left then, and the largest.
        """
        mine, free = np.flatnonzero(home == s), home < 0
        held = [family.held(mine) for family in self.families]
        best, taken = None, np.zeros(0, dtype=np.int64)
        for family in self.families:
            of_group = free[family.members]
            count = of_group.sum(axis=1)
            takes = np.minimum(count, most)
            group, at = np.nonzero(of_group & (of_group.cumsum(axis=1) <= most))
            if not len(group):
                continue
            cells = family.members[group, at]
            price = self._prices_bytes(cells, group, held, len(count)) / np.maximum(takes, 1)
            price = np.where(takes > 0, np.round(price, _DIGITS), inf)
            left = count - takes
            first = np.lexsort((left, -takes, left > 0, price))[0]
            key = (float(price[first]), bool(left[first]), -int(takes[first]), int(left[first]))
            if best is None or key < best:
                best, taken = key, cells[group == first]
        return taken

    def _prices_bytes(
        self,
        cells: NDArray[np.int64],
        group: NDArray[np.int64],
        held: list[NDArray[np.int64]],
        groups: int,
    ) -> NDArray[np.float64]:
        """Return what a domain pays more for the cells of each of some groups, shape [groups].

        Args:
            cells: of all these groups.
            group: of each cell.
            held: cells of each group of each family that the domain holds.
            groups: how many there are.
        """
        price = np.zeros(groups)
        for family, have in zip(self.families, held, strict=True):
            keys, more = np.unique(group * len(have) + family.of_cell[cells], return_counts=True)
            of_group, touched = np.divmod(keys, len(have))
            pays, had = family.pays_bytes, have[touched]
            price += np.bincount(of_group, weights=pays[had + more] - pays[had], minlength=groups)
        return price


def _groups(members: NDArray[np.int64], charge: Charge) -> _Groups:
    of_cell = np.zeros(members.size, dtype=np.int64)
    of_cell[members] = np.arange(len(members))[:, None]
    pays_bytes = charge.weight_bytes * touched_units(charge, members.shape[1])
    return _Groups(members=members, of_cell=of_cell, pays_bytes=pays_bytes)
