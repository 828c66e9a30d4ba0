"""A seating from the parts of every domain and every sheet.

Sheets follow each other so that one ends with a part of a domain that the next goes on with. Every
sheet is seated for itself, as a question of its own; then rows and columns of sheets change places
as long as that is cheaper for the families that run across.
"""

from __future__ import annotations

from itertools import combinations, permutations
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.place.clock import over
from planner.place.question import Kind, Question, cut_bytes
from planner.place.sheet_cuttings import cut_sheet
from planner.place.sheet_trades import Prices, trades_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from planner.place.sheet_choice import PartChoice
    from planner.place.sheet_cuttings import Parts
    from planner.place.sheet_parts import Sheeted

_TRIES = 3000  # changes of rows and sheets that are priced at most
_TRADES = 6000  # pieces that trade places, each with a change of rows, that are priced at most
_TRADED_MOST = 20_000  # pieces that may trade places, of rows along one axis
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
        self.prices = Prices(of, self.places)

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
        left, before = _TRIES, inf
        while left > 0 and 0 < self.paid_bytes < before * (1 - _MET) and not over():
            before = self.paid_bytes
            left = self._sheets_aligned(left)
            for axis in self.movable:
                for sheet in range(len(self.homes)):
                    left = self._rows_aligned(sheet, axis, left)

    def _sheets_aligned(self, left: int) -> int:
        """Let two sheets change places where that is cheaper; return how many may be tried yet."""
        best = self.paid_bytes
        for a, b in combinations(range(len(self.homes)), 2):
            if np.array_equal(self.homes[a], self.homes[b]):
                continue
            if left <= 0:
                break
            left, before = left - 1, self.homes
            self.homes = before.copy()
            self.homes[[a, b]] = before[[b, a]]
            paid = self.paid_bytes
            if paid < best * (1 - _MET):
                best = paid
            else:
                self.homes = before
        return left

    def _rows_aligned(self, sheet: int, axis: int, left: int) -> int:
        """Let two rows change places where that is cheaper; return how many may be tried yet."""
        rows, at, better = self.prices.rows(axis), 0, True
        while better and left > 0:
            one, other = self._unlike(sheet, axis)
            more = self.prices.of_rows(self.homes, self.prices.held(self.homes), sheet, axis)
            places = one * len(rows) + other
            tried = np.flatnonzero(places >= at)[:left]
            cheaper = np.flatnonzero(more[one, other][tried] < -_MET * self.paid_bytes)
            better = len(cheaper) > 0
            if not better:
                return left - len(tried)
            change = tried[cheaper[0]]
            left, at = left - int(cheaper[0]) - 1, int(places[change]) + 1
            self.homes = self._rows_changed(sheet, rows[one[change]], rows[other[change]])
        return left

    def _unlike(self, sheet: int, axis: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the pairs of rows of a sheet that differ."""
        known: dict[bytes, int] = {}
        rows = self.homes[sheet][self.prices.rows(axis)]
        alike = np.array([known.setdefault(row.tobytes(), len(known)) for row in rows])
        one, other = np.nonzero(np.triu(alike[:, None] != alike))
        return one, other

    def _rows_changed(
        self, sheet: int, one: NDArray[np.int64], other: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        homes = self.homes.copy()
        homes[sheet, one], homes[sheet, other] = self.homes[sheet, other], self.homes[sheet, one]
        return homes

    def trade(self) -> bool:
        """Let two pieces of a sheet trade places if that pays with a change of rows besides.

        Such a trade alone costs nothing, so that no single change shows what it is good for.
        """
        if not self.across.charges:
            return False
        start, best, left = self.homes, cut_bytes(self.of.question, self.home), _TRADES + 1
        held = self.prices.held(start)
        rows = {axis: self.prices.rows(axis) for axis in self.movable}
        trades = {axis: trades_of(start, rows[axis], _TRADED_MOST) for axis in self.movable}
        for axis in sorted(self.movable, key=lambda axis: len(trades[axis].pairs)):
            step = self.prices.trades_most
            for first in range(0, len(trades[axis].pairs), step):
                among = trades[axis].among(first, first + step)
                more = self.prices.of_trades(start, held, among)
                for index in np.flatnonzero(more <= best * _MET).tolist():
                    if left <= 0 or over():
                        return False
                    self.homes = among[index].made(start)
                    left = self._row_changed(axis, float(more[index]), -_MET * best, left)
                    if left < 0:
                        return True
                    self.homes = start
        return False

    def _row_changed(self, axis: int, traded_bytes: float, most: float, left: int) -> int:
        """Make the first change of rows that, with the trade, costs *most* more at most.

        Return how many may be tried yet, -1 if one was made.
        """
        held = self.prices.held(self.homes)
        for sheet in range(len(self.homes)):
            one, other = self._unlike(sheet, axis)
            more = self.prices.of_rows(self.homes, held, sheet, axis)[one, other][:left]
            cheaper = np.flatnonzero(traded_bytes + more < most)
            if len(cheaper):
                rows, change = self.prices.rows(axis), cheaper[0]
                self.homes = self._rows_changed(sheet, rows[one[change]], rows[other[change]])
                return -1
            left -= len(more)
        return left
