"""Families across sheets: how they lie to the sheets, and what parts pay for them by their rank.

Some are told by how many sheets a domain touches over a place, some by the cells that it holds of
every group. Either way the parts of a domain pay least if they lie one upon another. Proof:
``FORMULATION.md``, "Parts of sheets" and "Counted families".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bounds
from planner.place.floors import floors
from planner.place.question import Charge, Kind, Question

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SHARP_BEYOND = 4  # sheets beyond the fewest that a domain holds cells of, with a sharp bound
_SAME = 1e-12  # relative; rounding of a sum of slopes


@dataclass(frozen=True, slots=True, kw_only=True)
class SortedOut:
    """The charges of a question by how they lie to its sheets.

    Args:
        inside: along axes of a sheet.
        across: those whose groups are told by how many sheets a domain touches, over one cell or
            one group of the *trace*, the axes of a sheet that they run along; as outer charges.
        never_given_bytes: the rebate of those that are rings, too long for any domain [bytes].
        counted: all others, where they are to be told by the cells held in every group.
        beside: those where they are not.
    """

    inside: tuple[Charge, ...]
    across: dict[tuple[int, ...], tuple[Charge, ...]]
    never_given_bytes: float
    counted: tuple[Charge, ...]
    beside: tuple[Charge, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """A family across sheets, told by the cells held in every group.

    Args:
        units_bytes: what a domain pays that holds 0, 1, … cells of a group; concave, 0 for none.
        width: cells of a group inside a sheet [1].
    """

    units_bytes: NDArray[np.float64]
    width: int

    @property
    def each_bytes(self) -> float:
        """What a first part pays for a cell where it holds all that groups have in a sheet."""
        return float(self.units_bytes[self.width]) / self.width

    def first(self, trace: tuple[int, ...]) -> Charge:
        """Return what a first part pays besides, as a family of a sheet."""
        line = self.units_bytes[: self.width + 1] - self.each_bytes * np.arange(self.width + 1)
        units = (0.0, *line[1:-1].tolist(), 0.0)
        return Charge(axes=trace, kind=Kind.COPIES, weight_bytes=1.0, units=units)

    def by_rank(self, held: NDArray[np.int64], told: int) -> NDArray[np.float64]:
        """Return what parts pay at least, by rank and cells, shape [told, numbers of cells].

        As if the parts before held all that groups have in their sheets: units grow less and less.
        Of a part's groups in its sheet as many as can be are held as wholes, and one for the rest.
        """
        sheets = (len(self.units_bytes) - 1) // self.width
        before = np.arange(sheets)[:, None] * self.width
        more = self.units_bytes[before + np.arange(self.width + 1)] - self.units_bytes[before]
        paid = more[:, [-1]] * (held // self.width) + more[:, held % self.width]
        taken: NDArray[np.float64] = paid[np.minimum(np.arange(told), sheets - 1)]
        taken[-1] = paid[min(told, sheets) - 1 :].min(axis=0)
        return taken


def sorted_out(question: Question, axes: set[int], *, counted: bool) -> SortedOut:
    """Return the charges of *question* by how they lie to its sheets along *axes*.

    Args:
        question: the whole.
        axes: of a sheet.
        counted: whether families that no touches tell are told by the cells held in every group.
    """
    inside, beside = [], []
    across: dict[tuple[int, ...], list[Charge]] = {}
    never_given, seats = 0.0, max(question.capacities)
    for charge in question.charges:
        live = {i for i in charge.axes if question.sizes[i] > 1}
        if not live:
            continue
        trace, kind, weight = tuple(sorted(live & axes)), charge.kind, charge.weight_bytes
        if kind is Kind.RING and question.group_size(charge.axes) > seats:
            kind = Kind.TOUCH  # every group touched is held in part
        if live <= axes:
            inside.append(charge)
        elif not trace:
            across.setdefault((), []).append(charge)
        elif kind in (Kind.TOUCH, Kind.CHAIN):  # a chain touches no fewer domains than it crosses
            outer = tuple(i for i in charge.axes if i not in axes)
            across.setdefault(trace, []).append(
                Charge(axes=outer, kind=Kind.TOUCH, weight_bytes=weight)
            )
            if charge.kind is Kind.RING:
                never_given += weight * question.groups(charge.axes)
        else:
            beside.append(charge)
    return SortedOut(
        inside=tuple(inside),
        across={trace: tuple(charges) for trace, charges in across.items()},
        never_given_bytes=never_given,
        counted=tuple(c for c in beside if counted and c.kind is not Kind.ENDS),
        beside=tuple(c for c in beside if not counted or c.kind is Kind.ENDS),
    )


def slopes_of(outer: Question, seats: int, cells: int, told: int) -> NDArray[np.float64]:
    """Return by how much one more sheet adds to what a domain pays, never growing [bytes].

    Of a concave function below the bound of a domain with 1, 2, … cells of the grid of sheets; near
    the bound where a domain of *seats* in sheets of *cells* has its parts one upon another. Of
    *told* ranks; the last is that of all further sheets.
    """
    fewest, most = -(-seats // cells), min(outer.cells, seats)
    near = min(most, fewest + _SHARP_BEYOND)
    if max(outer.sizes) == outer.cells:  # a line: of every family there is one group to touch
        bound = floors(outer, np.arange(1, most + 1))
    else:
        bound = np.array(
            domain_bounds(outer, range(1, near + 1), sharp=True)
            + domain_bounds(outer, range(near + 1, most + 1), sharp=False)
        )
    filled = seats % cells or cells
    weight = np.full(most, 1e-3)
    weight[min(fewest, most) - 1] += filled / cells
    if 1 < fewest <= most:
        weight[fewest - 2] += 1 - filled / cells
    below = _concave_below(bound, weight)
    slopes = np.diff(below, prepend=0.0)
    ranks = np.minimum(np.arange(told), most - 1)
    taken: NDArray[np.float64] = slopes[ranks]
    taken[-1] = slopes[min(told - 1, most - 1) :].min()
    return np.minimum.accumulate(taken)


def _concave_below(bound: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a concave function f(1), f(2), … below *bound* with f(0) = 0, of the most weight."""
    from scipy.optimize import linprog  # noqa: PLC0415 - most placements never need it

    n, scale = len(bound), max(float(bound.max()), 1e-300)
    slopes = np.minimum.accumulate(np.diff(bound, prepend=0.0))
    found: NDArray[np.float64] = np.cumsum(slopes)
    if n == 1 or (bound - found).max() <= _SAME * scale:
        return found
    bends = np.eye(n, k=1) - 2 * np.eye(n) + np.eye(n, k=-1)
    solved = linprog(
        -weight, A_ub=bends[:-1], b_ub=np.zeros(n - 1), bounds=[(None, b) for b in bound / scale]
    )
    sheets = np.arange(1.0, n + 1)
    if solved.status != 0:
        return sheets * float((bound / sheets).min())
    slopes = np.minimum.accumulate(np.diff(solved.x, prepend=0.0)) * scale
    found = np.cumsum(slopes)
    return found - sheets * max(0.0, float(((found - bound) / sheets).max()))
