"""What a domain pays layer upon layer: by hand, and against every set of cells there is."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.place.bound import domain_bound, rebate_bytes
from planner.place.fillings import cheapest_filling
from planner.place.question import Charge, Kind, Question
from planner.place.stacked import stacked_bounds
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


def test_a_domain_of_no_cells_pays_nothing_and_layers_of_one_cell_say_nothing() -> None:
    line = _question((5,), (Kind.TOUCH, 1.0, (0,)))
    assert stacked_bounds(line, 5).tolist() == [0.0] * 6


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
                }[charge.kind]
                paid += charge.weight_bytes * units
    cells = sets.sum(axis=1)
    return np.array([paid[cells == k].min() for k in range(question.cells + 1)])


def test_no_set_of_cells_pays_less() -> None:
    drawn = Drawn(
        first_seed=410_000,
        grids=GRIDS,
        kinds=(Kind.TOUCH, Kind.RING, Kind.PAIRS),
        spare_share=0.0,
    )
    sharper = reached = 0
    for question in drawn.questions(range(60)):
        least = _least_paid(question)
        for most in (question.cells, question.cells * 2 // 3):
            bounds = stacked_bounds(question, most)
            assert (bounds <= least[: most + 1] * (1 + 1e-9) + 1e-6).all(), question
            plain = np.array([domain_bound(question, k) for k in range(most + 1)])
            sharper += int((bounds > plain + 1e-6).sum())
            reached += int((bounds >= least[: most + 1] - 1e-6)[1:].sum())
    assert sharper > 0
    assert reached > 200


def test_no_seating_cuts_less_than_its_domains_pay_layer_upon_layer() -> None:
    """All kinds, chains that a link closes among them; what all domains pay less the rebate."""
    drawn = Drawn(
        first_seed=420_000,
        grids=GRIDS,
        kinds=(*Kind.__members__.values(), Kind.CHAIN, Kind.ENDS),
        spare_share=0.5,
    )
    told = 0
    for question in drawn.questions(range(300)):
        if any(charge.kind is Kind.COPIES for charge in question.charges):
            continue  # which need units of their own
        bounds = stacked_bounds(question, max(question.capacities))
        paid = cheapest_filling(question.capacities, question.cells, bounds.tolist().__getitem__)
        best = brute_force_cut(question)
        assert paid - rebate_bytes(question) <= best * (1 + 1e-9) + 1e-6, question
        told += paid - rebate_bytes(question) > 0.5 * best > 0
    assert told > 20
