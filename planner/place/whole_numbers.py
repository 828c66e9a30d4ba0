"""The least cost of a choice in whole numbers, as a solver says: HiGHS through SciPy."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.place.child import in_child
from planner.place.quiet import quiet_stdout

if TYPE_CHECKING:
    from numpy.typing import NDArray

SOLVER_ROUNDING = 2e-7
"""How far off a solver's bound may be, of the largest number it sees, for each domain [1]."""
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

    That is -inf if it has none, and inf where nothing keeps the rules.
    """

    times: NDArray[np.float64] | None
    least: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Effort:
    """How much a choice may take, apart from time.

    Args:
        listed: patterns to choose from; of more, the cheapest [1].
        nodes: of the solver's search tree [1].
        solve_s: that the solver may take for one choice [s].
        sheet_s: that a solver may take for one sheet, 0 to do without it [s].
    """

    listed: int
    nodes: int
    solve_s: float = inf
    sheet_s: float = 0.0


_INFEASIBLE = 2  # status of scipy.optimize.milp, which a model that HiGHS does not take has, too
_SAID_INFEASIBLE = "problem is infeasible"
_NOTHING = Chosen(times=None, least=-inf)  # of a solve that was ended


def least_choice(model: Model, unit_bytes: float, limit_s: float, effort: Effort) -> Chosen:
    """Return the unknowns of the least cost, which is in units of *unit_bytes*.

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
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 - rarely needed

    with quiet_stdout():
        found = milp(
            model.cost_bytes / unit_bytes,
            integrality=model.whole,
            bounds=Bounds(0, model.highest),
            constraints=LinearConstraint(model.rows, model.least, model.most),
            options={"time_limit": limit_s, "mip_rel_gap": 0.0, "node_limit": nodes},
        )
    if found.status == _INFEASIBLE and _SAID_INFEASIBLE in found.message:
        return Chosen(times=None, least=inf)
    least = -inf if found.mip_dual_bound is None else float(found.mip_dual_bound)
    return Chosen(times=found.x, least=least)
