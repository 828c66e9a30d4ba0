"""How few groups a set of cells can touch: Finner's inequality over the integers.

A set p of C cells touches t_S groups of the family along axes S. Finner's inequality (the box
theorem of Bollobas and Thomason; Loomis-Whitney for single axes) says

    prod_S t_S^lambda_S x prod_i n_i^mu_i >= C    whenever  sum_{S not with i} lambda_S + mu_i >= 1

for every axis i. Here are the inequalities themselves and what they give over real boxes; the least
over whole touches is in ``touch_search.py``. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations
from math import ceil, exp, log
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_ROUNDING = 1e-12  # relative; keeps every bound on the safe side of floating point
_DENOMINATOR = 60  # of the vertices' coordinates; a vertex with another one is left out


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
        need = float((used[~alone] / lambdas[~alone, 1]).max(initial=0.0))
        t_b = max(1, ceil(exp(need) * (1 - _ROUNDING) - 1e-9))
        if t_b <= most[1] and (not front or t_b < front[-1][1]):
            front.append((t_a, t_b))
    return front


def log_touches(sets: Sequence[tuple[int, ...]], box: NDArray[np.float64]) -> NDArray[np.float64]:
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
    highest: list[float] = logs.tolist()
    price: list[float] = prices.tolist()
    share = min(1.0, log_held / sum(highest))
    sides = [share * high for high in highest]
    pairs = _pairs(tuple(sets), len(sides))
    for _ in range(400):
        moved = 0.0
        for i, j, of_i, of_j in pairs:
            total = sum(sides)
            grow = _priced(price, sets, of_i, sides, total)
            shrink = _priced(price, sets, of_j, sides, total)
            low = max(-sides[i], sides[j] - highest[j])
            high = min(highest[i] - sides[i], sides[j])
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


@lru_cache(maxsize=256)
def _pairs(
    sets: tuple[tuple[int, ...], ...], axes: int
) -> list[tuple[int, int, list[int], list[int]]]:
    """Return pairs of axes i > j, the sets along j alone, and those along i alone."""
    return [
        (
            i,
            j,
            [s for s, one in enumerate(sets) if j in one and i not in one],
            [s for s, one in enumerate(sets) if i in one and j not in one],
        )
        for i in range(axes)
        for j in range(i)
    ]


def _priced(
    price: list[float],
    sets: Sequence[tuple[int, ...]],
    some: list[int],
    sides: list[float],
    total: float,
) -> float:
    """Return what the touches of some families cost in a box with these log sides."""
    return sum(price[s] * exp(total - sum(sides[i] for i in sets[s])) for s in some)


def tangent_bound(
    logs: NDArray[np.float64],
    sets: Sequence[tuple[int, ...]],
    prices: NDArray[np.float64],
    log_held: float,
    box: NDArray[np.float64],
) -> float:
    """Return the least of the tangent plane at *box* over all boxes: below the convex price."""
    highest: list[float] = logs.tolist()
    sides: list[float] = box.tolist()
    total = sum(sides)
    terms = [
        price * exp(total - sum(sides[i] for i in one))
        for price, one in zip(prices.tolist(), sets, strict=True)
    ]
    slopes = [
        sum(term for term, one in zip(terms, sets, strict=True) if i not in one)
        for i in range(len(sides))
    ]
    left, least = log_held, 0.0
    for i in sorted(range(len(sides)), key=slopes.__getitem__):
        part = min(left, highest[i])
        least += slopes[i] * part
        left -= part
    value: float = sum(terms) + least - sum(a * b for a, b in zip(slopes, sides, strict=True))
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
