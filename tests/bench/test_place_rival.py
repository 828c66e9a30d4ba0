"""The planner against the naive model: 128 blocks in 16 domains; run with -m bench."""

from __future__ import annotations

from time import monotonic

import pytest

from planner.place import solve_question
from planner.place.answer import Proof
from planner.place.question import Charge, Kind, Question
from tests.bench.rival_naive import solve_naively

SIZES, WEIGHTS, CAPACITIES = (2, 16, 4), (4.0, 1.0, 0.2), (8,) * 16


@pytest.mark.bench
def test_the_naive_model_has_no_proof_after_a_minute_where_the_planner_needs_no_second() -> None:
    question = Question(
        sizes=SIZES,
        capacities=CAPACITIES,
        charges=tuple(
            Charge(axes=(axis,), kind=Kind.TOUCH, weight_bytes=weight)
            for axis, weight in enumerate(WEIGHTS)
        ),
    )

    started = monotonic()
    ours = solve_question(question, time_limit_s=60.0)
    our_wall_s = monotonic() - started
    naive = solve_naively(SIZES, WEIGHTS, CAPACITIES, 60.0)

    print(  # noqa: T201
        f"\nplanner: {ours.objective_bytes:g} proved in {our_wall_s:.3f} s\n"
        f"naive:   {naive.best:g}, bound {naive.bound:g} after {naive.wall_s:.0f} s"
    )
    assert ours.proof is Proof.BOUND
    assert ours.objective_bytes == pytest.approx(43.2)
    assert our_wall_s < 1.0
    assert not naive.proved
    assert naive.bound < 43.2 / 2
    assert naive.best >= ours.objective_bytes * (1 - 1e-9)


@pytest.mark.bench
def test_the_naive_model_agrees_where_it_is_small_enough() -> None:
    naive = solve_naively((2, 4), (3.0, 1.0), (4, 4), 60.0)

    # 2 x 2 in each: 4 lines of the second axis are cut in two; no line of the first
    assert naive.proved
    assert naive.best == pytest.approx(2.0)
