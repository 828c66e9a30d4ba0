"""What one domain pays when the parts that it holds have prices.

``spread.py`` lets the parts of a family be of any sizes that sum to the domain's cells. Here every
part of k members also earns a price, so that domains and groups can agree on sizes; the least of
that, over all ways to cut the cells into t parts of at most M, is tabled. Proof: FORMULATION.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.place.others import part_limit
from planner.place.together import beyond_bytes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from planner.place.spread import Tables, Term


def part_costs(term: Term) -> NDArray[np.float64]:
    """Return what a part of k members pays, k = 0 … n [bytes]."""
    costs = np.full(term.size + 1, term.touch_bytes + term.ring_bytes)
    costs[term.size] -= term.ring_bytes
    if term.part_bytes:
        costs = costs + np.array(term.part_bytes)
    costs[0] = 0.0
    return costs


def least_sums(each_bytes: NDArray[np.float64], held: int, longest: int) -> NDArray[np.float64]:
    """Return the least of sum each_bytes[v] over t parts v of 1 to M that sum to c.

    Args:
        each_bytes: price of a part of k, k = 0 … n.
        held: cells C [1].
        longest: the most parts [1].

    Returns:
        Array [n + 1, longest + 1, C + 1] by M, t and c; infinite where there is no such choice.

    >>> least_sums(np.array([0.0, 2.0, 3.0, 3.0]), 5, 3)[3, :, 5].tolist()  # 3 + 2; 3 + 1 + 1
    [inf, inf, 6.0, 7.0]
    """
    sums = np.full((len(each_bytes), longest + 1, held + 1), inf)
    sums[0, 0, 0] = 0.0
    for part in range(1, len(each_bytes)):
        mine = sums[part]
        mine[:] = sums[part - 1]
        for t in range(1, longest + 1 if part <= held else 0):
            with_one = mine[t - 1, : held + 1 - part] + each_bytes[part]
            np.minimum(mine[t, part:], with_one, out=mine[t, part:])
    return sums


def parts_of(sums: NDArray[np.float64], most: int, t: int, held: int) -> list[int]:
    """Return the parts that ``least_sums`` found for t parts up to *most* that sum to *held*."""
    parts: list[int] = []
    while t > 0:
        if sums[most, t, held] < sums[most - 1, t, held]:
            parts.append(most)
            t, held = t - 1, held - most
        else:
            most -= 1
    return parts


@dataclass(frozen=True, slots=True, kw_only=True)
class PartPrices:
    """Prices of one family's parts, and the sums of both what parts pay and what they earn.

    Args:
        price_bytes: of a part of k members, k = 0 … n [bytes].
        net_bytes: ``least_sums`` of what parts pay less their prices.
        earned_bytes: ``least_sums`` of the prices, each below nought.
    """

    price_bytes: NDArray[np.float64]
    net_bytes: NDArray[np.float64]
    earned_bytes: NDArray[np.float64]


def part_prices(term: Term, price_bytes: NDArray[np.float64], held: int) -> PartPrices:
    """Return the tables of domains of up to *held* cells."""
    longest = min(term.groups, held)
    return PartPrices(
        price_bytes=price_bytes,
        net_bytes=least_sums(part_costs(term) - price_bytes, held, longest),
        earned_bytes=least_sums(-price_bytes, held, longest),
    )


class Seen:
    """Some shapes of one domain, with all about them that no price changes.

    Args:
        plain: the domain's tables.
        touches: t of each of *families*, shape [shapes, len(families)].
        families: indices of the families looked at.
    """

    def __init__(self, plain: Tables, touches: NDArray[np.int64], families: Sequence[int]) -> None:
        self.held = plain.held
        self.touches = touches
        self.families = list(families)
        self.paid = plain.by_family(touches, families)
        self.parts = [
            np.maximum(
                part_limit(plain.terms[i].size, plain.others(i, touches, families), len(touches)), 1
            )
            for i in families
        ]
        self.plain = plain
        self._tied: NDArray[np.float64] | None = None

    @property
    def tied(self) -> NDArray[np.float64]:
        """What all families pay together without prices, shape [shapes] [bytes]."""
        if self._tied is None:
            beyond = beyond_bytes(self.plain, self.touches, self.families)
            self._tied = beyond + sum(self.paid)
        return self._tied

    def priced(self, prices: Mapping[int, PartPrices]) -> NDArray[np.float64]:
        """Return what the families pay less their parts' prices, each by itself [bytes]."""
        total = np.zeros(len(self.touches))
        for column, i in enumerate(self.families):
            paid = self.paid[column]
            if i in prices:
                net = self._read(prices[i].net_bytes, column)
                paid = np.fmax(net, paid + self._read(prices[i].earned_bytes, column))
            total = total + paid
        return total

    def beyond(self, prices: Mapping[int, PartPrices]) -> NDArray[np.float64]:
        """Return what the families tied together pay beyond ``priced`` [bytes]."""
        total = self.tied
        for column, i in enumerate(self.families):
            if i in prices:
                total = total + self._read(prices[i].earned_bytes, column)
        counted = self.priced(prices)
        with np.errstate(invalid="ignore"):
            return np.where(np.isfinite(counted), np.fmax(total - counted, 0.0), 0.0)

    def _read(self, sums: NDArray[np.float64], column: int) -> NDArray[np.float64]:
        t = self.touches[:, column]
        read: NDArray[np.float64] = np.where(
            t < sums.shape[1],
            sums[self.parts[column], np.minimum(t, sums.shape[1] - 1), self.held],
            inf,
        )
        return read


class PartTables:
    """One domain's tables with prices, in the form that ``touch_search`` asks for."""

    def __init__(self, plain: Tables, prices: Mapping[int, PartPrices]) -> None:
        self.plain = plain
        self.prices = prices
        costs = list(plain.cost_bytes)
        for i, given in prices.items():
            term = plain.terms[i]
            t = np.arange(term.groups + 1)
            alone = Seen(plain.of([i]), t[:, None], [0])
            costs[i] = alone.priced({0: given})
        self.cost_bytes = tuple(costs)

    def totals(self, touches: NDArray[np.int64], families: Sequence[int]) -> NDArray[np.float64]:
        """Return what some families pay, as ``Tables.totals``."""
        return Seen(self.plain, touches, families).priced(self.prices)

    def beyond(self, touches: NDArray[np.int64], families: Sequence[int]) -> NDArray[np.float64]:
        """Return what they pay beyond that because whole groups of one leave others no room."""
        return Seen(self.plain, touches, families).beyond(self.prices)
