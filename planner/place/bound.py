"""The lower bound: what one domain must pay, added up over the domains.

``spread.py`` says what a domain pays by the groups it touches, ``touch_search.py`` which touches
are possible and the cheapest of them. ``lower_bound`` adds up the domains, choosing how full each
one is where there are spare seats. It holds for every seating whatever. Proofs: ``FORMULATION.md``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import cache, lru_cache, partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.place.domain_bounds import Bounds
from planner.place.fillings import Prices, cheapest, cheapest_filling, cheapest_parted
from planner.place.floors import floors, taken_out_bytes
from planner.place.question import Question, coarsen
from planner.place.spread import Share, closing_weights, plain_weights
from planner.place.two_parts import in_two_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_domain_bound, _loose_bound = Bounds(sharp=True), Bounds(sharp=False)
_FILLINGS_WORK = 3_000  # domains x holdings up to which fillings are cheap against bounds
_FILLING_WORK = 3_000_000  # domains x cells past which splitting with spare seats is not priced
_LOOKS_MOST = 200  # at the cheapest way to fill two domains
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
    return _domain_bound(question, (held,), split_axis, tuple(shares))[0]


def domain_bounds(
    question: Question, held: Sequence[int], *, sharp: bool, split_axis: int | None = None
) -> list[float]:
    """Return ``domain_bound`` of several numbers of cells, or ``loose_bound`` if not *sharp*."""
    return (_domain_bound if sharp else _loose_bound)(question, held, split_axis, ())


def loose_bound(
    question: Question,
    held: int,
    shares: Sequence[Share] = (),
    split_axis: int | None = None,
) -> float:
    """Return the same without what families pay for leaving each other no room [bytes].

    Much faster; where seats are spare a domain may hold any number of cells, and few matter.
    """
    return _loose_bound(question, (held,), split_axis, tuple(shares))[0]


def lower_bound(
    question: Question,
    shares: Sequence[Share] = (),
    known: Prices | None = None,
    enough_bytes: float = inf,
) -> float:
    """Return bytes that every seating of *question* crosses at least [bytes].

    Args:
        question: the grid and its charges.
        shares: priced rules of ``sharpened_bound``.
        known: what is known of the domains' bounds at these prices; what is worked out is added.
        enough_bytes: where seats are spare the bound need not be sharp above it, nor where it is
            known to stay below; if infinite, it is sharp [bytes].
    """
    bound = apart_bound(question, shares, known, enough_bytes)
    if len(question.capacities) == 2 and not shares and bound < enough_bytes:
        bound = max(bound, _bound_of_two(question))
    return bound


def rough_bound(question: Question) -> float:
    """Return ``lower_bound`` by what each domain pays by itself, and roughly [bytes].

    Without what families pay for leaving each other no room, of which large domains ask much time.
    """
    if len(question.capacities) == 1:
        return 0.0
    pays = partial(loose_bound, question)
    if sum(question.capacities) == question.cells:
        total = sum(map(pays, question.capacities))
    else:
        prices = prices_of(question)
        total = cheapest(
            question.capacities, question.cells, replace(prices, closer=prices.closer[:1])
        )
    rebate = rebate_bytes(question)
    return max(0.0, total - rebate - rebate * _CANCELLED)


def apart_bound(
    question: Question,
    shares: Sequence[Share] = (),
    known: Prices | None = None,
    enough_bytes: float = inf,
) -> float:
    """Return ``lower_bound`` as the sum of what each domain pays by itself [bytes].

    A domain that pays more than its least by a cut less this is in no better seating; that does not
    hold of a bound that looks at two domains together.

    Args:
        question: as of ``lower_bound``.
        shares: as above.
        known: as above.
        enough_bytes: as above [bytes].
    """
    if len(question.capacities) == 1:
        return 0.0
    rebate = rebate_bytes(question)
    given = [_given_bytes(question, share) for share in shares]
    if sum(question.capacities) == question.cells:
        bounds = _bounds(question, None, shares)
        total = sum(bounds(capacity) for capacity in question.capacities)
    elif filled_as_needed(question):
        prices = known or prices_of(question, shares)
        if not shares and known is None and enough_bytes == inf:
            prices = plain_prices(question)
        enough = enough_bytes - sum(given) + rebate + rebate * _CANCELLED
        total = cheapest(question.capacities, question.cells, prices, enough)
    else:
        bounds = _bounds(question, None, shares)
        total = cheapest_filling(question.capacities, question.cells, bounds)
    total = sum(given, total)
    return max(0.0, total - rebate - rebate * _CANCELLED)


def _bound_of_two(question: Question) -> float:
    """Return ``lower_bound`` of two domains, each charged for both [bytes]."""
    halves, cells = in_two_parts(question), question.cells
    larger, smaller = max(question.capacities), min(question.capacities)
    if larger + smaller == cells:
        return max(domain_bound(halves, larger), domain_bound(halves, smaller))
    first = np.arange(max(0, cells - smaller), min(larger, cells) + 1)
    if len(first) > _FILLINGS_WORK:
        return 0.0
    prices = prices_of(halves, held={*first.tolist(), *(cells - first).tolist()} - {0})
    for _ in range(_LOOKS_MOST):
        both = np.maximum(prices.least_bytes[first], prices.least_bytes[cells - first])
        best = int(both.argmin())
        held = (int(first[best]), cells - int(first[best]))
        looked = [prices.look_closer(c) for c in held if c]
        if not any(looked):
            break
    return float(both[best])


def _given_bytes(question: Question, share: Share) -> float:
    """Return what a priced rule gives back: what all groups' fewest pieces cost [bytes]."""
    pieces = -(-question.group_size(share.axes) // share.most)
    return share.price_bytes * pieces * question.groups(share.axes)


def filled_as_needed(question: Question) -> bool:
    """Return whether filling the domains costs little against looking closely at one of them."""
    return len(question.capacities) * len(holdings(question)) <= _FILLINGS_WORK


def prices_of(
    question: Question,
    shares: Sequence[Share] = (),
    *,
    split_axis: int | None = None,
    held: set[int] | None = None,
) -> Prices:
    """Return what a domain pays, roughly, by the cells that it may hold.

    Args:
        question: the grid and its charges.
        shares: priced rules of ``sharpened_bound``.
        split_axis: the domain is known to hold a part, not all, of some line along it.
        held: how many cells it may hold besides none; ``holdings`` if left out.
    """
    cells = np.array(sorted(holdings(question) if held is None else held), dtype=np.int64)
    least = np.full(int(cells.max(initial=0)) + 1, inf)
    least[0] = 0.0
    if len(cells):
        least[cells] = floors(question, cells, shares, split_axis)
    return Prices(
        least_bytes=least,
        closer=(
            lambda c: loose_bound(question, c, shares, split_axis),
            lambda c: domain_bound(question, c, split_axis, shares),
        ),
        falls_bytes=taken_out_bytes(question, shares, len(least)),
    )


def plain_prices(question: Question) -> Prices:
    """Return ``prices_of`` without rules, where the cheapest filling holds looked at closely."""
    known = _plain_prices(question)
    return replace(known, least_bytes=known.least_bytes.copy(), asked=dict(known.asked))


@lru_cache(maxsize=64)
def _plain_prices(question: Question) -> Prices:
    prices = prices_of(question)
    cheapest(question.capacities, question.cells, prices)
    return prices


def holdings(question: Question) -> set[int]:
    """Return how many cells a domain that is not empty may hold."""
    spare = sum(question.capacities) - question.cells
    return {
        held
        for c in set(question.capacities)
        for held in range(max(1, c - spare), min(c, question.cells) + 1)
    }


def _bounds(
    question: Question, split_axis: int | None, shares: Sequence[Share] = ()
) -> Callable[[int], float]:
    @cache
    def bound_of(held: int) -> float:
        return domain_bound(question, held, split_axis, shares)

    return bound_of


def split_bound(question: Question, axis: int, enough_bytes: float = inf) -> float:
    """Return bytes crossed at least by every seating that parts some line along *axis* [bytes].

    Two domains at least then hold a part of that line, and each pays the domain bound of such a
    set. A domain that parts no line holds whole lines: it pays the bound of the coarse grid.

    Args:
        question: the grid and its charges.
        axis: of the line.
        enough_bytes: as of ``lower_bound`` [bytes].
    """
    capacities, n = question.capacities, question.sizes[axis]
    if len(capacities) < 2:
        return lower_bound(question)
    sides = tuple(n if i == axis else 1 for i in range(len(question.sizes)))
    touch_bytes = plain_weights(question).get((axis,), 0.0)  # the coarse grid has no such groups
    if sum(capacities) == question.cells:
        of_lines = _bounds(coarsen(question, sides, [question.cells // n]), None)
        return _split_full(
            question, n, lambda c: of_lines(c) + touch_bytes * c, _bounds(question, axis)
        )
    if len(capacities) * question.cells > _FILLING_WORK:
        return lower_bound(question)
    held = holdings(question)
    coarse = coarsen(question, sides, [question.cells // n])
    whole = prices_of(coarse, held={c // n for c in held if c % n == 0})
    lined = Prices(
        least_bytes=whole.least_bytes + touch_bytes * np.arange(len(whole.least_bytes)),
        closer=tuple(partial(_lined, closer, touch_bytes) for closer in whole.closer),
        falls_bytes=whole.falls_bytes,
    )
    parted = prices_of(question, split_axis=axis, held=held)
    if filled_as_needed(question):  # whatever lines are parted, it costs no less
        least = plain_prices(question).least_bytes
        parted.least_bytes[1:] = np.maximum(parted.least_bytes[1:], least[1:])
        lines = np.arange(1, len(lined.least_bytes))
        lined.least_bytes[1:] = np.maximum(lined.least_bytes[1:], least[n * lines])
    else:
        lined.look_closely()
        parted.look_closely()
    rebate = rebate_bytes(question)
    enough = enough_bytes + rebate + rebate * _CANCELLED
    total = cheapest_parted(capacities, question.cells, n, lined, parted, enough)
    return max(0.0, total - rebate - rebate * _CANCELLED)


def _lined(bound_of: Callable[[int], float], touch_bytes: float, lines: int) -> float:
    """Return what so many whole lines cost, their own groups included [bytes]."""
    return bound_of(lines) + touch_bytes * lines


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
