"""What seatings that part a line pay at least: against every such seating of small questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from planner.place.bound import lower_bound, split_bound
from planner.place.merge import least_split, least_when_split, stays_whole
from planner.place.question import Charge, Kind, Question, cut_bytes
from tests.oracles import random_small_shape
from tests.small_questions import Drawn

ROUNDING = 1e-9
CELLS_MOST = 8  # every seating is looked at
DRAWN = Drawn(
    first_seed=4_410_000,
    grids=((2, 2, 2), (2, 4), (3, 2), (2, 3), (4, 2), (7,), (2, 2)),
    kinds=(Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.CHAIN),
    spare_share=0.8,
)


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


def test_a_line_that_is_dear_enough_to_part_is_told_by_any_bound_of_it() -> None:
    """What one of the plain bounds reaches is told to be reached, and what is told holds."""
    random = np.random.default_rng(77)
    for question in DRAWN.questions(range(60)):
        homes = [np.array(h) for h in _seatings(question.cells, question.capacities)]
        for axis, n in enumerate(question.sizes):
            if n < 2:
                continue
            along = [charge for charge in question.charges if axis in charge.axes]
            others = tuple(charge for charge in question.charges if axis not in charge.axes)
            plain = max(
                lower_bound(replace(question, charges=others))
                + sum(least_split(question, charge) for charge in along),
                split_bound(question, axis),
            )
            if not 0 < plain < np.inf:
                continue
            sides = tuple(n if i == axis else 1 for i in range(len(question.sizes)))
            parted = min(
                (cut_bytes(question, h) for h in homes if not stays_whole(question, h, axis)),
                default=np.inf,
            )
            for enough in (plain * (1 - 1e-6), plain * float(random.uniform(0.5, 1.0))):
                assert least_when_split(question, sides, enough) >= enough, question
            above = plain * float(random.uniform(1.0, 1.5))
            if least_when_split(question, sides, above) >= above:
                assert above <= parted * (1 + ROUNDING) + ROUNDING, question


def test_no_seating_that_parts_a_line_cuts_less_than_its_bound() -> None:
    assert _undercut(range(25)) == []


@pytest.mark.nightly
def test_no_seating_that_parts_a_line_of_many_more_questions_cuts_less() -> None:
    assert _undercut(range(25, 1500)) == []
