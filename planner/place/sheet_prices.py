"""The bound of a question's sheets: a price on every size of part.

A price on the parts of k cells ties the domains, which hold them, to the sheets, which are cut into
them. Any prices give a bound: every domain is filled as is cheapest less its parts' prices, and
every sheet gives back the least that parts which sum to it cost. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from math import inf
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided

from planner.place.fillings import cheapest_filling
from planner.place.part_choice import Choices
from planner.place.part_flow import alone_prices
from planner.place.price_ascent import best_prices

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.sheet_parts import Sheeted

_ROUNDING = 1e-12  # relative; sums of a few hundred products
_TURNS = 150  # times that prices are asked for anew
_HALVINGS = 60  # to find a price


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Supply:
    """How many parts of every size there are at most.

    Args:
        times: parts of 0, 1, … cells [1].
        among: for some sets of sizes, the cells of a part of 0, 1, …, and 0 for other sizes; shape
            [sets, largest + 1] [1].
        cells: of all parts of each set [1].
    """

    times: NDArray[np.int64]
    among: NDArray[np.int64]
    cells: NDArray[np.int64]

    def left_of(self, sizes: NDArray[np.int64], parts: tuple[int, ...]) -> NDArray[np.int64]:
        """Return those of *sizes*, up to the last of *parts*, of which there is one left."""
        taken = self.among[:, list(parts)].sum(axis=1)
        free = (self.among[:, sizes] <= (self.cells - taken)[:, None]).all(axis=0)
        if parts and self.times[parts[-1]] <= parts.count(parts[-1]):
            free[sizes == parts[-1]] = False
        left: NDArray[np.int64] = sizes[free]
        return left


class Fillings:
    """All ways to fill cells with parts, each at its price.

    Args:
        price_bytes: of a part, by its rank, the largest first, and its cells 0, 1, …; shape [ranks,
            largest + 1]; the last row is of all further parts [bytes].
        most: cells to fill at most [1].
    """

    def __init__(self, price_bytes: NDArray[np.float64], most: int) -> None:
        self.price_bytes = price_bytes
        ranks, self.largest = len(price_bytes), price_bytes.shape[1] - 1
        # what the parts of this rank and further cost, by the largest allowed and cells to fill;
        # the rank parts before are no smaller, so of k cells there is room for rank + 1 of them
        self.rest_bytes = np.full((ranks, self.largest + 1, most + 1), inf)
        self.rest_bytes[:, :, 0] = 0.0
        last, top = self.rest_bytes[-1], min(self.largest, most // ranks)
        flat = last.reshape(-1)  # of which [k, cells - k] is at cells + k x most
        for cells in range(1, most + 1 if top else 0):
            fits = min(top, cells)
            with_part = flat[cells + most :: most][:fits] + price_bytes[-1, 1 : fits + 1]
            np.minimum.accumulate(with_part, out=last[1 : fits + 1, cells])
            last[fits + 1 :, cells] = last[fits, cells]
        for rank in reversed(range(ranks - 1)):
            here, after = self.rest_bytes[rank], self.rest_bytes[rank + 1]
            top = min(self.largest, most // (rank + 1))
            if top:
                left = _less_part(after, top) + price_bytes[rank, 1 : top + 1, None]
                np.minimum.accumulate(left, axis=0, out=left)
                here[1 : top + 1, 1:] = left[:, 1:]
                here[top + 1 :, 1:] = left[-1, 1:]

    def least(self, cells: int) -> float:
        """Return the price of the cheapest filling of *cells* [bytes]."""
        return float(self.rest_bytes[0, self.largest, cells])

    @property
    def all_least(self) -> NDArray[np.float64]:
        """The price of the cheapest filling of 0, 1, … cells [bytes]."""
        least: NDArray[np.float64] = self.rest_bytes[0, self.largest]
        return least

    def cheapest(self, cells: int) -> tuple[int, ...]:
        """Return the parts of the cheapest filling of *cells*, the largest first."""
        parts: list[int] = []
        k, rank = self.largest, 0
        while cells:
            table = self.rest_bytes[rank]
            while table[k - 1, cells] == table[k, cells]:
                k -= 1
            parts.append(k)
            cells -= k
            rank = min(rank + 1, len(self.rest_bytes) - 1)
        return tuple(parts)

    def below(
        self, cells: int, limit_bytes: float, most: int, supply: Supply | None = None
    ) -> list[tuple[int, ...]] | None:
        """Return all fillings of *cells* at *limit_bytes* at most; None if there are too many.

        Args:
            cells: to be filled [1].
            limit_bytes: price of a filling [bytes].
            most: how many are not too many [1].
            supply: of parts; any number if None.
        """
        found: list[tuple[int, ...]] = []
        stack: list[tuple[tuple[int, ...], int, float]] = [((), cells, 0.0)]
        further, all_sizes = len(self.price_bytes) - 1, np.arange(self.largest + 1)
        while stack:
            parts, left, paid = stack.pop()
            if not left:
                found.append(parts)
                if len(found) > most:
                    return None
                continue
            sizes = all_sizes[1 : min(parts[-1] if parts else self.largest, left) + 1]
            if supply is not None:
                sizes = supply.left_of(sizes, parts)
            price = self.price_bytes[min(len(parts), further), sizes]
            rest = self.rest_bytes[min(len(parts) + 1, further), sizes, left - sizes]
            cheap = paid + price + rest <= limit_bytes
            for k, more in zip(sizes[cheap].tolist(), price[cheap].tolist(), strict=True):
                stack.append(((*parts, k), left - k, paid + more))
        return found


def _less_part(rest_bytes: NDArray[np.float64], top: int) -> NDArray[np.float64]:
    """Return what is paid for the rest of 0, 1, … cells less one part of 1 … *top* cells.

    Args:
        rest_bytes: by the largest part allowed and cells, shape [largest + 1, most + 1] [bytes].
        top: cells of the largest part [1].

    Returns:
        Shape [top, most + 1]; infinite where the part is too large.
    """
    width = rest_bytes.shape[1]
    padded = np.full((top, 2 * width), inf)
    padded[:, width:] = rest_bytes[1 : top + 1]
    row, cell = padded.strides  # the row of k begins k cells further left
    return as_strided(padded[:, width - 1 :], (top, width), (row - cell, cell), writeable=False)


@dataclass(frozen=True)
class SheetPrices:
    """Prices of parts, and what they prove.

    Args:
        of: the question.
        price_bytes: of a part of 0, 1, … cells, of any sign [bytes].
    """

    of: Sheeted
    price_bytes: NDArray[np.float64]

    @cached_property
    def domains(self) -> Fillings:
        """What domains pay, less the prices of their parts."""
        return Fillings(self.of.pays_bytes - self.price_bytes, self.of.stock.sizes[-1])

    @cached_property
    def sheets(self) -> Fillings:
        """What the parts of sheets cost."""
        return Fillings(self.price_bytes[None, :], self.of.sheet.cells)

    @cached_property
    def bound_bytes(self) -> float:
        """What every seating cuts at least [bytes]."""
        stock = self.of.stock
        if not stock.spare:
            return self.chosen_from_bytes
        question, least = self.of.question, self.least_bytes
        return self._bound(
            cheapest_filling(question.capacities, question.cells, lambda c: float(least[c]))
        )

    @property
    def used_parts(self) -> set[int]:
        """Cells of the parts of the cheapest cutting, and of domains of each size [1]."""
        used = set(self.sheets.cheapest(self.of.sheet.cells))
        for held in self.cheapest_held:
            used.update(self.domains.cheapest(held))
        return used

    @cached_property
    def chosen_from_bytes(self) -> float:
        """What every seating cuts at least, each domain as cheap as it can be [bytes].

        Less than the bound where seats are spare: a price on cells takes the place of their number.
        """
        stock = self.of.stock
        held = zip(stock.sizes, stock.counts, strict=True)
        total = sum(count * self.least_of(cells) for cells, count in held)
        return self._bound(total + self.cell_bytes * stock.cells)

    @property
    def told_bytes(self) -> float:
        """The same with what is given, and less what families beside pay [bytes]."""
        return self.chosen_from_bytes + self.of.given_bytes - self.of.beside_bytes

    @cached_property
    def least_bytes(self) -> NDArray[np.float64]:
        """What a domain pays at least that holds 0, 1, … cells; inf where it can not [bytes]."""
        stock = self.of.stock
        least = np.full(stock.sizes[-1] + 1, inf)
        least[0] = 0.0
        for cells in stock.holding:
            least[cells] = self.domains.least(cells)
        return least

    @property
    def cheapest_held(self) -> tuple[int, ...]:
        """Cells that a domain of each size holds at these prices [1]."""
        stock = self.of.stock
        if not stock.spare:
            return stock.sizes
        net = self.least_bytes - self.cell_bytes * np.arange(len(self.least_bytes))
        held = (int(net[1 : size + 1].argmin()) + 1 for size in stock.sizes)
        return tuple(held)

    @cached_property
    def cell_bytes(self) -> float:
        """A price on every cell where seats are spare, near the best [bytes]."""
        stock = self.of.stock
        if not stock.spare:
            return 0.0
        least = self.least_bytes
        low, high = -float(np.abs(least).max()), float(np.abs(least).max())
        cells, counts = np.arange(len(least)), np.array(stock.counts)
        for _ in range(_HALVINGS):
            price = (low + high) / 2
            net = least - price * cells
            taken = [int(net[: size + 1].argmin()) for size in stock.sizes]
            if int(counts @ taken) >= stock.cells:
                high = price
            else:
                low = price
        return price

    def least_of(self, size: int) -> float:
        """Return what a domain of *size* pays at least, less the price of its cells [bytes]."""
        if not self.of.stock.spare:
            return float(self.least_bytes[size])
        held = np.arange(size + 1)
        return float((self.least_bytes[held] - self.cell_bytes * held).min())

    def _bound(self, paid_bytes: float) -> float:
        of = self.of
        given = of.sheets * self.sheets.least(of.sheet.cells)
        size = (
            abs(paid_bytes)
            + abs(given)
            + abs(of.given_bytes)
            + abs(self.cell_bytes) * of.stock.cells
        )
        return paid_bytes + given - of.given_bytes + of.beside_bytes - _ROUNDING * size


def sheet_prices(of: Sheeted, cut_bytes: float) -> SheetPrices:
    """Return good prices, the best so far when the time is up.

    The first are best where families across sheets pay nothing; the next are dual to a choice, in
    fractions, of the fillings and cuttings that were cheapest so far.

    Args:
        of: the question cut into sheets.
        cut_bytes: stop when this is reached [bytes].
    """
    part_bytes = np.full(of.sheet.cells + 1, of.part_bytes[-1])
    part_bytes[: of.largest + 1] = of.part_bytes
    first = alone_prices(part_bytes, of.sheets, of.stock)[: of.largest]
    choices = Choices(part_bytes=(of.pays_bytes[0, 1:],), groups=(of.sheets,), stock=of.stock)
    begun = [_Guess.at(of, first)]
    return best_prices(choices, begun, partial(_Guess.at, of), cut_bytes, _TURNS).prices


@dataclass(frozen=True, slots=True, kw_only=True)
class _Guess:
    """As of ``Guess``.

    Args:
        price_bytes: of parts of 1, 2, … cells [bytes].
        prices: the same with what they prove.
    """

    price_bytes: NDArray[np.float64]
    prices: SheetPrices

    @classmethod
    def at(cls, of: Sheeted, price_bytes: NDArray[np.float64]) -> _Guess:
        """Return what these prices say."""
        prices = SheetPrices(of=of, price_bytes=np.concatenate([[0.0], price_bytes]))
        return cls(price_bytes=price_bytes, prices=prices)

    @property
    def bound_bytes(self) -> float:
        """As of ``Guess``."""
        return self.prices.bound_bytes

    @property
    def told_bytes(self) -> float:
        """As of ``Guess``."""
        return self.prices.told_bytes

    def join(self, choices: Choices) -> None:
        """As of ``Guess``: the cheapest fillings and the cheapest cutting."""
        of, prices = self.prices.of, self.prices
        for held in sorted(set(prices.cheapest_held)):
            parts = prices.domains.cheapest(held)
            choices.add_shape(held, of.pays(parts), counted(parts, of.largest))
        choices.add_partition(0, counted(prices.sheets.cheapest(of.sheet.cells), of.largest))


def counted(parts: tuple[int, ...], largest: int) -> NDArray[np.float64]:
    """Return how many parts of 1, 2, … cells there are."""
    return np.bincount(parts, minlength=largest + 1)[1:].astype(float)
