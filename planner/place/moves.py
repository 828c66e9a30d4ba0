"""What moving one cell to another domain costs, kept up to date from swap to swap.

The prices of a move add up over groups and hops. A swap changes few of them: only the cells that
share a group or a hop with one of the two are priced anew.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.question import Kind, held_units

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from planner.place.question import Charge, Question


@dataclass(slots=True, kw_only=True)
class _Lines:
    """The groups along some axes, and what a cell pays more that joins or leaves one.

    Args:
        groups: cells of each, shape [groups, members].
        join_bytes: by the members that its new domain holds, shape [members + 1] [bytes].
        leave_bytes: by the members that its old domain holds, shape [members + 1] [bytes].
        first: the number of the first of these groups among those of all axes.
        differs: whether one member more has another price, by the members held.
    """

    groups: NDArray[np.int64]
    join_bytes: NDArray[np.float64]
    leave_bytes: NDArray[np.float64]
    first: int = 0
    differs: list[bool] = field(default_factory=list)


@dataclass(slots=True)
class _Hops:
    """The one cell that each cell is linked to by a hop, itself where there is none."""

    other: NDArray[np.int64]
    weight_bytes: float


class Moves:
    """A seating and, for every cell and domain, what moving it there alone would cost.

    Cells past the grid's are spare seats, which cost nothing. Domains are those with seats.

    Args:
        question: the grid and its charges.
        home: domain of each cell, within capacities, shape [cells].

    Attributes:
        inner: domain of each cell and spare seat, among those with seats, shape [seats].
        slots: the cells domain after domain, shape [seats].
        prices: what the cell in each slot would pay more in each domain, infinite of those that
            are locked, shape [domains, seats] [bytes].
    """

    def __init__(self, question: Question, home: NDArray[np.int64]) -> None:
        self.cells = question.cells
        self._open = np.flatnonzero(np.array(question.capacities) > 0)
        capacities = np.array(question.capacities)[self._open]
        self._domains = len(capacities)
        self._ends = np.cumsum(capacities)  # in slots
        self._starts = self._ends - capacities
        seats = int(capacities.sum())
        self._lines, self._hops = _tables(question)
        self._group_of = np.zeros((len(self._lines), seats), dtype=np.int64)
        self._groups = 0
        for line, group_of in zip(self._lines, self._group_of, strict=True):
            line.first = self._groups
            self._groups += len(line.groups)
            group_of[line.groups] = np.arange(line.first, self._groups)[:, None]
            changes = np.diff(line.join_bytes), np.diff(line.leave_bytes)
            line.differs = np.any(changes, axis=0).tolist()
        self._group_of[:, self.cells :] = self._groups  # of spare seats, and free
        self._entry = self._group_of * self._domains  # where its domains begin, in all groups'
        self._locked = np.zeros(seats, dtype=bool)
        inner = np.searchsorted(self._open, home)
        spare = np.repeat(
            np.arange(self._domains), capacities - np.bincount(inner, minlength=self._domains)
        )
        self.inner = np.concatenate([inner, spare])
        self.prices = np.zeros((self._domains, seats))
        self.restore(self.home)

    @property
    def home(self) -> NDArray[np.int64]:
        """Domain of each cell, then of each spare seat, shape [seats]."""
        home: NDArray[np.int64] = self._open[self.inner]
        return home

    def restore(self, home: NDArray[np.int64]) -> None:
        """Take up the seating *home*, spare seats included, shape [seats]; unlock all cells."""
        self.inner = np.searchsorted(self._open, home)
        self.slots = np.argsort(self.inner, kind="stable")
        self._slot_of = np.empty_like(self.slots)
        self._slot_of[self.slots] = np.arange(len(self.slots))
        flat = self._entry[:, : self.cells] + self.inner[: self.cells]
        shape = (self._groups + 1, self._domains)
        held = np.bincount(flat.ravel(), minlength=prod(shape)).reshape(shape)
        joins, leaves = np.zeros(shape), np.zeros(shape)
        for line in self._lines:
            of_line = slice(line.first, line.first + len(line.groups))
            joins[of_line] = line.join_bytes[held[of_line]]
            leaves[of_line] = line.leave_bytes[held[of_line]]
        self._held, self._joins, self._leaves = held.ravel(), joins.ravel(), leaves.ravel()
        # what each cell saves where the cells sit that it is linked to, shape [seats, domains]
        self._pulls = np.zeros((len(self.slots) if self._hops else 0, self._domains))
        cells = np.arange(self.cells)
        for hops in self._hops:
            paid = np.where(hops.other == cells, 0.0, hops.weight_bytes)
            self._pulls[cells, self.inner[hops.other]] += paid
        self.unlock()

    def unlock(self) -> None:
        """Let all cells move again."""
        self._locked[:] = False
        self._reprice(np.arange(len(self.slots)))

    def _reprice(self, cells: NDArray[np.int64]) -> None:
        """Work out anew what each of *cells* would pay more in each domain."""
        here = self.inner[cells]
        groups = self._group_of.take(cells, axis=1)
        joins = self._joins.reshape(-1, self._domains)
        total: NDArray[np.float64] = np.add.reduce(joins.take(groups, axis=0), axis=0)
        total += self._leaving(cells, here)[:, None]
        if self._hops:
            total -= self._pulls.take(cells, axis=0)
        total[np.arange(len(cells)), here] = 0.0
        total[self._locked[cells]] = inf
        self.prices[:, self._slot_of[cells]] = total.T

    def _bytes(self, cells: NDArray[np.int64], domain: int) -> NDArray[np.float64]:
        """Return what each of *cells* would pay more in *domain*, another than its own."""
        total = self._leaving(cells, self.inner[cells])
        entries = self._entry.take(cells, axis=1) + domain
        total += np.add.reduce(self._joins.take(entries), axis=0)
        return total - self._pulls[cells, domain] if self._hops else total

    def _leaving(self, cells: NDArray[np.int64], here: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what each of *cells* would pay more for leaving its domain, wherever it goes."""
        entries = self._entry.take(cells, axis=1) + here
        total: NDArray[np.float64] = np.add.reduce(self._leaves.take(entries), axis=0)
        return total + self._pulls[cells, here] if self._hops else total

    def _move(self, cell: int, domain: int) -> NDArray[np.int64]:
        """Seat *cell* in *domain*, whatever its capacity; return the cells to be priced anew.

        These are the cells linked to it, and the members of those of its groups of which joining
        or leaving one of the two domains has another price now.
        """
        before = self.inner.item(cell)
        self.inner[cell] = domain
        near = [np.array([cell])]
        if cell >= self.cells:
            return near[0]
        for line, entry in zip(self._lines, self._entry[:, cell].tolist(), strict=True):
            left, joined = entry + before, entry + domain
            less, more = self._held.item(left) - 1, self._held.item(joined) + 1
            self._held[left], self._held[joined] = less, more
            if line.differs[less] or line.differs[more - 1]:
                for at, held in ((left, less), (joined, more)):
                    self._joins[at], self._leaves[at] = (
                        line.join_bytes[held],
                        line.leave_bytes[held],
                    )
                near.append(line.groups[entry // self._domains - line.first])
        for hops in self._hops:
            other = hops.other.item(cell)
            if other != cell:
                self._pulls[other, before] -= hops.weight_bytes
                self._pulls[other, domain] += hops.weight_bytes
                near.append(hops.other[cell : cell + 1])
        return np.concatenate(near)

    def swap(self, one: int, two: int) -> float:
        """Exchange the seats of two cells; return what that costs more [bytes]."""
        a, b = self.inner.item(one), self.inner.item(two)
        cost = self.prices.item(b, self._slot_of.item(one))
        touched = self._move(one, b)
        cost += self._bytes(np.array([two]), a).item()
        self._reprice(self._seated(one, two, touched, a))
        return cost

    def _seated(
        self, one: int, two: int, touched: NDArray[np.int64], domain: int
    ) -> NDArray[np.int64]:
        """Seat cell *two* where *one* was; return the cells to be priced anew, with *touched*."""
        touched = np.concatenate([touched, self._move(two, domain)])
        i, j = self._slot_of.item(one), self._slot_of.item(two)
        self.slots[i], self.slots[j] = two, one
        self._slot_of[one], self._slot_of[two] = j, i
        return touched

    def best_swap(self) -> float | None:
        """Make the swap of unlocked cells that looks cheapest, and lock both.

        Return what it costs more, None where no two can be swapped [bytes].
        """
        cheapest = np.minimum.reduceat(self.prices, self._starts, axis=1)
        both = cheapest + cheapest.T
        np.fill_diagonal(both, inf)
        a, b = divmod(int(both.argmin()), self._domains)
        if not np.isfinite(both[a, b]):
            return None
        if cheapest[a, b] < cheapest[b, a]:
            a, b = b, a
        one = self._cheapest(a, b)
        cost = self.prices.item(b, self._slot_of.item(one))
        self._locked[one] = True
        touched = self._move(one, b)
        mates = touched[(self.inner[touched] == b) & ~self._locked[touched]]
        self.prices[a, self._slot_of[mates]] = self._bytes(mates, a)
        two = self._cheapest(b, a)
        cost += self.prices.item(a, self._slot_of.item(two))
        self._locked[two] = True
        self._reprice(self._seated(one, two, touched, a))
        return cost

    def _cheapest(self, a: int, b: int) -> int:
        """Return the cell of domain *a* that is the cheapest to move to domain *b*."""
        first = self._starts.item(a)
        return self.slots.item(first + int(self.prices[b, first : self._ends.item(a)].argmin()))


def _tables(question: Question) -> tuple[list[_Lines], list[_Hops]]:
    lines: dict[tuple[int, ...], _Lines] = {}
    hops: list[_Hops] = []
    for charge in question.charges:
        groups = groups_along(question.sizes, charge.axes)
        size = groups.shape[1]
        if size < 2:
            continue
        if charge.kind in {Kind.CHAIN, Kind.ENDS}:
            hops += [
                _Hops(other=o, weight_bytes=charge.weight_bytes)
                for o in linked(groups, charge.kind)
            ]
            continue
        if charge.axes not in lines:
            lines[charge.axes] = _Lines(
                groups=groups, join_bytes=np.zeros(size + 1), leave_bytes=np.zeros(size + 1)
            )
        more = np.diff(held_bytes(charge, size))
        lines[charge.axes].join_bytes[:-1] += more
        lines[charge.axes].leave_bytes[1:] -= more
    return list(lines.values()), hops


def held_bytes(charge: Charge, size: int) -> NDArray[np.float64]:
    """Return what a group of *size* pays for a domain that holds 0, 1, … of its members [bytes].

    Of all kinds but chains and their ends: a group's price is the sum over domains of that, less
    *charge*'s weight where touches are charged.
    """
    if charge.kind in (Kind.PAIRS, Kind.COPIES):
        return charge.weight_bytes * np.array(held_units(charge, size))
    units = np.ones(size + 1)
    units[0] = 0.0
    if charge.kind is Kind.RING:  # within one domain it is free
        units[size] = 0.0
    return charge.weight_bytes * units


def linked(groups: NDArray[np.int64], kind: Kind) -> Iterator[NDArray[np.int64]]:
    """Yield the cell that each cell is linked to, itself where none is: a hop once from either end.

    Args:
        groups: cells of each in their order, shape [groups, members].
        kind: ``CHAIN``, else only the ends of each group are linked.
    """
    if kind is Kind.CHAIN:
        pairs = [(groups[:, :-1], groups[:, 1:]), (groups[:, 1:], groups[:, :-1])]
    else:
        pairs = [(groups[:, 0], groups[:, -1]), (groups[:, -1], groups[:, 0])]
    for here, there in pairs:
        other = np.arange(groups.size)
        other[here] = there
        yield other
