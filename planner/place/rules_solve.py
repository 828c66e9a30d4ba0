"""A question under hard rules: the best seating that keeps them, and what they cost.

Boxes kept together are an exact coarsening, so the bound and the solver of the free question prove
the coarse one. Named domains and counted groups are no coarsening: ``rules_fill.py`` finds seatings
that keep them, and a small model proves what is left. Every bound of the free question stays valid.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf, prod
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InfeasibleError, PlannerError, SolverError
from planner.place.answer import Answer, Proof, RulePrice
from planner.place.question import Kind, Question, coarsen, cut_bytes, refine_home
from planner.place.rules_bound import Counted, boxes_of
from planner.place.rules_counted import priced
from planner.place.rules_fill import (
    candidates,
    keeps,
    keeps_on_boxes,
    narrowed,
    open_domains_of,
    solved_on,
)
from planner.place.rules_mend import mended
from planner.place.rules_slab_bound import slab_bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.rules_bound import BoundRules

_MET = 1e-9
_SOLVER_MET = 1e-6
_EXACT_SEATS = 100
_PLAIN_SHARE = 0.3  # of the time limit, for the boxes alone where there are names and counts
_MODEL_SEATS = 900  # boxes x domains up to which the model of ``rules_model.py`` is built


def price_of(rules: BoundRules, ruled: Answer, free: Answer) -> RulePrice:
    """Return the price of *rules*: R - F, with R and F each between its bound and its cut.

    A seating that keeps the rules is a free one as well, so the free cut is at most the ruled.
    """
    free_bytes = min(free.objective_bytes, ruled.objective_bytes)
    closed = free.proof is not Proof.INCUMBENT and ruled.proof is not Proof.INCUMBENT
    most = max(0.0, ruled.objective_bytes - min(free.lower_bound_bytes, free_bytes))
    least = max(0.0, ruled.lower_bound_bytes - free_bytes)
    if closed:
        least = most = ruled.objective_bytes - free_bytes
    return RulePrice(
        rules=tuple(rule.text for rule in rules.rules),
        free_bytes=free_bytes,
        free_bound_bytes=min(free.lower_bound_bytes, free_bytes),
        free_proof=free.proof,
        least_bytes=least,
        most_bytes=most,
    )


def solve_ruled(
    question: Question,
    rules: BoundRules,
    free: Answer,
    *,
    time_limit_s: float = 20.0,
    seed: int = 0,
) -> Answer:
    """Return the best seating of *question* that keeps *rules*, its bound and its proof.

    Args:
        question: the grid of ranks and the placed tier's domains.
        rules: tied to them by ``bound_rules``.
        free: the answer without rules.
        time_limit_s: seconds for the solvers [s].
        seed: of everything random.

    Raises:
        InfeasibleError: proved that no seating keeps the rules.
        SolverError: none was found, and none proved impossible.
    """
    home = np.array(free.home)
    if keeps(question, rules, home) and (
        cut_bytes(question, home) <= free.objective_bytes * (1 + _MET)
    ):
        return free
    if _misprices(question, rules.axes):
        unboxed = _unboxed(question, rules)
        return solve_ruled(question, unboxed, free, time_limit_s=time_limit_s, seed=seed)
    ends_s = monotonic() + time_limit_s
    tile = tuple(n if i in rules.axes else 1 for i, n in enumerate(question.sizes))
    coarse = coarsen(question, tile, rules.capacities)
    open_domains = open_domains_of(rules)
    simple = not _names(rules, open_domains) and not rules.counted
    if rules.axes or len(open_domains) < len(coarse.capacities):
        part_s = time_limit_s if simple else time_limit_s * _PLAIN_SHARE
        plain = solved_on(narrowed(coarse, open_domains), open_domains, part_s, seed)
    else:
        plain = free
    if simple:
        bound = max(plain.lower_bound_bytes, free.lower_bound_bytes)
        return _refined(question, tile, plain, bound)
    bound = max(
        plain.lower_bound_bytes,
        free.lower_bound_bytes,
        slab_bound(coarse, rules, max(0.0, ends_s - monotonic()) * _PLAIN_SHARE),
    )
    known = [free, plain]
    for found in priced(
        narrowed(coarse, open_domains), rules, monotonic() + (ends_s - monotonic()) / 2
    ):
        bound = max(bound, found.lower_bound_bytes)
        known.append(
            replace(
                plain,
                home=tuple(open_domains[found.home].tolist()),
                method="the best at a price on the groups' domains",
            )
        )
    best = _best_kept(question, coarse, rules, tile, known, ends_s, seed)
    return _proved(question, coarse, rules, tile, best, bound, ends_s)


def _misprices(question: Question, axes: Sequence[int]) -> bool:
    """Return whether boxes of whole *axes* price a chain too low.

    One along several axes, innermost first, whose inner steps the boxes leave apart: each of the
    outer steps that they hold is then taken once more for every box.
    """
    for charge in question.charges:
        live = [i for i in charge.axes if question.sizes[i] > 1]
        inside = [i for i in live if i in axes]
        if charge.kind is Kind.CHAIN and inside != live[: len(inside)]:
            return True
    return False


def _unboxed(question: Question, rules: BoundRules) -> BoundRules:
    """Return *rules* on ranks: a box is a group that touches one domain."""
    volume = prod(question.sizes[i] for i in rules.axes)
    allowed = rules.allowed
    if allowed is not None:
        members = boxes_of(question.sizes, rules.axes)
        spread = np.empty((question.cells, allowed.shape[1]), bool)
        spread[members] = allowed[:, None, :]
        allowed = spread
    said = " and ".join(rule.text for rule in rules.rules)
    return replace(
        rules,
        axes=(),
        capacities=tuple(held * volume for held in rules.capacities),
        allowed=allowed,
        counted=(*rules.counted, Counted(axes=rules.axes, most=1, rule=said)),
    )


def _names(rules: BoundRules, open_domains: NDArray[np.int64]) -> bool:
    """Return whether some box may not sit in some open domain."""
    return rules.allowed is not None and not bool(rules.allowed[:, open_domains].all())


def _refined(question: Question, tile: Sequence[int], coarse: Answer, bound: float) -> Answer:
    """Return the answer on boxes as one on ranks, priced again there."""
    home = refine_home(question, tile, np.array(coarse.home))
    cut, proof = cut_bytes(question, home), coarse.proof
    if abs(cut - coarse.objective_bytes) > _SOLVER_MET * cut:
        raise PlannerError(
            f"boxes that cross {coarse.objective_bytes:.0f} bytes are ranks that cross {cut:.0f}: "
            "this is a fault of the planner, and the placement is withheld"
        )
    return Answer(
        home=tuple(home.tolist()),
        objective_bytes=cut,
        lower_bound_bytes=min(bound, cut) if proof is Proof.INCUMBENT else cut,
        proof=proof,
        method=coarse.method if prod(tile) == 1 else f"{coarse.method}, groups kept whole",
    )


def _best_kept(
    question: Question,
    coarse: Question,
    rules: BoundRules,
    tile: Sequence[int],
    known: Sequence[Answer],
    ends_s: float,
    seed: int,
) -> Answer | None:
    """Return the cheapest seating found that keeps the rules, on boxes; None if none was."""
    best, least, how = None, inf, ""
    for home, method in candidates(question, coarse, rules, known, ends_s, seed):
        if not keeps_on_boxes(question, rules, tile, home):
            continue
        cut = cut_bytes(coarse, home)
        if cut < least * (1 - _MET):
            best, least, how = home, cut, method
    if best is None:
        return None
    if coarse.cells * len(coarse.capacities) > _EXACT_SEATS:  # the model does without a start
        better = mended(question, coarse, rules, tile, best, seed)
        if (cut := cut_bytes(coarse, better)) < least * (1 - _MET):
            best, least, how = better, cut, f"{how}, then exchanges"
    return Answer(
        home=tuple(best.tolist()), objective_bytes=least, lower_bound_bytes=0.0,
        proof=Proof.INCUMBENT, method=how,
    )  # fmt: skip


def _proved(
    question: Question,
    coarse: Question,
    rules: BoundRules,
    tile: Sequence[int],
    best: Answer | None,
    bound: float,
    ends_s: float,
) -> Answer:
    """Return the answer with what can be proved of it, by the bound or by the small model."""
    cut = inf if best is None else best.objective_bytes
    if best is not None and cut - bound <= _MET * max(cut, 1e-300):
        return _refined(question, tile, replace(best, proof=Proof.BOUND), bound)
    if coarse.cells * len(coarse.capacities) <= _MODEL_SEATS:
        return _proved_by_model(question, coarse, rules, tile, best, bound, ends_s)
    return _found(question, rules, tile, best, bound)


def _proved_by_model(
    question: Question,
    coarse: Question,
    rules: BoundRules,
    tile: Sequence[int],
    best: Answer | None,
    bound: float,
    ends_s: float,
) -> Answer:
    from planner.place.rules_model import solve_ruled_model  # noqa: PLC0415 - imports a solver

    cut = inf if best is None else best.objective_bytes
    unit = max((cut if best is not None else max(bound, 1.0)) / 1000.0, 1e-300)
    allowed = rules.allowed
    if allowed is None:
        allowed = np.ones((coarse.cells, len(coarse.capacities)), bool)
    solved = solve_ruled_model(
        coarse, allowed, rules.counted, known_bytes=min(bound, cut), unit_bytes=unit,
        time_limit_s=max(1.0, ends_s - monotonic()),
    )  # fmt: skip
    if solved.unseated:
        volume = prod(tile)
        raise InfeasibleError(
            f"{_said(rules)} cannot be kept: {solved.unseated * volume} ranks at least are left "
            f"without a seat on the {sum(question.capacities)} usable GPUs, whatever the seating "
            "(proved by the solver)"
        )
    if solved.home is not None and keeps_on_boxes(question, rules, tile, solved.home):
        price = cut_bytes(coarse, solved.home)
        if price < cut * (1 - _MET):
            cut = price
            best = Answer(
                home=tuple(solved.home.tolist()), objective_bytes=price, lower_bound_bytes=0.0,
                proof=Proof.INCUMBENT, method="solver on the ranks that the rules are about",
            )  # fmt: skip
    bound = max(bound, solved.lower_bound_bytes)
    if best is not None and solved.closed and cut - bound <= _SOLVER_MET * max(cut, 1e-300):
        best = replace(best, proof=Proof.SOLVER)
    return _found(question, rules, tile, best, bound)


def _found(
    question: Question, rules: BoundRules, tile: Sequence[int], best: Answer | None, bound: float
) -> Answer:
    if best is None:
        raise SolverError(
            f"no seating was found that keeps {_said(rules)}, and none is proved impossible: "
            "a larger --time-limit, or fewer rules"
        )
    return _refined(question, tile, best, bound)


def _said(rules: BoundRules) -> str:
    texts = [repr(rule.text) for rule in rules.rules]
    return f"rule{'s' if len(texts) > 1 else ''} {' and '.join(texts)}"
