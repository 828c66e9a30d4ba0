"""Lines under the families' tables, and the bound over real boxes that they give."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, log
from typing import TYPE_CHECKING

import numpy as np

from planner.place.finner import cheapest_real_box, log_touches, tangent_bound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

ROUNDING = 1e-12  # relative; keeps every bound on the safe side of floating point
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
    logs = np.log(sizes)
    at = np.array([float(t[-1]) for t, _ in hulls])
    best = (-inf, np.zeros(len(sets)), np.zeros(len(sets)), np.zeros(len(sizes)))
    for _ in range(_PRICINGS):
        lines = [_edge(t, cost, x) for (t, cost), x in zip(hulls, at, strict=True)]
        prices = np.array([price for price, _ in lines])
        constants = np.array([constant for _, constant in lines])
        if not (prices > 0).any():
            box = logs * min(1.0, log(held) / float(logs.sum()))
            value = float(constants.sum())
        else:
            box = cheapest_real_box(logs, sets, prices, log(held))
            value = tangent_bound(logs, sets, prices, log(held), box) + float(constants.sum())
        value -= ROUNDING * (abs(value) + float(np.abs(constants).sum()))
        if value > best[0]:
            best = (value, prices, constants, box)
        moved = np.exp(log_touches(sets, box))
        if np.allclose(moved, at, rtol=1e-9):
            break
        at = moved
    value, prices, constants, box = best
    floor = sum(float(cost.min()) for _, cost in hulls)
    return Lines(
        prices_bytes=prices, constants_bytes=constants, box=box, bound_bytes=max(value, floor)
    )


def _edge(t: NDArray[np.int64], cost: NDArray[np.float64], at: float) -> tuple[float, float]:
    """Return (slope, constant) of the hull's edge at *at*; a falling one counts as flat."""
    if len(t) == 1:
        return 0.0, float(cost[0])
    right = int(np.clip(np.searchsorted(t, at), 1, len(t) - 1))
    slope = float((cost[right] - cost[right - 1]) / (t[right] - t[right - 1]))
    if slope <= 0:
        return 0.0, float(cost.min())
    return slope, float(cost[right]) - slope * float(t[right])


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
