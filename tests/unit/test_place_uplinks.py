"""Dead and slow links: what crosses stays the same, and crosses where links are good."""

from __future__ import annotations

from itertools import permutations

import numpy as np

from planner.place.borders import sent_bytes
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.uplinks import on_best_uplinks

CHAIN = Question(
    sizes=(2, 3),
    charges=(
        Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=5.0),
        Charge(axes=(1,), kind=Kind.CHAIN, weight_bytes=1.0),
    ),
    capacities=(2, 2, 2, 2, 3),
)
HOME = np.array([0, 0, 1, 1, 2, 2])  # the middle stage sends twice as much


def test_a_domain_without_a_link_is_left_idle() -> None:
    home = on_best_uplinks(CHAIN, HOME, [1.0, 0.0, 1.0, 1.0, 1.0])

    assert 1 not in home
    assert cut_bytes(CHAIN, home) == cut_bytes(CHAIN, HOME)


def test_the_slowest_link_carries_least_where_none_can_be_idle() -> None:
    full = Question(sizes=CHAIN.sizes, charges=CHAIN.charges, capacities=(2, 2, 2))

    home = on_best_uplinks(full, HOME, [1.0, 0.5, 1.0])

    assert sent_bytes(full, home).tolist() == [2.0, 1.0, 1.0]
    assert sorted(np.bincount(home).tolist()) == [2, 2, 2]


def test_where_links_are_alike_nothing_moves() -> None:
    assert (on_best_uplinks(CHAIN, HOME, [3.0] * 5) == HOME).all()


def test_no_other_exchange_of_equal_domains_makes_the_busiest_link_less_busy() -> None:
    random = np.random.default_rng(7)
    question = Question(sizes=(3, 4), charges=CHAIN.charges, capacities=(3, 3, 3, 3, 3))
    for _ in range(50):
        home = random.permutation(np.repeat(np.arange(4), 3))
        rates = random.integers(1, 4, size=5).astype(float)

        best = on_best_uplinks(question, home, rates.tolist())

        busiest = min(
            float((sent_bytes(question, np.array(order)[home]) / rates).max())
            for order in permutations(range(5))
        )
        assert float((sent_bytes(question, best) / rates).max()) <= busiest * (1 + 1e-12)
