"""The choice of shapes where what a domain pays leaves no room for some of them."""

from __future__ import annotations

import numpy as np

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


def test_a_choice_that_nothing_satisfies_is_told_from_a_model_that_is_not_taken() -> None:
    from scipy.sparse import csr_array

    from planner.place.whole_numbers import Effort, Model, least_choice

    def least(factor: float) -> float:
        model = Model(
            cost_bytes=np.ones(2),
            whole=np.ones(2, dtype=bool),
            highest=np.full(2, 5.0),
            rows=csr_array(np.array([[2.0, factor]])),
            least=np.array([1.0]),
            most=np.array([1.0]),
        )
        return least_choice(model, 1.0, 10.0, Effort(listed=1, nodes=100)).least

    assert least(2.0) == np.inf  # 2 a + 2 b = 1
    assert least(1.0) == 1.0
    assert least(1e20) == -np.inf  # HiGHS refuses the model
