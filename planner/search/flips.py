"""Where the winner changes: a grid, then bisection, on the model, property by property.

All searches go on side by side: what they ask next is timed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from math import isfinite
from typing import TYPE_CHECKING

from planner.search.axes import Axis, axes_of
from planner.search.best_steps import BEHIND, Steps, fastest_of, is_as_fast
from planner.search.experts import Experts, expert_counts
from planner.search.pool import AS_IT_IS, Change, Pool
from planner.search.space import DEGREES
from planner.steptime.uncertainty import faster

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


def flips(pools: Sequence[Pool], spread: float) -> list[Flip]:
    """Return the nearest changes below and above the machines as they are, by property.

    Each property is asked about at the factors of a grid first, of all layouts of the space: what
    changes there and back again between two neighbours of it is not seen.

    Args:
        pools: the clusters, each with a few layouts that are good now, the best among them.
        spread: of the fit, in log [1].
    """
    axes = axes_of(pools)
    steps = Steps(pools, *_ends(axes))
    searches: list[tuple[Axis, Search]] = []
    for axis in axes:
        asked: dict[str, Callable[[float], str]] = {"layout": partial(_layout_at, steps, axis)}
        if len(pools) > 1:
            asked = {
                "winner": partial(_winner_at, steps, axis),
                "tie": partial(_tie_at, steps, axis, spread),
                **asked,
            }
        searches += [
            (axis, _first_along(axis, kind, ask, axis.grid(direction)))
            for kind, ask in asked.items()
            for direction in (-1, 1)
        ]
    return [*_side_by_side(steps, searches), *_expert_flips(pools, steps.winner, spread)]


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
    """Return who is fastest; the winner of today stays until it is 0.1 % behind."""
    first, least = steps.ranked(axis.change(factor))[0]
    if not isfinite(least):
        return "nothing fits"
    still = steps.token_s(steps.winner, axis.change(factor)) <= least * (1.0 + BEHIND)
    return steps.winner.name if still else first.name


def _tie_at(steps: Steps, axis: Axis, spread: float, factor: float) -> str:
    (first, first_s), (_, second_s), *_ = steps.ranked(axis.change(factor))
    return standing(first.name, first_s, second_s, spread)


def standing(first: str, first_s: float, second_s: float, spread: float) -> str:
    """Return how sure it is who is first, from the first two's steps [s]."""
    if not isfinite(second_s):
        return f"only {first} fits" if isfinite(first_s) else "nothing fits"
    told = is_told_apart(first_s, second_s, spread)
    return f"{first} surely first" if told else "a tie at the top"


def _layout_at(steps: Steps, axis: Axis, factor: float) -> str:
    row = steps.best(steps.winner, axis.change(factor)).row
    return "nothing fits" if row < 0 else spelled_degrees(steps.winner.layout(row))


def spelled_degrees(layout: Layout) -> str:
    """Return the degrees above 1, as ``tp8 cp2 dp64``."""
    return " ".join(f"{n}{getattr(layout, n)}" for n in DEGREES if getattr(layout, n) > 1) or "dp1"


def _expert_flips(pools: Sequence[Pool], winner: Pool, spread: float) -> list[Flip]:
    """Return the first changes when the experts are doubled or halved; whole numbers of them."""
    experts = winner.model.experts
    if not experts or any(pool.model.experts != experts for pool in pools):
        return []

    variants = Experts(pools)
    best = cache(variants.best)

    def ranked(count: int) -> list[tuple[str, float]]:
        found = zip(pools, best(count), strict=True)
        steps = [(pool.name, one.step_s / pool.tokens) for pool, one in found]
        return sorted(steps, key=lambda one: one[1])

    def winner_at(count: int) -> str:
        (first, least), *_ = ranked(count)
        still = dict(ranked(count))[winner.name] <= least * (1.0 + BEHIND)
        return "nothing fits" if not isfinite(least) else winner.name if still else first

    def tie_at(count: int) -> str:
        (first, first_s), (_, second_s), *_ = ranked(count)
        return standing(first, first_s, second_s, spread)

    def layout_at(count: int) -> str:
        layout = best(count)[[pool.name for pool in pools].index(winner.name)].layout
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


def is_told_apart(first_s: float, second_s: float, spread: float) -> bool:
    """Return whether the model can tell which step is shorter, at 90 %."""
    return abs(first_s / second_s - 1.0) > 1e-12 and faster(first_s, second_s, spread).told_apart
