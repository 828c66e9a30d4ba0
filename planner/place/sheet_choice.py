"""Parts for every domain and every sheet, in whole numbers: a solver's bound, and what to seat.

Of the fillings of domains that a better seating than the one in hand can have, and the cuttings of
sheets into such parts, so many are chosen that both have as many parts of every size. A cutting
whose parts cannot all lie as cheaply as one alone could costs more: that is worked out for those
that are chosen, and the choice is made again. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.place.sheet_prices import Fillings, Supply
from planner.place.whole_numbers import Model, least_choice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.place.sheet_cuttings import Cuttings, Parts
    from planner.place.sheet_joins import Joins
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
_LISTING_S = 4.0  # seconds that a list may take: mostly it is a tenth of one
_SHARE_HALVINGS = 3  # between a share that is not too much and one that is
_TURNS = 100  # times that cuttings are worked out and the choice is made again
_SEATS_MOST = 8000  # cells x parts of all cuttings that are worked out at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class PartChoice:
    """The best choice found, and a bound of all choices.

    Args:
        domains: (cells it can hold, parts it does hold) of every domain that holds some.
        cuttings: the parts of every sheet; both empty where the solver found none.
        sheets: where sheets are told apart, those that the parts of every domain lie in; the
            cuttings are in their order then.
        bound_bytes: what every seating cuts at least [bytes].
        ended: whether it is known to be the cheapest of all, without a solver's word for it.
    """

    domains: tuple[tuple[int, Parts], ...] = ()
    cuttings: tuple[Parts, ...] = ()
    sheets: tuple[tuple[int, ...], ...] = ()
    bound_bytes: float
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Filling:
    """What a domain may hold.

    Args:
        parts: the cells that it holds of every sheet it touches, the largest part first [1].
        sheets: which those are, by number; all 0 where sheets are not told apart.
        pays_bytes: what it pays at least [bytes].
    """

    parts: Parts
    sheets: tuple[int, ...]
    pays_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Fillings and cuttings to choose from.

    Args:
        fillings: of each size of domain.
        cuttings: of a sheet.
        alike: how many sheets there are of each kind; one kind where they are not told apart, else
            each is a kind of its own [1].
        share: of the slack; a seating with another filling cuts more than bound + share x slack.
    """

    fillings: list[list[Filling]]
    cuttings: list[Parts]
    alike: tuple[int, ...]
    share: float


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
    base, slack_bytes = prices.chosen_from_bytes, allowed_bytes(prices, cut_bytes)
    best, share = PartChoice(bound_bytes=0.0), 0.0
    for listed in _longer_lists(prices, slack_bytes, effort.listed, ends_s):
        if listed.share <= share:
            continue
        share = listed.share
        chosen = best_of(prices, listed, cuttings, slack_bytes, ends_s, effort)
        bound = max(best.bound_bytes, chosen.bound_bytes)
        best = replace(chosen if chosen.cuttings else best, bound_bytes=bound)
        if bound < base + share * slack_bytes * (1 - _REACHED) or monotonic() > ends_s:
            break  # a longer list says no more
    return best


def allowed_bytes(prices: SheetPrices, cut_bytes: float) -> float:
    """Return by how much the cut may be above the bound of these prices, and a little [bytes]."""
    slack_bytes = max(cut_bytes - prices.chosen_from_bytes, _MET * abs(cut_bytes))
    return slack_bytes * (1 + _MET)


def _longer_lists(
    prices: SheetPrices, slack_bytes: float, most: int, ends_s: float
) -> Iterator[Listed]:
    """Yield longer and longer lists, as far as they are not too long."""
    lengths = [n for n in _LISTED if n < most]
    for length in [*lengths, most]:
        until_s = listed_until_s(ends_s)
        listed = largest_share(partial(within, prices, slack_bytes, length, until_s), until_s)
        if listed is not None:
            yield listed
            if listed.share >= 1.0:
                return


def best_of(
    prices: SheetPrices,
    listed: Listed,
    cuttings: Cuttings,
    slack_bytes: float,
    ends_s: float,
    effort: Effort,
    among: Joins | None = None,
) -> PartChoice:
    """Choose from one list, again and again as cuttings turn out to cost more.

    Args:
        prices: of parts, at which the list was made.
        listed: to choose from.
        cuttings: what is known of them; what is worked out is added.
        slack_bytes: by how much a cut may be above the bound of the prices [bytes].
        ends_s: make no further choice when ``time.monotonic()`` is past this [s].
        effort: of the solver.
        among: what named parts cost more together, as far as known; what is worked out is added.
    """
    base, best = prices.chosen_from_bytes, PartChoice(bound_bytes=0.0)
    if not listed.cuttings and not any(listed.fillings):  # names leave none so cheap
        return PartChoice(bound_bytes=base + listed.share * slack_bytes * (1 - _REACHED))
    for _ in range(_TURNS):
        left_s = ends_s - monotonic()
        if left_s <= 0:
            break
        model = _model(prices, listed, cuttings, slack_bytes)
        if among is not None:
            model = among.ruled(model, listed)
        chosen = least_choice(model, slack_bytes, left_s, effort)
        bound = best.bound_bytes
        if chosen.least > -inf:
            domains = len(prices.of.question.capacities)
            proved = base + chosen.sure(domains) * slack_bytes
            bound = max(bound, min(proved, base + listed.share * slack_bytes))
        if chosen.times is None:
            return replace(best, bound_bytes=bound)
        best = _chosen(prices, listed, np.rint(chosen.times).astype(int).tolist(), bound)
        learned = False
        for parts in dict.fromkeys(best.cuttings):
            if monotonic() < ends_s:
                learned |= cuttings.learn(parts)
        if among is not None and not learned:
            learned = among.learn(best, ends_s)
        if not learned or (effort.sheet_s <= 0 and cuttings.seats > _SEATS_MOST):
            break
    return best


def listed_until_s(ends_s: float) -> float:
    """Return when a list that is begun now has to be made, by ``time.monotonic()`` [s]."""
    return min(ends_s, monotonic() + _LISTING_S)


def largest_share(list_of: Callable[[float], Listed | None], until_s: float) -> Listed | None:
    """Return what to choose from, for as large a share of the slack as is not too much.

    Args:
        list_of: makes a list for a share of the slack, None if it is too long.
        until_s: try no other share when ``time.monotonic()`` is past this [s].
    """
    too_much, found = inf, None
    for share in _SHARES:
        if monotonic() > until_s:
            return None
        found = list_of(share)
        if found is not None:
            break
        too_much = share
    if found is None or found.share >= 1.0:
        return found
    for _ in range(_SHARE_HALVINGS):
        if monotonic() > until_s:
            break
        share = (found.share + too_much) / 2
        more = list_of(share)
        if more is None:
            too_much = share
        else:
            found = more
    return found


def within(
    prices: SheetPrices, slack_bytes: float, most: int, until_s: float, share: float
) -> Listed | None:
    """Return what is dearer than the cheapest by that share at most; None if too much.

    Too much is also what is not listed when ``time.monotonic()`` is *until_s* [s].
    """
    of, stock, sheet = prices.of, prices.of.stock, prices.of.sheet
    room_bytes = share * slack_bytes
    fillings: list[list[Parts]] = []
    for size in stock.sizes:
        limit = prices.least_of(size) + room_bytes
        found: list[Parts] = [()] if stock.spare and limit >= 0 else []
        for cells in range(1, size + 1) if stock.spare else [size]:
            if prices.least_bytes[cells] - prices.cell_bytes * cells <= limit:
                left = most - len(found) - sum(map(len, fillings))
                more = prices.domains.below(cells, limit + prices.cell_bytes * cells, left)
                if more is None or monotonic() > until_s:
                    return None
                found += more
        fillings.append(found)
    supply = _supply(prices, fillings)
    limit = prices.sheets.least(sheet.cells) + room_bytes
    held = np.where(supply.times > 0, prices.price_bytes, inf)
    cuttings = Fillings(held[None, :], sheet.cells).below(sheet.cells, limit, most, supply)
    if cuttings is None:
        return None
    plain = [
        [Filling(parts=p, sheets=(0,) * len(p), pays_bytes=of.pays(p) if p else 0.0) for p in each]
        for each in fillings
    ]
    return Listed(fillings=plain, cuttings=cuttings, alike=(of.sheets,), share=share)


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


def _model(prices: SheetPrices, listed: Listed, cuttings: Cuttings, slack_bytes: float) -> Model:
    """Return the rules: domains of each size, sheets, as many parts of each size in both.

    Where sheets are told apart, as many in each of them.

    No cost is above the slack, so that the numbers a solver sees stay near 1.
    """
    from scipy.sparse import csr_array  # noqa: PLC0415 - rarely needed

    of, stock = prices.of, prices.of.stock
    price = prices.price_bytes
    classes, rows = len(stock.sizes), of.largest + 1  # of a sheet: itself, its parts of 1, 2, …
    cheapest = prices.sheets.least(of.sheet.cells)
    cost: list[float] = []
    entries: list[tuple[int, int, float]] = []
    for k, each in enumerate(listed.fillings):
        least = prices.least_of(stock.sizes[k])
        for one in each:
            entries.append((k, len(cost), 1.0))
            held = zip(one.sheets, one.parts, strict=True)
            entries += [(classes + rows * r + p, len(cost), 1.0) for r, p in held]
            worth = float(price[list(one.parts)].sum()) + prices.cell_bytes * sum(one.parts)
            cost.append(one.pays_bytes - worth - least)
    for r in range(len(listed.alike)):
        for parts in listed.cuttings:
            entries.append((classes + rows * r, len(cost), 1.0))
            entries += [(classes + rows * r + p, len(cost), -1.0) for p in parts]
            worth = float(price[list(parts)].sum()) - cheapest
            cost.append(worth + cuttings.more_bytes.get(parts, 0.0))
    row, column, factor = zip(*entries, strict=True)
    sides = np.zeros(classes + rows * len(listed.alike))
    sides[:classes] = stock.counts
    sides[classes::rows] = listed.alike
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
    prices: SheetPrices, listed: Listed, times: list[int], bound_bytes: float
) -> PartChoice:
    fillings = [
        (size, one)
        for size, each in zip(prices.of.stock.sizes, listed.fillings, strict=True)
        for one in each
    ]
    of_domains, of_sheets = times[: len(fillings)], times[len(fillings) :]
    held = [
        (size, one)
        for (size, one), n in zip(fillings, of_domains, strict=True)
        for _ in range(n if one.parts else 0)
    ]
    every = listed.cuttings * len(listed.alike)
    of_sheets = of_sheets[: len(every)]  # what follows are no numbers of cuttings
    return PartChoice(
        domains=tuple((size, one.parts) for size, one in held),
        cuttings=tuple(parts for parts, n in zip(every, of_sheets, strict=True) for _ in range(n)),
        sheets=tuple(one.sheets for _, one in held) if len(listed.alike) > 1 else (),
        bound_bytes=bound_bytes,
    )
