"""The model everybody writes first: one binary for every seat, touches linked to seats, no bound.

It stands here to be beaten. x[b,s] = 1 when block b sits in domain s; y[g,s] >= x[b,s] for b in g;
minimise sum_S w_S sum_g (sum_s y[g,s] - 1). Spreading every block evenly (x = 1 / domains) costs
its relaxation nothing, so the solver proves next to nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic
from typing import TYPE_CHECKING, Any

from tests.oracles import digit_groups

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(frozen=True, slots=True, kw_only=True)
class NaiveRun:
    """How far the naive model came.

    Args:
        best: the cheapest seating it found, infinite if none [weight].
        bound: what it proved [weight].
        proved: it closed the gap.
        wall_s: how long it took [s].
    """

    best: float
    bound: float
    proved: bool
    wall_s: float


def solve_naively(
    sizes: Sequence[int], weights: Sequence[float], capacities: Sequence[int], time_limit_s: float
) -> NaiveRun:
    """Return what HiGHS makes of the naive model, one family of touches along each axis.

    Args:
        sizes: blocks along each axis [1].
        weights: price of a domain more for a group along each axis.
        capacities: blocks that each domain holds [1].
        time_limit_s: seconds HiGHS may take [s].
    """
    import highspy
    import pulp

    blocks = range(len(digit_groups(sizes, ())))
    domains = range(len(capacities))
    problem = pulp.LpProblem("naive", pulp.LpMinimize)
    x = {
        (b, s): problem.add_variable(f"x_{b}_{s}", 0, 1, pulp.LpBinary)
        for b in blocks
        for s in domains
    }
    price: list[Any] = []
    constant = 0.0
    links: list[Any] = []
    for axis, weight in enumerate(weights):
        for g, members in enumerate(digit_groups(sizes, (axis,))):
            constant -= weight
            for s in domains:
                y = problem.add_variable(f"y_{axis}_{g}_{s}", 0, 1, pulp.LpBinary)
                price.append(weight * y)
                links += [y >= x[b, s] for b in members]
    problem += pulp.lpSum(price)
    for link in links:
        problem += link
    for b in blocks:
        problem += pulp.lpSum(x[b, s] for s in domains) == 1
    for s, capacity in enumerate(capacities):
        problem += pulp.lpSum(x[b, s] for b in blocks) <= capacity
    started = monotonic()
    problem.solve(pulp.HiGHS(msg=False, threads=1, timeLimit=time_limit_s))
    wall_s = monotonic() - started
    highs = problem.solverModel
    info = highs.getInfo()
    return NaiveRun(
        best=float(info.objective_function_value) + constant,
        bound=float(info.mip_dual_bound) + constant,
        proved=highs.getModelStatus() == highspy.HighsModelStatus.kOptimal,
        wall_s=wall_s,
    )
