"""The parts of all tiers at once: chains of tiles, deals of contents, inner seats."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, product
from math import prod

import numpy as np
import pytest

from planner.errors import InputError
from planner.place.chains import ordered_chain, weighted_chain
from planner.place.exchange import exchanged
from planner.place.inside import box_question, sunk
from planner.place.labour import Labour
from planner.place.nets import nets_of, weave
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.rise import risen
from planner.place.tier_search import nested_home
from planner.place.tiers import importance, weights_of
from planner.place.tiles import box_cut_bytes, boxes
from planner.place.tree import Tree, kinds_of
from tests.oracles import slow_cut_bytes

EXACT = (Kind.TOUCH, Kind.PAIRS, Kind.RING, Kind.CHAIN, Kind.ENDS)


def _question(seed: int, sizes: tuple[int, ...] = (2, 3, 4)) -> Question:
    random = np.random.default_rng(seed)
    charges = []
    for kind in EXACT:
        axes = tuple(i for i in range(len(sizes)) if random.random() < 0.5) or (1,)
        if kind in (Kind.CHAIN, Kind.ENDS):
            axes = axes[:1]
        charges.append(Charge(axes=axes, kind=kind, weight_bytes=float(random.integers(1, 9))))
    return Question(sizes=sizes, charges=tuple(charges), capacities=(prod(sizes),))


def _tree(*capacities: tuple[int, ...]) -> Tree:
    """Return the tree whose domains hold the next inner domains in order, as they fit."""
    parents = []
    for inner, outer in pairwise(capacities):
        ends = np.cumsum(outer)
        parents.append(np.searchsorted(ends, np.cumsum(inner)))
    return Tree(
        names=tuple(f"tier{t}" for t in range(len(capacities))),
        capacities=capacities,
        parents=tuple(parents),
        uplinks_bytes_per_s=tuple((1.0,) * len(c) if len(c) > 1 else (0.0,) for c in capacities),
    )


# Chains


def _every_chain(question: Question, volumes: tuple[int, ...]) -> list[tuple[tuple[int, ...], ...]]:
    found = []
    for chain in product(*(map(tuple, boxes(question.sizes, v).tolist()) for v in volumes)):
        steps = pairwise(chain)
        if all(b % a == 0 for small, large in steps for a, b in zip(small, large, strict=True)):
            found.append(chain)
    return found


def _cuts(question: Question, chain: tuple[tuple[int, ...], ...]) -> list[float]:
    return [float(box_cut_bytes(question, np.array([sides]))[0]) for sides in chain]


@pytest.mark.parametrize("seed", range(12))
def test_the_ordered_chain_is_the_best_of_all_chains(seed: int) -> None:
    question = _question(seed, (4, 6, 4))
    volumes, order = (2, 8, 24), importance(3, seed % 3)
    every = [_cuts(question, chain) for chain in _every_chain(question, volumes)]

    chain = ordered_chain(question, volumes, order)

    mine = _cuts(question, chain)
    assert [mine[t] for t in order] == min([cuts[t] for t in order] for cuts in every)
    assert chain in _every_chain(question, volumes)


def test_of_tied_tiles_those_are_kept_that_suit_the_tiers_to_come() -> None:
    unlike = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        charges = tuple(
            Charge(axes=axes, kind=Kind(kind), weight_bytes=float(random.integers(1, 3)))
            for axes in ((0,), (1,), (2,), (0, 1), (1, 2))
            for kind in ("touch", "pairs")
            if random.random() < 0.4
        )
        question = Question(sizes=(4, 4, 4), charges=charges, capacities=(64,))
        every = [_cuts(question, chain) for chain in _every_chain(question, (4, 8, 16))]
        for order in ((0, 1, 2), (1, 2, 0), (2, 1, 0)):
            mine = _cuts(question, ordered_chain(question, (4, 8, 16), order))

            assert [mine[t] for t in order] == min([cuts[t] for t in order] for cuts in every)

        unlike += len({tuple(cuts) for cuts in every}) > 1
    assert unlike > 40


@pytest.mark.parametrize("seed", range(12))
def test_the_weighted_chain_has_the_least_sum_of_all_chains(seed: int) -> None:
    question = _question(seed, (4, 6, 4))
    volumes, weights = (2, 8, 24), (1.0, 3.0 * seed, 0.5)
    every = [_cuts(question, chain) for chain in _every_chain(question, volumes)]

    chain = weighted_chain(question, volumes, weights)

    assert np.dot(_cuts(question, chain), weights) == min(np.dot(c, weights) for c in every)


def test_a_chain_puts_every_box_into_a_domain_of_its_tier() -> None:
    tree = _tree((2,) * 12, (6,) * 4, (12, 12), (24,))
    chain = ((2, 1, 1), (2, 3, 1), (2, 3, 2))

    home = nested_home((2, 3, 4), chain, tree, 0)

    digits = np.array(np.unravel_index(np.arange(24), (4, 3, 2)))[::-1].T
    for tier, sides in enumerate(chain):
        where = tree.outward(home, 0, tier)
        box = [tuple(d) for d in (digits // np.array(sides)).tolist()]
        assert len(set(zip(where.tolist(), box, strict=True))) == len(tree.capacities[tier])


# Contents


@pytest.mark.parametrize("seed", range(20))
def test_nets_price_a_deal_of_contents_as_the_cut_does(seed: int) -> None:
    question, random = _question(seed), np.random.default_rng(seed)
    content = random.integers(0, 6, 24)
    deals = random.integers(0, 3, (8, 6))

    nets = nets_of(weave(question), np.arange(24), content, 6)

    assert nets is not None
    apart = [
        nets.cost_bytes(deal) - slow_cut_bytes(question, deal[content].tolist()) for deal in deals
    ]
    assert apart == pytest.approx([apart[0]] * 8, abs=1e-9)


@pytest.mark.parametrize("seed", range(20))
def test_nets_of_one_domain_price_its_inside_up_to_a_constant(seed: int) -> None:
    question, random = _question(seed), np.random.default_rng(seed)
    cells = np.flatnonzero(np.arange(24) % 4 < 2)
    inside = random.integers(0, 3, (8, len(cells)))
    outside = 3 + random.integers(0, 2, 24)

    nets = nets_of(weave(question), cells, np.arange(len(cells)), len(cells))

    assert nets is not None
    apart = []
    for way in inside:
        home = outside.copy()
        home[cells] = way
        apart.append(nets.cost_bytes(way) - slow_cut_bytes(question, home.tolist()))
    assert apart == pytest.approx([apart[0]] * 8, abs=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_exchanges_never_cost_more_and_keep_each_kind_where_it_was(seed: int) -> None:
    question, random = _question(seed), np.random.default_rng(seed)
    content, home, kinds = (random.integers(0, n, m) for n, m in ((8, 24), (3, 8), (2, 8)))
    nets = nets_of(weave(question), np.arange(24), content, 8)
    assert nets is not None

    better = exchanged(nets, home, kinds, Labour())

    assert nets.cost_bytes(better) <= nets.cost_bytes(home)
    for kind in (0, 1):
        assert sorted(better[kinds == kind]) == sorted(home[kinds == kind])


def test_equal_kinds_hold_the_same_subtree() -> None:
    tree = _tree((2, 2, 1, 3, 2, 2, 3, 1), (4, 4, 4, 4), (16,))

    kinds = kinds_of(tree, 0)

    assert kinds[1].tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("seed", range(10))
def test_a_deal_outwards_keeps_the_cut_of_its_own_tier_and_lowers_the_outer_ones(seed: int) -> None:
    question, random = _question(seed, (2, 2, 6)), np.random.default_rng(seed)
    tree = _tree((2, 2, 4, 4, 2, 2, 4, 4), (4, 8, 4, 8), (12, 12), (24,))
    home = random.permutation(np.repeat(np.arange(8), tree.capacities[0]))

    dealt = risen(question, tree, 0, home, tile=None, settled=0, labour=Labour())

    assert (np.bincount(dealt, minlength=8) == tree.capacities[0]).all()
    assert slow_cut_bytes(question, dealt.tolist()) == pytest.approx(
        slow_cut_bytes(question, home.tolist())
    )
    before, after = (
        slow_cut_bytes(question, tree.outward(h, 0, 1).tolist()) for h in (home, dealt)
    )
    assert after <= before + 1e-9


def test_a_weight_moves_the_choice_to_its_tier() -> None:
    # 4 x 4: tiles of 4 want (4, 1), tiles of 2 in them (2, 1); a tile (1, 2) fits neither
    lines = [Charge(axes=(i,), kind=Kind.TOUCH, weight_bytes=w) for i, w in enumerate((3.0, 2.0))]
    pairs = Charge(axes=(1,), kind=Kind.PAIRS, weight_bytes=0.7)
    question = Question(sizes=(4, 4), charges=(*lines, pairs), capacities=(16,))

    inner_first = ordered_chain(question, (2, 4), (0, 1))
    heavy_inner = weighted_chain(question, (2, 4), (1e6, 1.0))

    assert _cuts(question, heavy_inner)[0] == _cuts(question, inner_first)[0]


def test_borders_without_a_rate_have_no_weight() -> None:
    tree = replace(_tree((2, 2), (4,)), uplinks_bytes_per_s=((0.0, 0.0), (0.0,)))

    with pytest.raises(InputError, match="or uplinks with a rate"):
        weights_of(tree)


# Inside


@pytest.mark.parametrize("seed", range(20))
def test_a_box_is_a_question_of_its_own_up_to_a_constant(seed: int) -> None:
    question, random = _question(seed, (2, 3, 4)), np.random.default_rng(seed)
    copies = Charge(
        axes=(1, 2), kind=Kind.COPIES, weight_bytes=2.0,
        units=tuple(float(j * (12 - j)) ** 0.5 for j in range(13)),
    )  # fmt: skip
    question = replace(question, charges=(*question.charges, copies))
    digits = np.array(np.unravel_index(np.arange(24), (4, 3, 2)))[::-1]
    cells = np.flatnonzero((digits[1] < 2) & (digits[2] >= 1))

    inside = box_question(question, (2, 2, 3), (4, 4, 4))

    assert inside is not None
    apart = []
    for _ in range(8):
        way = random.permutation(np.repeat(np.arange(3), 4))
        home = np.full(24, 3)
        home[cells] = way
        apart.append(cut_bytes(inside, way) - cut_bytes(question, home))
    assert apart == pytest.approx([apart[0]] * 8, abs=1e-9)


def test_the_inside_of_a_domain_is_seated_as_well_as_its_shape_allows() -> None:
    lines = [Charge(axes=(i,), kind=Kind.TOUCH, weight_bytes=w) for i, w in enumerate((9.0, 1.0))]
    question = Question(sizes=(2, 8), charges=tuple(lines), capacities=(8, 8))
    tree = _tree((2,) * 8, (8, 8), (16,))
    halves = np.repeat([0, 1], 8)

    home = sunk(question, tree, 1, halves, labour=Labour())

    assert home.reshape(8, 2)[:, 0].tolist() == home.reshape(8, 2)[:, 1].tolist()
    assert (np.bincount(home) == 2).all()
