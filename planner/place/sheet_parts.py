"""Parts of sheets: a question cut into sheets, each cut into parts, each domain holding parts.

A *sheet* is the cells along some axes, all others fixed. Families along those axes lie inside one
sheet each; what a domain pays for them is a sum over its *parts*, the cells that it holds of each
sheet. What it pays for families across sheets is least if its parts lie one upon another. Every
sheet is cut into parts that sum to its cells and every domain is filled by parts that sum to its
own, as in cutting stock: sizes that do not go together leave many small parts. Proof:
``FORMULATION.md``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bounds, lower_bound, rebate_bytes
from planner.place.floors import floors
from planner.place.merge import least_split
from planner.place.part_flow import Stock
from planner.place.question import Charge, Kind, Question, touched_units
from planner.place.sheet_families import Counted, slopes_of, sorted_out

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    BoundsOf = Callable[[Question, int], NDArray[np.float64]]

_SHEET_LEAST, _SHEET_MOST = 4, 512  # cells of a sheet; a stage of 512 is cut in few seconds
_PART_MOST = 96  # cells of a part, past which a sharp bound of what it pays takes too long
_RANKS = 12  # of parts that are told apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Outer:
    """Families across sheets whose groups take up equal places of the sheets that they run through.

    Args:
        width: cells of such a place: of one group inside a sheet [1].
        question: the grid of sheets; each charge is that of one place.
        slope_bytes: what a part pays for a place at least, by its rank; shape [ranks].
    """

    width: int
    question: Question
    slope_bytes: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheeted:
    """A question cut into sheets.

    Args:
        question: the whole.
        axes: along which the cells of a sheet vary.
        sheet: one sheet: the families inside it, one domain that holds it all.
        inside: tells what a domain pays inside a sheet at least for a part of 0, 1, … cells, where
            further families are those of the sheet, too.
        part_bytes: the same without further families [bytes].
        across_bytes: what it pays besides for families across sheets, by the rank of the part, the
            largest first, and its cells; shape [ranks, cells + 1]; the last row is of all further.
        pays_bytes: both together, no less than their sum, inf for more parts than there are sheets;
            shape [ranks, cells + 1].
        alone_bytes: of *across_bytes*, what a first part pays for families without a trace; shape
            [cells + 1].
        traces: what a first part pays for the others, as families of a sheet.
        outers: the families across sheets.
        inside_given_bytes: what domains are charged too much by inside one sheet [bytes].
        given_bytes: what domains are charged too much by, in all [bytes].
        beside: the families that are not in those.
    """

    question: Question
    axes: tuple[int, ...]
    sheet: Question
    inside: Callable[[tuple[Charge, ...]], NDArray[np.float64]]
    part_bytes: NDArray[np.float64]
    across_bytes: NDArray[np.float64]
    pays_bytes: NDArray[np.float64]
    alone_bytes: NDArray[np.float64]
    traces: tuple[Charge, ...]
    outers: tuple[Outer, ...]
    inside_given_bytes: float
    given_bytes: float
    beside: Question

    @property
    def beside_bytes(self) -> float:
        """What the families beside pay at least, by themselves [bytes]."""
        return _beside_bytes(self.beside) if self.beside.charges else 0.0

    @property
    def sheets(self) -> int:
        """Sheets of the grid [1]."""
        return self.question.cells // self.sheet.cells

    @property
    def joint(self) -> Question:
        """One sheet with the traces: what a first part pays, but for families without one."""
        return replace(self.sheet, charges=(*self.sheet.charges, *self.traces))

    @property
    def largest(self) -> int:
        """Cells of the largest part [1]."""
        return len(self.part_bytes) - 1

    @property
    def stock(self) -> Stock:
        """The domains, by the cells that they can hold."""
        cells = self.question.cells
        held = Counter(min(c, cells) for c in self.question.capacities if c)
        sizes = tuple(sorted(held))
        return Stock(sizes=sizes, counts=tuple(held[c] for c in sizes), cells=cells)

    @property
    def joint_bytes(self) -> NDArray[np.float64]:
        """What a first part pays jointly, above both kinds of families by themselves [bytes]."""
        more: NDArray[np.float64] = self.pays_bytes[0] - self.across_bytes[0] - self.part_bytes
        return more

    def joined_bytes(self, weights_bytes: tuple[float, ...]) -> NDArray[np.float64]:
        """Return what parts pay above *part_bytes* and the fewest groups of every trace [bytes].

        No more than the first part does, which cuttings of sheets are known to be charged for;
        shape [cells + 1].

        Args:
            weights_bytes: of one group of every trace [bytes].
        """
        most = self.joint_bytes
        weighted = zip(self.traces, weights_bytes, strict=True)
        traces = tuple(replace(one, weight_bytes=w) for one, w in weighted if w > 0)
        if not traces or not most.any():
            return np.zeros_like(most)
        held = np.arange(len(most))
        apart = sum(
            one.weight_bytes * -(-held // self.sheet.group_size(one.axes)) for one in traces
        )
        more: NDArray[np.float64] = self.inside(traces) - apart - self.part_bytes
        return np.clip(more, 0.0, most)

    def pays(self, parts: Sequence[int]) -> float:
        """Return what a domain with these parts, the largest first, pays at least [bytes]."""
        ranks = np.minimum(np.arange(len(parts)), len(self.pays_bytes) - 1)
        return float(self.pays_bytes[ranks, list(parts)].sum())

    def looked_closer(self, parts: set[int], *, sharp: bool) -> Sheeted:
        """Return the same with a closer bound of what these parts pay.

        Args:
            parts: their cells, of sheets that were looked at roughly [1].
            sharp: as close as can be, which takes longer.
        """
        held = sorted(parts)
        part_bytes, joint_bytes = self.part_bytes.copy(), np.zeros(len(self.part_bytes))
        part_bytes[held] = domain_bounds(self.sheet, held, sharp=sharp)
        if self.traces:
            joint_bytes[held] = domain_bounds(self.joint, held, sharp=sharp)
        return self.raised(part_bytes, joint_bytes)

    def raised(self, part_bytes: NDArray[np.float64], joint_bytes: NDArray[np.float64]) -> Sheeted:
        """Return the same where parts are known to pay this, too; shapes [cells + 1] [bytes].

        Args:
            part_bytes: inside a sheet.
            joint_bytes: a first part, for the families of ``joint``.
        """
        plain = np.maximum(self.part_bytes, part_bytes)
        pays_bytes = self.pays_bytes + (plain - self.part_bytes)
        pays_bytes[0] = np.maximum(self.pays_bytes[0], plain + self.across_bytes[0])
        if self.traces:
            pays_bytes[0] = np.maximum(pays_bytes[0], joint_bytes + self.alone_bytes)
        return replace(self, part_bytes=plain, pays_bytes=pays_bytes)


@lru_cache(maxsize=64)
def _beside_bytes(question: Question) -> float:
    return lower_bound(question)


def _inside(
    bounds_of: BoundsOf, sheet: Question, most: int, more: tuple[Charge, ...]
) -> NDArray[np.float64]:
    """Return what parts of 0, 1, … cells pay at least, these families of the sheet included."""
    return bounds_of(replace(sheet, charges=(*sheet.charges, *more)), most)


@lru_cache(maxsize=64)
def _floors(question: Question, most: int) -> NDArray[np.float64]:
    return np.concatenate([[0.0], floors(question, np.arange(1, most + 1))])


@lru_cache(maxsize=64)
def _bounds(question: Question, most: int) -> NDArray[np.float64]:
    return np.array(domain_bounds(question, range(most + 1), sharp=most <= _PART_MOST))


def sheet_axes(question: Question, *, part_most: int = _PART_MOST) -> list[tuple[int, ...]]:
    """Return the axes of sheets worth a look: those of the families that are dearest to split.

    An all-to-all may join the axes of several; then also those that the others come to in between.

    Args:
        question: the whole.
        part_most: cells of the largest part that a domain can hold [1].
    """
    charges = [c for c in question.charges if question.group_size(c.axes) > 1]
    charges.sort(key=lambda c: (-least_split(question, c), c.axes))
    plain = [c for c in charges if c.kind not in (Kind.PAIRS, Kind.COPIES)]
    found = list(dict.fromkeys(_wider(question, charges, part_most)))
    between = [
        axes
        for axes in dict.fromkeys(_wider(question, plain, part_most))
        if all(set(axes) < set(one) or set(one) < set(axes) for one in found)
    ]
    return found + between


def _wider(
    question: Question, charges: Sequence[Charge], part_most: int
) -> Iterator[tuple[int, ...]]:
    """Yield the axes of the first of these families, of the first two together, and so on."""
    axes: set[int] = set()
    for charge in charges:
        wider = axes | {i for i in charge.axes if question.sizes[i] > 1}
        cells = prod(question.sizes[i] for i in wider)
        if cells > _SHEET_MOST or min(cells, max(question.capacities)) > part_most:
            continue  # of a family that no sheet can hold
        axes = wider
        if _SHEET_LEAST <= cells < question.cells:
            yield tuple(sorted(axes))


def wide_axes(question: Question) -> list[tuple[int, ...]]:
    """Return the axes of sheets that no domain can hold, in parts too large for all but a look."""
    largest = max(question.capacities)
    if largest <= _PART_MOST:
        return []
    wide = sheet_axes(question, part_most=_SHEET_MOST)
    return [axes for axes in wide if question.group_size(axes) > largest]


def sheeted(
    question: Question,
    axes: tuple[int, ...],
    *,
    rough: bool = False,
    ranks: int = _RANKS,
    counted: bool = False,
    bounds_of: BoundsOf | None = None,
) -> Sheeted:
    """Return *question* cut into sheets along *axes*.

    Args:
        question: the whole.
        axes: along which the cells of a sheet vary.
        rough: whether parts are looked at all at once and roughly: ``looked_closer`` follows.
        ranks: of parts that are told apart; what further ones pay is what the last of these does.
        counted: whether families with a trace that no touches tell are told by the cells held in
            every group; else they are beside.
        bounds_of: what a domain of 0, 1, … cells of a sheet pays at least, up to so many; if given,
            parts are looked at so.
    """
    sizes = tuple(n if i in axes else 1 for i, n in enumerate(question.sizes))
    cells, seats = prod(sizes), max(question.capacities)
    held = np.arange(min(seats, cells) + 1)
    cut = sorted_out(question, set(axes), counted=counted)
    sheet = Question(sizes=sizes, charges=cut.inside, capacities=(cells,))
    inside = partial(_inside, bounds_of or (_floors if rough else _bounds), sheet, len(held) - 1)
    part_bytes = inside(())
    across_bytes = np.zeros((ranks, len(held)))
    given_bytes = rebate_bytes(sheet) * (question.cells // cells) - cut.never_given_bytes
    alone_bytes, traces, outers = np.zeros(len(held)), [], []
    for trace, charges in cut.across.items():
        outer = Question(
            sizes=tuple(1 if i in axes else n for i, n in enumerate(question.sizes)),
            charges=charges,
            capacities=(question.cells // cells,),
        )
        width = question.group_size(trace)
        slopes = slopes_of(outer, seats, cells, ranks)
        if width > 1:  # one more group touched costs no less, and a part touches these or more
            slopes = np.maximum(slopes, 0.0)
        outers.append(Outer(width=width, question=outer, slope_bytes=slopes))
        touched = -(-held // width)
        across_bytes += slopes[:, None] * touched
        if width > 1:
            traces.append(Charge(axes=trace, kind=Kind.TOUCH, weight_bytes=float(slopes[0])))
        else:
            alone_bytes = slopes[0] * touched
        given_bytes += rebate_bytes(outer) * (cells // width)
    for charge in cut.counted:
        trace = tuple(i for i in charge.axes if i in axes)
        units = charge.weight_bytes * touched_units(charge, question.group_size(charge.axes))
        told = Counted(units_bytes=units, width=question.group_size(trace))
        across_bytes += told.by_rank(held, ranks)
        alone_bytes = alone_bytes + told.each_bytes * held
        traces.append(told.first(trace))
    pays_bytes = part_bytes + across_bytes
    if traces:
        pays_bytes[0] = np.maximum(pays_bytes[0], inside(tuple(traces)) + alone_bytes)
    pays_bytes[question.cells // cells :] = inf  # a domain has one part of each sheet at most
    rest = Question(sizes=question.sizes, charges=cut.beside, capacities=question.capacities)
    return Sheeted(
        question=question,
        axes=axes,
        sheet=sheet,
        inside=inside,
        part_bytes=part_bytes,
        across_bytes=across_bytes,
        pays_bytes=pays_bytes,
        alone_bytes=alone_bytes,
        traces=tuple(traces),
        outers=tuple(outers),
        inside_given_bytes=rebate_bytes(sheet),
        given_bytes=given_bytes,
        beside=rest,
    )
