"""Cost of a seating against the slow one and the judge; merging boxes loses nothing."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest

from planner.place.check import CheckedEntry, judged
from planner.place.question import Charge, Kind, Question, coarsen, cut_bytes, refine_home
from planner.place.tiles import best_tiles, box_cut_bytes, boxes
from tests.oracles import digit_groups, random_small_shape, slow_cut_bytes

_COLLECTIVE = {
    Kind.TOUCH: "reduce_scatter", Kind.PAIRS: "all_to_all", Kind.RING: "ring", Kind.CHAIN: "chain",
    Kind.ENDS: "chain",
}  # fmt: skip


def _every_kind(sizes: tuple[int, ...], capacities: tuple[int, ...]) -> Question:
    charges = [
        Charge(axes=axes, kind=kind, weight_bytes=weight)
        for axes, kind, weight in (
            ((0,), Kind.TOUCH, 4.0), ((0, 1), Kind.TOUCH, 1.5), ((1,), Kind.RING, 0.7),
            ((0, 2), Kind.PAIRS, 0.3), ((2,), Kind.CHAIN, 0.2), ((2,), Kind.ENDS, 0.1),
            ((1, 2), Kind.ENDS, 0.05), ((2,), Kind.PAIRS, 0.6),
        )
    ]  # fmt: skip
    return Question(sizes=sizes, charges=tuple(charges), capacities=capacities)


def _random_home(question: Question, seed: int) -> np.ndarray:
    seats = np.repeat(np.arange(len(question.capacities)), question.capacities)
    return np.random.default_rng(seed).permutation(seats)[: question.cells]


@pytest.mark.parametrize("seed", range(60))
def test_the_cut_equals_the_slow_one_and_the_judges(seed: int) -> None:
    shape = random_small_shape(np.random.default_rng(1000 + seed))
    question = Question(
        sizes=shape["sizes"],
        charges=tuple(Charge(axes=a, kind=Kind(k), weight_bytes=w) for a, k, w in shape["charges"]),
        capacities=shape["capacities"],
    )
    home = _random_home(question, seed)
    entries = []
    for charge in question.charges:
        groups = digit_groups(question.sizes, charge.axes)
        if charge.kind is Kind.ENDS:
            groups = [[g[0], g[-1]] if len(g) > 1 else g for g in groups]
        entries.append(
            CheckedEntry(
                collective=_COLLECTIVE[charge.kind],
                payload_bytes=charge.weight_bytes,
                times_per_step=1.0,
                members=groups,
            )
        )

    cut = cut_bytes(question, home)

    assert cut == pytest.approx(slow_cut_bytes(question, home.tolist()), rel=1e-12)
    # one GPU to a cell, whose domain is the cell's home
    assert cut == pytest.approx(judged(home, range(question.cells), entries).total_bytes, rel=1e-12)


@pytest.mark.parametrize("tile", [(2, 1, 1), (1, 3, 1), (2, 3, 1), (1, 3, 2), (2, 1, 2), (4, 6, 4)])
def test_merging_boxes_that_stay_together_changes_no_cut(tile: tuple[int, ...]) -> None:
    fine = _every_kind((4, 6, 4), (96, 96))
    volume = prod(tile)
    coarse = coarsen(fine, tile, (96 // volume, 96 // volume))

    for seed in range(5):
        coarse_home = np.random.default_rng(seed).integers(0, 2, coarse.cells)
        fine_home = refine_home(fine, tile, coarse_home)
        assert (
            np.bincount(fine_home, minlength=2).tolist()
            == (volume * np.bincount(coarse_home, minlength=2)).tolist()
        )
        assert cut_bytes(coarse, coarse_home) == pytest.approx(cut_bytes(fine, fine_home))


def test_refining_puts_every_fine_cell_where_its_box_sits() -> None:
    fine = _every_kind((4, 6, 2), (48,))

    home = refine_home(fine, (2, 3, 2), np.arange(4))

    for cell, domain in enumerate(home.tolist()):
        x, y = cell % 4, cell // 4 % 6
        assert domain == x // 2 + 2 * (y // 3)


@pytest.mark.parametrize("volume", [1, 2, 4, 6, 8, 12, 24, 48])
def test_a_box_cuts_in_closed_form_what_its_seating_cuts(volume: int) -> None:
    question = _every_kind((4, 6, 4), (volume,) * (96 // volume))
    sides = boxes(question.sizes, volume)

    cuts = box_cut_bytes(question, sides)

    for box, cut in zip(sides.tolist(), cuts.tolist(), strict=True):
        home = refine_home(question, box, np.arange(96 // volume))
        assert cut == pytest.approx(slow_cut_bytes(question, home.tolist()))


def test_boxes_are_all_the_divisors_with_that_volume() -> None:
    by_trial = [
        [a, b, c]
        for a in range(1, 5)
        for b in range(1, 7)
        for c in range(1, 5)
        if 4 % a == 0 and 6 % b == 0 and 4 % c == 0 and a * b * c == 12
    ]

    assert boxes((4, 6, 4), 12).tolist() == by_trial


def test_the_best_tile_of_the_known_case_is_two_by_four() -> None:
    question = Question(
        sizes=(2, 16, 4),
        charges=tuple(
            Charge(axes=(axis,), kind=Kind.TOUCH, weight_bytes=weight)
            for axis, weight in enumerate((4.0, 1.0, 0.2))
        ),
        capacities=(8,) * 16,
    )

    (tile,) = best_tiles(question, 8)

    assert tile.sides == (2, 4, 1)
    assert tile.cut_bytes == pytest.approx(43.2)
