"""The cheapest seating of given cells of every stage, of all there are: small stages only.

Every way to lay out a stage's cells that is not too dear inside is looked at, and of all runs of
ways from the first stage to the last the cheapest is taken.
"""

from __future__ import annotations

from math import factorial, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.question import Kind, touched_units
from planner.place.stage_seats import home_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.question import Charge
    from planner.place.stages import Staged

_WAYS_MOST = 20_000  # ways to lay out one stage, all of them
_KEPT_MOST = 1_500  # of them that are not too dear
_MET = 1e-9  # relative


def cheapest_ways(
    of: Staged, held: NDArray[np.int64], dearer_bytes: float
) -> NDArray[np.int64] | None:
    """Return the home of every cell in the cheapest seating that holds these cells of the stages.

    None where a stage can be laid out in too many ways, or a link closes the pipeline.

    Args:
        of: the question cut along its pipeline.
        held: cells of every stage that each domain holds, shape [domains, stages].
        dearer_bytes: by how much a stage may be dearer than laid out as cheaply as can be [bytes].
    """
    cells = of.sheet.cells
    for column in held.T:
        if factorial(cells) // prod(factorial(int(k)) for k in column) > _WAYS_MOST:
            return None
    if of.closing_bytes or any(c.kind in (Kind.CHAIN, Kind.ENDS) for c in of.sheet.charges):
        return None
    paid, come = np.zeros(1), []
    before = np.full((1, cells), -1)
    ways: list[NDArray[np.int64]] = []
    for column in held.T:
        laid = _ways(column)
        inside = sum((_inside_bytes(of, c, laid) for c in of.sheet.charges), np.zeros(len(laid)))
        cheap = inside <= inside.min() + dearer_bytes + _MET * (1.0 + inside.min())
        laid, inside = laid[cheap], inside[cheap]
        if len(laid) > _KEPT_MOST:
            return None
        total = np.zeros((len(laid), len(before)))
        if ways:  # not the first stage
            for cell in range(cells):
                total += of.hop_bytes * (laid[:, cell, None] != before[None, :, cell])
        total += paid
        come.append(total.argmin(axis=1))
        paid = total.min(axis=1) + inside
        ways.append(laid)
        before = laid
    k = int(paid.argmin())
    by_stage = []
    for laid, last in zip(reversed(ways), reversed(come), strict=True):
        by_stage.append(laid[k])
        k = int(last[k])
    return home_of(of, np.column_stack(by_stage[::-1]))


def _ways(held: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return every way to give cells to domains that hold so many of them, shape [ways, cells]."""
    domains = np.flatnonzero(held)
    ways = np.zeros((1, 0), dtype=np.int64)
    left = held[None, domains]
    for _ in range(int(held.sum())):
        way, k = np.nonzero(left)
        ways = np.column_stack([ways[way], domains[k]])
        left = left[way]
        left[np.arange(len(left)), k] -= 1
    return ways


def _inside_bytes(of: Staged, charge: Charge, ways: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return what domains pay for a charge inside a stage, its rebate not taken off [bytes]."""
    groups = groups_along(of.sheet.sizes, charge.axes)
    units = touched_units(charge, groups.shape[1])
    paid = np.zeros(len(ways))
    for domain in np.unique(ways):
        counts = (ways[:, groups] == domain).sum(axis=2)
        paid += units[counts].sum(axis=1)
    return charge.weight_bytes * paid
