"""The bound of a question whose slabs are kept on named domains: slab and rest, each alone.

Proof and table of what a group pays besides its two parts: ``FORMULATION.md``, *Rules*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.place.question import Charge, Kind, Question
from planner.place.rules_slabs import rows_along
from planner.place.solve import solve_within

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.rules_bound import BoundRules

_CELLS = 20_000


def slab_bound(coarse: Question, rules: BoundRules, time_limit_s: float) -> float:
    """Return what every seating that keeps the named domains crosses at least [bytes].

    0 where it is not a set of values of one axis that they are about.

    Args:
        coarse: the grid of boxes that the rules keep together.
        rules: what is to be kept.
        time_limit_s: seconds for the solvers, over all parts [s].
    """
    if rules.allowed is None or coarse.cells > _CELLS:
        return 0.0
    best = 0.0
    for axis, n in enumerate(coarse.sizes):
        if n > 1 and (rows := rows_along(coarse, rules.allowed, axis)) is not None:
            best = max(best, _bound(coarse, rows, axis, time_limit_s))
    return best


def _bound(question: Question, rows: NDArray[np.bool_], axis: int, time_limit_s: float) -> float:
    """Return the bound of a grid whose values along *axis* may sit in the domains of *rows*."""
    open_to = rows.sum(axis=1)
    if open_to.min() == rows.shape[1]:
        return solve_within(question, time_limit_s=time_limit_s).lower_bound_bytes
    first = int(np.argmin(open_to))
    inside = (rows == rows[first]).all(axis=1)
    domains = rows[first]
    if inside.all():
        return _solved(question, question.capacities, domains, time_limit_s)
    capacities = np.array(question.capacities)
    slab = _part(question, axis, inside)
    rest = _part(question, axis, ~inside)
    spare = int(capacities[domains].sum()) - slab.cells
    if spare < 0:
        return 0.0
    split = [_split(question, charge, axis, inside, spare) for charge in question.charges]
    slab = replace(slab, charges=_live(slab, [s.slab for s in split]))
    rest = replace(
        rest,
        charges=_live(rest, [s.rest for s in split]),
        capacities=tuple(np.where(domains, np.minimum(capacities, spare), capacities).tolist()),
    )
    return (
        _solved(slab, slab.capacities, domains, time_limit_s / 2)
        + _bound(rest, rows[~inside], axis, time_limit_s / 2)
        + sum(s.more_bytes for s in split)
    )


def _solved(
    question: Question, capacities: Sequence[int], domains: NDArray[np.bool_], time_limit_s: float
) -> float:
    open_ones = tuple(c for c, is_open in zip(capacities, domains, strict=True) if is_open)
    narrowed = replace(question, capacities=open_ones)
    return solve_within(narrowed, time_limit_s=time_limit_s).lower_bound_bytes


def _part(question: Question, axis: int, inside: NDArray[np.bool_]) -> Question:
    count = int(inside.sum())
    sizes = tuple(count if i == axis else n for i, n in enumerate(question.sizes))
    return replace(question, sizes=sizes, charges=())


def _live(question: Question, charges: Sequence[Charge | None]) -> tuple[Charge, ...]:
    return tuple(c for c in charges if c is not None and question.group_size(c.axes) > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Split:
    """A charge in the slab and in the rest, and what its groups pay besides at least [bytes]."""

    slab: Charge | None
    rest: Charge | None
    more_bytes: float


def _split(
    question: Question, charge: Charge, axis: int, inside: NDArray[np.bool_], spare: int
) -> _Split:
    """Return the row of the table for one charge; without the slab's part where that is more."""
    if axis not in charge.axes:
        return _Split(slab=charge, rest=charge, more_bytes=0.0)
    if charge.kind is Kind.ENDS:
        return _split_ends(question, charge, axis, inside, spare)
    if charge.kind is Kind.COPIES or (charge.kind is Kind.CHAIN and charge.axes != (axis,)):
        return _Split(slab=None, rest=None, more_bytes=0.0)
    groups, n = question.groups(charge.axes), question.sizes[axis]
    beside = question.group_size(charge.axes) // n
    count = int(inside.sum())
    if charge.kind is Kind.TOUCH:
        units = groups - spare
    elif charge.kind is Kind.PAIRS:
        units = 2 * (count * (n - count) * beside**2 * groups - spare * count * beside)
        return _Split(slab=charge, rest=charge, more_bytes=charge.weight_bytes * max(0, units))
    elif charge.kind is Kind.CHAIN:
        hops = int((inside[1:] != inside[:-1]).sum())
        joins = sum(_joins(np.flatnonzero(part)) for part in (inside, ~inside))
        units = (hops - joins) * groups - 2 * spare
    else:
        units = -spare
    if units < 0:
        return _Split(slab=None, rest=charge, more_bytes=0.0)
    return _Split(slab=charge, rest=charge, more_bytes=charge.weight_bytes * units)


def _joins(values: NDArray[np.int64]) -> int:
    """Return how many neighbours of the closed-up chain are no neighbours in the whole one."""
    return int((np.diff(values) > 1).sum())


def _split_ends(
    question: Question, charge: Charge, axis: int, inside: NDArray[np.bool_], spare: int
) -> _Split:
    if charge.axes != (axis,):
        return _Split(slab=None, rest=None, more_bytes=0.0)
    if inside[0] == inside[-1]:
        return _Split(
            slab=charge if inside[0] else None,
            rest=None if inside[0] else charge,
            more_bytes=0.0,
        )
    units = max(0, question.groups(charge.axes) - spare)
    return _Split(slab=None, rest=None, more_bytes=charge.weight_bytes * units)
