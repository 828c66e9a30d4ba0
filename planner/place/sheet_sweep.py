"""The cheapest parts of all sheets, sheet after sheet.

The sheets have no order: what one more part costs depends on how many parts a domain has, and the
domain that was begun first goes on with the next sheet (``sweep.py``).
"""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

import numpy as np

from planner.place.sheet_choice import PartChoice
from planner.place.sweep import Dealing, swept, told

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.sheet_cuttings import Cuttings
    from planner.place.sheet_parts import Sheeted
    from planner.place.sheet_prices import SheetPrices
    from planner.place.whole_numbers import Effort

_CODES_MOST = 60_000  # ranks x largest parts x cells of a domain, past which nothing is swept
_LEARNED_MOST = 128  # cells of a sheet, past which cutting one takes half a second: not in haste
_MARK = 1 << 40  # added to the code of a domain that has to take cells
_ROUNDING = 1e-12  # relative; sums of a few hundred products


def swept_choice(
    prices: SheetPrices,
    cuttings: Cuttings,
    cut_bytes: float,
    known_bytes: float,
    ends_s: float,
    effort: Effort,
) -> PartChoice:
    """Choose the parts of every domain and sheet, by our own arithmetic.

    Nothing is chosen, and no bound told, where domains can be in too many states or not be filled.
    What a solver said of cuttings is believed.

    Args:
        prices: of parts.
        cuttings: what is known of them; what is worked out is added.
        cut_bytes: of the best seating known; ways that cost no less are left out [bytes].
        known_bytes: a bound of the cut that is known [bytes].
        ends_s: begin nothing new when ``time.monotonic()`` is past this [s].
        effort: how much is looked at.
    """
    if _codes(prices.of) > _CODES_MOST:
        return PartChoice(bound_bytes=0.0)
    dealing = SheetDealing(prices, cuttings)
    if not isfinite(dealing.base_bytes):
        return PartChoice(bound_bytes=0.0)
    found = swept(dealing, cut_bytes, known_bytes, effort.swept, ends_s)
    if found.held is None:
        return PartChoice(bound_bytes=found.bound_bytes, ended=found.ended)
    most = dealing.seats - 1
    domains = tuple(
        (min(capacity, most), tuple(sorted((k for k in row if k), reverse=True)))
        for capacity, row in zip(prices.of.question.capacities, found.held.tolist(), strict=True)
        if any(row)
    )
    columns = found.held.T.tolist()
    cut = tuple(tuple(sorted((k for k in one if k), reverse=True)) for one in columns)
    bound = found.bound_bytes
    return PartChoice(domains=domains, cuttings=cut, bound_bytes=bound, ended=found.ended)


class SheetDealing(Dealing):
    """A question cut into sheets, at some prices.

    A domain pays for its largest part as for a first one, for others in the order in which it gets
    them, which is no more than it pays in their order of size. Its code is 0 if it is full, else
    how many parts it has, the largest of them and the cells that it has left, in one number. Of the
    domains that are begun one is marked: it has a part of the next sheet.

    Args:
        prices: of parts.
        cuttings: what cuttings of a sheet cost besides, as far as worked out.
    """

    def __init__(self, prices: SheetPrices, cuttings: Cuttings) -> None:
        of, stock = prices.of, prices.of.stock
        self.of, self.cuttings = of, cuttings
        self.steps, self.cells, self.counts = of.sheets, of.sheet.cells, of.largest + 1
        self.seats = stock.sizes[-1] + 1
        self.pays_bytes = of.pays_bytes[: _told_ranks(of.pays_bytes)]
        self.net_bytes = prices.price_bytes + prices.cell_bytes * np.arange(self.counts)
        self.rest_bytes = self._rest()
        self.given = prices.sheets.least(self.cells) + prices.cell_bytes * self.cells
        held = zip(stock.sizes, stock.counts, strict=True)
        paid = sum(count * float(self.rest_bytes[0, 0, cells]) for cells, count in held)
        size = abs(paid) + abs(self.given) * self.steps + abs(of.given_bytes)
        total = paid + self.given * self.steps - of.given_bytes + of.beside_bytes
        self.base_bytes, self.tolerance_bytes = total - _ROUNDING * size, _ROUNDING * size

    def _rest(self) -> NDArray[np.float64]:
        """Return what a domain pays yet at least, less prices.

        By its parts, the largest of them and the cells left, shape [ranks, counts, cells + 1].
        """
        ranks = len(self.pays_bytes)
        rest = np.full((ranks, self.counts, self.seats), np.inf)
        rest[:, :, 0] = 0.0
        if self.of.stock.spare:
            rest[:] = 0.0
        every = np.arange(self.counts)
        for left in range(1, self.seats):
            count = np.arange(1, min(left, self.counts - 1) + 1)
            for rank in range(ranks):
                largest = every[:, None] if rank else every[:1, None]
                after = rest[min(rank + 1, ranks - 1)][np.maximum(largest, count), left - count]
                more = self._more(rank, largest, count) - self.net_bytes[count] + after
                begun = rest[rank, : len(largest), left]
                np.minimum(begun, more.min(axis=1), out=begun)
        return rest

    def _more(
        self,
        rank: NDArray[np.int64] | int,
        largest: NDArray[np.int64],
        count: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Return what one part more costs a domain that has *rank* parts [bytes]."""
        pays = self.pays_bytes
        first = pays[0, count] - pays[0, largest] + pays[rank, largest] * (np.asarray(rank) > 0)
        found: NDArray[np.float64] = np.where(count > largest, first, pays[rank, count])
        return found

    def first_codes(self) -> NDArray[np.int64]:
        """As of ``Dealing``: what they can hold."""
        capacities = np.array(self.of.question.capacities, dtype=np.int64)
        return np.minimum(capacities, self.seats - 1)

    def given_bytes(self, step: int) -> float:
        """As of ``Dealing``: what the cheapest cutting is worth [bytes]."""
        del step
        return self.given

    def worth_bytes(self, step: int) -> NDArray[np.float64]:
        """As of ``Dealing``: the prices of parts [bytes]."""
        del step
        return self.net_bytes

    def costs(
        self, step: int, codes: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """As of ``Dealing``."""
        marked, count = codes >= _MARK, np.arange(self.counts)
        bare = np.where(marked, codes - _MARK, codes)
        parts, left = bare // self.seats, (bare % self.seats)[:, None]
        rank, largest = parts[:, None] // self.counts, parts[:, None] % self.counts
        after_rank = np.minimum(rank + 1, len(self.pays_bytes) - 1)
        after_largest, rest = np.maximum(largest, count), left - count
        costs = self._more(rank, largest, count[None, :])
        costs[:, 0] = 0.0
        if step < self.steps - 1:
            yet = self.rest_bytes[after_rank, after_largest, np.maximum(rest, 0)]
            yet[:, :1] = self.rest_bytes[rank, largest, left]
        else:  # no part comes after it
            yet = np.where((rest <= 0) | self.of.stock.spare, 0.0, np.inf)
        costs = costs + yet
        before = self.rest_bytes[rank, largest, left]
        possible = (rest >= 0) & np.isfinite(before) & np.isfinite(costs)
        costs = np.where(possible, costs - np.where(np.isfinite(before), before, 0.0), np.inf)
        costs[marked, 0] = np.inf
        after = (after_rank * self.counts + after_largest) * self.seats + rest
        after = np.where(rest > 0, after, 0)
        after[:, 0] = bare
        return costs, after

    def marked(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """As of ``Dealing``: the domain with the most parts, unless it may be left as it is."""
        if self.of.stock.spare or not codes.size:
            return codes
        marked = codes.copy()
        marked[:, 0] += _MARK * (codes[:, 0] >= self.seats)
        return marked

    def more_bytes(
        self, step: int, codes: NDArray[np.int64], taken: NDArray[np.int64]
    ) -> NDArray[np.float64] | None:
        """As of ``Dealing``."""
        del step, codes
        known = {parts: more for parts, more in self.cuttings.more_bytes.items() if more > 0}
        return told(taken, known) if known else None

    def learn_soon(self, held: NDArray[np.int64]) -> None:
        """As of ``Dealing``: a solver takes longer."""
        if self.cuttings.sheet_s <= 0:
            self.learn(held)

    def learn(self, held: NDArray[np.int64]) -> bool:
        """As of ``Dealing``."""
        learned = False
        if self.cells > _LEARNED_MOST and self.cuttings.sheet_s <= 0:
            return False
        cut = (tuple(sorted((k for k in one if k), reverse=True)) for one in held.T.tolist())
        for parts in dict.fromkeys(cut):
            learned |= self.cuttings.learn(parts)
        return learned


def _codes(of: Sheeted) -> int:
    """Return how many codes a domain may have [1]."""
    return _told_ranks(of.pays_bytes) * (of.largest + 1) * (of.stock.sizes[-1] + 1)


def _told_ranks(pays_bytes: NDArray[np.float64]) -> int:
    """Return how many ranks differ; of further parts all pay what the last of them does."""
    told_ranks = len(pays_bytes)
    while told_ranks > 2 and np.array_equal(pays_bytes[told_ranks - 2], pays_bytes[-1]):
        told_ranks -= 1
    return told_ranks
