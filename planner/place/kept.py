"""What every seating keeps whole that cuts no more than ours: axes, and with them whole boxes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bounds, lower_bound, rebate_bytes, split_bound
from planner.place.merge import least_split
from planner.place.question import Question, coarsen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.place.tree import Tree

STRICT = 1e-6  # relative; what parting a line must cost above the cut in hand
NOISE_BYTES = 1e-3  # the same, where the cut is nought
_LARGEST_TRIED = 128  # cells of a domain up to which every holding is bounded


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeBoxes:
    """The question of an outer tier for all seatings that are as good at the tiers inside it.

    Args:
        sides: of the box that no such seating parts.
        question: seats whole boxes; its optimum bounds the tier's cut from below.
    """

    sides: tuple[int, ...]
    question: Question


def holdings(question: Question) -> int:
    """Return how many sizes of a domain's content a bound must look at: its work.

    One for each size of domain where every seat is taken, all that the spare seats allow if not.

    >>> holdings(Question(sizes=(10,), charges=(), capacities=(6, 7)))
    5
    """
    spare = sum(question.capacities) - question.cells
    sizes = set(question.capacities)
    return len({held for size in sizes for held in range(max(0, size - spare), size + 1)})


def whole_boxes(
    questions: Sequence[Question], tree: Tree, cuts_bytes: Sequence[float], asked: int, tier: int
) -> WholeBoxes | None:
    """Return what is left of the question of *tier*, outside *asked*; None if nothing stays whole.

    Args:
        questions: of all tiers, innermost first.
        tree: the domains.
        cuts_bytes: of the seating in hand, by tier [bytes].
        asked: the first tier of the order.
        tier: the tier whose cut is asked about.

    A domain holds ⌊C / v⌋ boxes of v cells at most, and an outer one no more than its domains.
    """
    kept: set[int] = set()
    volume, room = 1, np.array(tree.capacities[asked])
    sides = [1] * len(questions[asked].sizes)
    for before in range(asked, tier):
        kept |= kept_axes(questions[before], cuts_bytes[before], kept)
        sides = [n if axis in kept else 1 for axis, n in enumerate(questions[before].sizes)]
        room = room // (prod(sides) // volume)
        volume = prod(sides)
        outer = len(tree.capacities[before + 1])
        room = np.bincount(tree.parents[before], weights=room, minlength=outer).astype(np.int64)
    if volume == 1 or int(room.sum()) * volume < questions[tier].cells:
        return None
    return WholeBoxes(sides=tuple(sides), question=coarsen(questions[tier], sides, room.tolist()))


def kept_axes(question: Question, cut_bytes: float, known: set[int]) -> set[int]:
    """Return the axes whose every line lies in one domain in all seatings that cut no more.

    Axes *known* to be are left out. A seating that parts a line pays one split group of every
    charge along the axis besides the bound of the others, and at least ``split_bound``:
    *Splitting is dear* in ``FORMULATION.md``.
    """
    kept = set()
    for axis, size in enumerate(question.sizes):
        along = [charge for charge in question.charges if axis in charge.axes]
        if size == 1 or not along or axis in known or size > max(question.capacities):
            continue
        others = tuple(charge for charge in question.charges if axis not in charge.axes)
        split = lower_bound(replace(question, charges=others)) + sum(
            least_split(question, charge) for charge in along
        )
        enough = cut_bytes * (1 + STRICT) + NOISE_BYTES
        if (
            max(split, split_bound(question, axis)) > enough
            or _parted_bound(question, axis) > enough
        ):
            kept.add(axis)
    return kept


def _parted_bound(question: Question, axis: int) -> float:
    """Return what a seating that parts a line along *axis* cuts at least, with spare seats [bytes].

    Σ_s f(c_s) >= λ N + Σ_s min_c (f(c) - λ c) for every price λ of a cell; the two domains that
    hold a part of the line pay min_c (f_parted(c) - λ c) instead. So two domains that share what
    one could hold pay for the room they waste. 0 where domains are too large to try every c.
    """
    if sum(question.capacities) == question.cells:
        return 0.0  # ``split_bound`` says as much
    sizes = Counter(question.capacities)
    largest = min(max(sizes), question.cells)
    if largest > _LARGEST_TRIED or len(question.capacities) < 2:
        return 0.0
    cells = np.arange(largest + 1)
    free = np.array(domain_bounds(question, range(largest + 1), sharp=False))
    parted = np.array(domain_bounds(question, range(largest + 1), sharp=False, split_axis=axis))
    parted[0] = np.inf
    best = 0.0
    for capacity in sizes:
        price = free[min(capacity, largest)] / min(capacity, largest)
        left = np.minimum.accumulate(free - price * cells)
        apart = np.minimum.accumulate(parted - price * cells)
        at = {c: min(c, largest) for c in sizes}
        total = price * question.cells + sum(times * left[at[c]] for c, times in sizes.items())
        extra = sorted(
            apart[at[c]] - left[at[c]] for c, times in sizes.items() for _ in range(min(times, 2))
        )
        best = max(best, float(total + sum(extra[:2])) - rebate_bytes(question))
    return best
