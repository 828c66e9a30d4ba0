"""Inner tiers whose outer domains hold one box each, against every nested seating there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest

from planner.place.question import Charge, Kind
from planner.place.tree import Tree
from tests.oracle.test_place_tiers import Case, faults_of, seated

# sizes of the grid, its first axis a box; inner domains of each outer one
SHAPES = (
    ((4, 2), ((2, 2), (2, 2))), ((2, 2, 2), ((1, 1), (2,), (1, 1), (1, 1))),
    ((3, 2), ((2, 1), (1, 1, 1))), ((4, 2), ((3, 1), (2, 2))), ((3, 2), ((2, 1), (2, 2))),
    ((2, 3), ((1, 1), (1, 1), (2,))), ((4, 2), ((2, 2), (4,))),
)  # fmt: skip


def random_case(seed: int) -> Case:
    """Return a grid whose first axis is dear to part, in outer domains of one line each."""
    random = np.random.default_rng(9_000_000 + seed)
    sizes, inner = SHAPES[random.integers(len(SHAPES))]
    kinds = [
        Kind(str(kind)) for kind in random.choice(["touch", "ring", "pairs", "pairs", "chain"], 3)
    ]
    charges: dict[tuple[tuple[int, ...], Kind], float] = {((0,), kinds[0]): random.uniform(1, 3)}
    for axis in range(1, len(sizes)):
        charges[(axis,), kinds[axis]] = random.uniform(0.2, 4)
    if random.random() < 0.5:
        charges[(0, 1), Kind.TOUCH] = random.uniform(0.1, 2)
    capacities = (
        tuple(seats for outer in inner for seats in outer),
        tuple(sum(outer) for outer in inner),
        (sum(sum(outer) for outer in inner),),
    )
    return Case(
        sizes=sizes,
        charges=tuple(Charge(axes=a, kind=k, weight_bytes=w) for (a, k), w in charges.items()),
        tree=Tree(
            names=("inner", "outer", "cluster"),
            capacities=capacities,
            parents=(
                np.repeat(np.arange(len(inner)), [len(outer) for outer in inner]),
                np.zeros(len(inner), np.int64),
            ),
            uplinks_bytes_per_s=tuple((1.0,) * len(c) for c in capacities),
        ),
        asked=1,
        weights=None,
    )


def wrong_seatings(seeds: Iterable[int], told: Counter[str]) -> list[str]:
    wrong = []
    for seed in seeds:
        case = random_case(seed)
        wrong += [f"seed {seed}: {f}; {case}" for f in faults_of(case, seated(case), told)]
    return wrong


def test_inner_tiers_are_bounded_by_what_boxes_cut_inside() -> None:
    told: Counter[str] = Counter()

    assert wrong_seatings(range(200), told) == []
    assert told["inside"] > 15
    assert told["proved"] > 0.85 * told["tiers"]


@pytest.mark.nightly
def test_in_thousands_more_inner_tiers_are_so_bounded() -> None:
    assert wrong_seatings(range(200, 2500), Counter()) == []
