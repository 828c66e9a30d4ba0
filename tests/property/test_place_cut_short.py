"""A run that ends at any moment: a seating within the domains, and no bound above the least cut."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, repeat
from math import inf

import numpy as np
import pytest

from planner.place import clock
from planner.place.answer import Answer, Proof
from planner.place.baselines import baselines
from planner.place.clock import ending
from planner.place.objective import least_busy
from planner.place.question import Kind, Question, cut_bytes
from planner.place.solve import solve_question
from tests.oracles import brute_force_cut
from tests.small_questions import Drawn

GRIDS = ((2, 2, 3), (4, 3), (2, 3, 2), (2, 2, 2), (2, 5), (3, 4), (2, 6))
KINDS = (Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.CHAIN, Kind.CHAIN, Kind.ENDS)
DRAWN = Drawn(first_seed=3_310_000, grids=GRIDS, kinds=KINDS, spare_share=0.4)
LOOKS = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89)
SOLVER = 2e-6


def _at_look(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Have the time be up from the look numbered *count* on; looks before it see time left."""
    looks: Iterator[float] = chain(repeat(0.0, count), repeat(2.0))
    monkeypatch.setattr(clock, "monotonic", lambda: next(looks))


def _cut_short(
    question: Question, looks: int, time_limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> Answer:
    _at_look(monkeypatch, looks)
    with ending(1.0):
        return solve_question(question, time_limit_s=time_limit_s)


def _faults(
    numbers: range, time_limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[str, Question, int]]:
    for question in DRAWN.questions(numbers):
        best = brute_force_cut(question)
        least = min(cut_bytes(question, home) for _, home in baselines(question, 0))
        for looks in LOOKS:
            found = _cut_short(question, looks, time_limit_s, monkeypatch)
            home = np.array(found.home)
            held = np.bincount(home, minlength=len(question.capacities))
            if (held > question.capacities).any():
                yield "more than fit", question, looks
            if found.objective_bytes != pytest.approx(cut_bytes(question, home)):
                yield "another cut", question, looks
            if found.lower_bound_bytes > best * (1 + SOLVER) + SOLVER:
                yield "a bound above the least", question, looks
            if found.proof is not Proof.INCUMBENT and found.objective_bytes > best * (1 + SOLVER):
                yield "no proof", question, looks
            if not looks and found.objective_bytes > least:
                yield "above a baseline", question, looks
            if found.interrupted:
                yield "nobody interrupted", question, looks


def test_an_answer_cut_short_anywhere_fits_and_claims_no_more_than_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not list(_faults(range(25), 0.0, monkeypatch))
    assert not list(_faults(range(25, 28), 5.0, monkeypatch))


def test_some_answers_cut_short_are_open_that_are_proved_in_full(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shorter = [
        _cut_short(question, 1, 0.0, monkeypatch).lower_bound_bytes
        < solve_question(question, time_limit_s=0.0).lower_bound_bytes
        for question in DRAWN.questions(range(10))
    ]

    assert any(shorter)


def test_a_run_that_ends_before_its_time_is_up_answers_as_one_without_an_end() -> None:
    for question in DRAWN.questions(range(100, 112)):
        alone = solve_question(question, time_limit_s=0.0)

        with ending(inf):
            assert solve_question(question, time_limit_s=0.0) == alone


def test_the_busiest_border_cut_short_is_no_worse_than_where_it_began(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for question in DRAWN.questions(range(200, 208)):
        total = solve_question(question, time_limit_s=0.0)
        rates = [1.0 + s for s in range(len(question.capacities))]
        begun = least_busy(question, rates, total, time_limit_s=0.0)
        for looks in LOOKS:
            _at_look(monkeypatch, looks)
            with ending(1.0):
                found = least_busy(question, rates, total, time_limit_s=0.0)
            monkeypatch.undo()

            assert found.lower_bound_s <= begun.objective_s * (1 + SOLVER)
            assert found.objective_s >= begun.lower_bound_s * (1 - SOLVER)
            assert not found.interrupted


@pytest.mark.nightly
def test_many_answers_cut_short_anywhere_fit_and_claim_no_more_than_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not list(_faults(range(300, 700), 0.0, monkeypatch))
    assert not list(_faults(range(700, 720), 5.0, monkeypatch))
