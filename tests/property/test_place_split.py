"""What seatings that part a line pay at least: against every such seating of small questions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from planner.place.bound import split_bound
from planner.place.merge import least_when_split, stays_whole
from planner.place.question import Charge, Kind, Question, cut_bytes
from tests.oracles import random_small_shape

ROUNDING = 1e-9
CELLS_MOST = 8  # every seating is looked at


def _seatings(cells: int, capacities: tuple[int, ...]) -> Iterator[list[int]]:
    if not cells:
        yield []
        return
    for s, free in enumerate(capacities):
        if free:
            left = (*capacities[:s], free - 1, *capacities[s + 1 :])
            yield from ([s, *rest] for rest in _seatings(cells - 1, left))


def _undercut(seeds: range) -> list[str]:
    wrong = []
    for seed in seeds:
        shape = random_small_shape(np.random.default_rng(900_000 + seed))
        question = Question(
            sizes=shape["sizes"],
            charges=tuple(
                Charge(axes=a, kind=Kind(k), weight_bytes=w) for a, k, w in shape["charges"]
            ),
            capacities=shape["capacities"],
        )
        if question.cells > CELLS_MOST:
            continue
        homes = [np.array(h) for h in _seatings(question.cells, question.capacities)]
        cuts = [cut_bytes(question, home) for home in homes]
        for axis, n in enumerate(question.sizes):
            parted = [
                cut
                for home, cut in zip(homes, cuts, strict=True)
                if n > 1 and not stays_whole(question, home, axis)
            ]
            sides = tuple(n if i == axis else 1 for i, n in enumerate(question.sizes))
            bounds = (split_bound(question, axis), least_when_split(question, sides, 1e30))
            if parted and max(bounds) > min(parted) * (1 + ROUNDING) + ROUNDING:
                wrong.append(f"seed {seed}, axis {axis}: {bounds} > {min(parted)}: {question}")
    return wrong


def test_no_seating_that_parts_a_line_cuts_less_than_its_bound() -> None:
    assert _undercut(range(25)) == []


@pytest.mark.nightly
def test_no_seating_that_parts_a_line_of_many_more_questions_cuts_less() -> None:
    assert _undercut(range(25, 1500)) == []
