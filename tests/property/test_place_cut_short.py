"""A run that ends at any moment: a seating within the domains, and no bound above the least cut."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain, repeat
from math import inf

import numpy as np
import pytest

from planner.place import clock, finish  # noqa: F401 - with all that it asks, before clocks are set
from planner.place.answer import Answer, Proof
from planner.place.baselines import baselines, in_rank_order
from planner.place.bound import _domain_bound, _loose_bound
from planner.place.clock import TimeUp, ending
from planner.place.objective import least_busy
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.solve import Work, _bettered, solve_question
from tests.oracles import brute_force_cut
from tests.small_questions import Drawn

GRIDS = ((2, 2, 3), (4, 3), (2, 3, 2), (2, 2, 2), (2, 5), (3, 4), (2, 6))
KINDS = (Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.CHAIN, Kind.CHAIN, Kind.ENDS)
DRAWN = Drawn(first_seed=3_310_000, grids=GRIDS, kinds=KINDS, spare_share=0.4)
RACKS = Question(
    sizes=(4, 8, 4, 2),
    charges=(
        Charge(axes=(0,), kind=Kind.RING, weight_bytes=9.0),
        Charge(axes=(0, 1), kind=Kind.TOUCH, weight_bytes=21.0),
        Charge(axes=(1, 2), kind=Kind.PAIRS, weight_bytes=1.0),
        Charge(axes=(2,), kind=Kind.CHAIN, weight_bytes=2.0),
        Charge(axes=(0, 2, 3), kind=Kind.TOUCH, weight_bytes=30.0),
    ),
    capacities=(*(36,) * 7, 12),
)
STAGES = Question(
    sizes=(32, 8),
    charges=(
        Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=304.0),
        Charge(axes=(1,), kind=Kind.CHAIN, weight_bytes=69.0),
    ),
    capacities=(96, 96, 96),
)
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


def _clocks(monkeypatch: pytest.MonkeyPatch, reading: Callable[[], float]) -> None:
    """Have every clock of the placement, not the whole run's alone, read this."""
    for name, module in list(sys.modules.items()):
        if name.startswith("planner.place.") and hasattr(module, "monotonic"):
            monkeypatch.setattr(module, "monotonic", reading)


def _limited(
    question: Question, looks: int, time_limit_s: float, monkeypatch: pytest.MonkeyPatch
) -> Answer:
    """Answer within a limit that is over after so many looks at any clock."""
    readings: Iterator[float] = chain(repeat(0.0, looks), repeat(2.0 * time_limit_s))
    _clocks(monkeypatch, lambda: next(readings))
    return solve_question(question, time_limit_s=time_limit_s)


def _faults(
    numbers: range,
    time_limit_s: float,
    monkeypatch: pytest.MonkeyPatch,
    answered: Callable[[Question, int, float, pytest.MonkeyPatch], Answer] = _cut_short,
) -> Iterator[tuple[str, Question, int]]:
    for question in DRAWN.questions(numbers):
        best = brute_force_cut(question)
        least = min(cut_bytes(question, home) for _, home in baselines(question, 0))
        for looks in LOOKS:
            found = answered(question, looks, time_limit_s, monkeypatch)
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
            if (not looks or answered is _limited) and found.objective_bytes > least:
                yield "above a baseline", question, looks
            if found.interrupted:
                yield "nobody interrupted", question, looks


def test_an_answer_cut_short_anywhere_fits_and_claims_no_more_than_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not list(_faults(range(25), 0.0, monkeypatch))
    assert not list(_faults(range(25, 28), 5.0, monkeypatch))


def test_a_limit_that_is_over_anywhere_gives_what_no_baseline_beats(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert not list(_faults(range(28, 34), 5.0, monkeypatch, _limited))


def test_an_answer_comes_near_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tenth of a millisecond passes at every look at a clock: 2 s without a limit."""
    now_s = [0.0]

    def tick() -> float:
        now_s[0] += 1e-4
        return now_s[0]

    _clocks(monkeypatch, tick)
    found = solve_question(RACKS, time_limit_s=1.0)

    assert 0.9 < now_s[0] < 1.25
    assert found.proof is Proof.INCUMBENT
    assert found.objective_bytes <= min(cut_bytes(RACKS, h) for _, h in baselines(RACKS, 0))


def test_a_bound_that_is_cut_short_keeps_what_it_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of stages, and of pipelines, get their prices one after the other."""
    home = in_rank_order(STAGES)
    bounds = []
    for looks in (0, 1, 20, 100, 150, 200, 250, 300, 400, 1000):
        work = Work(question=STAGES, seed=0)
        work.offer(home, "rank order")
        caches = (_domain_bound, _loose_bound)
        for cache in caches:
            cache.cache_clear()
        _at_look(monkeypatch, looks)
        with ending(1.0), suppress(TimeUp):
            _bettered(work)
        monkeypatch.undo()
        bounds.append(work.bound_bytes)

    assert bounds == sorted(bounds)
    assert len(set(bounds)) > 3


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
