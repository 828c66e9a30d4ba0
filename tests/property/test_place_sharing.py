"""What domains share: the quick way to its best price against the plain one, and every seating."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from math import inf

import pytest

from planner.place.bound import domain_bound, lower_bound, prices_by_axes, rebate_bytes
from planner.place.question import Kind, Question
from planner.place.sharing import Tries, _part_sizes, peak, rising_shares, sharpened_bound
from planner.place.spread import Share
from tests.oracles import brute_force_cut
from tests.small_questions import Drawn

ROUNDING = 1e-9
STEPS = 12
DRAWN = Drawn(
    first_seed=5_120_000,
    grids=((2, 2, 3), (4, 3), (2, 3, 2), (2, 2, 2), (2, 5), (3, 4), (2, 6)),
    kinds=(Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.CHAIN),
    spare_share=0.7,
)


def _plain_bound(question: Question, shares: tuple[Share, ...]) -> float:
    """Return the bound at these prices: every filling, every domain for itself."""
    held = [range(min(c, question.cells) + 1) for c in question.capacities]
    pays = [domain_bound(question, c, None, shares) for c in range(question.cells + 1)]
    least = min(sum(pays[c] for c in h) for h in product(*held) if sum(h) == question.cells)
    given = sum(
        s.price_bytes * -(-question.group_size(s.axes) // s.most) * question.groups(s.axes)
        for s in shares
    )
    return max(0.0, least + given - rebate_bytes(question))


def _plain_peak(bound_at: Callable[[float], float], most: float) -> tuple[float, float]:
    """Return where slopes from both ends meet, until there is nothing between them."""
    nudge, low, high = most * 1e-6, 0.0, most
    f_low, f_high = bound_at(low), bound_at(high)
    rise = (bound_at(low + nudge) - f_low) / nudge
    fall = (f_high - bound_at(high - nudge)) / nudge
    best = max((f_low, low), (f_high, high))
    for _ in range(STEPS):
        if rise <= 0 or fall >= 0:
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


def _plain_sharpened(question: Question) -> float:
    best = lower_bound(question)
    shares: tuple[Share, ...] = ()
    prices = prices_by_axes(question)
    priced = (axes for axes, price in prices.items() if price > 0)
    for axes in sorted(priced, key=lambda a: (-prices[a] * question.groups(a), a)):
        for most in _part_sizes(question, axes, prices):

            def bound_at(price: float, axes: tuple[int, ...] = axes, most: int = most) -> float:
                one = Share(axes=axes, most=most, price_bytes=price)
                return _plain_bound(question, (*shares, one) if price else shares)  # noqa: B023

            at, value = _plain_peak(bound_at, prices[axes])
            if value > best * (1 + 1e-12):
                best, shares = value, (*shares, Share(axes=axes, most=most, price_bytes=at))
    return best


def _compared(numbers: range) -> Iterator[tuple[Question, float, float]]:
    for question in DRAWN.questions(numbers):
        yield question, sharpened_bound(question, inf), _plain_sharpened(question)


def _wrong(numbers: range) -> list[str]:
    wrong = []
    for question, quick, plain in _compared(numbers):
        if quick < plain * (1 - ROUNDING):
            wrong.append(f"{quick} below {plain}: {question}")
        if quick > brute_force_cut(question) * (1 + ROUNDING) + ROUNDING:
            wrong.append(f"{quick} above the least cut: {question}")
    return wrong


def test_the_quick_way_to_the_best_price_finds_no_less_than_the_plain_one() -> None:
    assert _wrong(range(25)) == []


@pytest.mark.nightly
def test_many_quick_ways_to_the_best_price_find_no_less_than_the_plain_one() -> None:
    assert _wrong(range(100, 500)) == []


def test_a_price_that_reaches_what_is_asked_ends_the_search_and_rising_bounds_rise() -> None:
    some = 0
    for question in DRAWN.questions(range(40)):
        rising = [bound for bound, _ in rising_shares(question, inf)]
        assert rising == sorted(rising)
        assert rising[-1] == sharpened_bound(question, inf)
        asked = (rising[0] + rising[-1]) / 2
        if rising[-1] > rising[0]:
            some += 1
            assert sharpened_bound(question, asked) >= asked * (1 - ROUNDING)
    assert some > 1


def test_what_falls_from_the_first_price_on_is_not_asked_at_the_last() -> None:
    asked: list[float] = []

    def falling(price: float) -> float:
        asked.append(price)
        return 7.0 - price

    assert peak(falling, 4.0, Tries(50)) == (0.0, 7.0)
    assert max(asked) < 1e-3
