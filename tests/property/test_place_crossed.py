"""Pieces of rows and of columns: no part pays less, no seating cuts less, than they say."""

from __future__ import annotations

from itertools import combinations, product
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pytest

from planner.place.copies import copy_units
from planner.place.crossed_pays import CrossedPays
from planner.place.piece_prices import piece_prices
from planner.place.question import Charge, Kind, Question
from planner.place.sheet_crossed import crossed, crossings
from planner.place.sheet_names import held_bytes
from planner.place.sheet_parts import sheeted
from planner.place.sheet_prices import sheet_prices
from tests.oracles import brute_force_cut
from tests.small_questions import Drawn

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDING = 1e-9
SIZES = ((3, 4), (4, 3), (2, 2, 3), (3, 2, 2))
KINDS = (Kind.TOUCH, Kind.TOUCH, Kind.RING, Kind.RING, Kind.PAIRS, Kind.CHAIN, Kind.COPIES)
DRAWN = Drawn(
    first_seed=9_400_000,
    grids=((2, 2, 2), (3, 2, 2), (2, 2, 3), (4, 2), (2, 5), (4, 3), (3, 3), (2, 6), (5, 2)),
    kinds=(Kind.TOUCH, Kind.TOUCH, Kind.RING, Kind.RING, Kind.PAIRS, Kind.CHAIN),
    spare_share=0.3,
)


def _drawn_sheet(draw: np.random.Generator, sizes: tuple[int, ...]) -> Question:
    charges = []
    for _ in range(draw.integers(2, 5)):
        live = [i for i in range(len(sizes)) if draw.random() < 0.5] or [0]
        kind = KINDS[draw.integers(len(KINDS))]
        size = prod(sizes[i] for i in live)
        units = copy_units(size, 4 * size, 2) if kind is Kind.COPIES else ()
        weight = float(draw.integers(1, 20))
        charges.append(Charge(axes=tuple(live), kind=kind, weight_bytes=weight, units=units))
    return Question(sizes=sizes, charges=tuple(charges), capacities=(prod(sizes),))


def _lines(sizes: tuple[int, ...], along: tuple[int, ...]) -> NDArray[np.int64]:
    """Return the number of the line along these axes that each cell lies in."""
    numbers = np.arange(prod(sizes)).reshape(sizes[::-1])
    places = np.moveaxis(numbers, [len(sizes) - 1 - i for i in along], range(len(along)))
    of = np.empty(prod(sizes), dtype=np.int64)
    for line, cells in enumerate(places.reshape(prod(sizes[i] for i in along), -1).T):
        of[cells] = line
    return of


@pytest.mark.parametrize("seeds", [range(2), pytest.param(range(2, 60), marks=pytest.mark.nightly)])
def test_no_part_pays_less_than_its_rows_and_columns_say(seeds: range) -> None:
    told = met = 0
    for seed in seeds:
        draw = np.random.default_rng(seed)
        for sizes in SIZES:
            along = tuple(range(int(draw.integers(1, len(sizes)))))
            across = tuple(i for i in range(len(sizes)) if i not in along)
            row, column = _lines(sizes, along), _lines(sizes, across)
            sheet = _drawn_sheet(draw, sizes)
            most = int(draw.integers(sheet.cells // 2, sheet.cells + 1))
            pays = CrossedPays(sheet, along, most)
            every = [np.flatnonzero(one) for one in product((0, 1), repeat=sheet.cells)]
            paid = [held_bytes(sheet, tuple(held.tolist())) for held in every]
            for scale in (0.0, 4.0):
                of_row = np.append(0.0, draw.normal(0, scale, len(pays.row_bytes) - 1))
                of_column = np.append(0.0, draw.normal(0, scale, len(pays.column_bytes) - 1))
                least = np.full(most + 1, np.inf)
                for held, bytes_ in zip(every, paid, strict=True):
                    if len(held) <= most:
                        worth = of_row[np.bincount(row[held])].sum()
                        worth += of_column[np.bincount(column[held])].sum()
                        least[len(held)] = min(least[len(held)], bytes_ - worth)

                at = pays.at([of_row, of_column])

                assert (at.least_bytes <= least + ROUNDING).all()
                told, met = told + most, met + int(np.isclose(at.least_bytes, least)[1:].sum())
                for cells in range(1, most + 1):
                    (rows, columns), one = at.cheapest(cells)
                    worth = of_row[list(rows)].sum() + of_column[list(columns)].sum()
                    assert sum(rows) == sum(columns) == cells
                    assert np.isclose(one - worth, at.least_bytes[cells])
    assert met > told / 4  # it says something


@pytest.mark.parametrize(
    "numbers", [range(60), pytest.param(range(60, 1500), marks=pytest.mark.nightly)]
)
def test_no_seating_cuts_less_than_crossed_prices_say(numbers: range) -> None:
    told = met = 0
    for question in DRAWN.questions(numbers):
        best = brute_force_cut(question)
        for count in range(2, len(question.sizes) + 1):
            for axes in combinations(range(len(question.sizes)), count):
                of = sheeted(question, axes)
                alone = sheet_prices(of, best * (1 + ROUNDING))
                for along in crossings(of):
                    pieced = crossed(of, along)
                    begun = pieced.begun(alone.price_bytes)
                    prices = piece_prices(pieced, [begun], np.inf)
                    assert prices.bound_bytes <= best * (1 + ROUNDING) + ROUNDING
                    told += 1
                    met += prices.bound_bytes >= best * (1 - ROUNDING)
    assert met > told / 4
