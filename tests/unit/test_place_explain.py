"""Why families cross, and the placements that cross something else."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from planner.errors import SolverError
from planner.fabric import Fabric
from planner.layout import Layout
from planner.place import Placement, Proof, place
from planner.place.alternatives import alternatives
from planner.place.answer import Answer
from planner.place.explain import Reason, explain, plan_answer
from planner.place.question import Question, ask
from planner.place.rules_bound import BoundRules
from planner.traffic import Family
from tests.oracles import slow_cut_bytes
from tests.unit.test_place_rules import gathers
from topologies.fabric_catalogue import generic_cluster

LAYOUT = Layout(tp=2, dp=4, pp=4, global_batch=16)
FAMILIES = gathers(LAYOUT, tp=9.0, dp=3.0, pp=1.0)
CLUSTER = generic_cluster(8, 32)


@pytest.fixture(scope="module")
def plan() -> Placement:
    return place(LAYOUT, FAMILIES, CLUSTER)


def reason(
    digit: str, placement: Placement, layout: Layout, families: tuple[Family, ...], fabric: Fabric
) -> Reason:
    found = explain(placement, layout, families, fabric)
    return next(entry for entry in found.reasons if entry.digit == digit)


def test_a_group_larger_than_a_domain_is_told_so() -> None:
    layout = Layout(tp=16, dp=2, global_batch=2)
    families = gathers(layout, tp=1.0, dp=1.0)
    fabric = generic_cluster(8, 32)
    placement = place(layout, families, fabric)

    found = reason("tp", placement, layout, families, fabric)

    assert found.impossible == "TP 16 > 8 GPUs of a supernode: no group can stay inside"
    assert found.kept_whole is None


def test_a_capacity_that_does_not_divide_is_told_so() -> None:
    layout = Layout(tp=4, dp=3, global_batch=3)
    families = gathers(layout, tp=1.0, dp=1.0)
    fabric = generic_cluster(6, 12)
    placement = place(layout, families, fabric)

    found = reason("tp", placement, layout, families, fabric)

    assert found.impossible == (
        "2 supernodes take 2 whole groups of TP 4, 1 fewer than the 3 there are: 6 = 1 x 4 + 2"
    )


def test_keeping_a_degree_whole_is_priced_by_hand(plan: Placement) -> None:
    # Supernodes of 8 = tp 2 x dp 4 x pp 1: 8 PP groups of 4 in four supernodes, 3 bytes each.
    # PP whole: tp 2 x dp 1 x pp 4: 8 DP groups of 4 in four supernodes, 9 bytes each.
    found = explain(plan, LAYOUT, FAMILIES, CLUSTER)

    by_digit = {entry.digit: entry for entry in found.reasons}
    assert plan.objective_bytes == 24.0
    assert found.tile == {"tp": 2, "dp": 4, "pp": 1}
    assert (by_digit["tp"].split_groups, by_digit["dp"].split_groups) == (0, 0)
    pipeline = by_digit["pp"]
    assert (pipeline.split_groups, pipeline.cut_bytes) == (8, 24.0)
    assert pipeline.kept_whole is not None
    assert pipeline.kept_whole.cut_bytes == 72.0
    assert pipeline.kept_whole.least_bytes == pipeline.kept_whole.most_bytes == 48.0
    assert pipeline.kept_whole.more_by_digit_bytes == {"dp": 72.0}
    assert pipeline.kept_whole.tile == {"tp": 2, "dp": 1, "pp": 4}
    assert pipeline.kept_whole.proof is Proof.BOUND


def test_what_only_breaking_the_plans_rule_would_keep_whole_is_not_offered() -> None:
    # Whole pipelines fill a supernode: 2 x 4 = 8. Whole DP besides would take 32 of its 8 GPUs.
    ruled = place(LAYOUT, FAMILIES, CLUSTER, rules=["pp within supernode"])

    found = reason("dp", ruled, LAYOUT, FAMILIES, CLUSTER)

    assert ruled.objective_bytes == 72.0
    assert found.cut_bytes == 72.0
    assert found.kept_whole is None
    assert found.impossible == "No placement that keeps 'pp within supernode' keeps it whole"


def test_a_plan_under_rules_is_explained_against_the_least_with_them() -> None:
    # Whole pipelines: DP in four supernodes, 8 x 3 x 3 = 72; without, PP in four, 8 x 3 x 1 = 24.
    ruled = place(LAYOUT, FAMILIES, CLUSTER, rules=["tp within supernode"])

    found = reason("pp", ruled, LAYOUT, FAMILIES, CLUSTER)

    assert ruled.objective_bytes == 24.0
    assert found.kept_whole is not None
    assert found.kept_whole.cut_bytes == 72.0
    assert found.kept_whole.least_bytes == found.kept_whole.most_bytes == 48.0


@pytest.mark.parametrize("objective", ["bottleneck", "total"])
def test_a_plan_is_explained_by_what_is_proved_of_its_bytes(
    plan: Placement, objective: str
) -> None:
    home = CLUSTER.domain_index("supernode")[np.array(plan.rank_to_gpu)]
    tiers = tuple(replace(cut, proof=Proof.SOLVER) for cut in plan.tiers)
    placed = replace(plan, objective=objective, proof=Proof.SOLVER, tiers=tiers)
    if objective == "bottleneck":
        placed = replace(placed, proof=Proof.INCUMBENT, objective_s=2.0, lower_bound_s=1.0)

    answer = plan_answer(placed, home)

    assert answer.proof is Proof.SOLVER
    assert answer.lower_bound_bytes == answer.objective_bytes == 24.0


def test_second_answers_start_from_the_plans_own_bound(
    plan: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: list[Answer] = []

    def spy(question: Question, rules: BoundRules, free: Answer, **_: object) -> Answer:
        given.append(free)
        return free

    monkeypatch.setattr("planner.place.alternatives.solve_ruled_within", spy)
    alternatives(plan, LAYOUT, FAMILIES, CLUSTER, count=1)

    assert given
    assert {(one.lower_bound_bytes, one.proof) for one in given} == {(24.0, plan.proof)}


def test_a_solver_that_finds_nothing_in_time_is_told_so(
    plan: Placement, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(*_: object, **__: object) -> Answer:
        raise SolverError("no seating was found within 1 s")

    monkeypatch.setattr("planner.place.explain.solve_ruled_within", late)

    found = reason("pp", plan, LAYOUT, FAMILIES, CLUSTER)

    assert found.kept_whole is None
    assert found.impossible.endswith("was found in the time, and none is proved impossible")


def test_second_answers_differ_in_what_crosses_and_are_in_order(plan: Placement) -> None:
    others = alternatives(plan, LAYOUT, FAMILIES, CLUSTER, count=4)

    crossed = [plan.by_family, *(other.by_family for other in others)]
    assert len(others) == 4
    assert len({tuple(sorted(by.items())) for by in crossed}) == 5
    cuts = [plan.objective_bytes, *(other.cut_bytes for other in others)]
    assert all(a <= b for a, b in pairwise(cuts))


def test_second_answers_cross_what_they_say(plan: Placement) -> None:
    question = ask(LAYOUT, FAMILIES, CLUSTER.capacities("supernode"))
    index = CLUSTER.domain_index("supernode")

    for other in alternatives(plan, LAYOUT, FAMILIES, CLUSTER, count=6):
        home = index[np.array(other.rank_to_gpu)]
        assert len(set(other.rank_to_gpu)) == LAYOUT.gpus
        assert slow_cut_bytes(question, home.tolist()) == other.cut_bytes
        assert sum(other.by_family.values()) == pytest.approx(other.cut_bytes)


def test_the_second_answer_is_the_best_with_another_degree_inside(plan: Placement) -> None:
    # tp 2 x dp 2 x pp 2: DP in two supernodes 8 x 3, PP in two 8 x 1: 32 in all.
    best, *_ = alternatives(plan, LAYOUT, FAMILIES, CLUSTER, count=1)

    assert best.cut_bytes == 32.0
    assert best.by_digit_bytes == {"tp": 0.0, "dp": 24.0, "pp": 8.0}


def test_second_answers_keep_the_plans_rules() -> None:
    ruled = place(LAYOUT, FAMILIES, CLUSTER, rules=["pp within supernode"])

    others = alternatives(ruled, LAYOUT, FAMILIES, CLUSTER, count=3)

    assert others
    assert all(other.by_digit_bytes["pp"] == 0.0 for other in others)
