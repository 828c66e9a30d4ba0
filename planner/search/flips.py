"""Where the winner changes: bisection on the model, and what would be worth buying."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from math import exp, isfinite, log
from typing import TYPE_CHECKING

import numpy as np

from planner.search.pool import AS_IT_IS, Change, Pool
from planner.steptime.uncertainty import faster

if TYPE_CHECKING:
    from numpy.typing import NDArray

WIDEST_FACTOR = 32.0
_GRID = 8
_CLOSE = 1e-3
_BEHIND = 1e-3

PROPERTIES: dict[str, Callable[[float], Change]] = {
    "nic_rate": lambda x: Change(nic_rate=x),
    "nic_latency": lambda x: Change(nic_latency=x),
    "in_flight": lambda x: Change(in_flight=x),
    "oversubscription": lambda x: Change(crowding=x),
    "seq": lambda x: Change(seq=x),
}
"""What is varied, on all clusters alike, as a factor of what it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """The nearest point at which something changes when a property is varied.

    Args:
        name: of the property.
        kind: ``winner`` (another cluster is fastest), ``tie`` (the runner-up can no longer be told
            from the winner, or now can), ``layout`` (another layout is best on the winner).
        factor: of the property as it is, at the change [1].
        before, after: what holds on the near side and beyond.
    """

    name: str
    kind: str
    factor: float
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """What a better machine would bring a cluster, with its layouts chosen anew.

    Args:
        name: what is better.
        step_s: the step then [s].
        gain_share: of tokens a second, more than now [1]. More money is well spent on it as long
            as the cluster costs less than this share more.
    """

    name: str
    step_s: float
    gain_share: float


def flips(pools: Sequence[Pool], spread: float) -> list[Flip]:
    """Return the nearest changes below and above the machines as they are, by property.

    Args:
        pools: the clusters' candidates.
        spread: of the fit, in log [1].
    """
    steps = _Steps(pools)
    winner = steps.ranked(AS_IT_IS)[0][0]
    found: list[Flip] = []
    for name, change in PROPERTIES.items():
        asked = {"layout": partial(_layout_at, steps, winner, change)}
        if len(pools) > 1:
            asked = {
                "winner": partial(_winner_at, steps, winner, change),
                "tie": partial(_tie_at, steps, change, spread),
                **asked,
            }
        for kind, ask in asked.items():
            found += _nearest(name, kind, cache(ask))
    return found


class _Steps:
    """The best steps of some pools, each change evaluated once.

    Every step is monotone in every property. Between two changes of one property that are known, a
    row can therefore be the best only if the smaller of its two steps there is no longer than the
    least of all larger ones; the others are not evaluated again.
    """

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = tuple(pools)
        self._known: dict[tuple[str, Change], tuple[float, int]] = {}
        self._steps_s: dict[str, dict[tuple[str, float], NDArray[np.float64]]] = {}

    def best(self, pool: Pool, change: Change) -> tuple[float, int]:
        """Return the shortest step [s] under *change*, and the row that has it; -1 if none fits."""
        key = (pool.name, change)
        if key not in self._known:
            name, factor = _varied(change)
            total = pool.steps_s(change, self._among(pool.name, name, factor))
            row = int(total.argmin())
            self._known[key] = (
                (float(total[row]), row) if np.isfinite(total[row]) else (float("inf"), -1)
            )
            self._steps_s.setdefault(pool.name, {})[name, factor] = total
        return self._known[key]

    def _among(self, pool: str, name: str, factor: float) -> NDArray[np.bool_] | None:
        """Return the rows that can be the best at *factor*, or None where nothing bounds it."""
        known = self._steps_s.get(pool, {})
        at = {f: total for (n, f), total in known.items() if n == name or f == 1.0}
        below = max((f for f in at if f < factor), default=None)
        above = min((f for f in at if f > factor), default=None)
        if below is None or above is None:
            return None
        one, two = at[below], at[above]
        among: NDArray[np.bool_] = np.minimum(one, two) <= np.maximum(one, two).min() * (1.0 + 1e-9)
        return among

    def ranked(self, change: Change) -> list[tuple[Pool, float]]:
        """Return the pools and their best steps [s], the fastest first."""
        steps = [(pool, self.best(pool, change)[0]) for pool in self._pools]
        return sorted(steps, key=lambda one: one[1])


def _varied(change: Change) -> tuple[str, float]:
    """Return the one property that differs, and by which factor."""
    for one in fields(Change):
        if getattr(change, one.name) != 1.0:
            return one.name, float(getattr(change, one.name))
    return "", 1.0


def _winner_at(
    steps: _Steps, winner: Pool, change: Callable[[float], Change], factor: float
) -> str:
    """Return who is fastest; the winner of today stays until it is 0.1 % behind."""
    first, least = steps.ranked(change(factor))[0]
    if not isfinite(least):
        return "nothing fits"
    still = steps.best(winner, change(factor))[0] <= least * (1.0 + _BEHIND)
    return winner.name if still else first.name


def _tie_at(steps: _Steps, change: Callable[[float], Change], spread: float, factor: float) -> str:
    (first, first_s), (_, second_s), *_ = steps.ranked(change(factor))
    if not isfinite(second_s):
        return f"only {first.name} fits" if isfinite(first_s) else "nothing fits"
    told = is_told_apart(first_s, second_s, spread)
    return f"{first.name} surely first" if told else "a tie at the top"


def _layout_at(steps: _Steps, pool: Pool, change: Callable[[float], Change], factor: float) -> str:
    row = steps.best(pool, change(factor))[1]
    return degrees(pool, row) if row >= 0 else "nothing fits"


def degrees(pool: Pool, row: int) -> str:
    """Return the degrees above 1 of one row, as ``tp8 cp2 dp64``."""
    layout = pool.layout(row)
    names = ("tp", "cp", "ep", "etp", "dp", "pp")
    return " ".join(f"{n}{getattr(layout, n)}" for n in names if getattr(layout, n) > 1) or "dp1"


def _nearest(name: str, kind: str, ask: Callable[[float], str]) -> list[Flip]:
    here = ask(1.0)
    found = []
    for direction in (-1.0, 1.0):
        low, before = 0.0, here
        for i in range(1, _GRID + 1):
            high = direction * log(WIDEST_FACTOR) * i / _GRID
            after = ask(exp(high))
            if after != before:
                factor, after = _bisected(low, high, before, ask)
                found.append(Flip(name=name, kind=kind, factor=factor, before=before, after=after))
                break
            low = high
    return found


def _bisected(
    low: float, high: float, before: str, ask: Callable[[float], str]
) -> tuple[float, str]:
    """Return the factor within 0.1 % at which *before* ends, and what comes then."""
    after = ask(exp(high))
    while abs(high - low) > _CLOSE:
        middle = (low + high) / 2.0
        answer = ask(exp(middle))
        if answer == before:
            low = middle
        else:
            high, after = middle, answer
    return exp(high), after


GAINS: dict[str, Change] = {
    "twice the NIC rate (one more NIC a GPU)": Change(nic_rate=2.0),
    "half the oversubscription": Change(crowding=0.5),
    "twice the in-flight limit": Change(in_flight=2.0),
    "half the NIC latency": Change(nic_latency=0.5),
    "twice the scale-up rate": Change(scale_up_rate=2.0),
}


def gains(pool: Pool) -> list[Gain]:
    """Return what each better part would bring, the most first."""
    now, _ = pool.best()
    found = []
    for name, change in GAINS.items():
        then, _ = pool.best(change)
        found.append(Gain(name=name, step_s=then, gain_share=max(0.0, now / then - 1.0)))
    return sorted(found, key=lambda one: (-round(one.gain_share, 9), one.name))


def is_told_apart(first_s: float, second_s: float, spread: float) -> bool:
    """Return whether the model can tell which step is shorter, at 90 %."""
    return abs(first_s / second_s - 1.0) > 1e-12 and faster(first_s, second_s, spread).told_apart
