"""Seatings in boxes that need not fill their domains."""

from __future__ import annotations

import numpy as np

from planner.place.pieces import piece_fillings
from planner.place.question import Charge, Kind, Question
from tests.oracles import slow_cut_bytes


def test_a_line_of_a_thousand_cells_is_cut_into_as_few_pieces_as_fit() -> None:
    """Sixteen domains of 8 and 128 of 7 hold 1,024 cells to the last: 144 pieces, 143 cuts."""
    line = Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=1.0)
    question = Question(sizes=(1024,), charges=(line,), capacities=(*(7,) * 140, *(8,) * 16))

    homes = list(piece_fillings(question))

    for home in homes:
        assert (np.bincount(home, minlength=156) <= question.capacities).all()
    assert min(slow_cut_bytes(question, home.tolist()) for home in homes) == 143.0
