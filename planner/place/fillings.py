"""How full each domain is: the cheapest choice, by what a domain pays at least for so many cells.

What a domain pays is known from below only, and roughly at first. The cells that the cheapest
choice holds are looked at more closely, and it is made again, until nothing in it is left rough:
then no other choice is cheaper, for the rough prices of the others are too low, not too high.
A price of so many cells says something of fuller domains, too. Where it only counts whether a price
is reached, any choice that stays below it, or no choice left that may, tells.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Closer = Callable[[int], float]

_ROUNDING = 1e-12  # relative; of sums of a few products


@dataclass(slots=True, kw_only=True)
class Prices:
    """What a domain pays at least, by the cells that it holds; closer where that was asked.

    Args:
        least_bytes: by cells held, 0, 1, …, infinite where none may, shape [most + 1] [bytes].
        closer: functions that know better, the quick ones first; each gives a lower bound [bytes].
        falls_bytes: what a domain may pay less at most with 0, 1, … cells more; nobody knows of the
            cells beyond [bytes].
        asked: how many of these were asked, by cells.
    """

    least_bytes: NDArray[np.float64]
    closer: tuple[Closer, ...]
    falls_bytes: NDArray[np.float64] = field(default_factory=lambda: np.zeros(1))
    asked: dict[int, int] = field(default_factory=dict)

    def look_closer(self, held: int) -> bool:
        """Ask the next of those that know better; return whether there was one."""
        step = self.asked.get(held, 0)
        if step == len(self.closer):
            return False
        self.asked[held] = step + 1
        paid = max(self.least_bytes[held], self.closer[step](held))
        self.least_bytes[held] = paid
        fuller = self.least_bytes[held + 1 : held + len(self.falls_bytes)]
        least = paid * (1 - _ROUNDING) - self.falls_bytes[1 : len(fuller) + 1]
        np.maximum(fuller, least, out=fuller)
        return True

    def look_at(self, held: Sequence[int]) -> bool:
        """Look closer at each of these numbers of cells; return whether there was more to know."""
        looked = [self.look_closer(cells) for cells in sorted(set(held) - {0})]
        return any(looked)

    def of(self, held: Sequence[int]) -> float:
        """Return what domains that hold so many cells pay, as far as is known [bytes]."""
        return sum(float(self.least_bytes[cells]) for cells in held)

    def look_closely(self) -> None:
        """Ask the first of those that know better of all cells."""
        for held in np.flatnonzero(np.isfinite(self.least_bytes)).tolist():
            if held and not self.asked.get(held):
                self.look_closer(held)


def cheapest(
    capacities: Sequence[int], cells: int, prices: Prices, enough_bytes: float = inf
) -> float:
    """Return min over fillings c_s <= capacities, sum c_s = cells, of the sum of prices [bytes].

    Args:
        capacities: cells that each domain can hold [1].
        cells: of all domains together [1].
        prices: of a domain; looked at more closely as needed.
        enough_bytes: the least need not be sharp above it, nor where it is known to stay below; if
            infinite, it is sharp [bytes].
    """
    while True:
        total, held = _cheapest(capacities, cells, prices.least_bytes)
        if total >= enough_bytes:
            return total
        if not _looked([(prices, held)], enough_bytes):
            return total


def _looked(filling: Sequence[tuple[Prices, Sequence[int]]], enough_bytes: float) -> bool:
    """Look closer at a filling; return whether there was more to know that may count.

    Where it only counts whether a price is reached, until it is by this filling.
    """
    while any([prices.look_at(held) for prices, held in filling]):  # noqa: C419 - each of them
        if sum(prices.of(held) for prices, held in filling) >= enough_bytes or enough_bytes == inf:
            return True
    return False


def _cheapest(
    capacities: Sequence[int], cells: int, least_bytes: NDArray[np.float64]
) -> tuple[float, list[int]]:
    """Return the price of the cheapest filling and how many cells each of its domains holds."""
    spare = sum(capacities) - cells
    best = np.full(spare + 1, inf)  # by the seats left free in the domains so far
    best[0] = 0.0
    taken = []  # of every domain the seats that it leaves free, by those of the domains so far
    for capacity in capacities:
        held = capacity - np.arange(spare + 1)
        best, free = _joined(best, _paid(held, least_bytes, cells))
        taken.append(free)
    held_each: list[int] = []
    left = spare
    for capacity, free in zip(reversed(capacities), reversed(taken), strict=True):
        if best[spare] < inf:
            held_each.append(capacity - int(free[left]))
            left -= int(free[left])
    return float(best[spare]), held_each


def _paid(
    held: NDArray[np.int64], least_bytes: NDArray[np.float64], cells: int
) -> NDArray[np.float64]:
    """Return what domains of so many cells pay, infinite where none may hold so many [bytes]."""
    may = (held >= 0) & (held <= min(cells, len(least_bytes) - 1))
    return np.where(may, least_bytes[np.where(may, held, 0)], inf)


def _joined(
    best_bytes: NDArray[np.float64], pays_bytes: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the least of what domains and one more pay, by all their free seats, and its own.

    Args:
        best_bytes: what the domains pay, by the seats that they leave free [bytes].
        pays_bytes: the same of one more; where several are as cheap it is the emptiest [bytes].
    """
    count = len(best_bytes)
    may = np.flatnonzero(np.isfinite(pays_bytes))  # no more free seats than it has
    most = int(may[-1]) + 1 if len(may) else 1
    padded = np.concatenate([np.full(most - 1, inf), best_bytes])
    step = padded.strides[0]
    paid = as_strided(padded, (count, most), (step, step), writeable=False)
    paid = paid + pays_bytes[most - 1 :: -1]
    least = paid.argmin(axis=1)
    return paid[np.arange(count), least], most - 1 - least


def cheapest_parted(
    capacities: Sequence[int],
    cells: int,
    line: int,
    whole: Prices,
    parted: Prices,
    enough_bytes: float = inf,
) -> float:
    """Return ``cheapest`` where two domains or more hold a part of a line of *line* cells [bytes].

    Args:
        capacities: cells that each domain can hold [1].
        cells: of all domains together [1].
        line: cells of a line, of which other domains hold whole ones [1].
        whole: of a domain of whole lines, by lines.
        parted: of a domain that holds a part of a line, by cells.
        enough_bytes: as of ``cheapest`` [bytes].
    """
    while True:
        total, lines, parts = _cheapest_parted(capacities, cells, line, whole, parted)
        if total >= enough_bytes:
            return total
        if not _looked([(whole, lines), (parted, parts)], enough_bytes):
            return total


def _cheapest_parted(
    capacities: Sequence[int], cells: int, line: int, whole: Prices, parted: Prices
) -> tuple[float, list[int], list[int]]:
    """Return the price, the lines of domains of whole lines, and the cells of the others."""
    spare = sum(capacities) - cells
    best = np.full((3, spare + 1), inf)  # by domains that part a line, two or more alike
    best[0, 0] = 0.0
    steps = []
    for capacity in sorted(capacities):
        held = capacity - np.arange(spare + 1)
        lined = np.where(held % line == 0, _paid(held // line, whole.least_bytes, cells), inf)
        apart = np.where(held > 0, _paid(held, parted.least_bytes, cells), inf)
        merged, holds = np.full((3, spare + 1), inf), np.zeros((3, spare + 1), dtype=np.int64)
        for state, before in enumerate(best):
            merged[state], free = _joined(before, lined)
            holds[state] = 2 * (capacity - free)
        for state, before in ((1, best[0]), (2, np.minimum(best[1], best[2]))):
            price, free = _joined(before, apart)
            cheaper = price < merged[state]
            holds[state][cheaper] = 2 * (capacity - free[cheaper]) + 1
            merged[state] = np.minimum(merged[state], price)
        steps.append((capacity, best, holds))
        best = merged
    lines: list[int] = []
    parts: list[int] = []
    total, state, left = float(best[2, spare]), 2, spare
    for capacity, before, holds in reversed(steps if total < inf else []):
        cells_held, parts_line = divmod(int(holds[state, left]), 2)
        left -= capacity - cells_held
        if parts_line:
            parts.append(cells_held)
            state = 0 if state == 1 else int(1 + np.argmin(before[1:, left]))
        else:
            lines.append(cells_held // line)
    return total, lines, parts


def cheapest_filling(
    capacities: Sequence[int], cells: int, bound_of: Callable[[int], float]
) -> float:
    """Return min over fillings c_s <= capacities, sum c_s = cells, of sum_s f(c_s) [bytes].

    Args:
        capacities: cells that each domain can hold [1].
        cells: of all domains together [1].
        bound_of: f, asked for all cells that a domain may hold; that of none, too [bytes].
    """
    best = np.full(cells + 1, inf)
    best[0] = 0.0
    spare = sum(capacities) - cells
    for capacity in sorted(capacities):
        least = max(0, capacity - spare)
        held = np.arange(least, min(capacity, cells) + 1)
        costs = [bound_of(int(c)) for c in held]
        merged = np.full(cells + 1, inf)
        for c, cost in zip(held, costs, strict=True):
            merged[c:] = np.minimum(merged[c:], best[: cells + 1 - c] + cost)
        best = merged
    return float(best[cells])
