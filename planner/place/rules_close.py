"""The end of a search under hard rules: a small model finds and proves what is left."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InfeasibleError, PlannerError
from planner.place.child import in_child
from planner.place.rules_model import RuledSolved, solve_ruled_model
from planner.place.rules_work import SOLVER_MET, RuledWork

if TYPE_CHECKING:
    from planner.place.rules_bound import BoundRules

EXACT_SEATS = 100
"""Boxes x domains up to which the model is quicker than exchanges."""
_MODEL_SEATS = 900  # boxes x domains up to which the model of ``rules_model.py`` is built
_LEAST_MODEL_S = 1.0  # a model that has no time to look finds nothing
_IN_PROCESS_S = 0.5  # a solve that ends within them is not worth a process of its own


def close(work: RuledWork) -> None:
    """Have the small model find and prove what is left.

    Raises:
        InfeasibleError: it proves that no seating keeps the rules.
    """
    if work.met or work.coarse.cells * len(work.coarse.capacities) > _MODEL_SEATS:
        return
    solved = _modelled(work)
    if solved is None:
        return
    if solved.unseated:
        raise _infeasible(work, solved.unseated)
    if solved.home is not None:
        work.offer(solved.home, "solver on the ranks that the rules are about")
    bound_bytes = solved.lower_bound_bytes
    if bound_bytes <= work.cut_bytes * (1 + SOLVER_MET):  # above it by rounding alone
        bound_bytes = min(bound_bytes, work.cut_bytes)
    work.raise_bound(bound_bytes)
    gap_bytes = work.cut_bytes - work.bound_bytes
    work.solved = solved.closed and gap_bytes <= SOLVER_MET * max(work.cut_bytes, 1e-300)


def _modelled(work: RuledWork) -> RuledSolved | None:
    """Return what the small model says; None where it was not ended in time."""
    cells, domains = work.coarse.cells, len(work.coarse.capacities)
    allowed = work.rules.allowed
    if allowed is None:
        allowed = np.ones((cells, domains), bool)
    known_bytes = work.bound_bytes if work.home is None else min(work.bound_bytes, work.cut_bytes)
    scale_bytes = max(known_bytes, 1.0) if work.home is None else work.cut_bytes
    asked = (work.coarse, allowed, work.rules.counted, known_bytes, max(scale_bytes / 1e3, 1e-300))
    limit_s = max(_LEAST_MODEL_S, work.left_s)
    if cells * domains <= EXACT_SEATS:
        solved = solve_ruled_model(*asked, min(limit_s, _IN_PROCESS_S))
        if solved.closed:
            return solved
    return in_child(solve_ruled_model, (*asked, limit_s), limit_s)


def _infeasible(work: RuledWork, unseated: int) -> PlannerError:
    """Return the error that says so, or that a seating in hand says otherwise."""
    texts = said(work.rules)
    if work.home is not None:
        return PlannerError(
            f"the solver says that {texts} cannot be kept, and a seating keeps them: "
            "this is a fault of the planner, and the placement is withheld"
        )
    return InfeasibleError(
        f"{texts} cannot be kept: {unseated * prod(work.tile)} ranks at least are left without a "
        f"seat on the {sum(work.question.capacities)} usable GPUs, whatever the seating (proved by "
        "the solver)"
    )


def said(rules: BoundRules) -> str:
    """Return the texts of *rules* as an error quotes them."""
    texts = [repr(rule.text) for rule in rules.rules]
    return f"rule{'s' if len(texts) > 1 else ''} {' and '.join(texts)}"
