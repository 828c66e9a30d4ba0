"""Flows hashed over equal paths: the expected fullest against every way they can fall."""

from __future__ import annotations

from itertools import product
from math import log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InputError
from planner.network.hashing import MOST_EXACT_FLOWS, collisions, expected_fullest


@pytest.mark.parametrize(
    ("flows", "paths"),
    [(n, k) for n in range(1, 8) for k in range(1, 6) if k**n <= 20_000],
)
def test_the_expected_fullest_is_the_mean_over_every_way_the_flows_can_fall(
    flows: int, paths: int
) -> None:
    ways = list(product(range(paths), repeat=flows))

    by_hand = sum(max(way.count(path) for path in range(paths)) for way in ways) / len(ways)

    assert expected_fullest(flows, paths) == pytest.approx(by_hand, rel=1e-9)


@given(st.integers(1, 300), st.integers(1, 64))
def test_the_fullest_lies_between_its_share_and_all_flows(flows: int, paths: int) -> None:
    seen = collisions(flows, paths)

    assert max(1.0, paths / flows) <= seen.fullest_ratio * (1 + 1e-9)
    assert seen.fullest_ratio <= paths * (1 + 1e-9)


@given(st.integers(1, 200), st.integers(2, 32))
def test_one_flow_more_fills_and_one_path_more_empties(flows: int, paths: int) -> None:
    fullest = expected_fullest(flows, paths)

    assert expected_fullest(flows + 1, paths) >= fullest - 1e-9
    assert expected_fullest(flows, paths + 1) <= fullest + 1e-9


def test_the_bound_for_many_flows_is_met_from_below() -> None:
    """Raab and Steger: n / k + sqrt(2 n ln k / k)."""
    for paths in (2, 8, 64):
        n = MOST_EXACT_FLOWS
        bound = n / paths + sqrt(2 * n * log(paths) / paths)

        assert bound * 0.94 < expected_fullest(n, paths) < bound
        assert expected_fullest(n + 1, paths) == pytest.approx(bound, rel=1e-3)


@pytest.mark.parametrize(("flows", "paths"), [(1_500, 100_000), (2_000, 2_000), (20_000, 4_096)])
def test_few_flows_over_many_paths_are_what_throwing_them_comes_to(flows: int, paths: int) -> None:
    """There the bound is too low, and below one flow at last."""
    dice = np.random.default_rng(1)
    fullest = [np.bincount(dice.integers(0, paths, flows)).max() for _ in range(100)]

    assert expected_fullest(flows, paths) == pytest.approx(np.mean(fullest), rel=0.03)


def test_no_flow_and_no_path_are_refused() -> None:
    with pytest.raises(InputError, match="0 flows over 4 paths: expected one at least of each"):
        expected_fullest(0, 4)
    with pytest.raises(InputError, match="4 flows over 0 paths"):
        expected_fullest(4, 0)
