"""Stages that no domain can hold, in parts too many to price."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from math import inf

import pytest

from planner.place import sheet_parts
from planner.place.question import Charge, Kind, Question
from planner.place.sheet_parts import sheet_axes, sheeted, wide_axes
from planner.place.solve import solve_question
from planner.place.wide_sheets import wide_bound
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


def test_hops_of_stages_that_are_split_unlike_are_known_to_cross() -> None:
    """Two parts of each stage in three domains: one has a part of both stages, two have one each.

    By hand: stages are split across tensor groups, 3 of 8 ranks and 5 of 8. Of 97 seats the first
    domain fills 48 + 48, so the others hold 80 of a stage each, and their 80 hops cross.
    """
    answer = solve_question(STAGES, time_limit_s=5.0)
    assert answer.objective_bytes == pytest.approx(3200.0 + 80.0)
    assert answer.lower_bound_bytes == pytest.approx(3200.0 + 80.0)


def test_four_halves_of_two_stages_do_not_go_into_three_domains() -> None:
    """Stages of 4 x 2 in domains of 6: two halves of each, by parting its four pairs, would cut 8.

    But a domain holds one half of 4 at most, and there are four of them: some line of four is
    parted, too, which costs 10, so the cut is 16: six pairs and one line.
    """
    question = Question(
        sizes=(4, 2, 2),
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=10.0),
            Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=1.0),
        ),
        capacities=(6, 6, 6),
    )
    answer = solve_question(question, time_limit_s=5.0)

    assert answer.objective_bytes == pytest.approx(16.0)
    assert 12.0 < wide_bound(question, (0, 1), 1e3) <= 16.0


def test_sheets_that_a_domain_can_hold_are_not_wide() -> None:
    roomy = Question(sizes=STAGES.sizes, charges=STAGES.charges, capacities=(128, 128))
    assert wide_axes(roomy) == []


def test_rings_beside_tensor_groups_make_sheets_though_experts_join_further_axes() -> None:
    """The dearest to split: groups of 8 (19), experts of 32 (0.1 x 2 x 31), rings of two (2).

    Experts come before the rings and join all three axes, so that what rings and groups alone cost
    together would be in no sheet.
    """
    question = Question(
        sizes=(8, 2, 2, 2),
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=19.0),
            Charge(axes=(1,), kind=Kind.RING, weight_bytes=1.0),
            Charge(axes=(0, 1, 2), kind=Kind.PAIRS, weight_bytes=0.1),
        ),
        capacities=(18, 18, 18, 10),
    )
    assert sheet_axes(question) == [(0,), (0, 1, 2), (0, 1)]


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
            best = brute_force_cut(question)
            bound = wide_bound(question, axes, 2 * best + 1.0)
            assert bound <= best * (1 + 1e-9) + 1e-6, question
            bounds += 1
            reached += bound >= best * (1 - 1e-6) > 0
    assert bounds > 20
    assert reached > 0


def test_parts_looked_at_closely_pay_what_they_pay_when_looked_at_one_by_one() -> None:
    charges = (
        Charge(axes=(0,), kind=Kind.PAIRS, weight_bytes=3.0),
        Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=20.0),
        Charge(axes=(0, 2), kind=Kind.TOUCH, weight_bytes=30.0),
        Charge(axes=(2,), kind=Kind.CHAIN, weight_bytes=1.0),
    )
    question = Question(sizes=(6, 8, 4), charges=charges, capacities=(64, 64, 64))
    one_by_one = sheeted(question, (0, 1))
    rough = sheeted(question, (0, 1), rough=True)

    assert (rough.part_bytes <= one_by_one.part_bytes * (1 + 1e-9)).all()
    close = rough.looked_closer(set(range(1, rough.largest + 1)), sharp=True)
    assert close.part_bytes == pytest.approx(one_by_one.part_bytes)
    assert close.pays_bytes[:4] == pytest.approx(one_by_one.pays_bytes[:4])


MIXED = Question(
    sizes=(2, 6, 3),
    charges=(
        Charge(axes=(0,), kind=Kind.PAIRS, weight_bytes=15.0),
        Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=18.0),
        Charge(axes=(1, 2), kind=Kind.TOUCH, weight_bytes=18.0),
        Charge(axes=(2,), kind=Kind.TOUCH, weight_bytes=7.0),
    ),
    capacities=(13, 13, 13),
)
"""Three sheets of 2 x 6; groups along (1, 2) run through all of them, and touch one row of each."""


@pytest.mark.parametrize("sharp", [False, True])
def test_a_closer_look_at_a_part_says_no_more_than_any_set_of_its_cells_pays(
    *, sharp: bool
) -> None:
    roughly = sheeted(MIXED, (0, 1), rough=True)
    (row,) = roughly.traces
    closely = roughly.looked_closer(set(range(1, roughly.largest + 1)), sharp=sharp)
    for cells in range(1, roughly.largest + 1):
        paid = []
        for chosen in combinations(product(range(2), range(6)), cells):
            rows, columns = Counter(x for x, _ in chosen), Counter(y for _, y in chosen)
            pairs = 15.0 * sum(n * (2 - n) for n in columns.values())  # two cells in each
            paid.append(pairs + 18.0 * len(rows) + row.weight_bytes * len(rows))
        least = min(paid) + closely.alone_bytes[cells]
        assert closely.pays_bytes[0, cells] <= least * (1 + 1e-9), cells
        assert closely.pays_bytes[0, cells] >= roughly.pays_bytes[0, cells]
