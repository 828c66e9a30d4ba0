"""Rules as text, a layout and a cluster, to a seating that keeps them, its proof and its price."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.place.rules import check_rules, parse_rules
from planner.place.rules_bound import bound_rules
from planner.place.rules_seats import ruled_seats
from planner.place.rules_solve import RulePrice, price_of, solve_ruled

if TYPE_CHECKING:
    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.place.answer import Answer
    from planner.place.question import Question
    from planner.place.rules_bound import BoundRules


@dataclass(frozen=True, slots=True, kw_only=True)
class RuledAnswer:
    """A seating under rules.

    Args:
        answer: homes, cut, bound and proof.
        rank_to_gpu: GPU of each rank; inner domains keep the rules, too.
        price: what the rules cost.
        moved: the rules made another seating than the free one.
    """

    answer: Answer
    rank_to_gpu: tuple[int, ...]
    price: RulePrice
    moved: bool


def read_rules(texts: Sequence[str], layout: Layout, fabric: Fabric, tier: str) -> BoundRules:
    """Return the rules of *texts*, tied to a layout and a cluster.

    Raises:
        InputError: a text that is no rule, or names what there is not; every fault.
        InfeasibleError: no seating can keep them, by arithmetic.
    """
    return bound_rules(check_rules(parse_rules(texts), layout, fabric, tier), layout, fabric, tier)


def ruled(
    question: Question,
    rules: BoundRules,
    free: Answer,
    layout: Layout,
    fabric: Fabric,
    *,
    tier: str,
    time_limit_s: float = 20.0,
    seed: int = 0,
) -> RuledAnswer:
    """Return the best seating under *rules*; the arguments are those of ``solve_ruled``.

    Raises:
        InfeasibleError: proved that no seating keeps the rules.
        SolverError: none was found, and none proved impossible.
    """
    answer = solve_ruled(question, rules, free, time_limit_s=time_limit_s, seed=seed)
    return RuledAnswer(
        answer=answer,
        rank_to_gpu=ruled_seats(np.array(answer.home), rules, layout, fabric, tier),
        price=price_of(rules, answer, free),
        moved=answer is not free,
    )
