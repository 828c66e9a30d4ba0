"""How full each domain is: the cheapest choice, by what a domain pays at least for so many cells.

What a domain pays is known from below only, and roughly at first. The cells that the cheapest
choice holds are looked at more closely, and it is made again, until nothing in it is left rough:
then no other choice is cheaper, for the rough prices of the others are too low, not too high.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    Closer = Callable[[int], float]


@dataclass(slots=True, kw_only=True)
class Prices:
    """What a domain pays at least, by the cells that it holds; closer where that was asked.

    Args:
        least_bytes: by cells held, 0, 1, …, infinite where none may, shape [most + 1] [bytes].
        closer: functions that know better, the quick ones first; each gives a lower bound [bytes].
        asked: how many of these were asked, by cells.
    """

    least_bytes: NDArray[np.float64]
    closer: tuple[Closer, ...]
    asked: dict[int, int] = field(default_factory=dict)

    def look_closer(self, held: int) -> bool:
        """Ask the next of those that know better; return whether there was one."""
        step = self.asked.get(held, 0)
        if step == len(self.closer):
            return False
        self.asked[held] = step + 1
        self.least_bytes[held] = max(self.least_bytes[held], self.closer[step](held))
        return True

    def look_closely(self) -> None:
        """Ask the first of those that know better of all cells."""
        for held in np.flatnonzero(np.isfinite(self.least_bytes)).tolist():
            if held and not self.asked.get(held):
                self.look_closer(held)


def cheapest(capacities: Sequence[int], cells: int, prices: Prices) -> float:
    """Return min over fillings c_s <= capacities, sum c_s = cells, of the sum of prices [bytes].

    Args:
        capacities: cells that each domain can hold [1].
        cells: of all domains together [1].
        prices: of a domain; looked at more closely as needed.
    """
    while True:
        total, held = _cheapest(capacities, cells, prices.least_bytes)
        looked = [prices.look_closer(c) for c in held if c]
        if not any(looked):
            return total


def _cheapest(
    capacities: Sequence[int], cells: int, least_bytes: NDArray[np.float64]
) -> tuple[float, set[int]]:
    """Return the price of the cheapest filling and how many cells its domains hold."""
    spare = sum(capacities) - cells
    best = np.full(cells + 1, inf)
    best[0] = 0.0
    taken = []  # of every domain the cells that it holds, by the cells of the domains so far
    for capacity in capacities:
        merged, holds = np.full(cells + 1, inf), np.zeros(cells + 1, dtype=np.int64)
        for held in range(max(0, capacity - spare), min(capacity, cells) + 1):
            price = best[: cells + 1 - held] + least_bytes[held]
            holds[held:][price < merged[held:]] = held
            np.minimum(merged[held:], price, out=merged[held:])
        best = merged
        taken.append(holds)
    held_some, left = set(), cells
    for holds in reversed(taken if best[cells] < inf else []):
        held_some.add(int(holds[left]))
        left -= int(holds[left])
    return float(best[cells]), held_some


def cheapest_parted(
    capacities: Sequence[int], cells: int, line: int, whole: Prices, parted: Prices
) -> float:
    """Return ``cheapest`` where two domains or more hold a part of a line of *line* cells [bytes].

    Args:
        capacities: cells that each domain can hold [1].
        cells: of all domains together [1].
        line: cells of a line, of which other domains hold whole ones [1].
        whole: of a domain of whole lines, by lines.
        parted: of a domain that holds a part of a line, by cells.
    """
    while True:
        total, lines, parts = _cheapest_parted(capacities, cells, line, whole, parted)
        looked = [whole.look_closer(c) for c in lines if c]
        looked += [parted.look_closer(c) for c in parts]
        if not any(looked):
            return total


def _cheapest_parted(
    capacities: Sequence[int], cells: int, line: int, whole: Prices, parted: Prices
) -> tuple[float, set[int], set[int]]:
    """Return the price, the lines of domains of whole lines, and the cells of the others."""
    spare = sum(capacities) - cells
    best = np.full((3, cells + 1), inf)  # by domains that part a line, two or more alike
    best[0, 0] = 0.0
    steps = []
    for capacity in sorted(capacities):
        merged, holds = np.full((3, cells + 1), inf), np.zeros((3, cells + 1), dtype=np.int64)
        for held in range(max(0, capacity - spare), min(capacity, cells) + 1):
            rest = cells + 1 - held
            if held % line == 0:
                price = best[:, :rest] + whole.least_bytes[held // line]
                holds[:, held:][price < merged[:, held:]] = 2 * held
                np.minimum(merged[:, held:], price, out=merged[:, held:])
            if held:
                price = np.minimum(best[[0, 1], :rest], best[[0, 2], :rest])
                price += parted.least_bytes[held]
                holds[1:, held:][price < merged[1:, held:]] = 2 * held + 1
                np.minimum(merged[1:, held:], price, out=merged[1:, held:])
        steps.append((best, holds))
        best = merged
    lines: set[int] = set()
    parts: set[int] = set()
    total, state, left = float(best[2, cells]), 2, cells
    for before, holds in reversed(steps if total < inf else []):
        held, apart = divmod(int(holds[state, left]), 2)
        left -= held
        if apart:
            parts.add(held)
            state = 0 if state == 1 else int(1 + np.argmin(before[1:, left]))
        else:
            lines.add(held // line)
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
