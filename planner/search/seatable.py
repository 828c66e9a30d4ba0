"""The layouts of one cluster as they sit: in the rank orders' seats, and in quick ones.

Seats of a layout do not depend on the network's rates, and layouts of one grid mostly sit alike: a
grid is seated once, and all its layouts are timed there under every change. What no seats make a
layout shorter than (``any_seats.py``) tells which grids are worth it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import lcm
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.collectives.links import Spread
from planner.search.any_seats import AnySeats
from planner.search.best_steps import most_faster
from planner.search.evaluate import CHUNK_ROWS
from planner.search.placed import stacked
from planner.search.pool import steps_at_once_s
from planner.search.seats import rows_of
from planner.search.whole import ROUNDING, longer_columns
from planner.steptime.spread import Spreads, digits_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.collectives.links import TierNumbers
    from planner.layout import Layout
    from planner.search.changed import Change
    from planner.search.effort import Effort
    from planner.search.pool import Pool
    from planner.search.seated_steps import SeatedSteps

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_PLACED_PARTS = 16
"""How many layouts are placed in the time that one takes to be placed and timed, at least [1]."""
_REMEMBERED = 8
"""Changes whose bounds are kept [1]: the next is mostly near one of the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Promised:
    """Rows of a space, and what their steps take at least [s].

    Args:
        rows: of the space, those that are likely to take least first.
        least_s: what they take at least wherever ranks sit: proved in ``any_seats.py``.
        likely_s: what they take at least in the seats of their grid's first layout, which mostly
            are theirs: it orders the rows, and rules none out.
        alone_s: what they take there in closed form, each kind of group by itself [s].
    """

    rows: Ints
    least_s: Floats
    likely_s: Floats
    alone_s: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bounds:
    """What *rows* of the space, ascending, take at least in any seats under *change* [s]."""

    change: Change
    rows: Ints
    least_s: Floats


class Seatable:
    """One cluster's layouts, which of them may be the fastest under a change, and in which seats.

    Args:
        pool: the cluster.
        seats: the steps of layouts seated on it.
        effort: how much may be seated.

    Attributes:
        tried: rows that were seated under any change.
    """

    def __init__(self, pool: Pool, seats: SeatedSteps, effort: Effort) -> None:
        self.pool, self.seats, self._effort = pool, seats, effort
        self._any = AnySeats(seats.fabric, int(pool.columns.gpus[0]))
        self._one_domain = not pool.machine.seats.supernode_gpus
        self._bounds: list[_Bounds] = []
        self._placed: dict[Layout, Spreads] = {}
        self.tried: set[int] = set()

    def timed(self, rows: Ints) -> Pool:
        """Return the pool with other *rows*, timed in the best of the rank orders' and own seats.

        Args:
            rows: of the space, ascending.
        """
        some = self.pool.with_rows(rows)
        if self._one_domain or not rows.size:
            return some
        return replace(some, spreads=_beside(some.spreads, self._own_spreads(rows)))

    def seated_s(self, row: int, change: Change) -> float:
        """Return the step of one row in quick seats under *change* [s].

        Raises:
            SpentError: no more may be seated.
        """
        longer = self._longer(row, change)
        self._effort.take(longer.gpus)
        self.tried.add(row)
        return self.seats.quick_s(self.pool.model, longer, replace(change, seq=1.0))

    def promised(self, change: Change, below_s: float) -> Promised:
        """Return all rows that fit and may take *below_s* or less, wherever their ranks sit.

        Args:
            change: of the network and the sequences.
            below_s: longer steps are of no interest [s].
        """
        rows, least_s = self._in_any_seats(change, below_s)
        alone_s, likely_s = np.empty(rows.size), least_s.copy()
        for start in range(0, rows.size, CHUNK_ROWS):
            some = slice(start, start + CHUNK_ROWS)
            pool = self.timed(rows[some])
            alone_s[some] = steps_at_once_s([(pool, change)])[0]
            likely_s[some] = np.maximum(likely_s[some], self._in_own_seats(pool, change))
        if not any(_is_crowded(tier) for tier in self.pool.changed_links(change).outer):
            likely_s = np.maximum(likely_s, alone_s)
        order = np.argsort(likely_s, kind="stable")
        return Promised(rows=rows[order], least_s=least_s[order], likely_s=likely_s[order],
                        alone_s=alone_s[order])  # fmt: skip

    def may_take(self, row: int, change: Change, enough_s: float) -> bool:
        """Return whether one row may take *enough_s* or less in its own quick seats.

        There it takes no less than ``AnySeats.placed_s`` proves of how its groups sit.

        Raises:
            SpentError: no more may be seated.
        """
        layout = self._longer(row, change)
        if layout not in self._placed:
            self._effort.take(layout.gpus // _PLACED_PARTS)
            every = self.seats.quick_spreads(self.pool.model, layout)
            self._placed[layout] = _by_seating(stacked([_with_sharding(one) for one in every]))
        whole, spreads = self.pool.whole, self._placed[layout]
        columns = longer_columns(whole.space.columns(whole.fixed, np.array([row])), change.seq)
        there = self._any.under(change)
        least_s = there.placed_s(self.pool.model, self.pool.machine, columns, spreads)
        return float(least_s.min()) * (1.0 - ROUNDING) <= enough_s

    def _longer(self, row: int, change: Change) -> Layout:
        """Return the layout of one row at the length under *change*, at which it runs."""
        today = int(self.pool.whole.fixed["seq"])
        return replace(self.pool.layout(row), seq=round(today * change.seq))

    def _in_own_seats(self, pool: Pool, change: Change) -> Floats:
        """Return what rows take at least in the seats that *pool* has [s]."""
        columns = longer_columns(pool.columns, change.seq)
        there = self._any.under(change)
        return there.placed_s(pool.model, pool.machine, columns, pool.spreads)

    def _in_any_seats(self, change: Change, below_s: float) -> tuple[Ints, Floats]:
        """Return the rows that may take *below_s* or less wherever ranks sit, and their bounds."""
        whole = self.pool.whole
        rows = whole.near(change.seq, below_s)
        least_s = np.zeros(rows.size)
        for one in self._bounds:
            if one.change.seq == change.seq:
                at = np.minimum(np.searchsorted(one.rows, rows), one.rows.size - 1)
                known = one.least_s[at] / most_faster(one.change, change)
                least_s = np.where(one.rows[at] == rows, np.maximum(least_s, known), least_s)
        near = np.flatnonzero(least_s <= below_s * (1.0 + ROUNDING))
        near = near[np.isin(rows[near], whole.that_can(change.seq, rows[near]))]
        least_s[near] = np.maximum(least_s[near], self._any.under(change).least_s(
            whole.model, self.pool.machine, whole.space, whole.fixed, rows[near], change.seq
        ))  # fmt: skip
        if rows.size:
            kept = [_Bounds(change=change, rows=rows, least_s=least_s.copy())]
            self._bounds = [*kept, *self._bounds][:_REMEMBERED]
        near = near[least_s[near] <= below_s * (1.0 + ROUNDING)]
        return rows[near], least_s[near]

    def _own_spreads(self, rows: Ints) -> Spreads:
        """Return how the groups of *rows* sit in the quick seats of their grids."""
        space, fixed = self.pool.whole.space, self.pool.whole.fixed
        grids = np.column_stack([space.degrees(rows), space.table["dp_shard"][rows]])
        _, first, which = np.unique(grids, axis=0, return_index=True, return_inverse=True)
        return rows_of(
            stacked([self._of_grid(space.layout(int(rows[at]), fixed)) for at in first]),
            which.ravel(),
        )

    def _of_grid(self, layout: Layout) -> Spreads:
        """Return how the groups of a layout's grid sit, which is seated once.

        At today's length, or the next that its ranks can share.
        """
        layout = replace(layout, seq=lcm(layout.seq, layout.tp * layout.cp))
        if not self.seats.knows_grid(self.pool.model, layout):
            self._effort.take(layout.gpus)
        return _with_sharding(self.seats.grid_spreads(self.pool.model, layout))


def _is_crowded(tier: TierNumbers) -> bool:
    """Return whether a GPU gets less of *tier* where all send at once."""
    return bool(np.any(tier.crowded_bytes_per_s() < tier.alone_bytes_per_s()))


def _with_sharding(spreads: Spreads) -> Spreads:
    """Return *spreads* with those of hybrid sharding; of no copies where there is none."""
    if spreads.dp_shard is not None:
        return spreads
    alone = Spread.of_one(len(spreads.dp.members))
    return replace(spreads, dp_shard=spreads.dp, edp_shard=spreads.edp, dp_replicate=alone)


def _by_seating(spreads: Spreads) -> Spreads:
    """Return seatings of one row, told apart by an axis before that of the rows."""
    return Spreads(
        **{
            name: Spread(
                group_size=one.group_size[:, None],
                members=tuple(each[:, None] for each in one.members),
                domains=tuple(each[:, None] for each in one.domains),
                least_members=one.least_members[:, None],
            )
            for name in digits_of(spreads)
            for one in (getattr(spreads, name),)
        }
    )


def _beside(orders: Spreads, own: Spreads) -> Spreads:
    """Return the seatings of the rank *orders*, and one more of the rows' *own*."""
    return Spreads(
        **{name: _one_more(getattr(orders, name), getattr(own, name)) for name in digits_of(orders)}
    )


def _one_more(orders: Spread, own: Spread) -> Spread:
    def all_of(before: Any, after: Any) -> Any:
        rows = np.broadcast_to(before, np.broadcast_shapes(np.shape(before), (2, len(after))))
        return np.concatenate([rows, after[None]])

    def each(before: Sequence[Any], after: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(all_of(*pair) for pair in zip(before, after, strict=True))

    return Spread(
        group_size=orders.group_size,
        members=each(orders.members, own.members),
        domains=each(orders.domains, own.domains),
        least_members=all_of(orders.least_members, own.least_members),
    )
