"""What a solver is believed on a choice of many unknowns, of which few rules speak."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.sparse import csr_array

from planner.place.whole_numbers import Effort, Model, least_choice

IDLE = 600  # unknowns that no rule speaks of and that cost something: they stay out
MANY = Effort(listed=1, nodes=10**6)


def _split(rules: int, unknowns: int) -> tuple[Model, float]:
    """Return a market split: sums of some weights that must be met, and the cost of one way to."""
    random = np.random.default_rng(1)
    weights = random.integers(1, 100, size=(rules, unknowns))
    chosen = random.integers(0, 2, size=unknowns)
    sums = (weights @ chosen).astype(float)
    cost = np.concatenate([random.random(unknowns) / unknowns, np.full(IDLE, 0.001)])
    model = Model(
        cost_bytes=cost,
        whole=np.ones(unknowns + IDLE, dtype=bool),
        highest=np.ones(unknowns + IDLE),
        rows=csr_array(np.hstack([weights, np.zeros((rules, IDLE))])),
        least=sums,
        most=sums,
    )
    return model, float(cost[:unknowns] @ chosen)


def test_a_choice_that_ends_costs_the_least_of_all_there_are() -> None:
    model, _ = _split(1, 12)
    ways = np.array(list(product((0, 1), repeat=12)))
    met = ways[ways @ model.rows.toarray()[0, :12] == model.least[0]]

    chosen = least_choice(model, 1.0, 2.0, MANY)

    assert chosen.ended
    assert chosen.times is not None
    least = (met @ model.cost_bytes[:12]).min()
    assert chosen.least == pytest.approx(least, abs=1e-6)
    assert model.cost_bytes @ chosen.times == pytest.approx(least, abs=1e-6)


def test_a_choice_that_is_cut_short_has_not_ended_and_its_bound_is_no_more_than_a_choice() -> None:
    model, cost = _split(5, 40)

    chosen = least_choice(model, 1.0, 0.4, MANY)

    assert not chosen.ended
    assert 0 < chosen.least <= cost
