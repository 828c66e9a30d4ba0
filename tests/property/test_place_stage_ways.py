"""Given the cells of every stage that each domain holds: the cheapest seating of all there are."""

from __future__ import annotations

from itertools import permutations, product
from math import inf

import numpy as np
import pytest

from planner.place.question import cut_bytes
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
