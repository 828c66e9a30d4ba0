"""The lower bound: what one domain must pay, added up over the domains.

A domain's price depends on how much of each group it holds, so the domain is taken in *cases*; in
each it pays at least a few linear functions of the groups it touches, of which ``finner.py`` knows
the least. ``lower_bound`` adds up the domains, choosing how full each one is where there are spare
seats. It holds for every seating whatever. Proofs: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.place.finner import least_touches
from planner.place.question import Kind, held_units

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from planner.place.question import Question

_CANCELLED = 1e-14  # relative; what subtracting the rebate may leave of nought
_LINES_KEPT = 3  # edges of an all-to-all's hull that are tried, the flattest first


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A linear lower bound of what one domain pays: sum_S weights[S] t_S + constant.

    Args:
        weights: bytes for each group touched, by the family's axes [bytes].
        constant_bytes: bytes paid whatever is touched [bytes].
    """

    weights: Mapping[tuple[int, ...], float]
    constant_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One way a domain can be: every line holds for it.

    Args:
        lines: linear lower bounds of what it pays.
        large: (axes, m): of some group along the axes it holds more than m cells.
        small: (axes, m): of every group along the axes it holds m cells at most.
    """

    lines: tuple[Line, ...]
    large: tuple[tuple[tuple[int, ...], int], ...]
    small: tuple[tuple[tuple[int, ...], int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A priced rule that domains share: sum_s ceil(n_s / most) >= ceil(n / most) for every group.

    Args:
        axes: axes of the groups.
        most: part size m of the rule [1].
        price_bytes: what breaking it by one costs, at least 0 [bytes].
    """

    axes: tuple[int, ...]
    most: int
    price_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """What a domain pays that holds at most *most* cells of every group, and one that does not.

    Both are alternatives of (bytes for each group touched, bytes in any case); all of them hold.
    """

    axes: tuple[int, ...]
    most: int
    small: tuple[tuple[float, float], ...]
    large: tuple[tuple[float, float], ...]


def rebate_bytes(question: Question) -> float:
    """Return what all domains together are charged too much by ``cases`` [bytes].

    A reduction and a chain pay for k - 1 domains of a group, and the cases count all k.
    """
    return sum(weight * question.groups(axes) for axes, weight in _plain_weights(question).items())


def _plain_weights(question: Question) -> dict[tuple[int, ...], float]:
    """Return the prices of k - 1 by axes: reductions, and chains less what closes them."""
    weights: dict[tuple[int, ...], float] = {}
    closing = _closing_weights(question)
    for charge in question.charges:
        if question.group_size(charge.axes) < 2:
            continue
        if charge.kind is Kind.TOUCH:
            weights[charge.axes] = weights.get(charge.axes, 0.0) + charge.weight_bytes
        elif charge.kind is Kind.CHAIN:
            left = charge.weight_bytes - closing.get(charge.axes, 0.0)
            weights[charge.axes] = weights.get(charge.axes, 0.0) + left
    return weights


def prices_by_axes(question: Question) -> dict[tuple[int, ...], float]:
    """Return what a domain pays at most for one more group touched, by axes [bytes]."""
    prices = dict(_plain_weights(question))
    for axes, weight in _closing_weights(question).items():
        prices[axes] = prices.get(axes, 0.0) + weight
    return prices


def _closing_weights(question: Question) -> dict[tuple[int, ...], float]:
    """Return by axes the part u of a chain's price that its closing link makes a ring.

    w x + u e with x crossings and e = 1 when the ends are apart is at least
    u (k if k > 1) + (w - u) (k - 1), for x + e >= k when k > 1 and u <= w.
    """
    chains = {c.axes: c.weight_bytes for c in question.charges if c.kind is Kind.CHAIN}
    closing: dict[tuple[int, ...], float] = {}
    for charge in question.charges:
        if charge.kind is Kind.ENDS and charge.axes in chains:
            closing[charge.axes] = min(
                chains[charge.axes], closing.get(charge.axes, 0.0) + charge.weight_bytes
            )
    return closing


def _choices(question: Question, held: int, shares: Sequence[Share]) -> list[_Choice]:
    """Return the prices that depend on how much of one group a domain holds.

    A ring costs every domain that holds a part of it one hop, and a domain with all of it none:
    of t rings touched by C cells at most (C - t)/(n - 1) are whole. An all-to-all's price is
    concave in n_i: see ``_pair_lines``. For shares see ``sharpened_bound``.
    """
    choices = [
        _ring_choice(axes, question.group_size(axes), u, held)
        for axes, u in _closing_weights(question).items()
        if question.group_size(axes) > 1
    ]
    choices += [_share_choice(share, held) for share in shares]
    for charge in question.charges:
        size, w = question.group_size(charge.axes), charge.weight_bytes
        if size < 2:
            continue
        if charge.kind is Kind.RING:
            choices.append(_ring_choice(charge.axes, size, w, held))
        elif charge.kind in (Kind.PAIRS, Kind.COPIES):
            groups, units = question.groups(charge.axes), held_units(charge, size)
            choices.append(
                _Choice(
                    axes=charge.axes,
                    most=size - 1,
                    small=_scaled(w, _pair_lines(units, groups, held, size - 1)),
                    large=_scaled(w, _pair_lines(units, groups, held, size)),
                )
            )
    return choices


def _ring_choice(axes: tuple[int, ...], size: int, weight: float, held: int) -> _Choice:
    return _Choice(
        axes=axes,
        most=size - 1,
        small=((weight, 0.0),),
        large=((weight * size / (size - 1), -weight * held / (size - 1)),),
    )


def _share_choice(share: Share, held: int) -> _Choice:
    """Return -price x sum_g ceil(n_g / m), for which (C + (m - 1) t) / m is never too little."""
    m, price = share.most, share.price_bytes
    return _Choice(
        axes=share.axes,
        most=m,
        small=((-price, 0.0),),
        large=((-price * (m - 1) / m, -price * held / m),),
    )


def _scaled(weight: float, lines: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    return tuple((weight * slope, weight * constant) for slope, constant in lines)


def _pair_lines(
    units: Sequence[float], groups: int, held: int, most: int
) -> tuple[tuple[float, float], ...]:
    """Return lines (slope, constant) below sum_g units[n_g] as a function of t.

    For *held* cells in t groups of at most *most* each the concave sum is least at a corner: as
    many groups as possible hold *most*, one holds the rest, the others one cell. The lines are
    the edges of the convex hull of that least over t; none if no t is possible.
    """
    most = min(most, held)
    corners = []
    for touched in range(max(1, -(-held // most)), min(groups, held) + 1):
        full, rest = divmod(held - touched, most - 1) if most > 1 else (0, 0)
        counts = [
            (full, most),
            (1 if full < touched else 0, 1 + rest),
            (max(0, touched - full - 1), 1),
        ]
        corners.append((touched, sum(times * units[n] for times, n in counts if times)))
    if not corners:
        return ()
    hull: list[tuple[int, float]] = []
    for corner in corners:
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], corner):
            hull.pop()
        hull.append(corner)
    edges = [
        ((y1 - y0) / (x1 - x0), y0 - x0 * (y1 - y0) / (x1 - x0))
        for (x0, y0), (x1, y1) in pairwise(hull)
    ]
    rising = [(slope, constant) for slope, constant in edges if slope > 0]
    flat = (0.0, float(min(y for _, y in corners)))
    return (flat, *rising[:_LINES_KEPT])


def _turns_down(p: tuple[int, float], q: tuple[int, float], r: tuple[int, float]) -> bool:
    return (q[0] - p[0]) * (r[1] - p[1]) <= (q[1] - p[1]) * (r[0] - p[0])


def cases(question: Question, held: int, shares: Sequence[Share] = ()) -> tuple[Case, ...]:
    """Return bounds of a domain of *held* cells; every such domain is one of the cases."""
    found = [
        Case(
            lines=(Line(weights=_plain_weights(question), constant_bytes=0.0),), large=(), small=()
        )
    ]
    for choice in _choices(question, held, shares):
        axes, most = choice.axes, choice.most
        extended = []
        for case in found:
            if all(a != axes or most > m for a, m in case.large):
                extended.append(
                    Case(
                        lines=_priced(case.lines, axes, choice.small),
                        large=case.large,
                        small=(*case.small, (axes, most)),
                    )
                )
            if most < min(held, question.group_size(axes)) and all(
                a != axes or m > most for a, m in case.small
            ):
                extended.append(
                    Case(
                        lines=_priced(case.lines, axes, choice.large),
                        large=(*case.large, (axes, most)),
                        small=case.small,
                    )
                )
        found = [case for case in extended if case.lines]
    return tuple(found)


def _priced(
    lines: Sequence[Line], axes: tuple[int, ...], prices: Sequence[tuple[float, float]]
) -> tuple[Line, ...]:
    priced = []
    for line in lines:
        for slope, constant in prices:
            weights = dict(line.weights)
            weights[axes] = weights.get(axes, 0.0) + slope
            priced.append(Line(weights=weights, constant_bytes=line.constant_bytes + constant))
    return tuple(priced)


def domain_bound(
    question: Question,
    held: int,
    split_axis: int | None = None,
    shares: Sequence[Share] = (),
) -> float:
    """Return the least that a domain holding *held* cells adds to the cut [bytes].

    The domain's share of the rebate is not taken off: see ``lower_bound``. With *split_axis*, the
    domain is known to hold a part, not all, of some line along that axis.
    """
    if held == 0:
        return 0.0
    least = inf
    for case in cases(question, held, shares):
        paid = -inf
        for line in case.lines:
            paid = max(paid, _line_bound(question, line, case, held, split_axis))
            if paid >= least:
                break
        least = min(least, paid)
    return least


def _line_bound(
    question: Question, line: Line, case: Case, held: int, split_axis: int | None
) -> float:
    constant = line.constant_bytes
    families, floors = [], []
    for axes, weight in sorted(line.weights.items()):
        if weight <= 0:
            constant += weight * min(question.groups(axes), held)
            continue
        size = question.group_size(axes)
        floor = max((-(-held // m) for a, m in case.small if a == axes), default=1)
        if split_axis is not None and split_axis in axes:
            floor = max(floor, held // size + 1)
        for along, m in case.large:  # m + 1 cells of one group, so many to a line of this family
            shared = question.group_size([i for i in along if i in axes])
            floor = max(floor, -(-(m + 1) // shared))
        families.append(axes)
        floors.append(floor)
    weights = tuple(line.weights[axes] for axes in families)
    return constant + _least_touches_again(
        question.sizes, tuple(families), weights, held, tuple(floors)
    )


@lru_cache(maxsize=20_000)
def _least_touches_again(
    sizes: tuple[int, ...],
    families: tuple[tuple[int, ...], ...],
    weights: tuple[float, ...],
    held: int,
    floors: tuple[int, ...],
) -> float:
    return least_touches(sizes, families, weights, held, floors)


def lower_bound(question: Question, shares: Sequence[Share] = ()) -> float:
    """Return bytes that every seating of *question* crosses at least [bytes].

    Args:
        question: the grid and its charges.
        shares: priced rules of ``sharpened_bound``.
    """
    if len(question.capacities) == 1:
        return 0.0
    bounds = _bounds(question, None, shares)
    if sum(question.capacities) == question.cells:
        total = sum(bounds(capacity) for capacity in question.capacities)
    else:
        total = _cheapest_filling(question.capacities, question.cells, bounds)
    for share in shares:
        pieces = -(-question.group_size(share.axes) // share.most)
        total += share.price_bytes * pieces * question.groups(share.axes)
    rebate = rebate_bytes(question)
    return max(0.0, total - rebate - rebate * _CANCELLED)


def _bounds(
    question: Question, split_axis: int | None, shares: Sequence[Share] = ()
) -> Callable[[int], float]:
    @cache
    def bound_of(held: int) -> float:
        return domain_bound(question, held, split_axis, shares)

    return bound_of


def split_bound(question: Question, axis: int) -> float:
    """Return bytes crossed at least by every seating that parts some line along *axis* [bytes].

    Two domains then hold a part of that line, and each pays the domain bound of such a set.
    Needs every seat taken; with spare seats it is no more than ``lower_bound``.
    """
    capacities = question.capacities
    plain = lower_bound(question)
    if sum(capacities) != question.cells or len(capacities) < 2:
        return plain
    free, parted = _bounds(question, None), _bounds(question, axis)
    extra = sorted(max(0.0, parted(held) - free(held)) for held in capacities)
    return plain + sum(extra[:2])


def _cheapest_filling(
    capacities: Sequence[int], cells: int, bound_of: Callable[[int], float]
) -> float:
    """Return min over fillings c_s <= capacities, sum c_s = cells, of sum_s f(c_s) [bytes]."""
    best = np.full(cells + 1, inf)
    best[0] = 0.0
    spare = sum(capacities) - cells
    for capacity in sorted(capacities):
        least = max(0, capacity - spare)
        held = np.arange(least, min(capacity, cells) + 1)
        costs = [bound_of(int(c)) for c in held]
        merged = np.full(cells + 1, inf)
        for c, cost in zip(held, costs, strict=True):
            if c <= cells:
                merged[c:] = np.minimum(merged[c:], best[: cells + 1 - c] + cost)
        best = merged
    return float(best[cells])
