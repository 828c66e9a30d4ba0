"""The question by slices: how often each way to seat one slice of the grid is used.

Along an axis whose values are interchangeable (no chain runs along it) a seating is a multiset of
*slices*: each is a way to seat the other axes' cells. With few domains and few cells to a slice
there are few ways, and counting them leaves none of the symmetry that makes one binary for each
seat hopeless: 16 x 4 blocks in 24 + 24 + 16 are 81 ways and 12 touches.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pulp

from planner.layout import groups_along
from planner.place.formulate import bound_directions
from planner.place.question import Kind, Question, held_units, spread_units
from planner.place.touch_search import least_touches

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.question import Charge


@dataclass(slots=True, kw_only=True)
class SliceModel:
    """A MILP over ways to seat a slice.

    Args:
        problem: the PuLP problem.
        question: what it stands for.
        axis: the axis that is cut into slices.
        unit_bytes: bytes of one unit of the objective [bytes].
        ways: domain of each cell of a slice, shape [ways, cells of a slice].
        uses: how many slices take each way.
        touch: touch[g,s] of the groups that run across slices, by (axes, group, domain).
        touched: expressions of the groups that a domain touches, by (axes, domain).
        objective: terms of the objective without constants.
        constant: what they leave out [units].
    """

    problem: pulp.LpProblem
    question: Question
    axis: int
    unit_bytes: float
    ways: NDArray[np.int64]
    uses: list[Any] = field(default_factory=list)
    touch: dict[tuple[tuple[int, ...], int, int], Any] = field(default_factory=dict)
    touched: dict[tuple[tuple[int, ...], int], Any] = field(default_factory=dict)
    objective: list[Any] = field(default_factory=list)
    constant: float = 0.0

    @property
    def slice_sizes(self) -> tuple[int, ...]:
        """Sizes of a slice's axes: the question's with the cut axis at 1."""
        sizes = self.question.sizes
        return tuple(1 if i == self.axis else n for i, n in enumerate(sizes))


def formulate_slices(question: Question, axis: int, unit_bytes: float) -> SliceModel:
    """Return the MILP of *question* cut into slices along *axis*; exact for every charge."""
    cells, domains = question.cells // question.sizes[axis], len(question.capacities)
    ways = np.array(np.unravel_index(np.arange(domains**cells), (domains,) * cells)).T
    model = SliceModel(
        problem=pulp.LpProblem("slices", pulp.LpMinimize),
        question=question,
        axis=axis,
        unit_bytes=unit_bytes,
        ways=ways,
    )
    _count_slices(model)
    _respect_capacities(model)
    for charge in question.charges:
        if question.group_size(charge.axes) > 1:
            _charge(model, charge)
    model.problem += pulp.lpSum(model.objective)
    _cut_by_bound(model)
    return model


def decoded(model: SliceModel, uses: Sequence[int]) -> NDArray[np.int64]:
    """Return the home of every cell when way i is used uses[i] times."""
    order = np.repeat(np.arange(len(uses)), uses)
    shape = tuple(reversed(model.slice_sizes))
    grids = [model.ways[way].reshape(shape) for way in order]
    place = len(shape) - 1 - model.axis
    return np.ascontiguousarray(np.concatenate(grids, axis=place)).ravel()


def _count_slices(model: SliceModel) -> None:
    """sum_w uses[w] = n,   uses[w] a whole number."""
    n = model.question.sizes[model.axis]
    model.uses = [
        model.problem.add_variable(f"uses_{w}", 0, n, pulp.LpInteger)
        for w in range(len(model.ways))
    ]
    model.problem += pulp.lpSum(model.uses) == n


def _respect_capacities(model: SliceModel) -> None:
    """sum_w held[w,s] uses[w] <= C_s   for every domain s."""
    for s, capacity in enumerate(model.question.capacities):
        model.problem += _weighted(model, (model.ways == s).sum(axis=1)) <= capacity


def _weighted(model: SliceModel, weights: NDArray[Any]) -> Any:
    return pulp.lpSum(
        float(weight) * use for weight, use in zip(weights, model.uses, strict=True) if weight
    )


def _charge(model: SliceModel, charge: Charge) -> None:
    price = charge.weight_bytes / model.unit_bytes
    if model.axis not in charge.axes:
        _charge_inside(model, charge, price)
        return
    inside = [i for i in charge.axes if i != model.axis]
    for g, members in enumerate(groups_along(model.slice_sizes, inside)):
        for s in range(len(model.question.capacities)):
            _charge_across(model, charge, price, g, members, s)
        if charge.kind is Kind.TOUCH:
            model.constant -= price


def _charge_inside(model: SliceModel, charge: Charge, price: float) -> None:
    """sum_w cost[w] uses[w]: the charge's groups lie inside a slice, so a way has a price."""
    groups = groups_along(model.slice_sizes, charge.axes)
    costs = np.array([spread_units(charge.kind, way[groups], charge.units) for way in model.ways])
    model.objective.append(_weighted(model, price * costs))
    for s in range(len(model.question.capacities)):
        touches = (model.ways[:, groups] == s).any(axis=2).sum(axis=1)
        model.touched[charge.axes, s] = _weighted(model, touches)


def _charge_across(
    model: SliceModel, charge: Charge, price: float, g: int, members: NDArray[np.int64], s: int
) -> None:
    """sum_{w touching} uses[w] <= n touch[g,s];   n whole[g,s] <= sum_{w holding all} uses[w]."""
    n = model.question.sizes[model.axis]
    there = model.ways[:, members] == s
    name = f"{'x'.join(map(str, charge.axes))}_{g}_{s}"
    touch = _touch(model, charge.axes, g, members, s)
    if charge.kind in (Kind.PAIRS, Kind.COPIES):
        size = model.question.group_size(charge.axes)
        units = held_units(charge, size)
        levels = [
            model.problem.add_variable(f"level_{charge.kind.value}_{name}_{j}", 0, 1, pulp.LpBinary)
            for j in range(min(size, model.question.capacities[s]) + 1)
        ]
        model.problem += pulp.lpSum(levels) == 1
        held = _weighted(model, there.sum(axis=1))
        model.problem += pulp.lpSum(j * level for j, level in enumerate(levels)) == held
        model.objective += [
            price * units[j] * level for j, level in enumerate(levels) if 0 < j < size
        ]
        return
    model.objective.append(price * touch)
    if charge.kind is Kind.RING:
        whole = model.problem.add_variable(f"whole_{name}", 0, 1, pulp.LpBinary)
        model.problem += n * whole <= _weighted(model, there.all(axis=1))
        model.objective.append(-price * whole)


def _touch(
    model: SliceModel, axes: tuple[int, ...], g: int, members: NDArray[np.int64], s: int
) -> Any:
    """Return touch[g,s], made once whatever the number of charges along the axes."""
    if (axes, g, s) not in model.touch:
        name = f"touch_{'x'.join(map(str, axes))}_{g}_{s}"
        touch = model.problem.add_variable(name, 0, 1, pulp.LpBinary)
        there = (model.ways[:, members] == s).any(axis=1)
        n = model.question.sizes[model.axis]
        model.problem += _weighted(model, there) <= n * touch
        model.touch[axes, g, s] = touch
        model.touched[axes, s] = model.touched.get((axes, s), 0) + touch
    return model.touch[axes, g, s]


def _cut_by_bound(model: SliceModel) -> None:
    """sum_S w_S t_S(s) >= least_touches(C_s)   for every full domain s, in several directions w."""
    question = model.question
    if sum(question.capacities) != question.cells:
        return
    for s, capacity in enumerate(question.capacities):
        if capacity == 0:
            continue
        for direction in bound_directions(question, capacity):
            if any((axes, s) not in model.touched for axes in direction):
                continue
            scale = max(direction.values())
            weights = [weight / scale for weight in direction.values()]
            least = least_touches(question.sizes, list(direction), weights, capacity)
            held = pulp.lpSum(
                weight * model.touched[axes, s]
                for axes, weight in zip(direction, weights, strict=True)
            )
            model.problem += held >= least * (1 - 1e-9)
