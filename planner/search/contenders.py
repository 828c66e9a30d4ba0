"""The layouts that contend on a cluster near a change of it, seated there.

Near it, a seated step is taken to be longer than its closed form in the same seats by as much as
there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING

import numpy as np

from planner.search.best_steps import BEHIND
from planner.search.incumbent import spelled_degrees
from planner.search.pool import Pool, steps_at_once_s
from planner.search.sets import least_of_each
from planner.search.space import DEGREES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.layout import Layout
    from planner.search.changed import Change
    from planner.search.seatable import Seatable

    Floats = NDArray[np.float64]

_LIKELY = 2
"""Layouts that are seated before one asks which others may be faster [1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One layout on one cluster.

    Args:
        words: its degrees.
        row: of the cluster's space.
        ratio: of its step in its seats, links shared, over that in closed form [1].
    """

    words: str
    row: int
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatedBest:
    """The fastest of the contenders on one cluster: its degrees and what a token takes [s]."""

    words: str
    token_s: float


NOTHING_FITS = SeatedBest(words="nothing fits", token_s=inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """What contends on one cluster under one change.

    Args:
        pool: the cluster with the rows of all contenders, ascending.
        contenders: of the same rows; empty where nothing fits.
    """

    pool: Pool
    contenders: tuple[Contender, ...]

    def best(self, change: Change, stays: str) -> SeatedBest:
        """Return the fastest there; the degrees *stays* are it, until they are 0.1 % behind.

        Args:
            change: that the contest is of.
            stays: degrees, spelled.
        """
        if not self.contenders:
            return NOTHING_FITS
        ratios = np.array([one.ratio for one in self.contenders])
        words = [one.words for one in self.contenders]
        return _fastest(steps_at_once_s([(self.pool, change)])[0] * ratios, words, stays, self.pool)


class Contests:
    """What contended on one cluster at some factors of a property, and what is likely elsewhere.

    Between two factors a layout's ratio is taken to go from one to the other evenly, in log; beyond
    all of them it stays.

    Args:
        some: the cluster.
    """

    def __init__(self, some: Seatable) -> None:
        self._some = some
        self._known: dict[float, Contest] = {}
        self._rows: dict[int, dict[float, Contender]] = {}
        self._pool = some.pool

    def at(self, factor: float, made: Callable[[], Contest]) -> None:
        """Keep the contest at *factor*, *made* where it is not known."""
        if factor not in self._known:
            self._known[factor] = made()
            for one in self._known[factor].contenders:
                self._rows.setdefault(one.row, {})[factor] = one
            if self._rows:
                self._pool = self._some.timed(np.array(sorted(self._rows), np.int64))

    def bests(self, by_ratio: Mapping[float, Change], stays: str) -> dict[float, SeatedBest]:
        """Return the fastest at some factors, as ``Contest.best``.

        Args:
            by_ratio: factors to what they change; all of one sequence length.
            stays: degrees, spelled.
        """
        found = {f: self._known[f].best(by_ratio[f], stays) for f in by_ratio if f in self._known}
        left = [factor for factor in by_ratio if factor not in found]
        if not self._rows:
            return found | dict.fromkeys(left, NOTHING_FITS)
        if left:
            rows = self._pool.rows.tolist()
            words = [next(iter(self._rows[row].values())).words for row in rows]
            ratios = np.array([self._ratios(self._rows[row], left) for row in rows]).T
            steps_s = steps_at_once_s([(self._pool, by_ratio[factor]) for factor in left])
            for factor, each_s in zip(left, steps_s * ratios, strict=True):
                found[factor] = _fastest(each_s, words, stays, self._pool)
        return found

    @staticmethod
    def _ratios(known: Mapping[float, Contender], factors: Sequence[float]) -> Floats:
        at = sorted(known)
        return np.interp(np.log(factors), np.log(at), [known[factor].ratio for factor in at])


def _fastest(seated_s: Floats, words: Sequence[str], stays: str, pool: Pool) -> SeatedBest:
    least_s = float(seated_s.min())
    if least_s == inf:
        return NOTHING_FITS
    near = [words[at] for at in np.flatnonzero(seated_s <= least_s * (1.0 + BEHIND)).tolist()]
    first = words[int(seated_s.argmin())]
    return SeatedBest(words=stays if stays in near else first, token_s=least_s / pool.tokens)


def contest(
    some: Seatable, change: Change, best: Collection[int], asked: Sequence[Layout]
) -> Contest:
    """Return the layouts that contend on a cluster under *change*, seated there.

    Of the whole space all are seated that may be the fastest there or as good, but twins.

    Args:
        some: the cluster.
        change: of its network or of the sequences.
        best: rows that are the best in rank order; one at least that fits, if any does.
        asked: layouts that are looked at however long they take.
    """
    space, seated = some.pool.whole.space, dict[int, float]()
    own = {row for layout in asked for row in space.rows_like(layout).tolist()}
    likely = some.pool.with_rows(np.unique([*some.pool.rows.tolist(), *best, *own, *some.tried]))
    steps_s = steps_at_once_s([(likely, change)])[0]
    first = least_of_each(steps_s)
    fits = np.flatnonzero(np.isfinite(steps_s) & np.isin(likely.rows, list(own))).tolist()
    for at in (*first[:_LIKELY], *fits):
        row = int(likely.rows[at])
        seated[row] = some.seated_s(row, change)
    if not seated:
        return Contest(pool=some.pool, contenders=())
    seated = _all_seated(some, change, seated, asked)
    rows = sorted(seated)
    pool = some.timed(np.array(rows, np.int64))
    alone_s = steps_at_once_s([(pool, change)])[0].tolist()
    return Contest(
        pool=pool,
        contenders=tuple(
            Contender(words=spelled_degrees(pool.layout(row)), row=row, ratio=seated[row] / each_s)
            for row, each_s in zip(rows, alone_s, strict=True)
        ),
    )


def _all_seated(
    some: Seatable, change: Change, seated: Mapping[int, float], asked: Sequence[Layout]
) -> dict[int, float]:
    """Return *seated* and every other row that may be faster, or as good with degrees of *asked*.

    Of those of one set of degrees and with the same step in closed form one is seated.

    Returns:
        Row to its step in seats [s].
    """
    found = dict(seated)
    space = some.pool.whole.space
    stay = [tuple(getattr(one, name) for name in DEGREES) for one in asked]
    shortest_s, own_s = min(found.values()), inf
    promised = some.promised(change, shortest_s * (1.0 + BEHIND))
    degrees = [tuple(one) for one in space.degrees(promised.rows).tolist()]
    every = zip(promised.rows.tolist(), promised.least_s.tolist(), promised.likely_s.tolist(),
                promised.alone_s.tolist(), degrees, strict=True)  # fmt: skip
    twins: set[tuple[float, ...]] = set()
    for row, least_s, likely_s, alone_s, own in every:
        as_good = own in stay and own_s > shortest_s * (1.0 + BEHIND)
        enough_s = shortest_s * (1.0 + BEHIND) if as_good else shortest_s
        twin = (round(log(alone_s) * 1e9), *own)
        if least_s > enough_s or twin in twins:
            continue
        twins.add(twin)
        unlikely = row not in found and likely_s > enough_s
        if unlikely and not some.may_take(row, change, enough_s):
            continue
        if row not in found:
            found[row] = some.seated_s(row, change)
        shortest_s = min(shortest_s, found[row])
        own_s = min(own_s, found[row] if own in stay else inf)
    return found
