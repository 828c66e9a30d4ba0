"""Stages that no domain can hold, in parts too many to price."""

from __future__ import annotations

from math import inf

import pytest

from planner.place.question import Charge, Kind, Question
from planner.place.sheet_parts import sheeted, wide_axes
from planner.place.solve import solve_question

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
