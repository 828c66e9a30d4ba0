"""Local search: better seatings near a given one, never a worse one.

Passes after Fiduccia and Mattheyses (DAC 1982): swap the two cells that save most, or cost least,
lock them, go on, and keep the best state seen on the way; so a pass climbs out of shallow valleys.
A spare seat is a cell that pays nothing, so a move to a free seat is a swap too. The same passes
run on whole boxes of cells first, wherever the seating keeps boxes together, and then on cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.clock import over
from planner.place.question import Kind, Question, coarsen, cut_bytes, refine_home
from planner.place.tiles import divisors

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_TABLE_LIMIT = 2_000_000  # cells x domains of a level's table of gains; larger levels are skipped
_WORK = 16_000_000  # steps x cells x domains unless told otherwise
_FEWEST_STEPS, _MOST_STEPS = 64, 1000
_PATIENCE = 24  # swaps in a row that a pass may go without a new best
_SHAKES = 12  # times in a row that a shaken seating may come back no better
_ROUNDING = 1e-12


def improved(
    question: Question, home: NDArray[np.int64], *, steps: int | None = None, seed: int = 0
) -> NDArray[np.int64]:
    """Return a seating that cuts no more than *home*, often less.

    Args:
        question: the grid and its charges.
        home: domain of each cell, within capacities, shape [cells].
        steps: swaps tried at most, over all levels [1]; left out, as many as the size of the
            question allows in a fraction of a second. The clock decides at the run's end alone.
        seed: of the shakes between passes.

    >>> from planner.place.question import Charge
    >>> lines = Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=1.0)
    >>> question = Question(sizes=(2, 2), charges=(lines,), capacities=(2, 2))
    >>> improved(question, np.array([0, 1, 0, 1])).tolist()
    [1, 1, 0, 0]
    """
    if steps is None:
        table = question.cells * len(question.capacities)
        steps = min(max(_WORK // table, _FEWEST_STEPS), _MOST_STEPS)
    random = np.random.default_rng(seed)
    best = np.asarray(home, dtype=np.int64)
    levels = _levels(question, best)
    while levels:
        tile = levels.pop(0)
        volume = prod(tile)
        coarse = coarsen(question, tile, [c // volume for c in question.capacities])
        if coarse.cells < 2 or coarse.cells * len(coarse.capacities) > _TABLE_LIMIT:
            continue
        share = steps // 2 if levels else steps
        found, used = _searched(coarse, _coarse_home(question, tile, best), share, random)
        steps -= used
        best = refine_home(question, tile, found)
        levels = [finer for finer in levels if _keeps(question, finer, best)]
    return best if cut_bytes(question, best) < cut_bytes(question, home) else home.copy()


def _levels(question: Question, home: NDArray[np.int64]) -> list[tuple[int, ...]]:
    """Return the boxes that *home* keeps together, the largest first, and the single cell."""
    count = len(question.sizes)
    boxes = {(1,) * count}
    for first in range(count):
        sides = [1] * count
        for axis in (first, *(i for i in range(count) if i != first)):
            for side in reversed(divisors(question.sizes[axis])):
                wider = (*sides[:axis], side, *sides[axis + 1 :])
                if _keeps(question, wider, home):
                    sides[axis] = side
                    break
        boxes.add(tuple(sides))
        alone = [1] * count
        alone[first] = question.sizes[first]
        if _keeps(question, alone, home):
            boxes.add(tuple(alone))
    return sorted(boxes, key=lambda sides: (-prod(sides), sides))


def _coarse_home(
    question: Question, tile: Sequence[int], home: NDArray[np.int64]
) -> NDArray[np.int64]:
    grid = home.reshape(tuple(reversed(question.sizes)))
    picked = grid[tuple(slice(None, None, side) for side in reversed(tile))]
    return np.ascontiguousarray(picked.ravel())


def _keeps(question: Question, tile: Sequence[int], home: NDArray[np.int64]) -> bool:
    """Return whether every box of *tile* cells sits in one domain."""
    return bool((refine_home(question, tile, _coarse_home(question, tile, home)) == home).all())


def _searched(
    question: Question, home: NDArray[np.int64], steps: int, random: np.random.Generator
) -> tuple[NDArray[np.int64], int]:
    """Return (the best seating found, swaps tried): passes, then shakes while they help."""
    state = _State(question, home)
    _, left = state.descend(steps)
    best = state.home.copy()
    scale = max(cut_bytes(question, home[: question.cells]), 1e-300)
    futile = 0
    while left > 0 and futile < _SHAKES and not over():
        start = state.home.copy()
        shaken = state.shake(random, 2 + futile % 3)
        gain, left = state.descend(left)
        if shaken + gain < -scale * _ROUNDING:
            best, futile = state.home.copy(), 0
            continue
        futile += 1
        if shaken + gain > scale * _ROUNDING:
            state.restore(start)
    return best[: question.cells], steps - left


@dataclass(slots=True)
class _Lines:
    """The groups along some axes: what they pay and how many members sit in each domain."""

    group_of: NDArray[np.int64]
    members: NDArray[np.int64]
    held: NDArray[np.int64]
    touch: float = 0.0
    pairs: float = 0.0
    ring: float = 0.0
    copies: NDArray[np.float64] | None = None  # bytes by members held, and once the last again


@dataclass(slots=True)
class _Hops:
    """The one cell that each cell is linked to by a hop, itself where there is none."""

    other: NDArray[np.int64]
    weight: float


class _State:
    """A seating and, for every cell and domain, what moving it there alone would cost.

    Cells past the grid's are spare seats. ``slots`` lists the cells domain after domain.
    """

    def __init__(self, question: Question, home: NDArray[np.int64]) -> None:
        self.cells = question.cells
        self.open = np.flatnonzero(np.array(question.capacities) > 0)
        capacities = np.array(question.capacities)[self.open]
        self.domains = len(capacities)
        self.starts = np.cumsum(capacities) - capacities
        self.seats = int(capacities.sum())
        self.capacities = capacities
        self.lines, self.hops = _tables(question)
        inner = np.searchsorted(self.open, home)
        spare = np.repeat(
            np.arange(self.domains), capacities - np.bincount(inner, minlength=self.domains)
        )
        self.inner = np.concatenate([inner, spare])
        self.prices = np.empty((self.seats, self.domains))
        self.restore(self.home)

    @property
    def home(self) -> NDArray[np.int64]:
        """Domain of each cell, then of each spare seat."""
        home: NDArray[np.int64] = self.open[self.inner]
        return home

    def restore(self, home: NDArray[np.int64]) -> None:
        """Take up the seating *home* (spare seats included)."""
        self.inner = np.searchsorted(self.open, home)
        self.slots = np.argsort(self.inner, kind="stable")
        self.slot_of = np.empty_like(self.slots)
        self.slot_of[self.slots] = np.arange(self.seats)
        for lines in self.lines:
            groups = len(lines.members)
            flat = lines.group_of * self.domains + self.inner[: self.cells]
            lines.held = np.bincount(flat, minlength=groups * self.domains).reshape(
                groups, self.domains
            )
        self.prices[self.cells :] = 0.0
        self._reprice(np.arange(self.cells))

    def _reprice(self, cells: NDArray[np.int64]) -> None:
        """Work out anew what each of *cells* would pay more in each domain."""
        here = self.inner[cells]
        rows = np.arange(len(cells))
        total = np.zeros((len(cells), self.domains))
        for lines in self.lines:
            held = lines.held[lines.group_of[cells]]
            at_home = held[rows, here][:, None]
            if lines.touch:
                total += lines.touch * (held == 0)
                total -= lines.touch * (at_home == 1)
            if lines.pairs:
                total += (2.0 * lines.pairs) * (at_home - held - 1)
            if lines.copies is not None:
                paid = lines.copies
                total += paid[held + 1] - paid[held] + paid[at_home - 1] - paid[at_home]
            if lines.ring:
                now = np.count_nonzero(held, axis=1)[:, None]
                then = now - (at_home == 1) + (held == 0)
                total += lines.ring * (then * (then > 1) - now * (now > 1))
        for hops in self.hops:
            other = hops.other[cells]
            there = self.inner[other]
            paid = np.where(other == cells, 0.0, hops.weight)
            total += (paid * (there == here))[:, None]
            total[rows, there] -= paid
        total[rows, here] = 0.0
        self.prices[cells] = total

    def move(self, cell: int, domain: int) -> float:
        """Seat *cell* in *domain*, whatever its capacity; return what that costs more [bytes]."""
        before = self.inner[cell]
        cost = float(self.prices[cell, domain])
        self.inner[cell] = domain
        if cell >= self.cells:
            return cost
        touched = [np.array([cell])]
        for lines in self.lines:
            group = lines.group_of[cell]
            lines.held[group, before] -= 1
            lines.held[group, domain] += 1
            touched.append(lines.members[group])
        touched += [np.flatnonzero(hops.other == cell) for hops in self.hops]
        self._reprice(np.unique(np.concatenate(touched)))
        return cost

    def swap(self, one: int, two: int) -> float:
        """Exchange the seats of two cells; return what that costs more [bytes]."""
        a, b = int(self.inner[one]), int(self.inner[two])
        cost = self.move(one, b) + self.move(two, a)
        self._trade_slots(one, two)
        return cost

    def _trade_slots(self, one: int, two: int) -> None:
        i, j = self.slot_of[one], self.slot_of[two]
        self.slots[i], self.slots[j] = two, one
        self.slot_of[one], self.slot_of[two] = j, i

    def shake(self, random: np.random.Generator, swaps: int) -> float:
        """Swap a few cells at random; return what that costs more [bytes]."""
        cost = 0.0
        for _ in range(swaps):
            one = int(random.integers(self.cells))
            others = np.flatnonzero(self.inner != self.inner[one])
            if len(others):
                cost += self.swap(one, int(random.choice(others)))
        return cost

    def descend(self, steps: int) -> tuple[float, int]:
        """Run passes until one brings nothing; return (cost added, steps left)."""
        total = 0.0
        while steps > 0 and not over():
            gain, used = self._pass(steps)
            steps -= used
            if gain >= 0.0:
                break
            total += gain
        return total, steps

    def _pass(self, steps: int) -> tuple[float, int]:
        """Swap and lock until patience or cells run out, then go back to the best state."""
        locked = np.zeros(self.seats, dtype=bool)
        start = best = self.home.copy()
        cost = best_cost = 0.0
        scale = float(np.abs(self.prices).max(initial=0.0))
        since = used = 0
        while used < steps and since < _PATIENCE and not over():
            cost_of_swap = self._best_swap(locked)
            if cost_of_swap is None:
                break
            used += 1
            since += 1
            cost += cost_of_swap
            if cost < best_cost - scale * _ROUNDING:
                best, best_cost, since = self.home.copy(), cost, 0
        if since:
            self.restore(best if best_cost < 0.0 else start)
        return best_cost, max(used, 1)

    def _best_swap(self, locked: NDArray[np.bool_]) -> float | None:
        """Make the swap of unlocked cells that looks cheapest, lock both; return its cost."""
        prices = self.prices[self.slots]
        prices[locked[self.slots]] = inf
        cheapest = np.minimum.reduceat(prices, self.starts, axis=0)
        both = cheapest + cheapest.T
        np.fill_diagonal(both, inf)
        a, b = divmod(int(both.argmin()), self.domains)
        if not np.isfinite(both[a, b]):
            return None
        if cheapest[b, a] < cheapest[a, b]:
            a, b = b, a
        one = self._cheapest_cell(prices, a, b)
        cost = self.move(one, b)
        mates = self.slots[self.starts[b] : self.starts[b] + self.capacities[b]]
        offers = np.where(locked[mates], inf, self.prices[mates, a])
        two = int(mates[offers.argmin()])
        cost += self.move(two, a)
        self._trade_slots(one, two)
        locked[[one, two]] = True
        return cost

    def _cheapest_cell(self, prices: NDArray[np.float64], a: int, b: int) -> int:
        first = int(self.starts[a])
        column = prices[first : first + int(self.capacities[a]), b]
        return int(self.slots[first + int(column.argmin())])


def _tables(question: Question) -> tuple[list[_Lines], list[_Hops]]:
    lines: dict[tuple[int, ...], _Lines] = {}
    hops: list[_Hops] = []
    for charge in question.charges:
        groups = groups_along(question.sizes, charge.axes)
        count, size = groups.shape
        if size < 2:
            continue
        if charge.kind in {Kind.CHAIN, Kind.ENDS}:
            hops += [
                _Hops(other=o, weight=charge.weight_bytes) for o in _linked(groups, charge.kind)
            ]
            continue
        if charge.axes not in lines:
            group_of = np.empty(question.cells, np.int64)
            group_of[groups] = np.arange(count)[:, None]
            nobody = np.zeros((count, 0), np.int64)
            lines[charge.axes] = _Lines(group_of=group_of, members=groups, held=nobody)
        entry = lines[charge.axes]
        if charge.kind is Kind.TOUCH:
            entry.touch += charge.weight_bytes
        elif charge.kind is Kind.PAIRS:
            entry.pairs += charge.weight_bytes
        elif charge.kind is Kind.COPIES:
            paid = charge.weight_bytes * np.array([*charge.units, charge.units[-1]])
            entry.copies = paid if entry.copies is None else entry.copies + paid
        else:
            entry.ring += charge.weight_bytes
    return list(lines.values()), hops


def _linked(groups: NDArray[np.int64], kind: Kind) -> Iterator[NDArray[np.int64]]:
    """Yield the arrays cell -> cell of every hop, each hop once from either end."""
    if kind is Kind.CHAIN:
        pairs = [(groups[:, :-1], groups[:, 1:]), (groups[:, 1:], groups[:, :-1])]
    else:
        pairs = [(groups[:, 0], groups[:, -1]), (groups[:, -1], groups[:, 0])]
    for here, there in pairs:
        other = np.arange(groups.size)
        other[here] = there
        yield other
