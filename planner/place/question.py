"""What is asked, as plain data; and what a seating costs, without a solver.

A *question* is a grid of cells (ranks, or blocks of ranks placed together), charges on the lines
and planes of that grid, and the capacities of the domains. Symbols as in ``FORMULATION.md``:
n_i axis sizes, S the axes of a family, C a domain's capacity, t the groups a domain touches.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InfeasibleError
from planner.layout import groups_along
from planner.place.copies import copy_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.layout import Layout
    from planner.traffic import Family


class Kind(Enum):
    """How a group's crossing bytes depend on the way it is spread over k domains."""

    TOUCH = "touch"  # weight x (k - 1): hierarchical reductions, gathers, scatters
    PAIRS = "pairs"  # weight x sum n_i (n - n_i): direct all-to-all
    RING = "ring"  # weight x k if k > 1: a ring laid contiguously
    CHAIN = "chain"  # weight x neighbours in different domains
    ENDS = "ends"  # weight if the first and the last member are in different domains
    COPIES = "copies"  # weight x sum units[n_i]: one copy of a token for each domain


_FEW_CELLS, _GROUPINGS = 2_048, 512
"""Groups of grids of so few cells are kept, of so many families: 8 MB."""

_KIND_OF = {
    "all_reduce": (Kind.TOUCH, 2.0),
    "reduce_scatter": (Kind.TOUCH, 1.0),
    "all_gather": (Kind.TOUCH, 1.0),
    "all_to_all": (Kind.PAIRS, 1.0),
    "domain_all_to_all": (Kind.COPIES, 1.0),
    "ring": (Kind.RING, 1.0),
    "chain": (Kind.CHAIN, 1.0),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Charge:
    """What every group along some axes pays for its spread.

    Args:
        axes: indices of the axes a group's cells vary along.
        kind: the cost function.
        weight_bytes: bytes of one unit of the cost function, per step [bytes].
        units: of ``COPIES``: units that a domain holding j members costs, j = 0 to the group's
            size; concave, 0 at both ends.
    """

    axes: tuple[int, ...]
    kind: Kind
    weight_bytes: float
    units: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """Seat the cells of a grid in domains so that the charges are least.

    Args:
        sizes: cells along each axis, innermost first [1].
        charges: at most one for each pair of axes and kind (and units).
        capacities: cells that each domain can hold [1].

    Raises:
        InfeasibleError: more cells than seats.
    """

    sizes: tuple[int, ...]
    charges: tuple[Charge, ...]
    capacities: tuple[int, ...]

    def __post_init__(self) -> None:
        if sum(self.capacities) < self.cells:
            raise InfeasibleError(
                f"{self.cells} ranks do not fit on {sum(self.capacities)} seats: "
                f"{self.cells - sum(self.capacities)} too few"
            )

    @property
    def cells(self) -> int:
        """Cells of the grid [1]."""
        return prod(self.sizes)

    def group_size(self, axes: Sequence[int]) -> int:
        """Cells of one group along *axes* [1]."""
        return prod(self.sizes[i] for i in axes)

    def groups(self, axes: Sequence[int]) -> int:
        """Groups along *axes* [1]."""
        return self.cells // self.group_size(axes)


def charges_of(families: Sequence[Family]) -> tuple[Charge, ...]:
    """Return the charges of *families*, those of equal axes and kind added up."""
    weights: dict[tuple[tuple[int, ...], Kind, tuple[float, ...]], float] = {}
    for family in families:
        kind, factor = _KIND_OF[family.collective]
        weight = factor * family.payload_bytes * family.times_per_step
        if family.ends_only:
            kind = Kind.ENDS
        units: tuple[float, ...] = ()
        if kind is Kind.COPIES:
            units = copy_units(family.group_size, family.experts, family.top_k)
        key = (family.axes, kind, units)
        weights[key] = weights.get(key, 0.0) + weight
    return tuple(
        Charge(axes=axes, kind=kind, weight_bytes=weight, units=units)
        for (axes, kind, units), weight in weights.items()
        if weight > 0
    )


def ask(layout: Layout, families: Sequence[Family], capacities: Sequence[int]) -> Question:
    """Return the question of seating *layout*'s ranks in domains of *capacities*."""
    return Question(
        sizes=tuple(axis.size for axis in layout.axes),
        charges=charges_of(families),
        capacities=tuple(capacities),
    )


def cut_bytes(question: Question, home: NDArray[np.int64]) -> float:
    """Return the bytes that cross between domains in one step [bytes].

    Args:
        question: the grid and its charges.
        home: domain of each cell, shape [cells].
    """
    return float(sum(charge_bytes(question, charge, home) for charge in question.charges))


def charge_bytes(question: Question, charge: Charge, home: NDArray[np.int64]) -> float:
    """Return what one charge adds to ``cut_bytes`` [bytes]."""
    find = _few_groups if question.cells <= _FEW_CELLS else groups_along
    groups = find(question.sizes, charge.axes)
    return charge.weight_bytes * spread_units(charge.kind, home[groups], charge.units)


@lru_cache(maxsize=_GROUPINGS)
def _few_groups(sizes: tuple[int, ...], axes: tuple[int, ...]) -> NDArray[np.int64]:
    """Return ``groups_along``, kept for the next seating, and not to be written to."""
    groups = groups_along(sizes, axes)
    groups.flags.writeable = False
    return groups


def spread_units(kind: Kind, homes: NDArray[np.int64], units: Sequence[float] = ()) -> float:
    """Return the units of cost of groups whose members sit in *homes*.

    Args:
        kind: the cost function.
        homes: domain of each member, shape [groups, group_size].
        units: of ``COPIES``, as in ``Charge``.

    >>> spread_units(Kind.TOUCH, np.array([[0, 0, 1, 2]]))
    2.0
    >>> spread_units(Kind.PAIRS, np.array([[0, 0, 1, 2]]))
    10.0
    """
    if homes.shape[1] < 2:
        return 0.0
    if kind is Kind.CHAIN:
        return float(np.count_nonzero(homes[:, 1:] != homes[:, :-1]))
    if kind is Kind.ENDS:
        return float(np.count_nonzero(homes[:, 0] != homes[:, -1]))
    ordered = np.sort(homes, axis=1)
    changes = ordered[:, 1:] != ordered[:, :-1]
    if kind is Kind.PAIRS:
        runs = _runs(changes)
        return float(homes.size * homes.shape[1] - int((runs * runs).sum()))
    if kind is Kind.COPIES:
        return float(np.array(units)[_runs(changes)].sum())
    if kind is Kind.RING:
        parted = np.count_nonzero(ordered[:, 0] != ordered[:, -1])
        return float(np.count_nonzero(changes) + parted)
    return float(np.count_nonzero(changes))


def held_units(charge: Charge, size: int) -> tuple[float, ...]:
    """Return what a domain costs that holds j of a group's *size* members, j = 0 to size.

    Of ``PAIRS`` and ``COPIES``, whose cost is the sum over domains of that; concave in j.
    """
    return charge.units or tuple(float(j * (size - j)) for j in range(size + 1))


def touched_units(charge: Charge, size: int) -> NDArray[np.float64]:
    """Return what a domain pays per weight that holds j of a group's members, shape [size + 1].

    Of charges that have no order along a group; what a reduction pays for one domain of each group
    is not taken off.
    """
    units = np.ones(size + 1)
    if charge.kind in (Kind.PAIRS, Kind.COPIES):
        units = np.array(held_units(charge, size))
    elif charge.kind is Kind.RING:
        units[size] = 0.0
    units[0] = 0.0
    return units


def _runs(changes: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return n_i of every domain that a group touches, from sorted neighbours' changes."""
    groups, gaps = changes.shape
    ends = np.ones((groups, gaps + 1), dtype=bool)
    ends[:, :-1] = changes
    marks = np.flatnonzero(ends)
    runs = marks + 1
    runs[1:] -= runs[:-1].copy()
    return runs


def coarsen(question: Question, tile: Sequence[int], capacities: Sequence[int]) -> Question:
    """Return the question in which boxes of *tile* cells are the new cells.

    Exact for seatings that keep every box together: a coarse group stands for the fine groups
    that run through the same boxes, and a pair of boxes for the pairs of their members. Only a
    chain along several axes, as a flat ring in rank order may be, is priced too low.

    Args:
        question: the fine question.
        tile: cells of a box along each axis, each divides the axis.
        capacities: boxes that each domain can hold [1].
    """
    sizes = tuple(size // a for size, a in zip(question.sizes, tile, strict=True))
    charges = []
    for charge in question.charges:
        inside = prod(tile[i] for i in charge.axes)
        fine_groups = prod(tile) // inside
        if prod(sizes[i] for i in charge.axes) == 1:
            continue
        factor = fine_groups * (inside**2 if charge.kind is Kind.PAIRS else 1)
        charges.append(
            replace(charge, weight_bytes=charge.weight_bytes * factor, units=charge.units[::inside])
        )
    return Question(sizes=sizes, charges=tuple(charges), capacities=tuple(capacities))


def refine_home(
    question: Question, tile: Sequence[int], coarse_home: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the home of every fine cell when the boxes of *tile* sit as in *coarse_home*."""
    sizes = [size // a for size, a in zip(question.sizes, tile, strict=True)]
    grid = coarse_home.reshape(tuple(reversed(sizes)))
    for axis, a in enumerate(reversed(list(tile))):
        grid = np.repeat(grid, a, axis=axis)
    return np.ascontiguousarray(grid.ravel())


def whole_boxes(sizes: Sequence[int]) -> list[tuple[int, ...]]:
    """Return the sides of all boxes of whole axes, a single cell among them, the largest first.

    >>> whole_boxes((2, 3))
    [(2, 3), (1, 3), (2, 1), (1, 1)]
    """
    boxes = [tuple(1 for _ in sizes)]
    for axis, n in enumerate(sizes):
        if n > 1:
            boxes += [(*box[:axis], n, *box[axis + 1 :]) for box in boxes]
    return sorted(boxes, key=prod, reverse=True)
