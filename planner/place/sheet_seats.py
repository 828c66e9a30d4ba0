"""A seating from the parts of every domain and every sheet.

Sheets follow each other so that one ends with a part of a domain that the next goes on with. Every
sheet is seated for itself, as a question of its own; then rows and columns of sheets change places
as long as that is cheaper for the families that run across.
"""

from __future__ import annotations

from itertools import combinations, islice, permutations, product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.question import Kind, Question, cut_bytes
from planner.place.sheet_cuttings import cut_sheet

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from planner.place.sheet_choice import PartChoice
    from planner.place.sheet_cuttings import Parts
    from planner.place.sheet_parts import Sheeted

_TRIES = 3000  # changes of rows and sheets that are priced at most
_TRADES = 6000  # pieces that trade places, each with a change of rows, that are priced at most
_TRADED_MOST = 20_000  # pieces that may trade places, of rows along one axis; 2 s in 1024 cells
_MET = 1e-12  # relative; less is no better


def seated_parts(of: Sheeted, choice: PartChoice, sheet_s: float = 0.0) -> NDArray[np.int64]:
    """Return the homes of all cells, shape [cells].

    Args:
        of: the question cut into sheets.
        choice: as many parts of every size in domains as in sheets.
        sheet_s: that a solver may take for one sheet [s].
    """
    homes = [
        np.array(owners)[np.array(cut_sheet(of.sheet, parts, sheet_s).home)]
        for parts, owners in (_named if choice.sheets else _dealt)(of, choice)
    ]
    outer = [i for i, n in enumerate(of.question.sizes) if i not in of.axes and n > 1]
    orders = [outer] if choice.sheets else permutations(outer)
    grids = [_Grid(of, np.array(homes), order) for order in orders]
    grid = min(grids, key=lambda one: one.paid_bytes)
    grid.align()
    while grid.trade():
        grid.align()
    return grid.home


def _named(of: Sheeted, choice: PartChoice) -> Iterator[tuple[Parts, list[int]]]:
    """Yield the parts of every sheet, and the domains that hold them, as the choice names them."""
    free = _free(of)
    owners: dict[tuple[int, int], list[int]] = {}  # by sheet and cells of the part
    for (size, parts), sheets in zip(choice.domains, choice.sheets, strict=True):
        domain = free[size].pop(0)
        for part in zip(sheets, parts, strict=True):
            owners.setdefault(part, []).append(domain)
    for sheet, parts in enumerate(choice.cuttings):
        yield parts, [owners[sheet, k].pop(0) for k in parts]


def _free(of: Sheeted) -> dict[int, list[int]]:
    """Return the domains by the cells that they can hold."""
    free: dict[int, list[int]] = {}
    for s, size in enumerate(of.question.capacities):
        free.setdefault(min(size, of.question.cells), []).append(s)
    return free


def _dealt(of: Sheeted, choice: PartChoice) -> list[tuple[Parts, list[int]]]:
    """Return the sheets in their order: the parts of each, and the domains that hold them."""
    free = _free(of)
    closed = list(choice.domains)
    open_parts: dict[int, list[int]] = {}  # parts still to be seated of each domain begun
    left = list(choice.cuttings)
    dealt = []
    while left:
        parts = max(left, key=lambda cut: (_wanted(open_parts, cut), -len(cut), cut))
        left.remove(parts)
        owners = []
        for k in parts:
            begun = [s for s, rest in open_parts.items() if k in rest and s not in owners]
            begun = begun or [s for s, rest in open_parts.items() if k in rest]
            if begun:
                s = begun[0]
            else:
                which = min(
                    (one for one in closed if k in one[1]), key=lambda one: (len(one[1]), one)
                )
                closed.remove(which)
                s = free[which[0]].pop(0)
                open_parts[s] = list(which[1])
            open_parts[s].remove(k)
            owners.append(s)
        open_parts = {s: rest for s, rest in open_parts.items() if rest}
        dealt.append((parts, owners))
    return dealt


def _wanted(open_parts: dict[int, list[int]], cut: Parts) -> int:
    """Return how many cells of a sheet domains go on with that are begun."""
    sizes = list(cut)
    cells = 0
    for rest in open_parts.values():
        for k in rest:
            if k in sizes:
                sizes.remove(k)
                cells += k
    return cells


class _Grid:
    """The homes of all cells, sheet by sheet, and what they pay across sheets.

    Args:
        of: the question.
        homes: of the cells of every sheet, shape [sheets, cells of one].
        outer: the axes across sheets, that along which sheets follow each other first.
    """

    def __init__(self, of: Sheeted, homes: NDArray[np.int64], outer: Sequence[int]) -> None:
        question = of.question
        self.of, self.homes = of, homes
        across = tuple(c for c in question.charges if not set(c.axes) <= set(of.axes))
        self.across = Question(sizes=question.sizes, charges=across, capacities=question.capacities)
        alone = [i for i, n in enumerate(question.sizes) if n == 1 and i not in of.axes]
        order = [*of.axes, *outer, *alone]  # innermost first: cells of a sheet, then sheets
        shape = tuple(reversed([question.sizes[i] for i in order]))
        to = [len(order) - 1 - order.index(i) for i in reversed(range(len(order)))]
        index = np.arange(question.cells).reshape(shape).transpose(to)
        self.places = index.ravel()  # of each cell of the grid, in homes
        ordered = {i for c in question.charges if c.kind in (Kind.CHAIN, Kind.ENDS) for i in c.axes}
        self.movable = [axis for axis in of.axes if axis not in ordered]

    @property
    def home(self) -> NDArray[np.int64]:
        """The home of every cell, shape [cells]."""
        return np.ascontiguousarray(self.homes.ravel()[self.places])

    @property
    def paid_bytes(self) -> float:
        """What families across sheets pay [bytes]."""
        return cut_bytes(self.across, self.home)

    def align(self) -> None:
        """Change rows and whole sheets while that is cheaper across sheets."""
        if not self.across.charges:
            return
        best, tries, better = self.paid_bytes, 0, True
        while better and best > 0:
            better = False
            for change in self._changes():
                tries += 1
                if tries > _TRIES:
                    return
                before = self.homes
                self.homes = change
                paid = self.paid_bytes
                if paid < best * (1 - _MET):
                    best, better = paid, True
                else:
                    self.homes = before

    def trade(self) -> bool:
        """Let two pieces of a sheet trade places if that pays with a change of rows besides.

        Such a trade alone costs nothing, so that no single change shows what it is good for.
        """
        if not self.across.charges:
            return False
        question, start = self.of.question, self.homes
        best, tries = cut_bytes(question, self.home), 0
        trades = {axis: list(islice(self._trades(axis), _TRADED_MOST)) for axis in self.movable}
        for axis in sorted(self.movable, key=lambda axis: len(trades[axis])):
            for sheet, one, other in trades[axis]:
                traded = start.copy()
                traded[sheet, one], traded[sheet, other] = (
                    start[sheet, other[0]],
                    start[sheet, one[0]],
                )
                self.homes = traded
                if cut_bytes(question, self.home) > best * (1 + _MET):
                    continue
                for change in self._rows(axis):
                    self.homes, tries = change, tries + 1
                    if cut_bytes(question, self.home) < best * (1 - _MET):
                        return True
                    self.homes = traded
                    if tries > _TRADES:
                        self.homes = start
                        return False
        self.homes = start
        return False

    def _trades(self, axis: int) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        """Yield sheets and pieces of equal size of two of its rows, in two domains."""
        for r, homes in enumerate(self.homes):
            pieces = [
                [np.flatnonzero(row & (homes == s)) for s in np.unique(homes[row])]
                for row in self._row_masks(axis)
            ]
            shared = [row for row in pieces if len(row) > 1]
            for first, second in combinations(shared, 2):
                for one, other in product(first, second):
                    if len(one) == len(other) and homes[one[0]] != homes[other[0]]:
                        yield r, one, other

    def _row_masks(self, axis: int) -> Iterator[NDArray[np.bool_]]:
        sizes = self.of.sheet.sizes
        inner = prod(sizes[:axis])
        along = np.arange(self.of.sheet.cells) // inner % sizes[axis]
        for i in range(sizes[axis]):
            yield along == i

    def _changes(self) -> Iterator[NDArray[np.int64]]:
        """Yield homes that differ by two sheets, or by two rows of one sheet."""
        for a, b in combinations(range(len(self.homes)), 2):
            if not np.array_equal(self.homes[a], self.homes[b]):
                changed = self.homes.copy()
                changed[[a, b]] = changed[[b, a]]
                yield changed
        for axis in self.movable:
            yield from self._rows(axis)

    def _rows(self, axis: int) -> Iterator[NDArray[np.int64]]:
        """Yield homes that differ by two rows of one sheet."""
        sizes = self.of.sheet.sizes
        inner = prod(sizes[:axis])
        for r in range(len(self.homes)):
            for a, b in combinations(range(sizes[axis]), 2):
                rows = self.homes[r].reshape(-1, sizes[axis], inner)
                if np.array_equal(rows[:, a], rows[:, b]):
                    continue
                changed = self.homes.copy()
                moved = rows.copy()
                moved[:, [a, b]] = moved[:, [b, a]]
                changed[r] = moved.ravel()
                yield changed
