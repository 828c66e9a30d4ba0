"""Sheets whose lines are cut, too: no seating cuts less than prices of parts and pieces say."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import inf
from time import monotonic

import numpy as np
import pytest

from planner.place.piece_prices import Pieced, piece_prices
from planner.place.question import Charge, Kind, Question
from planner.place.sheet_choice import part_choice
from planner.place.sheet_crossed import crossings
from planner.place.sheet_cuttings import Cuttings
from planner.place.sheet_lines import line_of, lined
from planner.place.sheet_parts import sheeted
from planner.place.sheet_prices import Fillings, sheet_prices
from planner.place.whole_numbers import Effort
from tests.oracles import brute_force_cut
from tests.small_questions import Drawn

MANY = Effort(listed=30_000, nodes=20_000)
ROUNDING = 1e-9
SOLVER = 2e-6
GRIDS = ((2, 2, 3), (2, 3, 2), (3, 2, 2), (2, 2, 2), (4, 2, 1), (2, 2, 2, 1), (3, 3, 1))
KINDS = (Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.CHAIN, Kind.TOUCH, Kind.ENDS, Kind.RING)
DRAWN = Drawn(first_seed=910_000, grids=GRIDS, kinds=KINDS, spare_share=0.4)


def _all_lines(question: Question) -> Iterator[Pieced]:
    """Yield every way to cut the question into sheets and these into lines, and those further."""
    live = [i for i, n in enumerate(question.sizes) if n > 1]
    for count in range(2, len(live) + 1):
        for axes in combinations(live, count):
            of = sheeted(question, axes)
            for inner in range(1, count):
                for along in combinations(axes, inner):
                    yield lined(of, along)
                    for rows in crossings(line_of(of, along)):
                        yield lined(of, along, rows)


def _undercut(seeds: range, ways: int) -> list[str]:
    found: list[str] = []
    for question in DRAWN.questions(seeds):
        best = brute_force_cut(question)
        random = np.random.default_rng(question.cells)
        every = list(_all_lines(question))
        for i in random.permutation(len(every))[:ways].tolist():
            both = every[i]
            of, scale = both.of, float(both.of.pays_bytes[0].max())
            begun = both.begun(sheet_prices(of, inf).price_bytes)
            prices = piece_prices(both, [begun], inf).prices
            any_prices = both.at(random.normal(scale=scale / 4, size=both.ends[-1]))
            bounds = [begun.bound_bytes, prices.bound_bytes, any_prices.bound_bytes]
            limit = 1.5 * best + 1e-3
            choice = part_choice(prices, Cuttings(prices.of), limit, monotonic() + 60.0, MANY)
            if max(bounds) > best * (1 + ROUNDING) + ROUNDING or (
                choice.bound_bytes > best * (1 + SOLVER) + SOLVER
            ):
                found.append(f"{bounds}, {choice.bound_bytes} > {best}: {of.axes} {question}")
    return found


def test_no_seating_of_a_small_question_cuts_less_than_its_pieces_say() -> None:
    assert _undercut(range(8), ways=1) == []


@pytest.mark.nightly
def test_no_seating_of_many_small_questions_cuts_less_than_its_pieces_say() -> None:
    assert _undercut(range(8, 250), ways=4) == []


def test_three_pieces_of_a_ring_are_cheapest_when_they_are_equal() -> None:
    """Four rings of three along three lines of four, by hand.

    Every line touched is 10, every ring held in part 1: 3 + 3 cells of two lines lie in three
    rings, 4 + 2 in four, 2 + 2 + 2 are two whole rings. Of two domains each with six cells one
    line is split, 10, and each lies in four rings.
    """
    question = Question(
        sizes=(4, 3),
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=10.0),
            Charge(axes=(1,), kind=Kind.RING, weight_bytes=1.0),
        ),
        capacities=(6, 6),
    )
    of = sheeted(question, (0, 1))
    both = lined(of, (0,))
    pays = line_of(of, (0,)).pays
    assert [pays(p) for p in ((3, 3), (4, 2), (2, 2, 2), (4, 1, 1))] == [23.0, 24.0, 30.0, 33.0]
    assert brute_force_cut(question) == pytest.approx(18.0)
    begun = both.begun(sheet_prices(of, inf).price_bytes)
    assert piece_prices(both, [begun], inf).bound_bytes == pytest.approx(18.0)


def _all_fillings(left: int, largest: int) -> Iterator[tuple[int, ...]]:
    if left == 0:
        yield ()
    for k in range(1, min(left, largest) + 1):
        for rest in _all_fillings(left - k, k):
            yield (k, *rest)


def test_the_cheapest_fillings_are_those_of_all_there_are() -> None:
    for seed in range(60):
        random = np.random.default_rng(seed)
        most, ranks = int(random.integers(1, 14)), int(random.integers(1, 6))
        largest = int(random.integers(1, most + 4))
        price = random.normal(size=(ranks, largest + 1))
        price[:, 0] = 0.0
        fillings = Fillings(price, most)
        for cells in range(most + 1):
            costs = {
                parts: sum(price[min(i, ranks - 1), k] for i, k in enumerate(parts))
                for parts in _all_fillings(cells, largest)
            }
            least = min(costs.values())
            assert fillings.least(cells) == pytest.approx(least, abs=1e-12)
            assert costs[fillings.cheapest(cells)] == pytest.approx(least, abs=1e-12)
            within = {parts for parts, cost in costs.items() if cost <= least + 1.0}
            assert set(fillings.below(cells, least + 1.0, 10**6) or ()) == within
