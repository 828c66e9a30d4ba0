"""What is left to solvers: none is asked when its time is over."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.place import finish, shapes
from planner.place.merge import kept
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.shapes import ShapeRules
from planner.place.solve import Work


def test_no_solver_is_given_less_than_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock stands at 0 until the rules of shapes are worked out, then it is past the end."""
    now = [0.0]
    limits: list[float] = []
    shape_rules = shapes.shape_rules

    def slow(question: Question, cut_bytes: float) -> ShapeRules | None:
        now[0] = 2.0
        return shape_rules(question, cut_bytes)

    def asked(rules: ShapeRules, time_limit_s: float) -> float:
        del rules
        limits.append(time_limit_s)
        return 0.0

    monkeypatch.setattr(finish, "monotonic", lambda: now[0])
    monkeypatch.setattr(finish, "shape_rules", slow)
    monkeypatch.setattr(finish, "whole_bound", asked)
    question = Question(
        sizes=(3, 4),
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=3.0),
            Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=2.0),
        ),
        capacities=(5, 5, 2),
    )
    work = Work(question=question, seed=0)
    work.offer(np.array([0, 1, 2, 0, 1, 2, 0, 1, 0, 0, 1, 1]), "by hand")
    finish.finish(work, 1.0)
    assert now == [2.0]
    assert limits == []


def test_what_is_kept_together_does_not_depend_on_how_homes_are_stored() -> None:
    """Rows of three in one domain each stay together, in any type of whole number."""
    question = Question(
        sizes=(3, 4),
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=30.0),
            Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=2.0),
        ),
        capacities=(6, 6),
    )
    home = np.repeat([0, 0, 1, 1], 3)
    ways: list[NDArray[Any]] = [home, home.astype(np.int8), home.astype(np.int32)]
    for stored in ways:
        found = kept(question, stored, cut_bytes(question, home))
        assert found.sides == (3, 1)
        assert found.home.tolist() == [0, 0, 1, 1]
    other = np.repeat([0, 1, 0, 1], 3)
    assert kept(question, other, cut_bytes(question, other)).home.tolist() == [0, 1, 0, 1]
    assert kept(question, home, 1000.0).sides == (1, 1)  # a better seating may part rows
