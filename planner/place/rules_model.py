"""Rules that no coarsening keeps, as a model for small grids: named domains, counted groups.

min sum of charges with seat[b,s] binary, only where the rules allow it, and

* sum_s seat[b,s] = 1; sum_b seat[b,s] <= C_s; touch[g,s] >= seat[b,s] for b in g;
* sum_s touch[g,s] <= most, for the groups of a rule that counts;
* whole[g,s] <= seat[b,s] (rings); level[g,s,j] binary, sum_j level = 1, sum_j j level = sum_b seat
  (all-to-alls); cross[e] >= seat[a,s] - seat[b,s] (chains);
* the whole cut is at least a bound that is known already.

Nothing orders domains or values: a rule by name leaves no symmetry. HiGHS, called through SciPy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import SolverError
from planner.layout import groups_along
from planner.place.question import Kind, held_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.question import Charge, Question
    from planner.place.rules_bound import Counted

_OPTIMAL, _LIMIT, _INFEASIBLE = 0, 1, 2  # statuses of scipy.optimize.milp


@dataclass(frozen=True, slots=True, kw_only=True)
class RuledSolved:
    """What HiGHS proves of a ruled question.

    Args:
        home: domain of each cell; None where no seating was found.
        lower_bound_bytes: its dual bound [bytes].
        closed: it proved its own optimum.
        unseated: cells that cannot be seated at least, 0 unless no seating keeps the rules [1].
    """

    home: NDArray[np.int64] | None
    lower_bound_bytes: float
    closed: bool
    unseated: int = 0


@dataclass(slots=True, kw_only=True)
class _Model:
    costs: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    whole: list[int] = field(default_factory=list)
    rows: list[tuple[list[int], list[float], float, float]] = field(default_factory=list)
    constant: float = 0.0

    def variable(self, cost: float = 0.0, *, binary: int = 0, upper: float = 1.0) -> int:
        self.costs.append(cost)
        self.upper.append(upper)
        self.whole.append(binary)
        return len(self.costs) - 1

    def row(
        self, columns: Sequence[int], factors: Sequence[float], low: float, high: float
    ) -> None:
        self.rows.append((list(columns), list(factors), low, high))


def solve_ruled_model(
    question: Question,
    allowed: NDArray[np.bool_],
    counted: Sequence[Counted],
    known_bytes: float,
    unit_bytes: float,
    time_limit_s: float,
) -> RuledSolved:
    """Return what HiGHS finds and proves of *question* under rules.

    Args:
        question: the grid and its charges.
        allowed: where each cell may sit, shape [cells, domains].
        counted: groups that may touch so many domains only.
        known_bytes: a bound known already [bytes].
        unit_bytes: bytes of one unit of the objective [bytes].
        time_limit_s: seconds for the solver [s].

    Raises:
        SolverError: HiGHS gave up for another reason than the limit.
    """
    ends_s = monotonic() + time_limit_s
    model, seat = _formulated(question, allowed, counted, unit_bytes)
    model.row(
        range(len(model.costs)), model.costs,
        known_bytes / unit_bytes * (1 - 1e-9) - model.constant, np.inf,
    )  # fmt: skip
    ran = _run(model, ends_s - monotonic())
    if ran.status == _INFEASIBLE:
        return RuledSolved(
            home=None, lower_bound_bytes=np.inf, closed=True,
            unseated=_least_unseated(question, allowed, counted, ends_s - monotonic()),
        )  # fmt: skip
    if ran.status not in {_OPTIMAL, _LIMIT}:
        raise SolverError(f"the solver gave up on the rules: {ran.message}")
    home = None
    if ran.x is not None:
        home = np.argmax(np.where(seat >= 0, ran.x[seat], -1.0), axis=1)
    dual = getattr(ran, "mip_dual_bound", None)
    bound = known_bytes
    if dual is not None and np.isfinite(dual):
        bound = max(bound, (float(dual) + model.constant) * unit_bytes)
    return RuledSolved(home=home, lower_bound_bytes=bound, closed=ran.status == _OPTIMAL)


def _run(model: _Model, time_limit_s: float) -> Any:
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 - 0.2 s
    from scipy.sparse import csr_matrix  # noqa: PLC0415 - with it

    counts = [len(columns) for columns, _, _, _ in model.rows]
    rows = np.repeat(np.arange(len(model.rows)), counts)
    columns = np.concatenate([columns for columns, _, _, _ in model.rows])
    factors = np.concatenate([factors for _, factors, _, _ in model.rows])
    matrix = csr_matrix((factors, (rows, columns)), shape=(len(model.rows), len(model.costs)))
    return milp(
        np.array(model.costs),
        integrality=np.array(model.whole),
        bounds=Bounds(0, np.array(model.upper)),
        constraints=LinearConstraint(
            matrix,
            np.array([low for _, _, low, _ in model.rows]),
            np.array([high for _, _, _, high in model.rows]),
        ),
        options={"time_limit": max(time_limit_s, 0.1), "mip_rel_gap": 0.0},
    )


def _formulated(
    question: Question, allowed: NDArray[np.bool_], counted: Sequence[Counted], unit_bytes: float
) -> tuple[_Model, NDArray[np.int64]]:
    model = _Model()
    seat = _seats(model, question, allowed)
    for cell in range(question.cells):
        columns = [int(c) for c in seat[cell] if c >= 0]
        model.row(columns, [1.0] * len(columns), 1, 1)
    touch: dict[tuple[int, ...], NDArray[np.int64]] = {}
    for entry in counted:
        axes = tuple(i for i in entry.axes if question.sizes[i] > 1)
        if axes:
            for row in _touches(model, question, seat, axes, touch):
                model.row(row.tolist(), [1.0] * len(row), 0, entry.most)
    for charge in question.charges:
        if question.group_size(charge.axes) > 1:
            _charge(model, question, seat, charge, charge.weight_bytes / unit_bytes, touch)
    return model, seat


def _seats(model: _Model, question: Question, allowed: NDArray[np.bool_]) -> NDArray[np.int64]:
    """sum_b seat[b,s] <= C_s   for every domain s; seat[b,s] only where allowed."""
    seat = np.full(allowed.shape, -1, np.int64)
    for cell, domain in np.argwhere(allowed).tolist():
        seat[cell, domain] = model.variable(binary=1)
    for s, capacity in enumerate(question.capacities):
        columns = [int(c) for c in seat[:, s] if c >= 0]
        if len(columns) > capacity:
            model.row(columns, [1.0] * len(columns), 0, capacity)
    return seat


def _touches(
    model: _Model,
    question: Question,
    seat: NDArray[np.int64],
    axes: tuple[int, ...],
    touch: dict[tuple[int, ...], NDArray[np.int64]],
) -> NDArray[np.int64]:
    """touch[g,s] >= seat[b,s]   for every group along *axes* and each of its cells."""
    if axes not in touch:
        groups = groups_along(question.sizes, axes)
        columns = np.empty((len(groups), seat.shape[1]), np.int64)
        for g, members in enumerate(groups):
            for s in range(seat.shape[1]):
                columns[g, s] = model.variable()
                for c in seat[members, s]:
                    if c >= 0:
                        model.row([int(columns[g, s]), int(c)], [1.0, -1.0], 0, np.inf)
        touch[axes] = columns
    return touch[axes]


def _charge(
    model: _Model,
    question: Question,
    seat: NDArray[np.int64],
    charge: Charge,
    price: float,
    touch: dict[tuple[int, ...], NDArray[np.int64]],
) -> None:
    groups = groups_along(question.sizes, charge.axes)
    if charge.kind in {Kind.CHAIN, Kind.ENDS}:
        hops = groups[:, [0, -1]] if charge.kind is Kind.ENDS else (
            np.stack([groups[:, :-1], groups[:, 1:]], axis=2).reshape(-1, 2)
        )  # fmt: skip
        for a, b in hops:
            _cross(model, seat[a], seat[b], price)
    elif charge.kind in {Kind.PAIRS, Kind.COPIES}:
        units = held_units(charge, groups.shape[1])
        for members in groups:
            for s in range(seat.shape[1]):
                _levels(model, seat[members, s], price, units)
    else:
        columns = _touches(model, question, seat, charge.axes, touch)
        for column in columns.ravel():
            model.costs[column] += price
        if charge.kind is Kind.TOUCH:
            model.constant -= price * len(groups)
            return
        for members in groups:
            for s in range(seat.shape[1]):
                _whole(model, seat[members, s], price)


def _cross(model: _Model, one: NDArray[np.int64], two: NDArray[np.int64], price: float) -> None:
    """cross >= seat[a,s] - seat[b,s]   for every domain s."""
    cross = model.variable(price)
    for a, b in zip(one.tolist(), two.tolist(), strict=True):
        if a >= 0:
            columns, factors = ([cross, a, b], [1.0, -1.0, 1.0]) if b >= 0 else (
                [cross, a], [1.0, -1.0]
            )  # fmt: skip
            model.row(columns, factors, 0, np.inf)


def _levels(model: _Model, seats: NDArray[np.int64], price: float, units: Sequence[float]) -> None:
    """sum_j level[j] = 1, sum_j j level[j] = sum_b seat[b]; level[j] pays units[j]."""
    columns = [int(c) for c in seats if c >= 0]
    levels = [model.variable(price * units[j], binary=1) for j in range(len(columns) + 1)]
    model.row(levels, [1.0] * len(levels), 1, 1)
    model.row([*levels, *columns], [*map(float, range(len(levels))), *[-1.0] * len(columns)], 0, 0)


def _whole(model: _Model, seats: NDArray[np.int64], price: float) -> None:
    """whole <= seat[b]   for every cell of the ring: a ring that is whole pays for no touch."""
    if (seats < 0).any():
        return
    whole = model.variable(-price)
    for c in seats.tolist():
        model.row([c, whole], [1.0, -1.0], 0, np.inf)


def _least_unseated(
    question: Question, allowed: NDArray[np.bool_], counted: Sequence[Counted], time_limit_s: float
) -> int:
    """Return how many cells stay without a seat at least when the rules are kept; 1 if unknown."""
    model = _Model()
    seat = _seats(model, question, allowed)
    touch: dict[tuple[int, ...], NDArray[np.int64]] = {}
    for cell in range(question.cells):
        columns = [int(c) for c in seat[cell] if c >= 0]
        for c in columns:
            model.costs[c] = -1.0
        model.row(columns, [1.0] * len(columns), 0, 1)
    for entry in counted:
        axes = tuple(i for i in entry.axes if question.sizes[i] > 1)
        if axes:
            for row in _touches(model, question, seat, axes, touch):
                model.row(row.tolist(), [1.0] * len(row), 0, entry.most)
    ran = _run(model, time_limit_s)
    dual = getattr(ran, "mip_dual_bound", None)
    if dual is None or not np.isfinite(dual):
        return 1
    return max(1, question.cells - int(np.floor(-float(dual) + 1e-6)))
