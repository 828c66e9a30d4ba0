"""Stage by stage: no seating cuts less than the choice of patterns; racks of 72 are proved."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest

from planner.place import Proof
from planner.place.question import Charge, Kind, Question
from planner.place.solve import solve_question
from planner.place.stage_choice import choice_of
from planner.place.stage_prices import Prices, priced_at, stage_prices
from planner.place.stage_seats import seated
from planner.place.stages import patterns_of, staged
from planner.place.whole_numbers import Effort
from tests.oracles import brute_force_cut
from tests.small_questions import small_pipelines

MANY = Effort(listed=30_000, nodes=20_000)
ROUNDING = 1e-9
SOLVER = 2e-6


def _undercut(seeds: range) -> list[str]:
    found = []
    for question in small_pipelines(seeds):
        best = brute_force_cut(question)
        of = staged(question)
        if of is None or not best:
            continue
        any_home = np.repeat(np.arange(len(question.capacities)), question.capacities)
        priced = stage_prices(of, any_home[: question.cells], inf)
        choice = choice_of(of, priced, 1.5 * best, 60.0, MANY)
        if priced.bound_bytes > best * (1 + ROUNDING) or choice.bound_bytes > best * (1 + SOLVER):
            found.append(f"{priced.bound_bytes}, {choice.bound_bytes} > best {best}: {question}")
        if choice.held is not None:
            for home in seated(of, choice.held):
                assert (patterns_of(of, home) == choice.held).all()
    return found


@pytest.mark.parametrize(
    "seeds", [range(20), pytest.param(range(20, 60), marks=pytest.mark.nightly)]
)
def test_no_seating_of_a_small_pipeline_cuts_less_than_the_choice_of_patterns_says(
    seeds: range,
) -> None:
    assert _undercut(seeds) == []


@pytest.mark.parametrize(
    "seeds", [range(20), pytest.param(range(20, 60), marks=pytest.mark.nightly)]
)
def test_a_choice_from_few_patterns_says_no_more_than_what_was_left_out_allows(
    seeds: range,
) -> None:
    """Any prices, as few patterns as leave a choice, a few nodes: never above brute force."""
    shares = 0
    for question in small_pipelines(seeds):
        best, of = brute_force_cut(question), staged(question)
        if of is None or not best:
            continue
        random = np.random.default_rng(question.cells)
        for scale in (0.1, 0.4):
            drawn = Prices(
                cell_bytes=random.normal(scale=scale * of.pays_bytes.max(), size=of.stages),
                piece_bytes=np.zeros((of.stages, len(of.pieces[0]))),
            )
            for listed, above in ((6, 2.0), (25, 1.0)):
                few = Effort(listed=listed, nodes=50)
                choice = choice_of(of, priced_at(of, drawn), above * best, 60.0, few)
                assert choice.bound_bytes <= best * (1 + SOLVER), question
                shares += choice.bound_bytes > 0 and not choice.all
    assert shares > len(seeds) / 6  # else nothing was left out


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(6))
def test_no_seating_of_many_more_pipelines_cuts_less(part: int) -> None:
    assert _undercut(range(1000 + 300 * part, 1300 + 300 * part)) == []


def test_racks_of_nine_blocks_are_proved_where_slabs_leave_two_per_cent() -> None:
    """16 blocks in each of 8 stages, racks of 9: 32 parts of stages, 67 runs of pipelines.

    Counted by hand from its patterns, e.g. (5, 4) four times and (3, 3, 3) three times.
    """
    part_bytes, hop_bytes = 304.39, 137.44
    question = Question(
        sizes=(16, 8),
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=part_bytes),
            Charge(axes=(1,), kind=Kind.CHAIN, weight_bytes=hop_bytes),
        ),
        capacities=(9,) * 14 + (2,),
    )
    answer = solve_question(question, time_limit_s=60.0)
    assert answer.proof is Proof.BOUND
    assert answer.objective_bytes == pytest.approx((32 - 8) * part_bytes + (67 - 16) * hop_bytes)


def test_two_domains_with_half_a_ring_each_do_not_both_keep_it_and_hold_it_whole() -> None:
    """Rings of 2 in three stages, by brute force; patterns alone would promise less."""
    question = Question(
        sizes=(2, 2, 3),
        charges=(
            Charge(axes=(0,), kind=Kind.RING, weight_bytes=9.0),
            Charge(axes=(2,), kind=Kind.CHAIN, weight_bytes=1.0),
        ),
        capacities=(5, 5, 2),
    )
    answer = solve_question(question, time_limit_s=60.0)
    assert answer.proof is not Proof.INCUMBENT
    assert answer.objective_bytes == pytest.approx(brute_force_cut(question))
