"""Exchanges that shorten the busiest border: swaps between a busy domain and any other.

Batches of random swaps are priced side by side, by the groups that they change; the one that
lowers a steep norm of the borders' times is made. Blocks of whole axes first, then single cells.
The norm sees the second busiest border too, so that a tie at the top does not stop the descent.
"""

from __future__ import annotations

from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.borders import sent_by_group, sent_bytes
from planner.place.clock import over
from planner.place.question import Kind, coarsen, refine_home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.question import Charge, Question

_BATCH = 48  # swaps priced side by side
_POWER = 12  # of the norm
_WORK = 20_000_000  # members and domains of the groups priced, over all batches
_FUTILE = 8  # batches in a row without a better swap before a shake or the end
_SHAKES = 6
_SMALL_GAIN = 1e-9
_SWAPS_LIMIT = 2_000_000  # pairs of stages x cells past which stages are left where they are


def border_times_s(
    question: Question, uplink_bytes_per_s: NDArray[np.float64], home: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return how long each domain's border takes for what it sends, shape [domains] [s]."""
    return np.asarray(sent_bytes(question, home) / uplink_bytes_per_s)


def less_busy(
    question: Question,
    uplink_bytes_per_s: NDArray[np.float64],
    home: NDArray[np.int64],
    *,
    enough_s: float = 0.0,
    seed: int = 0,
) -> NDArray[np.int64]:
    """Return a seating whose busiest border takes no longer than that of *home*, often less.

    Args:
        question: the grid, its charges, the domains' capacities.
        uplink_bytes_per_s: uplink of each domain, above 0 [bytes/s].
        home: domain of each cell, within capacities, shape [cells].
        enough_s: stop when the busiest border takes no longer [s].
        seed: of the swaps tried.
    """
    random = np.random.default_rng(seed)
    best = np.asarray(home, np.int64)
    work = _WORK
    for sides in _blocks(question, best):
        if not _kept(question, sides, best):
            continue
        volume = prod(sides)
        coarse = coarsen(question, sides, [c // volume for c in question.capacities])
        if coarse.cells < 2:
            continue
        start = coarse_home(question, sides, best)
        if (np.bincount(start, minlength=len(uplink_bytes_per_s)) > coarse.capacities).any():
            continue
        state = _State(coarse, uplink_bytes_per_s, start)
        found, work = state.descend(random, enough_s, work if prod(sides) == 1 else work // 2)
        refined = refine_home(question, sides, found)
        if _busiest(question, uplink_bytes_per_s, refined) < _busiest(
            question, uplink_bytes_per_s, best
        ):
            best = refined
    return best


def stages_swapped(
    question: Question, uplink_bytes_per_s: NDArray[np.float64], home: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return *home* with whole stages exchanged along the axes of chains, while that helps.

    All of one stage trades places with all of another: no group inside a stage notices, and the
    chain's hops fall to other borders. Steepest descent over all pairs of stages.

    Args:
        question: the grid, its charges, the domains' capacities.
        uplink_bytes_per_s: uplink of each domain, above 0 [bytes/s].
        home: domain of each cell, shape [cells].
    """
    last = len(question.sizes) - 1
    grid = home.reshape(tuple(reversed(question.sizes)))
    axes = {
        last - axis
        for charge in question.charges
        if charge.kind in (Kind.CHAIN, Kind.ENDS)
        for axis in charge.axes
    }
    norm = _norm(border_times_s(question, uplink_bytes_per_s, home), None)
    scale = float(border_times_s(question, uplink_bytes_per_s, home).max())
    for place in sorted(axes):
        pairs = list(combinations(range(grid.shape[place]), 2))
        if len(pairs) * home.size > _SWAPS_LIMIT:
            continue
        while not over():
            tried = []
            for a, b in pairs:
                order = np.arange(grid.shape[place])
                order[[a, b]] = b, a
                swapped = np.ascontiguousarray(np.take(grid, order, axis=place))
                times = border_times_s(question, uplink_bytes_per_s, swapped.ravel())
                tried.append((_norm(times, scale), swapped))
            best = min(tried, key=lambda one: one[0], default=(norm, grid))
            if best[0] >= norm * (1 - _SMALL_GAIN):
                break
            norm, grid = best
    return np.ascontiguousarray(grid).ravel()


def _norm(times: NDArray[np.float64], scale_s: float | None) -> float:
    """Return a steep norm of the borders' times, in which the busiest one counts most."""
    return float(((times / (scale_s or max(float(times.max()), 1e-300))) ** _POWER).sum())


def _busiest(
    question: Question, uplink_bytes_per_s: NDArray[np.float64], home: NDArray[np.int64]
) -> float:
    return float(border_times_s(question, uplink_bytes_per_s, home).max())


def _blocks(question: Question, home: NDArray[np.int64]) -> list[tuple[int, ...]]:
    """Return blocks of whole axes that *home* keeps together, the largest first; the cell last."""
    count = len(question.sizes)
    whole = [
        i
        for i, n in enumerate(question.sizes)
        if n > 1 and _kept(question, [n if j == i else 1 for j in range(count)], home)
    ]
    sides = {
        tuple(n if i in axes else 1 for i, n in enumerate(question.sizes))
        for k in range(len(whole) + 1)
        for axes in combinations(whole, k)
    }
    return sorted(sides, key=lambda s: (-prod(s), s))


def coarse_home(
    question: Question, sides: Sequence[int], home: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the home of each box of *sides* cells, that of its first cell."""
    grid = home.reshape(tuple(reversed(question.sizes)))
    picks = tuple(slice(None, None, a) for a in reversed(list(sides)))
    return np.ascontiguousarray(grid[picks]).ravel()


def _kept(question: Question, sides: Sequence[int], home: NDArray[np.int64]) -> bool:
    return bool((refine_home(question, sides, coarse_home(question, sides, home)) == home).all())


class _Lines:
    """The groups along some axes and what each sends from each domain."""

    def __init__(self, question: Question, axes: tuple[int, ...], charges: list[Charge]) -> None:
        self.members = groups_along(question.sizes, axes)
        self.group_of = np.empty(question.cells, np.int64)
        self.group_of[self.members] = np.arange(len(self.members))[:, None]
        self.charges = charges

    def sent(self, homes: NDArray[np.int64], domains: int) -> NDArray[np.float64]:
        """Return bytes sent by each group from each domain, shape [groups, domains]."""
        total = np.zeros((len(homes), domains))
        for charge in self.charges:
            total += charge.weight_bytes * sent_by_group(charge, homes, domains)
        return total


class _State:
    """A seating, what its borders carry, and the swaps that may better it.

    Cells past the grid's are spare seats, which send nothing.
    """

    def __init__(
        self, question: Question, uplink_bytes_per_s: NDArray[np.float64], home: NDArray[np.int64]
    ) -> None:
        self.question, self.rates, self.domains = (
            question,
            uplink_bytes_per_s,
            len(uplink_bytes_per_s),
        )
        by_axes: dict[tuple[int, ...], list[Charge]] = {}
        for charge in question.charges:
            if question.group_size(charge.axes) > 1:
                by_axes.setdefault(charge.axes, []).append(charge)
        self.lines = [_Lines(question, axes, charges) for axes, charges in by_axes.items()]
        spare = np.array(question.capacities) - np.bincount(home, minlength=self.domains)
        self.home = np.concatenate([home, np.repeat(np.arange(self.domains), spare)])
        self.sent = sent_bytes(question, home)
        self.batch_work = sum(
            2 * _BATCH * (2 * lines.members.shape[1] + self.domains) * len(lines.charges)
            for lines in self.lines
        )

    def descend(
        self, random: np.random.Generator, enough_s: float, work: int
    ) -> tuple[NDArray[np.int64], int]:
        """Return (the best seating found, work left)."""
        cells = self.question.cells
        best, best_s = self.home.copy(), float((self.sent / self.rates).max())
        futile = shakes = 0
        while work > 0 and not over() and best_s > enough_s * (1 + 1e-12):
            work -= self.batch_work
            if self._improve(random):
                futile = 0
            else:
                futile += 1
            now_s = float((self.sent / self.rates).max())
            if now_s < best_s * (1 - _SMALL_GAIN):
                best, best_s, shakes = self.home.copy(), now_s, 0
            if futile == _FUTILE:
                if shakes == _SHAKES:
                    break
                self._restore(best)
                self._shake(random, 2 + shakes)
                futile, shakes = 0, shakes + 1
        return best[:cells], work

    def _restore(self, home: NDArray[np.int64]) -> None:
        self.home = home.copy()
        self.sent = sent_bytes(self.question, self.home[: self.question.cells])

    def _shake(self, random: np.random.Generator, swaps: int) -> None:
        for _ in range(swaps):
            one = int(random.integers(self.question.cells))
            others = np.flatnonzero(self.home != self.home[one])
            if len(others):
                two = int(random.choice(others))
                self.home[[one, two]] = self.home[[two, one]]
        self._restore(self.home)

    def _improve(self, random: np.random.Generator) -> bool:
        """Make the best of a batch of swaps if it lowers the norm; return whether it did."""
        times = self.sent / self.rates
        one, two = self._picked(random, times)
        if not len(one):
            return False
        changed = self.sent + self._change(one, two)
        worst = max(float(times.max()), 1e-300)
        norms = ((np.maximum(changed, 0.0) / self.rates / worst) ** _POWER).sum(axis=1)
        norm = float(((times / worst) ** _POWER).sum())
        best = int(norms.argmin())
        if norms[best] >= norm * (1 - _SMALL_GAIN):
            return False
        a, b = int(one[best]), int(two[best])
        self.home[[a, b]] = self.home[[b, a]]
        self.sent = changed[best]
        return True

    def _picked(
        self, random: np.random.Generator, times: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return pairs of cells in different domains: one where it is busy, one anywhere."""
        busy = times >= times.max() * (1 - _SMALL_GAIN)
        cells = self.question.cells
        there = np.flatnonzero(busy[self.home[:cells]])
        if not len(there):
            return there, there
        one = random.choice(there, _BATCH)
        one[: _BATCH // 6] = random.integers(0, cells, _BATCH // 6)
        two = random.integers(0, len(self.home), _BATCH)
        apart = self.home[one] != self.home[two]
        return one[apart], two[apart]

    def _change(self, one: NDArray[np.int64], two: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return what each swap adds to what the domains send, shape [swaps, domains]."""
        swaps = len(one)
        change = np.zeros((swaps, self.domains))
        real = two < self.question.cells
        for lines in self.lines:
            first = lines.group_of[one]
            second = np.where(real, lines.group_of[np.where(real, two, 0)], -1)
            alone = real & (second != first)
            for groups, rows in ((first, np.arange(swaps)), (second[alone], np.flatnonzero(alone))):
                members = lines.members[groups]
                before = self.home[members]
                after = before.copy()
                mine, yours = one[rows][:, None], two[rows][:, None]
                after[members == mine] = np.broadcast_to(self.home[yours], members.shape)[
                    members == mine
                ]
                after[members == yours] = np.broadcast_to(self.home[mine], members.shape)[
                    members == yours
                ]
                change[rows] += lines.sent(after, self.domains) - lines.sent(before, self.domains)
        return change
