"""The choice of shapes where what a domain pays leaves no room for some of them."""

from __future__ import annotations

import numpy as np
import pytest

from planner.place.question import Charge, Kind, Question
from planner.place.shapes import relaxed_bound, shape_rules


def _touch(weight_bytes: float, *axes: int) -> Charge:
    return Charge(axes=axes, kind=Kind.TOUCH, weight_bytes=weight_bytes)


def test_shapes_that_no_cells_have_are_not_among_those_to_choose_from() -> None:
    """A sheet of DeepSeek-V3's experts in parts of 18 cells: three shapes are impossible."""
    question = Question(
        sizes=(4, 1, 8, 4, 1),
        charges=(
            _touch(4720.194224128, 0),
            Charge(axes=(0, 1, 2), kind=Kind.PAIRS, weight_bytes=110.863843328),
            _touch(13.090070592, 1, 2, 3),
            _touch(62.360911872, 3),
        ),
        capacities=(18,) * 7 + (2,),
    )
    rules = shape_rules(question, 269_000.0)
    assert rules is not None
    assert np.isfinite(rules.cost_bytes).all()
    assert 0 < relaxed_bound(rules) < 269_000.0


def test_where_nothing_costs_less_than_a_unit_a_unit_is_the_bound() -> None:
    from scipy.sparse import csr_array

    from planner.place.whole_numbers import Chosen, Effort, Model, least_choice

    def choice(factor: float, cost: float) -> Chosen:
        model = Model(
            cost_bytes=np.full(2, cost),
            whole=np.ones(2, dtype=bool),
            highest=np.full(2, 5.0),
            rows=csr_array(np.array([[2.0, factor]])),
            least=np.array([1.0]),
            most=np.array([1.0]),
        )
        return least_choice(model, 1.0, 10.0, Effort(listed=1, nodes=100))

    assert choice(1.0, 0.25).least == pytest.approx(0.25)  # 2 a + b = 1
    dearer, never, refused = choice(1.0, 3.0), choice(2.0, 0.25), choice(1e20, 0.25)
    assert (dearer.least, dearer.times) == (1.0, None)
    assert (never.least, never.times) == (1.0, None)  # 2 a + 2 b = 1
    assert (refused.least, refused.times) == (-np.inf, None)  # HiGHS does not take the model
