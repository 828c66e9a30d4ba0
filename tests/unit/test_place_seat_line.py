"""What domains pay for boxes, and slabs that end where domains end."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest

from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.seat_line import boxes_bytes, line_fillings
from tests.oracles import slow_cut_bytes


@pytest.mark.parametrize(
    "charge",
    [
        Charge(axes=(0,), kind=Kind.PAIRS, weight_bytes=3.0),
        Charge(axes=(0, 2), kind=Kind.PAIRS, weight_bytes=2.0),
        Charge(axes=(1,), kind=Kind.RING, weight_bytes=5.0),
        Charge(axes=(0, 1), kind=Kind.TOUCH, weight_bytes=7.0),
        Charge(axes=(1, 2), kind=Kind.COPIES, weight_bytes=1.0, units=(0, 4, 5, 5, 5, 3, 0)),
    ],
)
def test_a_box_costs_its_domain_what_the_cut_has_more_than_where_no_box_is(charge: Charge) -> None:
    """Every cell outside the box has a domain of its own, whose price is that of one cell."""
    question = Question(sizes=(4, 2, 3), charges=(charge,), capacities=(24,) * 25)
    paid_bytes = boxes_bytes(question)
    rebate = charge.weight_bytes * question.groups(charge.axes) * (charge.kind is Kind.TOUCH)

    for sides in product(*(range(1, n + 1) for n in question.sizes)):
        inside = [
            all(at < side for at, side in zip(place, sides, strict=True))
            for place in product(*(range(n) for n in question.sizes))
        ]
        grid = np.where(np.array(inside).reshape(question.sizes), 24, -1)
        home = np.where(grid.T.ravel() == 24, 24, np.arange(24))
        alone = (24 - prod(sides)) * paid_bytes[0, 0, 0]

        cut = slow_cut_bytes(question, home.tolist())

        assert cut + rebate == pytest.approx(paid_bytes[tuple(n - 1 for n in sides)] + alone)


def test_three_domains_of_nearly_a_third_part_one_line_at_each_end_between_them() -> None:
    """Neither 342 nor 683 is a number of whole lines of 16: two are parted at least."""
    line = Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=100.0)
    wide = Charge(axes=(1, 2, 3), kind=Kind.TOUCH, weight_bytes=0.01)
    question = Question(sizes=(16, 2, 8, 4), charges=(line, wide), capacities=(342, 341, 341))

    best = min(cut_bytes(question, home) for home in line_fillings(question, question.capacities))

    assert 200 <= best < 201  # 16 wide groups in three domains: 0.32 at most
