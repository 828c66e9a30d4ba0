"""What a domain pays layer upon layer: by hand, and against every set of cells there is."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.place.bound import domain_bound
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.stacked import stacked_bound, stacked_bounds
from tests.oracles import brute_force_cut, digit_groups
from tests.small_questions import Drawn

GRIDS = ((2, 2, 3), (4, 3), (2, 3, 2), (3, 2, 2), (4, 2), (2, 5), (3, 3), (6, 2), (3, 1, 3))


def _question(sizes: tuple[int, ...], *charges: tuple[Kind, float, tuple[int, ...]]) -> Question:
    return Question(
        sizes=sizes,
        charges=tuple(Charge(axes=axes, kind=kind, weight_bytes=w) for kind, w, axes in charges),
        capacities=(1000,),
    )


def test_two_cells_missing_of_a_square_lie_in_one_line() -> None:
    """Of 3 x 3 pairs along both axes, seven cells: by hand 2 in one row and 2 + 2 in two columns.

    Two missing cells in different lines cost 4 and 4. Rows alone or columns alone would cost 2.
    """
    square = _question((3, 3), (Kind.PAIRS, 1.0, (0,)), (Kind.PAIRS, 1.0, (1,)))
    assert stacked_bounds(square, 9)[7] == pytest.approx(6.0)
    assert domain_bound(square, 7) == pytest.approx(4.0)


def test_a_ring_of_sixteen_is_told_to_its_end() -> None:
    """Two rings of 16 with reductions between them, a byte each; 16 cells are a ring by itself.

    By hand: 17 cells are that and one more, which its ring pays 7 for and its pair nothing; 32 are
    all, in 16 pairs.
    """
    rings = _question((2, 16), (Kind.TOUCH, 1.0, (0,)), (Kind.RING, 7.0, (1,)))
    bounds = stacked_bounds(rings, 32)
    assert bounds[[16, 17, 32]] == pytest.approx([16.0, 16.0 + 7.0, 16.0])


def test_a_domain_of_no_cells_pays_nothing_and_one_with_cells_of_a_line_what_they_do() -> None:
    line = _question((5,), (Kind.PAIRS, 1.0, (0,)))
    assert stacked_bounds(line, 5).tolist() == pytest.approx([0.0, 4.0, 6.0, 6.0, 4.0, 0.0])


def test_pairs_across_layers_are_counted_by_their_cells() -> None:
    """Three layers of 2 x 2 with pairs of 6, of two cells in each layer.

    By hand: six cells are a group, which costs nothing, four are 2 in each of two layers, 4 x 2.
    """
    pairs = _question((2, 2, 3), (Kind.PAIRS, 1.0, (0, 2)), (Kind.TOUCH, 0.1, (1,)))
    assert stacked_bounds(pairs, 12)[[4, 6, 12]] == pytest.approx([8.0 + 0.4, 0.6, 0.6])


def test_axes_that_all_families_share_are_one() -> None:
    pairs = (Kind.PAIRS, 1.0, (0, 1)), (Kind.TOUCH, 2.0, (2,))
    two, one = _question((2, 3, 2), *pairs), _question((6, 2), *pairs[:1], (Kind.TOUCH, 2.0, (1,)))
    one = replace(one, charges=(replace(one.charges[0], axes=(0,)), one.charges[1]))
    assert stacked_bounds(two, 12).tolist() == stacked_bounds(one, 12).tolist()


SLABS = Question(
    sizes=(8, 4, 4),
    charges=(
        Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=47.0),
        Charge(axes=(1,), kind=Kind.RING, weight_bytes=750.0),
        Charge(axes=(0, 1), kind=Kind.PAIRS, weight_bytes=0.5),
        Charge(axes=(2,), kind=Kind.TOUCH, weight_bytes=0.6),
    ),
    capacities=(48, 48, 48),
)
"""Four slabs of 8 x 4 in three domains of 48: three are whole and the fourth is halved."""


def test_four_slabs_in_three_domains_of_one_and_a_half() -> None:
    """By hand: the fourth slab parts 4 lines of 8 and one group of 32 pairs, 16 : 16, both ways.

    Over 32 places in a slab, the four slabs lie in three domains: k - 1 = 2.
    """
    halved = 4 * 47.0 + 2 * 16 * 16 * 0.5 + 32 * 2 * 0.6
    assert stacked_bound(SLABS) == pytest.approx(halved)
    home = np.repeat([0, 1, 2, 0], 32)
    home[-32:].reshape(4, 8)[:, 4:] = 1
    assert cut_bytes(SLABS, home) == pytest.approx(halved)


def test_two_domains_that_part_a_slab_at_no_half() -> None:
    """The same in 75 + 53: two slabs and 11 cells; what two seatings cut is no less."""
    two = replace(SLABS, capacities=(75, 53))
    bound = stacked_bound(two)
    assert stacked_bound(two, bound / 2) >= bound / 2
    home = (np.arange(128) >= 75).astype(np.int64)
    rows = np.arange(128).reshape(4, 4, 8).transpose(0, 2, 1).ravel()
    across = np.empty(128, dtype=np.int64)
    across[rows] = home
    assert 0 < bound <= min(cut_bytes(two, home), cut_bytes(two, across)) * (1 + 1e-9)


def with_copies(question: Question, seed: int) -> Question:
    """Return *question* whose copies have random concave units, nought at both ends."""
    random, charges = np.random.default_rng(seed), []
    for charge in question.charges:
        size, units = question.group_size(charge.axes), ()
        if charge.kind is Kind.COPIES:
            rises = -np.sort(-random.integers(-6, 7, size=size).astype(float))
            units = tuple(np.concatenate([[0.0], np.cumsum(rises - rises.mean())[:-1], [0.0]]))
        charges.append(replace(charge, units=units))
    return replace(question, charges=tuple(charges))


def _least_paid(question: Question) -> NDArray[np.float64]:
    """Return what the cheapest set of 0, 1, … cells pays, by looking at all sets."""
    sets = np.array(list(product((0, 1), repeat=question.cells)))
    paid = np.zeros(len(sets))
    for charge in question.charges:
        for group in digit_groups(question.sizes, charge.axes):
            size = len(group)
            held = sets[:, group].sum(axis=1)
            if size > 1:
                units = {
                    Kind.TOUCH: held > 0,
                    Kind.RING: (held > 0) & (held < size),
                    Kind.PAIRS: held * (size - held),
                    Kind.COPIES: np.array(charge.units or [0.0])[held * bool(charge.units)],
                }[charge.kind]
                paid += charge.weight_bytes * units
    cells = sets.sum(axis=1)
    return np.array([paid[cells == k].min() for k in range(question.cells + 1)])


@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 1000), marks=pytest.mark.nightly)]
)
def test_no_set_of_cells_pays_less(seeds: range) -> None:
    drawn = Drawn(
        first_seed=410_000,
        grids=GRIDS,
        kinds=(Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.COPIES),
        spare_share=0.0,
    )
    sharper = reached = 0
    for seed, plain_question in enumerate(drawn.questions(seeds)):
        question = with_copies(plain_question, seed)
        least = _least_paid(question)
        for most in (question.cells, question.cells * 2 // 3):
            bounds = stacked_bounds(question, most)
            assert (bounds <= least[: most + 1] * (1 + 1e-9) + 1e-6).all(), question
            plain = np.array([domain_bound(question, k) for k in range(most + 1)])
            sharper += int((bounds > plain + 1e-6).sum())
            reached += int((bounds >= least[: most + 1] - 1e-6)[1:].sum())
    assert sharper > 0
    assert reached > 3 * len(seeds)


@pytest.mark.parametrize(
    "seeds", [range(150), pytest.param(range(150, 4000), marks=pytest.mark.nightly)]
)
def test_no_seating_cuts_less_than_its_domains_pay_layer_upon_layer(seeds: range) -> None:
    """All kinds, chains that a link closes among them; what all domains pay less the rebate."""
    drawn = Drawn(
        first_seed=420_000,
        grids=GRIDS,
        kinds=(*Kind.__members__.values(), Kind.CHAIN, Kind.ENDS),
        spare_share=0.5,
    )
    told = reached = 0
    for seed, plain_question in enumerate(drawn.questions(seeds)):
        question = with_copies(plain_question, seed)
        best, bound = brute_force_cut(question), stacked_bound(question)
        assert bound <= best * (1 + 1e-9) + 1e-6, question
        told += bound > 0.5 * best > 0
        reached += bound >= best * (1 - 1e-9) > 0
    assert told > 0.3 * len(seeds)
    assert reached > 0.1 * len(seeds)
