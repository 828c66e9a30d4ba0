"""What every seating keeps in one pipeline stage that cuts no more than ours: inner domains.

Where an inner domain cannot reach into two stages without cutting more, outer domains, which are
unions of inner ones, hold whole numbers of them in every stage. Then boxes of one inner domain each
are the cells of an outer tier's question. Proof: ``FORMULATION.md``, *Tiers*.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, inf, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bound, rebate_bytes
from planner.place.kept import NOISE_BYTES, STRICT, WholeBoxes, whole_boxes
from planner.place.question import Kind, Question, coarsen
from planner.place.spread import tables
from planner.place.touch_search import least_cost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.place.tree import Tree


@dataclass(frozen=True, slots=True, kw_only=True)
class _Staged:
    """A grid whose charges are one pipeline's and reductions over all of a stage.

    Args:
        axis: the axis of the pipeline.
        inside: the axes of a stage, those of one cell left out.
    """

    axis: int
    inside: tuple[int, ...]


def stage_boxes(
    questions: Sequence[Question],
    tree: Tree,
    cuts_bytes: Sequence[float],
    asked: int,
    tier: int,
) -> WholeBoxes | None:
    """Return the question of *tier* for boxes that fill a domain of a tier inside it; None if none.

    Its optimum is no more than what *tier* cuts in any seating that cuts no more than ours at the
    tiers from *asked* up to it: there every domain of the inner tier lies in one pipeline stage.

    Args:
        questions: of all tiers, innermost first.
        tree: the domains.
        cuts_bytes: of the seating in hand, by tier [bytes].
        asked: the first tier of the order.
        tier: the tier whose cut is asked about.
    """
    for before in range(tier - 1, asked - 1, -1):
        question = questions[before]
        if len(tree.capacities[before]) < 2 or not tree.regular(before, question.cells):
            continue
        whole = whole_boxes(questions, tree, cuts_bytes, asked, before + 1)
        sides = (1,) * len(question.sizes) if whole is None else whole.sides
        held, rest = divmod(tree.capacities[before][0], prod(sides))
        if rest or held == 1:
            continue
        grid = coarsen(question, sides, (held,) * len(question.capacities))
        cut = _staged(grid)
        if cut is None or not _in_one_stage(grid, cut, held, cuts_bytes[before]):
            continue
        box = _box(grid, cut, held)
        if box is None:
            continue
        sides = tuple(side * of for side, of in zip(sides, box, strict=True))
        inner = tree.outward(np.arange(len(tree.capacities[before])), before, tier)
        counts = np.bincount(inner, minlength=len(tree.capacities[tier]))
        outer = coarsen(questions[tier], sides, counts.tolist())
        return WholeBoxes(sides=sides, question=outer)
    return None


def _staged(question: Question) -> _Staged | None:
    """Return how *question* is cut into stages; None if its charges do not allow it."""
    live = [axis for axis, size in enumerate(question.sizes) if size > 1]
    chains = {c.axes for c in question.charges if c.kind is Kind.CHAIN and len(c.axes) == 1}
    for (axis,) in sorted(chains):
        inside = tuple(other for other in live if other != axis)
        allowed = {(inside, Kind.TOUCH), ((axis,), Kind.CHAIN)}
        if inside and {(_live(c.axes, live), c.kind) for c in question.charges} <= allowed:
            return _Staged(axis=axis, inside=inside)
    return None


def _live(axes: Sequence[int], live: Sequence[int]) -> tuple[int, ...]:
    return tuple(axis for axis in axes if axis in live)


def _in_one_stage(question: Question, cut: _Staged, held: int, cut_bytes: float) -> bool:
    """Return whether every seating that cuts no more keeps each domain in one stage.

    One domain that reaches into a second stage pays the least of all vectors with two touches or
    more of a stage's reduction; all others pay their bound.
    """
    found = tables(question, held)
    families = tuple(term.axes for term in found.terms)
    costs = [
        np.where(np.arange(len(paid)) > 1, paid, inf)
        if _live(axes, cut.inside) == cut.inside
        else paid
        for axes, paid in zip(families, found.cost_bytes, strict=True)
    ]
    two = least_cost(question.sizes, families, costs, held)
    others = (len(question.capacities) - 1) * domain_bound(question, held)
    return two + others - rebate_bytes(question) > cut_bytes * (1 + STRICT) + NOISE_BYTES


def _box(question: Question, cut: _Staged, held: int) -> tuple[int, ...] | None:
    """Return a box of *held* cells in one stage, its sides dividing the axes; None if none does."""
    sides, left = [1] * len(question.sizes), held
    for axis in cut.inside:
        sides[axis] = gcd(question.sizes[axis], left)
        left //= sides[axis]
    return tuple(sides) if left == 1 else None
