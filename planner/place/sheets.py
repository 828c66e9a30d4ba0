"""The lower bound once more, sheet by sheet: the cells along some axes, all others fixed.

Groups along axes of a sheet lie in one sheet each, so what a domain pays for them is a sum over the
sheets that it holds cells of, and no sheet holds more cells than it has. A domain of 72 cells in
sheets of 8 x 8 fills one and has eight cells in another: ``finner.py`` alone would spread them
over both as if there were but one. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bound, domain_bounds, loose_bound, rebate_bytes
from planner.place.fillings import cheapest_filling
from planner.place.question import Question

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

_SHEET_MOST = 64  # cells of a sheet, past which too many bounds would be worked out
_SHEETS_TRIED = 4  # kinds of sheets, those with the dearest families
_CANCELLED = 1e-14  # relative; what subtracting the rebate may leave of nought


def sheet_bound(question: Question) -> float:
    """Return bytes that every seating of *question* crosses at least [bytes]."""
    if len(question.capacities) < 2:
        return 0.0
    pays = paid_by_sheets(question)
    total = cheapest_filling(question.capacities, question.cells, pays)
    rebate = rebate_bytes(question)
    return max(0.0, total - rebate - rebate * _CANCELLED)


def paid_by_sheets(question: Question) -> Callable[[int], float]:
    """Return what a domain pays at least, by the cells that it holds [bytes]."""
    largest = min(max(question.capacities), question.cells)
    bare = Question(sizes=question.sizes, charges=question.charges, capacities=(question.cells,))
    spare = sum(question.capacities) > question.cells
    plain = loose_bound if spare else domain_bound
    sheets = [(_paid(bare, axes, largest), _outside(bare, axes)) for axes in _sheets(bare, largest)]

    def pays(held: int) -> float:
        if not held:
            return 0.0
        by_sheets = [float(paid[held]) + loose_bound(rest, held) for paid, rest in sheets]
        return max(plain(question, held), *by_sheets, 0.0)

    return pays


def _outside(question: Question, axes: tuple[int, ...]) -> Question:
    """Return the question of the families that do not lie in the sheets."""
    rest = tuple(c for c in question.charges if not set(c.axes) <= set(axes))
    return Question(sizes=question.sizes, charges=rest, capacities=question.capacities)


def _sheets(question: Question, largest: int) -> list[tuple[int, ...]]:
    """Return the axes of sheets worth a look: with two families inside, smaller than a domain."""
    live = [i for i, n in enumerate(question.sizes) if n > 1]
    found = []
    for count in range(2, len(live)):
        for axes in combinations(live, count):
            inside = [c for c in question.charges if set(c.axes) <= set(axes)]
            if prod(question.sizes[i] for i in axes) > min(_SHEET_MOST, largest - 1):
                continue
            if len({c.axes for c in inside}) > 1:
                price = sum(c.weight_bytes * question.groups(c.axes) for c in inside)
                found.append((-price, axes))
    return [axes for _, axes in sorted(found)[:_SHEETS_TRIED]]


@lru_cache(maxsize=256)
def _paid(question: Question, axes: tuple[int, ...], largest: int) -> NDArray[np.float64]:
    """Return what a domain of 0 … *largest* cells pays for the families inside the sheets."""
    inside = tuple(c for c in question.charges if set(c.axes) <= set(axes))
    sizes = tuple(n if i in axes else 1 for i, n in enumerate(question.sizes))
    cells = prod(sizes)
    sheet = Question(sizes=sizes, charges=inside, capacities=(cells,))
    of_sheet = domain_bounds(sheet, range(1, cells + 1), sharp=True)
    least = np.full(largest + 1, np.inf)
    least[0] = 0.0
    for c, cost in enumerate(of_sheet, start=1):
        for held in range(c, largest + 1):  # any number of sheets that hold c
            least[held] = min(least[held], least[held - c] + cost)
    return least
