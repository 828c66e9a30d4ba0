"""What bounds and rules leave open, stage by stage: cells of stages priced, swept and seated."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from planner.place.clock import look
from planner.place.merge import MET, kept
from planner.place.question import cut_bytes, refine_home
from planner.place.sheet_seats import seated_parts
from planner.place.stage_choice import choice_of
from planner.place.stage_joins import Beyond, in_sheets, part_choice_of
from planner.place.stage_parts import of_stages, patterns_at
from planner.place.stage_prices import stage_prices
from planner.place.stage_rings import ring_of
from planner.place.stage_seats import seated
from planner.place.stage_sweep import StageDealing
from planner.place.stage_ways import cheapest_ways
from planner.place.stages import patterns_of, staged
from planner.place.sweep import swept
from planner.place.whole_numbers import FEW, MANY

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray

    from planner.place.merge import Kept
    from planner.place.sheet_prices import SheetPrices
    from planner.place.solve import Work
    from planner.place.stage_prices import Patterns, Priced
    from planner.place.stages import Staged
    from planner.place.whole_numbers import Effort

_BETTER = 1 + 1e-6  # times a bound, by which other prices may tell more
_MUCH_BETTER = 1.001  # times a bound, by which other prices leave it nothing to tell
_STAGES_SHARE = 0.5  # of the time left, for what domains hold of every stage
_CHOICE_SHARE = 0.7  # of that, for one choice: it is seated then, and made again
_FAR_SHARE = 0.12  # open at prices, past which there is mostly too much to look at in a moment
_FEWER_FAR = 6  # times as few ways to deal out stages are looked at then
_SHEET_MOST = 256  # cells of a stage, past which seating each stage for itself takes seconds
_JOINED_MOST = 64  # the same, past which two stages joined take that long where much is open
_JOINED_SHARE = 0.01  # of the cut, past which two stages joined are not what is missing
_JOINED_NEAR = 2e-3  # of the cut, up to which larger stages are joined, too
_METHOD = "parts of pipeline stages chosen for all domains at once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeps:
    """What is known of the last sweep of some stages.

    Args:
        cut_bytes: of the best seating then; choices that cost no less were left out [bytes].
        effort: of it.
        bound_bytes: of its prices [bytes].
        ended: whether it found the cheapest choice, or that there is none.
    """

    cut_bytes: float
    effort: Effort
    bound_bytes: float
    ended: bool


def by_sweep(work: Work, ends_s: float) -> bool:
    """Choose the cells of every stage for each domain, in a moment; return whether that proves.

    It raises the bound and finds seatings; a better one may let larger boxes be kept together.

    Args:
        work: the best so far.
        ends_s: begin nothing new when ``time.monotonic()`` is past this [s].
    """
    before_bytes = inf
    while not work.proved and work.best.cut_bytes < before_bytes * (1 - MET):
        before_bytes = work.best.cut_bytes
        grid = kept(work.question, work.best.home, before_bytes)
        priced = _priced(work, grid, ends_s)
        if priced is None:
            break
        far = 1 - priced.bound_bytes / before_bytes > _FAR_SHARE
        effort = replace(FEW, swept=FEW.swept // _FEWER_FAR) if far else FEW
        if _swept(work, grid, priced.patterns, effort, ends_s):
            break
    return work.proved


def by_parts_of_stages(
    work: Work, grid: Kept, prices: SheetPrices, effort: Effort, ends_s: float
) -> bool:
    """Choose the cells of every stage at prices of stages' parts; return whether nothing is left.

    That is so if the cheapest choice is known, too. Sheets that are no stages say nothing here.

    Args:
        work: the best so far.
        grid: the boxes that are kept together.
        prices: of the parts of some of its sheets.
        effort: of the choice.
        ends_s: begin nothing new when ``time.monotonic()`` is past this [s].
    """
    priced = work.staged.get(grid.sides)
    if priced is None or not of_stages(priced.patterns.of, prices):
        return False
    patterns = patterns_at(priced.patterns.of, prices)
    if work.raise_bound(patterns.bound_bytes):
        return True
    better = patterns.bound_bytes > priced.bound_bytes
    known = work.swept.get((grid.sides, False))
    if not better and known is not None and known.ended and effort.sheet_s <= 0:
        return True
    return _swept(work, grid, patterns, effort, ends_s, by_parts=True) or (
        effort.sheet_s <= 0 and work.swept[grid.sides, True].ended
    )


def by_few_patterns(work: Work, ends_s: float) -> bool:
    """Do as ``by_stages`` among few patterns and shortly; return whether that proves."""
    return _staged_until(work, ends_s, (FEW,))


def by_stages(work: Work, ends_s: float) -> bool:
    """Choose how many cells of every pipeline stage each domain holds; return whether that proves.

    What a sweep can not, a solver is asked. It raises the bound and finds seatings.
    """
    return _staged_until(work, monotonic() + _STAGES_SHARE * (ends_s - monotonic()), (FEW, MANY))


def again_by_stages(work: Work, ends_s: float) -> bool:
    """Go on with a choice that was cut short, in what is left of the time."""
    return _staged_until(work, ends_s, (MANY,))


def _poor(work: Work, grid: Kept, priced: Priced) -> bool:
    """Return whether prices of parts of stages say so much more that these tell nothing."""
    known = work.swept.get((grid.sides, True))
    return known is not None and known.bound_bytes > priced.bound_bytes * _MUCH_BETTER


def _priced(work: Work, grid: Kept, ends_s: float) -> Priced | None:
    """Return good prices of the stages of a grid; None if it has none."""
    if grid.sides not in work.staged:
        of = staged(grid.question)
        work.staged[grid.sides] = None if of is None else stage_prices(of, grid.home, ends_s)
    priced = work.staged[grid.sides]
    if priced is not None:
        work.stages_bytes = max(work.stages_bytes, priced.bound_bytes)
        work.raise_bound(priced.bound_bytes)
    return priced


def _swept(
    work: Work,
    grid: Kept,
    patterns: Patterns,
    effort: Effort,
    ends_s: float,
    *,
    by_parts: bool = False,
) -> bool:
    """Sweep the stages of a grid, and seat what is found; return whether that proves.

    Nothing is done if it would find no more than the last time.

    Args:
        work: the best so far.
        grid: the boxes that are kept together.
        patterns: at good prices.
        effort: of the sweep.
        ends_s: begin nothing new when ``time.monotonic()`` is past this [s].
        by_parts: whether the prices are those of parts of stages.
    """
    of, key, cut = patterns.of, (grid.sides, by_parts), work.best.cut_bytes
    last = work.swept.get(key)
    better = last is not None and patterns.bound_bytes > last.bound_bytes * _BETTER
    if not better and _told_before(last, cut, effort):
        return work.proved
    beyond = Beyond(of=of, slack_bytes=0.0, ends_s=ends_s, sheet_s=effort.sheet_s)
    dealing = StageDealing(patterns, beyond)
    if not dealing.possible:
        work.swept[key] = Sweeps(
            cut_bytes=0.0, effort=effort, bound_bytes=patterns.bound_bytes, ended=False
        )
        return False
    known_bytes = max(work.bound_bytes, work.solver_bytes)
    found = swept(dealing, cut, known_bytes, effort.swept, ends_s)
    work.swept[key] = Sweeps(
        cut_bytes=cut, effort=effort, bound_bytes=patterns.bound_bytes, ended=found.ended
    )
    believed = work.raise_bound if effort.sheet_s <= 0 else work.believe
    if believed(found.bound_bytes):
        return True
    if found.held is not None and _take_stages(work, of, grid, found.held):
        return True
    cut = work.best.cut_bytes
    slack = cut - found.bound_bytes
    near = _JOINED_SHARE if of.sheet.cells <= _JOINED_MOST else _JOINED_NEAR
    if found.ended and 0 < slack <= near * cut:
        dealing = StageDealing(patterns, replace(beyond, slack_bytes=slack))
        found = swept(dealing, cut, found.bound_bytes, effort.swept, ends_s)
        if work.believe(found.bound_bytes):  # joins ask a solver
            return True
        return found.held is not None and _take_stages(work, of, grid, found.held)
    return False


def _told_before(last: Sweeps | None, cut_bytes: float, effort: Effort) -> bool:
    """Return whether the last sweep told all that another can."""
    if last is None or last.effort.sheet_s < effort.sheet_s:
        return False
    as_far = last.effort.swept >= effort.swept and last.cut_bytes <= cut_bytes * (1 + MET)
    return last.ended or as_far


def _staged_until(work: Work, ends_s: float, efforts: tuple[Effort, ...]) -> bool:
    before_bytes = inf
    while not work.proved and work.best.cut_bytes < before_bytes * (1 - MET):
        before_bytes = work.best.cut_bytes
        grid = kept(work.question, work.best.home, before_bytes)
        priced = _priced(work, grid, ends_s)
        if priced is None or _poor(work, grid, priced):
            break
        for effort in efforts:
            if monotonic() >= ends_s or work.best.cut_bytes < before_bytes * (1 - MET):
                break
            if _swept(work, grid, priced.patterns, effort, ends_s):
                return True
            if work.best.cut_bytes >= before_bytes * (1 - MET) and _chosen(
                work, grid, priced, effort, ends_s, again=len(efforts) == 1
            ):
                break
    return work.proved


def _chosen(
    work: Work, grid: Kept, priced: Priced, effort: Effort, ends_s: float, *, again: bool
) -> bool:
    """Let a solver choose patterns, and seat them; return whether nothing more can be chosen.

    Args:
        work: the best so far.
        grid: the boxes that are kept together.
        priced: good prices of their stages.
        effort: of the choice.
        ends_s: it ends before ``time.monotonic()`` is past this [s].
        again: whether to choose from few patterns once more from the same seating.
    """
    of, cut = priced.patterns.of, work.best.cut_bytes
    if work.swept[grid.sides, False].ended and ring_of(of) is None:
        work.stages_open = False
        return True  # the cheapest choice is known
    left_s = ends_s - monotonic()
    if left_s <= 0:  # the sweep took it all
        work.stages_open = True
        return False
    if effort is FEW:
        if work.few_bytes == cut and not again:
            return False
        work.few_bytes = cut
    known = patterns_of(of, grid.home)
    chosen = choice_of(of, priced, cut, _CHOICE_SHARE * left_s, effort, known)
    if work.believe(chosen.bound_bytes):
        return True
    if chosen.held is not None and _take_stages(work, of, grid, chosen.held):
        return True
    work.stages_open = not chosen.all
    return chosen.all


def _take_stages(work: Work, of: Staged, grid: Kept, held: NDArray[np.int64]) -> bool:
    """Offer seatings of boxes with these counts, and what exchanges make of the best of them."""
    best, best_bytes = None, inf
    for home in _seatings(of, held, work.best.cut_bytes - work.stages_bytes):
        cut = cut_bytes(of.question, home)
        if cut < best_bytes:
            best, best_bytes = home, cut
            if work.offer(refine_home(work.question, grid.sides, home), _METHOD):
                return True
        look()
    if best is None:
        return False
    better = work.exchanged(of.question, best)
    return work.offer(refine_home(work.question, grid.sides, better), f"{_METHOD}, then exchanges")


def _seatings(
    of: Staged, held: NDArray[np.int64], dearer_bytes: float
) -> Iterator[NDArray[np.int64]]:
    """Yield seatings with these counts, what is quick first."""
    yield from seated(of, held)
    laid = cheapest_ways(of, held, dearer_bytes)
    if laid is not None:
        yield laid
    elif of.sheet.cells <= _SHEET_MOST:
        yield seated_parts(in_sheets(of), part_choice_of(of, held))
