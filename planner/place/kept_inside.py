"""What inner tiers cut at least, where every outer domain is known to hold one box and no more.

Then the inside of a domain is a question of its own, and what its box pays to the others is what
the outer tier cuts. Proof: ``FORMULATION.md``, *Tiers*.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.answer import Proof
from planner.place.inside import box_question
from planner.place.kept import whole_boxes
from planner.place.labour import Least, least_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.place.labour import Labour
    from planner.place.question import Question
    from planner.place.tree import Tree


def inside_bound(
    questions: Sequence[Question],
    tree: Tree,
    cuts_bytes: Sequence[float],
    tier: int,
    labour: Labour,
) -> Least:
    """Return what *tier* cuts at least in seatings as good at all outer tiers; 0 if unknown.

    Args:
        questions: of all tiers, innermost first.
        tree: the domains.
        cuts_bytes: of the seating in hand, by tier [bytes].
        tier: the tier whose cut is asked about; those outside it come before it in the order.
        labour: what may still be asked.
    """
    for outer in range(tier + 1, len(tree.names) - 1):
        boxes = whole_boxes(questions, tree, cuts_bytes, tier + 1, outer + 1)
        if boxes is None or max(tree.capacities[outer]) >= 2 * prod(boxes.sides):
            continue
        found = _insides(questions[tier], tree, boxes.sides, tier, outer, labour)
        if found is not None:
            return replace(found, bound_bytes=cuts_bytes[outer] + found.bound_bytes)
    return Least()


def _insides(
    question: Question, tree: Tree, sides: Sequence[int], tier: int, outer: int, labour: Labour
) -> Least | None:
    """Return what all boxes of *sides* cut at least, each inside a domain of tier *outer*.

    None if that is unknown. Domains too small for a box are empty; of the others the cheapest hold
    one each.
    """
    room = np.array(tree.capacities[tier])
    outward = tree.outward(np.arange(len(room)), tier, outer)
    kinds: Counter[tuple[int, ...]] = Counter()
    for domain, capacity in enumerate(tree.capacities[outer]):
        if capacity >= prod(sides):
            kinds[tuple(sorted(room[outward == domain].tolist()))] += 1
    paid: list[float] = []
    proof = Proof.BOUND
    for capacities, times in sorted(kinds.items()):
        inside = box_question(question, sides, capacities)
        answer = None if inside is None else labour.answer(inside)
        if answer is None:
            return None
        least = least_of(answer)
        proof = least.proof if least.proof is Proof.SOLVER else proof
        paid += [least.bound_bytes] * times
    cheapest = sorted(paid)[: question.cells // prod(sides)]
    return Least(bound_bytes=sum(cheapest), proof=proof)
