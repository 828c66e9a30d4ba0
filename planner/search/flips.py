"""Where the winner changes: bisection on the model, property by property."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from math import exp, isfinite, log
from typing import TYPE_CHECKING

import numpy as np

from planner.search.experts import Best, best_with_experts, expert_counts
from planner.search.pool import AS_IT_IS, Change, Pool, steps_at_once_s
from planner.search.together import grouped
from planner.steptime.uncertainty import faster

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.layout import Layout

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
            from the winner, or now can), ``layout`` (another layout is best on the winner),
            ``cheapest`` (another cluster trains a token for the least money).
        factor: of the property as it is, at the change [1].
        before, after: what holds on the near side and beyond.
    """

    name: str
    kind: str
    factor: float
    before: str
    after: str


def flips(pools: Sequence[Pool], spread: float) -> list[Flip]:
    """Return the nearest changes below and above the machines as they are, by property.

    Args:
        pools: the clusters' candidates.
        spread: of the fit, in log [1].
    """
    steps = _Steps(pools)
    winner = steps.ranked(AS_IT_IS)[0][0]
    if len(pools) > 1:  # all of the grid is asked about
        for factors in _far_to_near():
            steps.find([change(x) for change in PROPERTIES.values() for x in factors])
    found: list[Flip] = []
    for name, change in PROPERTIES.items():
        asked: dict[str, Callable[[float], str]] = {
            "layout": partial(_layout_at, steps, winner, change)
        }
        if len(pools) > 1:
            asked = {
                "winner": partial(_winner_at, steps, winner, change),
                "tie": partial(_tie_at, steps, change, spread),
                **asked,
            }
        least_ratio = _least_in_flight(pools) if name == "in_flight" else 1.0 / WIDEST_FACTOR
        for kind, ask in asked.items():
            found += nearest(name, kind, cache(ask), least_ratio)
    return [*found, *_expert_flips(pools, winner, spread)]


class _Steps:
    """The best steps of some pools, each change evaluated once.

    Every step is monotone in every property of the network. Between two changes of one property
    that are known, a row can therefore be the best only if the smaller of its two steps there is no
    longer than the least of all larger ones; the others are not evaluated again. A step is not
    monotone in the sequence length (collectives change their algorithm with the message, and what
    is hidden changes with it): there every row is evaluated at every length.
    """

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = tuple(pools)
        self._known: dict[tuple[str, Change], tuple[float, int]] = {}
        self._steps_s: dict[str, dict[tuple[str, float], NDArray[np.float64]]] = {}

    def best(self, pool: Pool, change: Change) -> tuple[float, int]:
        """Return the shortest step [s] under *change*, and the row that has it; -1 if none fits."""
        if (pool.name, change) not in self._known:
            self._find([(pool, change)])
        return self._known[pool.name, change]

    def find(self, changes: Sequence[Change]) -> None:
        """Find the best steps of all pools under *changes*.

        Of one pool all changes of the network are asked at once; of one length all pools alike.
        """
        network = [change for change in changes if change.seq == 1.0]
        if network:
            for pool in self._pools:
                self._find([(pool, change) for change in network])
        for some in grouped(self._pools, key=lambda pool: id(pool.swept.space)):
            for change in changes:
                if change.seq != 1.0:
                    self._find([(self._pools[at], change) for at in some])

    def _find(self, asked: Sequence[tuple[Pool, Change]]) -> None:
        among = [self._among(pool.name, *_varied(change)) for pool, change in asked]
        bounded = [rows for rows in among if rows is not None]
        wanted = np.logical_or.reduce(bounded) if len(bounded) == len(among) else None
        for (pool, change), total in zip(asked, steps_at_once_s(asked, wanted), strict=True):
            row = int(total.argmin())
            self._known[pool.name, change] = (
                (float(total[row]), row) if np.isfinite(total[row]) else (float("inf"), -1)
            )
            self._steps_s.setdefault(pool.name, {})[_varied(change)] = total

    def _among(self, pool: str, name: str, factor: float) -> NDArray[np.bool_] | None:
        """Return the rows that can be the best at *factor*, or None where nothing bounds it."""
        if name == "seq":
            return None
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
        """Return the pools and their best steps for each of today's tokens [s], fastest first."""
        steps = [(pool, self.token_s(pool, change)) for pool in self._pools]
        return sorted(steps, key=lambda one: one[1])

    def token_s(self, pool: Pool, change: Change) -> float:
        """Return the best step of one pool for each of today's tokens [s]."""
        return self.best(pool, change)[0] / pool.tokens


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
    still = steps.token_s(winner, change(factor)) <= least * (1.0 + _BEHIND)
    return winner.name if still else first.name


def _tie_at(steps: _Steps, change: Callable[[float], Change], spread: float, factor: float) -> str:
    (first, first_s), (_, second_s), *_ = steps.ranked(change(factor))
    return _standing(first.name, first_s, second_s, spread)


def _standing(first: str, first_s: float, second_s: float, spread: float) -> str:
    if not isfinite(second_s):
        return f"only {first} fits" if isfinite(first_s) else "nothing fits"
    told = is_told_apart(first_s, second_s, spread)
    return f"{first} surely first" if told else "a tie at the top"


def _layout_at(steps: _Steps, pool: Pool, change: Callable[[float], Change], factor: float) -> str:
    row = steps.best(pool, change(factor))[1]
    return degrees(pool, row) if row >= 0 else "nothing fits"


def degrees(pool: Pool, row: int) -> str:
    """Return the degrees above 1 of one row, as ``tp8 cp2 dp64``."""
    return spelled_degrees(pool.layout(row))


def spelled_degrees(layout: Layout) -> str:
    """Return the degrees above 1, as ``tp8 cp2 dp64``."""
    names = ("tp", "cp", "ep", "etp", "dp", "pp")
    return " ".join(f"{n}{getattr(layout, n)}" for n in names if getattr(layout, n) > 1) or "dp1"


def _expert_flips(pools: Sequence[Pool], winner: Pool, spread: float) -> list[Flip]:
    """Return the first changes when the experts are doubled or halved; whole numbers of them."""
    experts = winner.model.experts
    if not experts or any(pool.model.experts != experts for pool in pools):
        return []

    @cache
    def best(count: int) -> list[Best]:
        if count != experts:
            return best_with_experts(pools, count)
        now = [(pool, *pool.best()) for pool in pools]
        return [
            Best(step_s=step_s, layout=pool.layout(row) if row >= 0 else None)
            for pool, step_s, row in now
        ]

    def ranked(count: int) -> list[tuple[str, float]]:
        found = zip(pools, best(count), strict=True)
        return sorted(
            ((pool.name, one.step_s / pool.tokens) for pool, one in found), key=lambda one: one[1]
        )

    def winner_at(count: int) -> str:
        (first, least), *_ = ranked(count)
        still = dict(ranked(count))[winner.name] <= least * (1.0 + _BEHIND)
        return "nothing fits" if not isfinite(least) else winner.name if still else first

    def tie_at(count: int) -> str:
        (first, first_s), (_, second_s), *_ = ranked(count)
        return _standing(first, first_s, second_s, spread)

    def layout_at(count: int) -> str:
        layout = best(count)[[pool is winner for pool in pools].index(True)].layout
        return "nothing fits" if layout is None else spelled_degrees(layout)

    asked: dict[str, Callable[[int], str]]
    asked = {"winner": winner_at, "tie": tie_at} if len(pools) > 1 else {}
    found = []
    for kind, ask in {**asked, "layout": layout_at}.items():
        before = ask(experts)
        counts = [c for c in expert_counts(experts) if c >= winner.model.top_k]
        for side in (
            [c for c in reversed(counts) if c < experts],
            [c for c in counts if c > experts],
        ):
            changed = next((c for c in side if ask(c) != before), None)
            if changed is not None:
                found.append(
                    Flip(name="experts", kind=kind, factor=changed / experts, before=before,
                         after=ask(changed))
                )  # fmt: skip
    return found


def _far_to_near() -> list[list[float]]:
    """Return the factors of the grid by rounds, each half way between two of rounds before it."""
    rounds = [[_GRID]]
    step = _GRID
    while step > 1:
        rounds.append(list(range(step // 2, _GRID, step)))
        step //= 2
    return [[_factor(sign * i) for i in positions for sign in (-1, 1)] for positions in rounds]


def _factor(position: int) -> float:
    """Return the factor at a position of the grid, -``_GRID`` to ``_GRID``."""
    return exp(log(WIDEST_FACTOR) * position / _GRID)


def _least_in_flight(pools: Sequence[Pool]) -> float:
    """Return the factor that leaves a NIC one transaction, there is no less; x 1/32 at least."""
    return max(1.0 / WIDEST_FACTOR, *(1.0 / pool.nic.in_flight for pool in pools))


def nearest(
    name: str, kind: str, ask: Callable[[float], str], least_ratio: float = 1.0 / WIDEST_FACTOR
) -> list[Flip]:
    """Return where *ask* first answers otherwise, below and above 1, within *least_ratio* to x 32.

    >>> nearest("in_flight", "tie", lambda factor: str(factor < 0.1), 0.125)
    []
    """
    here = ask(1.0)
    found = []
    for direction in (-1, 1):
        low, before = 0.0, here
        for i in range(1, _GRID + 1):
            high = max(log(WIDEST_FACTOR) * (direction * i) / _GRID, log(least_ratio))
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


def is_told_apart(first_s: float, second_s: float, spread: float) -> bool:
    """Return whether the model can tell which step is shorter, at 90 %."""
    return abs(first_s / second_s - 1.0) > 1e-12 and faster(first_s, second_s, spread).told_apart
