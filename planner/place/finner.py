"""How few groups a set of cells can touch: Finner's inequality over the integers.

A set p of C cells touches t_S groups of the family along axes S. Finner's inequality (the box
theorem of Bollobas and Thomason; Loomis-Whitney for single axes) says

    prod_S t_S^lambda_S x prod_i n_i^mu_i >= C    whenever  sum_{S not with i} lambda_S + mu_i >= 1

for every axis i. ``least_touches`` is the least sum_S w_S t_S over integers that satisfy every such
inequality: no set of C cells does better. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import ceil, inf, log
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_ROUNDING = 1e-12  # relative; keeps every bound on the safe side of floating point
_DENOMINATOR = 60  # of the vertices' coordinates; a vertex with another one is left out
_FRONTIER_LIMIT = 400_000  # partial touch vectors kept; past it the bound stops at what is proved


def least_touches(
    sizes: Sequence[int],
    families: Sequence[tuple[int, ...]],
    weights: Sequence[float],
    held: int,
    floors: Sequence[int] | None = None,
) -> float:
    """Return a lower bound of sum_S w_S t_S over all sets of *held* cells of the grid.

    Args:
        sizes: axis sizes n_i [1].
        families: axes S along which the groups of each family run.
        weights: w_S, price of one touched group [bytes].
        held: cells of the set [1].
        floors: touches of each family that are known to be needed, 1 where nothing is [1].

    Returns:
        The least over integer touches allowed by every Finner inequality, or, should that search
        grow too large, the least over real boxes [bytes].

    >>> least_touches((2, 16, 4), ((0,), (1,), (2,)), (4.0, 1.0, 0.2), 8)
    19.6
    """
    live = [i for i, n in enumerate(sizes) if n > 1]
    index = {axis: i for i, axis in enumerate(live)}
    logs = np.log([sizes[i] for i in live])
    merged: dict[tuple[int, ...], float] = {}
    needed: dict[tuple[int, ...], int] = {}
    for i, (family, weight) in enumerate(zip(families, weights, strict=True)):
        key = tuple(sorted(index[a] for a in family if a in index))
        if weight > 0:
            merged[key] = merged.get(key, 0.0) + weight
            needed[key] = max(needed.get(key, 1), floors[i] if floors else 1)
    constant = merged.pop((), 0.0) * held
    if not merged:
        return constant
    sets = tuple(sorted(merged))
    prices = np.array([merged[s] for s in sets])
    box = cheapest_real_box(logs, sets, prices, log(held))
    real = _tangent_bound(logs, sets, prices, log(held), box)
    whole = _least_integer_touches(
        np.array([sizes[i] for i in live]),
        sets,
        prices,
        held,
        box,
        np.array([needed[s] for s in sets]),
    )
    return constant + max(real, whole)


def touch_front(
    sizes: Sequence[int], a: tuple[int, ...], b: tuple[int, ...], held: int
) -> list[tuple[int, int]]:
    """Return the least t_b for each t_a that any set of *held* cells may touch, where it falls.

    >>> touch_front((16, 4), (0,), (1,), 24)
    [(2, 12), (3, 8), (4, 6)]
    """
    live = [i for i, n in enumerate(sizes) if n > 1]
    index = {axis: i for i, axis in enumerate(live)}
    sets = (tuple(index[i] for i in a if i in index), tuple(index[i] for i in b if i in index))
    shape = np.array([sizes[i] for i in live])
    lambdas, rhs = finner_rows(shape, sets, held)
    most = [int(np.prod(shape)) // int(np.prod(shape[list(s)])) for s in sets]
    front: list[tuple[int, int]] = []
    for t_a in range(1, most[0] + 1):
        used = rhs - lambdas[:, 0] * log(t_a)
        alone = lambdas[:, 1] <= 1e-12
        if (used[alone] > 1e-9).any():
            continue
        need = (used[~alone] / lambdas[~alone, 1]).max(initial=0.0)
        t_b = max(1, int(_round_up(np.exp(np.array(need)))))
        if t_b <= most[1] and (not front or t_b < front[-1][1]):
            front.append((t_a, t_b))
    return front


def _touches(sets: Sequence[tuple[int, ...]], box: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the log of the groups of each family that a box with log sides *box* touches."""
    total = box.sum()
    return np.array([total - sum(box[i] for i in s) for s in sets])


def cheapest_real_box(
    logs: NDArray[np.float64],
    sets: Sequence[tuple[int, ...]],
    prices: NDArray[np.float64],
    log_held: float,
) -> NDArray[np.float64]:
    """Return the log sides of the real box of the given volume with the least price.

    The price is convex in the log sides. Moving a little of the volume from one side to another
    scales some terms by e^d and others by e^-d, so each pair has its best move in closed form.
    """
    sides = _start_box(logs, log_held)
    count = len(sides)
    outside = [[s for s in range(len(sets)) if i not in sets[s]] for i in range(count)]
    for _ in range(400):
        moved = 0.0
        for i in range(count):
            for j in range(i):
                terms = prices * np.exp(_touches(sets, sides))
                grow = float(sum(terms[s] for s in outside[i] if s not in outside[j]))
                shrink = float(sum(terms[s] for s in outside[j] if s not in outside[i]))
                low = max(-sides[i], sides[j] - logs[j])
                high = min(logs[i] - sides[i], sides[j])
                if grow > 0 and shrink > 0:
                    step = min(max(0.5 * log(shrink / grow), low), high)
                elif grow > 0:
                    step = low
                elif shrink > 0:
                    step = high
                else:
                    continue
                sides[i] += step
                sides[j] -= step
                moved = max(moved, abs(step))
        if moved < 1e-12:
            break
    return np.clip(sides, 0.0, logs)


def _start_box(logs: NDArray[np.float64], log_held: float) -> NDArray[np.float64]:
    share = min(1.0, log_held / float(logs.sum()))
    return logs * share


def _tangent_bound(
    logs: NDArray[np.float64],
    sets: Sequence[tuple[int, ...]],
    prices: NDArray[np.float64],
    log_held: float,
    box: NDArray[np.float64],
) -> float:
    """Return the least of the tangent plane at *box* over all boxes: below the convex price."""
    terms = prices * np.exp(_touches(sets, box))
    slopes = np.array(
        [sum(terms[s] for s in range(len(sets)) if i not in sets[s]) for i in range(len(logs))]
    )
    left, least = log_held, 0.0
    for i in np.argsort(slopes, kind="stable"):
        part = min(left, float(logs[i]))
        least += slopes[i] * part
        left -= part
    value = float(terms.sum() + least - float(slopes @ box))
    return value * (1 - _ROUNDING * 10)


@lru_cache(maxsize=256)
def covers(sets: tuple[tuple[int, ...], ...], axes: int) -> NDArray[np.float64]:
    """Return the vertices (lambda, mu) of the fractional covers of *axes* by *sets*.

    Row: lambda for each set, then mu for each axis; sum_{S not with i} lambda_S + mu_i >= 1 for
    every axis i, checked in whole numbers after rounding to sixtieths: a rounded row is kept only
    if it is a cover itself.
    """
    rows = np.zeros((axes, len(sets) + 2 * axes))
    for i in range(axes):
        for s, members in enumerate(sets):
            rows[i, s] = 0.0 if i in members else 1.0
        rows[i, len(sets) + i] = 1.0
        rows[i, len(sets) + axes + i] = -1.0
    picks = np.array(list(combinations(range(rows.shape[1]), axes)))
    bases = rows[:, picks].transpose(1, 0, 2)
    regular = np.abs(np.linalg.det(bases)) > 1e-9
    solved = np.linalg.solve(bases[regular], np.ones((int(regular.sum()), axes, 1)))[..., 0]
    feasible = (solved > -1e-9).all(axis=1)
    full = np.zeros((int(feasible.sum()), rows.shape[1]))
    np.put_along_axis(full, picks[regular][feasible], solved[feasible], axis=1)
    whole = np.unique(np.rint(full[:, : len(sets) + axes] * _DENOMINATOR).astype(np.int64), axis=0)
    cover = whole @ rows[:, : len(sets) + axes].astype(np.int64).T
    kept = whole[(whole >= 0).all(axis=1) & (cover >= _DENOMINATOR).all(axis=1)]
    return np.asarray(kept / _DENOMINATOR)


def finner_rows(
    sizes: NDArray[np.int64], sets: tuple[tuple[int, ...], ...], held: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (lambda, rhs): lambda @ log t >= rhs holds for the touches t of any *held* cells."""
    vertices = covers(sets, len(sizes))
    lambdas = vertices[:, : len(sets)]
    rhs = log(held) - vertices[:, len(sets) :] @ np.log(sizes)
    useful = (lambdas > 0).any(axis=1) & (rhs > 0)
    return lambdas[useful], rhs[useful]


def _least_integer_touches(
    sizes: NDArray[np.int64],
    sets: tuple[tuple[int, ...], ...],
    prices: NDArray[np.float64],
    held: int,
    box: NDArray[np.float64],
    needed: NDArray[np.int64],
) -> float:
    """Return the least sum w t over integers t that satisfy every Finner inequality."""
    volume = int(np.prod(sizes))
    groups = np.array([volume // int(np.prod(sizes[list(s)])) for s in sets])
    floors = np.array([ceil(held / int(np.prod(sizes[list(s)]))) for s in sets])
    floors = np.maximum(floors, needed)
    if (floors > groups).any():
        return inf
    lambdas, rhs = finner_rows(sizes, sets, held)
    lambdas, rhs = _with_dual(lambdas, rhs, sizes, sets, prices, held, box)
    known = np.minimum(np.ceil(np.exp(_touches(sets, box)) - 1e-9), groups)
    upper = float(prices @ np.maximum(known, floors))
    order = np.argsort(prices * -1.0, kind="stable")
    return _search(prices[order], lambdas[:, order], rhs, floors[order], groups[order], upper)


def _with_dual(
    lambdas: NDArray[np.float64],
    rhs: NDArray[np.float64],
    sizes: NDArray[np.int64],
    sets: tuple[tuple[int, ...], ...],
    prices: NDArray[np.float64],
    held: int,
    box: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Add the inequality that is tight at the real optimum: lambda_S in proportion to w_S t_S."""
    terms = prices * np.exp(_touches(sets, box))
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


def _search(
    prices: NDArray[np.float64],
    lambdas: NDArray[np.float64],
    rhs: NDArray[np.float64],
    floors: NDArray[np.int64],
    groups: NDArray[np.int64],
    upper: float,
) -> float:
    """Branch on the touches of one family after another, all partial vectors side by side."""
    count = len(prices)
    partial = np.zeros((1, 0))
    rest = np.concatenate([np.cumsum((prices * floors)[::-1])[::-1], [0.0]])
    proved = 0.0
    for level in range(count):
        later = lambdas[:, level + 1 :]
        alone = (lambdas[:, level] > 1e-12) & (later <= 1e-12).all(axis=1)
        paid = partial @ prices[:level]
        used = np.log(np.maximum(partial, 1.0)) @ lambdas[:, :level].T
        lowest = np.full(len(partial), float(floors[level]))
        if alone.any():
            need = (rhs[alone] - used[:, alone]) / lambdas[alone, level]
            lowest = np.maximum(lowest, _round_up(np.exp(need.max(axis=1))))
        if level == count - 1:
            totals = paid + prices[level] * lowest
            totals = totals[lowest <= groups[level]]
            return float(min(upper, totals.min())) if len(totals) else upper
        room = (upper * (1 - _ROUNDING) - paid - rest[level + 1]) / prices[level]
        highest = np.minimum(np.floor(room), groups[level])
        counts = np.maximum(highest - lowest + 1, 0).astype(np.int64)
        if counts.sum() > _FRONTIER_LIMIT:
            return max(proved, float(_totals(partial, prices, lambdas, rhs, floors, level).min()))
        partial = _extended(partial, lowest, counts)
        if not len(partial):
            return upper
        totals = _totals(partial, prices, lambdas, rhs, floors, level + 1)
        keep = totals < upper * (1 - _ROUNDING)
        partial = partial[keep]
        if not len(partial):
            return upper
        proved = min(upper, float(totals[keep].min()))
    return upper


def _round_up(values: NDArray[np.float64]) -> NDArray[np.float64]:
    rounded: NDArray[np.float64] = np.ceil(values * (1 - _ROUNDING) - 1e-9)
    return rounded


def _extended(
    partial: NDArray[np.float64], lowest: NDArray[np.float64], counts: NDArray[np.int64]
) -> NDArray[np.float64]:
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    steps = np.arange(int(counts.sum())) - starts
    values = np.repeat(lowest, counts) + steps
    return np.column_stack([np.repeat(partial, counts, axis=0), values])


def _totals(
    partial: NDArray[np.float64],
    prices: NDArray[np.float64],
    lambdas: NDArray[np.float64],
    rhs: NDArray[np.float64],
    floors: NDArray[np.int64],
    level: int,
) -> NDArray[np.float64]:
    """Return a lower bound of the total price of each partial touch vector [bytes].

    For one inequality with exponents lambda on the families still open, the arithmetic and
    geometric means give sum w t >= L (R prod (w / lambda)^lambda)^(1/L), L = sum lambda; families
    outside the inequality pay their floor.
    """
    paid = partial @ prices[:level]
    open_lambdas, open_prices = lambdas[:, level:], prices[level:]
    floor_paid = open_prices * floors[level:]
    sums = open_lambdas.sum(axis=1)
    live = sums > 1e-12
    if not live.any():
        return np.asarray(paid + floor_paid.sum())
    used = np.log(np.maximum(partial, 1.0)) @ lambdas[live, :level].T
    lam = open_lambdas[live]
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.where(lam > 1e-12, lam * np.log(open_prices / lam), 0.0).sum(axis=1)
    outside = np.where(lam > 1e-12, 0.0, floor_paid).sum(axis=1)
    exponent = (rhs[live] - used + mean) / sums[live]
    totals = sums[live] * np.exp(exponent) * (1 - _ROUNDING * 10) + outside
    return np.asarray(paid + np.maximum(totals.max(axis=1), floor_paid.sum()))
