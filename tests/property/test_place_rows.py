"""Row by row: a bound that no seating beats, and seatings that hold what they should."""

from __future__ import annotations

from itertools import chain, repeat
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pytest

from planner.place import clock
from planner.place.answer import Proof
from planner.place.clock import TimeUp, ending
from planner.place.copies import copy_units
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.row_costs import RowCosts, row_axes
from planner.place.row_seats import seated_rows
from planner.place.row_sweep import Rowed, by_rows
from planner.place.sheet_cuttings import cut_sheet, ruled_sheet
from tests.oracles import brute_force_cut, digit_groups, every_seating
from tests.small_questions import Drawn

if TYPE_CHECKING:
    from numpy.typing import NDArray

ROUNDING = 1e-9
EVERYTHING = 10**9
DRAWN = Drawn(
    first_seed=7_300_000,
    grids=((2, 2, 2), (3, 2, 2), (2, 2, 3), (4, 2), (2, 5), (4, 3), (3, 3), (2, 6), (5, 2)),
    kinds=(Kind.TOUCH, Kind.TOUCH, Kind.RING, Kind.RING, Kind.PAIRS, Kind.CHAIN, Kind.ENDS),
    spare_share=0.0,
)


def _charge(kind: Kind, weight_bytes: float, *axes: int) -> Charge:
    return Charge(axes=axes, kind=kind, weight_bytes=weight_bytes)


@pytest.mark.parametrize(
    "numbers", [range(120), pytest.param(range(120, 2500), marks=pytest.mark.nightly)]
)
def test_no_seating_cuts_less_than_rows_say(numbers: range) -> None:
    told = met = 0
    for question in DRAWN.questions(numbers):
        best = brute_force_cut(question)
        for share in (1.0, 1.4):  # of the least cut: that of a seating known
            for rowed in by_rows(question, share * best, 0.0, EVERYTHING):
                assert rowed.bound_bytes <= best * (1 + ROUNDING) + ROUNDING
                told += 1
                met += rowed.bound_bytes >= best * (1 - ROUNDING)
                home = seated_rows(question, rowed)
                if home is None:
                    continue
                held = np.bincount(home, minlength=len(question.capacities))
                assert held.tolist() == list(question.capacities)
                assert cut_bytes(question, home) >= best * (1 - ROUNDING) - ROUNDING
    assert met > told / 4  # it says something


@pytest.mark.parametrize(
    "numbers", [range(30), pytest.param(range(30, 400), marks=pytest.mark.nightly)]
)
def test_a_domain_pays_no_less_than_its_rows_say(numbers: range) -> None:
    """Of every set of cells, with copies of tokens, too; along whatever axes rows are."""
    random = np.random.default_rng(numbers.start)
    for question in DRAWN.questions(numbers):
        axes = tuple(sorted(random.choice(len(question.sizes), 2, replace=False).tolist()))
        size = question.group_size(axes)
        copies = Charge(
            axes=axes, kind=Kind.COPIES, weight_bytes=3.0, units=copy_units(size, size, 1)
        )
        charges = (*(c for c in question.charges if c.kind is not Kind.ENDS), copies)
        cells, some = question.cells, int(question.capacities[0])
        two = Question(sizes=question.sizes, charges=charges, capacities=(some, cells - some))
        inside = every_seating(cells, two.capacities) == 0
        paid = np.zeros(len(inside))
        for charge in charges:
            for members in digit_groups(two.sizes, charge.axes):
                paid += charge.weight_bytes * _units(
                    charge, inside[:, members].sum(axis=1), len(members)
                )
        digits = np.unravel_index(np.arange(cells), tuple(reversed(two.sizes)))
        for along in row_axes(two):
            costs = RowCosts(two, along)
            row = np.zeros(cells, dtype=np.int64)
            for axis in reversed(along):
                row = row * two.sizes[axis] + digits[len(two.sizes) - 1 - axis]
            held = np.stack([inside[:, row == r].sum(axis=1) for r in range(costs.rows)], axis=1)
            assert (costs.paid_bytes(held) <= paid * (1 + ROUNDING) + ROUNDING).all()
            least = costs.cheapest_bytes(some)
            assert least <= paid[inside.sum(axis=1) == some].min() * (1 + ROUNDING) + ROUNDING


def _units(charge: Charge, held: NDArray[np.int64], size: int) -> NDArray[np.float64]:
    """Return what a domain with so many of a group's members pays, of one group of *size*."""
    if charge.units:
        units: NDArray[np.float64] = np.array(charge.units)
        found: NDArray[np.float64] = units[held]
        return found
    if charge.kind is Kind.PAIRS:
        others: NDArray[np.float64] = size - held.astype(float)
        return held * others
    if charge.kind is Kind.RING:
        return ((held > 0) & (held < size)).astype(float)
    return (held > 0).astype(float) * (size > 1)


RINGS = _charge(Kind.TOUCH, 4720.0, 0), _charge(Kind.RING, 3495.0, 1)


def test_a_sheet_of_a_rack_and_small_parts_is_cut_and_proved_without_a_solver() -> None:
    """16 x 8 in 72 + 16 + 16 + 16 + 8: two squares of 4 x 4, and what they leave of 7 columns.

    Nine whole columns, 6 + 3 rows by 3 columns: 8 + 4 + 4 + 6 + 3 rows are touched, 8 of them by
    one domain for nothing, and 4 + 4 + 3 + 3 columns are parted.
    """
    sheet, parts = Question(sizes=(16, 8), charges=RINGS, capacities=(128,)), (72, 16, 16, 16, 8)

    answer = cut_sheet(sheet, parts)

    assert answer.proof is Proof.BOUND
    assert answer.objective_bytes == pytest.approx(17 * 4720 + 14 * 3495)
    assert ruled_sheet(sheet, parts).proof is Proof.INCUMBENT


def test_rows_along_two_axes_prove_what_neither_does_alone() -> None:
    """32 x 2 x 2, four rows of 32 cells, with pairs along the first axis and the next."""
    charges = (
        _charge(Kind.TOUCH, 9440.0, 0),
        _charge(Kind.RING, 1498.0, 1, 2),
        _charge(Kind.PAIRS, 13.86, 0, 1),
    )
    sheet, parts = (
        Question(sizes=(32, 2, 2), charges=charges, capacities=(128,)),
        (72, 16, 16, 16, 8),
    )

    answer = cut_sheet(sheet, parts)

    assert answer.proof is Proof.BOUND
    assert answer.objective_bytes < ruled_sheet(sheet, parts).objective_bytes * 0.99


def test_what_rows_do_not_cover_is_left_alone() -> None:
    """Free seats, large grids, many domains: nothing is said."""
    for sizes, parts in (
        ((4, 3), (8, 5)),
        ((32, 32), (512, 512)),
        ((16, 8), (16,) * 7 + (4,) * 4),
    ):
        question = Question(sizes=sizes, charges=RINGS, capacities=parts)
        assert prod(sizes) <= sum(parts)
        assert by_rows(question, 1e9, 0.0, EVERYTHING) == []


def test_columns_are_looked_for_no_longer_than_there_is_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Three rows of eleven cells in eight domains: 255 sets of domains for each of 11 columns."""
    held = np.zeros((8, 3), dtype=np.int64)
    held[[0, 5, 6], 0] = held[[1, 4, 6], 1] = held[[2, 3, 7], 2] = 5, 5, 1
    capacities = tuple(held.sum(axis=1).tolist())
    assert capacities == (5, 5, 5, 5, 5, 5, 2, 1)
    question = Question(sizes=(11, 3), charges=RINGS, capacities=capacities)
    readings = chain(repeat(0.0, 50), repeat(2.0))
    monkeypatch.setattr(clock, "monotonic", lambda: next(readings))

    with ending(1.0), pytest.raises(TimeUp):
        seated_rows(question, Rowed(bound_bytes=0.0, axes=(1,), held=held))
