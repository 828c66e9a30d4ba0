"""Sheets told apart: which sheets the parts of a domain lie in, chosen in whole numbers.

What a domain pays for families across sheets depends on which sheets it touches: two that follow
each other in a pipeline cost less than two that do not. So each filling of a domain is listed once
for every way to name its parts' sheets, each sheet is cut for itself, and every sheet has as many
parts of each size as domains hold of it. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.question import Kind, held_units
from planner.place.sheet_choice import (
    Filling,
    Listed,
    PartChoice,
    allowed_bytes,
    best_of,
    largest_share,
    listed_until_s,
    within,
)
from planner.place.sheet_groups import Beside
from planner.place.sheet_joins import Joins, joins
from planner.place.spread import closing_weights

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from planner.place.question import Question
    from planner.place.sheet_cuttings import Cuttings, Parts
    from planner.place.sheet_parts import Outer, Sheeted
    from planner.place.sheet_prices import SheetPrices
    from planner.place.whole_numbers import Effort

_SHEETS_MOST = 16  # of 32 there are too many names, and their lists take seconds
_NAMED_MOST = 6000  # fillings with names: a solver chooses from more only after minutes
_COLUMNS = 4  # times as many cuttings, of all sheets together
_JOINED_SHARE = 0.001  # of the cut, past which joins are not what is missing, and take time
_TRIED = 20  # times as many names are looked at as may be listed


def named_choice(
    prices: SheetPrices, cuttings: Cuttings, cut_bytes: float, ends_s: float, effort: Effort
) -> PartChoice:
    """Choose the parts of every domain, with the sheets that they lie in, and of every sheet.

    The arguments are those of ``part_choice``.
    """
    if not prices.of.outers or prices.of.sheets > _SHEETS_MOST:
        return PartChoice(bound_bytes=0.0)
    slack_bytes, names = allowed_bytes(prices, cut_bytes), Names(prices.of)
    among = Joins(
        names=names,
        cuttings=cuttings,
        slack_bytes=slack_bytes,
        joins=joins(prices.of) if slack_bytes <= _JOINED_SHARE * cut_bytes else [],
    )
    most = min(effort.listed, _NAMED_MOST)

    until_s = listed_until_s(ends_s)

    def named(share: float) -> Listed | None:
        listed = within(prices, slack_bytes, most, until_s, share)
        if listed is None or len(listed.cuttings) * prices.of.sheets > _COLUMNS * most:
            return None
        return _named(prices, names, listed, slack_bytes, most, until_s)

    found = largest_share(named, until_s)
    if found is None:
        return PartChoice(bound_bytes=0.0)
    return best_of(prices, found, cuttings, slack_bytes, ends_s, effort, among)


def _named(
    prices: SheetPrices,
    names: Names,
    listed: Listed,
    slack_bytes: float,
    most: int,
    until_s: float,
) -> Listed | None:
    """Return the same list with names, less what is too dear with them; None if too much.

    Too much is also what is not listed when ``time.monotonic()`` is *until_s* [s].
    """
    left = _TRIED * most
    fillings: list[list[Filling]] = []
    for size, each in zip(prices.of.stock.sizes, listed.fillings, strict=True):
        fillings.append([])
        for one in each:
            worth = float(prices.price_bytes[list(one.parts)].sum())
            worth += prices.cell_bytes * sum(one.parts)
            limit = prices.least_of(size) + listed.share * slack_bytes + worth
            for filling in names.of_parts(one.parts, limit):
                left -= 1
                if filling is not None:
                    fillings[-1].append(filling)
                if left < 0 or sum(map(len, fillings)) > most:
                    return None
            if monotonic() > until_s:
                return None
    return replace(listed, fillings=fillings, alike=(1,) * prices.of.sheets)


@dataclass(slots=True)
class Names:
    """What domains pay more where it is known which sheets their parts lie in.

    Args:
        of: the question cut into sheets.
        beside: the families that touches do not tell.
        paid_bytes: for one place of each outer question, by the sheets touched, in the order of
            their numbers [bytes].
        joined_bytes: what a part pays jointly inside its sheet and across, by what one group of
            every trace pays; shape [cells + 1] [bytes].
    """

    of: Sheeted
    beside: Beside = field(init=False)
    paid_bytes: dict[Parts, NDArray[np.float64]] = field(default_factory=dict)
    joined_bytes: dict[tuple[float, ...], NDArray[np.float64]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.beside = Beside(self.of)

    def of_parts(self, parts: Parts, limit_bytes: float) -> Iterator[Filling | None]:
        """Yield the fillings with these parts at *limit_bytes* at most; None for what is dearer.

        Parts of equal size are named in one order only.
        """
        of = self.of
        if not parts:
            yield Filling(parts=(), sheets=(), pays_bytes=0.0)
            return
        held = np.array(parts)
        ranks = np.minimum(np.arange(len(parts)), len(of.across_bytes) - 1)
        apart = float((of.part_bytes[held] + of.across_bytes[ranks, held]).sum())
        widths = np.array([[outer.width] for outer in of.outers])
        places = np.pad(-(-held // widths), ((0, 0), (0, 1)))
        steps = places[:, :-1] - places[:, 1:]  # by which a part touches more than the next
        stack: list[tuple[Parts, float]] = [((), apart)]
        while stack:
            sheets, pays = stack.pop()
            rank = len(sheets)
            if rank == len(parts):
                pays += self.beside.more_bytes(parts, sheets)
                whole = Filling(parts=parts, sheets=sheets, pays_bytes=pays)
                yield whole if pays <= limit_bytes else None
                continue
            first = sheets[-1] + 1 if rank and parts[rank] == parts[rank - 1] else 0
            for sheet in range(first, of.sheets):
                if sheet in sheets:
                    continue
                more = float(self._more((*sheets, sheet)) @ steps[:, rank])
                more += self.joined(sheets, sheet, parts[rank])
                if pays + more <= limit_bytes:
                    stack.append(((*sheets, sheet), pays + more))
                else:
                    yield None

    def _more(self, sheets: Parts) -> NDArray[np.float64]:
        """Return what a place in all these pays above the slopes' sum."""
        known = [_slopes_sum(outer, len(sheets)) for outer in self.of.outers]
        more: NDArray[np.float64] = np.maximum(self._paid(sheets) - np.array(known), 0.0)
        return more

    def _paid(self, sheets: Parts) -> NDArray[np.float64]:
        touched = tuple(sorted(sheets))
        if touched not in self.paid_bytes:
            paid = [held_bytes(outer.question, touched) for outer in self.of.outers]
            self.paid_bytes[touched] = np.array(paid)
        return self.paid_bytes[touched]

    def weights_bytes(self, before: Parts, sheet: int) -> tuple[float, ...]:
        """Return what one more group of every trace pays that a part in one more sheet touches."""
        if not self.of.traces:
            return ()
        more = (self._paid((*before, sheet)) - self._paid(before)).tolist()
        outers = zip(more, self.of.outers, strict=True)
        return tuple(max(0.0, paid) for paid, outer in outers if outer.width > 1)

    def joined(self, before: Parts, sheet: int, cells: int) -> float:
        """Return what a part in one sheet more pays jointly inside it and across [bytes]."""
        if not self.of.traces:
            return 0.0
        if not before:  # one group pays no less than the first slope
            return float(self.of.joint_bytes[cells])
        weights = self.weights_bytes(before, sheet)
        if weights not in self.joined_bytes:
            self.joined_bytes[weights] = self.of.joined_bytes(weights)
        return float(self.joined_bytes[weights][cells])


def _slopes_sum(outer: Outer, touched: int) -> float:
    ranks = np.minimum(np.arange(touched), len(outer.slope_bytes) - 1)
    return float(outer.slope_bytes[ranks].sum())


def held_bytes(question: Question, held: Parts) -> float:
    """Return what a domain adds to the cut that holds exactly these cells [bytes].

    The rebate is not taken off, as in ``domain_bound``. A chain pays for each run of neighbours
    that is held, less what closes it where one run begins and ends it; what other links pay from
    end to end is paid half by each.
    """
    mask = np.zeros(question.cells, dtype=bool)
    mask[list(held)] = True
    closing, paid = closing_weights(question), 0.0
    for charge in question.charges:
        groups = mask[groups_along(question.sizes, charge.axes)]
        size = groups.shape[1]
        if size < 2:
            continue
        counts, first, last = groups.sum(axis=1), groups[:, 0], groups[:, -1]
        closed_bytes = closing.get(charge.axes, 0.0)
        if charge.kind is Kind.CHAIN:
            runs = int(counts.sum()) - np.count_nonzero(groups[:, 1:] & groups[:, :-1])
            paid += charge.weight_bytes * runs - closed_bytes * np.count_nonzero(first & last)
        elif charge.kind is Kind.ENDS:
            paid += (charge.weight_bytes - closed_bytes) / 2 * np.count_nonzero(first != last)
        elif charge.kind is Kind.TOUCH:
            paid += charge.weight_bytes * np.count_nonzero(counts)
        elif charge.kind is Kind.RING:
            paid += charge.weight_bytes * np.count_nonzero((counts > 0) & (counts < size))
        else:
            paid += charge.weight_bytes * float(np.array(held_units(charge, size))[counts].sum())
    return paid
