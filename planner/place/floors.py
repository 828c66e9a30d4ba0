"""What domains of many sizes pay at least, all at once: quick, and rough.

The lines under the families' tables at one number of cells serve all others: how far a table is
above its line's slope is read off each, and the tangent plane at one cheapest real box lies below
the price of every other box. So a few boxes are worked out, not one for each number of cells.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.place.finner import log_touches
from planner.place.spread import costs_of, terms
from planner.place.touch_lines import ROUNDING, hull, priced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.question import Question
    from planner.place.spread import Share

_BOXES = 5  # numbers of cells whose cheapest box is worked out
_TABLE_MOST = 2_000_000  # numbers of cells x groups of a family that are looked at at a time


def floors(
    question: Question,
    held: NDArray[np.int64],
    shares: Sequence[Share] = (),
    split_axis: int | None = None,
) -> NDArray[np.float64]:
    """Return bytes that a domain of so many cells pays at least, shape [numbers of cells] [bytes].

    No more than ``loose_bound`` may say of each.

    Args:
        question: the grid and its charges.
        held: numbers of cells, rising and above 0, shape [numbers of cells].
        shares: priced rules.
        split_axis: the domain is known to hold a part, not all, of some line along it.
    """
    families = terms(question, shares)
    if not families:
        return np.zeros(len(held))
    most = max(1, _TABLE_MOST // max(term.groups + 1 for term in families))
    if len(held) > most:
        return np.concatenate(
            [
                floors(question, held[k : k + most], shares, split_axis)
                for k in range(0, len(held), most)
            ]
        )
    live = [a for a, n in enumerate(question.sizes) if n > 1]
    index = {a: k for k, a in enumerate(live)}
    sizes = np.array([question.sizes[a] for a in live])
    sets = tuple(tuple(index[a] for a in term.axes if a in index) for term in families)
    costs = [costs_of(term, held, split_axis) for term in families]
    best: NDArray[np.float64] = np.sum([cost.min(axis=1) for cost in costs], axis=0)
    rows = np.flatnonzero(np.isfinite(best))
    picked = np.unique(np.linspace(0, len(rows) - 1, min(_BOXES, len(rows))).astype(int))
    for k in rows[picked].tolist():
        lines = priced(sizes, sets, [hull(cost[k]) for cost in costs], int(held[k]))
        constants = [
            (cost[rows] - price * np.arange(cost.shape[1])).min(axis=1)
            for cost, price in zip(costs, lines.prices_bytes.tolist(), strict=True)
        ]
        box = _tangent(sizes, sets, lines.prices_bytes, lines.box, np.log(held[rows]))
        floor = box + np.sum(constants, axis=0)
        floor -= ROUNDING * (np.abs(floor) + np.abs(constants).sum(axis=0))
        best[rows] = np.maximum(best[rows], floor)
    return best


def taken_out_bytes(question: Question, shares: Sequence[Share], most: int) -> NDArray[np.float64]:
    """Return what a domain may pay more at most with 0, 1, … cells fewer, well chosen [bytes].

    So one of more cells pays no less than one of fewer less that. Groups of the family that would
    cost most are emptied one after the other: only one of them is parted that was not, and what it
    costs at most. In another family every cell may come from another group.

    Args:
        question: the grid and its charges.
        shares: priced rules.
        most: cells taken out at most [1].

    Returns:
        Array [most + 1].
    """
    each, once = [], []
    for term in terms(question, shares):
        part = np.array(term.part_bytes or (0.0, 0.0))
        each.append(term.ring_bytes + max(0.0, float((part[:-1] - part[1:]).max())))
        once.append(term.ring_bytes + float(part.max()))
    pieces = sum(price for term in terms(question, shares) for _, price in term.shares)
    cells = np.arange(most + 1)
    together = sum(each) + pieces
    ways = [cells * together]
    ways += [cells * (together - a) + b * (cells > 0) for a, b in zip(each, once, strict=True)]
    least: NDArray[np.float64] = np.min(ways, axis=0)
    return least


def _tangent(
    sizes: NDArray[np.int64],
    sets: tuple[tuple[int, ...], ...],
    prices_bytes: NDArray[np.float64],
    box: NDArray[np.float64],
    logs_held: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return what real boxes of these volumes pay at least, by the tangent plane at *box*.

    Args:
        sizes: axis sizes [1].
        sets: axes of the families.
        prices_bytes: for each group touched, of each family [bytes].
        box: logarithms of a box's sides.
        logs_held: logarithms of the volumes.
    """
    paid = prices_bytes * np.exp(log_touches(sets, box))
    slopes = np.array(
        [sum(paid[s] for s in range(len(sets)) if i not in sets[s]) for i in range(len(sizes))]
    )
    left, least = logs_held.copy(), np.zeros(len(logs_held))
    for i in np.argsort(slopes, kind="stable"):
        part = np.minimum(left, float(np.log(sizes[i])))
        least += slopes[i] * part
        left -= part
    value = float(paid.sum()) - float(slopes @ box) + least
    scale = float(paid.sum()) + np.abs(least) + abs(float(slopes @ box))
    tangent: NDArray[np.float64] = value - ROUNDING * 10 * scale
    return tangent
