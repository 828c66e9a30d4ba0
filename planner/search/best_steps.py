"""The best steps of some clusters under changes, of all layouts of their spaces.

No step gets shorter on a slower network. Networks that are all slower than now, or all faster,
therefore have few layouts that can be the best on any of them:

- slower: what a step takes at least now must not be longer than the best step there;
- faster: what it takes at least on a network as fast as any that is asked about must not be longer
  than the best step now.

Of those, a step that is known under one network bounds it on all slower ones.

A step is not monotone in the sequence length (collectives change their algorithm with the message,
and what is hidden changes with it): every length is searched by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from math import isfinite, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.search.changed import AS_IT_IS, Change
from planner.search.fastest import shortest_steps
from planner.search.least_steps import least_steps_s, rows_below, with_gradients_s
from planner.search.pool import Best, Pool, best_of, steps_at_once_s
from planner.search.together import grouped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

BEHIND = 1e-3
"""By how much a winner may be behind before another is called the winner [1]."""
_ROUNDING = 1e-9  # relative; steps and their bounds are summed in another order
_MANY_ROWS = 4_096
"""More rows than that are not timed before a closer bound has been asked about them, nor together
with another network's."""
_GROW_SLOWER = {"nic_latency", "crowding"}
"""Factors of a network that slow it when they grow; all others speed it up."""
_NETWORK = tuple(f.name for f in fields(Change) if f.name != "seq")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Side:
    """What of a space can be the best on networks that are all slower, or all faster, than now.

    Args:
        pools: the clusters that share the space.
        rows: of the space.
        least_s: networks and, for each pool, what its rows' steps take at least there, shape
            [pools, rows] [s]; grows with what is asked.
    """

    pools: tuple[Pool, ...]
    rows: Ints
    least_s: list[tuple[str, Change, Floats]]


class Steps:
    """The best steps of some clusters, each change evaluated once.

    They are exact for today's winner, and for the others where these are among the first two, or
    within ``BEHIND`` of the second; else only as much is known as that they are not.

    Args:
        pools: the clusters with a few layouts that are good now, the best among them.
        winner: the name of the first of today.
        slowest, fastest: the networks furthest from now that are asked about.
    """

    def __init__(
        self, pools: Sequence[Pool], winner: str, slowest: Sequence[Change], fastest: Change
    ) -> None:
        self.pools = tuple(pools)
        self._slowest, self._fastest = tuple(slowest), fastest
        self._known = {(pool.name, AS_IT_IS): pool.best() for pool in pools}
        self._alike: dict[str, Best] = {}
        self._sides: dict[str, list[_Side]] = {}
        self.winner = next(pool for pool in pools if pool.name == winner)

    def best(self, pool: Pool, change: Change) -> Best:
        """Return the shortest step under *change* and its layout."""
        if (pool.name, change) not in self._known:
            self.find([change])
        return self._known[pool.name, change]

    def ranked(self, change: Change) -> list[tuple[Pool, float]]:
        """Return the pools and their best steps for each of today's tokens [s], fastest first."""
        steps = [(pool, self.token_s(pool, change)) for pool in self.pools]
        return sorted(steps, key=lambda one: one[1])

    def token_s(self, pool: Pool, change: Change) -> float:
        """Return the best step of one pool for each of today's tokens, in seats as now's [s]."""
        return self.best(pool, change).step_s * pool.token_ratio

    def find(self, changes: Sequence[Change]) -> None:
        """Find the best steps under *changes*, those of the network at once."""
        new = [change for change in dict.fromkeys(changes)
               if any((pool.name, change) not in self._known for pool in self.pools)]  # fmt: skip
        for change in sorted((one for one in new if one.seq != 1.0), key=lambda one: -one.seq):
            self._search(change)  # the longest first: what fits there fits wherever it is shorter
        slower = [c for c in new if c.seq == 1.0 and is_as_fast(AS_IT_IS, c)]
        faster = [c for c in new if c.seq == 1.0 and c not in slower]
        for name, some in (("slower", slower), ("faster", faster)):
            sides = self._side(name) if some else []
            limits = self._limits(some) if some else {}
            for side in sides:
                self._find_on(side, some, limits)

    def _find_on(
        self, side: _Side, changes: Sequence[Change], limits: Mapping[Change, Mapping[str, float]]
    ) -> None:
        """Find the best steps under *changes*; networks that are alike are asked about once."""
        asked: dict[str, list[tuple[Pool, Change]]] = {}
        for change in changes:
            for pool in side.pools:
                asked.setdefault(_key(pool, change), []).append((pool, change))
        new = {
            key: max(limits[change][pool.name] for pool, change in pairs)
            for key, pairs in asked.items() if key not in self._alike
        }  # fmt: skip
        found = self._time(side, [(*asked[key][0], limit_s) for key, limit_s in new.items()])
        # what is behind the first two under one change may be among them under another
        self._alike |= {key: best for key, best in found.items() if best.row >= 0}
        for key, pairs in asked.items():
            best = self._alike[key] if key in self._alike else found[key]
            self._known |= {(pool.name, change): best for pool, change in pairs}

    def _time(self, side: _Side, asked: Sequence[tuple[Pool, Change, float]]) -> dict[str, Best]:
        """Time what can matter under each change, those with few such rows at once.

        Args:
            side: what is timed.
            asked: cluster, change, and the longest step that matters there [s].
        """
        whole, few = side.pools[0].whole, []
        found: dict[str, Best] = {}
        for pool, change, limit_s in asked:
            least_s = np.maximum.reduce(
                [bound_s for name, one, bound_s in side.least_s
                 if name == pool.name and is_as_fast(one, change)]
            )  # fmt: skip
            near = np.flatnonzero(least_s <= limit_s * (1.0 + _ROUNDING))
            if near.size > _MANY_ROWS:
                machines, rows = [pool.changed(change)], side.rows[near]
                closer_s = least_steps_s(whole, machines, 1.0, rows)
                closer_s = with_gradients_s(whole, machines, 1.0, rows, closer_s)
                near = near[closer_s[0] <= limit_s * (1.0 + _ROUNDING)]
            one = _Asked(pool=pool, change=change, limit_s=limit_s, least_s=least_s, near=near)
            if near.size > _MANY_ROWS:
                found |= self._time_at_once(side, [one])
            else:
                few.append(one)
        return found | (self._time_at_once(side, few) if few else {})

    def _time_at_once(self, side: _Side, asked: Sequence[_Asked]) -> dict[str, Best]:
        found = {_key(one.pool, one.change): Best(step_s=one.limit_s, row=-1) for one in asked}
        asked = [one for one in asked if one.near.size]
        if not asked:
            return found
        near = np.unique(np.concatenate([one.near for one in asked]))
        rows = side.rows[near]
        pools = {one.pool.name: one.pool for one in asked}
        some = {name: pool.with_rows(rows) for name, pool in pools.items()}
        timed = steps_at_once_s([(some[one.pool.name], one.change) for one in asked])
        for one, steps_s in zip(asked, timed, strict=True):
            best = best_of(rows, steps_s)
            if best.step_s <= one.limit_s * (1.0 + _ROUNDING):
                found[_key(one.pool, one.change)] = best
            known_s = one.least_s.copy()
            known_s[near] = steps_s
            side.least_s.append((one.pool.name, one.change, known_s))
        return found

    def _side(self, name: str) -> list[_Side]:
        """Return what of each space can be the best on any network of that side."""
        if name not in self._sides:
            bound = AS_IT_IS if name == "slower" else self._fastest
            limits = self._limits_up_to(self._slowest if name == "slower" else (AS_IT_IS,))
            self._sides[name] = [self._side_of(pools, bound, limits) for pools in self._groups()]
        return self._sides[name]

    def _side_of(self, pools: Sequence[Pool], bound: Change, limits: Mapping[str, float]) -> _Side:
        whole, below_s = pools[0].whole, [limits[pool.name] for pool in pools]
        machines = [pool.changed(bound) for pool in pools]
        rows = np.union1d(rows_below(whole, machines, below_s), pools[0].rows)
        if rows.size > _MANY_ROWS:
            least_s = least_steps_s(whole, machines, 1.0, rows)
        else:
            least_s = steps_at_once_s([(pool.with_rows(rows), bound) for pool in pools])
        kept = (least_s <= np.asarray(below_s)[:, None] * (1.0 + _ROUNDING)).any(axis=0)
        kept |= np.isin(rows, pools[0].rows)
        known = [(pool.name, bound, one[kept]) for pool, one in zip(pools, least_s, strict=True)]
        return _Side(pools=tuple(pools), rows=rows[kept], least_s=known)

    def _limits_up_to(self, edges: Sequence[Change]) -> dict[str, float]:
        """Return, by pool, the longest step that can matter on any network up to *edges* [s]."""
        for change in edges:
            if (self.winner.name, change) not in self._known:
                self._search(change)
        found = self._limits(edges).values()
        return {pool.name: max(one[pool.name] for one in found) for pool in self.pools}

    def _search(self, change: Change) -> None:
        """Search every space under one change; what wins there is asked first from now on."""
        limits = self._limits([change])[change]
        for pools in self._groups():
            below_s = [limits[pool.name] for pool in pools]
            machines = [pool.changed(change) for pool in pools]
            raced = shortest_steps(pools[0].whole, machines, change.seq, below_s)
            found = [one.best for one in raced]
            for pool, best, limit_s in zip(pools, found, below_s, strict=True):
                behind = Best(step_s=limit_s, row=-1) if isfinite(limit_s) else best
                self._known[pool.name, change] = best if best.row >= 0 else behind
            self._add(pools, {best.row for best in found if best.row >= 0})

    def _groups(self) -> list[list[Pool]]:
        """Return the pools of each space; they have the same rows."""
        every = grouped(self.pools, key=lambda pool: id(pool.whole))
        return [[self.pools[at] for at in some] for some in every]

    def _limits(self, changes: Sequence[Change]) -> dict[Change, dict[str, float]]:
        """Return, by pool, the longest step that can matter under each change [s].

        A pool that the first two leave behind matters only where it could be among them.

        Args:
            changes: of one sequence length.
        """
        known: dict[Change, dict[str, float]] = {change: {} for change in changes}
        for pools in self._groups():
            asked = [(pool, change) for change in changes for pool in pools]
            least_s = steps_at_once_s(asked).min(axis=1)
            for (pool, change), one in zip(asked, least_s, strict=True):
                known[change][pool.name] = float(one)
        return {change: self._that_matter(steps_s) for change, steps_s in known.items()}

    def _that_matter(self, known_s: Mapping[str, float]) -> dict[str, float]:
        by_token = sorted(known_s[pool.name] * pool.token_ratio for pool in self.pools)
        enough = by_token[min(1, len(by_token) - 1)] * (1.0 + BEHIND)
        return {
            pool.name: known_s[pool.name] if pool is self.winner
            else min(known_s[pool.name], enough / pool.token_ratio)
            for pool in self.pools
        }  # fmt: skip

    def _add(self, pools: Sequence[Pool], rows: set[int]) -> None:
        """Add *rows* to the layouts that are asked first."""
        every = np.union1d(pools[0].rows, np.array(sorted(rows), dtype=np.int64))
        if every.size > pools[0].rows.size:
            more = {pool.name: pool.with_rows(every) for pool in pools}
            self.pools = tuple(more.get(pool.name, pool) for pool in self.pools)
            self.winner = next(pool for pool in self.pools if pool.name == self.winner.name)


def _key(pool: Pool, change: Change) -> str:
    """Return what tells networks of a cluster apart: many changes bind nowhere."""
    return f"{pool.name} {pool.changed_links(change)!r}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Asked:
    """A change of one cluster, and which rows of a side can be the best under it.

    Args:
        pool, change: which.
        limit_s: the longest step that matters [s].
        least_s: what the side's rows take at least [s].
        near: positions of those that can be the best.
    """

    pool: Pool
    change: Change
    limit_s: float
    least_s: Floats
    near: Ints


def is_as_fast(one: Change, other: Change) -> bool:
    """Return whether no part of the network is slower under *one* than under *other*."""
    return all(
        getattr(one, name) <= getattr(other, name)
        if name in _GROW_SLOWER
        else getattr(one, name) >= getattr(other, name)
        for name in _NETWORK
    )


def most_faster(one: Change, other: Change) -> float:
    """Return how many times as fast a part of the network can be under *other*, 1 at least.

    No step takes less by more than that.

    >>> most_faster(Change(nic_rate=0.5), Change(nic_latency=2.0)), most_faster(Change(), Change())
    (2.0, 1.0)
    """
    ratios = (
        getattr(one, name) / getattr(other, name)
        if name in _GROW_SLOWER
        else getattr(other, name) / getattr(one, name)
        for name in _NETWORK
    )
    return prod(max(1.0, ratio) for ratio in ratios)


def fastest_of(changes: Sequence[Change]) -> Change:
    """Return a network of which every part is as fast as under any of *changes*, and as now."""
    every = [AS_IT_IS, *changes]
    return Change(
        **{
            name: (min if name in _GROW_SLOWER else max)(getattr(one, name) for one in every)
            for name in _NETWORK
        }
    )
