"""Local search: better seatings near a given one, never a worse one.

Passes after Fiduccia and Mattheyses (DAC 1982): swap the two cells that save most, or cost least,
lock them, go on, and keep the best state seen on the way; so a pass climbs out of shallow valleys.
A spare seat is a cell that pays nothing, so a move to a free seat is a swap too. The same passes
run on whole boxes of cells first, wherever the seating keeps boxes together, and then on cells.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.clock import over
from planner.place.moves import Moves
from planner.place.question import coarsen, cut_bytes, refine_home
from planner.place.tiles import divisors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.question import Question

_TABLE_LIMIT = 2_000_000  # cells x domains of a level's table of gains; larger levels are skipped
_WORK = 16_000_000  # steps x cells x domains unless told otherwise
_FEWEST_STEPS, _MOST_STEPS = 64, 1000
_PATIENCE = 24  # swaps in a row that a pass may go without a new best
_SHAKES = 12  # times in a row that a shaken seating may come back no better
_ROUNDING = 1e-12


def improved(
    question: Question, home: NDArray[np.int64], *, steps: int | None = None, seed: int = 0
) -> NDArray[np.int64]:
    """Return a seating that cuts no more than *home*, often less.

    Args:
        question: the grid and its charges.
        home: domain of each cell, within capacities, shape [cells].
        steps: swaps tried at most, over all levels [1]; left out, as many as the size of the
            question allows in a fraction of a second. The clock decides at the run's end alone.
        seed: of the shakes between passes.

    >>> from planner.place.question import Charge, Kind, Question
    >>> lines = Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=1.0)
    >>> question = Question(sizes=(2, 2), charges=(lines,), capacities=(2, 2))
    >>> improved(question, np.array([0, 1, 0, 1])).tolist()
    [1, 1, 0, 0]
    """
    if steps is None:
        table = question.cells * len(question.capacities)
        steps = min(max(_WORK // table, _FEWEST_STEPS), _MOST_STEPS)
    random = np.random.default_rng(seed)
    best = np.asarray(home, dtype=np.int64)
    levels = _levels(question, best)
    while levels:
        tile = levels.pop(0)
        volume = prod(tile)
        coarse = coarsen(question, tile, [c // volume for c in question.capacities])
        if coarse.cells < 2 or coarse.cells * len(coarse.capacities) > _TABLE_LIMIT:
            continue
        share = steps // 2 if levels else steps
        found, used = _searched(coarse, _coarse_home(question, tile, best), share, random)
        steps -= used
        best = refine_home(question, tile, found)
        levels = [finer for finer in levels if _keeps(question, finer, best)]
    return best if cut_bytes(question, best) < cut_bytes(question, home) else home.copy()


def _levels(question: Question, home: NDArray[np.int64]) -> list[tuple[int, ...]]:
    """Return the boxes that *home* keeps together, the largest first, and the single cell."""
    count = len(question.sizes)
    boxes = {(1,) * count}
    for first in range(count):
        sides = [1] * count
        for axis in (first, *(i for i in range(count) if i != first)):
            for side in reversed(divisors(question.sizes[axis])):
                wider = (*sides[:axis], side, *sides[axis + 1 :])
                if _keeps(question, wider, home):
                    sides[axis] = side
                    break
        boxes.add(tuple(sides))
        alone = [1] * count
        alone[first] = question.sizes[first]
        if _keeps(question, alone, home):
            boxes.add(tuple(alone))
    return sorted(boxes, key=lambda sides: (-prod(sides), sides))


def _coarse_home(
    question: Question, tile: Sequence[int], home: NDArray[np.int64]
) -> NDArray[np.int64]:
    grid = home.reshape(tuple(reversed(question.sizes)))
    picked = grid[tuple(slice(None, None, side) for side in reversed(tile))]
    return np.ascontiguousarray(picked.ravel())


def _keeps(question: Question, tile: Sequence[int], home: NDArray[np.int64]) -> bool:
    """Return whether every box of *tile* cells sits in one domain."""
    return bool((refine_home(question, tile, _coarse_home(question, tile, home)) == home).all())


def _searched(
    question: Question, home: NDArray[np.int64], steps: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], int]:
    """Return (the best seating found, swaps tried): passes, then shakes while they help."""
    moves = Moves(question, home)
    _, left = _descended(moves, steps)
    best = moves.home.copy()
    scale = max(cut_bytes(question, home[: question.cells]), 1e-300)
    futile = 0
    while left > 0 and futile < _SHAKES and not over():
        start = moves.home.copy()
        shaken = _shaken(moves, random, 2 + futile % 3)
        gain, left = _descended(moves, left)
        if shaken + gain < -scale * _ROUNDING:
            best, futile = moves.home.copy(), 0
            continue
        futile += 1
        if shaken + gain > scale * _ROUNDING:
            moves.restore(start)
    return best[: question.cells], steps - left


def _shaken(moves: Moves, random: np.random.Generator, swaps: int) -> float:
    """Swap a few cells at random; return what that costs more [bytes]."""
    cost = 0.0
    for _ in range(swaps):
        one = int(random.integers(moves.cells))
        others = np.flatnonzero(moves.inner != moves.inner[one])
        if len(others):
            cost += moves.swap(one, int(random.choice(others)))
    return cost


def _descended(moves: Moves, steps: int) -> tuple[float, int]:
    """Run passes until one brings nothing; return (cost added, steps left)."""
    total = 0.0
    while steps > 0 and not over():
        gain, used = _passed(moves, steps)
        steps -= used
        if gain >= 0.0:
            break
        total += gain
    return total, steps


def _passed(moves: Moves, steps: int) -> tuple[float, int]:
    """Swap and lock until patience or cells run out, then go back to the best state.

    Return (cost added, swaps tried).
    """
    start = best = moves.home.copy()
    cost = best_cost = 0.0
    scale = float(np.abs(moves.prices).max(initial=0.0))
    since = used = 0
    while used < steps and since < _PATIENCE and not over():
        cost_of_swap = moves.best_swap()
        if cost_of_swap is None:
            break
        used += 1
        since += 1
        cost += cost_of_swap
        if cost < best_cost - scale * _ROUNDING:
            best, best_cost, since = moves.home.copy(), cost, 0
    if since:
        moves.restore(best if best_cost < 0.0 else start)
    else:
        moves.unlock()
    return best_cost, max(used, 1)
