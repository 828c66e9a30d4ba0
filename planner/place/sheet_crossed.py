"""Sheets whose lines are cut both ways: prices on the pieces of rows, and of columns.

A part of a sheet is a set of cells of a grid: so many of every *row* and so many of every
*column*, in r rows and c columns, which hold r x c cells at most. Rows are cut into pieces, and so
are columns: a price on every size of both ties what parts hold to what there is of them. Proof:
``FORMULATION.md``, "Crossed".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.crossed_pays import Pays, PaysAt, sorted_families
from planner.place.merge import least_split
from planner.place.part_choice import Choices
from planner.place.price_ascent import best_prices
from planner.place.question import Kind
from planner.place.sheet_prices import Fillings, SheetPrices, counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.question import Charge
    from planner.place.sheet_parts import Sheeted

_TURNS = 250  # times that prices are asked for anew
_TABLE_MOST = 100_000  # rows x columns x cells of a part, past which a guess takes over 20 ms
_COSTLESS = 1e-3  # of what the dearest piece pays, which one that pays nothing is reckoned at


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossed:
    """A question cut into sheets, and these into rows and columns.

    Args:
        of: the question cut into sheets.
        along: axes that the cells of a row vary along.
        pays: what parts pay inside a sheet.
        first: that with what a domain's first part pays across sheets as families of its own.
    """

    of: Sheeted
    along: tuple[int, ...]
    pays: Pays
    first: Pays

    @property
    def widths(self) -> tuple[int, int, int]:
        """Prices of parts, of pieces of rows and of columns [1]."""
        pays = self.pays
        return self.of.largest, len(pays.row_bytes) - 1, len(pays.column_bytes) - 1

    def inside(
        self,
        row_price_bytes: NDArray[np.float64],
        column_price_bytes: NDArray[np.float64],
        more: tuple[Charge, ...],
    ) -> NDArray[np.float64]:
        """Return what parts of 0, 1, … cells pay at least, these families of a sheet included."""
        sheet = replace(self.of.sheet, charges=(*self.of.sheet.charges, *more))
        pays = Pays(sheet, self.along, self.of.largest)
        return PaysAt(pays, row_price_bytes, column_price_bytes).least


def crossings(of: Sheeted) -> list[tuple[int, ...]]:
    """Return axes of rows worth a look, the best first.

    Other families run along columns alone, rings the best: those tell what parts are cut from. Rows
    are those of families that are dear to split.
    """
    sheet = of.sheet
    live = {i for i, n in enumerate(sheet.sizes) if n > 1}
    found = []
    for charge in sorted(sheet.charges, key=lambda c: (-least_split(sheet, c), c.axes)):
        along = live & set(charge.axes)
        columns = sorted_families(sheet, along, live - along).columns
        if not (along and columns):
            continue
        length = prod(sheet.sizes[i] for i in along)
        pieces = [min(n, of.largest) + 1 for n in (length, sheet.cells // length)]
        if prod(pieces) * (of.largest + 1) <= _TABLE_MOST:
            rings = any(c.kind is Kind.RING for c in columns)
            found.append((not rings, tuple(sorted(along))))
    found.sort(key=lambda one: one[0])
    return list(dict.fromkeys(along for _, along in found))


def crossed(of: Sheeted, along: tuple[int, ...]) -> Crossed:
    """Return the sheets with their rows, whose cells vary along these axes, and columns."""
    pays = Pays(of.sheet, along, of.largest)
    first = Pays(of.joint, along, of.largest) if of.traces else pays
    return Crossed(of=of, along=along, pays=pays, first=first)


def crossed_prices(both: Crossed, start: SheetPrices, cut_bytes: float) -> SheetPrices:
    """Return good prices of parts where pieces of rows and columns have good prices, too.

    The best so far when the time is up.

    Args:
        both: the question cut into sheets, and these into rows and columns.
        start: prices of the parts alone.
        cut_bytes: stop when this is reached [bytes].
    """
    of, pays = both.of, both.pays
    of_pieces = [
        np.maximum(paid[1:], _COSTLESS * paid.max()) for paid in (pays.row_bytes, pays.column_bytes)
    ]
    choices = Choices(
        part_bytes=(of.pays_bytes[0, 1:], *of_pieces),
        groups=(of.sheets, of.sheets * pays.rows, of.sheets * pays.columns),
        stock=of.stock,
    )
    begun = [_begun(both, start)]
    return best_prices(choices, begun, partial(_Guess.at, both), cut_bytes, _TURNS).prices


def begun_bytes(both: Crossed, start: SheetPrices) -> float:
    """Return the bound that ``crossed_prices`` begins with [bytes]."""
    return _begun(both, start).bound_bytes


def _begun(both: Crossed, start: SheetPrices) -> _Guess:
    price_bytes = np.zeros(sum(both.widths))
    price_bytes[: both.of.largest] = start.price_bytes[1:]
    return _Guess.at(both, price_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Guess:
    """As of ``Guess``.

    Args:
        both: what has prices.
        price_bytes: of parts of 1, 2, … cells, then of pieces of rows, then of columns [bytes].
        pays: what parts pay inside a sheet, less prices.
        first: what first parts pay across sheets, too.
        cuttings: the prices of the pieces of a row, and of a column.
        prices: of the parts.
    """

    both: Crossed
    price_bytes: NDArray[np.float64]
    pays: PaysAt
    first: PaysAt
    cuttings: tuple[Fillings, Fillings]
    prices: SheetPrices

    @classmethod
    def at(cls, both: Crossed, price_bytes: NDArray[np.float64]) -> _Guess:
        """Return what these prices say."""
        of, parts = both.of, both.of.largest
        ends = np.cumsum(both.widths)[:-1]
        _, row, column = (np.concatenate([[0.0], one]) for one in np.split(price_bytes, ends))
        pays = PaysAt(both.pays, row, column)
        first = PaysAt(both.first, row, column) if of.traces else pays
        cuttings = (
            Fillings(row[None, :], both.pays.columns),
            Fillings(column[None, :], both.pays.rows),
        )
        pays_bytes = pays.least + of.across_bytes
        pays_bytes[of.sheets :] = inf  # a domain has one part of each sheet at most
        if of.traces:
            pays_bytes[0] = np.maximum(pays_bytes[0], first.least + of.alone_bytes)
        inside = (
            both.pays.given_bytes
            - both.pays.rows * cuttings[0].least(both.pays.columns)
            - both.pays.columns * cuttings[1].least(both.pays.rows)
        )
        priced = replace(
            of,
            inside=partial(both.inside, row, column),
            part_bytes=pays.least,
            pays_bytes=pays_bytes,
            inside_given_bytes=inside,
            given_bytes=of.given_bytes + of.sheets * (inside - of.inside_given_bytes),
        )
        prices = SheetPrices(of=priced, price_bytes=np.concatenate([[0.0], price_bytes[:parts]]))
        return cls(
            both=both,
            price_bytes=price_bytes,
            pays=pays,
            first=first,
            cuttings=cuttings,
            prices=prices,
        )

    @property
    def bound_bytes(self) -> float:
        """As of ``Guess``."""
        return self.prices.bound_bytes

    @property
    def told_bytes(self) -> float:
        """As of ``Guess``."""
        of = self.both.of
        given = of.given_bytes + of.sheets * (self.both.pays.given_bytes - of.inside_given_bytes)
        return self.prices.chosen_from_bytes + given - of.beside_bytes

    def join(self, choices: Choices) -> None:
        """As of ``Guess``: the cheapest fillings, and cuttings of a sheet, a row and a column."""
        of, pays = self.both.of, self.both.pays
        _, columns, rows = self.both.widths
        for held in sorted(set(self.prices.cheapest_held)):
            parts = self.prices.domains.cheapest(held)
            of_rows, of_columns, paid = self._cheapest(parts)
            counts = (
                counted(parts, of.largest),
                counted(of_rows, columns),
                counted(of_columns, rows),
            )
            choices.add_shape(held, paid, np.concatenate(counts))
        choices.add_partition(0, counted(self.prices.sheets.cheapest(of.sheet.cells), of.largest))
        choices.add_partition(1, counted(self.cuttings[0].cheapest(pays.columns), columns))
        choices.add_partition(2, counted(self.cuttings[1].cheapest(pays.rows), rows))

    def _cheapest(self, parts: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...], float]:
        """Return the cheapest pieces of all parts of a domain, and what it pays [bytes]."""
        of = self.both.of
        of_rows: tuple[int, ...] = ()
        of_columns: tuple[int, ...] = ()
        paid = 0.0
        for rank, k in enumerate(parts):
            across = float(of.across_bytes[min(rank, len(of.across_bytes) - 1), k])
            together = rank == 0 and self.first.least[k] + of.alone_bytes[k] > (
                self.pays.least[k] + across
            )
            rows, columns, pays = (self.first if together else self.pays).cheapest(k)
            of_rows, of_columns = of_rows + rows, of_columns + columns
            paid += pays + (float(of.alone_bytes[k]) if together else across)
        return of_rows, of_columns, paid
