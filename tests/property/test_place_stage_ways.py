"""Given the cells of every stage that each domain holds: the cheapest seating of all there are."""

from __future__ import annotations

from itertools import permutations, product
from math import inf

import numpy as np
import pytest

from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.stage_ways import cheapest_ways
from planner.place.stages import Staged, patterns_of, staged
from tests.oracles import slow_cut_bytes
from tests.small_questions import small_pipelines

SEATINGS_MOST = 3_000


def _seatings(of: Staged, held: np.ndarray) -> list[np.ndarray]:
    """Return every seating with these counts, one by one; none where they are too many."""
    stages = [
        sorted(set(permutations(np.repeat(np.arange(len(column)), column).tolist())))
        for column in held.T
    ]
    if np.prod([float(len(ways)) for ways in stages]) > SEATINGS_MOST:
        return []
    return [np.array(way).ravel() for way in product(*stages)]  # the pipeline is the last axis


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(500, 900), marks=pytest.mark.nightly)]
)
def test_no_seating_with_the_same_counts_cuts_less(seeds: range) -> None:
    asked = 0
    for seed, question in zip(seeds, small_pipelines(seeds), strict=True):
        of = staged(question)
        if of is None or of.closing_bytes or question.sizes[1] * question.sizes[0] > 6:
            continue
        random = np.random.default_rng(seed)
        drawn = random.permutation(
            np.repeat(np.arange(len(question.capacities)), question.capacities)
        )[: question.cells]
        held = patterns_of(of, drawn)
        seatings = _seatings(of, held)
        home = cheapest_ways(of, held, inf)
        if not seatings or home is None:
            continue
        assert (patterns_of(of, home) == held).all()
        least = min(slow_cut_bytes(question, other.tolist()) for other in seatings)
        assert cut_bytes(question, home) == pytest.approx(least), question
        asked += 1
    assert asked >= len(seeds) / 8


@pytest.mark.parametrize(
    ("kind", "row_bytes", "dearer_bytes", "least_bytes"),
    [
        (Kind.TOUCH, 1.0, inf, 2 * 1.0 + 2 * 3.0),  # the third domain takes a cell of either row
        (Kind.TOUCH, 1.0, 1.0, 2 * 1.0 + 2 * 3.0),
        (Kind.TOUCH, 1.0, 0.5, 1.0 + 3 * 3.0),  # a row: one of the others goes to the other's
        (Kind.RING, 2.0, inf, 2 * 2.0 + 3 * 3.0),  # a row that is split pays twice
    ],
)
def test_a_stage_is_laid_out_dearer_where_hops_cost_more(
    kind: Kind, row_bytes: float, dearer_bytes: float, least_bytes: float
) -> None:
    """Two stages of 2 x 2: a row each of the first, then 1 + 1 + 2. A hop that crosses costs 3."""
    question = Question(
        sizes=(2, 2, 2),
        charges=(
            Charge(axes=(0,), kind=kind, weight_bytes=row_bytes),
            Charge(axes=(2,), kind=Kind.CHAIN, weight_bytes=3.0),
        ),
        capacities=(3, 3, 2),
    )
    of = staged(question)
    assert of is not None

    home = cheapest_ways(of, np.array([[2, 1], [2, 1], [0, 2]]), dearer_bytes)

    assert home is not None
    assert slow_cut_bytes(question, home.tolist()) == least_bytes
