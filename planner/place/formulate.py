"""Question to MILP: one function for each family of rules.

Symbols: seat[b,s] = 1 when cell b sits in domain s; touch[g,s] = 1 when group g has a member in
s; whole[g,s] = 1 when all of g is in s; level[g,s,j] = 1 when j members of g are in s; cross[e] = 1
when the two neighbours of link e are apart. Rates are divided by ``Model.unit_bytes``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pulp

from planner.layout import groups_along
from planner.place.bound import prices_by_axes
from planner.place.finner import touch_front
from planner.place.question import Kind, held_units
from planner.place.touch_search import least_touches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from planner.place.question import Charge, Question


@dataclass(slots=True, kw_only=True)
class Model:
    """A MILP under construction and the variables that decode it.

    Args:
        problem: the PuLP problem.
        question: what it stands for.
        unit_bytes: bytes of one unit of the objective [bytes].
        seat: seat[b,s] by (cell, domain); a pair that symmetry forbids is absent.
        touch: touch[g,s] by (axes, group, domain).
        objective: the objective's terms, without constants, which PuLP 3 hides from HiGHS.
        constant: what they leave out [units].
        sorts: of each domain, what else than its capacity tells it from others; () for nothing.
    """

    problem: pulp.LpProblem
    question: Question
    unit_bytes: float
    seat: dict[tuple[int, int], Any] = field(default_factory=dict)
    touch: dict[tuple[tuple[int, ...], int, int], Any] = field(default_factory=dict)
    objective: list[Any] = field(default_factory=list)
    constant: float = 0.0
    sorts: tuple[int, ...] = ()


def formulate(question: Question, unit_bytes: float, sorts: Sequence[int] = ()) -> Model:
    """Return the MILP of *question*: exact costs, the bound as cuts, symmetry broken.

    Args:
        question: the grid, its charges, the domains' capacities.
        unit_bytes: bytes of one unit of the objective [bytes].
        sorts: as of ``Model``: domains of other sorts are not taken for interchangeable.
    """
    model = Model(
        problem=pulp.LpProblem("placement", pulp.LpMinimize),
        question=question,
        unit_bytes=unit_bytes,
        sorts=tuple(sorts),
    )
    _add_seats(model)
    _seat_every_cell(model)
    _respect_capacities(model)
    for axes in sorted({charge.axes for charge in question.charges}):
        if question.group_size(axes) > 1:
            _mark_touches(model, axes)
    for charge in question.charges:
        if question.group_size(charge.axes) > 1:
            _charge(model, charge)
    model.problem += pulp.lpSum(model.objective)
    _cut_by_bound(model)
    _order_axes(model)
    _order_equal_domains(model)
    return model


def _binary(model: Model, name: str) -> Any:
    return model.problem.add_variable(name, 0, 1, pulp.LpBinary)


def _share(model: Model, name: str) -> Any:
    return model.problem.add_variable(name, 0, 1, pulp.LpContinuous)


def _require(model: Model, rule: Any) -> None:
    model.problem += rule


def _domains(model: Model) -> range:
    return range(len(model.question.capacities))


def _add_seats(model: Model) -> None:
    """seat[b,s] in {0, 1}."""
    for b in range(model.question.cells):
        for s in _domains(model):
            model.seat[b, s] = _binary(model, f"seat_{b}_{s}")


def _seat_every_cell(model: Model) -> None:
    """sum_s seat[b,s] = 1   for every cell b."""
    for b in range(model.question.cells):
        _require(model, pulp.lpSum(model.seat[b, s] for s in _domains(model)) == 1)


def _respect_capacities(model: Model) -> None:
    """sum_b seat[b,s] <= C_s   for every domain s."""
    for s, capacity in enumerate(model.question.capacities):
        held = pulp.lpSum(model.seat[b, s] for b in range(model.question.cells))
        _require(model, held <= capacity)


def _mark_touches(model: Model, axes: tuple[int, ...]) -> None:
    """touch[g,s] >= seat[b,s]   for b in g   (binary: HiGHS proves ten times faster so)."""
    for g, members in enumerate(groups_along(model.question.sizes, axes).tolist()):
        for s in _domains(model):
            touch = _binary(model, f"touch_{_tag(axes)}_{g}_{s}")
            model.touch[axes, g, s] = touch
            for b in members:
                _require(model, touch >= model.seat[b, s])


def _tag(axes: tuple[int, ...]) -> str:
    return "x".join(str(a) for a in axes)


def _charge(model: Model, charge: Charge) -> None:
    groups = groups_along(model.question.sizes, charge.axes).tolist()
    price = charge.weight_bytes / model.unit_bytes
    for g, members in enumerate(groups):
        if charge.kind is Kind.TOUCH:
            terms = _touch_cost(model, charge, g)
        elif charge.kind is Kind.RING:
            terms = _ring_cost(model, charge, g, members)
        elif charge.kind in (Kind.PAIRS, Kind.COPIES):
            terms = _pairs_cost(model, charge, g, members)
        elif charge.kind is Kind.CHAIN:
            terms = _chain_cost(model, charge, g, members)
        else:
            terms = _apart(model, f"ends_{_tag(charge.axes)}_{g}", members[0], members[-1])
        model.objective.append(price * terms)


def _touch_cost(model: Model, charge: Charge, g: int) -> Any:
    """sum_s touch[g,s], and a constant of -1 for each group."""
    model.constant -= charge.weight_bytes / model.unit_bytes
    return pulp.lpSum(model.touch[charge.axes, g, s] for s in _domains(model))


def _ring_cost(model: Model, charge: Charge, g: int, members: list[int]) -> Any:
    """sum_s (touch[g,s] - whole[g,s]),   whole[g,s] <= seat[b,s] for b in g."""
    terms = []
    for s in _domains(model):
        whole = _share(model, f"whole_{_tag(charge.axes)}_{g}_{s}")
        for b in members:
            _require(model, whole <= model.seat[b, s])
        terms.append(model.touch[charge.axes, g, s] - whole)
    return pulp.lpSum(terms)


def _pairs_cost(model: Model, charge: Charge, g: int, members: list[int]) -> Any:
    """sum_s sum_j units[j] level[g,s,j],   sum_j level = 1,   sum_j j level = sum_b seat[b,s].

    The cost is concave in the count, so every level is a choice of its own.
    """
    size, terms = len(members), []
    units = held_units(charge, size)
    name = f"{charge.kind.value}_{_tag(charge.axes)}_{g}"
    for s in _domains(model):
        most = min(size, model.question.capacities[s])
        levels = [_binary(model, f"level_{name}_{s}_{j}") for j in range(most + 1)]
        _require(model, pulp.lpSum(levels) == 1)
        held = pulp.lpSum(model.seat[b, s] for b in members)
        _require(model, pulp.lpSum(j * level for j, level in enumerate(levels)) == held)
        _require(model, model.touch[charge.axes, g, s] == 1 - levels[0])
        terms += [units[j] * level for j, level in enumerate(levels) if 0 < j < size]
    return pulp.lpSum(terms)


def _chain_cost(model: Model, charge: Charge, g: int, members: list[int]) -> Any:
    """sum over neighbours e of cross[e];   sum_e cross[e] >= sum_s touch[g,s] - 1."""
    crosses = pulp.lpSum(
        _apart(model, f"cross_{_tag(charge.axes)}_{g}_{i}", a, b)
        for i, (a, b) in enumerate(pairwise(members))
    )
    touched = pulp.lpSum(model.touch[charge.axes, g, s] for s in _domains(model))
    _require(model, crosses >= touched - 1)
    return crosses


def _apart(model: Model, name: str, a: int, b: int) -> Any:
    """cross >= seat[a,s] - seat[b,s]   for every domain s."""
    cross = _share(model, name)
    for s in _domains(model):
        _require(model, cross >= model.seat[a, s] - model.seat[b, s])
    return cross


def _cut_by_bound(model: Model) -> None:
    """sum_S w_S t_S(s) >= bound(C_s)   for every full domain s, in several directions w."""
    question = model.question
    if sum(question.capacities) != question.cells:
        return
    for s, capacity in enumerate(question.capacities):
        if capacity == 0:
            continue
        for direction in bound_directions(question, capacity):
            _cut_domain(model, s, capacity, direction)


def bound_directions(question: Question, capacity: int) -> list[Mapping[tuple[int, ...], float]]:
    """Return prices by axes in which the bound of a full domain makes a useful cut.

    The question's own prices, every single family, and the facets of the hull of the integer
    touches of every pair of families. t_S(s) = sum_g touch[g,s].
    """
    live = [
        (axes, weight)
        for axes, weight in sorted(prices_by_axes(question).items())
        if weight > 0 and question.group_size(axes) > 1
    ]
    directions: list[Mapping[tuple[int, ...], float]] = [dict(live)] if live else []
    directions += [{axes: 1.0} for axes, _ in live]
    directions += [
        facet
        for i, (a, _) in enumerate(live)
        for b, _ in live[:i]
        for facet in _pair_facets(question, a, b, capacity)
    ]
    return directions


def _pair_facets(
    question: Question, a: tuple[int, ...], b: tuple[int, ...], held: int
) -> list[dict[tuple[int, ...], float]]:
    """Return the normals of the hull of the integer (t_a, t_b) that *held* cells may touch."""
    corners = touch_front(question.sizes, a, b, held)
    hull: list[tuple[int, int]] = []
    for corner in corners:
        while len(hull) > 1 and _bends_up(hull[-2], hull[-1], corner):
            hull.pop()
        hull.append(corner)
    return [{a: float(y0 - y1), b: float(x1 - x0)} for (x0, y0), (x1, y1) in pairwise(hull)]


def _bends_up(p: tuple[int, int], q: tuple[int, int], r: tuple[int, int]) -> bool:
    return (q[0] - p[0]) * (r[1] - p[1]) <= (q[1] - p[1]) * (r[0] - p[0])


def _cut_domain(
    model: Model, s: int, capacity: int, direction: Mapping[tuple[int, ...], float]
) -> None:
    question = model.question
    scale = max(direction.values(), default=0.0)
    if scale <= 0:
        return
    weights = [weight / scale for weight in direction.values()]
    least = least_touches(question.sizes, list(direction), weights, capacity)
    held = pulp.lpSum(
        weight * model.touch[axes, g, s]
        for axes, weight in zip(direction, weights, strict=True)
        for g in range(question.groups(axes))
    )
    _require(model, held >= least * (1 - 1e-9))


def _order_axes(model: Model) -> None:
    """sum_{b at v} seat[b,0] >= sum_{b at v+1} seat[b,0]   along every axis whose order is free.

    Renaming the values of an axis changes no cost unless a chain runs along it, so domain 0 may be
    taken to hold most of the first value.
    """
    question = model.question
    for axis in range(len(question.sizes)):
        ordered = any(
            axis in charge.axes and charge.kind in (Kind.CHAIN, Kind.ENDS)
            for charge in question.charges
        )
        if ordered or question.sizes[axis] < 2:
            continue
        others = tuple(i for i in range(len(question.sizes)) if i != axis)
        planes = groups_along(question.sizes, others).tolist()
        for low, high in pairwise(planes):
            _require(
                model,
                pulp.lpSum(model.seat[b, 0] for b in low)
                >= pulp.lpSum(model.seat[b, 0] for b in high),
            )


def _order_equal_domains(model: Model) -> None:
    """seat[b,s'] <= sum_{b' < b} seat[b',s]   for s, s' neighbours of equal capacity, s > 0.

    Equal domains are interchangeable: the one that holds the lowest cell comes first. Domain 0 is
    left out, because ``_order_axes`` has already singled it out.
    """
    question = model.question
    classes: dict[tuple[int, int], list[int]] = {}
    for s in _domains(model):
        if s > 0:
            sort = model.sorts[s] if model.sorts else 0
            classes.setdefault((question.capacities[s], sort), []).append(s)
    for equal in classes.values():
        for first, second in pairwise(equal):
            for b in range(question.cells):
                earlier = pulp.lpSum(model.seat[c, first] for c in range(b))
                _require(model, model.seat[b, second] <= earlier)
