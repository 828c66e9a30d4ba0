"""MILP to seating: runs HiGHS on the models of PuLP, and alone reads its status.

A long solve runs in a process of its own (``child.py``). What the solver says is believed only as
far as its dual bound; the seating it returns is priced again by our own arithmetic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import SolverError
from planner.place.child import in_child
from planner.place.quiet import quiet_stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from planner.place.question import Question

_SMALL_WAYS = 300  # ways to seat a slice up to which a solve runs in this process
_SMALL_ROWS_CELLS = 200  # seats (cells x domains) up to which a solve runs in this process


@dataclass(frozen=True, slots=True, kw_only=True)
class Solved:
    """What a solver run is worth.

    Args:
        home: domain of each cell, None where no seating was found.
        lower_bound_bytes: the solver's proved bound [bytes].
        closed: the solver proved its own optimum.
    """

    home: tuple[int, ...] | None
    lower_bound_bytes: float
    closed: bool


_NOTHING = Solved(home=None, lower_bound_bytes=0.0, closed=False)  # of a solve that was ended


def solve_milp(
    question: Question, start: NDArray[np.int64], unit_bytes: float, time_limit_s: float, seed: int
) -> Solved:
    """Return what HiGHS proves of *question* within *time_limit_s*.

    Args:
        question: the grid and its charges.
        start: a seating to start from, shape [cells].
        unit_bytes: bytes of one unit of the objective [bytes].
        time_limit_s: seconds for the solve, the child's start not counted [s].
        seed: HiGHS' random seed.

    Raises:
        SolverError: the solver failed without an answer.
    """
    seats = question.cells * len(question.capacities)
    if seats <= _SMALL_ROWS_CELLS:
        return _run(question, start.tolist(), unit_bytes, time_limit_s, seed)
    arguments = (question, start.tolist(), unit_bytes, time_limit_s, seed)
    return in_child(_run, arguments, time_limit_s) or _NOTHING


def _run(
    question: Question, start: list[int], unit_bytes: float, time_limit_s: float, seed: int
) -> Solved:
    from planner.place.formulate import formulate  # noqa: PLC0415 - imports pulp

    model = formulate(question, unit_bytes)
    ran = _optimise(model.problem, time_limit_s, seed, lambda lp: _set_start(lp, model.seat, start))
    home = None if ran.values is None else _decode(model.seat, question, ran.values)
    return Solved(
        home=home,
        lower_bound_bytes=max(0.0, (ran.bound + model.constant) * unit_bytes),
        closed=ran.closed,
    )


def solve_border(
    question: Question,
    uplink_bytes_per_s: list[float],
    start: NDArray[np.int64],
    unit_bytes: float,
    time_limit_s: float,
    seed: int,
) -> Solved:
    """Return what HiGHS proves of *question*'s busiest border: see ``objective_model.py``.

    The bound is what that border sends at the mean uplink [bytes].
    """
    arguments = (question, uplink_bytes_per_s, start.tolist(), unit_bytes, time_limit_s, seed)
    if question.cells * len(uplink_bytes_per_s) <= _SMALL_ROWS_CELLS:
        return _run_border(*arguments)
    return in_child(_run_border, arguments, time_limit_s) or _NOTHING


def _run_border(
    question: Question,
    uplink_bytes_per_s: list[float],
    start: list[int],
    unit_bytes: float,
    time_limit_s: float,
    seed: int,
) -> Solved:
    from planner.place.objective_model import formulate_border  # noqa: PLC0415 - imports pulp

    model = formulate_border(question, uplink_bytes_per_s, unit_bytes)
    ran = _optimise(model.problem, time_limit_s, seed, lambda lp: _set_start(lp, model.seat, start))
    home = None if ran.values is None else _decode(model.seat, question, ran.values)
    return Solved(home=home, lower_bound_bytes=max(0.0, ran.bound * unit_bytes), closed=ran.closed)


def solve_slices(
    question: Question, axis: int, unit_bytes: float, time_limit_s: float, seed: int
) -> Solved:
    """Return what HiGHS proves of *question* cut into slices along *axis*: see ``slices.py``."""
    arguments = (question, axis, unit_bytes, time_limit_s, seed)
    ways = len(question.capacities) ** (question.cells // question.sizes[axis])
    if ways <= _SMALL_WAYS:
        return _run_slices(*arguments)
    return in_child(_run_slices, arguments, time_limit_s) or _NOTHING


def _run_slices(
    question: Question, axis: int, unit_bytes: float, time_limit_s: float, seed: int
) -> Solved:
    from planner.place.slices import decoded, formulate_slices  # noqa: PLC0415 - imports pulp

    model = formulate_slices(question, axis, unit_bytes)
    ran = _optimise(model.problem, time_limit_s, seed, lambda _: None)
    home = None
    if ran.values is not None:
        uses = [round(ran.values[use.name]) for use in model.uses]
        if sum(uses) == question.sizes[axis]:
            home = tuple(decoded(model, uses).tolist())
    return Solved(
        home=home,
        lower_bound_bytes=max(0.0, (ran.bound + model.constant) * unit_bytes),
        closed=ran.closed,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ran:
    """A solver run: values by variable name (None without a solution), dual bound, closed."""

    values: Mapping[str, float] | None
    bound: float
    closed: bool


def _optimise(problem: Any, time_limit_s: float, seed: int, before: Callable[[Any], None]) -> _Ran:
    import highspy  # noqa: PLC0415 - 0.3 s that most placements never need
    import pulp  # noqa: PLC0415 - the same

    class Started(pulp.HiGHS):  # type: ignore[misc]
        """PuLP's HiGHS with a starting point (PuLP 3 ignores its own)."""

        def callSolver(self, lp: Any) -> None:  # noqa: N802 - PuLP's name
            lp.solverModel.setOptionValue("mip_abs_gap", 1e-7)
            before(lp)
            lp.solverModel.run()

    solver = Started(msg=False, threads=1, timeLimit=time_limit_s, gapRel=0.0, random_seed=seed)
    with quiet_stdout():
        try:
            problem.solve(solver)
        except (KeyError, pulp.PulpSolverError) as error:  # PuLP 3.3: statuses it does not know
            if not hasattr(problem, "solverModel"):
                raise SolverError(f"PuLP could not run HiGHS: {error}") from error
    highs = problem.solverModel
    closed = highs.getModelStatus() == highspy.HighsModelStatus.kOptimal
    bound = float(highs.getInfo().mip_dual_bound)
    values = None
    if closed or _has_solution(highs):
        columns = highs.getSolution().col_value
        values = {name: columns[i] for name, i in _columns(problem).items()}
    return _Ran(values=values, bound=bound if math.isfinite(bound) else -math.inf, closed=closed)


def _columns(lp: Any) -> dict[str, int]:
    """Return the solver's column of each variable by name (PuLP 3 and 4 both keep this order)."""
    return {variable.name: i for i, variable in enumerate(lp.variables())}


def _set_start(lp: Any, seat: dict[tuple[int, int], Any], start: list[int]) -> None:
    columns = _columns(lp)
    indices = [columns[variable.name] for variable in seat.values()]
    chosen = [1.0 if start[b] == s else 0.0 for b, s in seat]
    lp.solverModel.setSolution(
        len(indices), np.array(indices, dtype=np.int32), np.array(chosen, dtype=np.float64)
    )


def _has_solution(highs: Any) -> bool:
    import highspy  # noqa: PLC0415 - see _run

    return bool(
        highs.getInfo().primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    )


def _decode(
    seat: dict[tuple[int, int], Any], question: Question, values: Mapping[str, float]
) -> tuple[int, ...] | None:
    home = [-1] * question.cells
    for (b, s), variable in seat.items():
        if values[variable.name] > 0.5:
            home[b] = s
    return None if -1 in home else tuple(home)
