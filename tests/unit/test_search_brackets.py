"""A change there and back between two values of the grid is found, and what is proved free is."""

from __future__ import annotations

from functools import partial
from math import exp, log
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from planner.search.axes import Axis
from planner.search.best_steps import Steps
from planner.search.brackets import Along, Search, Stretch, first_change
from planner.search.changed import Change
from planner.search.standings import standing_stays, tie_at, winner_at, winner_stays

CROWDING = Axis(name="oversubscription", change=lambda factor: Change(crowding=factor))
SPREAD = 0.05


class Curves:
    """Clusters whose steps grow with the log of the oversubscription along given points."""

    def __init__(self, points: dict[str, list[tuple[float, float]]]) -> None:
        self.pools = [SimpleNamespace(name=name, spread=SPREAD) for name in points]
        self.winner = self.pools[0]
        self._points = points

    def token_s(self, pool: Any, change: Change) -> float:
        factors, steps_s = zip(*self._points[pool.name], strict=True)
        return float(np.interp(log(change.crowding), np.log(factors), steps_s))

    def ranked(self, change: Change) -> list[tuple[Any, float]]:
        steps = [(pool, self.token_s(pool, change)) for pool in self.pools]
        return sorted(steps, key=lambda one: one[1])

    def best(self, pool: Any, change: Change) -> Any:
        return SimpleNamespace(step_s=self.token_s(pool, change), row=0)


def told(search: Search) -> Along:
    while True:
        try:
            next(search)
        except StopIteration as end:
            found: Along = end.value
            return found


def looked(curves: Curves, kind: str, direction: int = 1) -> Along:
    steps = cast("Steps", curves)
    ask, stays = {"winner": (winner_at, winner_stays), "tie": (tie_at, standing_stays)}[kind]
    return told(first_change(
        CROWDING, partial(ask, steps, CROWDING), CROWDING.grid(direction),
        partial(stays, steps, CROWDING),
    ))  # fmt: skip


GRID = CROWDING.grid(1)
DIP = [(1 / 32, 1.0), (1.2, 1.0), (1.25, 1.05), (1.3, 1.05), (32, 1.051)]
"""The winner is slow between 1.2 and 1.3 already, the other follows: both are as fast from 1.3."""
FOLLOWS = [(1 / 32, 1.01), (1.27, 1.01), (1.3, 1.06), (32, 1.06)]


def test_a_winner_that_loses_and_wins_back_between_two_values_of_the_grid_is_seen() -> None:
    curves = Curves({"a": DIP, "b": FOLLOWS})

    found = looked(curves, "winner")

    # a is behind b by 0.1 % from where it has grown to 1.01 x 1.001, on the way from 1 to 1.05
    grown = (1.01 * 1.001 - 1.0) / 0.05
    crossing = exp(log(1.2) + grown * log(1.25 / 1.2))
    assert GRID[0] > 1.3
    assert found.beyond_factor == pytest.approx(crossing, rel=1.1e-3)
    assert found.held_factor < crossing
    assert found.unproved == ()


def test_without_a_proof_the_same_is_missed_and_told_so() -> None:
    curves = cast("Steps", Curves({"a": DIP, "b": FOLLOWS}))

    found = told(first_change(CROWDING, partial(winner_at, curves, CROWDING), GRID, None))

    assert found.beyond_factor is None
    assert found.unproved == (Stretch(near_factor=1.0, far_factor=GRID[-1]),)


def test_two_that_stay_as_near_as_can_be_are_proved_as_far_as_one_asks() -> None:
    steep = [(1 / 32, 1.0), (1.0, 1.0), (32.0, 60.0)]
    near = [(factor, 1.0009 * step_s) for factor, step_s in steep]
    found = looked(Curves({"a": near, "b": steep}), "winner")

    assert found.beyond_factor is None
    assert found.unproved[-1].far_factor == GRID[-1]
    assert all(one.near_factor < one.far_factor for one in found.unproved)


@pytest.mark.parametrize("kind", ["winner", "tie"])
@pytest.mark.parametrize("seed", range(6))
def test_the_nearest_change_of_random_curves_is_that_of_a_close_scan(seed: int, kind: str) -> None:
    random = np.random.default_rng(seed)
    factors = np.exp(np.linspace(-log(32), log(32), 41))
    curves = Curves({
        name: [(float(f), float(s)) for f, s in zip(factors, start * np.exp(np.cumsum(
            random.choice([0.0, 0.003, 0.02], 41, p=[0.5, 0.3, 0.2]))), strict=True)]
        for name, start in (("a", 1.0), ("b", 1.0 + 0.08 * random.random()), ("c", 1.09))
    })  # fmt: skip
    curves.winner = curves.ranked(Change())[0][0]
    ask = partial({"winner": winner_at, "tie": tie_at}[kind], cast("Steps", curves), CROWDING)

    for direction in (-1, 1):
        found = looked(curves, kind, direction)

        scan = [exp(direction * log(32) * at / 2000) for at in range(2001)]
        now = ask(1.0)
        first = next((factor for factor in scan if ask(factor) != now), None)
        assert (found.beyond_factor is None) == (first is None)
        if first is not None and found.beyond_factor is not None:
            assert found.beyond_factor == pytest.approx(first, rel=3e-3)
        assert found.unproved == ()
