"""Which shapes the domains can have together: a bound from all counting rules at once.

A *shape* is the vector of touches of one domain. ``touch_search.py`` lists those that a seating
better than the one in hand can use; a choice of one shape for every domain must then have enough
pieces of every size, and not too many. The least price of such a choice is a lower bound. There are
few variables: how many domains of each capacity take each shape. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import apart_bound, domain_bound, domain_bounds, rebate_bytes
from planner.place.child import in_child
from planner.place.quiet import quiet_stdout
from planner.place.shape_rows import add_whole_rules, part_rules, shapes_below, told_alike
from planner.place.sharing import priced_shares
from planner.place.sheets import paid_by_sheets
from planner.place.whole_numbers import SOLVER_ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.question import Question
    from planner.place.shape_rows import Rows, Shapes

_PROMPT_SHAPES = 300  # up to which a choice takes less than what Ctrl-C may wait for
_SHAPES_LIMIT = 6000  # shapes of all capacities
_HELD_MOST = 128  # cells of a domain, where how full it is belongs to the shape
_SINGLE_MOST = 4  # domains up to which each is a class of its own, for the rules on single domains
_BROKEN = 100.0  # price of breaking a rule by one, in units of the dearest shape
_PRICED_ROUNDING = 1e-12  # relative; sums of a few thousand products
_ROUNDING = 1e-9  # relative; by which shapes are listed beyond the slack


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapeRules:
    """min cost_bytes x   with  at_least x >= needs,  at_most x <= room,  sums x = totals,  x whole.

    Args:
        cost_bytes: what a domain of each shape pays, shape [shapes] [bytes].
        at_least: coefficients of the rules on pieces, shape [rules, shapes].
        needs: their right-hand sides.
        at_most: coefficients of the rules on full pieces, shape [rules, shapes].
        room: their right-hand sides.
        sums: coefficients of the equations, shape [equations, shapes].
        totals: their right-hand sides.
        class_of: capacity class of each shape, shape [shapes].
        domains: domains of each class; all of them take a shape, unless seats are spare.
        spare: a domain may stay empty.
        constant_bytes: what to add to the least [bytes].
    """

    cost_bytes: NDArray[np.float64]
    at_least: NDArray[np.float64]
    needs: NDArray[np.float64]
    at_most: NDArray[np.float64]
    room: NDArray[np.float64]
    sums: NDArray[np.float64]
    totals: NDArray[np.float64]
    class_of: NDArray[np.int64]
    domains: NDArray[np.int64]
    spare: bool
    constant_bytes: float


def shape_rules(question: Question, cut_bytes: float) -> ShapeRules | None:
    """Return the shapes of seatings that cut less than *cut_bytes* and their rules.

    None where the shapes are too many, or have no family in common that all of them tell.

    Args:
        question: the grid and its charges.
        cut_bytes: bytes of the best seating known [bytes].
    """
    if len(question.capacities) < 2:
        return None
    if sum(question.capacities) > question.cells:
        return _spare_rules(question, cut_bytes)
    return _full_rules(question, cut_bytes)


def _full_rules(question: Question, cut_bytes: float) -> ShapeRules | None:
    _, shares = priced_shares(question, cut_bytes)
    slack = max(cut_bytes - apart_bound(question, shares), 0.0) + _ROUNDING * cut_bytes
    capacities = sorted(question.capacities)
    classes = [(held, 1) for held in capacities]
    if len(capacities) > _SINGLE_MOST:
        classes = sorted(Counter(capacities).items())
    blocks = []
    for held, _ in classes:
        limit = domain_bound(question, held, None, shares) + slack
        blocks.append(shapes_below(question, held, shares, limit))
        if not len(blocks[-1].touches):
            return None
    if sum(len(block.touches) for block in blocks) > _SHAPES_LIMIT:
        return None
    blocks = told_alike(blocks)
    if not blocks[0].families:  # each tells others: nothing to count
        return None
    domains = np.array([times for _, times in classes])
    class_of = np.repeat(np.arange(len(blocks)), [len(block.touches) for block in blocks])
    rows = part_rules(blocks)
    add_whole_rules(rows, blocks, domains.tolist())
    sums = (class_of == np.arange(len(domains))[:, None]).astype(float)
    return _ruled(question, blocks, rows, sums, domains, domains.astype(float), class_of)


def _spare_rules(question: Question, cut_bytes: float) -> ShapeRules | None:
    """Return the rules where domains need not be full: how much each holds is part of its shape.

    A price on every cell, the least that any domain pays for one, takes the place of the shares:
    a domain that pays more than that by cut_bytes - bound is in no better seating.
    """
    largest = min(max(question.capacities), question.cells)
    if largest > _HELD_MOST:
        return None
    held_by = range(1, largest + 1)
    least = dict(zip(held_by, domain_bounds(question, held_by, sharp=False), strict=True))
    a_cell = min(cost / held for held, cost in least.items())
    bound = a_cell * question.cells - rebate_bytes(question)
    slack = max(cut_bytes - bound, 0.0) + _ROUNDING * (cut_bytes + rebate_bytes(question))
    blocks, count = [], 0
    for held, cost in least.items():
        if cost - a_cell * held > slack:
            continue
        block = shapes_below(question, held, (), a_cell * held + slack)
        count += len(block.touches)
        if count > _SHAPES_LIMIT:
            return None
        if len(block.touches):
            blocks.append(block)
    if not blocks:
        return None
    blocks = told_alike(blocks)
    if not blocks[0].families:  # each tells others: nothing to count
        return None
    held_of = np.repeat([b.held for b in blocks], [len(b.touches) for b in blocks]).astype(float)
    rows = part_rules(blocks)
    capacities = np.array(question.capacities)
    for held in sorted(set(held_of.tolist())):  # so many domains are large enough for it
        rows.at_most.append((held_of >= held).astype(float))
        rows.room.append(float((capacities >= held).sum()))
    class_of = np.zeros(len(held_of), dtype=np.int64)
    totals = np.array([float(question.cells)])
    domains = np.array([len(question.capacities)])
    return _ruled(question, blocks, rows, held_of[None, :], domains, totals, class_of)


def _ruled(
    question: Question,
    blocks: list[Shapes],
    rows: Rows,
    sums: NDArray[np.float64],
    domains: NDArray[np.int64],
    totals: NDArray[np.float64],
    class_of: NDArray[np.int64],
) -> ShapeRules:
    pays = paid_by_sheets(question)
    return ShapeRules(
        cost_bytes=np.concatenate(
            [np.maximum(block.cost_bytes, pays(block.held)) for block in blocks]
        ),
        at_least=np.array(rows.at_least),
        needs=np.array(rows.needs),
        at_most=np.array(rows.at_most),
        room=np.array(rows.room),
        sums=sums,
        totals=totals,
        class_of=class_of,
        domains=domains,
        spare=sum(question.capacities) > question.cells,
        constant_bytes=-rebate_bytes(question),
    )


def relaxed_bound(rules: ShapeRules) -> float:
    """Return the bound of the linear relaxation, by our own arithmetic [bytes].

    The solver only suggests prices; whatever they are, every shape's price less what it gives to
    the rules, added up over the domains, and the rules' sides at those prices, is a lower bound.
    """
    from scipy.optimize import linprog  # noqa: PLC0415 - most placements never need it

    scale = max(float(np.abs(rules.cost_bytes).max()), 1e-300)
    rows = np.vstack([-rules.at_least, rules.at_most])
    broken = -np.eye(len(rows))  # what breaking a rule by one costs at most, so that prices exist
    solved = linprog(
        np.concatenate([rules.cost_bytes / scale, np.full(len(rows), _BROKEN)]),
        A_ub=np.hstack([rows, broken]),
        b_ub=np.concatenate([-rules.needs, rules.room]),
        A_eq=np.hstack([rules.sums, np.zeros((len(rules.sums), len(rows)))]),
        b_eq=rules.totals,
        method="highs",
    )
    if solved.status != 0:
        return -np.inf
    prices = np.maximum(-solved.ineqlin.marginals, 0.0) * scale
    gives, takes = np.split(prices, [len(rules.needs)])
    each = solved.eqlin.marginals * scale if rules.spare else np.zeros(len(rules.totals))
    reduced = rules.cost_bytes - gives @ rules.at_least + takes @ rules.at_most - each @ rules.sums
    least = np.array([reduced[rules.class_of == c].min() for c in range(len(rules.domains))])
    if rules.spare:
        least = np.minimum(least, 0.0)
    parts = (least @ rules.domains, gives @ rules.needs, -(takes @ rules.room), each @ rules.totals)
    total, size = float(sum(parts)), float(sum(map(abs, parts)))
    return total + rules.constant_bytes - _PRICED_ROUNDING * size


def whole_bound(rules: ShapeRules, time_limit_s: float) -> float:
    """Return the solver's bound over whole numbers of domains [bytes], 0 where it has none.

    The seating in hand is such a choice, so that "infeasible" would be a fault and proves nothing.
    """
    base_bytes = _base_bytes(rules)
    over_bytes = rules.cost_bytes - base_bytes @ rules.sums
    scale = max(float(over_bytes.max()), 1e-300)
    arguments = (rules, over_bytes, scale, time_limit_s)
    if len(over_bytes) <= _PROMPT_SHAPES:
        dual = _least_whole(*arguments)
    else:
        dual = in_child(_least_whole, arguments, time_limit_s)
    if dual is None or not np.isfinite(dual):
        return 0.0
    least = dual - SOLVER_ROUNDING * int(rules.domains.sum())
    return max(0.0, least * scale + float(base_bytes @ rules.totals) + rules.constant_bytes)


def _least_whole(
    rules: ShapeRules, over_bytes: NDArray[np.float64], scale: float, time_limit_s: float
) -> float | None:
    """Return the solver's bound in units of *scale*, None if it has none."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 - as above

    with quiet_stdout():
        solved = milp(
            over_bytes / scale,
            integrality=np.ones(len(over_bytes)),
            bounds=Bounds(0, rules.domains[rules.class_of]),
            constraints=[
                LinearConstraint(rules.at_least, rules.needs, np.inf),
                LinearConstraint(rules.at_most, -np.inf, rules.room),
                LinearConstraint(rules.sums, rules.totals, rules.totals),
            ],
            options={"time_limit": time_limit_s, "mip_rel_gap": 0.0},
        )
    return None if solved.mip_dual_bound is None else float(solved.mip_dual_bound)


def _base_bytes(rules: ShapeRules) -> NDArray[np.float64]:
    """Return a price on each equation that every shape pays: a solver then sees what is above it.

    The least of a class, or of a cell where seats are spare; so rounding is of small numbers.
    """
    if rules.spare:
        return np.array([float((rules.cost_bytes / rules.sums[0]).min())])
    classes = range(len(rules.domains))
    return np.array([rules.cost_bytes[rules.class_of == c].min() for c in classes])
