"""Bounds of many numbers of cells side by side: those asked one by one, and no set pays less."""

from __future__ import annotations

import numpy as np
import pytest

from planner.place import touch_search
from planner.place.bound import (
    _domain_bound,
    _loose_bound,
    domain_bound,
    domain_bounds,
    loose_bound,
)
from planner.place.question import Charge, Kind, Question
from tests.property.test_place_together import _least_of_all_sets, _random_charges

ROUNDING = 1e-9
GRIDS = ((8, 4, 6), (16, 8), (5, 7, 3), (4, 4, 4, 4), (64,), (2, 16, 4), (32, 3))
KINDS = (Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.CHAIN, Kind.COPIES)


def _question(seed: int) -> Question:
    random = np.random.default_rng(seed)
    sizes = GRIDS[seed % len(GRIDS)]
    charges = []
    for _ in range(int(random.integers(1, 5))):
        axes = tuple(i for i in range(len(sizes)) if random.random() < 0.5)
        kind = KINDS[int(random.integers(len(KINDS)))]
        if kind is Kind.CHAIN:
            axes = (int(random.integers(len(sizes))),)
        weight = float(10.0 ** random.uniform(-1, 2))
        units: tuple[float, ...] = ()
        if kind is Kind.COPIES:  # concave, 0 at both ends
            n = int(np.prod([sizes[a] for a in axes]))
            units = tuple(float(min(3 * j, n - j)) for j in range(n + 1))
        charges.append(Charge(axes=axes, kind=kind, weight_bytes=weight, units=units))
    return Question(sizes=sizes, charges=tuple(charges), capacities=(int(np.prod(sizes)),))


def _unlike(seeds: range, most: int) -> list[tuple[int, bool, int | None, int]]:
    """Return (seed, sharp, axis that is split, cells) of bounds that differ."""
    found = []
    for seed in seeds:
        question = _question(seed)
        held = list(range(min(most, question.cells) + 1))
        for sharp in (True, False):
            for axis in (None, seed % len(question.sizes)):
                for cache in (_domain_bound, _loose_bound):
                    cache.cache_clear()
                together = domain_bounds(question, held, sharp=sharp, split_axis=axis)
                for cache in (_domain_bound, _loose_bound):
                    cache.cache_clear()
                for c, bound in zip(held, together, strict=True):
                    alone = (
                        domain_bound(question, c, axis)
                        if sharp
                        else loose_bound(question, c, split_axis=axis)
                    )
                    if bound != pytest.approx(alone, rel=ROUNDING):
                        found.append((seed, sharp, axis, c))
    return found


def test_bounds_side_by_side_are_those_asked_one_by_one() -> None:
    assert _unlike(range(14), 30) == []


@pytest.mark.nightly
def test_many_more_bounds_side_by_side_are_those_asked_one_by_one() -> None:
    assert _unlike(range(14, 300), 80) == []


def _above_the_least(seeds: range) -> list[tuple[int, int, float, float]]:
    """Return (seed, cells, bound, least) of bounds above what the cheapest set pays."""
    found = []
    for seed in seeds:
        sizes, charges = _random_charges(seed)
        cells = int(np.prod(sizes))
        question = Question(sizes=sizes, charges=tuple(charges), capacities=(cells,))
        _domain_bound.cache_clear()
        bounds = domain_bounds(question, range(cells), sharp=True)
        for held in range(1, cells):
            least = _least_of_all_sets(sizes, charges, held)
            if bounds[held] > least * (1 + ROUNDING) + ROUNDING:
                found.append((seed, held, bounds[held], least))
    return found


def test_no_set_of_cells_pays_less_than_bounds_side_by_side() -> None:
    assert _above_the_least(range(300, 312)) == []


@pytest.mark.parametrize("vectors", [3, 20, 100])
def test_too_many_vectors_side_by_side_go_apart(
    monkeypatch: pytest.MonkeyPatch, vectors: int
) -> None:
    monkeypatch.setattr(touch_search, "VECTORS", vectors)

    assert _above_the_least(range(312, 316)) == []
    _domain_bound.cache_clear()


@pytest.mark.nightly
def test_no_set_of_cells_pays_less_than_many_more_bounds_side_by_side() -> None:
    assert _above_the_least(range(316, 900)) == []
