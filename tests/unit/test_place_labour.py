"""What the search over tiers may do: counted, and asked once."""

from __future__ import annotations

from math import inf

from planner.place.answer import Proof
from planner.place.labour import Labour, least_of
from planner.place.question import Charge, Kind, Question

LINES = Question(
    sizes=(4, 4),
    charges=(Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=2.0),),
    capacities=(4,) * 4,
)
OTHER = Question(sizes=(4,), charges=LINES.charges, capacities=(2, 2))


def test_a_question_is_asked_once_and_no_more_than_may_be() -> None:
    labour = Labour(questions=1)

    first = labour.quick(LINES)

    assert first is not None
    assert first.proof is Proof.BOUND
    assert least_of(first).bound_bytes == first.objective_bytes == 0
    assert labour.questions == 0
    assert labour.quick(LINES) is first
    assert labour.answer(LINES) is first
    assert labour.quick(OTHER) is None
    assert labour.answer(OTHER) is None


def test_nothing_new_is_asked_when_time_is_over() -> None:
    labour = Labour(ends_s=-inf)

    assert labour.over
    assert labour.quick(LINES) is None
