"""Where the winner changes with every rank in a seat, near where it changes in rank order.

Seats change a step by a little, and at a flip little decides. So at each flip the layouts that
contend there are seated; near it, a seated step is taken to be longer than its closed form by as
much as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import compress, pairwise
from math import exp, inf, log, sqrt
from typing import TYPE_CHECKING

import numpy as np

from planner.search.brackets import is_ordered
from planner.search.changed import AS_IT_IS
from planner.search.contenders import NOTHING_FITS, Contests, SeatedBest, contest
from planner.search.effort import Effort, SpentError
from planner.search.flips import Flip, Varied
from planner.search.incumbent import spelled_degrees
from planner.search.pool import Pool
from planner.search.seatable import Seatable
from planner.search.seated_steps import SeatedSteps
from planner.search.stages import Stage, Tell, untold
from planner.search.standings import first_of, spreads_of, standing
from planner.search.together import grouped
from planner.units import format_share
from planner.words import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from planner.layout import Layout
    from planner.search.axes import Axis
    from planner.search.best_steps import Steps
    from planner.search.contenders import Contest

_ROUNDS = 14
"""Times that layouts are seated to locate a flip at most: some to go where seats put it, and enough
others to halve what is left of a step of the grid to 0.5 %."""
_PUT = 3
"""Of them, those that go where the seats found so far put the flip; the others halve the way."""
_CLOSE = 0.005
"""How far apart two factors are at most, in log, that a flip is told to lie between [1]; layouts
are seated at both."""
_AROUND = (0.01, 0.05, 0.2, 0.43, 0.87, 1.73, 3.47)
"""How far around a flip it is looked for, in log: 1 % and more, up to a factor of 32."""
_HALVES_AT_ONCE = 3
"""Times that a bracket is halved before one asks again: what it may need is timed at once [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatedFlip:
    """What holds on both sides of a flip with every rank in a seat.

    Args:
        flip: as found in rank order.
        before, after: what holds on the near side and beyond, in the flip's words.
    """

    flip: Flip
    before: str
    after: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatedFlips:
    """Flips, looked at with every rank in a seat.

    Args:
        held: those that there are, each where it is then.
        contradicted: those of rank order that there are not, though they start from today.
        unseated: those that too much would be seated for; where they are in rank order.
        unanswered: such that start from anything but today: nothing is known of them with seats.
    """

    held: tuple[Flip, ...] = ()
    contradicted: tuple[SeatedFlip, ...] = ()
    unseated: tuple[Flip, ...] = ()
    unanswered: tuple[Flip, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Today:
    """What a comparison says of the clusters as they are, with every rank in a seat.

    Args:
        token_s: cluster to what a token takes [s].
        layouts: cluster to its fastest.
        winner: the name of the first.
    """

    token_s: Mapping[str, float]
    layouts: Mapping[str, Layout]
    winner: str

    @property
    def words(self) -> str:
        """The degrees of the winner's layout."""
        return spelled_degrees(self.layouts[self.winner])


def seated_flips(
    found: Sequence[Flip], varied: Varied, seats: Mapping[str, SeatedSteps], today: Today,
    tell: Tell = untold,
) -> SeatedFlips:  # fmt: skip
    """Return which of the flips *found* in rank order there are with seats, and where.

    Args:
        found: flips of *varied*.
        varied: the clusters.
        seats: cluster to the steps of layouts seated on it.
        today: what *found* must start from.
        tell: is told how far it is.
    """
    held: list[Flip] = []
    contradicted: list[SeatedFlip] = []
    spent: list[Flip] = []
    progress = _Progress(found, tell)
    effort = Effort(progress.seated)
    some = {pool.name: Seatable(pool, seats[pool.name], effort) for pool in varied.steps.pools}
    places = {name: _OnAxis(varied, some, today, axis) for name, axis in varied.axes.items()}
    experts = _OnExperts(varied, seats, today, effort)
    for done, flip in enumerate(found):
        progress.at(done)
        effort.begin()
        try:
            one = places.get(flip.name, experts).seated(flip)
        except SpentError:
            spent.append(flip)
            continue
        if isinstance(one, Flip) and (one.kind, one.after) == ("tie", NOTHING_FITS.words):
            continue  # there the winner flips, too
        if isinstance(one, Flip):
            held.append(one)
        elif flip.before == _of_today(flip.kind, today, varied.steps):
            contradicted.append(one)  # one that starts from anything else is of no interest
    of_today = [flip.before == _of_today(flip.kind, today, varied.steps) for flip in spent]
    return SeatedFlips(
        held=tuple(dict.fromkeys(held)), contradicted=tuple(contradicted),
        unseated=tuple(compress(spent, of_today)),
        unanswered=tuple(compress(spent, [not one for one in of_today])),
    )  # fmt: skip


class _Progress:
    """Tells at which of the flips one is, and how many layouts were seated for them."""

    def __init__(self, found: Sequence[Flip], tell: Tell) -> None:
        self._found, self._tell, self._done = found, tell, 0

    def at(self, done: int) -> None:
        """Tell that *done* flips are behind [1]."""
        self._done = done
        self._say("")

    def seated(self, effort: Effort) -> None:
        """Tell what was seated."""
        share = format_share(effort.question_share)
        self._say(f": {counted(effort.layouts, 'seating')}, {share} of the most for one")

    def _say(self, seated: str) -> None:
        name = self._found[self._done].name.replace("_", " ")
        self._tell(Stage(what="seating ranks at each flip", done=self._done, of=len(self._found),
                         now=f"{name}{seated}"))  # fmt: skip


def _said(kind: str, best: Mapping[str, SeatedBest], steps: Steps) -> str:
    """Return what the best of each cluster say of what a flip of *kind* is about."""
    winner = steps.winner.name
    if kind == "layout":
        return best[winner].words
    times = {name: one.token_s for name, one in best.items()}
    return first_of(times, winner) if kind == "winner" else standing(times, spreads_of(steps.pools))


def _of_today(kind: str, today: Today, steps: Steps) -> str:
    best = {
        name: SeatedBest(words=today.words, token_s=each) for name, each in today.token_s.items()
    }
    return _said(kind, best, steps)


class _OnAxis:
    """Flips of one property that has any value, or whole multiples of a unit."""

    def __init__(
        self, varied: Varied, some: Mapping[str, Seatable], today: Today, axis: Axis
    ) -> None:
        self._steps, self._some, self._today, self._axis = varied.steps, some, today, axis
        self._contests = {name: Contests(each) for name, each in some.items()}

    def seated(self, flip: Flip) -> Flip | SeatedFlip:
        """Return *flip* where it is with seats; what they say of it where there is none.

        Layouts are seated where it is in rank order, then where the seats found there put it.
        """
        today = _of_today(flip.kind, self._today, self._steps)
        at_first = here = self._contenders(flip, flip.factor)
        factor, held, beyond, after = flip.factor, 1.0, inf, ""
        for done in range(_ROUNDS):
            said = self._said(flip.kind, here, factor)
            if said == today:
                held = factor
            else:
                beyond, after = factor, said
            if beyond < inf and self._is_closed(held, beyond):
                return _moved(flip, today, after, held, beyond)
            halves = beyond < inf and done >= _PUT  # what seats put here and there may not meet
            put = None if halves else self._bracket(flip.kind, here, factor, today)
            if put is not None and _is_between(held, put[1], beyond):
                factor = put[0] if put[1] == factor else put[1]
            elif beyond == inf:
                break
            else:
                factor = self._axis.nearest(sqrt(held * beyond))
            here = self._contenders(flip, factor)
        if beyond < inf:
            return _moved(flip, today, after, held, beyond)
        return SeatedFlip(
            flip=flip, before=self._said(flip.kind, at_first, flip.held_factor),
            after=self._said(flip.kind, at_first, flip.factor),
        )  # fmt: skip

    def _is_closed(self, held: float, beyond: float) -> bool:
        """Return whether two factors are as close as what was seated at one holds at the other."""
        near = abs(log(beyond / held)) <= _CLOSE
        return near or self._axis.between(held, beyond) is None

    def _bracket(
        self, kind: str, here: Sequence[Pool], factor: float, today: str
    ) -> tuple[float, float] | None:
        """Return two factors as close as one can ask: *today* holds at the first alone."""
        outwards = 1.0 if factor > 1.0 else -1.0
        changed = self._said(kind, here, factor) != today
        tried = [factor]
        for far in _AROUND:
            at = self._axis.nearest(factor * exp((-far if changed else far) * outwards))
            tried.append(at if outwards * log(at) > 0.0 else 1.0)
        tried = list(dict.fromkeys(tried))
        tried = tried[: tried.index(1.0) + 1] if 1.0 in tried else tried
        said: dict[float, str] = {}
        for number, (last, at) in enumerate(pairwise(tried), 1):
            if at != 1.0 and at not in said:
                said |= self._said_at(kind, here, self._at_once(tried[number:]))
            if at != 1.0 and (said[at] != today) == changed:
                continue
            if at != 1.0 or changed:
                return self._closest(kind, here, (at, last) if changed else (last, at), today)
        return None

    def _closest(
        self, kind: str, here: Sequence[Pool], bracket: tuple[float, float], today: str
    ) -> tuple[float, float]:
        held, beyond = bracket
        while middles := self._halves(held, beyond, _HALVES_AT_ONCE):
            said = self._said_at(kind, here, self._at_once(middles))
            while (middle := self._axis.between(held, beyond)) in said:
                if said[middle] == today:
                    held = middle
                else:
                    beyond = middle
        return held, beyond

    def _at_once(self, factors: Sequence[float]) -> Sequence[float]:
        """Return those of *factors* that cost little more together than the first alone."""
        return factors if is_ordered(self._axis) else factors[:1]

    def _halves(self, held: float, beyond: float, times: int) -> list[float]:
        """Return the factors that halving *times* times may ask about."""
        middle = self._axis.between(held, beyond) if times else None
        if middle is None:
            return []
        sides = (held, middle), (middle, beyond)
        return [middle, *(one for side in sides for one in self._halves(*side, times - 1))]

    def _said(self, kind: str, here: Sequence[Pool], factor: float) -> str:
        return self._said_at(kind, here, [factor])[factor]

    def _said_at(
        self, kind: str, here: Sequence[Pool], factors: Sequence[float]
    ) -> dict[float, str]:
        """Return what is said at each of *factors*; those of one length are asked at once."""
        stays, found = self._today.words, {}
        changes = {factor: self._axis.change(factor) for factor in factors}
        for some in grouped(factors, key=lambda factor: changes[factor].seq):
            asked = {factors[at]: changes[factors[at]] for at in some}
            bests = {one.name: self._contests[one.name].bests(asked, stays) for one in here}
            for factor in asked:
                best = {name: every[factor] for name, every in bests.items()}
                found[factor] = _said(kind, best, self._steps)
        return found

    def _contenders(self, flip: Flip, factor: float) -> list[Pool]:
        """Let the clusters that *flip* is about contend at *factor*, and return them."""
        winner, change = self._steps.winner, self._axis.change(factor)
        pools = [winner]
        if flip.kind != "layout":
            first = [pool for pool, _ in self._steps.ranked(change)][:2]
            pools = [*first, *(pool for pool in pools if pool not in first)]
        for pool in pools:
            for at in (1.0, factor):
                self._contests[pool.name].at(at, partial(self._contest, pool, at))
        return pools

    def _contest(self, pool: Pool, factor: float) -> Contest:
        change = self._axis.change(factor)
        return contest(
            self._some[pool.name], change, {self._steps.best(pool, change).row} - {-1},
            [self._today.layouts[pool.name]],
        )  # fmt: skip


def _moved(flip: Flip, before: str, after: str, held: float, beyond: float) -> Flip:
    return replace(flip, factor=beyond, held_factor=held, before=before, after=after)


def _is_between(held: float, factor: float, beyond: float) -> bool:
    """Return whether *factor* is beyond *held* and no further than *beyond*, infinite if unknown.

    >>> _is_between(1.0, 0.5, 0.25), _is_between(1.0, 2.0, inf), _is_between(2.0, 1.5, 3.0)
    (True, True, False)
    """
    outwards = 1.0 if factor > 1.0 else -1.0
    furthest = inf if beyond == inf else outwards * log(beyond)
    return outwards * log(held) < outwards * log(factor) <= furthest


class _OnExperts:
    """Flips of the number of experts: every number that is asked about is seated itself."""

    def __init__(
        self, varied: Varied, seats: Mapping[str, SeatedSteps], today: Today, effort: Effort
    ) -> None:
        self._varied, self._seats, self._today, self._effort = varied, seats, today, effort
        self._known: dict[tuple[str, int], SeatedBest] = {}

    def seated(self, flip: Flip) -> Flip | SeatedFlip:
        """Return *flip* at the first number, up to its own, at which seats say other than today."""
        today = _of_today(flip.kind, self._today, self._varied.steps)
        step = 2.0 if flip.factor > 1.0 else 0.5
        held, before = 1.0, today
        for doubled in range(1, round(abs(log(flip.factor) / log(2.0))) + 1):
            said = self._said(flip, step**doubled)
            if said != today:
                return _moved(flip, today, said, held, step**doubled)
            held, before = step**doubled, said
        return SeatedFlip(flip=flip, before=before, after=today)

    def _said(self, flip: Flip, factor: float) -> str:
        pools, winner = self._varied.steps.pools, self._varied.steps.winner
        count = round(winner.model.experts * factor)
        asked = [winner]
        if flip.kind != "layout":
            steps_s = [one.step_s for one in self._varied.experts.best(count)]
            by_token = sorted(range(len(pools)), key=lambda at: steps_s[at] * pools[at].token_ratio)
            first = [pools[at] for at in by_token[:2]]
            asked = [*first, *(pool for pool in asked if pool not in first)]
        best = {pool.name: self._best(pool, count) for pool in asked}
        return _said(flip.kind, best, self._varied.steps)

    def _best(self, pool: Pool, count: int) -> SeatedBest:
        key = (pool.name, count)
        if key not in self._known:
            self._known[key] = self._seated_best(pool, count)
        return self._known[key]

    def _seated_best(self, pool: Pool, count: int) -> SeatedBest:
        names = [one.name for one in self._varied.steps.pools]
        best = self._varied.experts.best(count)[names.index(pool.name)]
        if best.row < 0:
            return NOTHING_FITS
        seats = self._seats[pool.name]
        there = Pool.of(pool.name, seats.fabric, pool.machine, best.whole, np.array([best.row]))
        asked = [self._today.layouts[pool.name]]
        here = contest(Seatable(there, seats, self._effort), AS_IT_IS, (), asked)
        return here.best(AS_IT_IS, self._today.words)
