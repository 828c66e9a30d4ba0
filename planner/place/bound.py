"""The lower bound: what one domain must pay, exactly enough to prove most seatings optimal.

A domain that holds a set p of C cells touches t_S groups of the family along axes S. Finner's
inequality (the box theorem of Bollobas and Thomason, Loomis-Whitney for single axes) says

    prod_S t_S^lambda_S x prod_i n_i^mu_i >= C    whenever  sum_{S not with i} lambda_S + mu_i >= 1

for every axis i. ``domain_bound`` is the least sum_S w_S t_S over integers that satisfy every such
inequality; ``lower_bound`` adds it up over the domains, choosing how full each one is where there
are spare seats. Both hold for every seating whatever. Proofs: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import combinations, pairwise
from math import ceil, inf, log
from typing import TYPE_CHECKING

import numpy as np

from planner.place.question import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from planner.place.question import Question

_ROUNDING = 1e-12  # relative; keeps every bound on the safe side of floating point
_DENOMINATOR = 60  # of the vertices' coordinates; a vertex with another one is left out
_LINES_KEPT = 3  # edges of an all-to-all's hull that are tried, the flattest first
_PEAK_STEPS = 12  # slopes met while looking for the best price of the sharing rule
_FRONTIER_LIMIT = 400_000  # partial touch vectors kept; past it the bound stops at what is proved


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A linear lower bound of what one domain pays: sum_S weights[S] t_S + constant.

    Args:
        weights: bytes for each group touched, by the family's axes [bytes].
        constant_bytes: bytes paid whatever is touched [bytes].
    """

    weights: Mapping[tuple[int, ...], float]
    constant_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One way a domain can be: every line holds for it.

    Args:
        lines: linear lower bounds of what it pays.
        large: (axes, m): of some group along the axes it holds more than m cells.
        small: (axes, m): of every group along the axes it holds m cells at most.
    """

    lines: tuple[Line, ...]
    large: tuple[tuple[tuple[int, ...], int], ...]
    small: tuple[tuple[tuple[int, ...], int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A priced rule that domains share: sum_s ceil(n_s / most) >= ceil(n / most) for every group.

    Args:
        axes: axes of the groups.
        most: part size m of the rule [1].
        price_bytes: what breaking it by one costs, at least 0 [bytes].
    """

    axes: tuple[int, ...]
    most: int
    price_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _Choice:
    """What a domain pays that holds at most *most* cells of every group, and one that does not.

    Both are alternatives of (bytes for each group touched, bytes in any case); all of them hold.
    """

    axes: tuple[int, ...]
    most: int
    small: tuple[tuple[float, float], ...]
    large: tuple[tuple[float, float], ...]


def rebate_bytes(question: Question) -> float:
    """Return what all domains together are charged too much by ``cases`` [bytes].

    A reduction and a chain pay for k - 1 domains of a group, and the cases count all k.
    """
    return sum(
        weight * question.groups(axes) for axes, weight in _plain_weights(question).items()
    )


def _plain_weights(question: Question) -> dict[tuple[int, ...], float]:
    """Return the prices of k - 1 by axes: reductions, and chains less what closes them."""
    weights: dict[tuple[int, ...], float] = {}
    closing = _closing_weights(question)
    for charge in question.charges:
        if question.group_size(charge.axes) < 2:
            continue
        if charge.kind is Kind.TOUCH:
            weights[charge.axes] = weights.get(charge.axes, 0.0) + charge.weight_bytes
        elif charge.kind is Kind.CHAIN:
            left = charge.weight_bytes - closing.get(charge.axes, 0.0)
            weights[charge.axes] = weights.get(charge.axes, 0.0) + left
    return weights


def _closing_weights(question: Question) -> dict[tuple[int, ...], float]:
    """Return by axes the part u of a chain's price that its closing link makes a ring.

    w x + u e with x crossings and e = 1 when the ends are apart is at least
    u (k if k > 1) + (w - u) (k - 1), for x + e >= k when k > 1 and u <= w.
    """
    chains = {c.axes: c.weight_bytes for c in question.charges if c.kind is Kind.CHAIN}
    closing: dict[tuple[int, ...], float] = {}
    for charge in question.charges:
        if charge.kind is Kind.ENDS and charge.axes in chains:
            closing[charge.axes] = min(
                chains[charge.axes], closing.get(charge.axes, 0.0) + charge.weight_bytes
            )
    return closing


def _choices(question: Question, held: int, shares: Sequence[Share]) -> list[_Choice]:
    """Return the prices that depend on how much of one group a domain holds.

    A ring costs every domain that holds a part of it one hop, and a domain with all of it none:
    of t rings touched by C cells at most (C - t)/(n - 1) are whole. An all-to-all's price is
    concave in n_i: see ``_pair_lines``. For shares see ``sharpened_bound``.
    """
    choices = [
        _ring_choice(axes, question.group_size(axes), u, held)
        for axes, u in _closing_weights(question).items()
        if question.group_size(axes) > 1
    ]
    choices += [_share_choice(share, held) for share in shares]
    for charge in question.charges:
        size, w = question.group_size(charge.axes), charge.weight_bytes
        if size < 2:
            continue
        if charge.kind is Kind.RING:
            choices.append(_ring_choice(charge.axes, size, w, held))
        elif charge.kind is Kind.PAIRS:
            groups = question.groups(charge.axes)
            choices.append(
                _Choice(axes=charge.axes, most=size - 1,
                        small=_scaled(w, _pair_lines(size, groups, held, size - 1)),
                        large=_scaled(w, _pair_lines(size, groups, held, size)))
            )
    return choices


def _ring_choice(axes: tuple[int, ...], size: int, weight: float, held: int) -> _Choice:
    return _Choice(axes=axes, most=size - 1, small=((weight, 0.0),),
                   large=((weight * size / (size - 1), -weight * held / (size - 1)),))


def _share_choice(share: Share, held: int) -> _Choice:
    """Return -price x sum_g ceil(n_g / m), for which (C + (m - 1) t) / m is never too little."""
    m, price = share.most, share.price_bytes
    return _Choice(axes=share.axes, most=m, small=((-price, 0.0),),
                   large=((-price * (m - 1) / m, -price * held / m),))


def _scaled(
    weight: float, lines: Sequence[tuple[float, float]]
) -> tuple[tuple[float, float], ...]:
    return tuple((weight * slope, weight * constant) for slope, constant in lines)


def _pair_lines(size: int, groups: int, held: int, most: int) -> tuple[tuple[float, float], ...]:
    """Return lines (slope, constant) below sum_g n_g (n - n_g) as a function of t.

    For *held* cells in t groups of at most *most* each the concave sum is least at a corner: as
    many groups as possible hold *most*, one holds the rest, the others one cell. The lines are
    the edges of the convex hull of that least over t; none if no t is possible.
    """
    most = min(most, held)
    corners = []
    for touched in range(max(1, -(-held // most)), min(groups, held) + 1):
        full, rest = divmod(held - touched, most - 1) if most > 1 else (0, 0)
        counts = [(full, most), (1 if full < touched else 0, 1 + rest),
                  (max(0, touched - full - 1), 1)]
        corners.append((touched, sum(times * n * (size - n) for times, n in counts)))
    if not corners:
        return ()
    hull: list[tuple[int, int]] = []
    for corner in corners:
        while len(hull) > 1 and _turns_down(hull[-2], hull[-1], corner):
            hull.pop()
        hull.append(corner)
    edges = [
        ((y1 - y0) / (x1 - x0), y0 - x0 * (y1 - y0) / (x1 - x0))
        for (x0, y0), (x1, y1) in pairwise(hull)
    ]
    rising = [(slope, constant) for slope, constant in edges if slope > 0]
    flat = (0.0, float(min(y for _, y in corners)))
    return (flat, *rising[:_LINES_KEPT])


def _turns_down(p: tuple[int, int], q: tuple[int, int], r: tuple[int, int]) -> bool:
    return (q[0] - p[0]) * (r[1] - p[1]) <= (q[1] - p[1]) * (r[0] - p[0])


def cases(question: Question, held: int, shares: Sequence[Share] = ()) -> tuple[Case, ...]:
    """Return bounds of a domain of *held* cells; every such domain is one of the cases."""
    found = [Case(lines=(Line(weights=_plain_weights(question), constant_bytes=0.0),), large=(),
                  small=())]
    for choice in _choices(question, held, shares):
        axes, most = choice.axes, choice.most
        extended = []
        for case in found:
            if all(a != axes or most > m for a, m in case.large):
                extended.append(
                    Case(lines=_priced(case.lines, axes, choice.small), large=case.large,
                         small=(*case.small, (axes, most)))
                )
            if most < min(held, question.group_size(axes)) and all(
                a != axes or m > most for a, m in case.small
            ):
                extended.append(
                    Case(lines=_priced(case.lines, axes, choice.large),
                         large=(*case.large, (axes, most)), small=case.small)
                )
        found = [case for case in extended if case.lines]
    return tuple(found)


def _priced(
    lines: Sequence[Line], axes: tuple[int, ...], prices: Sequence[tuple[float, float]]
) -> tuple[Line, ...]:
    priced = []
    for line in lines:
        for slope, constant in prices:
            weights = dict(line.weights)
            weights[axes] = weights.get(axes, 0.0) + slope
            priced.append(
                Line(weights=weights, constant_bytes=line.constant_bytes + constant)
            )
    return tuple(priced)


def domain_bound(
    question: Question, held: int, split_axis: int | None = None,
    shares: Sequence[Share] = (),
) -> float:
    """Return the least that a domain holding *held* cells adds to the cut [bytes].

    The domain's share of the rebate is not taken off: see ``lower_bound``. With *split_axis*, the
    domain is known to hold a part, not all, of some line along that axis.
    """
    if held == 0:
        return 0.0
    least = inf
    for case in cases(question, held, shares):
        paid = -inf
        for line in case.lines:
            paid = max(paid, _line_bound(question, line, case, held, split_axis))
            if paid >= least:
                break
        least = min(least, paid)
    return least


def _line_bound(
    question: Question, line: Line, case: Case, held: int, split_axis: int | None
) -> float:
    constant = line.constant_bytes
    families, floors = [], []
    for axes, weight in sorted(line.weights.items()):
        if weight <= 0:
            constant += weight * min(question.groups(axes), held)
            continue
        size = question.group_size(axes)
        floor = max((-(-held // m) for a, m in case.small if a == axes), default=1)
        if split_axis is not None and split_axis in axes:
            floor = max(floor, held // size + 1)
        for along, m in case.large:  # m + 1 cells of one group, so many to a line of this family
            shared = question.group_size([i for i in along if i in axes])
            floor = max(floor, -(-(m + 1) // shared))
        families.append(axes)
        floors.append(floor)
    weights = tuple(line.weights[axes] for axes in families)
    return constant + _least_touches_again(
        question.sizes, tuple(families), weights, held, tuple(floors)
    )


@lru_cache(maxsize=20_000)
def _least_touches_again(
    sizes: tuple[int, ...], families: tuple[tuple[int, ...], ...], weights: tuple[float, ...],
    held: int, floors: tuple[int, ...],
) -> float:
    return least_touches(sizes, families, weights, held, floors)


def lower_bound(
    question: Question, shares: Sequence[Share] = ()
) -> float:
    """Return bytes that every seating of *question* crosses at least [bytes].

    Args:
        question: the grid and its charges.
        shares: priced rules of ``sharpened_bound``.
    """
    if len(question.capacities) == 1:
        return 0.0
    bounds = _bounds(question, None, shares)
    if sum(question.capacities) == question.cells:
        total = sum(bounds(capacity) for capacity in question.capacities)
    else:
        total = _cheapest_filling(question.capacities, question.cells, bounds)
    for share in shares:
        pieces = -(-question.group_size(share.axes) // share.most)
        total += share.price_bytes * pieces * question.groups(share.axes)
    return max(0.0, total - rebate_bytes(question))


def _bounds(
    question: Question, split_axis: int | None, shares: Sequence[Share] = ()
) -> Callable[[int], float]:
    @cache
    def bound_of(held: int) -> float:
        return domain_bound(question, held, split_axis, shares)

    return bound_of


def sharpened_bound(question: Question, target_bytes: float) -> float:
    """Return a bound that also counts what the domains must share [bytes].

    Whatever the parts n_s of a group of n, sum_s ceil(n_s / m) >= ceil(n / m): a group of which no
    domain holds more than m lies in ceil(n / m) domains at least. That rule ties the domains
    together; any price of at least 0 on it gives a bound. The bound is concave and piecewise
    linear in the price, so two slopes that meet give its peak.

    Args:
        question: the grid and its charges.
        target_bytes: stop when this is reached [bytes].
    """
    best = lower_bound(question)
    shares: tuple[Share, ...] = ()
    plain, closing = _plain_weights(question), _closing_weights(question)
    prices = {a: plain.get(a, 0.0) + closing.get(a, 0.0) for a in {**plain, **closing}}
    for axes in sorted(prices, key=lambda a: (-prices[a] * question.groups(a), a)):
        for most in _part_sizes(question, axes, prices):
            if best >= target_bytes * (1 - 1e-12):
                return best

            def bound_at(price: float, along: tuple[int, ...] = axes, m: int = most) -> float:
                share = Share(axes=along, most=m, price_bytes=price)
                return lower_bound(question, (*shares, share))

            peak, value = _peak(bound_at, prices[axes])
            if value > best * (1 + 1e-12):
                best = value
                shares = (*shares, Share(axes=axes, most=most, price_bytes=peak))
    return best


def _part_sizes(
    question: Question, axes: tuple[int, ...], prices: Mapping[tuple[int, ...], float]
) -> tuple[int, ...]:
    """Return the m worth a rule: the largest that still needs as many pieces as the best box.

    And n - 1, under which a group that is whole nowhere lies in two domains.
    """
    size = question.group_size(axes)
    if size < 2:
        return ()
    live = [i for i, n in enumerate(question.sizes) if n > 1]
    index = {axis: i for i, axis in enumerate(live)}
    sets = tuple(tuple(index[i] for i in family if i in index) for family in prices)
    box = np.exp(
        _cheapest_real_box(
            np.log([question.sizes[i] for i in live]), sets, np.array(list(prices.values())),
            log(min(max(question.capacities), question.cells)),
        )
    )
    part = float(np.prod([box[index[i]] for i in axes if i in index]))
    pieces = max(2, ceil(size / part - 1e-9))
    return tuple(dict.fromkeys(
        most
        for most in (-(-size // (pieces - 1)) - 1, -(-size // pieces) - 1, size - 1)
        if most >= 1
    ))


def _peak(bound_at: Callable[[float], float], most: float) -> tuple[float, float]:
    """Return (price, bound) near the peak of a concave piecewise linear function on [0, most]."""
    nudge = most * 1e-6
    low, high = 0.0, most
    f_low, f_high = bound_at(low), bound_at(high)
    rise = (bound_at(low + nudge) - f_low) / nudge
    fall = (f_high - bound_at(high - nudge)) / nudge
    best = max((f_low, low), (f_high, high))
    for _ in range(_PEAK_STEPS):
        if rise <= 0 or fall >= 0:
            break
        middle = (f_high - f_low + rise * low - fall * high) / (rise - fall)
        if not low < middle < high:
            break
        value = bound_at(middle)
        best = max(best, (value, middle))
        if value >= (f_low + rise * (middle - low)) * (1 - 1e-12):
            break
        slope = (bound_at(middle + nudge) - value) / nudge
        if slope > 0:
            low, f_low, rise = middle, value, slope
        else:
            high, f_high, fall = middle, value, (value - bound_at(middle - nudge)) / nudge
    return best[1], best[0]


def split_bound(question: Question, axis: int) -> float:
    """Return bytes crossed at least by every seating that parts some line along *axis* [bytes].

    Two domains then hold a part of that line, and each pays the domain bound of such a set.
    Needs every seat taken; with spare seats it is no more than ``lower_bound``.
    """
    capacities = question.capacities
    plain = lower_bound(question)
    if sum(capacities) != question.cells or len(capacities) < 2:
        return plain
    free, parted = _bounds(question, None), _bounds(question, axis)
    extra = sorted(max(0.0, parted(held) - free(held)) for held in capacities)
    return plain + sum(extra[:2])


def _cheapest_filling(
    capacities: Sequence[int], cells: int, bound_of: Callable[[int], float]
) -> float:
    """Return min over fillings c_s <= capacities, sum c_s = cells, of sum_s f(c_s) [bytes]."""
    best = np.full(cells + 1, inf)
    best[0] = 0.0
    spare = sum(capacities) - cells
    for capacity in sorted(capacities):
        least = max(0, capacity - spare)
        held = np.arange(least, min(capacity, cells) + 1)
        costs = [bound_of(int(c)) for c in held]
        merged = np.full(cells + 1, inf)
        for c, cost in zip(held, costs, strict=True):
            if c <= cells:
                merged[c:] = np.minimum(merged[c:], best[: cells + 1 - c] + cost)
        best = merged
    return float(best[cells])


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
    box = _cheapest_real_box(logs, sets, prices, log(held))
    real = _tangent_bound(logs, sets, prices, log(held), box)
    whole = _least_integer_touches(
        np.array([sizes[i] for i in live]), sets, prices, held, box,
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


def _cheapest_real_box(
    logs: NDArray[np.float64], sets: Sequence[tuple[int, ...]], prices: NDArray[np.float64],
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
    logs: NDArray[np.float64], sets: Sequence[tuple[int, ...]], prices: NDArray[np.float64],
    log_held: float, box: NDArray[np.float64],
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
    every axis i, checked in whole numbers after rounding to sixtieths: a rounded row is kept only if
    it is a cover itself.
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
    rhs = log(held) - vertices[:, len(sets):] @ np.log(sizes)
    useful = (lambdas > 0).any(axis=1) & (rhs > 0)
    return lambdas[useful], rhs[useful]


def _least_integer_touches(
    sizes: NDArray[np.int64], sets: tuple[tuple[int, ...], ...], prices: NDArray[np.float64],
    held: int, box: NDArray[np.float64], needed: NDArray[np.int64],
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
    lambdas: NDArray[np.float64], rhs: NDArray[np.float64], sizes: NDArray[np.int64],
    sets: tuple[tuple[int, ...], ...], prices: NDArray[np.float64], held: int,
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
    prices: NDArray[np.float64], lambdas: NDArray[np.float64], rhs: NDArray[np.float64],
    floors: NDArray[np.int64], groups: NDArray[np.int64], upper: float,
) -> float:
    """Branch on the touches of one family after another, all partial vectors side by side."""
    count = len(prices)
    partial = np.zeros((1, 0))
    rest = np.concatenate([np.cumsum((prices * floors)[::-1])[::-1], [0.0]])
    proved = 0.0
    for level in range(count):
        later = lambdas[:, level + 1:]
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
            return max(proved, _least_total(partial, paid, prices, lambdas, rhs, floors, level))
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


def _least_total(
    partial: NDArray[np.float64], paid: NDArray[np.float64], prices: NDArray[np.float64],
    lambdas: NDArray[np.float64], rhs: NDArray[np.float64], floors: NDArray[np.int64], level: int,
) -> float:
    return float(_totals(partial, prices, lambdas, rhs, floors, level).min())


def _totals(
    partial: NDArray[np.float64], prices: NDArray[np.float64], lambdas: NDArray[np.float64],
    rhs: NDArray[np.float64], floors: NDArray[np.int64], level: int,
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


