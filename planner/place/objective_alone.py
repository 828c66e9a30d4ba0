"""What one domain must send over its border, whoever else holds what.

It depends on the groups that the domain holds in part: each costs at least so much, and how many
there are the bound of one domain says, with other charges. How much of one group a domain can hold
without sending more than some seating's busiest border does, sharpens that, and the other way
round. Proofs: ``FORMULATION.md``, *The busiest border*.
"""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bound
from planner.place.question import Charge, Kind, Question, held_units
from planner.place.spread import tables
from planner.place.touch_search import least_cost

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

Limits = tuple[tuple[tuple[int, ...], int, int], ...]  # (axes, most here, most in another domain)

_SAFE = 1 - 1e-12  # relative; keeps a bound on the safe side of floating point
_ROUNDS = 3  # of limits that sharpen the bound that sharpens them
_HELD_FEW = 40  # sizes of a domain's content up to which each is looked at


def group_limits(
    question: Question, uplink_bytes_per_s: Sequence[float], busy_s: float
) -> tuple[Limits, ...]:
    """Return of each domain how much of one group it can hold, and any other, if none is busier.

    m cells of one group lie in m / n_common groups of every other family at least; a domain of C
    seats holds few of them whole, and each other one costs it something, as do all else that it
    must hold in part. A domain of which that takes longer than *busy_s* cannot hold m.

    Args:
        question: the grid, its charges, the domains' capacities.
        uplink_bytes_per_s: uplink of each domain [bytes/s].
        busy_s: the busiest border of some seating; only less busy ones are looked at [s].

    Returns:
        For each domain (axes, most cells here, most cells in another domain) of every reduction.
    """
    axes_of = [c.axes for c in question.charges if c.kind is Kind.TOUCH]
    kinds = list(zip(question.capacities, uplink_bytes_per_s, strict=True))
    most = [
        {axes: _most_by_groups(question, axes, c, rate * busy_s) for axes in axes_of}
        for c, rate in kinds
    ]
    limits = _limits(axes_of, most)
    for _ in range(_ROUNDS if all(contents(question, c) for c, _ in kinds) else 0):
        known: dict[tuple[int, float, Limits], dict[tuple[int, ...], int]] = {}
        for (c, rate), given in zip(kinds, limits, strict=True):
            if (c, rate, given) not in known:
                known[c, rate, given] = {
                    axes: _most_by_all(question, axes, c, rate * busy_s, given) for axes in axes_of
                }
        most = [known[c, rate, given] for (c, rate), given in zip(kinds, limits, strict=True)]
        sharper = _limits(axes_of, most)
        if sharper == limits:
            break
        limits = sharper
    return limits


def contents(question: Question, capacity: int) -> range:
    """Return the sizes of content that a domain may have besides none; none if they are many.

    >>> line = Question(sizes=(10,), charges=(), capacities=(6, 7))
    >>> list(contents(line, 7))
    [4, 5, 6, 7]
    """
    spare = sum(question.capacities) - question.cells
    if spare >= _HELD_FEW:
        return range(0)
    return range(max(1, capacity - spare), min(capacity, question.cells) + 1)


def _limits(
    axes_of: Sequence[tuple[int, ...]], most: Sequence[Mapping[tuple[int, ...], int]]
) -> tuple[Limits, ...]:
    """Return the limits of each domain from the most that each can hold."""
    found: list[list[tuple[tuple[int, ...], int, int]]] = [[] for _ in most]
    for axes in axes_of:
        here = [one[axes] for one in most]
        first, second = sorted(here, reverse=True)[:2]
        for s, held in enumerate(here):
            found[s].append((axes, held, second if held == first else first))
    return tuple(map(tuple, found))


def _most_by_groups(question: Question, axes: tuple[int, ...], seats: int, budget: float) -> int:
    """Return the most cells of one group along *axes* for which a domain sends no more.

    By the groups of other families that these cells alone part; holds however full the domain is.
    """
    prices = []
    for charge in question.charges:
        size = question.group_size(charge.axes)
        if size > 1 and charge.kind is not Kind.ENDS:
            common = question.group_size([i for i in axes if i in charge.axes])
            prices.append((common, seats // size, least_sent(question, charge)))

    def sent_bytes(cells: int) -> float:
        return sum(max(0, -(-cells // n) - whole) * price for n, whole, price in prices)

    low, high = 1, max(1, min(question.group_size(axes), seats))
    while low < high:
        middle = (low + high + 1) // 2
        if sent_bytes(middle) * _SAFE <= budget:
            low = middle
        else:
            high = middle - 1
    return low


def _most_by_all(
    question: Question, axes: tuple[int, ...], capacity: int, budget: float, limits: Limits
) -> int:
    """Return the same by all that a domain sends at these limits, whatever it holds."""
    alone = {
        held: replace(question, charges=_alone_charges(question, held, limits, None))
        for held in contents(question, capacity)
    }
    low, high = 1, next(here for known, here, _ in limits if known == axes)
    while low < high:
        middle = (low + high + 1) // 2
        if any(
            _holding_bytes(asked, axes, middle, held) * _SAFE <= budget
            for held, asked in alone.items()
            if held >= middle
        ):
            low = middle
        else:
            high = middle - 1
    return low


def _holding_bytes(question: Question, axes: tuple[int, ...], cells: int, held: int) -> float:
    """Return what a domain pays at least that holds *cells* of one group along *axes*."""
    found = tables(question, held)
    floored = []
    for term, paid_bytes in zip(found.terms, found.cost_bytes, strict=True):
        common = question.group_size([i for i in axes if i in term.axes])
        enough = np.arange(len(paid_bytes)) >= -(-cells // common)
        floored.append(np.where(enough, paid_bytes, inf))
    families = tuple(term.axes for term in found.terms)
    limited = replace(found, cost_bytes=tuple(floored))
    totals = limited.totals if limited.coupled else None
    return least_cost(question.sizes, families, limited.cost_bytes, held, totals)


def least_sent(question: Question, charge: Charge) -> float:
    """Return the least that a domain sends for one group of a charge that it holds in part."""
    size = question.group_size(charge.axes)
    if charge.kind in (Kind.PAIRS, Kind.COPIES):
        units = held_units(charge, size)
        both = units[1] + units[size - 1]
        return charge.weight_bytes * (both / 2.0 if charge.kind is Kind.COPIES else units[1])
    if charge.kind is Kind.CHAIN:
        return (charge.weight_bytes + _closing_weights(question).get(charge.axes, 0.0)) / 2.0
    return charge.weight_bytes * (1.0 if charge.kind is Kind.RING else 0.5)


def alone_bound_bytes(
    question: Question,
    held: int,
    limits: Limits,
    *,
    endless: tuple[int, ...] | None = None,
    split_axis: int | None = None,
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
        split_axis: the domain is known to hold a part, not all, of some line along it.
    """
    if held == 0:
        return 0.0
    charges = _alone_charges(question, held, limits, endless)
    return domain_bound(replace(question, charges=charges), held, split_axis)


def _alone_charges(
    question: Question, held: int, limits: Limits, endless: tuple[int, ...] | None
) -> tuple[Charge, ...]:
    """Return charges whose bound of one domain is what it sends."""
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
    return tuple(charges)


def _closing_weights(question: Question) -> Mapping[tuple[int, ...], float]:
    """Return by axes the part u <= w of a chain's price that its closing link makes a ring."""
    chains = {c.axes: c.weight_bytes for c in question.charges if c.kind is Kind.CHAIN}
    return {
        c.axes: min(chains[c.axes], c.weight_bytes)
        for c in question.charges
        if c.kind is Kind.ENDS and c.axes in chains
    }
