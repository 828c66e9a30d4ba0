"""What every seating keeps whole that cuts no more than ours: axes, and with them whole boxes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import lower_bound, split_bound
from planner.place.question import Kind, Question, coarsen, held_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.place.question import Charge
    from planner.place.tree import Tree

_STRICT = 1e-6  # relative; what parting a line must cost above the cut in hand
_NOISE_BYTES = 1e-3  # the same, where the cut is nought


@dataclass(frozen=True, slots=True, kw_only=True)
class WholeBoxes:
    """The question of an outer tier for all seatings that are as good at the tiers inside it.

    Args:
        sides: of the box that no such seating parts.
        question: seats whole boxes; its optimum bounds the tier's cut from below.
    """

    sides: tuple[int, ...]
    question: Question


def whole_boxes(
    questions: Sequence[Question], tree: Tree, cuts: Sequence[float], asked: int, tier: int
) -> WholeBoxes | None:
    """Return what is left of the question of *tier*, outside *asked*; None if nothing stays whole.

    Args:
        questions: of all tiers, innermost first.
        tree: the domains.
        cuts: of the seating in hand at the tiers from *asked* up to *tier* [bytes].
        asked: the first tier of the order.
        tier: the tier whose cut is asked about.

    A domain holds ⌊C / v⌋ boxes of v cells at most, and an outer one no more than its domains.
    """
    kept: set[int] = set()
    volume, room = 1, np.array(tree.capacities[asked])
    sides = [1] * len(questions[asked].sizes)
    for before in range(asked, tier):
        kept |= kept_axes(questions[before], cuts[before], kept)
        sides = [n if axis in kept else 1 for axis, n in enumerate(questions[before].sizes)]
        room = room // (prod(sides) // volume)
        volume = prod(sides)
        outer = len(tree.capacities[before + 1])
        room = np.bincount(tree.parents[before], weights=room, minlength=outer).astype(np.int64)
    if volume == 1 or int(room.sum()) * volume < questions[tier].cells:
        return None
    return WholeBoxes(sides=tuple(sides), question=coarsen(questions[tier], sides, room.tolist()))


def kept_axes(question: Question, cut: float, known: set[int]) -> set[int]:
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
            charge.weight_bytes * _least_split_units(charge, question.group_size(charge.axes))
            for charge in along
        )
        if max(split, split_bound(question, axis)) > cut * (1 + _STRICT) + _NOISE_BYTES:
            kept.add(axis)
    return kept


def _least_split_units(charge: Charge, size: int) -> float:
    """Return the units that a group of *size* members pays at least when it is parted."""
    if charge.kind in (Kind.PAIRS, Kind.COPIES):  # concave: one member apart is the cheapest
        units = held_units(charge, size)
        return units[1] + units[size - 1]
    return {Kind.TOUCH: 1.0, Kind.CHAIN: 1.0, Kind.RING: 2.0, Kind.ENDS: 0.0}[charge.kind]
