"""What bounds and rules leave open, sheet by sheet: parts of sheets priced, chosen and seated."""

from __future__ import annotations

from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from planner.place.improve import improved
from planner.place.merge import MET, kept
from planner.place.question import cut_bytes, refine_home
from planner.place.sheet_choice import Cuttings, part_choice
from planner.place.sheet_lines import begun_bytes, line_axes, line_prices, lined
from planner.place.sheet_parts import sheet_axes, sheeted
from planner.place.sheet_prices import sheet_prices
from planner.place.sheet_seats import seated_parts

if TYPE_CHECKING:
    from planner.place.merge import Kept
    from planner.place.sheet_choice import PartChoice
    from planner.place.sheet_prices import SheetPrices
    from planner.place.solve import Work
    from planner.place.whole_numbers import Effort

_KINDS_TRIED = 3  # of sheets
_KINDS_SEATED = 2  # of them, those with the best bounds
_TURNS = 4  # times that a better seating makes another choice worth while
_METHOD = "parts of sheets chosen for all domains"


def by_sheets(work: Work, ends_s: float, effort: Effort) -> bool:
    """Choose the parts of sheets that each domain holds; return whether that proves.

    It raises the bound and finds seatings.

    Args:
        work: the best so far.
        ends_s: begin nothing new when ``time.monotonic()`` is past this [s].
        effort: of each choice.
    """
    grid = kept(work.question, work.best.home, work.best.cut_bytes)
    found: list[SheetPrices] = []
    for axes in sheet_axes(grid.question)[:_KINDS_TRIED]:
        if monotonic() > ends_s:
            break
        prices = work.priced.get((grid.sides, axes)) or _priced(work, grid, axes)
        work.priced[grid.sides, axes] = prices
        if work.raise_bound(prices.bound_bytes):
            return True
        found.append(prices)
    found.sort(key=lambda prices: -prices.bound_bytes)
    return any(_chosen(work, prices, grid, ends_s, effort) for prices in found[:_KINDS_SEATED])


def _priced(work: Work, grid: Kept, axes: tuple[int, ...]) -> SheetPrices:
    """Return the best prices of parts, with or without prices of pieces."""
    cut = work.best.cut_bytes
    prices = sheet_prices(sheeted(grid.question, axes), cut)
    ways = [lined(prices.of, along) for along in line_axes(prices.of)]
    if not ways or prices.bound_bytes >= cut:
        return prices
    pieces = [work.priced.get((grid.sides, both.lines.axes)) for both in ways]
    begun = [begun_bytes(both, prices, one) for both, one in zip(ways, pieces, strict=True)]
    best = begun.index(max(begun))
    with_lines = line_prices(ways[best], prices, cut, pieces[best])
    return max(prices, with_lines, key=lambda one: one.bound_bytes)


def _chosen(work: Work, prices: SheetPrices, grid: Kept, ends_s: float, effort: Effort) -> bool:
    """Choose and seat parts while that is better; return whether that proves."""
    cuttings, before_bytes = Cuttings(prices.of, effort.sheet_s), inf
    for _ in range(_TURNS):
        if monotonic() > ends_s or work.best.cut_bytes >= before_bytes * (1 - MET):
            break
        before_bytes = work.best.cut_bytes
        chosen = part_choice(prices, cuttings, before_bytes, ends_s, effort)
        if work.believe(chosen.bound_bytes):
            return True
        if chosen.cuttings and _take(work, prices, grid, chosen, effort):
            return True
    return work.proved


def _take(work: Work, prices: SheetPrices, grid: Kept, chosen: PartChoice, effort: Effort) -> bool:
    home = seated_parts(prices.of, chosen, effort.sheet_s)
    if work.offer(refine_home(work.question, grid.sides, home), _METHOD):
        return True
    better = improved(prices.of.question, home, seed=work.seed)
    if cut_bytes(prices.of.question, better) >= cut_bytes(prices.of.question, home) * (1 - MET):
        return False
    return work.offer(refine_home(work.question, grid.sides, better), f"{_METHOD}, then exchanges")
