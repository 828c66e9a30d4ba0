"""The Pareto front against the definition, row by row."""

from __future__ import annotations

import numpy as np
import pytest

from planner.search.pareto import pareto_front


def beats(a: np.ndarray, b: np.ndarray) -> bool:
    return bool((a <= b).all() and (a < b).any())


@pytest.mark.parametrize("respects", [2, 3, 4])
def test_the_front_is_what_nothing_beats(respects: int) -> None:
    rows = np.random.default_rng(respects).integers(0, 6, size=(80, respects)).astype(float)

    front = pareto_front(rows)

    unbeaten = [i for i, row in enumerate(rows) if not any(beats(other, row) for other in rows)]
    assert {tuple(rows[i]) for i in front} == {tuple(rows[i]) for i in unbeaten}
    assert len({tuple(rows[i]) for i in front}) == len(front)
    assert list(rows[front, 0]) == sorted(rows[front, 0])
