"""What bounds and rules leave open, sheet by sheet: parts of sheets priced, chosen and seated."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

from planner.place.by_stages import by_parts_of_stages
from planner.place.clock import look, over
from planner.place.merge import MET, kept
from planner.place.question import cut_bytes, refine_home
from planner.place.sheet_choice import allowed_bytes, part_choice
from planner.place.sheet_crossed import begun_bytes as crossed_begun_bytes
from planner.place.sheet_crossed import crossed, crossed_prices, crossings
from planner.place.sheet_cuttings import Cuttings
from planner.place.sheet_lines import begun_bytes, line_axes, line_prices, lined
from planner.place.sheet_names import named_choice
from planner.place.sheet_parts import sheet_axes, sheeted, wide_axes
from planner.place.sheet_prices import SheetPrices, sheet_prices
from planner.place.sheet_seats import seated_parts
from planner.place.sheet_sweep import swept_choice
from planner.place.whole_numbers import FEW
from planner.place.wide_choice import choosable, chosen_bound
from planner.place.wide_sheets import wide_bound

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.place.merge import Kept
    from planner.place.sheet_choice import PartChoice
    from planner.place.solve import Work
    from planner.place.whole_numbers import Effort

    _Choose = Callable[[SheetPrices, Cuttings, float, float, Effort], PartChoice]

_KINDS_TRIED = 4  # of sheets
_KINDS_SEATED = 2  # of them, those with the best bounds
_ALIKE = 1.1  # times the least that any kind leaves open, which is no difference
_WORSE = 4.0  # times what is open that a kind worth choosing from leaves open at most
_SOON_SHARE = 0.04  # open by a kind, up to which it is chosen from before others have prices
_NAMED_SHARE = 1e-3  # open then, up to which sheets are told apart at once
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
    found: list[_Try] = []
    kinds = _kinds(work, grid)
    for axes in kinds:
        if monotonic() > ends_s:
            break
        prices = work.priced.get((grid.sides, axes)) or _priced(work, grid, axes)
        if work.raise_bound(prices.bound_bytes):
            return True
        look()
        work.priced[grid.sides, axes] = prices  # unless they were cut short
        if by_parts_of_stages(work, grid, prices, effort, ends_s):
            if work.proved:
                return True
            continue
        one = _Try(work=work, prices=prices, grid=grid, effort=effort)
        found.append(one)
        if axes != kinds[-1] and one.open_share <= _SOON_SHARE and one.chosen_soon(ends_s):
            return True
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


def _priced(work: Work, grid: Kept, axes: tuple[int, ...]) -> SheetPrices:
    """Return the best prices of parts, with or without prices of pieces."""
    cut = work.best.cut_bytes
    prices = sheet_prices(sheeted(grid.question, axes), cut)
    if over() or prices.bound_bytes >= cut:
        return prices
    ways: list[tuple[float, Callable[[], SheetPrices]]] = []
    for along in crossings(prices.of)[:1]:
        crossing = crossed(prices.of, along)
        begun = crossed_begun_bytes(crossing, prices)
        ways.append((begun, partial(crossed_prices, crossing, prices, cut)))
    for along in line_axes(prices.of):
        both = lined(prices.of, along)
        pieces = work.priced.get((grid.sides, along))
        begun = begun_bytes(both, prices, pieces)
        ways.append((begun, partial(line_prices, both, prices, cut, pieces)))
    if not ways:
        return prices
    _, best = max(ways, key=lambda way: way[0])
    return max(prices, best(), key=lambda one: one.bound_bytes)


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
            if choice.cuttings and self._taken(choice):
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
            self._taken(choice)
        self.ended = choice.ended
        return (choice.ended and self.effort is FEW) or self.work.proved or monotonic() > ends_s

    def _taken(self, choice: PartChoice) -> bool:
        work, question = self.work, self.prices.of.question
        home = seated_parts(self.prices.of, choice, self.effort.sheet_s)
        if work.offer(refine_home(work.question, self.grid.sides, home), _METHOD):
            return True
        better = work.exchanged(question, home)
        if cut_bytes(question, better) >= cut_bytes(question, home) * (1 - MET):
            return False
        home = refine_home(work.question, self.grid.sides, better)
        return work.offer(home, f"{_METHOD}, then exchanges")
