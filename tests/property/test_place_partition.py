"""Prices of parts: no seating whatever cuts less than the bound, and fragments are proved by it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import scipy.optimize

from planner.place.bound import lower_bound
from planner.place.part_flow import Stock, alone_prices
from planner.place.partition import partition_bound
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.solve import solve_question
from planner.place.strips import strip_fillings
from tests.oracles import brute_force_cut, random_small_shape

ROUNDING = 1e-9


def _found(seeds: range) -> Iterator[tuple[Question, float, float]]:
    for seed in seeds:
        shape = random_small_shape(np.random.default_rng(700_000 + seed))
        question = Question(
            sizes=shape["sizes"],
            charges=tuple(
                Charge(axes=a, kind=Kind(k), weight_bytes=w) for a, k, w in shape["charges"]
            ),
            capacities=shape["capacities"],
        )
        best = brute_force_cut(question)
        if best:
            yield question, partition_bound(question, _any_seating(question), 1.5 * best), best


def _any_seating(question: Question) -> np.ndarray:
    return np.repeat(np.arange(len(question.capacities)), question.capacities)[: question.cells]


def _undercut(seeds: range) -> list[str]:
    return [
        f"bound {bound} > best {best}: {question}"
        for question, bound, best in _found(seeds)
        if bound > best * (1 + ROUNDING) + ROUNDING
    ]


def test_no_seating_of_any_small_question_cuts_less_than_its_parts_are_worth() -> None:
    assert _undercut(range(6)) == []


@pytest.mark.nightly
@pytest.mark.parametrize(
    "seeds", [range(6, 15), *(range(s, s + 200) for s in range(250, 1450, 200))]
)
def test_no_seating_of_many_more_questions_cuts_less(seeds: range) -> None:
    assert _undercut(seeds) == []


def test_exchanges_in_fragments_pay_for_both_parts_of_a_group() -> None:
    """Groups of 8 in domains of 6 and 2: by hand, 2 (6 x 2) pairs for each of three groups.

    A domain that holds 6 of 8 looks cheap as long as nobody asks where the other 2 are.
    """
    pairs = Charge(axes=(0,), kind=Kind.PAIRS, weight_bytes=1.0)
    question = Question(sizes=(8, 3), charges=(pairs,), capacities=(6, 6, 6, 6, 2, 2, 2))

    by_hand = 3 * 2 * 6 * 2
    assert lower_bound(question) < by_hand
    bound = partition_bound(question, _any_seating(question), by_hand)
    assert bound == pytest.approx(by_hand)


def test_prices_of_one_family_alone_are_those_of_cutting_stock() -> None:
    """Three groups of 8, each part pays 1, domains of 6 and 2: two parts a group, six in all."""
    costs = np.array([0.0] + [1.0] * 8)
    stock = Stock(sizes=(2, 6), counts=(3, 3), cells=24)

    prices = alone_prices(costs, 3, stock)

    held, cut = _cheapest_cuts(6, 1.0 - prices), _cheapest_cuts(8, prices)
    assert 3 * held[6] + 3 * held[2] + 3 * cut[8] == pytest.approx(6.0)


def test_prices_of_one_family_alone_take_seconds_where_sizes_go_together_badly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two groups of 512 in 18 domains of 57: parts of 8, 16, … pay 1, others 3.

    Two seats are spare, so 16 domains at least hold 57 cells, with a part that pays 3: 50 in all.
    Ctrl-C waits for a linear programme: none may go on for tens of thousands of steps.
    """
    steps, solve = [], scipy.optimize.linprog

    def counted(*args: Any, **options: Any) -> Any:
        solved = solve(*args, **options)
        steps.append(solved.nit)
        return solved

    monkeypatch.setattr(scipy.optimize, "linprog", counted)
    costs = np.array([0.0] + [1.0 if k % 8 == 0 else 3.0 for k in range(1, 513)])

    prices = alone_prices(costs, 2, Stock(sizes=(57,), counts=(18,), cells=1024))

    assert max(steps) <= 5000
    held, cut = _cheapest_cuts(57, costs[1:] - prices), _cheapest_cuts(512, prices)
    domains = min(16 * held[57] + 2 * held[56], 17 * held[57] + held[55])
    assert domains + 2 * cut[512] == pytest.approx(50.0, rel=1e-3)


def _cheapest_cuts(most: int, each: np.ndarray) -> list[float]:
    """Return the least price of parts that sum to 0, 1, … cells, each[k - 1] for a part of k."""
    least = [0.0]
    for cells in range(1, most + 1):
        least.append(min(float(each[k - 1]) + least[cells - k] for k in range(1, cells + 1)))
    return least


def test_strips_find_the_least_cut_of_a_pipeline_in_fragments_of_seven_and_six() -> None:
    """8 x 16 boards in fragments of 7, 6 and 2: three strips of 7+7+6+6+6, one of 6 x 5 + 2.

    By hand, strips of two boards: 67 rows touched less 16, 42 columns touched less 8.
    """
    touch = Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=0.152)
    chain = Charge(axes=(1,), kind=Kind.CHAIN, weight_bytes=0.275)
    question = Question(
        sizes=(8, 16), charges=(touch, chain), capacities=(7,) * 6 + (6,) * 18 + (2,) * 18
    )

    least = min(cut_bytes(question, home) for home in strip_fillings(question))
    answer = solve_question(question, time_limit_s=0)

    assert least == pytest.approx(51 * 0.152 + 34 * 0.275)
    assert answer.objective_bytes == pytest.approx(least)
    assert answer.lower_bound_bytes == pytest.approx(least)


def test_rests_of_exchange_groups_share_the_domains_that_are_left() -> None:
    """Four groups of 64 in 48, 47, 46, 46 and two of 45: rests 16 + 17 and 18 + 18 by hand."""
    pairs = Charge(axes=(0,), kind=Kind.PAIRS, weight_bytes=1.0)
    question = Question(sizes=(64, 4), charges=(pairs,), capacities=(45, 48, 46, 47, 46, 45))

    answer = solve_question(question, time_limit_s=0)

    by_hand = 2 * (48 * 16 + 47 * 17 + 46 * 18 + 46 * 18)
    assert answer.objective_bytes == pytest.approx(by_hand)


def test_strips_are_tried_where_every_seat_is_taken_too() -> None:
    """79 rows of 13 in domains of which one, of 234, is 18 rows: it comes first.

    By hand, four borders cross 13 columns each, and three of them part a row.
    """
    charges = (
        Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=10.0),
        Charge(axes=(1,), kind=Kind.CHAIN, weight_bytes=1.0),
    )
    question = Question(sizes=(13, 79), charges=charges, capacities=(179, 165, 234, 139, 310))

    answer = solve_question(question, time_limit_s=0)

    assert answer.objective_bytes <= 4 * 13 + 3 * 10
