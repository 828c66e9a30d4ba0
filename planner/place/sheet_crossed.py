"""Sheets whose lines are cut both ways: prices on the pieces of rows, and of columns.

A part of a sheet is a set of cells of a grid: so many of every *row* and so many of every
*column*, in r rows and c columns, which hold r x c cells at most. Rows are cut into pieces, and so
are columns: a price on every size of both ties what parts hold to what there is of them. Proof:
``FORMULATION.md``, "Crossed".
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING

from planner.place.crossed_pays import CrossedPays, sorted_families
from planner.place.merge import least_split
from planner.place.piece_prices import Pieced
from planner.place.question import Kind

if TYPE_CHECKING:
    from planner.place.question import Charge
    from planner.place.sheet_parts import Sheeted

_TABLE_MOST = 100_000  # rows x columns x cells of a part, past which a guess takes over 20 ms


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


def crossed(of: Sheeted, along: tuple[int, ...]) -> Pieced:
    """Return the sheets with their rows, whose cells vary along these axes, and columns."""
    return Pieced(of, partial(_pays, of, along))


def _pays(of: Sheeted, along: tuple[int, ...], more: tuple[Charge, ...]) -> CrossedPays:
    sheet = replace(of.sheet, charges=(*of.sheet.charges, *more))
    return CrossedPays(sheet, along, of.largest)
