"""What bounds and rules leave open, sheet by sheet: parts of sheets priced, chosen and seated."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.place.by_stages import by_parts_of_stages
from planner.place.clock import look, over
from planner.place.merge import MET, kept
from planner.place.piece_prices import piece_prices
from planner.place.question import cut_bytes, refine_home
from planner.place.sheet_choice import allowed_bytes, part_choice
from planner.place.sheet_crossed import crossed, crossings
from planner.place.sheet_cuttings import Cuttings
from planner.place.sheet_lines import line_axes, line_of, lined
from planner.place.sheet_names import named_choice
from planner.place.sheet_parts import sheet_axes, sheeted, wide_axes
from planner.place.sheet_prices import SheetPrices, sheet_prices
from planner.place.sheet_seats import seated_parts
from planner.place.sheet_sweep import swept_choice
from planner.place.whole_numbers import FEW
from planner.place.wide_choice import choosable, chosen_bound
from planner.place.wide_sheets import wide_bound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from planner.place.merge import Kept
    from planner.place.piece_prices import Pieced, Priced
    from planner.place.sheet_choice import PartChoice
    from planner.place.solve import Work
    from planner.place.whole_numbers import Effort

    _Choose = Callable[[SheetPrices, Cuttings, float, float, Effort], PartChoice]

_KINDS_TRIED = 4  # of sheets
_KINDS_SEATED = 2  # of them, those with the best bounds
_ALIKE = 1.1  # times the least that any kind leaves open, which is no difference
_WORSE = 4.0  # times what is open that a kind worth choosing from leaves open at most
_FAR_SHARE = 3e-3  # of the cut that is open, past which all ways to cut sheets further are priced
_FAR_S_SHARE = 0.4  # of the time, after which no other kind of sheets is
_LOST_SHARE = 0.01  # of the cut, that pieces may tell less without prices: it is never made up
_FURTHER_SHARE = 0.035  # of the cut, that prices of rows and columns of lines may add; 3 % was seen
_SOON_SHARE = 0.04  # open by a kind, up to which it is chosen from before others have prices
_NAMED_SHARE = 1e-3  # open then, up to which sheets are told apart at once
_SEATED_FAR = 4e-3  # of the cut, above what a choice says, past which a solver seats its sheets
_SEATED_S = 0.5  # for each, with
_SEATED_EACH_S = 2.0  # that all of it takes at most, mostly
_TURNS = 4  # times that a better seating makes another choice worth while
_METHOD = "parts of groups chosen for all domains at once"


def by_sheets(work: Work, ends_s: float, effort: Effort) -> bool:
    """Choose the parts of sheets that each domain holds; return whether that proves.

    It raises the bound and finds seatings.

    Args:
        work: the best so far.
        ends_s: begin nothing new when ``time.monotonic()`` is past this [s].
        effort: of each choice.
    """
    grid = kept(work.question, work.best.home, work.best.cut_bytes)
    found: dict[tuple[int, ...], _Try] = {}
    kinds = _kinds(work, grid)
    begun_s = monotonic()
    for far in (False, True):
        until_s = begun_s + _FAR_S_SHARE * (ends_s - begun_s) if far else ends_s
        if far and work.open_share <= _FAR_SHARE:
            break
        for axes in kinds:
            if monotonic() > until_s:
                break
            prices = _prices(work, grid, axes, far=far)
            if work.raise_bound(prices.bound_bytes):
                return True
            look()
            if axes in found and prices is found[axes].prices:
                continue
            told = by_parts_of_stages(work, grid, prices, effort, ends_s)
            if work.proved:
                return True
            one = _Try(work=work, prices=prices, grid=grid, effort=effort, ended=told)
            found[axes] = one
            soon = (far or axes != kinds[-1]) and one.open_share <= _SOON_SHARE
            if soon and one.chosen_soon(ends_s):
                return True
    return _chosen(work, list(found.values()), ends_s)


def _prices(work: Work, grid: Kept, axes: tuple[int, ...], *, far: bool) -> SheetPrices:
    """Return good prices of parts.

    Args:
        work: the best so far.
        grid: the boxes that are kept together.
        axes: of the sheets.
        far: whether to look for prices of pieces in all ways, not the most promising alone.
    """
    key = grid.sides, axes
    if key not in work.pricing:
        work.pricing[key] = _better_prices(work, grid, axes)
    for prices in work.pricing[key] if far or key not in work.priced else ():
        best = max(prices, work.priced.get(key, prices), key=lambda one: one.bound_bytes)
        if work.raise_bound(best.bound_bytes):
            return best
        look()
        work.priced[key] = best  # unless they were cut short
        if not far:
            break
    return work.priced[key]


def _chosen(work: Work, found: list[_Try], ends_s: float) -> bool:
    """Choose from the kinds of sheets with the best bounds; return whether that proves."""
    found.sort(key=lambda one: -one.prices.bound_bytes)
    if found:  # of kinds that leave as much open, small sheets are chosen from sooner
        most = found[0].prices.bound_bytes
        alike = work.best.cut_bytes - _ALIKE * (work.best.cut_bytes - most)
        near = [one for one in found if one.prices.bound_bytes >= alike]
        found = [*sorted(near, key=lambda one: one.prices.of.sheet.cells), *found[len(near) :]]
    for k, one in enumerate(found):
        if one.hopeless:
            break
        if (k < _KINDS_SEATED and one.chosen(part_choice, ends_s)) or (
            one.chosen(named_choice, ends_s)
        ):
            return True
    return work.proved


def _kinds(work: Work, grid: Kept) -> list[tuple[int, ...]]:
    """Return the axes of sheets to look at: first a pipeline's stages where little else is open."""
    kinds = sheet_axes(grid.question)[:_KINDS_TRIED]
    priced = work.staged.get(grid.sides)
    if priced is not None and work.open_share <= _NAMED_SHARE:
        sizes = priced.patterns.of.sheet.sizes
        stage = tuple(i for i, n in enumerate(sizes) if n > 1)
        kinds.sort(key=lambda axes: axes != stage)
    return kinds


def by_wide_sheets(work: Work) -> bool:
    """Raise the bound by sheets that are cut into large parts; return whether that proves."""
    cut = work.best.cut_bytes
    for axes in wide_axes(work.question):
        look()
        of = sheeted(work.question, axes, rough=True)
        bound = chosen_bound(of, cut) if choosable(of) else None
        if bound is None:
            bound = wide_bound(work.question, axes, cut)
        if work.raise_bound(bound):
            return True
    return work.proved


def _better_prices(work: Work, grid: Kept, axes: tuple[int, ...]) -> Iterator[SheetPrices]:
    """Yield prices of parts, with or without prices of pieces: those that promise most first."""
    cut = work.best.cut_bytes
    prices = sheet_prices(sheeted(grid.question, axes), cut)
    if over() or prices.bound_bytes >= cut:
        yield prices
        return
    ways: list[tuple[tuple[int, ...] | None, list[Priced]]] = [
        (None, _begun(crossed(prices.of, along), prices)) for along in crossings(prices.of)[:1]
    ]
    for along in line_axes(prices.of):
        pieces = work.priced.get((grid.sides, along))
        ways.append((along, _begun(lined(prices.of, along), prices, pieces)))
    least = prices.bound_bytes - _LOST_SHARE * cut
    ways = [way for way in ways if max(one.bound_bytes for one in way[1]) >= least]
    ways.sort(key=lambda way: -max(one.bound_bytes for one in way[1]))
    best = prices
    if not ways:
        yield prices
    for of_lines, begun in ways:
        one = piece_prices(begun[0].pieced, begun, cut)
        best = max(best, one.prices, key=lambda each: each.bound_bytes)
        yield best
        most = max(work.bound_bytes, best.bound_bytes)
        if of_lines is not None and most - one.bound_bytes <= _FURTHER_SHARE * cut:
            yield _further(one, of_lines, cut).prices


def _begun(pieced: Pieced, prices: SheetPrices, pieces: SheetPrices | None = None) -> list[Priced]:
    """Return prices to begin with: those of the parts, and those of the pieces if known."""
    found = [pieced.begun(prices.price_bytes)]
    if pieces is not None:
        found.append(pieced.begun(None, [pieces.price_bytes]))
    return found


def _further(best: Priced, axes: tuple[int, ...], cut_bytes: float) -> Priced:
    """Return good prices where the lines of a sheet are cut both ways, too."""
    of = best.pieced.of
    if best.bound_bytes >= cut_bytes or over():
        return best
    for along in crossings(line_of(of, axes))[:1]:
        pieced = lined(of, axes, along)
        parts, pieces = np.split(best.price_bytes, [of.largest])
        begun = pieced.begun(np.append(0.0, parts), [np.append(0.0, pieces)])
        if begun.bound_bytes >= best.bound_bytes - _LOST_SHARE * cut_bytes:
            return piece_prices(pieced, [begun], cut_bytes)
    return best


@dataclass(slots=True, kw_only=True)
class _Try:
    """A choice of the parts of one kind of sheets.

    Args:
        work: the best so far.
        prices: of the parts.
        grid: the boxes kept together.
        effort: of a choice.
        cuttings: what is known of them.
        chosen_bytes: the cut in hand when parts were chosen last, by the choice [bytes].
        ended: whether the cheapest choice is known, and was seated.
    """

    work: Work
    prices: SheetPrices
    grid: Kept
    effort: Effort
    cuttings: Cuttings = field(init=False)
    chosen_bytes: dict[_Choose, float] = field(default_factory=dict)
    ended: bool = False

    def __post_init__(self) -> None:
        self.cuttings = Cuttings(self.prices.of, self.effort.sheet_s)

    @property
    def open_share(self) -> float:
        """Share of the cut in hand that the prices leave open [1]."""
        return 1 - self.prices.bound_bytes / max(self.work.best.cut_bytes, 1e-300)

    @property
    def hopeless(self) -> bool:
        """Whether the prices leave so much more open than is known that no choice will tell."""
        work, cut = self.work, self.work.best.cut_bytes
        known = max(work.bound_bytes, work.solver_bytes)
        return allowed_bytes(self.prices, cut) > _WORSE * max(cut - known, 0.0)

    def chosen_soon(self, ends_s: float) -> bool:
        """Choose from these before other kinds have prices; return whether that proves."""
        if self.hopeless:
            return False
        return self.chosen(part_choice, ends_s) or (
            self.work.open_share <= _NAMED_SHARE and self.chosen(named_choice, ends_s)
        )

    def chosen(self, choose: _Choose, ends_s: float) -> bool:
        """Choose and seat parts while that is better; return whether that proves."""
        work, before_bytes = self.work, self.chosen_bytes.get(choose, inf)
        for _ in range(_TURNS):
            better = work.best.cut_bytes < before_bytes * (1 - MET)
            if monotonic() > ends_s or work.proved or not better:
                break
            self.chosen_bytes[choose] = before_bytes = work.best.cut_bytes
            if choose is part_choice and self._swept(before_bytes, ends_s):
                continue
            choice = choose(self.prices, self.cuttings, before_bytes, ends_s, self.effort)
            if work.believe(choice.bound_bytes):
                return True
            if choice.cuttings and self._taken(choice, ends_s):
                return True
        return work.proved

    def _swept(self, cut_bytes: float, ends_s: float) -> bool:
        """Choose without a solver; return whether one need not be asked, or not soon.

        Where the cheapest choice is known it knows no cheaper one, but others: some seat better.
        """
        known_bytes = max(self.work.bound_bytes, self.work.solver_bytes)
        if self.ended:  # against a better cut it is the same
            return self.effort is FEW
        choice = swept_choice(
            self.prices, self.cuttings, cut_bytes, known_bytes, ends_s, self.effort
        )
        if self.effort.sheet_s > 0:  # a solver was asked for cuttings
            self.work.believe(choice.bound_bytes)
        else:
            self.work.raise_bound(choice.bound_bytes)
        if choice.cuttings and not self.work.proved:
            self._taken(choice, ends_s)
        self.ended = choice.ended
        return (choice.ended and self.effort is FEW) or self.work.proved or monotonic() > ends_s

    def _taken(self, choice: PartChoice, ends_s: float) -> bool:
        """Seat a choice; a solver seats its sheets if rules cut much more than it says."""
        effort_s = self.effort.sheet_s
        if self._seated(choice, effort_s):
            return True
        cut = self.work.best.cut_bytes
        long_s = _SEATED_EACH_S * len(set(choice.cuttings))
        late = monotonic() + long_s > ends_s
        if effort_s > 0 or cut - choice.bound_bytes <= _SEATED_FAR * cut or late:
            return self.work.proved
        return self._seated(choice, _SEATED_S)

    def _seated(self, choice: PartChoice, sheet_s: float) -> bool:
        work, question = self.work, self.prices.of.question
        home = seated_parts(self.prices.of, choice, sheet_s)
        if work.offer(refine_home(work.question, self.grid.sides, home), _METHOD):
            return True
        better = work.exchanged(question, home)
        if cut_bytes(question, better) >= cut_bytes(question, home) * (1 - MET):
            return False
        home = refine_home(work.question, self.grid.sides, better)
        return work.offer(home, f"{_METHOD}, then exchanges")
