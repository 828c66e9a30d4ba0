"""What is varied to see where a winner changes, and at which of its values one can ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, gcd, lcm, log, log2, sqrt

from planner.search.changed import Change
from planner.search.pool import Pool

WIDEST_FACTOR = 32.0
"""Factors are asked about from 1/32 to 32: five doublings either way."""
GRID = 8
"""Factors that are asked about on each side of now, before any bisection: 1.54 apart."""
_CLOSE = 1e-3  # in log: 0.1 %
_PARTS = 8
"""Whole multiples on the grid are of 2^k units, at least so many of them: they have factors."""
LENGTHS = 64
"""Sequence lengths are multiples of what is odd in the GPUs, and of the largest power of two that
leaves so many such parts or more: so ranks get whole and equal parts, and what is too long for all
layouts at one length is at any longer one, too."""

Vary = Callable[[float], Change]


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """A property that is varied on all clusters alike, as a factor of what it is.

    Args:
        name: of the property.
        change: what a factor of it makes different.
        unit_ratio: what it comes in whole multiples of, as a part of what it is; 0 where any value
            can be [1].
        least_ratio: the smallest factor there is [1].
        units: units that a multiple has at least in each of a power of two; 0 where it need not be
            one [1].
    """

    name: str
    change: Vary
    unit_ratio: float = 0.0
    least_ratio: float = 1.0 / WIDEST_FACTOR
    units: int = 0

    def grid(self, direction: int) -> list[float]:
        """Return the factors that are asked about first, near to far.

        Args:
            direction: 1 above 1, -1 below.

        >>> [round(x, 2) for x in Axis(name="any", change=lambda x: Change()).grid(1)][:3]
        [1.54, 2.38, 3.67]
        """
        found: list[float] = []
        for position in range(1, GRID + 1):
            factor = max(self.least_ratio, exp(direction * log(WIDEST_FACTOR) * position / GRID))
            if self.unit_ratio:
                some = 2.0 ** max(0, int(log2(factor / self.unit_ratio / _PARTS)))
                factor = max(1, round(factor / self.unit_ratio / some)) * self.unit_ratio * some
            if factor not in (1.0, *found):
                found.append(factor)
        return found

    def nearest(self, factor: float) -> float:
        """Return the factor nearest to *factor* that there is; at least one unit, where it has.

        >>> lengths = Axis(name="seq", change=lambda x: Change(), unit_ratio=1 / 4096, units=64)
        >>> [lengths.nearest(x) * 4096 for x in (0.3, 1.3, 7.77)]
        [1232.0, 5312.0, 31744.0]
        """
        factor = min(WIDEST_FACTOR, max(self.least_ratio, factor))
        if not self.unit_ratio:
            return factor
        step = self._step(factor)
        return max(1, round(factor / self.unit_ratio / step)) * step * self.unit_ratio

    def between(self, held_ratio: float, beyond_ratio: float) -> float | None:
        """Return a factor between two, or None where they are as close as one can ask.

        Without a unit that is 0.1 %.
        """
        if abs(log(beyond_ratio / held_ratio)) <= _CLOSE:
            return None
        middle = sqrt(held_ratio * beyond_ratio)
        if not self.unit_ratio:
            return middle
        low, high = sorted(round(one / self.unit_ratio) for one in (held_ratio, beyond_ratio))
        step = self._step(middle)
        first, last = (low // step + 1) * step, (-(-high // step) - 1) * step
        if first > last:
            return None
        nearest = round(middle / self.unit_ratio / step) * step
        return min(max(nearest, first), last) * self.unit_ratio

    def _step(self, factor: float) -> int:
        """Return how many units lie between two factors near *factor* [1]."""
        if not self.units:
            return 1
        parts = max(1, round(factor / self.unit_ratio)) // self.units
        return 1 << max(0, parts.bit_length() - 1)


def _odd(number: int) -> int:
    return number // (number & -number)


def axes_of(pools: Sequence[Pool]) -> list[Axis]:
    """Return what is varied on some clusters; of all of them by the same factors."""
    transactions = min(pool.nic.in_flight for pool in pools)
    tokens = min(int(pool.whole.fixed["seq"]) for pool in pools)
    part = _odd(lcm(*(int(pool.columns.gpus[0]) for pool in pools)))
    if part * LENGTHS > tokens:
        part = gcd(part, tokens)
    return [
        Axis(name="nic_rate", change=lambda x: Change(nic_rate=x)),
        Axis(name="nic_latency", change=lambda x: Change(nic_latency=x)),
        Axis(
            name="in_flight", change=lambda x: Change(in_flight=x), unit_ratio=1.0 / transactions,
            least_ratio=max(1.0 / WIDEST_FACTOR, 1.0 / transactions),
        ),
        Axis(name="oversubscription", change=lambda x: Change(crowding=x)),
        Axis(name="seq", change=lambda x: Change(seq=x), unit_ratio=part / tokens,
             units=LENGTHS),
    ]  # fmt: skip
