"""Prices of parts of sheets, and of the pieces that parts are made of.

A sheet has lines: rows, columns, or all lines along some axes. Each is cut into pieces, which are
what parts hold of it. A price on every size of piece ties the parts to the lines, as that of parts
ties the domains to the sheets: at given prices a sheet pays for a part what its cheapest pieces do,
and that is a question of sheets again. Proof: ``FORMULATION.md``, "Lines of sheets", "Crossed".
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf
from typing import TYPE_CHECKING, Protocol

import numpy as np

from planner.place.part_choice import Choices
from planner.place.price_ascent import best_prices
from planner.place.sheet_prices import Fillings, SheetPrices, counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from planner.place.question import Charge
    from planner.place.sheet_parts import Sheeted

    Prices = NDArray[np.float64]

_TURNS = 250  # times that prices are asked for anew
_COSTLESS = 1e-3  # of what the dearest piece pays, which one that pays nothing is reckoned at

Pieces = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Lines of one kind that a sheet is made of.

    Args:
        cells: of one [1].
        times: how many a sheet has [1].
        piece_bytes: what a piece of 0, 1, … cells, up to the largest, pays [bytes].
    """

    cells: int
    times: int
    piece_bytes: NDArray[np.float64]

    @property
    def largest(self) -> int:
        """Cells of the largest piece [1]."""
        return len(self.piece_bytes) - 1


class PaysAt(Protocol):
    """What parts of a sheet pay at least, less the prices of their pieces."""

    @property
    def least_bytes(self) -> NDArray[np.float64]:
        """Of 0, 1, … cells [bytes]."""

    def cheapest(self, cells: int) -> tuple[tuple[Pieces, ...], float]:
        """Return the cheapest pieces of a part, of each kind of lines, and what it pays [bytes]."""


class Pays(Protocol):
    """What parts of a sheet pay at least by their pieces."""

    @property
    def lines(self) -> tuple[Lines, ...]:
        """What is cut into pieces."""

    @property
    def given_bytes(self) -> float:
        """What domains are charged too much by inside one sheet [bytes]."""

    def at(self, price_bytes: Sequence[Prices]) -> PaysAt:
        """Return the same less prices of pieces of 0, 1, … cells, of each kind of lines [bytes]."""


@dataclass(frozen=True)
class Pieced:
    """A question cut into sheets, whose parts are made of pieces.

    Args:
        of: the question cut into sheets.
        pays_of: tells what parts pay where further families are those of a sheet, too.
    """

    of: Sheeted
    pays_of: Callable[[tuple[Charge, ...]], Pays]

    @cached_property
    def pays(self) -> Pays:
        """What parts pay inside a sheet."""
        return self.pays_of(())

    @cached_property
    def first(self) -> Pays:
        """The same with what a domain's first part pays across sheets."""
        return self.pays_of(self.of.traces) if self.of.traces else self.pays

    @property
    def ends(self) -> list[int]:
        """Where the prices of every kind of pieces begin, after those of parts [1]."""
        widths = [self.of.largest, *(one.largest for one in self.pays.lines)]
        return [sum(widths[: i + 1]) for i in range(len(widths))]

    def inside(self, price_bytes: tuple[Prices, ...], more: tuple[Charge, ...]) -> Prices:
        """Return what parts of 0, 1, … cells pay at least, these families of a sheet included."""
        return self.pays_of(more).at(price_bytes).least_bytes

    def at(self, price_bytes: Prices) -> Priced:
        """Return what prices say.

        Args:
            price_bytes: of parts of 1, 2, … cells, then of pieces of each kind of lines [bytes].
        """
        of, lines = self.of, self.pays.lines
        split = np.split(price_bytes, self.ends[:-1])
        parts, *pieces = (np.append(0.0, one) for one in split)
        pays = self.pays.at(pieces)
        first = self.first.at(pieces) if of.traces else pays
        cuttings = tuple(
            Fillings(price[None, :], one.cells) for one, price in zip(lines, pieces, strict=True)
        )
        pays_bytes = pays.least_bytes + of.across_bytes
        pays_bytes[of.sheets :] = inf  # a domain has one part of each sheet at most
        if of.traces:
            pays_bytes[0] = np.maximum(pays_bytes[0], first.least_bytes + of.alone_bytes)
        inside = self.pays.given_bytes
        for one, cutting in zip(lines, cuttings, strict=True):
            inside -= one.times * cutting.least(one.cells)
        priced = replace(
            of,
            inside=partial(self.inside, tuple(pieces)),
            part_bytes=pays.least_bytes,
            pays_bytes=pays_bytes,
            inside_given_bytes=inside,
            given_bytes=of.given_bytes + of.sheets * (inside - of.inside_given_bytes),
        )
        return Priced(
            pieced=self,
            price_bytes=price_bytes,
            pays=pays,
            first=first,
            cuttings=cuttings,
            prices=SheetPrices(of=priced, price_bytes=parts),
        )

    def begun(self, parts: Prices | None, pieces: Sequence[Prices | None] = ()) -> Priced:
        """Return what prices say of which some are known, and the others nought.

        Args:
            parts: prices of parts of 0, 1, … cells [bytes].
            pieces: of pieces of the first kinds of lines [bytes].
        """
        price_bytes = np.zeros(self.ends[-1])
        starts = [0, *self.ends[:-1]]
        for start, end, known in zip(starts, self.ends, (parts, *pieces), strict=False):
            if known is not None:
                price_bytes[start:end] = known[1:]
        return self.at(price_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """Prices of parts and pieces, and what they say.

    Args:
        pieced: what has prices.
        price_bytes: of parts of 1, 2, … cells, then of pieces of each kind of lines [bytes].
        pays: what parts pay inside a sheet, less prices.
        first: what first parts pay across sheets, too.
        cuttings: the prices of the pieces of each kind of lines.
        prices: of the parts.
    """

    pieced: Pieced
    price_bytes: NDArray[np.float64]
    pays: PaysAt
    first: PaysAt
    cuttings: tuple[Fillings, ...]
    prices: SheetPrices

    @property
    def bound_bytes(self) -> float:
        """As of ``Guess``."""
        return self.prices.bound_bytes

    @property
    def told_bytes(self) -> float:
        """As of ``Guess``."""
        of, pays = self.pieced.of, self.pieced.pays
        given = of.given_bytes + of.sheets * (pays.given_bytes - of.inside_given_bytes)
        return self.prices.chosen_from_bytes + given - of.beside_bytes

    def join(self, choices: Choices) -> None:
        """As of ``Guess``: the cheapest fillings, and cuttings of a sheet and of its lines."""
        of, lines = self.pieced.of, self.pieced.pays.lines
        for held in sorted(set(self.prices.cheapest_held)):
            parts = self.prices.domains.cheapest(held)
            pieces, paid = self._cheapest(parts)
            counts = [counted(parts, of.largest)]
            counts += [counted(k, one.largest) for k, one in zip(pieces, lines, strict=True)]
            choices.add_shape(held, paid, np.concatenate(counts))
        choices.add_partition(0, counted(self.prices.sheets.cheapest(of.sheet.cells), of.largest))
        for family, (one, cutting) in enumerate(zip(lines, self.cuttings, strict=True), start=1):
            choices.add_partition(family, counted(cutting.cheapest(one.cells), one.largest))

    def _cheapest(self, parts: Pieces) -> tuple[list[Pieces], float]:
        """Return the cheapest pieces of all parts of a domain, and what it pays [bytes]."""
        of, paid = self.pieced.of, 0.0
        found: list[Pieces] = [()] * len(self.cuttings)
        for rank, k in enumerate(parts):
            across = float(of.across_bytes[min(rank, len(of.across_bytes) - 1), k])
            alone = float(of.alone_bytes[k])
            apart = self.pays.least_bytes[k] + across
            together = rank == 0 and self.first.least_bytes[k] + alone > apart
            pieces, pays = (self.first if together else self.pays).cheapest(k)
            found = [a + b for a, b in zip(found, pieces, strict=True)]
            paid += pays + (alone if together else across)
        return found, paid


def piece_prices(pieced: Pieced, begun: Sequence[Priced], cut_bytes: float) -> Priced:
    """Return good prices of parts and pieces; the best so far when the time is up.

    Args:
        pieced: the question cut into sheets, and these further.
        begun: prices to begin with.
        cut_bytes: stop when this is reached [bytes].
    """
    of, lines = pieced.of, pieced.pays.lines
    measures = [np.maximum(one.piece_bytes[1:], _COSTLESS * one.piece_bytes.max()) for one in lines]
    choices = Choices(
        part_bytes=(of.pays_bytes[0, 1:], *measures),
        groups=(of.sheets, *(of.sheets * one.times for one in lines)),
        stock=of.stock,
    )
    return best_prices(choices, begun, pieced.at, cut_bytes, _TURNS)
