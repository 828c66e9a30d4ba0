"""The best steps of some clusters under changes: among candidates, and searched anew."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from math import inf, isfinite
from typing import TYPE_CHECKING

import numpy as np

from planner.search.anew import Work, faster_rows, work_of
from planner.search.pool import Change, Pool, steps_at_once_s
from planner.search.together import grouped

if TYPE_CHECKING:
    from numpy.typing import NDArray

BEHIND = 1e-3
"""By how much a winner may be behind before another is called the winner [1]."""


class Steps:
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
        self._won: dict[int, NDArray[np.int64]] = {}
        self._won_pools: dict[str, Pool] = {}
        self._of_won: dict[tuple[str, Change], tuple[float, int]] = {}
        self._searched: set[tuple[str, Change, bool]] = set()
        self._work: dict[int, Work] = {}

    def best(self, pool: Pool, change: Change) -> tuple[float, int]:
        """Return the shortest step [s] under *change*, and its row of the space; -1 if none fits.

        Where ``search`` has been, of what it found; else of all candidates.
        """
        self._ask_won([pool], change)
        step_s, row = self._of_won.get((pool.name, change), (inf, -1))
        if (pool.name, change) not in self._known and row >= 0:
            return step_s, row
        if (pool.name, change) not in self._known:
            self._find([(pool, change)])
        return self._known[pool.name, change]

    def _ask_won(self, pools: Sequence[Pool], change: Change) -> None:
        """Time what ``search`` found, at once for all of *pools* that share a space."""
        new = [one for one in pools
               if (one.name, change) not in self._known and (one.name, change) not in self._of_won
               and id(one.swept.space) in self._won]  # fmt: skip
        for some in grouped(new, key=lambda pool: id(pool.swept.space)):
            rows = self._won[id(new[some[0]].swept.space)]
            together = [self._with_won(new[at], rows) for at in some]
            totals = steps_at_once_s([(one, change) for one in together])
            for one, total in zip(together, totals, strict=True):
                first = int(total.argmin())
                self._of_won[one.name, change] = (
                    (float(total[first]), int(rows[first])) if isfinite(total[first]) else (inf, -1)
                )

    def _with_won(self, pool: Pool, rows: NDArray[np.int64]) -> Pool:
        had = self._won_pools.get(pool.name)
        if had is None or len(had.rows) != len(rows):
            had = self._won_pools[pool.name] = pool.with_rows(rows)
        return had

    def search(self, change: Change, of: Pool | None = None) -> bool:
        """Search the whole space under *change*; return whether a candidate was beaten.

        What beats it joins the candidates. Of pools that the first two leave behind, only what
        could be among these matters.

        Args:
            change: what is different.
            of: the one pool that matters; left out, all.
        """
        first_two = of is None
        pools = [pool for pool in self._pools if of in (None, pool)
                 and (pool.name, change, first_two) not in self._searched]  # fmt: skip
        if not pools:
            return False
        ranked = self.ranked(change)
        enough = ranked[min(1, len(ranked) - 1)][1] * (1.0 + BEHIND) if first_two else inf
        beaten = False
        for some in grouped(pools, key=lambda pool: id(pool.swept.space)):
            alike = [pools[at] for at in some]
            space = id(alike[0].swept.space)
            if space not in self._work:
                self._work[space] = work_of(alike[0].swept)
            known = [self.best(pool, change) for pool in alike]
            below = [min(one[0], enough * pool.tokens)
                     for one, pool in zip(known, alike, strict=True)]  # fmt: skip
            faster = faster_rows(alike, change, below, self._work[space])
            for pool, one, new in zip(alike, known, faster, strict=True):
                beaten |= new is not None
                self._known[pool.name, change] = one if new is None else new
                self._add(pool, self._known[pool.name, change][1])
        self._searched |= {(pool.name, change, first_two) for pool in pools}
        return beaten

    def _add(self, pool: Pool, row: int) -> None:
        space = id(pool.swept.space)
        had = self._won.get(space, np.empty(0, np.int64))
        if row >= 0 and row not in had:
            self._won[space] = np.append(had, row)
            self._of_won.clear()

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
                (float(total[row]), int(pool.rows[row])) if isfinite(total[row]) else (inf, -1)
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
        self._ask_won(self._pools, change)
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
