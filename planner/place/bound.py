"""The lower bound: what one domain must pay, added up over the domains.

``spread.py`` says what a domain pays by the groups it touches, ``touch_search.py`` which touches
are possible and the cheapest of them. ``lower_bound`` adds up the domains, choosing how full each
one is where there are spare seats. It holds for every seating whatever. Proofs: ``FORMULATION.md``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.place.clock import look
from planner.place.question import Question, coarsen
from planner.place.spread import Share, closing_weights, plain_weights, tables
from planner.place.together import beyond_bytes
from planner.place.touch_search import least_cost

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from planner.place.spread import Tables
    from planner.place.touch_search import Beyond

DOMAINS_FEW = 8  # domains up to which a filling is cheap against the bounds of domains
_FILLING_WORK = 3_000_000  # domains x cells past which splitting with spare seats is not priced
_CANCELLED = 1e-14  # relative; what subtracting the rebate may leave of nought


def rebate_bytes(question: Question) -> float:
    """Return what all domains together are charged too much by ``domain_bound`` [bytes].

    A reduction and a chain pay for k - 1 domains of a group, and the domains count all k.
    """
    return sum(weight * question.groups(axes) for axes, weight in plain_weights(question).items())


def prices_by_axes(question: Question) -> dict[tuple[int, ...], float]:
    """Return what a domain pays at most for one more group touched, by axes [bytes]."""
    prices = dict(plain_weights(question))
    for axes, weight in closing_weights(question).items():
        prices[axes] = prices.get(axes, 0.0) + weight
    return prices


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
    return _domain_bound(_bare(question), held, split_axis, tuple(shares))


def loose_bound(
    question: Question,
    held: int,
    shares: Sequence[Share] = (),
    split_axis: int | None = None,
) -> float:
    """Return the same without what families pay for leaving each other no room [bytes].

    Much faster; where seats are spare a domain may hold any number of cells, and few matter.
    """
    if held == 0:
        return 0.0
    return _loose_bound(_bare(question), held, split_axis, tuple(shares))


@lru_cache(maxsize=20_000)
def _loose_bound(
    question: Question, held: int, split_axis: int | None, shares: tuple[Share, ...]
) -> float:
    look()
    return _least_of(question, tables(question, held, split_axis, shares), None)


@lru_cache(maxsize=20_000)
def _domain_bound(
    question: Question, held: int, split_axis: int | None, shares: tuple[Share, ...]
) -> float:
    look()
    found = tables(question, held, split_axis, shares)
    return _least_of(question, found, partial(beyond_bytes, found))


def _least_of(question: Question, found: Tables, beyond: Beyond | None) -> float:
    return least_cost(
        question.sizes,
        tuple(term.axes for term in found.terms),
        found.cost_bytes,
        found.held,
        found.totals if found.coupled else None,
        beyond,
    )


def _bare(question: Question) -> Question:
    """Return the question without its domains: what one domain pays does not depend on others."""
    return Question(sizes=question.sizes, charges=question.charges, capacities=(question.cells,))


def lower_bound(
    question: Question,
    shares: Sequence[Share] = (),
    known: Known | None = None,
) -> float:
    """Return bytes that every seating of *question* crosses at least [bytes].

    Args:
        question: the grid and its charges.
        shares: priced rules of ``sharpened_bound``.
        known: what is known of the domains' bounds at these prices; what is worked out is added.
    """
    if len(question.capacities) == 1:
        return 0.0
    bounds = _bounds(question, None, shares)
    if sum(question.capacities) == question.cells:
        total = sum(bounds(capacity) for capacity in question.capacities)
    elif len(question.capacities) <= DOMAINS_FEW:
        total = _filling_as_needed(question, bounds, known or _loosely(question, shares))
    else:
        total = cheapest_filling(question.capacities, question.cells, bounds)
    for share in shares:
        pieces = -(-question.group_size(share.axes) // share.most)
        total += share.price_bytes * pieces * question.groups(share.axes)
    rebate = rebate_bytes(question)
    return max(0.0, total - rebate - rebate * _CANCELLED)


@dataclass(slots=True, kw_only=True)
class Known:
    """Bounds of domains by the cells that they hold.

    Args:
        exact_bytes: those worked out [bytes].
        floors_bytes: lower bounds of the others [bytes].
    """

    exact_bytes: dict[int, float]
    floors_bytes: Mapping[int, float]


def _loosely(question: Question, shares: Sequence[Share]) -> Known:
    """Return loose bounds for all cells that a domain may hold."""
    return Known(
        exact_bytes={},
        floors_bytes={held: loose_bound(question, held, shares) for held in holdings(question)},
    )


def holdings(question: Question) -> set[int]:
    """Return how many cells a domain that is not empty may hold."""
    spare = sum(question.capacities) - question.cells
    return {
        held
        for c in set(question.capacities)
        for held in range(max(1, c - spare), min(c, question.cells) + 1)
    }


def _filling_as_needed(question: Question, bound_of: Callable[[int], float], known: Known) -> float:
    """Return the cheapest filling's price; only the domains that it holds are worked out."""
    while True:
        costs = {**known.floors_bytes, **known.exact_bytes}
        total, holding = _filling(question.capacities, question.cells, costs)
        missing = [held for held in holding if held and held not in known.exact_bytes]
        if not missing:
            return total
        for held in missing:
            known.exact_bytes[held] = bound_of(held)


def _filling(
    capacities: Sequence[int], cells: int, costs: Mapping[int, float]
) -> tuple[float, set[int]]:
    """Return the price of the cheapest filling and how many cells its domains hold."""
    spare = sum(capacities) - cells
    layers = [np.full(cells + 1, inf)]
    layers[0][0] = 0.0
    for capacity in capacities:
        merged = np.full(cells + 1, inf)
        for held in range(max(0, capacity - spare), min(capacity, cells) + 1):
            cost = costs[held] if held else 0.0
            merged[held:] = np.minimum(merged[held:], layers[-1][: cells + 1 - held] + cost)
        layers.append(merged)
    holding, left = set(), cells
    for capacity, before, after in zip(
        reversed(capacities), reversed(layers[:-1]), reversed(layers[1:]), strict=True
    ):
        for held in range(max(0, capacity - spare), min(capacity, left) + 1):
            if before[left - held] + (costs[held] if held else 0.0) == after[left]:
                holding.add(held)
                left -= held
                break
    return float(layers[-1][cells]), holding


def _bounds(
    question: Question, split_axis: int | None, shares: Sequence[Share] = ()
) -> Callable[[int], float]:
    @cache
    def bound_of(held: int) -> float:
        return domain_bound(question, held, split_axis, shares)

    return bound_of


def split_bound(question: Question, axis: int) -> float:
    """Return bytes crossed at least by every seating that parts some line along *axis* [bytes].

    Two domains at least then hold a part of that line, and each pays the domain bound of such a
    set. A domain that parts no line holds whole lines: it pays the bound of the coarse grid.
    """
    capacities, n = question.capacities, question.sizes[axis]
    if len(capacities) < 2:
        return lower_bound(question)
    sides = tuple(n if i == axis else 1 for i in range(len(question.sizes)))
    coarse = coarsen(question, sides, [question.cells // n])
    if sum(capacities) == question.cells:
        of_lines, parted = _bounds(coarse, None), _bounds(question, axis)
    else:
        of_lines = partial(loose_bound, coarse)
        parted = partial(loose_bound, question, split_axis=axis)
    touch_bytes = plain_weights(question).get((axis,), 0.0)  # the coarse grid has no such groups

    def lines(held: int) -> float:
        return of_lines(held) + touch_bytes * held

    spare = sum(capacities) - question.cells
    if spare == 0:
        return _split_full(question, n, lines, parted)
    if len(capacities) * question.cells > _FILLING_WORK:
        return lower_bound(question)
    best = np.full((3, question.cells + 1), inf)  # by domains that part a line, two or more alike
    best[0, 0] = 0.0
    for capacity in sorted(capacities):
        merged = np.full_like(best, inf)
        for held in range(max(0, capacity - spare), min(capacity, question.cells) + 1):
            rest = question.cells + 1 - held
            if held % n == 0:
                merged[:, held:] = np.minimum(merged[:, held:], best[:, :rest] + lines(held // n))
            if held:
                cost = parted(held)
                merged[1, held:] = np.minimum(merged[1, held:], best[0, :rest] + cost)
                after = np.minimum(best[1, :rest], best[2, :rest])
                merged[2, held:] = np.minimum(merged[2, held:], after + cost)
        best = merged
    rebate = rebate_bytes(question)
    return max(0.0, float(best[2, question.cells]) - rebate - rebate * _CANCELLED)


def _split_full(
    question: Question,
    line: int,
    lines: Callable[[int], float],
    parted: Callable[[int], float],
) -> float:
    """Return ``split_bound`` where every seat is taken: two domains at least part a line."""
    total, forced = 0.0, 0
    extras: list[float] = []
    for capacity, times in sorted(Counter(question.capacities).items()):
        split = parted(capacity)
        whole = lines(capacity // line) if capacity % line == 0 else inf
        total += times * min(split, whole)
        if split <= whole:
            forced += times
        else:
            extras += [split - whole] * min(times, 2)
    missing = max(0, 2 - forced)
    if missing > len(extras):
        return inf
    rebate = rebate_bytes(question)
    total += sum(sorted(extras)[:missing])
    return max(0.0, total - rebate - rebate * _CANCELLED)


def cheapest_filling(
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
