"""Random questions with families along any axes, small enough to enumerate their seatings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from planner.place.question import Charge, Kind, Question
from tests.oracles import random_small_shape, seatings_with_names

SEATINGS_MOST = 60_000
PIPELINES = ((2, 2, 3), (3, 1, 3), (4, 1, 3), (2, 1, 5), (2, 1, 6), (2, 3, 2), (3, 2, 2), (4, 1, 2))


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


def small_pipelines(seeds: range) -> Iterator[Question]:
    """Yield random questions with a pipeline along the last axis, small enough to enumerate."""
    for seed in seeds:
        random = np.random.default_rng(910_000 + seed)
        sizes = PIPELINES[random.integers(len(PIPELINES))]
        capacities: tuple[int, ...] = (prod(sizes),)
        while len(capacities) < 2 or seatings_with_names(prod(sizes), capacities) > SEATINGS_MOST:
            parts = random.integers(1, 7, size=int(random.integers(2, 6)))
            capacities = tuple(sorted(parts.tolist(), reverse=True))
            if sum(capacities) < prod(sizes) or sum(capacities) > prod(sizes) + 2:
                capacities = (prod(sizes),)
        kinds = [Kind.RING, Kind.RING, Kind.TOUCH, Kind.PAIRS]
        charges = [
            Charge(
                axes=(0,),
                kind=kinds[random.integers(4)],
                weight_bytes=float(random.integers(1, 20)),
            ),
            Charge(axes=(0, 1), kind=Kind.TOUCH, weight_bytes=float(random.integers(1, 9))),
            Charge(axes=(2,), kind=Kind.CHAIN, weight_bytes=float(random.integers(1, 9))),
        ]
        if random.random() < 0.4:
            charges.append(
                Charge(axes=(2,), kind=Kind.ENDS, weight_bytes=float(random.integers(1, 9)))
            )
        yield Question(sizes=sizes, charges=tuple(charges), capacities=capacities)


def ways_to_hold(question: Question, sheet_cells: int) -> Iterator[np.ndarray]:
    """Yield every way to hold cells of sheets of *sheet_cells*, shape [domains, sheets]."""
    full = sum(question.capacities) == question.cells

    def sheet(left: tuple[int, ...], cells: int) -> Iterator[tuple[int, ...]]:
        if not left:
            if not cells:
                yield ()
            return
        for b in range(min(left[0], cells) + 1):
            for rest in sheet(left[1:], cells - b):
                yield (b, *rest)

    def sheets(left: tuple[int, ...], count: int) -> Iterator[list[tuple[int, ...]]]:
        if not count:
            if not full or not any(left):
                yield []
            return
        for taken in sheet(left, sheet_cells):
            after = tuple(a - b for a, b in zip(left, taken, strict=True))
            for rest in sheets(after, count - 1):
                yield [taken, *rest]

    for columns in sheets(question.capacities, question.cells // sheet_cells):
        yield np.array(columns).T
