"""Two domains: what one of them holds tells what the other does, and so what both pay.

Every group is whole in one of two parts, or in both. So one domain can be charged for both, and no
rebate is left that a domain's own bound leaves out. Proof: ``FORMULATION.md``, "Two domains".
"""

from __future__ import annotations

from dataclasses import replace

from planner.place.question import Charge, Kind, Question, held_units
from planner.place.spread import closing_weights


def in_two_parts(question: Question) -> Question:
    """Return *question* with charges by which one domain pays all that two domains cut [bytes].

    ``domain_bound`` of it, of either domain's cells, is a bound of the whole cut.
    """
    weights: dict[tuple[tuple[int, ...], Kind, tuple[float, ...]], float] = {}
    for charge in question.charges:
        kind, factor, units = charge.kind, 1.0, charge.units
        if kind in (Kind.TOUCH, Kind.CHAIN):
            kind = Kind.RING  # its own weight for every group held in part
        elif kind is Kind.RING:
            factor = 2.0  # both domains pay
        elif kind in (Kind.PAIRS, Kind.COPIES):
            held = held_units(charge, question.group_size(charge.axes))
            kind, units = Kind.COPIES, tuple(map(sum, zip(held, reversed(held), strict=True)))
        else:
            continue  # a link that closes a chain follows
        key = (charge.axes, kind, units)
        weights[key] = weights.get(key, 0.0) + factor * charge.weight_bytes
    for axes, weight in closing_weights(question).items():
        weights[axes, Kind.RING, ()] += weight
    charges = tuple(
        Charge(axes=axes, kind=kind, weight_bytes=weight, units=units)
        for (axes, kind, units), weight in weights.items()
    )
    return replace(question, charges=charges)
