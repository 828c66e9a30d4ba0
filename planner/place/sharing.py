"""The lower bound once more, with what the domains must share.

``lower_bound`` lets every domain take the shape that suits it; here the shapes must add up: the
parts of a group are n together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil, inf, log
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import (
    filled_as_needed,
    lower_bound,
    plain_prices,
    prices_by_axes,
    prices_of,
)
from planner.place.finner import cheapest_real_box
from planner.place.spread import Share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from numpy.typing import NDArray

    from planner.place.fillings import Prices
    from planner.place.question import Question

_DOMAINS_PRICED = 1200  # bounds of single domains, over all prices tried
_PEAK_STEPS = 12  # slopes met while looking for the best price of the sharing rule


def sharpened_bound(question: Question, target_bytes: float, *, tries: int | None = None) -> float:
    """Return a bound that also counts what the domains must share [bytes].

    Whatever the parts n_s of a group of n, sum_s ceil(n_s / m) >= ceil(n / m): a group of which no
    domain holds more than m lies in ceil(n / m) domains at least. That rule ties the domains
    together; any price of at least 0 on it gives a bound. The bound is concave and piecewise
    linear in the price, so two slopes that meet give its peak.

    Args:
        question: the grid and its charges.
        target_bytes: stop when this is reached [bytes].
        tries: prices tried at most; as many as are worked out soon if left out [1].
    """
    return priced_shares(question, target_bytes, tries=tries)[0]


def priced_shares(
    question: Question, target_bytes: float, *, tries: int | None = None
) -> tuple[float, tuple[Share, ...]]:
    """Return the bound of ``sharpened_bound`` [bytes] and the prices that give it."""
    *_, best = rising_shares(question, target_bytes, tries=tries)
    return best


def rising_shares(
    question: Question, target_bytes: float, *, tries: int | None = None
) -> Iterator[tuple[float, tuple[Share, ...]]]:
    """Yield ``lower_bound``, then every better bound as it is found, with its prices."""
    best = lower_bound(question)
    shares: tuple[Share, ...] = ()
    yield best, shares
    left = Tries(_DOMAINS_PRICED // _holdings(question) if tries is None else tries)
    prices = prices_by_axes(question)
    priced = (axes for axes, price in prices.items() if price > 0)
    for axes in sorted(priced, key=lambda a: (-prices[a] * question.groups(a), a)):
        for most in _part_sizes(question, axes, prices):
            if best >= target_bytes * (1 - 1e-12) or not left:
                return

            rule = _Rule(question=question, shares=shares, axes=axes, most=most)
            at_peak, value = peak(rule.bound_at, prices[axes], left, target_bytes)
            if value > best * (1 + 1e-12):
                best = value
                shares = (*shares, Share(axes=axes, most=most, price_bytes=at_peak))
                yield best, shares


def _holdings(question: Question) -> int:
    """Return how many numbers of cells a domain may hold, over all domains."""
    spare = sum(question.capacities) - question.cells
    ranges = [range(max(0, c - spare), min(c, question.cells) + 1) for c in question.capacities]
    return max(1, len({held for held_range in set(ranges) for held in held_range}))


class Tries:
    """Bounds that may still be worked out: what is tried depends on that, not on the clock."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __bool__(self) -> bool:
        return self.count > 0


@dataclass(slots=True, kw_only=True)
class _Rule:
    """The bound by the price of one rule, those of others given.

    Args:
        question: the grid and its charges.
        shares: the rules that have their price.
        axes: axes of the groups of this one.
        most: its part size m [1].
        known_bytes: by price, what domains pay at least by the cells that they hold [bytes].
    """

    question: Question
    shares: tuple[Share, ...]
    axes: tuple[int, ...]
    most: int
    known_bytes: dict[float, NDArray[np.float64]] = field(default_factory=dict)

    def bound_at(self, price_bytes: float) -> float:
        """Return the bound at a price [bytes].

        What a domain pays is the least of lines in the price, hence concave: between two prices it
        is no less than the mean of what it pays there, and beyond them it falls by its pieces at
        most. So few domains need be worked out.
        """
        known = self._known(price_bytes)
        bound = lower_bound(self.question, self._shares(price_bytes), known)
        if known is not None:
            self.known_bytes[price_bytes] = known.least_bytes
        return bound

    def _shares(self, price_bytes: float) -> tuple[Share, ...]:
        if not price_bytes:
            return self.shares
        share = Share(axes=self.axes, most=self.most, price_bytes=price_bytes)
        return (*self.shares, share)

    def _known(self, price_bytes: float) -> Prices | None:
        """Return what is known of domains at this price, by the prices on both sides too."""
        question = self.question
        if sum(question.capacities) == question.cells or not filled_as_needed(question):
            return None
        shares = self._shares(price_bytes)
        known = prices_of(question, shares) if shares else plain_prices(question)
        below = max((p for p in self.known_bytes if p <= price_bytes), default=None)
        above = min((p for p in self.known_bytes if p >= price_bytes), default=None)
        if below is None:
            return known
        may = np.flatnonzero(np.isfinite(known.least_bytes))
        if above is None:
            least = self.known_bytes[below][may] - (price_bytes - below) * self._most_pieces(may)
        else:
            part = (price_bytes - below) / (above - below) if above > below else 0.0
            least = (1 - part) * self.known_bytes[below][may] + part * self.known_bytes[above][may]
        known.least_bytes[may] = np.maximum(known.least_bytes[may], least)
        return known

    def _most_pieces(self, held: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return in how many pieces of the part size so many cells can lie at most."""
        pieces = -(-self.question.group_size(self.axes) // self.most)
        return np.minimum(held, pieces * self.question.groups(self.axes))


def _part_sizes(
    question: Question, axes: tuple[int, ...], prices: Mapping[tuple[int, ...], float]
) -> tuple[int, ...]:
    """Return the m worth a rule: the largest that still needs as many pieces as the best box.

    And n - 1, under which a group that is whole nowhere lies in two domains.
    """
    size = question.group_size(axes)
    if size < 2:
        return ()
    live = [i for i, n in enumerate(question.sizes) if n > 1]
    index = {axis: i for i, axis in enumerate(live)}
    sets = tuple(tuple(index[i] for i in family if i in index) for family in prices)
    box = np.exp(
        cheapest_real_box(
            np.log([question.sizes[i] for i in live]),
            sets,
            np.array(list(prices.values())),
            log(min(max(question.capacities), question.cells)),
        )
    )
    part = float(np.prod([box[index[i]] for i in axes if i in index]))
    pieces = max(2, ceil(size / part - 1e-9))
    return tuple(
        dict.fromkeys(
            most
            for most in (-(-size // (pieces - 1)) - 1, -(-size // pieces) - 1, size - 1)
            if most >= 1
        )
    )


def peak(
    bound_of: Callable[[float], float], most: float, left: Tries, enough_bytes: float = inf
) -> tuple[float, float]:
    """Return (price, bound) near the peak of a concave piecewise linear function on [0, most].

    Args:
        bound_of: the function.
        most: the largest price.
        left: how often it may be asked; the first four times in any case.
        enough_bytes: a bound that need not be better [bytes].
    """

    def bound_at(price: float) -> float:
        left.count -= 1
        return bound_of(price)

    nudge = most * 1e-6
    low, high = 0.0, most
    f_low = bound_at(low)
    rise = (bound_at(low + nudge) - f_low) / nudge
    if rise <= 0 or f_low >= enough_bytes:  # what falls from the start on falls to the end
        left.count -= 2
        return low, f_low
    f_high = bound_at(high)
    fall = (f_high - bound_at(high - nudge)) / nudge
    best = max((f_low, low), (f_high, high))
    for _ in range(_PEAK_STEPS):
        if fall >= 0 or not left or best[0] >= enough_bytes:
            break
        middle = (f_high - f_low + rise * low - fall * high) / (rise - fall)
        if not low < middle < high:
            break
        value = bound_at(middle)
        best = max(best, (value, middle))
        if value >= (f_low + rise * (middle - low)) * (1 - 1e-12):
            break
        slope = (bound_at(middle + nudge) - value) / nudge
        if slope > 0:
            low, f_low, rise = middle, value, slope
        else:
            high, f_high, fall = middle, value, (value - bound_at(middle - nudge)) / nudge
    return best[1], best[0]
