"""The layouts that contend on a cluster near a change of it, seated there.

Near it, a seated step is taken to be longer than its closed form by as much as there. Layouts are
seated in the order of their closed form in rank order: one that seats make faster than that, by
more than it is behind there, is missed.
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
from planner.search.sets import least_of_each

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from planner.layout import Layout
    from planner.search.changed import Change

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

MOST_SEATED = 16
"""Layouts of one cluster that are seated at most under one change: those of one set of degrees may
come first with all their virtual stages, of which a few share links badly [1]."""

_CLOSE_SHARE = 0.005
"""How much longer than the shortest a step in rank order may be to contend, beside those that were
the best somewhere [1]: seats seldom add more to the one and nothing to the other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One layout on one cluster.

    Args:
        words: its degrees.
        row: of the cluster's space.
        ratio: of its step with every rank in a seat over that in rank order [1].
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
    """What contends on one cluster.

    Args:
        pool: the cluster with the rows of all contenders, ascending.
        contenders: of the same rows; empty where nothing fits.
    """

    pool: Pool
    contenders: tuple[Contender, ...]

    def bests(self, changes: Sequence[Change], stays: str) -> list[SeatedBest]:
        """Return the fastest under each of *changes*; the degrees *stays* are, until 0.1 % behind.

        Args:
            changes: of one sequence length.
            stays: degrees, spelled.
        """
        if not self.contenders:
            return [NOTHING_FITS] * len(changes)
        steps_s = steps_at_once_s([(self.pool, change) for change in changes])
        seated_s = steps_s * np.array([one.ratio for one in self.contenders])
        return [self._fastest(each, stays) for each in seated_s]

    def _fastest(self, seated_s: Floats, stays: str) -> SeatedBest:
        least_s = float(seated_s.min())
        if least_s == inf:
            return NOTHING_FITS
        near = np.flatnonzero(seated_s <= least_s * (1.0 + BEHIND)).tolist()
        words = [self.contenders[at].words for at in near]
        first = self.contenders[int(seated_s.argmin())].words
        return SeatedBest(
            words=stays if stays in words else first, token_s=least_s / self.pool.tokens
        )


def contest(
    pool: Pool,
    best: set[int],
    sides: Sequence[Change],
    seats: SeatedSteps,
    asked: Sequence[Layout],
) -> Contest:
    """Return the layouts that contend on a cluster under some changes, seated there.

    Args:
        pool: the cluster.
        best: rows that are the best there.
        sides: changes of its network or of the sequences; each layout is seated under the first of
            them under which it contends.
        seats: where the ranks sit.
        asked: layouts that are looked at however long they take.
    """
    space = pool.whole.space
    like = [space.rows_like(layout) for layout in asked]
    wanted = [row for rows in like for row in rows.tolist()]
    start = np.unique(np.concatenate([pool.rows, np.array(sorted(best), np.int64), *like]))
    some = pool.with_rows(start)
    ratios: dict[int, float] = {}
    for change in dict.fromkeys(sides):
        few = _ratios(some, change, seats, wanted, ratios)
        near = _near(some, change, few)
        ratios = _ratios(pool.with_rows(np.union1d(start, near)), change, seats, wanted, few)
    if not ratios:
        return Contest(pool=pool, contenders=())
    rows = sorted(ratios)
    return Contest(
        pool=pool.with_rows(np.array(rows, np.int64)),
        contenders=tuple(
            Contender(words=spelled_degrees(pool.layout(row)), row=row, ratio=ratios[row])
            for row in rows
        ),
    )  # fmt: skip


def _near(pool: Pool, change: Change, known: Mapping[int, float]) -> Ints:
    """Return the rows of the space that may be as fast as the best of those that were seated."""
    steps_s = steps_at_once_s([(pool, change)])[0]
    least_s = float(steps_s.min())
    if least_s == inf:
        return np.empty(0, np.int64)
    seated_s = min(
        step_s * known[row]
        for row, step_s in zip(pool.rows.tolist(), steps_s.tolist(), strict=True) if row in known
    )  # fmt: skip
    below_s = max(seated_s, least_s * (1.0 + _CLOSE_SHARE))
    return rows_below(pool.whole, [pool.changed(change)], [below_s], change.seq)


def _ratios(
    pool: Pool,
    change: Change,
    seats: SeatedSteps,
    wanted: Sequence[int],
    known: Mapping[int, float],
) -> dict[int, float]:
    """Return *known* and the ratios of all other layouts that contend under *change*."""
    steps_s = steps_at_once_s([(pool, change)])[0]
    promised = {int(pool.rows[at]): float(steps_s[at]) for at in least_of_each(steps_s)}

    def seated_s(row: int) -> float:
        if row in known:
            return promised[row] * known[row]
        layout = pool.layout(row)
        longer = replace(layout, seq=round(layout.seq * change.seq))
        return seats.quick_s(pool.model, longer, replace(change, seq=1.0))

    found = until_kept(promised.items(), seated_s, MOST_SEATED)
    own = np.flatnonzero(np.isin(pool.rows, wanted) & np.isfinite(steps_s))
    promised |= {int(pool.rows[at]): float(steps_s[at]) for at in own}
    found |= {row: seated_s(row) for at in own if (row := int(pool.rows[at])) not in found}
    return {**known, **{row: step_s / promised[row] for row, step_s in found.items()}}
