"""Parts of sheets: a question cut into sheets, each cut into parts, each domain holding parts.

A *sheet* is the cells along some axes, all others fixed. Families along those axes lie inside one
sheet each; what a domain pays for them is a sum over its *parts*, the cells that it holds of each
sheet. Families across sheets are paid by the largest part at least. Every sheet is cut into parts
that sum to its cells and every domain is filled by parts that sum to its own, as in cutting stock:
sizes that do not go together leave many small parts. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bound, lower_bound, rebate_bytes
from planner.place.part_flow import Stock
from planner.place.question import Charge, Kind, Question, charge_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SHEET_LEAST, _SHEET_MOST = 4, 256  # cells of a sheet
_PART_MOST = 96  # cells of a part, past which what it pays takes too long to work out
_INSIDE_LEAST = 0.4  # of what a seating cuts, by families inside sheets; below it nothing is gained
_INSIDE_ALMOST = 0.9  # of the most inside that any sheets have


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheeted:
    """A question cut into sheets.

    Args:
        question: the whole.
        axes: along which the cells of a sheet vary.
        sheet: one sheet: the families inside it, one domain that holds it all.
        part_bytes: what a domain pays inside a sheet at least for a part of 0, 1, … cells.
        across_bytes: what it pays at least for families across sheets that has such a part.
        first_bytes: both together, no less than their sum.
        given_bytes: what domains are charged too much by, in all [bytes].
        beside_bytes: what the families that are not in those pay at least, by themselves [bytes].
    """

    question: Question
    axes: tuple[int, ...]
    sheet: Question
    part_bytes: NDArray[np.float64]
    across_bytes: NDArray[np.float64]
    first_bytes: NDArray[np.float64]
    given_bytes: float
    beside_bytes: float

    @property
    def sheets(self) -> int:
        """Sheets of the grid [1]."""
        return self.question.cells // self.sheet.cells

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

    def pays(self, parts: Sequence[int]) -> float:
        """Return what a domain with these parts, the largest first, pays at least [bytes]."""
        rest = sum(float(self.part_bytes[k]) for k in parts[1:])
        return float(self.first_bytes[parts[0]]) + rest


def sheet_axes(question: Question, home: NDArray[np.int64]) -> list[tuple[int, ...]]:
    """Return the axes of sheets worth a look, the most promising first.

    Args:
        question: the grid and its charges.
        home: a seating; families that it cuts most had better lie inside sheets, shape [cells].
    """
    live = [i for i, n in enumerate(question.sizes) if n > 1]
    paid = {c: charge_bytes(question, c, home) for c in question.charges}
    total = sum(paid.values())
    inside: dict[tuple[int, ...], float] = {}
    for count in range(1, len(live)):
        for axes in combinations(live, count):
            cells = prod(question.sizes[i] for i in axes)
            largest = min(cells, max(question.capacities))
            if _SHEET_LEAST <= cells <= _SHEET_MOST and largest <= _PART_MOST:
                inside[axes] = sum(b for c, b in paid.items() if set(c.axes) <= set(axes))
    most = max(inside.values(), default=0.0)
    if most < _INSIDE_LEAST * total or not total:
        return []

    def cells_of(axes: tuple[int, ...]) -> tuple[int, float]:
        return prod(question.sizes[i] for i in axes), -inside[axes]

    almost = [axes for axes, b in inside.items() if b >= _INSIDE_ALMOST * most]
    return sorted(almost, key=cells_of)


def sheeted(question: Question, axes: tuple[int, ...]) -> Sheeted:
    """Return *question* cut into sheets along *axes*."""
    sizes = tuple(n if i in axes else 1 for i, n in enumerate(question.sizes))
    cells, seats = prod(sizes), max(question.capacities)
    inside, beside = [], []
    traces: dict[tuple[int, ...], float] = {}
    rebate = 0.0
    for charge in question.charges:
        if question.group_size(charge.axes) < 2:
            continue
        never_whole = charge.kind is Kind.RING and question.group_size(charge.axes) > seats
        if set(charge.axes) <= set(axes):
            inside.append(charge)
        elif charge.kind in (Kind.TOUCH, Kind.CHAIN) or never_whole:
            trace = tuple(i for i in charge.axes if sizes[i] > 1)
            traces[trace] = traces.get(trace, 0.0) + charge.weight_bytes
            if not never_whole:
                rebate += charge.weight_bytes * question.groups(charge.axes)
        else:
            beside.append(charge)
    each_bytes = traces.pop((), 0.0)  # every cell of a part is in another group
    across = tuple(
        Charge(axes=trace, kind=Kind.TOUCH, weight_bytes=w) for trace, w in traces.items()
    )
    sheet = Question(sizes=sizes, charges=tuple(inside), capacities=(cells,))
    joint = Question(sizes=sizes, charges=(*inside, *across), capacities=(cells,))
    trace_only = Question(sizes=sizes, charges=across, capacities=(cells,))
    rest = Question(sizes=question.sizes, charges=tuple(beside), capacities=question.capacities)
    held = np.arange(min(seats, cells) + 1)
    part_bytes = np.array([domain_bound(sheet, k) for k in held.tolist()])
    across_bytes = np.array([domain_bound(trace_only, k) for k in held.tolist()])
    both = np.array([domain_bound(joint, k) for k in held.tolist()])
    both = np.maximum(both, part_bytes + across_bytes)
    return Sheeted(
        question=question,
        axes=axes,
        sheet=sheet,
        part_bytes=part_bytes,
        across_bytes=across_bytes + each_bytes * held,
        first_bytes=both + each_bytes * held,
        given_bytes=rebate_bytes(sheet) * (question.cells // cells) + rebate,
        beside_bytes=lower_bound(rest) if beside else 0.0,
    )
