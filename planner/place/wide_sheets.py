"""Sheets that no domain can hold, in parts too many for prices of their own.

A part has the price that it pays inside a sheet, so that what is left is how sheets can be cut at
all. All parts have one price more, on their number, for domains that hold few large parts have them
less often one upon another; and parts of more than half a domain one of their own, for a domain
holds one of them at most. Proof: ``FORMULATION.md``, "Wide sheets".
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from planner.place.clock import TimeUp, look, over
from planner.place.sharing import Tries, peak
from planner.place.sheet_parts import sheeted
from planner.place.sheet_prices import SheetPrices
from planner.place.stacked import stacked_bounds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.question import Question
    from planner.place.sheet_parts import Sheeted

_TURNS_NEAR = 4  # turns after which parts of one cell more and less are looked at, too
_PRICES_TRIED = 20  # on the number of parts
_CORNER_SHARE = 1 - 1e-6  # of what is enough: so near only the corner itself is missing
_BESIDE = 1e-4  # of the prices tried, by how much beside a corner its two lines are read off


def wide_bound(question: Question, axes: tuple[int, ...], enough_bytes: float) -> float:
    """Return what every seating cuts at least, by sheets along *axes* [bytes].

    When the time is up, what is known by then.

    Args:
        question: the whole.
        axes: along which the cells of a sheet vary.
        enough_bytes: a bound that need not be better [bytes].
    """
    wide = _Wide(sheeted(question, axes, rough=True))
    best = wide.bound_at(0.0)
    sizes = np.arange(wide.of.largest + 1)
    for counted in (sizes > 0, sizes > max(question.capacities) // 2):
        if wide.counted.any() and best < enough_bytes:
            try:
                wide.look_at_layers()
            except TimeUp:
                return best
        wide.take_up(counted)
        for sign in (-1.0, 1.0):
            if best >= enough_bytes or over():
                return best
            most = enough_bytes - best
            of_price, left = partial(wide.bound_signed, sign), Tries(_PRICES_TRIED)
            at, value = peak(of_price, most, left, enough_bytes)
            wide.offer(sign * at, value)
            if value < enough_bytes and value > _CORNER_SHARE * enough_bytes:
                value = max(value, wide.bound_at(wide.corner(sign * at, _BESIDE * most)))
            best = max(best, value)
    return best


class _Wide:
    """A question cut into wide sheets, and the parts of them that were looked at closely."""

    def __init__(self, of: Sheeted) -> None:
        self.of = of
        self.close: set[int] = set()
        self.sharp: set[int] = set()
        self.settled_bytes = np.zeros(of.largest + 1)  # prices on numbers of parts that are best
        self.counted = np.zeros(of.largest + 1)
        self.found, self.found_bytes = 0.0, -np.inf

    def look_at_layers(self) -> None:
        """Look at all parts layer by layer."""
        of, most = self.of, self.of.largest
        self.of = of.raised(stacked_bounds(of.sheet, most), stacked_bounds(of.joint, most))

    def take_up(self, counted: NDArray[np.bool_]) -> None:
        """Keep the best price on the parts counted so far, and count these, by their cells."""
        self.settled_bytes = self.settled_bytes + self.found * self.counted
        self.counted = counted.astype(float)
        self.found, self.found_bytes = 0.0, -np.inf

    def offer(self, price_bytes: float, bound_bytes: float) -> None:
        """Take up a price on the parts that are counted, if it is the best [bytes]."""
        if bound_bytes > self.found_bytes:
            self.found, self.found_bytes = price_bytes, bound_bytes

    def bound_signed(self, sign: float, price_bytes: float) -> float:
        """Return ``bound_at`` a price of this sign [bytes]."""
        return self.bound_at(sign * price_bytes)

    def bound_at(self, part_price_bytes: float) -> float:
        """Return the bound where the parts counted have this price besides their own [bytes].

        Parts that are used at it are looked at closely, and it is worked out again.
        """
        best = -np.inf
        for turn in count():
            price = self.of.part_bytes + self.settled_bytes + part_price_bytes * self.counted
            prices = SheetPrices(of=self.of, price_bytes=price)
            best = max(best, prices.bound_bytes)
            used = prices.used_parts
            try:
                if not self._looked_closer(used, turn // _TURNS_NEAR):
                    break
            except TimeUp:  # what is known so far holds
                break
        return best

    def corner(self, at_bytes: float, beside_bytes: float) -> float:
        """Return the price near *at_bytes* where the bound has its corner [bytes].

        Between corners the bound rises by whole parts: the number of those cut less those held.
        """
        far, left, right, wide = (
            self.bound_at(at_bytes + k * beside_bytes) for k in (-2.0, -1.0, 1.0, 2.0)
        )
        rise = round((left - far) / beside_bytes)
        fall = round((wide - right) / beside_bytes)
        if rise <= fall:
            return at_bytes
        return at_bytes + (right - left - (rise + fall) * beside_bytes) / (rise - fall)

    def _looked_closer(self, used: set[int], near: int) -> bool:
        """Look closer at these parts; return whether there was more to know."""
        look()
        if used - self.close:  # and at some of about their size: those are used next
            parts = {k for part in used for k in range(part - near, part + near + 1)} - self.close
            some = {k for k in parts if 0 < k <= self.of.largest}
            self.of = self.of.looked_closer(some, sharp=False)
            self.close |= parts
            return True
        if used - self.sharp:
            self.of = self.of.looked_closer(used - self.sharp, sharp=True)
            self.sharp |= used
            return True
        return False
