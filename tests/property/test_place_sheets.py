"""Parts of sheets: no seating cuts less than their prices and their choice say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from math import inf
from time import monotonic

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.place.question import Kind, Question
from planner.place.sheet_choice import part_choice
from planner.place.sheet_cuttings import Cuttings
from planner.place.sheet_parts import Sheeted, sheeted
from planner.place.sheet_prices import SheetPrices, sheet_prices
from planner.place.sheet_seats import seated_parts
from planner.place.whole_numbers import Effort
from tests.oracles import brute_force_cut
from tests.small_questions import Drawn

MANY = Effort(listed=30_000, nodes=20_000)
ROUNDING = 1e-9
SOLVER = 2e-6
GRIDS = ((2, 2, 3), (4, 3), (2, 3, 2), (3, 2, 2), (2, 2, 2), (4, 2), (2, 5), (3, 3), (6, 2))
KINDS = (Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.CHAIN, Kind.TOUCH, Kind.ENDS)
DRAWN = Drawn(first_seed=730_000, grids=GRIDS, kinds=KINDS, spare_share=0.5)


def _sheets(question: Question) -> Iterator[Sheeted]:
    for count in range(1, len(question.sizes)):
        for axes in combinations(range(len(question.sizes)), count):
            yield sheeted(question, axes)


def _parts(of: Sheeted, home: NDArray[np.int64]) -> tuple[Counter[tuple[int, ...]], ...]:
    """Return the parts of the domains and of the sheets that *home* has."""
    grid = np.arange(of.question.cells).reshape(tuple(reversed(of.question.sizes)))
    sheet = np.zeros(of.question.cells, dtype=int)
    for axis, n in enumerate(of.question.sizes):
        if axis not in of.axes:
            sheet = sheet * n + np.indices(grid.shape)[grid.ndim - 1 - axis].ravel()
    counts = np.zeros((len(of.question.capacities), of.sheets), dtype=int)
    np.add.at(counts, (home, sheet), 1)

    def sizes(rows: NDArray[np.int64]) -> Counter[tuple[int, ...]]:
        return Counter(tuple(sorted(row[row > 0].tolist(), reverse=True)) for row in rows)

    return sizes(counts), sizes(counts.T)


def _undercut(seeds: range) -> list[str]:
    found: list[str] = []
    for question in DRAWN.questions(seeds):
        best = brute_force_cut(question)
        random = np.random.default_rng(len(found))
        for of in _sheets(question):
            priced = sheet_prices(of, inf)
            scale = float(of.pays_bytes[0].max())
            any_price = np.append(0.0, random.normal(scale=scale / 4, size=of.largest))
            bounds = [priced.bound_bytes, SheetPrices(of=of, price_bytes=any_price).bound_bytes]
            choice = part_choice(priced, Cuttings(of), 1.5 * best + 1e-3, monotonic() + 60.0, MANY)
            if max(bounds) > best * (1 + ROUNDING) + ROUNDING or (
                choice.bound_bytes > best * (1 + SOLVER) + SOLVER
            ):
                found.append(f"{bounds}, {choice.bound_bytes} > {best}: {of.axes} {question}")
            if choice.cuttings:
                home = seated_parts(of, choice)
                assert (np.bincount(home) <= question.capacities[: int(home.max()) + 1]).all()
                domains, sheets = _parts(of, home)
                if all(len(parts) == 1 for _, parts in choice.domains):  # else two may meet
                    assert sheets == Counter(choice.cuttings)
                    assert +domains == Counter(parts for _, parts in choice.domains) + Counter(
                        {(): domains[()]}
                    )
    return found


@pytest.mark.parametrize(
    "seeds", [range(15), pytest.param(range(15, 60), marks=pytest.mark.nightly)]
)
def test_no_seating_of_a_small_question_cuts_less_than_its_sheets_say(seeds: range) -> None:
    assert _undercut(seeds) == []
