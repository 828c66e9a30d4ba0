"""Sheets told apart: no seating cuts less than a choice that names its parts' sheets says."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import inf
from time import monotonic

import numpy as np
import pytest

from planner.place.bound import rebate_bytes
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.sheet_choice import part_choice
from planner.place.sheet_cuttings import Cuttings
from planner.place.sheet_names import held_bytes, named_choice
from planner.place.sheet_parts import Sheeted, sheeted
from planner.place.sheet_prices import SheetPrices, sheet_prices
from planner.place.sheet_seats import seated_parts
from planner.place.whole_numbers import Effort
from tests.oracles import brute_force_cut
from tests.small_questions import Drawn

FEW = Effort(listed=600, nodes=100, solve_s=2.0)
ROUNDING = 1e-9
SOLVER = 2e-6
GRIDS = ((2, 2, 3), (4, 3), (2, 3, 2), (3, 2, 2), (2, 2, 2), (2, 5), (3, 4), (2, 6))
KINDS = (Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.CHAIN, Kind.CHAIN, Kind.ENDS)
DRAWN = Drawn(first_seed=1_240_000, grids=GRIDS, kinds=KINDS, spare_share=0.4)


def _sheets(question: Question) -> Iterator[Sheeted]:
    for count in range(1, len(question.sizes)):
        for axes in combinations(range(len(question.sizes)), count):
            yield sheeted(question, axes)


def _undercut(seeds: range) -> list[str]:
    found: list[str] = []
    for question in DRAWN.questions(seeds):
        best = brute_force_cut(question)
        random = np.random.default_rng(question.cells)
        for of in _sheets(question):
            scale = float(of.pays_bytes[0].max())
            drawn = np.append(0.0, random.normal(scale=scale / 4, size=of.largest))
            for prices in (sheet_prices(of, inf), SheetPrices(of=of, price_bytes=drawn)):
                limit = 1.2 * best + 1e-3
                named = named_choice(prices, Cuttings(of), limit, monotonic() + 60.0, FEW)
                if named.bound_bytes > best * (1 + SOLVER) + SOLVER:
                    found.append(f"{named.bound_bytes} > {best}: {of.axes} {question}")
                if named.cuttings:
                    home = seated_parts(of, named)
                    held = np.bincount(home, minlength=len(question.capacities))
                    assert (held <= question.capacities).all()
    return found


def test_no_seating_of_a_small_question_cuts_less_than_its_named_sheets_say() -> None:
    assert _undercut(range(6)) == []


def test_names_raise_the_bound_of_some_questions_and_lower_that_of_none() -> None:
    """The limit is the optimum, so that a choice may say all there is to say."""
    raised = 0
    for question in DRAWN.questions(range(200, 212)):
        best = brute_force_cut(question)
        for of in _sheets(question) if best else ():
            prices, ends_s = sheet_prices(of, inf), monotonic() + 60.0
            alike = part_choice(prices, Cuttings(of), best, ends_s, FEW).bound_bytes
            named = named_choice(prices, Cuttings(of), best, ends_s, FEW)
            if named.bound_bytes:  # where nothing runs across sheets nothing is chosen
                assert named.bound_bytes >= alike - SOLVER * best - SOLVER, question
            raised += named.bound_bytes > alike + 10 * SOLVER * best
    assert raised > 0


@pytest.mark.nightly
def test_no_seating_of_many_small_questions_cuts_less_than_their_named_sheets_say() -> None:
    assert _undercut(range(6, 120)) == []


def test_what_all_domains_pay_less_the_rebate_is_the_cut() -> None:
    """Every kind of family, seatings at random: each domain for the cells that it holds."""
    for question in DRAWN.questions(range(300)):
        random = np.random.default_rng(question.cells)
        seats = np.repeat(np.arange(len(question.capacities)), question.capacities)
        for _ in range(3):
            home = random.permutation(seats)[: question.cells]
            domains = [tuple(np.flatnonzero(home == s).tolist()) for s in set(home.tolist())]
            paid = sum(held_bytes(question, held) for held in domains)
            expected = cut_bytes(question, home)
            assert paid - rebate_bytes(question) == pytest.approx(expected, abs=1e-9), question


def test_what_is_left_of_one_replica_is_no_neighbour_of_what_is_left_of_another() -> None:
    """Two replicas of two stages of 14 cells, in six domains of nine and one of two, by hand.

    Stages are families of pairs: two are best cut into 9 + 5 and two into 9 + 4 + 1, which is
    100 x (2 x 90 + 2 x 98). Two domains hold 5 + 4 of one replica's stages, and so keep 4 + 4 of
    the 28 hops inside; the ones in the domain of two are of different replicas, and keep none.
    Where sheets are not told apart they might keep one.
    """
    question = Question(
        sizes=(14, 2, 2),
        charges=(
            Charge(axes=(0,), kind=Kind.PAIRS, weight_bytes=100.0),
            Charge(axes=(2,), kind=Kind.CHAIN, weight_bytes=1.0),
        ),
        capacities=(9, 9, 9, 9, 9, 9, 2),
    )
    of = sheeted(question, (0,))
    prices, limit = sheet_prices(of, inf), 37_700.0
    alike = part_choice(prices, Cuttings(of), limit, monotonic() + 60.0, FEW)
    named = named_choice(prices, Cuttings(of), limit, monotonic() + 60.0, FEW)
    assert alike.bound_bytes == pytest.approx(37_619.0, abs=0.1)
    assert named.bound_bytes == pytest.approx(37_620.0, abs=0.1)
    assert cut_bytes(question, seated_parts(of, named)) == pytest.approx(37_620.0)


def test_a_short_list_of_which_names_leave_nothing_is_a_bound() -> None:
    """Six sheets of three cells at poor prices; every domain of six holds two of them, by hand.

    Three groups of six with two cells in each of three domains: 3 x 3 x 3.2 copies.
    """
    copies = (0.0, 2.5, 3.2, 2.85, 2.0, 1.0, 0.0)
    question = Question(
        sizes=(3, 6),
        charges=(
            Charge(axes=(0,), kind=Kind.RING, weight_bytes=187.256),
            Charge(axes=(1,), kind=Kind.COPIES, weight_bytes=9.099, units=copies),
        ),
        capacities=(6, 6, 6),
    )
    least = 9 * 3.2 * 9.099
    poor = np.array([0.0, -98.64882540219645, 33.69372273284661, -20.74073908187008])
    prices = SheetPrices(of=sheeted(question, (0,), ranks=2), price_bytes=poor)
    few = Effort(listed=10, nodes=100, solve_s=2.0)

    named = named_choice(prices, Cuttings(prices.of), 2 * least, monotonic() + 60.0, few)

    assert prices.bound_bytes < named.bound_bytes <= least


def test_pairs_that_run_through_two_sheets_know_which_parts_are_of_one_group() -> None:
    """Four sheets of four cells, two and two of one group of pairs, in domains of 6, 6 and 4.

    By hand: one sheet is cut in halves, 100. A domain of six has a sheet and a half. That of the
    first is of the same group, 6 x 2 pairs; that of the second is not, 2 x 6 + 4 x 4; the third
    has a sheet alone, 4 x 4. By their cells alone the second would have 6 x 2.
    """
    question = Question(
        sizes=(4, 2, 2),
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=100.0),
            Charge(axes=(0, 1), kind=Kind.PAIRS, weight_bytes=1.0),
            Charge(axes=(2,), kind=Kind.CHAIN, weight_bytes=1e-3),
        ),
        capacities=(6, 6, 4),
    )
    best = brute_force_cut(question)
    assert 156.0 <= best < 156.1  # some hops cross
    of, limit, ends_s = sheeted(question, (0,)), 1.2 * best, monotonic() + 60.0
    alike = part_choice(sheet_prices(of, inf), Cuttings(of), limit, ends_s, FEW)
    named = named_choice(sheet_prices(of, inf), Cuttings(of), limit, ends_s, FEW)
    assert alike.bound_bytes < 141.0
    assert named.bound_bytes == pytest.approx(best, rel=SOLVER)
