"""Lower bounds of the busiest border: no seating keeps every border's time below them.

A border takes sent / uplink seconds; ``borders.sent_bytes`` says how the bytes are shared. Two
things hold for every seating: the borders together carry the whole cut, and each carries what its
own domain cannot avoid. Proofs: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bound, lower_bound, rebate_bytes, split_bound
from planner.place.merge import least_split
from planner.place.question import Charge, Kind, Question, held_units

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

Limits = tuple[tuple[tuple[int, ...], int, int], ...]  # (axes, most here, most in another domain)

_SAFE = 1 - 1e-12  # relative; keeps a bound on the safe side of floating point
_STEPS = 40  # halvings between a time that no filling allows and one that some does
_TABLE_LIMIT = 60_000_000  # domains x spare seats x cells of one step past which fillings are left


def border_bound_s(
    question: Question,
    uplink_bytes_per_s: Sequence[float],
    total_bound_bytes: float,
    reached_s: float,
    ends_s: float = inf,
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
        ends_s: leave out what has not begun when ``time.monotonic()`` is past this [s].

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
    if fillings.work > _TABLE_LIMIT or monotonic() > ends_s:
        return together_s
    return max(together_s, fillings.least_s(together_s, reached_s, ends_s) * _SAFE)


def group_limits(
    question: Question, uplink_bytes_per_s: Sequence[float], busy_s: float
) -> tuple[Limits, ...]:
    """Return of each domain how much of one group it can hold, and any other, if none is busier.

    m cells of one group lie in m / n_common groups of every other family at least; a domain of C
    seats holds C / n of those whole at most, and sends what parted groups cost for the others.
    A domain of which that takes longer than *busy_s* cannot hold m.

    Args:
        question: the grid, its charges, the domains' capacities.
        uplink_bytes_per_s: uplink of each domain [bytes/s].
        busy_s: the busiest border of some seating; only less busy ones are looked at [s].

    Returns:
        For each domain (axes, most cells here, most cells in another domain) of every reduction.
    """
    axes_of = [c.axes for c in question.charges if c.kind is Kind.TOUCH]
    kinds = list(zip(question.capacities, uplink_bytes_per_s, strict=True))
    found: list[list[tuple[tuple[int, ...], int, int]]] = [[] for _ in kinds]
    for axes in axes_of:
        most_of = {
            kind: _most_of_one(question, axes, kind[0], kind[1] * busy_s) for kind in set(kinds)
        }
        here = [most_of[kind] for kind in kinds]
        first, second = sorted(here, reverse=True)[:2]
        for s, most in enumerate(here):
            found[s].append((axes, most, second if most == first else first))
    return tuple(map(tuple, found))


def _most_of_one(question: Question, axes: tuple[int, ...], seats: int, budget: float) -> int:
    """Return the most cells of one group along *axes* for which a domain sends no more."""
    prices = []
    for charge in question.charges:
        size = question.group_size(charge.axes)
        if size > 1 and charge.kind is not Kind.ENDS:
            common = question.group_size([i for i in axes if i in charge.axes])
            prices.append((common, seats // size, _least_sent(question, charge)))
    low, high = 1, max(1, min(question.group_size(axes), seats))
    while low < high:
        middle = (low + high + 1) // 2
        sent = sum(max(0, -(-middle // n) - whole) * price for n, whole, price in prices)
        if sent * _SAFE <= budget:
            low = middle
        else:
            high = middle - 1
    return low


def _least_sent(question: Question, charge: Charge) -> float:
    """Return the least that a domain sends for one group of a charge that it holds in part."""
    if charge.kind in (Kind.PAIRS, Kind.COPIES):
        size = question.group_size(charge.axes)
        units = held_units(charge, size)
        both = units[1] + units[size - 1]
        return charge.weight_bytes * (both / 2.0 if charge.kind is Kind.COPIES else units[1])
    return charge.weight_bytes * (1.0 if charge.kind is Kind.RING else 0.5)


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
            lambda held, most, axes=charge.axes: alone_bound_bytes(question, held, most, axes)
        )
        each = zip(question.capacities, limits, uplink_bytes_per_s, strict=True)
        times = sorted((alone(held, most) / rate for held, most, rate in each), reverse=True)
        least_s = max(least_s, times[ends])
    return least_s


def boxes_kept(
    question: Question, home: NDArray[np.int64], uplink_bytes_per_s: Sequence[float], busy_s: float
) -> tuple[int, ...]:
    """Return the boxes of whole axes that every seating keeps whose busiest border beats *busy_s*.

    A seating that parts a line along an axis cuts a good deal; where that much takes *busy_s* over
    all uplinks together, some border takes as long. And two domains send what a part of every
    group along the axis costs; where all domains but one take longer for that, no line is parted.
    """
    together = float(sum(uplink_bytes_per_s))
    sides = [1] * len(question.sizes)
    grid = home.reshape(tuple(reversed(question.sizes)))
    for axis, n in enumerate(question.sizes):
        place = len(sides) - 1 - axis
        whole = bool((grid == np.take(grid, [0], axis=place)).all())
        if n == 1 or not whole:
            continue
        along = [c for c in question.charges if axis in c.axes and c.kind is not Kind.ENDS]
        part = sum(_least_sent(question, charge) for charge in along) * _SAFE
        able = sum(part < busy_s * rate for rate in uplink_bytes_per_s)
        if able < 2 or parted_bound_bytes(question, axis) * _SAFE >= busy_s * together:
            sides[axis] = n
    return tuple(sides)


def parted_bound_bytes(question: Question, axis: int) -> float:
    """Return the least that a seating cuts in which some line along *axis* is parted [bytes].

    One group of every charge along the axis is then parted, and the other charges pay their own
    bound; or two domains hold a part of a line, ``bound.split_bound``.
    """
    along = [charge for charge in question.charges if axis in charge.axes]
    others = tuple(charge for charge in question.charges if axis not in charge.axes)
    rest = lower_bound(replace(question, charges=others))
    return max(rest + sum(least_split(question, c) for c in along), split_bound(question, axis))


def alone_bound_bytes(
    question: Question, held: int, limits: Limits, endless: tuple[int, ...] | None = None
) -> float:
    """Return the least that a domain of *held* cells sends over its border [bytes].

    What it sends depends on the groups that it holds in part. Each costs w (1 - 1/k) of a
    reduction's w (k - 1), with k at least 1 + (members elsewhere) / (most of them in one); one hop
    of a ring; half of every hop of a chain that crosses, of which there is one at least and two
    around a closed one; v x (n - x) of an all-to-all; and of copies half of what comes in, h(x),
    and of what goes out, at least h(n - x).

    Args:
        question: the grid and its charges.
        held: cells of the domain [1].
        limits: of ``group_limits``, for this domain.
        endless: axes of a chain of which the domain holds neither end: then two hops cross.
    """
    if held == 0:
        return 0.0
    rings: dict[tuple[int, ...], float] = {}
    charges: list[Charge] = []
    closing = _closing_weights(question)
    most = {axes: (here, there) for axes, here, there in limits}
    for charge in question.charges:
        size = question.group_size(charge.axes)
        if size < 2 or charge.kind is Kind.ENDS:
            continue
        if charge.kind is Kind.PAIRS:
            charges.append(charge)
        elif charge.kind is Kind.COPIES:
            h = held_units(charge, size)
            shared = tuple((h[j] + h[size - j]) / 2.0 for j in range(size + 1))
            charges.append(replace(charge, units=shared))
        else:
            weight = charge.weight_bytes
            if charge.kind is Kind.TOUCH:
                here, there = most[charge.axes]
                elsewhere = size - min(held, here, size - 1)
                weight *= 1.0 - 1.0 / (1 + -(-elsewhere // there))
            elif charge.kind is Kind.CHAIN and charge.axes != endless:
                weight = (weight + closing.get(charge.axes, 0.0)) / 2.0
            rings[charge.axes] = rings.get(charge.axes, 0.0) + weight
    charges += [
        Charge(axes=axes, kind=Kind.RING, weight_bytes=weight)
        for axes, weight in sorted(rings.items())
        if weight > 0
    ]
    return domain_bound(replace(question, charges=tuple(charges)), held)


def _closing_weights(question: Question) -> Mapping[tuple[int, ...], float]:
    """Return by axes the part u <= w of a chain's price that its closing link makes a ring."""
    chains = {c.axes: c.weight_bytes for c in question.charges if c.kind is Kind.CHAIN}
    return {
        c.axes: min(chains[c.axes], c.weight_bytes)
        for c in question.charges
        if c.kind is Kind.ENDS and c.axes in chains
    }


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

    def least_s(self, low_s: float, high_s: float, ends_s: float) -> float:
        """Return a time between the two that no filling keeps, *low_s* if some keeps that."""
        if not self._costs(ends_s) or self._allows(low_s):
            return low_s
        for _ in range(_STEPS):
            middle_s = (low_s + high_s) / 2.0
            if monotonic() > ends_s or not low_s < middle_s < high_s:
                break
            if self._allows(middle_s):
                high_s = middle_s
            else:
                low_s = middle_s
        return low_s

    def _costs(self, ends_s: float) -> bool:
        """Work out the domain bounds of every filling; False if time runs out first."""
        self.tables: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]] = []
        for capacity, most in zip(self.question.capacities, self.limits, strict=True):
            low = max(0, capacity - self.spare)
            held = np.arange(low, min(capacity, self.question.cells) + 1)
            if monotonic() > ends_s:
                return False
            share = np.array([self.shares(int(c)) for c in held])
            own = np.array([self.alone(int(c), most) for c in held])
            self.tables.append((held, share, own))
        return True

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
