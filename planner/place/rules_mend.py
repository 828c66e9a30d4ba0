"""Exchanges that keep hard rules: two boxes change places, or one moves to a free seat."""

from __future__ import annotations

from math import prod
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.place.question import Question, coarsen, cut_bytes, refine_home
from planner.place.rules_fill import allowed_parts, keeps_on_boxes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.rules_bound import BoundRules

_MET = 1e-9
_TRIES = 20_000  # exchanges looked at, at most
_VAIN_TRIES = 4_000  # looked at in a row without one that helps
_BOXES = 512


def mended(
    question: Question,
    coarse: Question,
    rules: BoundRules,
    tile: Sequence[int],
    home: NDArray[np.int64],
    seed: int,
    ends_s: float,
) -> NDArray[np.int64]:
    """Return *home* or a cheaper seating that keeps the rules.

    Whole axes that *home* keeps together stay together.

    Args:
        question: the grid of ranks.
        coarse: the grid of boxes of *tile*.
        rules: what is to be kept.
        tile: ranks of a box along each axis.
        home: domain of each box.
        seed: of the exchanges tried.
        ends_s: stop when ``time.monotonic()`` is past this [s].
    """
    sides = _whole_sides(coarse, rules, home)
    volume = prod(sides)
    part = coarsen(coarse, sides, [c // volume for c in rules.capacities])
    if part.cells > _BOXES:
        return home
    allowed = allowed_parts(coarse, rules, sides)
    picks = tuple(slice(None, None, a) for a in reversed(sides))
    start = np.ascontiguousarray(home.reshape(tuple(reversed(coarse.sizes)))[picks]).ravel()
    wide = [a * b for a, b in zip(tile, sides, strict=True)]
    random = np.random.default_rng(seed)
    domains = len(part.capacities)
    spare = np.array(part.capacities) - np.bincount(start, minlength=domains)
    best, least, vain = start, cut_bytes(part, start), 0
    for _ in range(_TRIES):
        if (vain := vain + 1) > _VAIN_TRIES or monotonic() > ends_s:
            break
        one, two = int(random.integers(part.cells)), int(random.integers(part.cells + domains))
        moves = two >= part.cells
        target = two - part.cells if moves else int(best[two])
        if target == best[one] or (moves and spare[target] <= 0):
            continue
        if not allowed[one, target] or not (moves or allowed[two, best[one]]):
            continue
        trial = best.copy()
        trial[one] = target
        if not moves:
            trial[two] = best[one]
        cut = cut_bytes(part, trial)
        if cut < least * (1 - _MET) and keeps_on_boxes(question, rules, wide, trial):
            if moves:
                spare[best[one]] += 1
                spare[target] -= 1
            best, least, vain = trial, cut, 0
    return refine_home(coarse, sides, best)


def _whole_sides(coarse: Question, rules: BoundRules, home: NDArray[np.int64]) -> list[int]:
    """Return boxes of whole axes that *home* keeps together and that fit the domains as it does."""
    sides = [1] * len(coarse.sizes)
    grid = home.reshape(tuple(reversed(coarse.sizes)))
    held = np.bincount(home, minlength=len(rules.capacities))
    for axis, n in enumerate(coarse.sizes):
        place = len(coarse.sizes) - 1 - axis
        whole = bool((grid == np.take(grid, [0], axis=place)).all())
        volume = prod(sides) * n
        if whole and not (held % volume).any() and coarse.cells // prod(sides) > n:
            sides[axis] = n
    return sides
