"""Two wide sheets in few domains: every way to cut both, looked through.

Where two sheets fill three domains or fewer, all that can be chosen is how many cells of either
sheet each domain holds. Both are cut in all ways that may together cost less than the best so far,
the cheapest first; so no price on parts is needed. What the parts of the best choice pay is looked
at more closely, and it is made again. Proof: ``FORMULATION.md``, "Two sheets in few domains".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bound, loose_bound
from planner.place.clock import TimeUp, look
from planner.place.stacked import stacked_bounds
from planner.place.two_parts import in_two_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.question import Question
    from planner.place.sheet_parts import Sheeted

_SHEETS, _DOMAINS_MOST = 2, 3
_PAIRS_MOST = 5_000_000  # of cuttings that are looked at in one choice
_TURNS = 60  # times that the choice is made
_ROUNDING = 1e-12  # relative; sums of a few dozen products


def choosable(of: Sheeted) -> bool:
    """Return whether sheets and domains are few enough to look through all choices."""
    return of.sheets == _SHEETS and len(of.question.capacities) <= _DOMAINS_MOST


def chosen_bound(of: Sheeted, enough_bytes: float) -> float | None:
    """Return what every seating cuts at least, by the cheapest choice of parts [bytes].

    When the time is up, what is known by then; None if there was too much to look at.

    Args:
        of: two sheets in three domains at most, their parts looked at roughly.
        enough_bytes: a bound that need not be better [bytes].
    """
    best = 0.0
    try:
        choice = _choice_of(of)
        for _ in range(_TURNS):
            look()
            bound = choice.make(enough_bytes)
            if bound is None:
                return None
            best = max(best, bound)
            if best >= enough_bytes or not choice.look_closer():
                break
    except TimeUp:
        pass  # what is known so far holds
    return best


def _choice_of(of: Sheeted) -> _Choice:
    """Return the choice of parts that are looked at layer by layer."""
    most, cells, halves = of.largest, of.sheet.cells, in_two_parts(of.sheet)
    return _Choice(
        of=of.raised(stacked_bounds(of.sheet, most), stacked_bounds(of.joint, most)),
        halves=halves,
        halved_bytes=stacked_bounds(halves, cells),
    )


@dataclass(slots=True, kw_only=True)
class _Choice:
    """The cheapest choice of parts, as far as it is known what they pay.

    Args:
        of: the sheets.
        halves: ``in_two_parts`` of a sheet.
        halved_bytes: what a cut of a sheet into a part of 0, 1, … cells and all others costs at
            least; shape [cells + 1].
        capacities: cells of three domains, the largest first [1].
        cuttings: what each of them holds, shape [cuttings, domains] [1].
        chosen: the two cuttings chosen last; None if none was.
        close: parts that were looked at closely.
        sharp: parts that were looked at as closely as can be.
        near: by how many cells parts differ that are looked at closely together [1].
    """

    of: Sheeted
    halves: Question
    halved_bytes: NDArray[np.float64]
    capacities: NDArray[np.int64] = field(init=False)
    cuttings: NDArray[np.int64] = field(init=False)
    chosen: NDArray[np.int64] | None = None
    close: set[int] = field(default_factory=set)
    sharp: set[int] = field(default_factory=set)
    near: int = 1

    def __post_init__(self) -> None:
        capacities = sorted(self.of.question.capacities, reverse=True)
        self.capacities = np.array([*capacities, *(0,) * (_DOMAINS_MOST - len(capacities))])
        first, second = np.indices((self.of.largest + 1,) * 2).reshape(2, -1)
        held = np.column_stack([first, second, self.of.sheet.cells - first - second])
        self.cuttings = held[((held >= 0) & (held <= self.capacities)).all(axis=1)]

    def make(self, enough_bytes: float) -> float | None:
        """Choose two cuttings that cost the least; return what they do, or *enough* if no less.

        None if there was too much to look at.
        """
        inside, across = self._inside_bytes(), self._across_bytes()
        first = self._first()
        order = np.lexsort((~first, inside))
        inside, held, first = inside[order], self.cuttings[order], first[order]
        cells = np.arange(self.of.largest + 1)
        least = float((across[1:] / (cells[1:, None] + cells)).min())  # for a cell, of any parts
        given = self.of.given_bytes - _SHEETS * self.of.inside_given_bytes - self.of.beside_bytes
        settled = _SHEETS * self.of.sheet.cells * least - given
        best, self.chosen, pairs = enough_bytes, None, 0
        for one in range(len(inside)):
            last = int(np.searchsorted(inside, best - settled - inside[one]))
            if last <= one:  # with a cutting that is no cheaper it costs too much
                break
            if not first[one]:
                continue
            pairs += last - one
            if pairs > _PAIRS_MOST:
                return None
            fits = (held[one] + held[one:last] <= self.capacities).all(axis=1)
            others = np.flatnonzero(fits) + one
            if not len(others):
                continue
            cost = inside[one] + inside[others] + across[held[one], held[others]].sum(axis=1)
            other = int(cost.argmin())
            if cost[other] - given < best:
                best = float(cost[other]) - given
                self.chosen = held[[one, others[other]]]
        size = abs(best) + abs(self.of.given_bytes) + abs(settled)
        return best if self.chosen is None else best - _ROUNDING * size

    def look_closer(self) -> bool:
        """Look at the parts chosen last more closely; return whether there was more to see.

        First at ever more parts of about their size, too: those are chosen next.
        """
        if self.chosen is None:
            return False
        used, most = set(self.chosen.ravel().tolist()) - {0}, self.of.largest
        if used - self.close:
            near = range(-self.near, self.near + 1)
            parts = {part + k for part in used for k in near if 0 < part + k <= most} - self.close
            self.near *= 2
            self.close |= parts
            self._look(parts, sharp=False)
        elif used - self.sharp:
            parts = used - self.sharp
            self.sharp |= parts
            self._look(parts, sharp=True)
        else:
            return False
        return True

    def _look(self, parts: set[int], *, sharp: bool) -> None:
        """Look at these parts, and at cuttings into one of them and all others."""
        self.of = self.of.looked_closer(parts, sharp=sharp)
        bound, cells = domain_bound if sharp else loose_bound, self.of.sheet.cells
        for k in {*parts, *(cells - k for k in parts)} - {0}:
            self.halved_bytes[k] = max(self.halved_bytes[k], bound(self.halves, k))

    def _first(self) -> NDArray[np.bool_]:
        """Return which cuttings are the first of those that differ in equal domains' order."""
        alike = self.capacities[1:] == self.capacities[:-1]
        falls = self.cuttings[:, 1:] <= self.cuttings[:, :-1]
        first: NDArray[np.bool_] = (falls | ~alike).all(axis=1)
        return first

    def _inside_bytes(self) -> NDArray[np.float64]:
        """Return what every cutting costs at least inside its sheet, shape [cuttings] [bytes].

        No less than if all parts but one were together in one domain; what first parts pay jointly,
        which is counted across, may be the same.
        """
        of, held = self.of, np.sort(self.cuttings, axis=1)  # alike for parts in any order
        inside: NDArray[np.float64] = of.part_bytes[held].sum(axis=1) - of.inside_given_bytes
        halved_bytes = np.maximum(self.halved_bytes, self.halved_bytes[::-1])
        halved: NDArray[np.float64] = halved_bytes[held].max(axis=1)
        np.maximum(inside, halved - of.joint_bytes[held].sum(axis=1), out=inside)
        return inside

    def _across_bytes(self) -> NDArray[np.float64]:
        """Return what a domain pays besides, by its cells of both sheets [bytes]."""
        first, further = self.of.pays_bytes[0], self.of.pays_bytes[1]
        k = np.arange(self.of.largest + 1)
        larger, smaller = np.maximum(k[:, None], k), np.minimum(k[:, None], k)
        part_bytes = self.of.part_bytes
        across: NDArray[np.float64] = first[larger] - part_bytes[larger]
        across += further[smaller] - part_bytes[smaller]
        return across
