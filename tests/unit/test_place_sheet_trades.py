"""Changes of rows and trades of pieces are priced as the whole cuts before and after them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from planner.place.question import Charge, Kind, Question
from planner.place.sheet_parts import sheeted
from planner.place.sheet_trades import Prices, Trade
from tests.oracles import slow_cut_bytes

CHARGES = (
    Charge(axes=(0,), kind=Kind.RING, weight_bytes=5.0),
    Charge(axes=(2,), kind=Kind.RING, weight_bytes=7.0),
    Charge(axes=(1, 2), kind=Kind.TOUCH, weight_bytes=2.0),
    Charge(axes=(1, 2), kind=Kind.PAIRS, weight_bytes=1.0),
    Charge(axes=(0, 2), kind=Kind.COPIES, weight_bytes=3.0, units=(0, 4, 5, 5, 4, 3, 2, 1, 0)),
    Charge(axes=(2,), kind=Kind.CHAIN, weight_bytes=11.0),
    Charge(axes=(2, 3), kind=Kind.ENDS, weight_bytes=13.0),
)
QUESTION = Question(sizes=(4, 3, 2, 3), charges=CHARGES, capacities=(24, 20, 20, 8))
SHEETS, CELLS = 6, 12  # sheets of the first two axes; cells are numbered sheet after sheet


def _prices() -> Prices:
    return Prices(sheeted(QUESTION, (0, 1)), np.arange(QUESTION.cells))


def _homes(seed: int) -> np.ndarray:
    """Return homes in runs of one domain, so that whole groups lie in one, or quite mixed."""
    random = np.random.default_rng(seed)
    seats = np.repeat(np.arange(4), QUESTION.capacities)
    if seed % 2:
        return random.permutation(seats).reshape(SHEETS, CELLS)
    return np.roll(seats, random.integers(72)).reshape(SHEETS, CELLS)[random.permutation(SHEETS)]


@pytest.mark.parametrize("seed", range(4))
def test_two_rows_that_change_places_cost_what_the_cut_has_more(seed: int) -> None:
    prices, homes = _prices(), _homes(seed)
    held, cut = prices.held(homes), slow_cut_bytes(QUESTION, homes.ravel().tolist())

    for axis, sheet in ((0, 0), (1, 0), (0, 3), (1, 3), (0, 5), (1, 5)):
        rows = prices.rows(axis)
        more = prices.of_rows(homes, held, sheet, axis)
        for one, other in combinations(range(len(rows)), 2):
            after = homes.copy()
            after[sheet, rows[one]], after[sheet, rows[other]] = (
                homes[sheet, rows[other]],
                homes[sheet, rows[one]],
            )
            slow = slow_cut_bytes(QUESTION, after.ravel().tolist()) - cut
            assert more[one, other] == pytest.approx(slow, abs=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_pieces_that_trade_places_cost_what_the_cut_has_more(seed: int) -> None:
    prices, homes = _prices(), _homes(seed)
    cut = slow_cut_bytes(QUESTION, homes.ravel().tolist())
    trades = [
        Trade(sheet=sheet, one=np.flatnonzero(here == a)[:n], other=np.flatnonzero(here == b)[:n])
        for sheet, here in enumerate(homes)
        for a, b in combinations(np.unique(here).tolist(), 2)
        for n in range(1, min(np.count_nonzero(here == a), np.count_nonzero(here == b)) + 1)
    ]
    assert trades

    more = prices.of_trades(homes, prices.held(homes), trades)

    for trade, paid in zip(trades, more.tolist(), strict=True):
        after = trade.made(homes)
        assert np.bincount(after.ravel()).tolist() == list(QUESTION.capacities)
        slow = slow_cut_bytes(QUESTION, after.ravel().tolist()) - cut
        assert paid == pytest.approx(slow, abs=1e-6)
