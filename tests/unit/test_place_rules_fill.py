"""Seatings under rules that take no search."""

from __future__ import annotations

from math import inf

import numpy as np

from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.rules_bound import BoundRules, Counted
from planner.place.rules_fill import at_once, filled_by_parts, keeps, renamings

# 8 replicas x 16 stages in 48 + 48 + 32; a group pays one for every domain besides its first.
QUESTION = Question(
    sizes=(8, 16),
    charges=(
        Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=1.0),
        Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=1.0),
    ),
    capacities=(48, 48, 32),
)


def _rules(allowed: np.ndarray | None = None, **most: int) -> BoundRules:
    axes = {"dp": (0,), "pp": (1,)}
    counted = tuple(Counted(axes=axes[d], most=m, rule=f"{d} at most {m}") for d, m in most.items())
    return BoundRules(
        rules=(), boxes=(), axes=(), capacities=QUESTION.capacities, allowed=allowed,
        counted=counted,
    )  # fmt: skip


def test_two_rules_that_count_are_kept_by_halves_of_one_in_the_order_of_the_other() -> None:
    rules = _rules(dp=2, pp=2)

    cuts = [
        cut_bytes(QUESTION, home)
        for home in filled_by_parts(QUESTION, rules)
        if keeps(QUESTION, rules, home)
    ]

    # Half the replicas fill the first domain and a third of the second, the others what is left:
    # all 16 DP groups and all 8 PP groups cross one border each.
    assert min(cuts, default=inf) <= 16 + 8


def test_domains_filled_without_regard_to_names_are_kept_to_them_by_new_names() -> None:
    allowed = np.ones((128, 3), bool)
    allowed[:8, :2] = False  # stage 0 may sit in the last domain only
    rules = _rules(allowed, dp=2)

    kept = [
        renamed
        for home in at_once(QUESTION, rules)
        for renamed, _ in renamings(QUESTION, rules, home, "filled")
        if keeps(QUESTION, rules, renamed)
    ]

    # Stages 0 to 3 in the last, 6 + 6 in the others: no DP group crosses, each PP group twice.
    assert min(cut_bytes(QUESTION, home) for home in kept) <= 8 * 2
