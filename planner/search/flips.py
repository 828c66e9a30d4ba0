"""Where the winner changes: a grid, then bisection, on the model, property by property.

All searches go on side by side: what they ask next is timed at once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from planner.search.axes import Axis, axes_of
from planner.search.best_steps import Steps, fastest_of, is_as_fast
from planner.search.brackets import first_change, is_ordered
from planner.search.changed import AS_IT_IS
from planner.search.experts import Experts, expert_counts
from planner.search.incumbent import Incumbent, spelled_degrees
from planner.search.lengths import of_any_length
from planner.search.pool import Pool
from planner.search.stages import Stage, Tell, untold
from planner.search.standings import (
    NO_FIT,
    first_of,
    layout_at,
    layout_stays,
    spreads_of,
    standing,
    standing_stays,
    tie_at,
    winner_at,
    winner_stays,
)

if TYPE_CHECKING:
    from planner.search.brackets import Along, IsFree, Search, Stretch
    from planner.search.changed import Change


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Looked:
    """How far one looked along a property, in closed form and rank order, and how closely.

    Args:
        name, kind: as of ``Flip``.
        factor: the furthest at which nothing has changed yet [1].
        unproved: stretches up to there on which a change there and back is not ruled out.
    """

    name: str
    kind: str
    factor: float
    unproved: tuple[Stretch, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flips:
    """What changes, and how closely it was looked."""

    found: tuple[Flip, ...]
    looked: tuple[Looked, ...] = ()


class Varied:
    """Some clusters, what is varied on all of them alike, and their best steps there.

    Args:
        pools: the clusters, each with a few layouts that are good now, the best among them.
        winner: the name of the first of today.
    """

    def __init__(self, pools: Sequence[Pool], winner: str) -> None:
        pools = of_any_length(pools)
        self.axes = {axis.name: axis for axis in axes_of(pools)}
        slowest, fastest = _ends(tuple(self.axes.values()))
        self.steps = Steps(pools, winner, slowest, fastest)
        self.incumbent = Incumbent(self.steps, slowest, fastest)
        self.experts = Experts(pools)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A question along a property, on one side of now, and what it has found so far."""

    axis: Axis
    kind: str
    ask: Callable[[float], str]
    search: Search


def flips(varied: Varied, tell: Tell = untold) -> Flips:
    """Return the nearest changes below and above the machines as they are, by property.

    Each property is asked about at the factors of a grid first, of all layouts of the space, in
    rank order, then between them until ``brackets.py`` has proved that no change was missed.

    Args:
        varied: the clusters.
        tell: is told how far it is.
    """
    steps = varied.steps
    asked: list[_Asked] = []
    for axis in varied.axes.values():
        kinds: dict[str, tuple[Callable[[float], str], IsFree]] = {
            "layout": (partial(layout_at, steps, varied.incumbent, axis),
                       partial(layout_stays, steps, varied.incumbent, axis))
        }  # fmt: skip
        if len(steps.pools) > 1:
            kinds = {
                "winner": (partial(winner_at, steps, axis), partial(winner_stays, steps, axis)),
                "tie": (partial(tie_at, steps, axis), partial(standing_stays, steps, axis)),
                **kinds,
            }
        ordered = is_ordered(axis)
        asked += [
            _Asked(axis=axis, kind=kind, ask=ask, search=first_change(
                axis, ask, axis.grid(direction), is_free if ordered else None
            ))
            for kind, (ask, is_free) in kinds.items()
            for direction in (-1, 1)
        ]  # fmt: skip
    along = _side_by_side(varied, asked, tell)
    found = [
        Flip(name=one.axis.name, kind=one.kind, factor=told.beyond_factor, before=told.before,
             after=one.ask(told.beyond_factor), held_factor=told.held_factor)
        for one, told in zip(asked, along, strict=True) if told.beyond_factor is not None
    ]  # fmt: skip
    looked = [
        Looked(name=one.axis.name, kind=one.kind, factor=told.held_factor, unproved=told.unproved)
        for one, told in zip(asked, along, strict=True)
    ]
    return Flips(found=(*found, *_expert_flips(varied)), looked=tuple(looked))


def _ends(axes: Sequence[Axis]) -> tuple[list[Change], Change]:
    """Return the slowest networks that are asked about, and one as fast as any of them."""
    ends = [(axis, grid[-1]) for axis in axes for grid in map(axis.grid, (-1, 1)) if grid]
    changes = [axis.change(factor) for axis, factor in ends if axis.name != "seq"]
    return [one for one in changes if is_as_fast(AS_IT_IS, one)], fastest_of(changes)


def _side_by_side(varied: Varied, asked: Sequence[_Asked], tell: Tell) -> list[Along]:
    """Run all searches to their ends, a round of questions at once; return what they find."""
    found: dict[int, Along] = {}
    left = dict(enumerate(asked))
    while left:
        wanted: dict[str, list[Change]] = {}
        for at, one in list(left.items()):
            try:
                changes = [one.axis.change(factor) for factor in next(one.search)]
            except StopIteration as end:
                del left[at]
                found[at] = end.value
            else:
                wanted.setdefault(one.kind, []).extend(changes)
        now = ", ".join(dict.fromkeys(one.axis.name.replace("_", " ") for one in left.values()))
        tell(Stage(what="looking where the winner flips", done=len(found), of=len(asked), now=now))
        varied.steps.find([change for changes in wanted.values() for change in changes])
        varied.incumbent.find(wanted.get("layout", []))
    return [found[at] for at in sorted(found)]


def _expert_flips(varied: Varied) -> list[Flip]:
    """Return the first changes when the experts are doubled or halved; whole numbers of them."""
    pools, winner = varied.steps.pools, varied.steps.winner
    experts = winner.model.experts
    if not experts or any(pool.model.experts != experts for pool in pools):
        return []

    now = varied.steps.best(winner, AS_IT_IS)
    today = winner.layout(now.row) if now.row >= 0 else None

    def times(count: int) -> dict[str, float]:
        found = zip(pools, varied.experts.best(count), strict=True)
        return {pool.name: one.step_s * pool.token_ratio for pool, one in found}

    def winner_at(count: int) -> str:
        return first_of(times(count), winner.name)

    def tie_at(count: int) -> str:
        return standing(times(count), spreads_of(pools))

    def layout_at(count: int) -> str:
        names = [pool.name for pool in pools]
        if today is not None and varied.experts.keeps(winner, count, today):
            return spelled_degrees(today)
        layout = varied.experts.best(count)[names.index(winner.name)].layout
        return NO_FIT if layout is None else spelled_degrees(layout)

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
