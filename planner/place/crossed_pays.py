"""What parts of a sheet pay at least, by so many cells of every row and of every column.

Families along rows are told by the one, those along columns by the other; prices of the pieces may
be taken off. What a part of every size pays is a dynamic programme over both. Proof:
``FORMULATION.md``, "Crossed".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bounds, rebate_bytes
from planner.place.piece_prices import Lines, Pieces
from planner.place.question import Charge, Kind, Question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_STEPS_MOST = 8  # prices of families of both that are told apart: each takes a look of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class Families:
    """The families of a sheet, by what tells what they pay.

    Args:
        rows: those along rows alone.
        columns: those along columns alone.
        both: reductions along some of both.
        beside: all others.
    """

    rows: tuple[Charge, ...]
    columns: tuple[Charge, ...]
    both: tuple[Charge, ...]
    beside: tuple[Charge, ...]


class CrossedPays:
    """What parts of a sheet pay at least, by their pieces.

    Args:
        sheet: the families inside it.
        along: axes that the cells of a row vary along.
        most: cells of the largest part [1].
    """

    def __init__(self, sheet: Question, along: tuple[int, ...], most: int) -> None:
        sizes = sheet.sizes
        across = tuple(i for i, n in enumerate(sizes) if n > 1 and i not in along)
        self.columns, self.rows = prod(sizes[i] for i in along), prod(sizes[i] for i in across)
        self.most = most
        families = sorted_families(sheet, set(along), set(across))
        row = _line(sheet, along, families.rows)
        column = _line(sheet, across, families.columns)
        self.row_bytes = np.array(_bounds(row, min(most, self.columns)))
        self.column_bytes = np.array(_bounds(column, min(most, self.rows)))
        self.beside_bytes = np.zeros(most + 1)
        beside = replace(sheet, charges=families.beside)
        if families.beside:
            self.beside_bytes = np.array(_bounds(beside, most))
        self.given_bytes = (
            self.rows * rebate_bytes(row)
            + self.columns * rebate_bytes(column)
            + rebate_bytes(beside)
            + rebate_bytes(replace(sheet, charges=families.both))
        )
        # what a part pays for families of both at least: what one row does beyond its own, by its
        # cells, and what columns and rows do, by how many there are
        self.of_row_bytes = np.zeros(len(self.row_bytes))
        self.of_many_bytes = np.zeros((len(self.row_bytes), len(self.column_bytes)))
        if families.both:
            traces = tuple(
                replace(c, axes=tuple(i for i in c.axes if i in along)) for c in families.both
            )
            joint = _line(sheet, along, (*families.rows, *traces))
            self.of_row_bytes = np.array(_bounds(joint, len(self.row_bytes) - 1)) - self.row_bytes
            for charge in families.both:
                wide = prod(sizes[i] for i in charge.axes if i in along)
                high = prod(sizes[i] for i in charge.axes if i in across)
                of_columns = -(-np.arange(len(self.row_bytes)) // wide)
                of_rows = -(-np.arange(len(self.column_bytes)) // high)
                groups = np.maximum(of_columns[:, None], of_rows)
                self.of_many_bytes += charge.weight_bytes * groups
            self.of_many_bytes = _stepped(self.of_many_bytes)
        self.told_twice = bool(families.both)

    @property
    def lines(self) -> tuple[Lines, ...]:
        """As of ``Pays``: rows, then columns."""
        return (
            Lines(cells=self.columns, times=self.rows, piece_bytes=self.row_bytes),
            Lines(cells=self.rows, times=self.columns, piece_bytes=self.column_bytes),
        )

    def at(self, price_bytes: Sequence[NDArray[np.float64]]) -> CrossedAt:
        """As of ``Pays``."""
        row_price_bytes, column_price_bytes = price_bytes
        return CrossedAt(self, row_price_bytes, column_price_bytes)

    @property
    def whole(self) -> bool:
        """Whether a part can lie in all rows, and hold columns whole for less."""
        few = 1 < self.rows <= self.most and len(self.column_bytes) == self.rows + 1
        return few and bool(self.column_bytes[-1] < self.column_bytes[-2])

    @cached_property
    def fitting(self) -> NDArray[np.bool_]:
        """Whether so many columns and rows have room for so many cells; shape [c, r, cells]."""
        columns, rows = np.arange(len(self.row_bytes)), np.arange(len(self.column_bytes))
        room: NDArray[np.bool_] = (columns[:, None] * rows)[:, :, None] >= np.arange(self.most + 1)
        return room


class CrossedAt:
    """The same less the prices of pieces.

    Columns that are held whole reach through all rows, so no row has fewer cells than there are of
    them. A ring is all that makes it worth while to hold columns whole.

    Args:
        pays: what parts pay.
        row_price_bytes: of pieces of rows, of 0, 1, … cells [bytes].
        column_price_bytes: of pieces of columns [bytes].
    """

    def __init__(
        self,
        pays: CrossedPays,
        row_price_bytes: NDArray[np.float64],
        column_price_bytes: NDArray[np.float64],
    ) -> None:
        self.pays = pays
        self.row_net = pays.row_bytes - row_price_bytes
        self.column_net = pays.column_bytes - column_price_bytes
        columns, rows = len(self.row_net) - 1, len(self.column_net) - 1
        self.by_rows = _pieced(self.row_net, rows, pays.most)  # [most columns, rows, cells]
        self.by_columns = _pieced(self.column_net, columns, pays.most)  # [most rows, columns, …]
        net = self._of_rows() + self.by_columns.transpose(1, 0, 2)
        if pays.whole:
            net[:, rows] = self.through_all.min(axis=1)
        flat = np.where(pays.fitting, net, inf).reshape(-1, pays.most + 1)
        self.at = flat.argmin(axis=0)
        self.least_bytes: NDArray[np.float64] = flat[self.at, np.arange(pays.most + 1)]
        self.least_bytes = self.least_bytes + pays.beside_bytes
        self.least_bytes[0] = 0.0

    def _of_rows(self) -> NDArray[np.float64]:
        """Return what rows pay with families of both; shape [columns, rows, cells]."""
        if not self.pays.told_twice:
            return self.by_rows
        found = self.by_rows.copy()
        for rows in range(1, found.shape[1]):
            found[1:, rows] = self._with_both(self.by_rows[1:, rows - 1], rows)
        return found

    def _with_both(self, rest: NDArray[np.float64], rows: int) -> NDArray[np.float64]:
        """Return what rows pay with families of both, by the most columns, from 1 on.

        Args:
            rest: what all rows but the largest pay, by its cells, 1, 2, …; shape [sizes, …, cells].
            rows: how many there are in all [1].
        """
        pays, cells = self.pays, rest.shape[-1]
        first = np.full_like(rest, inf)
        for k in range(1, min(len(rest), cells - 1) + 1):
            first[k - 1, ..., k:] = self.row_net[k] + rest[k - 1, ..., : cells - k]
        many = pays.of_many_bytes[1:, rows]
        found = np.empty_like(rest)
        for paid in np.unique(many):
            more = np.maximum(pays.of_row_bytes[1:], paid)
            both = np.minimum.accumulate(first + more.reshape(-1, *[1] * (rest.ndim - 1)), axis=0)
            found[many == paid] = both[many == paid]
        return found

    @cached_property
    def through_all(self) -> NDArray[np.float64]:
        """What parts in all rows pay, by columns and how many of these they hold whole.

        Shape [columns, whole, cells] [bytes].
        """
        pays, rows, most = self.pays, self.pays.rows, self.pays.most
        columns = len(self.row_net) - 1
        whole_most = min(columns, most // rows)
        found = np.full((columns + 1, whole_most + 1, most + 1), inf)
        least = np.maximum(np.arange(whole_most + 1), 1)  # cells of every row
        if pays.told_twice:
            rest = self._no_less(rows - 1, whole_most)[1:, least]
            found[1:] = self._with_both(rest, rows)
            found[least[None, :] > np.arange(columns + 1)[:, None]] = inf
        else:
            found[:] = self._no_less(rows, whole_most)[:, least]
        for whole in range(whole_most + 1):
            held = whole * rows
            others = np.full((columns + 1, most + 1), inf)
            rest = self.by_columns[rows - 1, : columns + 1 - whole, : most + 1 - held]
            others[whole:, held:] = rest + whole * self.column_net[rows]
            found[:, whole] += others
        return found

    def _no_less(self, pieces: int, floors_most: int) -> NDArray[np.float64]:
        """Return what exactly so many pieces of rows pay, by the most and the least of their cells.

        Shape [sizes, floors_most + 1, cells + 1]; no floor is 0 [bytes].
        """
        sizes, cells = len(self.row_net), self.pays.most
        now = np.full((pieces + 1, floors_most + 1, cells + 1), inf)
        now[0, :, 0] = 0.0
        found = np.full((sizes, floors_most + 1, cells + 1), inf)
        found[0] = now[pieces]
        for k in range(1, min(sizes - 1, cells) + 1):
            top = min(k, floors_most) + 1
            for n in range(1, pieces + 1):
                more = now[n - 1, :top, : cells + 1 - k] + self.row_net[k]
                np.minimum(now[n, :top, k:], more, out=now[n, :top, k:])
            found[k] = now[pieces]
        found[cells + 1 :] = now[pieces]
        return found

    def cheapest(self, cells: int) -> tuple[tuple[Pieces, Pieces], float]:
        """As of ``PaysAt``."""
        pays = self.pays
        columns, rows = divmod(int(self.at[cells]), self.by_rows.shape[1])
        if not cells:
            return ((), ()), 0.0
        whole = 0
        by_rows, row_net = self.by_rows, self.row_net
        if pays.whole and rows == pays.rows:
            whole = int(self.through_all[columns, :, cells].argmin())
            if whole > 1:
                row_net = self.row_net.copy()
                row_net[1:whole] = inf
                by_rows = _pieced(row_net, rows, pays.most)
        of_rows: tuple[int, ...] = ()
        more, largest, left = 0.0, columns, cells
        if pays.told_twice:
            both = np.maximum(pays.of_row_bytes[1 : columns + 1], pays.of_many_bytes[columns, rows])
            sizes = np.arange(1, min(columns, cells) + 1)
            first = row_net[sizes] + by_rows[sizes, rows - 1, cells - sizes] + both[: len(sizes)]
            k = int(first.argmin())
            of_rows, more = (k + 1,), float(both[k])
            largest, left = k + 1, cells - k - 1
        of_rows += _pieces(by_rows, largest, rows - len(of_rows), left)
        most = rows - 1 if pays.whole and rows == pays.rows else rows
        of_columns = (rows,) * whole + _pieces(
            self.by_columns, most, columns - whole, cells - whole * rows
        )
        paid = float(
            pays.row_bytes[list(of_rows)].sum() + pays.column_bytes[list(of_columns)].sum()
        )
        return (of_rows, of_columns), paid + more + float(pays.beside_bytes[cells])


def sorted_families(sheet: Question, along: set[int], across: set[int]) -> Families:
    """Return the families of a sheet, rows along these axes and columns along those."""
    rows, columns, both, beside = [], [], [], []
    for charge in sheet.charges:
        axes = {i for i in charge.axes if sheet.sizes[i] > 1}
        if axes <= along:
            rows.append(charge)
        elif axes <= across:
            columns.append(charge)
        elif charge.kind is Kind.TOUCH:
            both.append(charge)
        else:
            beside.append(charge)
    return Families(
        rows=tuple(rows), columns=tuple(columns), both=tuple(both), beside=tuple(beside)
    )


def _stepped(paid_bytes: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the same in no more than so many steps, rounded down."""
    steps = np.unique(paid_bytes)
    steps = steps[:: -(-len(steps) // _STEPS_MOST)]
    found: NDArray[np.float64] = steps[np.searchsorted(steps, paid_bytes, side="right") - 1]
    return found


def _line(sheet: Question, axes: tuple[int, ...], charges: Sequence[Charge]) -> Question:
    """Return one line of a sheet with these families."""
    sizes = tuple(n if i in axes else 1 for i, n in enumerate(sheet.sizes))
    return Question(sizes=sizes, charges=tuple(charges), capacities=(prod(sizes),))


def _bounds(question: Question, most: int) -> list[float]:
    return domain_bounds(question, range(most + 1), sharp=True)


def _pieced(
    net_bytes: NDArray[np.float64], pieces_most: int, cells_most: int
) -> NDArray[np.float64]:
    """Return what exactly so many pieces of so many cells pay, by the largest of them allowed.

    Shape [sizes, pieces + 1, cells + 1] [bytes].
    """
    found = np.full((len(net_bytes), pieces_most + 1, cells_most + 1), inf)
    found[0, 0, 0] = 0.0
    for k in range(1, len(net_bytes)):
        here = found[k]
        here[:] = found[k - 1]
        for n in range(1, pieces_most + 1):
            more = here[n - 1, : cells_most + 1 - k] + net_bytes[k]
            np.minimum(here[n, k:], more, out=here[n, k:])
    return found


def _pieces(table: NDArray[np.float64], largest: int, pieces: int, cells: int) -> tuple[int, ...]:
    """Return the cheapest pieces, the largest first."""
    found = []
    k = largest
    while pieces:
        while table[k - 1, pieces, cells] == table[k, pieces, cells]:
            k -= 1
        found.append(k)
        pieces, cells = pieces - 1, cells - k
    return tuple(found)
