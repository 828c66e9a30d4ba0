"""How groups sit when ranks fill the GPUs in rank order, on the domains as they are.

Where all domains are equal, and groups divide them or they groups, the closed form of
``contiguous_spread`` says it. Where not (384+384+256, dead GPUs, groups of 16 in racks of 72) a
group may straddle two: the worst group of each digit is then counted on the seats themselves, once
for each size and stride, and looked up for every layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.collectives.links import Spread
from planner.layout import groups_along
from planner.search.placed import WORST_SPREAD, inside_spreads, stacked
from planner.search.space import DEGREES
from planner.steptime.columns import LayoutColumns, anywhere
from planner.steptime.spread import DIGITS, SHARDING, Spreads, contiguous_spread, digits_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

SEATINGS = ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")
_MOVED = ("dp", "edp", "pp", *SHARDING)  # digits whose groups sit otherwise in the other order
_DEGREES = (*DEGREES, "shard_gpus")


class RankOrderSeats:
    """The seats of ranks 0, 1, 2 … on GPUs 0, 1, 2 …, and what was counted on them so far.

    Args:
        homes: domain of each GPU of the job at each tier from the supernode outwards but the last.
    """

    def __init__(self, homes: Sequence[NDArray[np.int64]]) -> None:
        self._homes = list(homes)
        self._domain_gpus = [float(np.bincount(home).max()) for home in homes]
        self._uneven = any(_is_uneven(home) for home in homes)
        self._counted: dict[tuple[str, int, int, int, int], Spread] = {}
        self._known: dict[tuple[tuple[int, ...], str, int], Spreads] = {}

    @property
    def supernode_gpus(self) -> tuple[int, ...]:
        """Sizes that supernodes have, of the job's GPUs; all in one where there is but one [1]."""
        if not self._homes:
            return ()
        sizes = np.bincount(self._homes[0])
        return tuple(int(size) for size in np.unique(sizes[sizes > 0]))

    def spreads(self, columns: LayoutColumns) -> Spreads:
        """Return the spreads of *columns* in the seating of each rank order.

        What the order moves has an axis before that of the rows, one entry an order; the rest has
        none, so that what does not depend on the order is worked out once.
        """
        if not self._homes:
            return inside_spreads(columns)
        few, which = _unique_degrees(columns)
        if self._uneven or not self._divide(few):
            digits = (*DIGITS, *SHARDING) if anywhere(columns.shard_gpus > 0) else DIGITS
            found = [
                stacked([self._of(degrees, order, digits) for degrees in few]) for order in SEATINGS
            ]
        else:
            degrees = dict(zip(_DEGREES, np.array(few, dtype=float).T, strict=True))
            some = replace(columns, **degrees)
            found = [contiguous_spread(some, self._domain_gpus, order) for order in SEATINGS]
        return rows_of(_by_order(found), which)

    def _divide(self, few: Sequence[tuple[int, ...]]) -> bool:
        """Return whether no group of some sets of degrees begins or ends inside of another's."""
        tp, cp, ep, etp, dp, pp, shards = np.array(few, dtype=np.int64).T
        blocks = np.stack([tp, tp * cp, etp, etp * ep, tp * cp * dp, tp * cp * pp,
                           tp * np.maximum(shards, 1), tp * np.maximum(shards, 1) * pp,
                           etp * ep * pp])  # fmt: skip
        sizes = np.array(self._domain_gpus, dtype=np.int64)[:, None, None]
        return bool(((sizes % blocks == 0) | (blocks % sizes == 0)).all())

    def _of(self, degrees: tuple[int, ...], order: str, digits: Sequence[str]) -> Spreads:
        key = (degrees, order, len(digits))
        if key not in self._known:
            self._known[key] = self._count(degrees, order, digits)
        return self._known[key]

    def _count(self, degrees: tuple[int, ...], order: str, digits: Sequence[str]) -> Spreads:
        tp, cp, ep, etp, dp, pp, shards = degrees
        edp = tp * cp * dp // (etp * ep)
        late = order.endswith("dp")
        shard = shards // cp or dp
        replicas = dp // shard
        strides = {
            "tp": (tp, 1, 1, 1), "cp": (cp, tp, 1, 1), "ep": (ep, etp, 1, 1),
            "etp": (etp, 1, 1, 1),
            "dp": (cp, tp, dp, tp * cp * pp) if late else (cp * dp, tp, 1, 1),
            "edp": (edp, etp * ep * (pp if late else 1), 1, 1),
            "pp": (pp, tp * cp if late else tp * cp * dp, 1, 1),
            "dp_shard": (cp, tp, shard, tp * cp * pp) if late else (cp * shard, tp, 1, 1),
            "edp_shard": (edp // replicas, etp * ep * (pp if late else 1), 1, 1),
            "dp_replicate": (replicas, tp * cp * shard * (pp if late else 1), 1, 1),
        }  # fmt: skip
        return Spreads(**{name: self._worst(name, *strides[name]) for name in digits})

    def _worst(self, digit: str, size: int, stride: int, more: int, apart: int) -> Spread:
        worst = WORST_SPREAD[digit]
        key = (worst.__name__, size, stride, more, apart)
        if key not in self._counted:
            count = len(self._homes[0])
            sizes, along = [stride, size], [1]
            if more > 1:
                sizes, along = [*sizes, apart // (size * stride), more], [1, 3]
            rest = int(np.prod(sizes))
            members = groups_along([*sizes, max(1, count // rest)], along)
            self._counted[key] = worst(members, self._homes)
        return self._counted[key]


def _is_uneven(home: NDArray[np.int64]) -> bool:
    sizes = np.bincount(home)
    sizes = sizes[sizes > 0]
    return bool((sizes != sizes[0]).any()) or bool((np.diff(home) < 0).any())


def _unique_degrees(columns: LayoutColumns) -> tuple[list[tuple[int, ...]], NDArray[np.int64]]:
    """Return the sets of ``_DEGREES`` that occur, and which one each row has."""
    every = [np.atleast_1d(getattr(columns, name)) for name in _DEGREES]
    rows = np.stack(np.broadcast_arrays(*every), axis=1).astype(np.int64)
    # Rows of one set of degrees usually follow each other: look only where they change.
    changes = np.r_[True, (rows[1:] != rows[:-1]).any(axis=1)]
    starts = np.flatnonzero(changes[: len(rows)])  # no rows have no first
    few, place = np.unique(rows[starts], axis=0, return_inverse=True)
    lengths = np.diff(np.r_[starts, len(rows)])
    return [tuple(map(int, row)) for row in few], np.repeat(place.ravel(), lengths)


def _by_order(orders: Sequence[Spreads]) -> Spreads:
    """Return the spreads of all *orders*, side by side where the order moves a group."""
    moved = {
        name: _side_by_side([getattr(one, name) for one in orders])
        for name in digits_of(orders[0])
        if name in _MOVED
    }
    return replace(orders[0], **moved)


def _side_by_side(spreads: Sequence[Spread]) -> Spread:
    tiers = range(len(spreads[0].members))

    def both(values: Sequence[Any]) -> Any:
        return np.stack(np.broadcast_arrays(*(np.atleast_1d(value) for value in values)))

    return Spread(
        group_size=spreads[0].group_size,
        members=tuple(both([s.members[tier] for s in spreads]) for tier in tiers),
        domains=tuple(both([s.domains[tier] for s in spreads]) for tier in tiers),
        least_members=both([s.least_members for s in spreads]),
    )


def rows_of(spreads: Spreads, rows: NDArray[np.int64]) -> Spreads:
    """Return the spreads of some rows; what is alike in all of them stays so."""

    def some(spread: Spread) -> Spread:
        def take(value: Any) -> Any:
            alike = not isinstance(value, np.ndarray) or value.ndim == 0 or value.shape[-1] == 1
            return value if alike else value[..., rows]

        return Spread(
            group_size=take(spread.group_size), members=tuple(map(take, spread.members)),
            domains=tuple(map(take, spread.domains)), least_members=take(spread.least_members),
        )  # fmt: skip

    return Spreads(**{name: some(getattr(spreads, name)) for name in digits_of(spreads)})
