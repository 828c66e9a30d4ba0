"""Lines under the families' tables, and the bound over real boxes that they give."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from math import exp, inf, isclose, log
from typing import TYPE_CHECKING

import numpy as np

from planner.place.finner import cheapest_real_box, log_touches, tangent_bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ROUNDING = 1e-12  # relative; keeps every bound on the safe side of floating point
_UNMOVED = 1e-9  # relative; by which the touches of a box move where they do not
_PRICINGS = 6  # times the tables' slopes are read off again at the cheapest real box


def hull(table: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the vertices (t, cost) of the lower convex hull of the finite part of a table."""
    costs: list[float] = table.tolist()  # numbers of Python's own are quicker one by one
    kept: list[int] = []
    for t in np.flatnonzero(np.isfinite(table)).tolist():
        cost = costs[t]
        while len(kept) > 1:
            p, q = kept[-2], kept[-1]
            if (costs[q] - costs[p]) * (t - p) < (cost - costs[p]) * (q - p):
                break
            kept.pop()
        kept.append(t)
    return np.array(kept), table[kept]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """A line under each family's table, and the cheapest real box under all of them.

    Args:
        prices_bytes: slope of each, per group touched [bytes].
        constants_bytes: its value at no group touched [bytes].
        box: logarithms of the box's sides.
        bound_bytes: what any set of cells pays at least [bytes].
    """

    prices_bytes: NDArray[np.float64]
    constants_bytes: NDArray[np.float64]
    box: NDArray[np.float64]
    bound_bytes: float


def priced(
    sizes: NDArray[np.int64],
    sets: tuple[tuple[int, ...], ...],
    hulls: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]],
    held: int,
) -> Lines:
    """Return lines under the tables of which the cheapest real box gives a good bound.

    Each family's table lies above the line price x t + constant, an edge of its hull: the one at
    the touches of the box that is cheapest under the lines chosen before. Any choice is valid.
    """
    logs, log_held = np.log(sizes), log(held)
    told = [(t.tolist(), cost.tolist()) for t, cost in hulls]
    at = [float(t[-1]) for t, _ in told]
    nothing = [0.0] * len(sets)
    best = (-inf, nothing, nothing, np.zeros(len(sizes)))
    for _ in range(_PRICINGS):
        lines = [_edge(t, cost, x) for (t, cost), x in zip(told, at, strict=True)]
        prices, constants = [price for price, _ in lines], [constant for _, constant in lines]
        if max(prices) <= 0:
            box = logs * min(1.0, log_held / float(logs.sum()))
            value = sum(constants)
        else:
            of = np.array(prices)
            box = cheapest_real_box(logs, sets, of, log_held)
            value = tangent_bound(logs, sets, of, log_held, box) + sum(constants)
        value -= ROUNDING * (abs(value) + sum(map(abs, constants)))
        if value > best[0]:
            best = (value, prices, constants, box)
        moved = [exp(log_touched) for log_touched in log_touches(sets, box).tolist()]
        if all(isclose(a, b, rel_tol=_UNMOVED) for a, b in zip(moved, at, strict=True)):
            break
        at = moved
    value, prices, constants, box = best
    floor = sum(min(cost) for _, cost in told)
    return Lines(
        prices_bytes=np.array(prices),
        constants_bytes=np.array(constants),
        box=box,
        bound_bytes=max(value, floor),
    )


def _edge(t: list[int], cost: list[float], at: float) -> tuple[float, float]:
    """Return (slope, constant) of the hull's edge at *at*; a falling one counts as flat."""
    if len(t) == 1:
        return 0.0, cost[0]
    right = min(max(bisect_left(t, at), 1), len(t) - 1)
    slope = (cost[right] - cost[right - 1]) / (t[right] - t[right - 1])
    if slope <= 0:
        return 0.0, min(cost)
    return slope, cost[right] - slope * t[right]


def with_dual(
    lambdas: NDArray[np.float64],
    rhs: NDArray[np.float64],
    sizes: NDArray[np.int64],
    sets: tuple[tuple[int, ...], ...],
    prices: NDArray[np.float64],
    held: int,
    box: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add the inequality that is tight at the real optimum: lambda_S in proportion to w_S t_S."""
    terms = prices * np.exp(log_touches(sets, box))
    slopes = np.array(
        [sum(terms[s] for s in range(len(sets)) if i not in sets[s]) for i in range(len(sizes))]
    )
    logs = np.log(sizes)
    inner = [i for i in range(len(sizes)) if 1e-9 < box[i] < logs[i] - 1e-9]
    scales = {float(slopes[i]) for i in inner} or {float(s) for s in slopes if s > 0}
    for scale in sorted(scales)[:4]:
        if scale <= 0:
            continue
        dual = terms / scale
        cover = slopes / scale
        mu = np.maximum(0.0, 1.0 - cover)
        lambdas = np.vstack([lambdas, dual])
        rhs = np.append(rhs, log(held) - float(mu @ logs) - 1e-12)
    return lambdas, rhs
