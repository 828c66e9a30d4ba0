"""Sheets dealt out one after another: what is said where every way costs more than the cut."""

from __future__ import annotations

from math import inf

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.place.sweep import Dealing, swept
from planner.place.sweep_states import Rest

DEAR_BYTES = 1e12


class _OneDearCell(Dealing):
    """One cell, for one domain or the other, at more than any cut in hand."""

    steps = cells = 1
    counts = 2
    base_bytes = tolerance_bytes = 0.0

    def first_codes(self) -> NDArray[np.int64]:
        return np.ones(2, dtype=np.int64)

    def costs(
        self, step: int, codes: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        del step
        costs = np.tile([0.0, DEAR_BYTES], (len(codes), 1))
        return costs, np.column_stack([codes, 0 * codes])

    def worth_bytes(self, step: int) -> NDArray[np.float64]:
        del step
        return np.zeros(self.counts)

    def given_bytes(self, step: int) -> float:
        del step
        return 0.0


def test_a_cut_that_nothing_beats_is_proved_whatever_bound_was_known() -> None:
    """The last limit is all that is open, to the last digit."""
    random = np.random.default_rng(11)
    for _ in range(200):
        cut_bytes = float(random.uniform(1.0, 2.0) * 10.0 ** random.integers(-3, 10))
        known_bytes = float(random.random() * cut_bytes)

        found = swept(_OneDearCell(), cut_bytes, known_bytes, 1000, inf)

        assert found.ended
        assert found.held is None
        assert found.bound_bytes == pytest.approx(cut_bytes, rel=1e-9)


def test_what_domains_cost_together_is_given_up_when_the_time_is_up() -> None:
    which = np.array([[0, 1], [1, 0]])
    costs_bytes = np.array([[0.0, 3.0, 5.0], [0.0, 4.0, 6.0]])

    rest = Rest.of(which, costs_bytes, 2, 1000, inf)

    assert rest is not None
    assert rest.least.tolist() == [5.0, 5.0]  # both cells in the first domain: 5, one in each: 7
    assert Rest.of(which, costs_bytes, 2, 1000, -inf) is None
