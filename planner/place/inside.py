"""Inward: which cells of a domain share an inner domain.

Once it is known what a domain holds, its inside is a question of its own, because costs are sums
over domains of what each holds: the rest of every group only adds a constant. Domains that hold
the same shape, and offer the same inner seats, are answered once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import permutations
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.exchange import exchanged
from planner.place.nets import nets_of, weave
from planner.place.question import Charge, Kind, Question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from planner.place.labour import Labour
    from planner.place.nets import Weave
    from planner.place.tree import Tree

_ORDERS_TRIED = 24
_EXCHANGED_CELLS = 1024  # cells of one domain past which no exchanges are tried
_STARTS = 2  # orders that exchanges start from


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """What a domain holds, moved to the origin.

    Args:
        digits: of each cell along each axis, shape [cells, axes].
        sizes: cells along each axis, if the shape is a box.
    """

    digits: NDArray[np.int64]
    sizes: tuple[int, ...] | None


def sunk(
    question: Question, tree: Tree, tier: int, home: NDArray[np.int64], *, labour: Labour
) -> NDArray[np.int64]:
    """Return the home at the innermost tier, given that at *tier*; tier after tier inwards.

    Args:
        question: the grid and its charges; its capacities are not used.
        tree: the domains.
        tier: where *home* is given.
        home: domain of each cell there.
        labour: what the search may still do; past it cells are seated in order.
    """
    woven = cache(lambda: weave(question))
    for outer in range(tier, 0, -1):
        home = _sunk_once(question, tree, outer, home, woven, labour)
    return home


def _sunk_once(
    question: Question,
    tree: Tree,
    outer: int,
    home: NDArray[np.int64],
    woven: Callable[[], Weave],
    labour: Labour,
) -> NDArray[np.int64]:
    capacities = np.array(tree.capacities[outer - 1])
    children = np.lexsort([-capacities, tree.parents[outer - 1]])  # the fullest of each first
    first_child = np.searchsorted(
        tree.parents[outer - 1][children], np.arange(len(tree.capacities[outer]) + 1)
    )
    by_home = np.argsort(home, kind="stable")
    first_cell = np.searchsorted(home[by_home], np.arange(len(tree.capacities[outer]) + 1))
    known: dict[tuple[bytes, tuple[int, ...]], NDArray[np.int64]] = {}
    inner = np.empty_like(home)
    for domain in np.unique(home).tolist():
        cells = by_home[first_cell[domain] : first_cell[domain + 1]]
        inside = children[first_child[domain] : first_child[domain + 1]]
        seats = tuple(capacities[inside].tolist())
        shape = _shape(question, cells)
        key = str(shape.sizes).encode() if shape.sizes else shape.digits.tobytes(), seats
        if key not in known:
            known[key] = _seated(question, woven, cells, shape, seats, labour)
        inner[cells] = inside[known[key]]
    return inner


def _shape(question: Question, cells: NDArray[np.int64]) -> _Shape:
    """Return the shape of *cells*, ascending: values of an axis are renumbered from nought.

    Along an axis with a chain the distances stay; and if an end of it is held, so does the place.
    """
    ordered = {
        axis
        for charge in question.charges
        if charge.kind in (Kind.CHAIN, Kind.ENDS)
        for axis in charge.axes
    }
    digits, sizes, left = [], [], cells
    for axis, size in enumerate(question.sizes):
        digit = left % size
        left = left // size
        held, renumbered = np.unique(digit, return_inverse=True)
        if axis in ordered:
            at_end = held[0] == 0 or held[-1] == size - 1
            renumbered = digit if at_end else digit - held[0]
            run = int(held[-1] - held[0]) + 1
            sizes.append(run if run == len(held) else 0)
        else:
            sizes.append(len(held))
        digits.append(renumbered)
    box = int(np.prod(sizes)) == len(cells)
    return _Shape(
        digits=np.column_stack(digits) if digits else np.zeros((len(cells), 0), np.int64),
        sizes=tuple(sizes) if box else None,
    )


def _seated(
    question: Question,
    woven: Callable[[], Weave],
    cells: NDArray[np.int64],
    shape: _Shape,
    seats: Sequence[int],
    labour: Labour,
) -> NDArray[np.int64]:
    """Return the inner domain, as an index into *seats*, of each of *cells*."""
    in_order = np.repeat(np.arange(len(seats)), seats)
    if len(seats) == 1:
        return in_order[: len(cells)]
    inside = None if shape.sizes is None else box_question(question, shape.sizes, seats)
    answer = None if inside is None else labour.quick(inside)
    if answer is not None:
        return np.array(answer.home)
    spare = len(in_order) - len(cells)
    nets = None
    if len(in_order) <= _EXCHANGED_CELLS and not labour.over:
        nets = nets_of(woven(), cells, np.arange(len(cells)), len(in_order))
    ways = list(_in_orders(shape.digits, in_order, spare))
    if nets is None:
        return ways[0][: len(cells)]
    costs = [nets.cost_bytes(way) for way in ways]
    best = [ways[i] for i in np.argsort(costs, kind="stable")[:_STARTS]]
    found = [exchanged(nets, way, np.zeros(len(in_order), np.int64), labour) for way in best]
    return min(found, key=nets.cost_bytes)[: len(cells)]


def _in_orders(
    digits: NDArray[np.int64], in_order: NDArray[np.int64], spare: int
) -> Iterator[NDArray[np.int64]]:
    """Yield ways to fill the seats along the axes, in several orders; spare seats come last."""
    live = [axis for axis in range(digits.shape[1]) if np.ptp(digits[:, axis])]
    for count, order in enumerate(permutations(live)):
        if count == _ORDERS_TRIED:
            return
        way = np.empty_like(in_order)
        keys = [digits[:, axis] for axis in order] or [np.arange(len(digits))]
        way[np.lexsort(keys)] = in_order[: len(digits)]
        way[len(digits) :] = in_order[len(in_order) - spare :]
        yield way


def box_question(
    question: Question, sizes: Sequence[int], capacities: Sequence[int]
) -> Question | None:
    """Return the question of seating one box of the grid, or None if a charge does not fit in one.

    Charges keep their weight per group. A ring that the box holds in part pays for each domain it
    touches, as a reduction does; the closing link of a chain is charged where both ends are held.
    """
    charges: dict[tuple[tuple[int, ...], Kind, tuple[float, ...]], float] = {}
    for charge in question.charges:
        held = prod(sizes[axis] for axis in charge.axes)
        whole = all(sizes[axis] == question.sizes[axis] for axis in charge.axes)
        kind = charge.kind
        if kind is Kind.CHAIN and not whole and len(charge.axes) > 1:
            return None
        if kind is Kind.ENDS and not whole:
            continue
        if kind is Kind.RING and not whole:
            kind = Kind.TOUCH
        # less a straight line through both ends, of which all parts together pay a constant
        units = tuple(
            paid - j / held * charge.units[held] for j, paid in enumerate(charge.units[: held + 1])
        )
        key = (charge.axes, kind, units)
        charges[key] = charges.get(key, 0.0) + charge.weight_bytes
    return Question(
        sizes=tuple(sizes),
        charges=tuple(
            Charge(axes=axes, kind=kind, weight_bytes=weight, units=units)
            for (axes, kind, units), weight in charges.items()
        ),
        capacities=tuple(capacities),
    )
