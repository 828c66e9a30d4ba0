"""Sheet after sheet: a sweep finds the cheapest parts of all sheets that there are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import inf

import numpy as np
import pytest

from planner.place.question import Kind, Question
from planner.place.sheet_cuttings import Cuttings
from planner.place.sheet_parts import Sheeted, sheeted
from planner.place.sheet_prices import SheetPrices, sheet_prices
from planner.place.sheet_sweep import SheetDealing, swept_choice
from planner.place.sweep import swept
from planner.place.whole_numbers import Effort
from tests.oracles import brute_force_cut
from tests.small_questions import Drawn, ways_to_hold

ROUNDING = 1e-9
EVERYTHING = 10**9
DRAWN = Drawn(
    first_seed=5_400_000,
    grids=((2, 2, 2), (3, 2, 2), (2, 2, 3), (4, 2), (2, 5), (4, 3), (2, 6)),
    kinds=(Kind.TOUCH, Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.CHAIN, Kind.ENDS),
    spare_share=0.4,
)


def _sheets(question: Question) -> Iterator[Sheeted]:
    for count in range(1, len(question.sizes)):
        for axes in combinations(range(len(question.sizes)), count):
            yield sheeted(question, axes)


def _priced(of: Sheeted, seed: int) -> Iterator[SheetPrices]:
    random = np.random.default_rng(seed)
    scale = float(of.pays_bytes[0].max()) / 4
    yield sheet_prices(of, inf)
    yield SheetPrices(
        of=of, price_bytes=np.append(0.0, random.normal(scale=scale, size=of.largest))
    )


def _least(of: Sheeted, cuttings: Cuttings) -> float:
    """Return the least that any way costs, counted one by one."""
    best = inf
    for held in ways_to_hold(of.question, of.sheet.cells):
        rows = (tuple(sorted((k for k in row if k), reverse=True)) for row in held.tolist())
        paid = sum(of.pays(parts) for parts in rows if parts)
        for column in held.T.tolist():
            parts = tuple(sorted((k for k in column if k), reverse=True))
            cuttings.learn(parts)
            paid += cuttings.more_bytes[parts]
        best = min(best, paid - of.given_bytes + of.beside_bytes)
    return best


@pytest.mark.parametrize(
    "seeds", [range(25), pytest.param(range(25, 250), marks=pytest.mark.nightly)]
)
def test_no_seating_of_a_small_question_cuts_less_than_a_sweep_of_its_sheets_says(
    seeds: range,
) -> None:
    for seed, question in zip(seeds, DRAWN.questions(seeds), strict=True):
        best = brute_force_cut(question)
        for of in _sheets(question):
            for prices in _priced(of, seed):
                for most in (40, 400, EVERYTHING):
                    effort, cut = Effort(listed=1, nodes=1, swept=most), 1.5 * best + 1e-3
                    choice = swept_choice(prices, Cuttings(of), cut, 0.8 * best, inf, effort)
                    assert choice.bound_bytes <= best * (1 + ROUNDING) + ROUNDING, (of.axes, seed)
                    if choice.cuttings:
                        assert {sum(parts) for parts in choice.cuttings} == {of.sheet.cells}
                        held = sorted(k for _, parts in choice.domains for k in parts)
                        assert held == sorted(k for parts in choice.cuttings for k in parts)
                        assert all(sum(parts) <= size for size, parts in choice.domains)


@pytest.mark.parametrize(
    "seeds", [range(100, 112), pytest.param(range(300, 420), marks=pytest.mark.nightly)]
)
def test_a_sweep_finds_what_counting_every_way_finds(seeds: range) -> None:
    """Never more; the same but where a third part is the second largest and pays as a third."""
    same = asked = 0
    for seed, question in zip(seeds, DRAWN.questions(seeds), strict=True):
        for of in _sheets(question):
            if len(question.capacities) ** question.cells > 10**7:
                continue
            cuttings = Cuttings(of)
            least = _least(of, cuttings)
            for prices in _priced(of, seed):
                dealing = SheetDealing(prices, Cuttings(of))
                found = swept(dealing, 2 * abs(least) + 50.0, 0.0, EVERYTHING, inf)
                assert found.bound_bytes <= least + ROUNDING * (1 + abs(least)), (of.axes, question)
                same += found.bound_bytes >= least - 1e-6 * (1 + abs(least))
                asked += 1
    assert asked > len(seeds)
    assert same > 0.9 * asked
