"""Lower bounds of the busiest border: no seating keeps every border's time below them.

A border takes sent / uplink seconds; ``borders.sent_bytes`` says how the bytes are shared. Two
things hold for every seating: the borders together carry the whole cut, and each carries what its
own domain cannot avoid. Proofs: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bound, lower_bound, rebate_bytes, split_bound
from planner.place.merge import least_split
from planner.place.objective_alone import (
    alone_bound_bytes,
    contents,
    group_limits,
    least_sent,
)
from planner.place.question import Kind, Question, coarsen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from planner.place.objective_alone import Limits

_SAFE = 1 - 1e-12  # relative; keeps a bound on the safe side of floating point
_STEPS = 40  # halvings between a time that no filling allows and one that some does
_SPARE_MOST = 160  # spare seats up to which a domain's bound is worked out for every content
_TABLE_LIMIT = 60_000_000  # domains x spare seats x cells of one step past which fillings are left


def border_bound_s(
    question: Question,
    uplink_bytes_per_s: Sequence[float],
    total_bound_bytes: float,
    reached_s: float,
) -> float:
    """Return seconds that the busiest border takes at least, in every seating [s].

    The greatest of: the least cut over all uplinks together; the least that one domain sends over
    its uplink; and, where seats are spare, the least time at which some filling of the domains
    allows both. Only seatings less busy than *reached_s* are looked at: no more than that is ever
    returned.

    Args:
        question: the grid, its charges, the domains' capacities.
        uplink_bytes_per_s: uplink of each domain [bytes/s].
        total_bound_bytes: what every seating cuts at least [bytes].
        reached_s: the busiest border of some seating [s].

    >>> from planner.place.question import Charge
    >>> ring = Charge(axes=(0,), kind=Kind.RING, weight_bytes=6.0)
    >>> question = Question(sizes=(4,), charges=(ring,), capacities=(2, 2))
    >>> round(border_bound_s(question, (2.0, 1.0), 12.0, 6.0), 9)  # 6 bytes over the narrow one
    6.0
    """
    if len(question.capacities) < 2:
        return 0.0
    together_s = total_bound_bytes / float(sum(uplink_bytes_per_s)) * _SAFE
    if together_s >= reached_s * _SAFE:
        return min(together_s, reached_s)
    alone = cache(lambda held, most: alone_bound_bytes(question, held, most))
    limits = group_limits(question, uplink_bytes_per_s, reached_s)
    if sum(question.capacities) == question.cells:
        each = zip(question.capacities, limits, uplink_bytes_per_s, strict=True)
        alone_s = max(alone(held, most) / rate for held, most, rate in each)
        endless_s = _without_ends_s(question, uplink_bytes_per_s, limits)
        return min(reached_s, max(together_s, alone_s * _SAFE, endless_s * _SAFE))
    fillings = _Fillings(question, uplink_bytes_per_s, limits, alone)
    if fillings.work > _TABLE_LIMIT or fillings.spare > _SPARE_MOST:
        return together_s
    return max(together_s, fillings.least_s(together_s, reached_s) * _SAFE)


def _without_ends_s(
    question: Question, uplink_bytes_per_s: Sequence[float], limits: Sequence[Limits]
) -> float:
    """Return what a domain pays that holds no end of any chain, where there must be one [s].

    G chains have 2 G ends, so all domains but 2 G hold none of them; two hops cross the border for
    every chain that such a domain holds in part. Whoever seats the ends chooses which domains: the
    dearest 2 G are left out.
    """
    least_s = 0.0
    for charge in question.charges:
        ends = 2 * question.groups(charge.axes)
        if charge.kind is not Kind.CHAIN or ends >= len(uplink_bytes_per_s):
            continue
        alone = cache(
            lambda held, most, axes=charge.axes: alone_bound_bytes(
                question, held, most, endless=axes
            )
        )
        each = zip(question.capacities, limits, uplink_bytes_per_s, strict=True)
        times = sorted((alone(held, most) / rate for held, most, rate in each), reverse=True)
        least_s = max(least_s, times[ends])
    return least_s


def boxes_kept(
    question: Question, home: NDArray[np.int64], uplink_bytes_per_s: Sequence[float], busy_s: float
) -> tuple[int, ...]:
    """Return the boxes of whole axes that every seating keeps whose busiest border beats *busy_s*.

    Boxes that are kept are the cells of a grid on which more may be; so until nothing is added.
    """
    sides = [1] * len(question.sizes)
    axes = [axis for axis, n in enumerate(question.sizes) if n > 1 and _whole(question, home, axis)]
    while True:
        volume = prod(sides)
        coarse = coarsen(question, sides, [c // volume for c in question.capacities])
        found = [i for i in axes if sides[i] == 1 and _kept(coarse, i, uplink_bytes_per_s, busy_s)]
        if not found:
            return tuple(sides)
        for axis in found:
            sides[axis] = question.sizes[axis]


def _whole(question: Question, home: NDArray[np.int64], axis: int) -> bool:
    """Return whether *home* parts no line along *axis*."""
    grid = home.reshape(tuple(reversed(question.sizes)))
    place = len(question.sizes) - 1 - axis
    return bool((grid == np.take(grid, [0], axis=place)).all())


def _kept(
    question: Question, axis: int, uplink_bytes_per_s: Sequence[float], busy_s: float
) -> bool:
    """Return whether no seating whose busiest border beats *busy_s* parts a line along *axis*.

    One that does cuts a good deal; where that takes *busy_s* over all uplinks together, some border
    takes as long. And two domains send what a part of every group along the axis costs, besides
    what else they must; where all domains but one take longer for that, no line is parted.
    """
    each = list(zip(question.capacities, uplink_bytes_per_s, strict=True))
    along = [c for c in question.charges if axis in c.axes and c.kind is not Kind.ENDS]
    part = sum(least_sent(question, charge) for charge in along) * _SAFE
    if sum(part < busy_s * rate for _, rate in each) < 2:
        return True
    limits = group_limits(question, uplink_bytes_per_s, busy_s)

    @cache
    def parted(capacity: int, limits: Limits) -> float:
        held = contents(question, capacity)
        alone = (alone_bound_bytes(question, c, limits, split_axis=axis) for c in held)
        return min(alone, default=0.0) * _SAFE

    able = sum(
        parted(capacity, most) < busy_s * rate
        for (capacity, rate), most in zip(each, limits, strict=True)
    )
    together = float(sum(uplink_bytes_per_s))
    return able < 2 or parted_bound_bytes(question, axis) * _SAFE >= busy_s * together


def parted_bound_bytes(question: Question, axis: int) -> float:
    """Return the least that a seating cuts in which some line along *axis* is parted [bytes].

    One group of every charge along the axis is then parted, and the other charges pay their own
    bound; or two domains hold a part of a line, ``bound.split_bound``.
    """
    along = [charge for charge in question.charges if axis in charge.axes]
    others = tuple(charge for charge in question.charges if axis not in charge.axes)
    rest = lower_bound(replace(question, charges=others))
    return max(rest + sum(least_split(question, c) for c in along), split_bound(question, axis))


class _Fillings:
    """How full the domains may be when no border may take longer than some time."""

    def __init__(
        self,
        question: Question,
        uplink_bytes_per_s: Sequence[float],
        limits: Sequence[Limits],
        alone: Callable[[int, Limits], float],
    ) -> None:
        self.question, self.rates, self.limits, self.alone = (
            question,
            uplink_bytes_per_s,
            limits,
            alone,
        )
        self.spare = sum(question.capacities) - question.cells
        self.rebate = rebate_bytes(question)
        self.work = len(uplink_bytes_per_s) * (self.spare + 1) * question.cells
        self.shares = cache(lambda held: domain_bound(question, held))

    def least_s(self, low_s: float, high_s: float) -> float:
        """Return a time between the two that no filling keeps, *low_s* if some keeps that."""
        self._costs()
        if self._allows(low_s):
            return low_s
        for _ in range(_STEPS):
            middle_s = (low_s + high_s) / 2.0
            if not low_s < middle_s < high_s:
                break
            if self._allows(middle_s):
                high_s = middle_s
            else:
                low_s = middle_s
        return low_s

    def _costs(self) -> None:
        """Work out the domain bounds of every filling."""
        self.tables: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]] = []
        for capacity, most in zip(self.question.capacities, self.limits, strict=True):
            low = max(0, capacity - self.spare)
            held = np.arange(low, min(capacity, self.question.cells) + 1)
            share = np.array([self.shares(int(c)) for c in held])
            own = np.array([self.alone(int(c), most) for c in held])
            self.tables.append((held, share, own))

    def _allows(self, time_s: float) -> bool:
        """Return whether some filling has sum f(c_s) - rebate <= T sum_used u_s, g(c_s) <= T u_s.

        By dynamic programming over the domains: the least sum of f(c_s) - T u_s [c_s > 0].
        """
        cells = self.question.cells
        best = np.full(cells + 1, inf)
        best[0] = 0.0
        for (held, share, own), rate in zip(self.tables, self.rates, strict=True):
            cost = np.where(own * _SAFE <= time_s * rate, share - time_s * rate * (held > 0), inf)
            merged = np.full(cells + 1, inf)
            for c, paid in zip(held.tolist(), cost.tolist(), strict=True):
                if paid < inf:
                    merged[c:] = np.minimum(merged[c:], best[: cells + 1 - c] + paid)
            best = merged
        slack = 1e-12 * (self.rebate + time_s * float(sum(self.rates)))
        return bool(best[cells] <= self.rebate + slack)
