"""Sheets whose lines are cut, too: a price on every piece of a line inside a part of a sheet.

A part of a sheet is itself made of *pieces*, the cells that it holds of each line of the sheet, and
every line is cut into pieces that sum to it. What pieces pay is what parts of sheets do, the lines
for the sheets; and lines of several axes may be cut both ways in turn. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bounds, rebate_bytes
from planner.place.crossed_pays import CrossedPays
from planner.place.piece_prices import Lines, Pieced, Pieces
from planner.place.question import Question
from planner.place.sheet_parts import sheet_axes, sheeted
from planner.place.sheet_prices import Fillings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.piece_prices import Prices
    from planner.place.question import Charge
    from planner.place.sheet_parts import Sheeted


class LinePays:
    """What parts of a sheet pay by the pieces of its lines.

    Args:
        lines: one sheet cut into lines.
        most: cells of the largest part [1].
        along: axes of the rows of a line, if that is cut both ways.
    """

    def __init__(self, lines: Sheeted, most: int, along: tuple[int, ...] | None = None) -> None:
        self.of, self.most = lines, most
        self.beside_bytes = np.zeros(most + 1)
        if lines.beside.charges:
            held = range(most + 1)
            self.beside_bytes = np.array(domain_bounds(lines.beside, held, sharp=True))
        self.crossed = self.joint = None
        self.given_bytes = lines.given_bytes + rebate_bytes(lines.beside)
        cells, times = lines.sheet.cells, lines.sheets
        self.lines: tuple[Lines, ...] = (
            Lines(cells=cells, times=times, piece_bytes=lines.pays_bytes[0]),
        )
        if along is not None:
            self.crossed = CrossedPays(lines.sheet, along, lines.largest)
            self.joint = self.crossed
            if lines.traces:
                self.joint = CrossedPays(lines.joint, along, lines.largest)
            self.given_bytes += times * (self.crossed.given_bytes - lines.inside_given_bytes)
            self.lines += tuple(
                Lines(cells=one.cells, times=times * one.times, piece_bytes=one.piece_bytes)
                for one in self.crossed.lines
            )

    def at(self, price_bytes: Sequence[Prices]) -> LinePaysAt:
        """As of ``Pays``."""
        return LinePaysAt(self, price_bytes)


class LinePaysAt:
    """As of ``PaysAt``.

    Args:
        pays: what parts pay.
        price_bytes: of pieces of lines, then of the rows and columns of these, if any [bytes].
    """

    def __init__(self, pays: LinePays, price_bytes: Sequence[Prices]) -> None:
        self.pays, lines = pays, pays.of
        self.piece_bytes = lines.pays_bytes
        self.crossed = self.joint = None
        if pays.crossed is not None and pays.joint is not None:
            self.crossed = self.joint = pays.crossed.at(price_bytes[1:])
            self.piece_bytes = self.crossed.least_bytes + lines.across_bytes
            self.piece_bytes[lines.sheets :] = inf
            if lines.traces:
                self.joint = pays.joint.at(price_bytes[1:])
                jointly = self.joint.least_bytes + lines.alone_bytes
                self.piece_bytes[0] = np.maximum(self.piece_bytes[0], jointly)
        self.fillings = Fillings(self.piece_bytes - price_bytes[0], pays.most)
        self.least_bytes: NDArray[np.float64] = self.fillings.all_least + pays.beside_bytes

    def cheapest(self, cells: int) -> tuple[tuple[Pieces, ...], float]:
        """As of ``PaysAt``."""
        lines, pieces = self.pays.of, self.fillings.cheapest(cells)
        beside = float(self.pays.beside_bytes[cells])
        if self.crossed is None or self.joint is None:
            return (pieces,), lines.pays(pieces) + beside
        found: list[Pieces] = [()] * len(self.crossed.pays.lines)
        paid = beside
        for rank, k in enumerate(pieces):
            across = float(lines.across_bytes[min(rank, len(lines.across_bytes) - 1), k])
            apart = self.crossed.least_bytes[k] + across
            together = rank == 0 and self.piece_bytes[0, k] > apart
            of_both, pays = (self.joint if together else self.crossed).cheapest(k)
            found = [a + b for a, b in zip(found, of_both, strict=True)]
            paid += pays + (float(lines.alone_bytes[k]) if together else across)
        return (pieces, *found), paid


def line_axes(of: Sheeted) -> list[tuple[int, ...]]:
    """Return the axes of the lines of a sheet that are worth a look."""
    return sheet_axes(one_sheet(of, ()))


def lined(of: Sheeted, axes: tuple[int, ...], along: tuple[int, ...] | None = None) -> Pieced:
    """Return the sheets with their lines, whose cells vary along *axes*, some of the sheets'.

    Args:
        of: the question cut into sheets.
        axes: of a line.
        along: axes of its rows, if it is cut both ways.
    """
    return Pieced(of, partial(_pays, of, axes, along))


def line_of(of: Sheeted, axes: tuple[int, ...]) -> Sheeted:
    """Return one of the sheets, cut into lines."""
    return sheeted(one_sheet(of, ()), axes)


def _pays(
    of: Sheeted, axes: tuple[int, ...], along: tuple[int, ...] | None, more: tuple[Charge, ...]
) -> LinePays:
    return LinePays(sheeted(one_sheet(of, more), axes), of.largest, along)


def one_sheet(of: Sheeted, more: tuple[Charge, ...]) -> Question:
    """Return a sheet in domains that hold the largest parts, with these charges besides."""
    enough = -(-of.sheet.cells // of.largest)
    return Question(
        sizes=of.sheet.sizes,
        charges=(*of.sheet.charges, *more),
        capacities=(of.largest,) * enough,
    )
