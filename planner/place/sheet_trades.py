"""What changes of rows and trades of pieces cost, without counting the whole cut anew.

All families but chains pay, for every group and domain, by the members that the domain holds: so
the price of a change follows from how many members of which groups it moves. Chains pay by hops.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.moves import held_bytes, linked
from planner.place.question import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.sheet_parts import Sheeted


_TABLE_MOST = 1_000_000  # entries of a table of changes


@dataclass(frozen=True, slots=True, kw_only=True)
class Trade:
    """Two pieces of one sheet, of equal size and in two domains, that may trade places.

    Args:
        sheet: which.
        one: cells of the first piece in the sheet, shape [cells of a piece].
        other: of the second.
    """

    sheet: int
    one: NDArray[np.int64]
    other: NDArray[np.int64]

    def made(self, homes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the homes of all sheets after it, shape [sheets, cells of one]."""
        traded = homes.copy()
        traded[self.sheet, self.one] = homes[self.sheet, self.other[0]]
        traded[self.sheet, self.other] = homes[self.sheet, self.one[0]]
        return traded


@dataclass(frozen=True, slots=True, kw_only=True)
class Trades:
    """Trades of pieces of two rows of a sheet.

    Args:
        pieces: of every sheet.
        pairs: sheet, first and second piece of each trade, shape [trades, 3].
    """

    pieces: list[list[NDArray[np.int64]]]
    pairs: NDArray[np.int64]

    def among(self, first: int, end: int) -> list[Trade]:
        """Return the trades from *first* up to *end*."""
        return [
            Trade(sheet=sheet, one=self.pieces[sheet][i], other=self.pieces[sheet][j])
            for sheet, i, j in self.pairs[first:end].tolist()
        ]


def trades_of(homes: NDArray[np.int64], rows: NDArray[np.int64], most: int) -> Trades:
    """Return the trades of pieces of equal size, in two domains, of two rows of a sheet.

    Args:
        homes: of all sheets, shape [sheets, cells of one].
        rows: the cells of a sheet in each row, shape [rows, cells of one].
        most: how many trades are wanted at most [1].
    """
    pieces: list[list[NDArray[np.int64]]] = []
    pairs: list[NDArray[np.int64]] = []
    left = most
    for sheet, here in enumerate(homes):
        parts = [[row[here[row] == s] for s in np.unique(here[row])] for row in rows]
        shared = [row for row in parts if len(row) > 1]
        pieces.append([piece for row in shared for piece in row])
        if left <= 0 or not shared:
            continue
        row_of = np.repeat(np.arange(len(shared)), [len(row) for row in shared])
        size = np.array([len(piece) for piece in pieces[-1]])
        home = here[[piece[0] for piece in pieces[-1]]]
        alike = (size[:, None] == size) & (home[:, None] != home) & (row_of[:, None] < row_of)
        one, other = np.nonzero(alike)
        order = np.lexsort((other, one, row_of[other], row_of[one]))[:left]
        left -= len(order)
        pairs.append(np.stack([np.full(len(order), sheet), one[order], other[order]], axis=1))
    return Trades(pieces=pieces, pairs=np.concatenate([np.zeros((0, 3), np.int64), *pairs]))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Family:
    """A family that pays by the members that domains hold of its groups.

    Args:
        axes: along which its groups vary.
        group_of: of each cell, shape [sheets, cells of one].
        groups: how many there are [1].
        paid_bytes: of each group, for a domain that holds 0, 1, … members [bytes].
        across: it runs across sheets.
    """

    axes: tuple[int, ...]
    group_of: NDArray[np.int64]
    groups: int
    paid_bytes: NDArray[np.float64]
    across: bool

    def held(self, homes: NDArray[np.int64], domains: int) -> NDArray[np.int64]:
        """Return members by group and domain, shape [groups, domains]."""
        flat = (self.group_of * domains + homes).ravel()
        return np.bincount(flat, minlength=self.groups * domains).reshape(self.groups, domains)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Hops:
    """Hops from cells to others: the other one, -1 where there is none, [sheets, cells of one]."""

    other: NDArray[np.int64]
    weight_bytes: float


class Prices:
    """Prices of changes of the homes of all cells, sheet by sheet.

    Args:
        of: the question cut into sheets.
        places: of each cell of the grid, in the homes of all sheets, shape [cells].
    """

    def __init__(self, of: Sheeted, places: NDArray[np.int64]) -> None:
        self.of, question = of, of.question
        self.domains = len(question.capacities)
        self.shape = (question.cells // of.sheet.cells, of.sheet.cells)
        self.families: list[_Family] = []
        self.hops: list[_Hops] = []
        for charge in question.charges:
            groups = groups_along(question.sizes, charge.axes)
            size = groups.shape[1]
            if size < 2:
                continue
            if charge.kind in (Kind.CHAIN, Kind.ENDS):
                for other in linked(groups, charge.kind):
                    there = np.where(other == np.arange(len(other)), -1, places[other])
                    at = self._by_sheets(there, places)
                    self.hops.append(_Hops(other=at, weight_bytes=charge.weight_bytes))
                continue
            group_of = np.empty(question.cells, dtype=np.int64)
            group_of[groups] = np.arange(len(groups))[:, None]
            self.families.append(
                _Family(
                    axes=charge.axes,
                    group_of=self._by_sheets(group_of, places),
                    groups=len(groups),
                    paid_bytes=held_bytes(charge, size),
                    across=not set(charge.axes) <= set(of.axes),
                )
            )

    def _by_sheets(
        self, of_cells: NDArray[np.int64], places: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return what is said of each cell of the grid, shape [sheets, cells of one]."""
        found = np.empty_like(of_cells)
        found[places] = of_cells
        return found.reshape(self.shape)

    @property
    def trades_most(self) -> int:
        """How many trades are priced together at most [1]."""
        return max(1, _TABLE_MOST // self.of.question.cells)

    def rows(self, axis: int) -> NDArray[np.int64]:
        """Return the cells of a sheet in each row, shape [rows, cells of one]."""
        sizes = self.of.sheet.sizes
        inner = prod(sizes[:axis])
        cells = np.arange(self.of.sheet.cells).reshape(-1, sizes[axis], inner)
        return cells.transpose(1, 0, 2).reshape(sizes[axis], -1)

    def held(self, homes: NDArray[np.int64]) -> list[NDArray[np.int64]]:
        """Return members by group and domain, of every family, shape [groups, domains]."""
        return [family.held(homes, self.domains) for family in self.families]

    def of_rows(
        self,
        homes: NDArray[np.int64],
        held: Sequence[NDArray[np.int64]],
        sheet: int,
        axis: int,
    ) -> NDArray[np.float64]:
        """Return what two rows cost more in each other's place, shape [rows, rows] [bytes].

        Families inside sheets, and those that run across rows, pay the same.

        Args:
            homes: of all sheets, shape [sheets, cells of one].
            held: members by group and domain, of every family.
            sheet: which.
            axis: along which rows follow each other; chains do not run along it.
        """
        rows = self.rows(axis)
        here = homes[sheet][rows]
        present, inner = np.unique(here, return_inverse=True)
        inner = inner.reshape(here.shape)
        put = np.zeros((len(rows), len(rows)))  # row i with what is in row j now
        for family, members in zip(self.families, held, strict=True):
            if not family.across or axis in family.axes:
                continue
            groups = family.group_of[sheet][rows]
            _, first, line = np.unique(groups[0], return_index=True, return_inverse=True)
            shape = (len(rows), len(first), len(present))
            flat = (np.arange(len(rows))[:, None] * len(first) + line) * len(present) + inner
            mine = np.bincount(flat.ravel(), minlength=prod(shape)).reshape(shape)
            rest = members[groups[:, first]][:, :, present] - mine
            step = max(1, _TABLE_MOST // mine.size)
            for i in range(0, len(rows), step):
                both = rest[i : i + step, None] + mine
                put[i : i + step] += family.paid_bytes[both].sum(axis=(2, 3))
        for hops in self.hops:
            other = hops.other[sheet][rows]
            outside = (other >= 0) & (other // self.shape[1] != sheet)
            there = np.where(outside, homes.ravel()[other], -1)
            crossed = (here != there[:, None]) & outside[:, None]
            put += hops.weight_bytes * crossed.sum(axis=2)
        alone = np.diagonal(put)
        return put + put.T - alone - alone[:, None]

    def of_trades(
        self,
        homes: NDArray[np.int64],
        held: Sequence[NDArray[np.int64]],
        trades: Sequence[Trade],
    ) -> NDArray[np.float64]:
        """Return what each of *trades* costs more, shape [trades] [bytes].

        Args:
            homes: of all sheets, shape [sheets, cells of one].
            held: members by group and domain, of every family.
            trades: ``trades_most`` at most.
        """
        count = len(trades)
        sheet = np.array([trade.sheet for trade in trades])
        ones = homes[sheet, [trade.one[0] for trade in trades]]
        others = homes[sheet, [trade.other[0] for trade in trades]]
        sizes = [len(trade.one) for trade in trades]
        which = np.repeat(np.arange(count), sizes)
        leaving = sheet[which] * self.shape[1] + np.concatenate([trade.one for trade in trades])
        coming = sheet[which] * self.shape[1] + np.concatenate([trade.other for trade in trades])
        more = np.zeros(count)
        for family, members in zip(self.families, held, strict=True):
            group_of, paid = family.group_of.ravel(), family.paid_bytes
            flat = np.concatenate([which, which]) * family.groups
            flat += group_of[np.concatenate([coming, leaving])]
            signs = np.repeat([1.0, -1.0], len(which))
            gained = np.bincount(flat, weights=signs, minlength=count * family.groups)
            at = np.flatnonzero(gained)  # members that the first piece's domain gains of a group
            trade, group = np.divmod(at, family.groups)
            gain = gained[at].astype(np.int64)
            one, other = members[group, ones[trade]], members[group, others[trade]]
            changes = paid[one + gain] - paid[one] + paid[other - gain] - paid[other]
            more += np.bincount(trade, weights=changes, minlength=count)
        if self.hops:
            after = np.tile(homes.ravel(), (count, 1))
            after[which, leaving], after[which, coming] = others[which], ones[which]
            for hops in self.hops:
                here = np.flatnonzero(hops.other.ravel() >= 0)
                there = hops.other.ravel()[here]
                crossed = np.count_nonzero(after[:, here] != after[:, there], axis=1)
                before = np.count_nonzero(homes.ravel()[here] != homes.ravel()[there])
                once = hops.weight_bytes / 2  # for a hop is told from both of its ends
                more += once * (crossed - before)
        return more
