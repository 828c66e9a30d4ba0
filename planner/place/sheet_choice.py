"""Parts for every domain and every sheet, in whole numbers: a solver's bound, and what to seat.

Of the fillings of domains that a better seating than the one in hand can have, and the cuttings of
sheets into such parts, so many are chosen that both have as many parts of every size. A cutting
whose parts cannot all lie as cheaply as one alone could costs more: that is worked out for those
that are chosen, and the choice is made again. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.place.answer import Proof
from planner.place.question import Question
from planner.place.sheet_prices import Fillings, Supply
from planner.place.whole_numbers import SOLVER_ROUNDING, Model, least_choice

if TYPE_CHECKING:
    from collections.abc import Iterator

    from planner.place.answer import Answer
    from planner.place.sheet_parts import Sheeted
    from planner.place.sheet_prices import SheetPrices
    from planner.place.whole_numbers import Effort

_MET = 1e-9  # relative; by which fillings are listed beyond the slack
_SHARES = (
    1.0,
    0.5,
    0.25,
    0.12,
    0.06,
    0.03,
    0.01,
    3e-3,
    1e-3,
    1e-4,
)  # of the slack, till few enough
_LISTED = (300, 1200, 5000)  # fillings and cuttings of the first lists, as few may do
_REACHED = 1e-6  # of the slack; a choice less than this below its list's limit is limited by it
_SHARE_HALVINGS = 3  # between a share that is not too much and one that is
_TURNS = 100  # times that cuttings are worked out and the choice is made again
_EXCHANGED_MOST = 96  # cells of a sheet, past which exchanges take a second and need a time limit
_SEATS_MOST = 8000  # cells x parts of all cuttings that are worked out at a time

Parts = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChoice:
    """The best choice found, and a bound of all choices.

    Args:
        domains: (cells it can hold, parts it does hold) of every domain that holds some.
        cuttings: the parts of every sheet; both empty where the solver found none.
        bound_bytes: what every seating cuts at least [bytes].
    """

    domains: tuple[tuple[int, Parts], ...] = ()
    cuttings: tuple[Parts, ...] = ()
    bound_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """Fillings and cuttings to choose from.

    Args:
        fillings: of each size of domain.
        cuttings: of a sheet.
        share: of the slack; a seating with another filling cuts more than bound + share x slack.
    """

    fillings: list[list[Parts]]
    cuttings: list[Parts]
    share: float


@lru_cache(maxsize=4096)
def cut_sheet(sheet: Question, parts: Parts, limit_s: float = 0.0) -> Answer:
    """Return the best seating of one sheet in domains that hold these parts of it.

    Args:
        sheet: the families inside it.
        parts: cells that each domain holds, together the sheet's.
        limit_s: that a solver may take for what is left open, 0 to do without it [s].
    """
    from planner.place.solve import solve_within  # noqa: PLC0415 - which asks this in turn

    ruled = _ruled_sheet(sheet, parts)
    if ruled.proof is not Proof.INCUMBENT:
        return ruled
    if limit_s <= 0 and sheet.cells > _EXCHANGED_MOST:
        return ruled
    return solve_within(_cut(sheet, parts), time_limit_s=limit_s)


@lru_cache(maxsize=4096)
def _ruled_sheet(sheet: Question, parts: Parts) -> Answer:
    from planner.place.solve import solve_by_rules  # noqa: PLC0415 - as above

    return solve_by_rules(_cut(sheet, parts))


def _cut(sheet: Question, parts: Parts) -> Question:
    return Question(sizes=sheet.sizes, charges=sheet.charges, capacities=parts)


@dataclass(slots=True)
class Cuttings:
    """What cuttings of a sheet cost beyond what their parts pay alone, as far as worked out.

    Args:
        of: the question cut into sheets.
        sheet_s: that a solver may take for one [s].
        more_bytes: of each that is worked out [bytes].
    """

    of: Sheeted
    sheet_s: float = 0.0
    more_bytes: dict[Parts, float] = field(default_factory=dict)

    @property
    def seats(self) -> int:
        """Cells times parts of all that are worked out [1]."""
        return self.of.sheet.cells * sum(map(len, self.more_bytes))

    def learn(self, parts: Parts) -> bool:
        """Work out one cutting; return whether it costs more than was known."""
        if parts in self.more_bytes:
            return False
        of, held = self.of, list(parts)
        alone = float(of.part_bytes[held].sum()) - of.inside_given_bytes
        both = (of.pays_bytes - of.across_bytes)[0, held] - of.part_bytes[held]
        solved = cut_sheet(of.sheet, parts, self.sheet_s) if self.sheet_s > 0 else None
        together = (solved or _ruled_sheet(of.sheet, parts)).lower_bound_bytes
        # what a first part pays jointly may be the same that the cutting costs more
        more = together - alone - float(both.sum())
        self.more_bytes[parts] = max(0.0, more)
        return more > 0


def part_choice(
    prices: SheetPrices, cuttings: Cuttings, cut_bytes: float, ends_s: float, effort: Effort
) -> PartChoice:
    """Choose the parts of every domain and every sheet.

    Args:
        prices: of parts.
        cuttings: what is known of them; what is worked out is added.
        cut_bytes: of the best seating known; what no better one has is left out [bytes].
        ends_s: make no further choice when ``time.monotonic()`` is past this [s].
        effort: fillings, and cuttings, to choose from are counted apart.
    """
    base = prices.chosen_from_bytes
    slack = max(cut_bytes - base, _MET * abs(cut_bytes)) * (1 + _MET)
    best, share = PartChoice(bound_bytes=0.0), 0.0
    for listed in _longer_lists(prices, slack, effort.listed):
        if listed.share <= share:
            continue
        share = listed.share
        chosen = _best_of(prices, listed, cuttings, slack, ends_s, effort)
        bound = max(best.bound_bytes, chosen.bound_bytes)
        best = replace(chosen if chosen.cuttings else best, bound_bytes=bound)
        if bound < base + share * slack * (1 - _REACHED) or monotonic() > ends_s:
            break  # a longer list says no more
    return best


def _longer_lists(prices: SheetPrices, slack_bytes: float, most: int) -> Iterator[_Listed]:
    """Yield longer and longer lists, as far as they are not too long."""
    lengths = [n for n in _LISTED if n < most]
    for length in [*lengths, most]:
        listed = _listed(prices, slack_bytes, length)
        if listed is not None:
            yield listed
            if listed.share >= 1.0:
                return


def _best_of(
    prices: SheetPrices,
    listed: _Listed,
    cuttings: Cuttings,
    slack: float,
    ends_s: float,
    effort: Effort,
) -> PartChoice:
    """Choose from one list, again and again as cuttings turn out to cost more."""
    base, best = prices.chosen_from_bytes, PartChoice(bound_bytes=0.0)
    for _ in range(_TURNS):
        left_s = ends_s - monotonic()
        if left_s <= 0:
            break
        model = _model(prices, listed, cuttings, slack)
        chosen = least_choice(model, slack, left_s, effort)
        bound = best.bound_bytes
        # a whole list has the seating in hand, so that none of it will do would be a fault
        if chosen.least > -inf and (chosen.least < inf or listed.share < 1.0):
            domains = len(prices.of.question.capacities)
            proved = base + (chosen.least - SOLVER_ROUNDING * domains) * slack
            bound = max(bound, min(proved, base + listed.share * slack))
        if chosen.times is None:
            return PartChoice(domains=best.domains, cuttings=best.cuttings, bound_bytes=bound)
        best = _chosen(prices, listed, np.rint(chosen.times).astype(int).tolist(), bound)
        learned = False
        for parts in dict.fromkeys(best.cuttings):
            if monotonic() < ends_s:
                learned |= cuttings.learn(parts)
        if not learned or (effort.sheet_s <= 0 and cuttings.seats > _SEATS_MOST):
            break
    return best


def _listed(prices: SheetPrices, slack_bytes: float, most: int) -> _Listed | None:
    """Return what to choose from, for as large a share of the slack as is not too much."""
    too_much, found = inf, None
    for share in _SHARES:
        found = _within(prices, slack_bytes, share, most)
        if found is not None:
            break
        too_much = share
    if found is None or found.share >= 1.0:
        return found
    for _ in range(_SHARE_HALVINGS):
        share = (found.share + too_much) / 2
        more = _within(prices, slack_bytes, share, most)
        if more is None:
            too_much = share
        else:
            found = more
    return found


def _within(prices: SheetPrices, slack_bytes: float, share: float, most: int) -> _Listed | None:
    """Return what is dearer than the cheapest by that share at most; None if too much."""
    stock, sheet = prices.of.stock, prices.of.sheet
    room_bytes = share * slack_bytes
    fillings: list[list[Parts]] = []
    for size in stock.sizes:
        limit = prices.least_of(size) + room_bytes
        found: list[Parts] = [()] if stock.spare and limit >= 0 else []
        for cells in range(1, size + 1) if stock.spare else [size]:
            if prices.least_bytes[cells] - prices.cell_bytes * cells <= limit:
                more = prices.domains.below(cells, limit + prices.cell_bytes * cells, most)
                if more is None:
                    return None
                found += more
        fillings.append(found)
        if sum(map(len, fillings)) > most:
            return None
    supply = _supply(prices, fillings)
    limit = prices.sheets.least(sheet.cells) + room_bytes
    held = np.where(supply.times > 0, prices.price_bytes, inf)
    cuttings = Fillings(held[None, :], sheet.cells).below(sheet.cells, limit, most, supply)
    if cuttings is None:
        return None
    return _Listed(fillings=fillings, cuttings=cuttings, share=share)


def _supply(prices: SheetPrices, fillings: list[list[Parts]]) -> Supply:
    """Return how many parts of every size domains may hold, and those in small domains only.

    Args:
        prices: of parts.
        fillings: of each size of domain, the smallest first.
    """
    stock, sizes = prices.of.stock, np.arange(prices.of.largest + 1)
    times = np.zeros((len(fillings), len(sizes)), dtype=np.int64)  # of a part in one domain
    for row, each in zip(times, fillings, strict=True):
        for parts in each:
            np.maximum(row, np.bincount(parts, minlength=len(sizes)), out=row)
    counts, classes = np.array(stock.counts), np.arange(len(fillings))
    largest = np.where(times > 0, classes[:, None], -1).max(axis=0)
    return Supply(
        times=counts @ times,
        among=np.where(largest <= classes[:-1, None], sizes, 0),
        cells=np.cumsum(counts * np.array(stock.sizes))[:-1],
    )


def _model(prices: SheetPrices, listed: _Listed, cuttings: Cuttings, slack_bytes: float) -> Model:
    """Return the rules: domains of each size, sheets, as many parts of each size in both.

    No cost is above the slack, so that the numbers a solver sees stay near 1.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - rarely needed

    of, stock = prices.of, prices.of.stock
    price = prices.price_bytes
    classes = len(stock.sizes)
    least = [prices.least_of(size) for size in stock.sizes]
    cheapest = prices.sheets.least(of.sheet.cells)
    cost: list[float] = []
    entries: list[tuple[int, int, float]] = []
    for k, each in enumerate(listed.fillings):
        for parts in each:
            entries.append((k, len(cost), 1.0))
            entries += [(classes + p, len(cost), 1.0) for p in parts]
            worth = float(price[list(parts)].sum()) + prices.cell_bytes * sum(parts)
            cost.append((of.pays(parts) if parts else 0.0) - worth - least[k])
    for parts in listed.cuttings:
        entries.append((classes, len(cost), 1.0))  # where the parts of no cells would stand
        entries += [(classes + p, len(cost), -1.0) for p in parts]
        worth = float(price[list(parts)].sum()) - cheapest
        cost.append(worth + cuttings.more_bytes.get(parts, 0.0))
    row, column, factor = zip(*entries, strict=True)
    sides = np.zeros(classes + of.largest + 1)
    sides[:classes] = stock.counts
    sides[classes] = of.sheets
    highest = float(max(*stock.counts, of.sheets))
    return Model(
        # no better seating has one that costs more than the slack: how much more is all one
        cost_bytes=np.clip(np.array(cost), 0.0, slack_bytes),
        whole=np.ones(len(cost), dtype=bool),
        highest=np.full(len(cost), highest),
        rows=csr_array((factor, (row, column)), (len(sides), len(cost))),
        least=sides,
        most=sides,
    )


def _chosen(
    prices: SheetPrices, listed: _Listed, times: list[int], bound_bytes: float
) -> PartChoice:
    fillings = [
        (size, parts)
        for size, each in zip(prices.of.stock.sizes, listed.fillings, strict=True)
        for parts in each
    ]
    of_domains, of_sheets = times[: len(fillings)], times[len(fillings) :]
    return PartChoice(
        domains=tuple(
            one
            for one, n in zip(fillings, of_domains, strict=True)
            for _ in range(n if one[1] else 0)
        ),
        cuttings=tuple(
            parts for parts, n in zip(listed.cuttings, of_sheets, strict=True) for _ in range(n)
        ),
        bound_bytes=bound_bytes,
    )
