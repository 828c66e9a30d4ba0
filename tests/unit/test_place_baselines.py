"""Baselines: lawful seatings, each as its name says."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest

from planner.place.baselines import (
    baselines,
    best_random,
    greedy,
    in_rank_order,
    metis,
    packed,
    pipelines,
)
from planner.place.question import Charge, Kind, Question, cut_bytes

QUESTIONS = {
    "1024 in 15 x 72": Question(
        sizes=(8, 2, 16, 4), capacities=(72,) * 15,
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=40.0),
            Charge(axes=(1,), kind=Kind.RING, weight_bytes=4.0),
            Charge(axes=(1, 2), kind=Kind.TOUCH, weight_bytes=1.0),
            Charge(axes=(0, 1), kind=Kind.PAIRS, weight_bytes=0.1),
            Charge(axes=(3,), kind=Kind.CHAIN, weight_bytes=0.2),
            Charge(axes=(3,), kind=Kind.ENDS, weight_bytes=0.1),
        ),
    ),
    "no charges": Question(sizes=(4, 4), capacities=(7, 9), charges=()),
    "one domain": Question(
        sizes=(4, 4), capacities=(16,),
        charges=(Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=1.0),),
    ),
    "an empty domain": Question(
        sizes=(3, 4), capacities=(0, 5, 7, 1),
        charges=(Charge(axes=(1,), kind=Kind.PAIRS, weight_bytes=1.0),),
    ),
    "axes of one": Question(
        sizes=(1, 6), capacities=(3, 3),
        charges=(Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=1.0),
                 Charge(axes=(0,), kind=Kind.CHAIN, weight_bytes=1.0)),
    ),
    "8192 in 3 x 3000": Question(
        sizes=(8, 4, 256), capacities=(3000,) * 3,
        charges=(Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=1.0),
                 Charge(axes=(2,), kind=Kind.TOUCH, weight_bytes=0.1)),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_baseline_keeps_to_the_seats_and_seats_every_rank(name: str) -> None:
    question = QUESTIONS[name]

    for label, home in baselines(question, 5):
        held = np.bincount(home, minlength=len(question.capacities))
        assert home.shape == (question.cells,), label
        assert (held <= question.capacities).all(), label


@pytest.mark.parametrize("name", QUESTIONS)
def test_baselines_are_the_same_for_the_same_seed(name: str) -> None:
    twice = [baselines(QUESTIONS[name], 11) for _ in range(2)]

    assert [(n, h.tolist()) for n, h in twice[0]] == [(n, h.tolist()) for n, h in twice[1]]


def test_rank_order_fills_one_domain_after_the_other() -> None:
    assert in_rank_order(QUESTIONS["an empty domain"]).tolist() == [1] * 5 + [2] * 7


def test_greedy_joins_a_rank_to_its_heaviest_group() -> None:
    # columns 0 and 1 of a 2 x 2 grid tie heavily along axis 1: rank order would split both
    heavy_columns = Question(
        sizes=(2, 2), capacities=(2, 2),
        charges=(Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=0.0),
                 Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=9.0)),
    )  # fmt: skip

    home = greedy(heavy_columns)

    # rank 0 opens domain 0; rank 1 shares no paying group with it, and takes the first free seat
    assert home.tolist() == [0, 0, 1, 1]
    assert cut_bytes(heavy_columns, home) == 18.0


def test_greedy_prefers_the_domain_with_the_most_partners_of_an_all_to_all() -> None:
    question = Question(
        sizes=(5,),
        capacities=(1, 4),
        charges=(Charge(axes=(0,), kind=Kind.PAIRS, weight_bytes=1.0),),
    )

    assert greedy(question).tolist() == [0, 1, 1, 1, 1]


def test_more_random_tries_never_cut_more() -> None:
    question = QUESTIONS["1024 in 15 x 72"]

    cuts = [cut_bytes(question, best_random(question, tries, 2)) for tries in (1, 4, 16)]

    assert cuts == sorted(cuts, reverse=True)


@pytest.mark.skipif(find_spec("pymetis") is None, reason="PyMetis is not installed")
def test_metis_finds_the_obvious_halves() -> None:
    blocks = Question(
        sizes=(8, 2), capacities=(8, 8),
        charges=(Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=5.0),
                 Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=0.5)),
    )  # fmt: skip

    assert cut_bytes(blocks, metis(blocks, 0)) == 8 * 0.5


def test_packing_takes_the_largest_domains_first() -> None:
    question = Question(sizes=(6,), capacities=(2, 4, 3), charges=())

    assert packed(question).tolist() == [1, 1, 1, 1, 2, 2]


def test_whole_pipelines_fill_the_outermost_axis_before_the_middle_one() -> None:
    # ranks 0..7 are (a, b, c) with a fastest; each domain of 4 takes both a and both c of one b
    question = Question(sizes=(2, 2, 2), capacities=(4, 4), charges=())

    assert pipelines(question).tolist() == [0, 0, 1, 1, 0, 0, 1, 1]


def test_rules_that_seat_alike_are_told_once() -> None:
    equal = Question(sizes=(2, 4), capacities=(4, 4), charges=())
    names = [name for name, _ in baselines(equal, 0)]

    assert "pack-first" not in names
    assert len(names) == len(set(names))
