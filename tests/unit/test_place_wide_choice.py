"""Two sheets in few domains, every choice of their parts looked through."""

from __future__ import annotations

import numpy as np
import pytest

from planner.place import wide_choice
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.sheet_parts import sheeted
from planner.place.wide_choice import choosable, chosen_bound
from tests.oracles import brute_force_cut
from tests.small_questions import Drawn

HALVES = Question(
    sizes=(4, 2, 2),
    charges=(
        Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=10.0),
        Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=1.0),
    ),
    capacities=(6, 6, 6),
)
"""Two stages of 4 x 2 in domains of 6: a domain holds one half of 4 at most, and there are four.

By hand: one stage in two halves parts its four pairs, 4. The other has parts of no more than 2 in
the domains of those halves, so 6 and 2 or 4, 2 and 2: a line of four is parted, 10, and two pairs.
"""


def test_of_two_stages_one_is_in_halves_and_the_other_parts_a_line() -> None:
    of = sheeted(HALVES, (0, 1), rough=True)
    assert choosable(of)
    assert chosen_bound(of, 1e3) == pytest.approx(4.0 + 12.0)


def test_hops_between_stages_that_are_split_unlike_are_counted() -> None:
    """Two stages of 8 x 16 in domains of 97, as 48 + 80 each: 80 of either stage are alone."""
    stages = Question(
        sizes=(8, 16, 2),
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=100.0),
            Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=1000.0),
            Charge(axes=(2,), kind=Kind.CHAIN, weight_bytes=1.0),
        ),
        capacities=(97, 97, 97),
    )
    assert chosen_bound(sheeted(stages, (0, 1), rough=True), 1e9) == pytest.approx(3280.0)


def test_experts_inside_tensor_groups_of_stages_that_no_domain_holds() -> None:
    """Stages of 16 x 2 x 16 in 3 x 384: tensor groups of 32, experts in half of one, rings of 16.

    By hand: one stage is split into two halves of 16 rings each, which parts its 16 tensor groups,
    and the other into 24 and 8, which parts as many, and 16 groups of experts 8 : 8. The 8 rings
    lie beside one of the halves; the hops of all others, 512 - 128, cross.
    """
    question = Question(
        sizes=(16, 2, 16, 2),
        charges=(
            Charge(axes=(0, 1), kind=Kind.TOUCH, weight_bytes=9.0),
            Charge(axes=(2,), kind=Kind.RING, weight_bytes=8.0),
            Charge(axes=(0,), kind=Kind.PAIRS, weight_bytes=0.05),
            Charge(axes=(3,), kind=Kind.CHAIN, weight_bytes=0.001),
        ),
        capacities=(384, 384, 384),
    )
    home = np.full((2, 16, 2, 16), 2)  # stage, ring, half of a tensor group, expert
    home[0, :, 0], home[0, :, 1], home[1, :, 0, :8] = 0, 1, 0
    least = cut_bytes(question, home.ravel())
    assert least == pytest.approx(2 * 16 * 9.0 + 16 * 2 * 8 * 8 * 0.05 + 384 * 0.001)
    bound = chosen_bound(sheeted(question, (0, 1, 2), rough=True), 1e9)
    assert bound == pytest.approx(least, rel=1e-9)


def test_there_may_be_too_much_to_look_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wide_choice, "_PAIRS_MOST", 10)
    assert chosen_bound(sheeted(HALVES, (0, 1), rough=True), 1e3) is None


def test_four_domains_or_three_sheets_are_too_many() -> None:
    four = Question(sizes=HALVES.sizes, charges=HALVES.charges, capacities=(4, 4, 4, 4))
    three = Question(sizes=(4, 2, 3), charges=HALVES.charges, capacities=(8, 8, 8))
    assert not choosable(sheeted(four, (0, 1), rough=True))
    assert not choosable(sheeted(three, (0, 1), rough=True))


@pytest.mark.parametrize(
    "seeds", [range(100), pytest.param(range(100, 600), marks=pytest.mark.nightly)]
)
def test_no_seating_of_a_small_question_cuts_less_than_its_choice_of_parts(seeds: range) -> None:
    drawn = Drawn(
        first_seed=430_000,
        grids=((2, 2, 2), (3, 2, 2), (2, 3, 2), (2, 2, 3), (4, 2), (6, 2), (2, 5), (2, 6)),
        kinds=(Kind.TOUCH, Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.CHAIN, Kind.ENDS),
        spare_share=0.5,
    )
    bounds = reached = 0
    for question in drawn.questions(seeds):
        for axis, sheets in enumerate(question.sizes):
            axes = tuple(i for i in range(len(question.sizes)) if i != axis)
            if sheets != 2 or len(question.capacities) > 3:
                continue
            best = brute_force_cut(question)
            bound = chosen_bound(sheeted(question, axes, rough=True), 2 * best + 1.0)
            assert bound is not None
            assert bound <= best * (1 + 1e-9) + 1e-6, question
            bounds += 1
            reached += bound >= best * (1 - 1e-6) > 0
    assert bounds > 0.24 * len(seeds)
    assert reached > 0.08 * len(seeds)


def test_what_a_first_part_pays_jointly_is_not_charged_for_the_cutting_as_well() -> None:
    """3 x 2 x 2 in 6, 5 and 2, by brute force: charged twice, the bound would be 90."""
    question = Question(
        sizes=(3, 2, 2),
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=19.0),
            Charge(axes=(1, 2), kind=Kind.TOUCH, weight_bytes=10.0),
            Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=10.0),
            Charge(axes=(0, 1, 2), kind=Kind.RING, weight_bytes=7.0),
        ),
        capacities=(6, 5, 2),
    )
    assert brute_force_cut(question) == pytest.approx(89.0)
    bound = chosen_bound(sheeted(question, (0, 1), rough=True), 1e3)
    assert bound is not None
    assert bound <= 89.0 * (1 + 1e-9)
