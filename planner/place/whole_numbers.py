"""The least cost of a choice in whole numbers, as a solver says: HiGHS."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, isfinite
from time import monotonic
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.place.child import in_child
from planner.place.quiet import quiet_stdout

if TYPE_CHECKING:
    from numpy.typing import NDArray

SOLVER_ROUNDING = 2e-7
"""How far off a solver's bound may be, of the largest number it sees, for each domain [1]."""
_TOLERANCE = 1e-6  # units; HiGHS leaves out what is better by less (mip_feasibility_tolerance)
_LEAST_S = 0.01  # seconds that a solver is given at least
PROMPT_S = 2.0
"""Seconds that Ctrl-C may wait for a solve in this process [s]."""
_PROMPT_UNKNOWNS = 300  # up to which it takes less than that, as far as seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """min cost_bytes x  with  least <= rows x <= most,  0 <= x <= highest.

    Args:
        cost_bytes: of each unknown [bytes].
        whole: whether it is a whole number.
        highest: the most that it can be.
        rows: sparse, shape [rules, unknowns].
        least: shape [rules].
        most: shape [rules].
    """

    cost_bytes: NDArray[np.float64]
    whole: NDArray[np.bool_]
    highest: NDArray[np.float64]
    rows: Any
    least: NDArray[np.float64]
    most: NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a solver says: the unknowns, None where it found none, and its bound.

    That is at most one unit, and -inf if it has none. It *ended* if it was not cut short.
    """

    times: NDArray[np.float64] | None
    least: float
    ended: bool = False

    def sure(self, domains: int) -> float:
        """Return what is sure of the bound of a choice for so many domains [units]."""
        return self.least - max(SOLVER_ROUNDING * domains, _TOLERANCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much a choice may take, apart from time.

    Args:
        listed: patterns to choose from; of more, the cheapest [1].
        nodes: of the solver's search tree [1].
        solve_s: that the solver may take for one choice [s].
        sheet_s: that a solver may take for one sheet, 0 to do without it [s].
        swept: ways to deal out stages, and cells of each, that are looked at under one limit [1].
    """

    listed: int
    nodes: int
    solve_s: float = inf
    sheet_s: float = 0.0
    swept: int = 0


FEW = Effort(listed=1500, nodes=300, solve_s=PROMPT_S, swept=12_000_000)
"""Of a choice before other methods are tried."""
MANY = Effort(listed=30_000, nodes=20_000, sheet_s=1.0, swept=60_000_000)
"""Of one after that."""


_UNIT = 1.0
_SPARSE = 8  # rules of an unknown, on the average, up to which a model is sparse
_PRESOLVED = 500  # unknowns of a sparse model up to which presolve helps
_NOTHING = Chosen(times=None, least=-inf)  # of a solve that was ended


def least_choice(model: Model, unit_bytes: float, limit_s: float, effort: Effort) -> Chosen:
    """Return the unknowns of the least cost, which is in units of *unit_bytes*.

    What costs a unit or more is not looked for: that there is no other is a bound of one unit.

    The number of nodes decides, not the clock, unless time runs out. A solve that may be long runs
    in a process of its own, so that Ctrl-C need not wait for it.

    Args:
        model: the rules.
        unit_bytes: bytes that are one to the solver [bytes].
        limit_s: seconds that it may take [s].
        effort: nodes of the search tree that it may look at, and seconds at most.
    """
    limit_s = min(limit_s, effort.solve_s)
    arguments = (model, unit_bytes, max(limit_s, _LEAST_S), effort.nodes)
    if limit_s <= PROMPT_S or len(model.cost_bytes) <= _PROMPT_UNKNOWNS:
        return _solved(*arguments)
    return in_child(_solved, arguments, limit_s) or _NOTHING


def _solved(model: Model, unit_bytes: float, limit_s: float, nodes: int) -> Chosen:
    """Return what the solver says, with presolve where that mostly helps.

    Small sparse models take a third of the time with it, large and dense ones several times as
    long; of large sparse ones some take a tenth and some five times as long, so both are tried.
    """
    size = len(model.cost_bytes)
    sparse = model.rows.nnz <= _SPARSE * size
    if not sparse or size <= _PRESOLVED:
        return _run(model, unit_bytes, limit_s, nodes, presolve=sparse)
    starts_s = monotonic()
    first = _run(model, unit_bytes, limit_s / 2, nodes, presolve=False)
    if first.ended or monotonic() - starts_s < limit_s / 2:
        return first
    second = _run(model, unit_bytes, limit_s / 2, nodes, presolve=True)
    found = [one.times for one in (first, second) if one.times is not None]
    return Chosen(
        times=min(found, key=lambda times: float(model.cost_bytes @ times), default=None),
        least=max(first.least, second.least),
        ended=second.ended,
    )


def _run(model: Model, unit_bytes: float, limit_s: float, nodes: int, *, presolve: bool) -> Chosen:
    import highspy  # noqa: PLC0415 - 0.3 s that most placements never need

    rows = model.rows.tocsr()
    size = rows.shape[1]
    problem = highspy.HighsLp()
    problem.num_col_, problem.num_row_ = size, rows.shape[0]
    problem.col_cost_ = model.cost_bytes / unit_bytes
    problem.col_lower_, problem.col_upper_ = np.zeros(size), model.highest
    problem.row_lower_, problem.row_upper_ = model.least, model.most
    problem.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    problem.a_matrix_.start_ = rows.indptr
    problem.a_matrix_.index_ = rows.indices
    problem.a_matrix_.value_ = rows.data
    kinds = highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger
    problem.integrality_ = [kinds[int(whole)] for whole in model.whole]
    with quiet_stdout():
        solver = highspy.Highs()
        for option, value in (
            ("output_flag", False),
            ("threads", 1),
            ("time_limit", limit_s),
            ("mip_rel_gap", 0.0),
            ("mip_abs_gap", 0.0),
            ("mip_max_nodes", nodes),
            ("objective_bound", _UNIT),
            ("presolve", "on" if presolve else "off"),
        ):
            solver.setOptionValue(option, value)
        if solver.passModel(problem) == highspy.HighsStatus.kError:
            return _NOTHING
        solver.run()
    status, info = solver.getModelStatus(), solver.getInfo()
    if status in (
        highspy.HighsModelStatus.kInfeasible,
        highspy.HighsModelStatus.kObjectiveBound,
        highspy.HighsModelStatus.kUnboundedOrInfeasible,  # bounded it is: no cost is below nought
    ):
        return Chosen(times=None, least=_UNIT, ended=True)
    solved = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    bound = float(info.mip_dual_bound)
    return Chosen(
        times=np.array(solver.getSolution().col_value) if solved else None,
        least=min(bound, _UNIT) if isfinite(bound) else -inf,
        ended=status == highspy.HighsModelStatus.kOptimal,
    )
