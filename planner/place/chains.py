"""Chains of nested tiles: one box for each tier, each box filled by boxes of the tier inside.

Boxes b | a of neighbouring tiers nest when the sides of one divide those of the other. The tiers
form a path, so the boxes that still fit some box of every other tier are found by sifting along
it, and both the best chain in order and the least weighted sum are exact, without a solver.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.place.tiles import box_cut_bytes, boxes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.question import Question

_TIED = 1e-9  # relative; two orders of the same floating-point sum
_BLOCK = 4_000_000  # pairs of boxes times axes that are compared at once


def ordered_chain(
    question: Question, volumes: Sequence[int], order: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """Return the box of each tier: least at the first tier of *order*, then at the next.

    Args:
        question: the grid and its charges.
        volumes: cells that a domain of each tier holds, innermost first; each divides the next,
            and the last divides the grid [1].
        order: tiers by importance; each but the first is next to those before it.

    Of chains that cut the same everywhere, the first in lexicographic order is taken.

    >>> from planner.place.question import Charge, Kind, Question
    >>> lines = [Charge(axes=(i,), kind=Kind.TOUCH, weight_bytes=w) for i, w in enumerate((4., 1.))]
    >>> question = Question(sizes=(4, 4), charges=tuple(lines), capacities=(16,))
    >>> ordered_chain(question, (2, 8), (1, 0))
    ((2, 1), (4, 2))
    """
    sides = [boxes(question.sizes, volume) for volume in volumes]
    cuts = [box_cut_bytes(question, found) for found in sides]
    kept = [np.arange(len(found)) for found in sides]
    low = high = order[0]
    for tier in order:
        if tier < low:
            kept[tier] = _fitting(sides[tier], sides[low][kept[low]], inner=True)
            low = tier
        elif tier > high:
            kept[tier] = _fitting(sides[tier], sides[high][kept[high]], inner=False)
            high = tier
        kept[tier] = _cheapest(cuts[tier], kept[tier])
        _sift(sides, kept, low, high)
    return _first_chain(sides, kept, order)


def weighted_chain(
    question: Question, volumes: Sequence[int], weights: Sequence[float]
) -> tuple[tuple[int, ...], ...]:
    """Return the box of each tier so that the sum of weights[t] x cut at tier t is least.

    Arguments as in ``ordered_chain``; *weights* are at least 0.
    """
    sides = [boxes(question.sizes, volume) for volume in volumes]
    total = weights[0] * box_cut_bytes(question, sides[0])
    came_from: list[NDArray[np.int64]] = []
    for tier in range(1, len(volumes)):
        best = np.array(
            [_argmin(np.where(fits, total, np.inf)) for fits in _fits(sides[tier - 1], sides[tier])]
        )
        came_from.append(best)
        total = total[best] + weights[tier] * box_cut_bytes(question, sides[tier])
    at = int(np.argmin(total))
    chain = [tuple(sides[-1][at].tolist())]
    for tier in range(len(volumes) - 2, -1, -1):
        at = int(came_from[tier][at])
        chain.append(tuple(sides[tier][at].tolist()))
    return tuple(reversed(chain))


def _argmin(values: NDArray[np.float64]) -> int:
    return int(np.argmin(values))


def _fits(inner: NDArray[np.int64], outer: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each inner box divides each outer one, shape [outer, inner]."""
    step = max(1, _BLOCK // max(1, inner.size))
    return np.concatenate(
        [
            (outer[i : i + step, None, :] % inner[None, :, :] == 0).all(axis=2)
            for i in range(0, len(outer), step)
        ]
    )


def _fitting(
    candidates: NDArray[np.int64], neighbours: NDArray[np.int64], *, inner: bool
) -> NDArray[np.int64]:
    """Return the candidates that nest with one neighbour at least; *inner*: inside it."""
    if inner:
        return np.flatnonzero(_fits(candidates, neighbours).any(axis=0))
    return np.flatnonzero(_fits(neighbours, candidates).any(axis=1))


def _cheapest(cuts: NDArray[np.float64], kept: NDArray[np.int64]) -> NDArray[np.int64]:
    least = cuts[kept].min()
    tied: NDArray[np.int64] = kept[cuts[kept] <= least * (1 + _TIED)]
    return tied


def _sift(
    sides: Sequence[NDArray[np.int64]], kept: list[NDArray[np.int64]], low: int, high: int
) -> None:
    """Leave only boxes that have a neighbour at every tier from *low* to *high*, both ways."""
    for tier in range(low + 1, high + 1):
        mine = sides[tier][kept[tier]]
        kept[tier] = kept[tier][_fitting(mine, sides[tier - 1][kept[tier - 1]], inner=False)]
    for tier in range(high - 1, low - 1, -1):
        mine = sides[tier][kept[tier]]
        kept[tier] = kept[tier][_fitting(mine, sides[tier + 1][kept[tier + 1]], inner=True)]


def _first_chain(
    sides: Sequence[NDArray[np.int64]], kept: list[NDArray[np.int64]], order: Sequence[int]
) -> tuple[tuple[int, ...], ...]:
    """Return one chain of what was kept; after sifting every box is in some chain."""
    for tier in order:
        kept[tier] = kept[tier][:1]
        _sift(sides, kept, 0, len(sides) - 1)
    return tuple(tuple(sides[tier][kept[tier][0]].tolist()) for tier in range(len(sides)))
