"""How large a cluster becomes: within so much money or power, or for so many tokens a second.

A cluster grows by whole supernodes, in numbers whose odd part is small, so that parallel degrees
divide them: up to 16 each, beyond that eight sizes between a power of two and the next. Between
the size that is enough for a run and smaller ones that may be, ``least_between`` tries more.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from math import ceil

SIZES_TRIED = 4
_STEPS = 16
UNEVEN_SHARE = 0.3
"""Of the rate of a count that degrees divide well, what one that they divide badly loses at most,
as far as is looked [1]: a pipeline or a batch of one part in three or four that stands idle."""
BETWEEN_TRIED = 24
"""Counts tried below the one that is enough, before those beside the first that is, too [1]."""


def supernode_counts(most: int) -> list[int]:
    """Return the numbers of supernodes that are tried, up to *most*, ascending.

    >>> supernode_counts(40)[-10:]
    [18, 20, 22, 24, 26, 28, 30, 32, 36, 40]
    """
    found = set(range(1, min(most, _STEPS) + 1))
    double = 1
    while _STEPS // 2 * double <= most:
        found.update(m * double for m in range(_STEPS // 2, _STEPS + 1) if m * double <= most)
        double *= 2
    return sorted(found)


def most_within(cost_of: Callable[[int], float], limit: float, most: int) -> int:
    """Return the most supernodes whose cost is at most *limit*; 0 where one is too dear.

    Args:
        cost_of: what so many cost together; grows with them.
        limit: what may be spent, in the same unit.
        most: supernodes that can be built [1].

    >>> most_within(lambda count: 10.0 * count, 95.0, 1000)
    9
    """
    low, high = 0, 1
    while high <= most and cost_of(high) <= limit:
        low, high = high, high * 2
    high = min(high, most + 1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if cost_of(middle) <= limit else (low, middle)
    return low


def best_within(rate_of: Callable[[int], float], most: int) -> int:
    """Return which of the largest few counts up to *most* has the highest rate; 0 if none has any.

    Args:
        rate_of: tokens a second with so many supernodes, 0 where nothing fits [1/s].
        most: supernodes that can be paid for [1].

    >>> best_within(lambda count: 100.0 if count == 14 else float(count), 15)
    14
    """
    tried = supernode_counts(most)[-SIZES_TRIED:]
    best = max(tried, key=lambda count: (rate_of(count), count), default=0)
    return best if best and rate_of(best) > 0 else 0


def least_for(
    rate_of: Callable[[int], float], wanted_per_s: float, most: int, start: int = 1
) -> int:
    """Return the fewest supernodes of the counts tried whose rate is as *wanted_per_s*, or 0.

    The rate is taken to grow with the count to find one that is enough. Degrees divide some counts
    badly, so fewer may do what more do not: those below are looked at, too, as long as they could
    do with the highest rate that a supernode was seen to have, had that lost ``UNEVEN_SHARE``.

    Args:
        rate_of: tokens a second with so many supernodes, 0 where nothing fits [1/s].
        wanted_per_s: tokens a second [1/s].
        most: supernodes that can be built [1].
        start: a guess, to be quick [1].

    >>> least_for(lambda count: 3.0 * count, 100.0, 1000)
    36
    >>> least_for(lambda count: 3.0 * count if count % 4 == 0 else 1.0, 20.0, 1000, 14)
    8
    >>> least_for(lambda count: 3.0 * count if count <= 20 else 0.0, 30.0, 1000, 128)
    10
    """
    counts = supernode_counts(most)
    high = min(bisect_right(counts, start), len(counts) - 1)
    fewer_run = rate_of(counts[high]) == 0  # so many cannot be built, or no layout divides them
    first = high
    while rate_of(counts[high]) < wanted_per_s:
        if high < len(counts) - 1:
            high = min(high + 4, len(counts) - 1)
            continue
        below = range(first - 1, -1, -1) if fewer_run else ()
        high = next((at for at in below if rate_of(counts[at]) >= wanted_per_s), -1)
        if high < 0:
            return 0
    low = high
    while low >= 0 and rate_of(counts[low]) >= wanted_per_s:
        low, high = low - 4, low
    low = max(low, -1)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if rate_of(counts[middle]) < wanted_per_s else (low, middle)
    each_per_s = max(rate_of(counts[at]) / counts[at] for at in (low, high) if at >= 0)
    for fewer in range(high - 1, -1, -1):
        if each_per_s / (1.0 - UNEVEN_SHARE) * counts[fewer] < wanted_per_s:
            break
        rate_per_s = rate_of(counts[fewer])
        each_per_s = max(each_per_s, rate_per_s / counts[fewer])
        high = fewer if rate_per_s >= wanted_per_s else high
    return counts[high]


def least_between(
    does: Callable[[int], bool], enough: int, wanted_per_s: float, each_per_s: float
) -> int:
    """Return the fewest supernodes of those tried, up to *enough*, with which *does* is true.

    All counts from where the best rate of a supernode would just do are tried, lowest first; where
    they are more than ``BETWEEN_TRIED``, multiples of a power of two, then by halves what lies
    between the first that does and the one before it.

    Args:
        does: whether so many supernodes are enough.
        enough: supernodes that are [1].
        wanted_per_s: tokens a second [1/s].
        each_per_s: highest rate that a supernode was seen to have [1/s].

    >>> least_between(lambda count: count in {151, 155, 156}, 160, 450.0, 3.0)
    151
    >>> least_between(lambda count: count >= 1501, 1600, 4200.0, 3.0)
    1501
    """
    low = max(1, ceil(wanted_per_s / each_per_s * (1.0 - 1e-9)))
    stride = 1
    while (enough - low) // stride > BETWEEN_TRIED:
        stride *= 2
    tried = range(ceil(low / stride) * stride, enough, stride)
    high = next((count for count in tried if does(count)), enough)
    low = max(low - 1, (high - 1) // stride * stride)  # too few, or not tried as hopeless
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if does(middle) else (middle, high)
    return high


def untried_below(count: int, tried: set[int], wanted_per_s: float, each_per_s: float) -> bool:
    """Return whether fewer supernodes than *count* that were not tried might be enough.

    Args:
        count: supernodes that are [1].
        tried: all counts that were.
        wanted_per_s: tokens a second [1/s].
        each_per_s: highest rate that a supernode was seen to have [1/s].

    >>> untried_below(8, {6, 7, 8}, 23.0, 3.0), untried_below(8, {6, 8}, 23.0, 3.0)
    (False, True)
    """
    lowest = ceil(wanted_per_s * (1.0 - UNEVEN_SHARE) / each_per_s)
    return any(one not in tried for one in range(max(1, lowest), count))
