"""Parts bound together, line by line: by hand, and below every seating of small questions."""

from __future__ import annotations

from math import inf, prod
from time import monotonic

import numpy as np
import pytest

from planner.place import sheet_names
from planner.place.question import Charge, Kind, Question
from planner.place.sheet_cuttings import Cuttings
from planner.place.sheet_names import named_choice
from planner.place.sheet_parts import sheeted
from planner.place.sheet_prices import sheet_prices
from planner.place.whole_numbers import Effort
from tests.oracles import brute_force_cut

FEW = Effort(listed=600, nodes=100, solve_s=10.0)
SOLVER = 2e-6
TENSOR = Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=1000.0)


def _bound(question: Question, limit: float) -> float:
    of = sheeted(question, (0, 1))
    ends_s = monotonic() + 60.0
    return named_choice(sheet_prices(of, inf), Cuttings(of), limit, ends_s, FEW).bound_bytes


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Without joins: what each part costs by itself."""
    monkeypatch.setattr(sheet_names, "_JOINED_SHARE", 0.0)
    return monkeypatch


HOPS = Question(
    sizes=(2, 2, 2),
    charges=(TENSOR, Charge(axes=(2,), kind=Kind.CHAIN, weight_bytes=1.0)),
    capacities=(3, 3, 2),
)
"""Two stages of two tensor groups of two.

Groups held whole but for one: two domains hold a group of one stage and half a group of the other.
Both halves are of one group, which lies upon the whole group of one of the two domains only: of the
four hops it alone keeps one, 1000 + 3. Each by itself could keep one.
"""

TRACES = Question(
    sizes=(3, 2, 2),
    charges=(
        TENSOR,
        Charge(axes=(1, 2), kind=Kind.TOUCH, weight_bytes=3.0),
        Charge(axes=(2,), kind=Kind.TOUCH, weight_bytes=2.0),
    ),
    capacities=(5, 4, 2, 1),
)
"""Parts that touch as few rows as they may leave pieces that split a group more."""


@pytest.mark.parametrize("question", [HOPS, TRACES])
def test_parts_that_do_not_go_together_raise_the_bound_to_the_best_seating(
    question: Question,
) -> None:
    best = brute_force_cut(question)
    assert _bound(question, best + 1.0) == pytest.approx(best, abs=0.1)


@pytest.mark.parametrize("question", [HOPS, TRACES])
def test_each_part_by_itself_leaves_a_byte_open(
    question: Question, alone: pytest.MonkeyPatch
) -> None:
    del alone
    best = brute_force_cut(question)
    assert _bound(question, best + 1.0) == pytest.approx(best - 1.0, abs=0.1)


def _drawn(seed: int) -> Question | None:
    """Return a question whose tensor groups are dear and whose other families are cheap."""
    random = np.random.default_rng(3_410_000 + seed)
    sizes = ((2, 2, 2), (3, 2, 2), (2, 3, 2), (2, 2, 3))[int(random.integers(4))]
    capacities: list[int] = []
    while sum(capacities) < prod(sizes):
        capacities.append(min(int(random.integers(1, 6)), prod(sizes) - sum(capacities)))
    if not 2 <= len(capacities) <= 5:
        return None
    kinds = (Kind.TOUCH, Kind.CHAIN)
    charges = [TENSOR, Charge(axes=(2,), kind=kinds[seed % 2], weight_bytes=float(1 + seed % 7))]
    if random.random() < 0.6:
        charges.append(Charge(axes=(1, 2), kind=Kind.TOUCH, weight_bytes=float(1 + seed % 3)))
    if random.random() < 0.4:
        charges.append(Charge(axes=(0, 1), kind=Kind.PAIRS, weight_bytes=float(1 + seed % 5)))
    if random.random() < 0.3:
        charges.append(Charge(axes=(2,), kind=Kind.ENDS, weight_bytes=1.0))
    held = tuple(sorted(capacities, reverse=True))
    return Question(sizes=sizes, charges=tuple(charges), capacities=held)


def _undercut(seeds: range) -> list[str]:
    found = []
    for question in filter(None, map(_drawn, seeds)):
        best = brute_force_cut(question)
        for limit in (best, best * 1.004 + 1.0):
            bound = _bound(question, limit)
            if bound > best * (1 + SOLVER) + SOLVER:
                found.append(f"{bound} > {best}: {question}")
    return found


def test_no_seating_of_a_small_question_cuts_less_than_its_joined_parts_say() -> None:
    assert _undercut(range(60)) == []


@pytest.mark.nightly
def test_no_seating_of_many_small_questions_cuts_less_than_their_joined_parts_say() -> None:
    assert _undercut(range(60, 3000)) == []
