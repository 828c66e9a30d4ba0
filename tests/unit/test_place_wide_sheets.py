"""Stages that no domain can hold, in parts too many to price."""

from __future__ import annotations

from math import inf

import pytest

from planner.place import sheet_parts
from planner.place.question import Charge, Kind, Question
from planner.place.sheet_parts import sheeted, wide_axes
from planner.place.sheet_prices import SheetPrices
from planner.place.solve import solve_question
from tests.oracles import brute_force_cut
from tests.small_questions import Drawn

STAGES = Question(
    sizes=(8, 16, 2),
    charges=(
        Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=100.0),
        Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=1000.0),
        Charge(axes=(2,), kind=Kind.CHAIN, weight_bytes=1.0),
    ),
    capacities=(97, 97, 97),
)
"""Two stages of 128 in three domains of 97, 35 seats to spare.

Each stage is split: 16 tensor groups of 8 into two parts are 1,600, 8 groups of 16 would be 8,000.
Hops need not cross where both stages are split alike, but three parts of a stage would cost as much
again: so the cut is above 3,200.
"""


def test_each_stage_is_known_to_be_split() -> None:
    assert wide_axes(STAGES) == [(0, 1)]
    answer = solve_question(STAGES, time_limit_s=5.0)
    assert answer.lower_bound_bytes >= 3200.0 * (1 - 1e-9)
    assert answer.objective_bytes <= 1.05 * answer.lower_bound_bytes


def test_sheets_that_a_domain_can_hold_are_not_wide() -> None:
    roomy = Question(sizes=STAGES.sizes, charges=STAGES.charges, capacities=(128, 128))
    assert wide_axes(roomy) == []


@pytest.mark.parametrize("sheets", [1, 2, 3])
def test_no_domain_has_more_parts_than_there_are_sheets(sheets: int) -> None:
    question = Question(
        sizes=(4, 2, sheets),
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=5.0),
            Charge(axes=(2,), kind=Kind.CHAIN, weight_bytes=1.0),
        ),
        capacities=(8,) * sheets,
    )
    pays = sheeted(question, (0, 1)).pays_bytes
    assert (pays[sheets:] == inf).all()
    assert (pays[:sheets] < inf).all()


def test_no_seating_of_a_small_question_cuts_less_than_its_wide_sheets_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All sheets count as wide that no domain can hold."""
    monkeypatch.setattr(sheet_parts, "_PART_MOST", 1)
    monkeypatch.setattr(sheet_parts, "_SHEET_LEAST", 2)
    drawn = Drawn(
        first_seed=880_000,
        grids=((2, 2, 3), (4, 3), (2, 3, 2), (3, 2, 2), (2, 2, 2), (2, 5), (3, 4)),
        kinds=(Kind.TOUCH, Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.CHAIN, Kind.ENDS),
        spare_share=0.5,
    )
    bounds = reached = 0
    for question in drawn.questions(range(900)):
        for axes in wide_axes(question):
            of = sheeted(question, axes)
            bound = SheetPrices(of=of, price_bytes=of.part_bytes).bound_bytes
            best = brute_force_cut(question)
            assert bound <= best * (1 + 1e-9) + 1e-6, question
            bounds += 1
            reached += bound >= best * (1 - 1e-6) > 0
    assert bounds > 20
    assert reached > 0
