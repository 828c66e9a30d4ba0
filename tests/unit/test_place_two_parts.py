"""Two domains, one charged for both: against every seating, and by hand."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from planner.place.bound import domain_bound, lower_bound
from planner.place.merge import counted_bounds
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.two_parts import in_two_parts
from tests.oracles import brute_force_cut
from tests.small_questions import Drawn


def test_each_of_two_domains_tells_what_both_cost() -> None:
    """Every seating of 3 x 2 cells in two domains, families of every kind."""
    sheet = Question(
        sizes=(3, 2),
        charges=(
            Charge(axes=(0,), kind=Kind.RING, weight_bytes=3.0),
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=5.0),
            Charge(axes=(1,), kind=Kind.CHAIN, weight_bytes=2.0),
            Charge(axes=(0, 1), kind=Kind.PAIRS, weight_bytes=0.5),
            Charge(axes=(0,), kind=Kind.COPIES, weight_bytes=7.0, units=(0.0, 1.5, 1.0, 0.0)),
            Charge(axes=(1,), kind=Kind.ENDS, weight_bytes=1.0),
        ),
        capacities=(6,),
    )
    halves = in_two_parts(sheet)
    for cells in range(1, 6):
        asked = Question(sizes=(3, 2), charges=sheet.charges, capacities=(cells, 6 - cells))
        cuts = []
        for held in combinations(range(6), cells):
            home = np.ones(6, dtype=np.int64)
            home[list(held)] = 0
            cuts.append(cut_bytes(asked, home))
        both = max(domain_bound(halves, cells), domain_bound(halves, 6 - cells))
        assert both <= min(cuts) * (1 + 1e-9)
        assert both >= 0.6 * min(cuts)
    # by hand: a line of three parts three closed chains of two and nine pairs, both ways
    assert domain_bound(halves, 3) == pytest.approx(3 * (2.0 + 1.0) + 2 * 9 * 0.5)


def test_nine_cells_in_five_and_four_part_four_lines() -> None:
    """3 x 3: four cells are a square, which parts two lines each way, or a line and one more.

    By hand the latter parts one line and three across. Each domain by itself would part three.
    """
    lines = tuple(Charge(axes=(axis,), kind=Kind.TOUCH, weight_bytes=1.0) for axis in (0, 1))
    square = Question(sizes=(3, 3), charges=lines, capacities=(5, 4))
    assert lower_bound(square) == pytest.approx(4.0)


def test_a_seat_to_spare_lets_two_domains_hold_whole_lines() -> None:
    """3 x 3 in 6 + 4: six cells are two lines, three lines across are parted."""
    lines = tuple(Charge(axes=(axis,), kind=Kind.TOUCH, weight_bytes=1.0) for axis in (0, 1))
    square = Question(sizes=(3, 3), charges=lines, capacities=(6, 4))
    assert lower_bound(square) == pytest.approx(3.0)


@pytest.mark.parametrize("spare_share", [0.0, 1.0])
def test_no_seating_in_two_domains_cuts_less(spare_share: float) -> None:
    drawn = Drawn(
        first_seed=440_000,
        grids=((2, 2, 3), (4, 3), (3, 2, 2), (4, 2), (2, 5), (3, 3), (6, 2)),
        kinds=(Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.CHAIN, Kind.CHAIN, Kind.ENDS),
        spare_share=spare_share,
    )
    asked = reached = 0
    for question in drawn.questions(range(400)):
        if len(question.capacities) != 2:
            continue
        best, bound = brute_force_cut(question), lower_bound(question)
        assert bound <= best * (1 + 1e-9) + 1e-6, question
        asked += 1
        reached += bound >= best * (1 - 1e-9)
    assert asked > 50
    assert reached > 0.8 * asked


def test_what_two_domains_cut_together_leaves_out_no_shape_of_either() -> None:
    """3 x 3 in 5 + 4: the least is 21, by brute force, and a seating in hand cuts 22."""
    charges = (
        Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=5.0),
        Charge(axes=(1,), kind=Kind.CHAIN, weight_bytes=3.0),
        Charge(axes=(1,), kind=Kind.ENDS, weight_bytes=4.0),
    )
    question = Question(sizes=(3, 3), charges=charges, capacities=(5, 4))
    best = brute_force_cut(question)
    for in_hand_bytes in (best, best + 0.5, best + 1.0, best + 9.0):
        assert max(counted_bounds(question, in_hand_bytes)) <= best * (1 + 1e-9)
