"""Where the winner changes: bisection on the model, property by property."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import exp, isfinite, log
from typing import TYPE_CHECKING

from planner.search.best_steps import BEHIND, Steps
from planner.search.experts import Best, best_with_experts, expert_counts
from planner.search.pool import AS_IT_IS, Change, Pool
from planner.steptime.uncertainty import faster

if TYPE_CHECKING:
    from planner.layout import Layout

WIDEST_FACTOR = 32.0
_GRID = 8
_CLOSE = 1e-3

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
        held_factor: the last factor looked at before the change; *before* holds there [1].
    """

    name: str
    kind: str
    factor: float
    before: str
    after: str
    held_factor: float = 1.0


def flips(pools: Sequence[Pool], spread: float) -> list[Flip]:
    """Return the nearest changes below and above the machines as they are, by property.

    Args:
        pools: the clusters' candidates.
        spread: of the fit, in log [1].
    """
    steps = Steps(pools)
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
            for direction in (-1, 1):
                toward = partial(_next, name, kind, direction=direction, least_ratio=least_ratio)
                flip = _confirmed(steps, winner, change, toward, ask)
                found += [flip] if flip else []
    return [*found, *_expert_flips(pools, winner, spread)]


def _confirmed(
    steps: Steps,
    winner: Pool,
    change: Callable[[float], Change],
    toward: Callable[[Callable[[float], str]], Flip | None],
    ask: Callable[[float], str],
) -> Flip | None:
    """Return a flip that holds on both sides with the whole space searched there.

    A layout found there joins those that are asked, and the flip is looked for again; there are
    only so many layouts. For another layout at other lengths, of which no pool holds all that fit,
    the grid on the way is searched, too.
    """
    while True:
        found = toward(cache(ask))
        if found is None:
            return None
        asked = {found.held_factor, found.factor}
        of = winner if found.kind == "layout" else None
        if found.kind == "layout" and found.name == "seq":
            asked |= {x for x in _on_the_way(found.factor) if x != 1.0}
        beaten = sum(steps.search(change(factor), of) for factor in asked if factor != 1.0)
        sides = ask(found.held_factor), ask(found.factor)
        if not beaten and sides == (found.before, found.after):
            return found


def _on_the_way(factor: float) -> list[float]:
    """Return the factors of the grid between 1 and *factor*."""
    sign = 1 if factor > 1.0 else -1
    return [x for x in (_factor(sign * i) for i in range(1, _GRID + 1))
            if abs(log(x)) < abs(log(factor))]  # fmt: skip


def _winner_at(steps: Steps, winner: Pool, change: Callable[[float], Change], factor: float) -> str:
    """Return who is fastest; the winner of today stays until it is 0.1 % behind."""
    first, least = steps.ranked(change(factor))[0]
    if not isfinite(least):
        return "nothing fits"
    still = steps.token_s(winner, change(factor)) <= least * (1.0 + BEHIND)
    return winner.name if still else first.name


def _tie_at(steps: Steps, change: Callable[[float], Change], spread: float, factor: float) -> str:
    (first, first_s), (_, second_s), *_ = steps.ranked(change(factor))
    return _standing(first.name, first_s, second_s, spread)


def _standing(first: str, first_s: float, second_s: float, spread: float) -> str:
    if not isfinite(second_s):
        return f"only {first} fits" if isfinite(first_s) else "nothing fits"
    told = is_told_apart(first_s, second_s, spread)
    return f"{first} surely first" if told else "a tie at the top"


def _layout_at(steps: Steps, pool: Pool, change: Callable[[float], Change], factor: float) -> str:
    row = steps.best(pool, change(factor))[1]
    if row < 0:
        return "nothing fits"
    return spelled_degrees(pool.swept.space.layout(row, pool.swept.fixed))


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
        still = dict(ranked(count))[winner.name] <= least * (1.0 + BEHIND)
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
    some = [_next(name, kind, ask, direction=d, least_ratio=least_ratio) for d in (-1, 1)]
    return [one for one in some if one]


def _next(
    name: str, kind: str, ask: Callable[[float], str], *, direction: int, least_ratio: float
) -> Flip | None:
    """Return where *ask* first answers otherwise, above 1 or, with *direction* -1, below."""
    low, before = 0.0, ask(1.0)
    for i in range(1, _GRID + 1):
        high = max(log(_factor(direction * i)), log(least_ratio))
        if ask(exp(high)) != before:
            low, high = _bisected(low, high, before, ask)
            return Flip(name=name, kind=kind, factor=exp(high), before=before,
                        after=ask(exp(high)), held_factor=exp(low))  # fmt: skip
        low = high
    return None


def _bisected(
    low: float, high: float, before: str, ask: Callable[[float], str]
) -> tuple[float, float]:
    """Return logs of factors 0.1 % apart: *before* still holds at the first, not at the second."""
    while abs(high - low) > _CLOSE:
        middle = (low + high) / 2.0
        if ask(exp(middle)) == before:
            low = middle
        else:
            high = middle
    return low, high


def is_told_apart(first_s: float, second_s: float, spread: float) -> bool:
    """Return whether the model can tell which step is shorter, at 90 %."""
    return abs(first_s / second_s - 1.0) > 1e-12 and faster(first_s, second_s, spread).told_apart
