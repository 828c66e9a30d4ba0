"""Random questions with families along any axes, small enough to enumerate their seatings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from planner.place.question import Charge, Kind, Question
from tests.oracles import random_small_shape, seatings_with_names

SEATINGS_MOST = 60_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """What random questions are drawn from.

    Args:
        first_seed: of the question numbered 0.
        grids: sizes of the axes.
        kinds: of the charges; one that is listed twice comes twice as often.
        spare_share: questions that may have one or two seats to spare, of all [1].
    """

    first_seed: int
    grids: Sequence[tuple[int, ...]]
    kinds: Sequence[Kind]
    spare_share: float

    def questions(self, numbers: range) -> Iterator[Question]:
        """Yield the questions of these numbers."""
        for number in numbers:
            random = np.random.default_rng(self.first_seed + number)
            sizes = self.grids[int(random.integers(len(self.grids)))]
            spare = int(random.integers(3)) if random.random() < self.spare_share else 0
            capacities = _capacities(random, prod(sizes), spare)
            charges: dict[tuple[tuple[int, ...], Kind], Charge] = {}
            for _ in range(int(random.integers(2, 6))):
                kind = self.kinds[int(random.integers(len(self.kinds)))]
                count = 1
                if kind not in (Kind.CHAIN, Kind.ENDS):
                    count = int(random.integers(1, len(sizes) + 1))
                axes = tuple(sorted(random.choice(len(sizes), size=count, replace=False).tolist()))
                charges[axes, kind] = Charge(
                    axes=axes, kind=kind, weight_bytes=float(random.integers(1, 20))
                )
            yield Question(sizes=sizes, charges=tuple(charges.values()), capacities=capacities)


def _capacities(random: np.random.Generator, cells: int, spare: int) -> tuple[int, ...]:
    capacities: tuple[int, ...] = (cells,)
    while len(capacities) < 2 or seatings_with_names(cells, capacities) > SEATINGS_MOST:
        parts = random.integers(1, 7, size=int(random.integers(2, 6)))
        capacities = tuple(sorted(parts.tolist(), reverse=True))
        if sum(capacities) != cells + spare:
            capacities = (cells,)
    return capacities


def small_question(seed: int) -> Question:
    """Return a random question with families of every kind, small enough for brute force."""
    shape = random_small_shape(np.random.default_rng(seed))
    return Question(
        sizes=shape["sizes"],
        charges=tuple(Charge(axes=a, kind=Kind(k), weight_bytes=w) for a, k, w in shape["charges"]),
        capacities=shape["capacities"],
    )
