"""Where the winner changes: a grid, then bisection, on the model, property by property.

All searches go on side by side: what they ask next is timed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf, isfinite
from typing import TYPE_CHECKING

from planner.search.axes import Axis, axes_of
from planner.search.best_steps import BEHIND, Steps, fastest_of, is_as_fast
from planner.search.changed import AS_IT_IS, Change
from planner.search.experts import Experts, expert_counts
from planner.search.pool import Pool
from planner.search.space import DEGREES
from planner.search.ties import told_apart

if TYPE_CHECKING:
    from planner.layout import Layout

    Search = Generator[list[float], None, "Flip | None"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flip:
    """The nearest point at which something changes when a property is varied.

    Args:
        name: of the property.
        kind: ``winner`` (another cluster is fastest), ``tie`` (the runner-up can no longer be told
            from the winner, or now can), ``layout`` (another layout is best on the winner),
            ``cheapest`` (another cluster trains a token for the least money).
        factor: of the property as it is, the nearest that was asked about beyond the change [1].
        before, after: what holds on the near side and beyond.
        held_factor: the last factor asked about before the change; *before* holds there [1].
    """

    name: str
    kind: str
    factor: float
    before: str
    after: str
    held_factor: float


class Varied:
    """Some clusters, what is varied on all of them alike, and their best steps there.

    Args:
        pools: the clusters, each with a few layouts that are good now, the best among them.
        winner: the name of the first of today.
    """

    def __init__(self, pools: Sequence[Pool], winner: str) -> None:
        self.axes = {axis.name: axis for axis in axes_of(pools)}
        self.steps = Steps(pools, winner, *_ends(tuple(self.axes.values())))
        self.experts = Experts(pools)


def flips(varied: Varied) -> list[Flip]:
    """Return the nearest changes below and above the machines as they are, by property.

    Each property is asked about at the factors of a grid first, of all layouts of the space, in
    rank order: what changes there and back again between two neighbours of it is not seen.

    Args:
        varied: the clusters.
    """
    steps = varied.steps
    searches: list[tuple[Axis, Search]] = []
    for axis in varied.axes.values():
        asked: dict[str, Callable[[float], str]] = {"layout": partial(_layout_at, steps, axis)}
        if len(steps.pools) > 1:
            asked = {
                "winner": partial(_winner_at, steps, axis),
                "tie": partial(_tie_at, steps, axis),
                **asked,
            }
        searches += [
            (axis, _first_along(axis, kind, ask, axis.grid(direction)))
            for kind, ask in asked.items()
            for direction in (-1, 1)
        ]
    return [*_side_by_side(steps, searches), *_expert_flips(varied)]


def _ends(axes: Sequence[Axis]) -> tuple[list[Change], Change]:
    """Return the slowest networks that are asked about, and one as fast as any of them."""
    ends = [(axis, grid[-1]) for axis in axes for grid in map(axis.grid, (-1, 1)) if grid]
    changes = [axis.change(factor) for axis, factor in ends if axis.name != "seq"]
    return [one for one in changes if is_as_fast(AS_IT_IS, one)], fastest_of(changes)


def _side_by_side(steps: Steps, searches: Sequence[tuple[Axis, Search]]) -> list[Flip]:
    """Run all *searches* to their ends, a round of questions at once; return what they find."""
    found: dict[int, Flip] = {}
    left = dict(enumerate(searches))
    while left:
        wanted: list[Change] = []
        for at, (axis, search) in list(left.items()):
            try:
                wanted += [axis.change(factor) for factor in next(search)]
            except StopIteration as end:
                del left[at]
                if end.value is not None:
                    found[at] = end.value
        steps.find(wanted)
    return [found[at] for at in sorted(found)]


def _first_along(
    axis: Axis, kind: str, ask: Callable[[float], str], grid: Sequence[float]
) -> Search:
    """Return the first flip along *grid*; yields the factors that it is going to ask about."""
    yield [1.0, *grid]
    before, held = ask(1.0), 1.0
    for factor in grid:
        if ask(factor) != before:
            beyond = factor
            while (middle := axis.between(held, beyond)) is not None:
                yield [middle]
                if ask(middle) == before:
                    held = middle
                else:
                    beyond = middle
            return Flip(name=axis.name, kind=kind, factor=beyond, before=before,
                        after=ask(beyond), held_factor=held)  # fmt: skip
        held = factor
    return None


def nearest(name: str, kind: str, ask: Callable[[float], str]) -> list[Flip]:
    """Return where *ask* first answers otherwise, below and above 1, from x 1/32 to x 32.

    >>> one, = nearest("price", "winner", lambda factor: "a" if factor < 2.0 else "b")
    >>> one.held_factor < 2.0 <= one.factor < 2.002
    True
    """
    axis = Axis(name=name, change=lambda _: AS_IT_IS)
    found = []
    for direction in (-1, 1):
        search = _first_along(axis, kind, ask, axis.grid(direction))
        try:
            while True:
                next(search)
        except StopIteration as end:
            found += [end.value] if end.value is not None else []
    return found


def _winner_at(steps: Steps, axis: Axis, factor: float) -> str:
    return first_of(_times(steps, axis, factor), steps.winner.name)


def _tie_at(steps: Steps, axis: Axis, factor: float) -> str:
    return standing(_times(steps, axis, factor), spreads_of(steps.pools))


def spreads_of(pools: Sequence[Pool]) -> dict[str, float]:
    """Return the spread of the fit of each cluster's steps, in log [1]."""
    return {pool.name: pool.spread for pool in pools}


def _times(steps: Steps, axis: Axis, factor: float) -> dict[str, float]:
    return {pool.name: token_s for pool, token_s in steps.ranked(axis.change(factor))}


def first_of(tokens_s: Mapping[str, float], winner: str) -> str:
    """Return who is fastest; the *winner* of today stays until it is 0.1 % behind.

    >>> first_of({"a": 1.0, "b": 1.0005}, "b"), first_of({"a": 1.0, "b": 1.002}, "b")
    ('b', 'a')
    """
    first = min(tokens_s, key=lambda name: tokens_s[name])
    if not isfinite(tokens_s[first]):
        return "nothing fits"
    return winner if tokens_s[winner] <= tokens_s[first] * (1.0 + BEHIND) else first


def standing(tokens_s: Mapping[str, float], spreads: Mapping[str, float]) -> str:
    """Return how sure it is who is first.

    Args:
        tokens_s: cluster to what a token takes [s].
        spreads: of their fits, in log [1].
    """
    first, second = sorted(tokens_s, key=lambda name: tokens_s[name])[:2]
    if tokens_s[second] == inf:
        return "nothing fits" if tokens_s[first] == inf else f"only {first} fits"
    sure = told_apart(tokens_s[first], tokens_s[second], spreads[first], spreads[second])
    return f"{first} surely first" if sure else "a tie at the top"


def _layout_at(steps: Steps, axis: Axis, factor: float) -> str:
    row = steps.best(steps.winner, axis.change(factor)).row
    return "nothing fits" if row < 0 else spelled_degrees(steps.winner.layout(row))


def spelled_degrees(layout: Layout) -> str:
    """Return the degrees above 1, as ``tp8 cp2 dp64``."""
    return " ".join(f"{n}{getattr(layout, n)}" for n in DEGREES if getattr(layout, n) > 1) or "dp1"


def _expert_flips(varied: Varied) -> list[Flip]:
    """Return the first changes when the experts are doubled or halved; whole numbers of them."""
    pools, winner = varied.steps.pools, varied.steps.winner
    experts = winner.model.experts
    if not experts or any(pool.model.experts != experts for pool in pools):
        return []

    def times(count: int) -> dict[str, float]:
        found = zip(pools, varied.experts.best(count), strict=True)
        return {pool.name: one.step_s * pool.token_ratio for pool, one in found}

    def winner_at(count: int) -> str:
        return first_of(times(count), winner.name)

    def tie_at(count: int) -> str:
        return standing(times(count), spreads_of(pools))

    def layout_at(count: int) -> str:
        names = [pool.name for pool in pools]
        layout = varied.experts.best(count)[names.index(winner.name)].layout
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
            changed = next((at for at, c in enumerate(side) if ask(c) != before), None)
            if changed is not None:
                held = side[changed - 1] if changed else experts
                found.append(
                    Flip(name="experts", kind=kind, factor=side[changed] / experts, before=before,
                         after=ask(side[changed]), held_factor=held / experts)
                )  # fmt: skip
    return found
