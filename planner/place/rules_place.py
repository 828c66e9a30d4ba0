"""Rules as text, a layout and a cluster, to a placement that keeps them, and their price."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InputError, PlannerError
from planner.layout import groups_along
from planner.place.answer import Answer, Proof, RulePrice, SeatedDomain
from planner.place.borders import tier_cuts
from planner.place.expand import seats
from planner.place.question import ask
from planner.place.rules import MOST_RULES, Rule, check_rules, parse_rules
from planner.place.rules_bound import bound_rules
from planner.place.rules_fill import keeps
from planner.place.rules_seats import ruled_seats
from planner.place.rules_solve import price_of, solve_ruled
from planner.place.tiers import TierBound, seat_tiers
from planner.place.tree import tree_of

if TYPE_CHECKING:
    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.place.answer import Placement, TierCut
    from planner.place.check import CheckedCut
    from planner.place.question import Question
    from planner.place.rules_bound import BoundRules
    from planner.traffic import Family

_CHECK_SHARE = 1e-9
_TIERS_S = 2.0  # seconds that the tiers besides the asked one may take
AMONG_RULED = "keeping the rules"
"""``TierCut.among`` of a tier whose bound holds for the placements that keep the rules."""


def read_rules(texts: Sequence[str], layout: Layout, fabric: Fabric, tier: str) -> BoundRules:
    """Return the rules of *texts*, tied to a layout and a cluster.

    Raises:
        InputError: a text that is no rule, or names what there is not; every fault.
        InfeasibleError: no seating can keep them, by arithmetic.
    """
    faults: list[str] = []
    rules: list[Rule] = []
    for text in dict.fromkeys(texts):
        try:
            rules += check_rules(parse_rules([text]), layout, fabric, tier)
        except InputError as error:
            faults += error.faults
    if len(texts) > MOST_RULES:
        faults.append(f"{len(texts)} rules: expected {MOST_RULES} at most")
    if faults:
        raise InputError(*faults)
    return bound_rules(rules, layout, fabric, tier)


def under_rules(
    placement: Placement,
    rules: BoundRules,
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    *,
    judge: Callable[[Sequence[int]], Sequence[CheckedCut]],
    time_limit_s: float,
) -> Placement:
    """Return the best placement that keeps *rules*, with what they cost against *placement*.

    Args:
        placement: the one without rules.
        rules: tied to the layout and the cluster.
        layout: whose ranks are seated.
        families: the traffic of one step.
        fabric: the cluster.
        judge: GPUs of the ranks to the cut of every tier, by the independent checker.
        time_limit_s: seconds for the solvers [s].

    Raises:
        InfeasibleError: proved that no seating keeps the rules.
        SolverError: none was found, and none proved impossible.
        PlannerError: the checker disagrees, or a rule is broken: nothing is returned then.
    """
    tier = placement.tier
    free_home = fabric.domain_index(tier)[np.asarray(placement.rank_to_gpu)]
    free = Answer(
        home=tuple(free_home.tolist()),
        objective_bytes=placement.objective_bytes,
        lower_bound_bytes=placement.lower_bound_bytes,
        proof=placement.proof,
        method=placement.method,
        interrupted=placement.interrupted,
    )
    question = ask(layout, families, fabric.capacities(tier))
    if keeps_seats(question, rules, placement.rank_to_gpu, free_home):
        return replace(placement, rule_price=_price(placement, rules, free, free))
    answer = solve_ruled(question, rules, free, time_limit_s=time_limit_s, seed=placement.seed)
    rank_to_gpu, bounds = _seated(question, rules, answer, layout, fabric, tier)
    if not keeps_seats(question, rules, rank_to_gpu, np.array(answer.home)):
        raise PlannerError("a rule is broken: this is a fault of the planner, withheld")
    return _replaced(
        placement, answer, rules, free, rank_to_gpu, bounds, layout, families, fabric,
        judge(rank_to_gpu),
    )  # fmt: skip


def keeps_seats(
    question: Question, rules: BoundRules, rank_to_gpu: Sequence[int], home: np.ndarray
) -> bool:
    """Return whether a placement keeps *rules* at every tier they name.

    Args:
        question: the grid of ranks.
        rules: what is to be kept.
        rank_to_gpu: GPU of each rank.
        home: domain of the placed tier of each rank.
    """
    for boxes in rules.boxes:
        homes = boxes.index[np.asarray(rank_to_gpu)][groups_along(question.sizes, boxes.axes)]
        if (homes != homes[:, :1]).any():
            return False
    return keeps(question, rules, home)


def _seated(
    question: Question,
    rules: BoundRules,
    answer: Answer,
    layout: Layout,
    fabric: Fabric,
    tier: str,
) -> tuple[tuple[int, ...], tuple[TierBound, ...]]:
    """Return the GPUs, the inner tiers chosen well where the rules leave it open."""
    tree, home = tree_of(fabric), np.array(answer.home)
    asked = tree.names.index(tier)
    bound = TierBound(
        cut_bytes=answer.objective_bytes,
        lower_bound_bytes=answer.lower_bound_bytes,
        proof=answer.proof,
        among=AMONG_RULED,
    )
    nothing = TierBound(cut_bytes=0.0, lower_bound_bytes=0.0, proof=Proof.INCUMBENT, among="all")
    bounds = tuple(bound if t == asked else nothing for t in range(len(tree.names)))
    if asked > 0:
        grown = seat_tiers(
            question, tree, asked, home, asked_bound=bound, fixed=True,
            ends_s=-inf if answer.interrupted else monotonic() + _TIERS_S,
        )  # fmt: skip
        rank_to_gpu = seats(grown.home, fabric, tree.names[0])
        if keeps_seats(question, rules, rank_to_gpu, home):
            return rank_to_gpu, bounds
    return ruled_seats(home, rules, layout, fabric, tier), bounds


def _replaced(
    placement: Placement,
    answer: Answer,
    rules: BoundRules,
    free: Answer,
    rank_to_gpu: tuple[int, ...],
    bounds: Sequence[TierBound],
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    checked: Sequence[CheckedCut],
) -> Placement:
    tier = placement.tier
    asked = [t.name for t in fabric.tiers].index(tier)
    counted = checked[asked].total_bytes
    if abs(counted - answer.objective_bytes) > _CHECK_SHARE * max(counted, answer.objective_bytes):
        raise PlannerError(
            f"the ruled placement's cut of {answer.objective_bytes:.0f} bytes is {counted:.0f} by "
            "the independent checker: this is a fault of the planner, and it is withheld"
        )
    home = fabric.domain_index(tier)[np.asarray(rank_to_gpu)]
    return replace(
        placement,
        rank_to_gpu=rank_to_gpu,
        objective_bytes=answer.objective_bytes,
        lower_bound_bytes=answer.lower_bound_bytes,
        proof=answer.proof,
        method=answer.method,
        checked_bytes=counted,
        by_family={
            family.name: crossed
            for family, crossed in zip(families, checked[asked].by_entry, strict=True)
        },
        domains=tuple(
            SeatedDomain(
                name=domain.name, tier=tier, capacity=len(domain.gpus),
                ranks=tuple(np.flatnonzero(home == s).tolist()),
            )
            for s, domain in enumerate(fabric.tier(tier).domains)
        ),
        tiers=tuple(
            _judged(cut, bound, count, old)
            for cut, bound, count, old in zip(
                tier_cuts(layout, families, fabric, rank_to_gpu), bounds, checked,
                placement.tiers, strict=True,
            )
        ),
        rule_price=_price(placement, rules, answer, free),
        interrupted=placement.interrupted or answer.interrupted,
    )  # fmt: skip


def _price(placement: Placement, rules: BoundRules, ruled: Answer, free: Answer) -> RulePrice:
    return replace(price_of(rules, ruled, free), free_rank_to_gpu=tuple(placement.rank_to_gpu))


def _judged(cut: TierCut, bound: TierBound, checked: CheckedCut, free: TierCut) -> TierCut:
    """Return a tier's cut with its bound: of all placements, unless the rules' own is known."""
    if bound.among == AMONG_RULED:
        least, proof, among = bound.lower_bound_bytes, bound.proof, AMONG_RULED
    else:
        least = free.lower_bound_bytes if free.among == "all" else 0.0
        met = cut.cut_bytes - least <= _CHECK_SHARE * cut.cut_bytes
        proof, among = (Proof.BOUND if met else Proof.INCUMBENT), "all"
        least = cut.cut_bytes if met else min(least, cut.cut_bytes)
    return replace(
        cut, lower_bound_bytes=least, proof=proof, among=among, checked_bytes=checked.total_bytes
    )
