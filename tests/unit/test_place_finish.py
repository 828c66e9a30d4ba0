"""What is left to solvers: none is asked when its time is over."""

from __future__ import annotations

import numpy as np
import pytest

from planner.place import finish, shapes
from planner.place.question import Charge, Kind, Question
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
