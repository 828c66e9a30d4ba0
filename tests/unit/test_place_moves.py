"""What a move costs: the same as counting the whole cut anew, after any swaps."""

from __future__ import annotations

import numpy as np
import pytest

from planner.place.moves import Moves
from planner.place.question import Charge, Kind, Question
from tests.oracles import slow_cut_bytes
from tests.small_questions import small_question

COPIES = Charge(axes=(0,), kind=Kind.COPIES, weight_bytes=3.0, units=(0.0, 4.0, 5.0, 0.0))
QUESTIONS = [
    Question(sizes=(3, 4), charges=(COPIES,), capacities=(5, 0, 4, 6)),
    Question(
        sizes=(2, 3, 2),
        charges=(
            Charge(axes=(0,), kind=Kind.RING, weight_bytes=5.0),
            Charge(axes=(1,), kind=Kind.RING, weight_bytes=7.0),
            Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=2.0),
            Charge(axes=(0, 1), kind=Kind.PAIRS, weight_bytes=1.0),
            Charge(axes=(1, 2), kind=Kind.CHAIN, weight_bytes=11.0),
            Charge(axes=(2,), kind=Kind.ENDS, weight_bytes=13.0),
        ),
        capacities=(6, 4, 4),
    ),
]


@pytest.mark.parametrize("question", [*QUESTIONS, *map(small_question, range(20))])
def test_every_move_is_priced_as_the_cuts_before_and_after_it(question: Question) -> None:
    random = np.random.default_rng(7)
    seats = np.repeat(np.arange(len(question.capacities)), question.capacities)
    moves = Moves(question, random.permutation(seats)[: question.cells])
    domains = np.flatnonzero(question.capacities)

    for _ in range(6):
        before = moves.home[: question.cells].tolist()
        cut = slow_cut_bytes(question, before)
        for slot, cell in enumerate(moves.slots.tolist()):
            for inner, domain in enumerate(domains.tolist()):
                after = before.copy()
                if cell < question.cells:
                    after[cell] = domain
                paid = slow_cut_bytes(question, after) - cut
                assert moves.prices[inner, slot] == pytest.approx(paid, abs=1e-6)
        one, two = random.choice(len(seats), 2, replace=False).tolist()
        if moves.inner[one] == moves.inner[two]:
            continue

        cost = moves.swap(one, two)

        assert slow_cut_bytes(question, moves.home[: question.cells].tolist()) - cut == (
            pytest.approx(cost, abs=1e-6)
        )


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_best_swaps_lock_their_cells_and_cost_what_they_say(question: Question) -> None:
    seats = np.repeat(np.arange(len(question.capacities)), question.capacities)
    moves = Moves(question, np.random.default_rng(3).permutation(seats)[: question.cells])
    swaps = 0

    while True:
        before = slow_cut_bytes(question, moves.home[: question.cells].tolist())
        cost = moves.best_swap()
        if cost is None:
            break
        swaps += 1
        after = slow_cut_bytes(question, moves.home[: question.cells].tolist())
        assert after - before == pytest.approx(cost, abs=1e-6)

    assert 0 < 2 * swaps <= len(seats)
    held = np.bincount(moves.home, minlength=len(question.capacities))
    assert held.tolist() == list(question.capacities)
