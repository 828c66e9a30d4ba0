"""The layouts that contend on a cluster near a change of it, seated there.

Near it, a seated step is taken to be longer than its closed form by as much as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.search.best_steps import BEHIND
from planner.search.incumbent import spelled_degrees
from planner.search.least_steps import rows_below
from planner.search.pool import Pool, steps_at_once_s
from planner.search.seated_steps import SeatedSteps, until_kept
from planner.search.sets import degrees_of, first_of_sets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from planner.layout import Layout
    from planner.search.changed import Change
    from planner.search.sets import Degrees

    Ints = NDArray[np.int64]


_CLOSE_SHARE = 0.005
"""How much longer than the shortest a step in rank order may be to contend, beside those that were
the best somewhere [1]: seats seldom add more to the one and nothing to the other."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Contender:
    """The layouts of one set of degrees on one cluster.

    Args:
        words: the degrees.
        rows: of the cluster's space.
        ratio: of its step with every rank in a seat over the shortest in rank order [1].
    """

    words: str
    rows: Ints
    ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatedBest:
    """The fastest of the contenders on one cluster: its degrees and what a token takes [s]."""

    words: str
    token_s: float


NOTHING_FITS = SeatedBest(words="nothing fits", token_s=inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """What contends on one cluster.

    Args:
        pool: the cluster with the rows of all contenders, ascending.
        contenders: sets of degrees; empty where nothing fits.
    """

    pool: Pool
    contenders: tuple[Contender, ...]

    def best(self, change: Change, stays: str) -> SeatedBest:
        """Return the fastest under *change*; the degrees *stays* are, until 0.1 % behind."""
        if not self.contenders:
            return NOTHING_FITS
        steps_s = steps_at_once_s([(self.pool, change)])[0]
        times = {
            one.words: float(steps_s[np.isin(self.pool.rows, one.rows)].min()) * one.ratio
            for one in self.contenders
        }
        first = min(times, key=lambda words: times[words])
        if times[first] == inf:
            return NOTHING_FITS
        words = stays if times.get(stays, inf) <= times[first] * (1.0 + BEHIND) else first
        return SeatedBest(words=words, token_s=times[first] / self.pool.tokens)


def contest(
    pool: Pool,
    best: set[int],
    sides: Sequence[Change],
    seats: SeatedSteps,
    asked: Sequence[Layout],
) -> Contest:
    """Return the sets of degrees that contend on a cluster under some changes, seated there.

    Args:
        pool: the cluster.
        best: rows that are the best there.
        sides: changes of its network or of the sequences; each set is seated under the first of
            them under which it contends.
        seats: where the ranks sit.
        asked: layouts that are looked at however long they take.
    """
    space = pool.whole.space
    like = [space.rows_like(layout) for layout in asked]
    start = np.unique(np.concatenate([pool.rows, np.array(sorted(best), np.int64), *like]))
    some = pool.with_rows(start)
    every = np.unique(np.concatenate([start, *(_close(some, change) for change in sides)]))
    some = pool.with_rows(every)
    wanted = [degrees_of(space, row) for rows in like for row in rows.tolist()]
    ratios: dict[Degrees, float] = {}
    for change in dict.fromkeys(sides):
        ratios = _ratios(some, change, seats, wanted, ratios)
    if not ratios:
        return Contest(pool=pool, contenders=())
    rows: dict[Degrees, list[int]] = {}
    for row in every.tolist():
        rows.setdefault(degrees_of(space, row), []).append(row)
    return Contest(
        pool=pool.with_rows(np.array(sorted(row for one in ratios for row in rows[one]), np.int64)),
        contenders=tuple(
            Contender(words=spelled_degrees(pool.layout(rows[one][0])), rows=np.array(rows[one]),
                       ratio=ratio)
            for one, ratio in ratios.items()
        ),
    )  # fmt: skip


def _close(pool: Pool, change: Change) -> Ints:
    """Return the rows of the space that may be within ``_CLOSE_SHARE`` of the pool's best."""
    least_s = float(steps_at_once_s([(pool, change)])[0].min())
    if least_s == inf:
        return np.empty(0, np.int64)
    machines, below_s = [pool.changed(change)], [least_s * (1.0 + _CLOSE_SHARE)]
    return rows_below(pool.whole, machines, below_s, change.seq)


def _ratios(
    pool: Pool,
    change: Change,
    seats: SeatedSteps,
    wanted: Sequence[Degrees],
    known: Mapping[Degrees, float],
) -> dict[Degrees, float]:
    """Return *known* and the ratios of all other sets that contend under *change*."""
    steps_s = steps_at_once_s([(pool, change)])[0]
    first = first_of_sets(pool.whole.space, pool.rows, steps_s, wanted)
    promised = {one: float(steps_s[at]) for one, at in first.items()}

    def seated_s(one: Degrees) -> float:
        if one in known:
            return promised[one] * known[one]
        layout = pool.layout(int(pool.rows[first[one]]))
        longer = replace(layout, seq=round(layout.seq * change.seq))
        return seats.quick_s(pool.model, longer, replace(change, seq=1.0))

    found = until_kept(promised.items(), seated_s)
    found |= {one: seated_s(one) for one in wanted if one in promised and one not in found}
    return {**known, **{one: step_s / promised[one] for one, step_s in found.items()}}
