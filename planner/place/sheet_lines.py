"""Sheets whose lines are cut, too: a price on every piece of a line inside a part of a sheet.

A part of a sheet is itself made of *pieces*, the cells that it holds of each line of the sheet, and
every line is cut into pieces that sum to it. So a price on every size of piece ties the parts to
the lines, as that of parts ties the domains to the sheets. At given prices of pieces a sheet pays
for a part what its cheapest pieces do, and that is a question of sheets again. Proof:
``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.place.part_choice import Choices
from planner.place.price_ascent import best_prices
from planner.place.question import Question
from planner.place.sheet_parts import sheet_axes, sheeted
from planner.place.sheet_prices import Fillings, SheetPrices, counted

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.question import Charge
    from planner.place.sheet_parts import Sheeted

_TURNS = 250  # times that prices are asked for anew


@dataclass(frozen=True, slots=True, kw_only=True)
class Lined:
    """A question cut into sheets, and these into lines.

    Args:
        of: the question cut into sheets.
        lines: one of its sheets, cut into lines.
        first: that with what a domain's first part pays across sheets as families of its own.
    """

    of: Sheeted
    lines: Sheeted
    first: Sheeted

    def at(self, piece_bytes: NDArray[np.float64]) -> LinedAt:
        """Return the sheets where pieces of 0, 1, … cells have these prices [bytes]."""
        of, lines = self.of, self.lines
        pieces = Fillings(lines.pays_bytes - piece_bytes, of.largest)
        first = Fillings(self.first.pays_bytes - piece_bytes, of.largest) if of.traces else pieces
        cuttings = Fillings(piece_bytes[None, :], lines.sheet.cells)
        inside = lines.given_bytes - lines.sheets * cuttings.least(lines.sheet.cells)
        pays_bytes = pieces.all_least + of.across_bytes
        pays_bytes[of.sheets :] = inf  # a domain has one part of each sheet at most
        if of.traces:
            pays_bytes[0] = np.maximum(pays_bytes[0], first.all_least + of.alone_bytes)
        return LinedAt(
            both=self,
            pieces=pieces,
            first=first,
            cutting=cuttings.cheapest(lines.sheet.cells),
            of=replace(
                of,
                inside=partial(self._inside, tuple(piece_bytes.tolist())),
                part_bytes=pieces.all_least,
                pays_bytes=pays_bytes,
                inside_given_bytes=inside,
                given_bytes=of.given_bytes + of.sheets * (inside - of.inside_given_bytes),
            ),
        )

    def _inside(
        self, piece_bytes: tuple[float, ...], more: tuple[Charge, ...]
    ) -> NDArray[np.float64]:
        """Return what parts of 0, 1, … cells pay at least, these families of a sheet included."""
        lines = sheeted(one_sheet(self.of, more), self.lines.axes)
        return Fillings(lines.pays_bytes - np.array(piece_bytes), self.of.largest).all_least


@dataclass(frozen=True, slots=True, kw_only=True)
class LinedAt:
    """Sheets at given prices of pieces.

    Args:
        both: the question cut into sheets, and these into lines.
        pieces: what parts pay inside a sheet, less the prices of their pieces.
        first: what first parts pay across sheets, too.
        cutting: the cheapest pieces of a line.
        of: the sheets, whose parts pay what the cheapest pieces do.
    """

    both: Lined
    pieces: Fillings
    first: Fillings
    cutting: tuple[int, ...]
    of: Sheeted

    def cheapest(self, parts: tuple[int, ...]) -> Pieced:
        """Return the cheapest pieces of a domain's parts, the largest part first."""
        of, lines = self.both.of, self.both.lines
        pieces: list[int] = []
        paid = 0.0
        for rank, k in enumerate(parts):
            across = float(of.across_bytes[min(rank, len(of.across_bytes) - 1), k])
            together = rank == 0 and self.first.least(k) + of.alone_bytes[k] > (
                self.pieces.least(k) + across
            )
            held = (self.first if together else self.pieces).cheapest(k)
            one = lines.pays(held) + across
            if together:
                one = max(one, self.both.first.pays(held) + float(of.alone_bytes[k]))
            pieces += held
            paid += one
        return Pieced(pieces=tuple(pieces), paid_bytes=paid)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pieced:
    """The pieces of all parts of a domain, and what it pays for them at least [bytes]."""

    pieces: tuple[int, ...]
    paid_bytes: float


def line_axes(of: Sheeted) -> list[tuple[int, ...]]:
    """Return the axes of the lines of a sheet that are worth a look."""
    return sheet_axes(one_sheet(of, ()))


def lined(of: Sheeted, axes: tuple[int, ...]) -> Lined:
    """Return the sheets with their lines, whose cells vary along *axes*, some of the sheets'."""
    lines = sheeted(one_sheet(of, ()), axes)
    first = sheeted(one_sheet(of, of.traces), axes) if of.traces else lines
    return Lined(of=of, lines=lines, first=first)


def one_sheet(of: Sheeted, more: tuple[Charge, ...]) -> Question:
    """Return a sheet in domains that hold the largest parts, with these charges besides."""
    enough = -(-of.sheet.cells // of.largest)
    return Question(
        sizes=of.sheet.sizes,
        charges=(*of.sheet.charges, *more),
        capacities=(of.largest,) * enough,
    )


def line_prices(
    both: Lined, start: SheetPrices, cut_bytes: float, pieces_start: SheetPrices | None = None
) -> SheetPrices:
    """Return good prices of parts where pieces have good prices, too; the best so far in the end.

    Args:
        both: the question cut into sheets, and these into lines.
        start: prices of the parts alone.
        pieces_start: prices of the pieces alone, if they are known.
        cut_bytes: stop when this is reached [bytes].
    """
    of, lines = both.of, both.lines
    choices = Choices(
        part_bytes=(of.pays_bytes[0, 1:], lines.pays_bytes[0, 1:]),
        groups=(of.sheets, of.sheets * lines.sheets),
        stock=of.stock,
    )
    begun = _begun(both, start, pieces_start)
    return best_prices(choices, begun, partial(_Tried.at, both), cut_bytes, _TURNS).prices


def begun_bytes(both: Lined, start: SheetPrices, pieces_start: SheetPrices | None) -> float:
    """Return the bound that ``line_prices`` begins with [bytes]."""
    return max(one.prices.bound_bytes for one in _begun(both, start, pieces_start))


def _begun(both: Lined, start: SheetPrices, pieces_start: SheetPrices | None) -> list[_Tried]:
    parts, pieces = both.of.largest, both.lines.largest
    starts = [np.concatenate([start.price_bytes[1:], np.zeros(pieces)])]
    if pieces_start is not None:
        starts.append(np.concatenate([np.zeros(parts), pieces_start.price_bytes[1:]]))
    return [_Tried.at(both, price_bytes) for price_bytes in starts]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """Prices that were tried.

    Args:
        price_bytes: of parts of 1, 2, … cells, then of pieces of 1, 2, … cells [bytes].
        lines: the sheets at the prices of pieces.
        prices: of the parts.
    """

    price_bytes: NDArray[np.float64]
    lines: LinedAt
    prices: SheetPrices

    @classmethod
    def at(cls, both: Lined, price_bytes: NDArray[np.float64]) -> _Tried:
        """Return what these prices say."""
        parts = both.of.largest
        lines = both.at(np.concatenate([[0.0], price_bytes[parts:]]))
        prices = SheetPrices(of=lines.of, price_bytes=np.concatenate([[0.0], price_bytes[:parts]]))
        return cls(price_bytes=price_bytes, lines=lines, prices=prices)

    @property
    def bound_bytes(self) -> float:
        """As of ``Guess``."""
        return self.prices.bound_bytes

    @property
    def told_bytes(self) -> float:
        """As of ``Guess``."""
        of, lines = self.lines.both.of, self.lines.both.lines
        given = of.given_bytes + of.sheets * (lines.given_bytes - of.inside_given_bytes)
        return self.prices.chosen_from_bytes + given - of.beside_bytes

    def join(self, choices: Choices) -> None:
        """As of ``Guess``: the cheapest fillings, and cuttings of a sheet and of a line."""
        of, lines = self.lines.both.of, self.lines.both.lines
        for held in sorted(set(self.prices.cheapest_held)):
            parts = self.prices.domains.cheapest(held)
            pieced = self.lines.cheapest(parts)
            counts = counted(parts, of.largest), counted(pieced.pieces, lines.largest)
            choices.add_shape(held, pieced.paid_bytes, np.concatenate(counts))
        cutting = self.prices.sheets.cheapest(of.sheet.cells)
        choices.add_partition(0, counted(cutting, of.largest))
        choices.add_partition(1, counted(self.lines.cutting, lines.largest))
