"""A pattern for every domain, in whole numbers: a solver's bound, and a choice to seat.

Of the patterns that a better seating than the one in hand can use, so many are chosen that they
add up to every stage; rings that must be completed from one stage to the next are counted
(``stage_rings.py``). Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.place.child import in_child
from planner.place.quiet import quiet_stdout
from planner.place.stage_rings import ring_rules
from planner.place.stages import pattern_bytes, piece_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.stage_prices import Priced
    from planner.place.stages import Staged

_MET = 1e-9  # relative; by which patterns are listed beyond the slack
_SHARES = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.01)  # of the slack, till patterns are few enough
_SOLVER_ROUNDING = 2e-7  # of the largest number a solver sees, for each domain
_LEAST_S = 0.01  # seconds that a solver is given at least
_PROMPT_S = 2.0  # seconds that Ctrl-C may wait for a solve in this process
_PROMPT_PATTERNS = 300  # up to which it takes less than that, as far as seen


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The best choice of patterns found, and a bound of all choices.

    Args:
        held: cells of every stage that each domain holds, shape [domains, stages]; None where the
            solver found none.
        bound_bytes: what every choice cuts at least [bytes]; 0 where some were left out.
    """

    held: NDArray[np.int64] | None
    bound_bytes: float


def choice_of(of: Staged, priced: Priced, cut_bytes: float, limit_s: float, most: int) -> Choice:
    """Choose a pattern for every domain, in whole numbers.

    Args:
        of: the question.
        priced: prices of the stages' cells.
        cut_bytes: of the best seating known; patterns of no better one are left out [bytes].
        limit_s: seconds that the solver may take [s].
        most: patterns to choose from; where there are more, the cheapest, and nothing is proved.
    """
    slack = max(cut_bytes - priced.bound_bytes, _MET * cut_bytes) * (1 + _MET)
    listed = _listed(of, priced, slack, most)
    if listed is None:
        return Choice(held=None, bound_bytes=0.0)
    model = _model(of, listed)
    arguments = (model, slack, max(limit_s, _LEAST_S))
    if limit_s <= _PROMPT_S or len(listed.rows) <= _PROMPT_PATTERNS:
        solved = _solved(*arguments)
    else:
        solved = in_child(_solved, arguments, limit_s) or _NOTHING
    bound = 0.0
    if listed.all and np.isfinite(solved.least):
        least = solved.least - _SOLVER_ROUNDING * len(of.question.capacities)
        bound = listed.base_bytes + least * slack
    held = None
    if solved.times is not None:
        held = _dealt(of, listed, np.rint(solved.times[: len(listed.rows)]).astype(int))
    return Choice(held=held, bound_bytes=bound)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Solved:
    """What a solver says: the unknowns, None where it found none, and its bound, -inf if none."""

    times: NDArray[np.float64] | None
    least: float


_NOTHING = _Solved(times=None, least=-inf)  # of a solve that was ended


def _solved(model: _Model, unit_bytes: float, limit_s: float) -> _Solved:
    """Return the unknowns of the least cost, in units of *unit_bytes*."""
    from scipy.optimize import Bounds, LinearConstraint, milp  # noqa: PLC0415 - rarely needed

    with quiet_stdout():
        found = milp(
            model.cost_bytes / unit_bytes,
            integrality=model.whole,
            bounds=Bounds(0, model.highest),
            constraints=LinearConstraint(model.rows, model.least, model.most),
            options={"time_limit": limit_s, "mip_rel_gap": 0.0},
        )
    least = -inf if found.mip_dual_bound is None else float(found.mip_dual_bound)
    return _Solved(times=found.x, least=least)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """min cost_bytes x  with  least <= rows x <= most,  0 <= x <= highest.

    Unknowns: how many domains take each pattern, then those of ``ring_rules``.
    """

    cost_bytes: NDArray[np.float64]
    whole: NDArray[np.bool_]
    highest: NDArray[np.float64]
    rows: Any
    least: NDArray[np.float64]
    most: NDArray[np.float64]


def _model(of: Staged, listed: _Listed) -> _Model:
    """Return the rules: cells and pieces of every stage, domains of each size, rings."""
    from scipy.sparse import csr_array, hstack, vstack  # noqa: PLC0415 - rarely needed

    sizes, counts = of.domains
    patterns = len(listed.rows)
    pieces, needs = piece_rows(of, listed.rows)
    full = np.full(of.stages, float(of.sheet.cells))
    classes = (listed.classes == np.arange(len(sizes))[:, None]).astype(float)
    rows: Any = csr_array(np.vstack([listed.rows.T, classes, pieces]))
    least = np.concatenate([full, 0.0 * counts if of.spare else counts, needs])
    most = np.concatenate([full, counts, np.full(len(needs), inf)])
    cost, whole = listed.cost_bytes, np.ones(patterns, dtype=bool)
    highest = counts[listed.classes].astype(float)
    rings = ring_rules(of, listed.rows)
    if rings is not None:
        others, rules = len(rings.cost_bytes), len(rings.of_patterns)
        beside = csr_array((rows.shape[0], others))
        asked = hstack([csr_array(rings.of_patterns), csr_array(rings.of_others)])
        rows = vstack([hstack([rows, beside]), asked])
        least = np.concatenate([least, np.full(rules, -inf)])
        most = np.concatenate([most, np.zeros(rules)])
        cost = np.concatenate([cost, rings.cost_bytes])
        whole = np.concatenate([whole, rings.whole])
        highest = np.concatenate([highest, np.full(others, inf)])
    return _Model(cost_bytes=cost, whole=whole, highest=highest, rows=rows, least=least, most=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """Patterns to choose from.

    Args:
        rows: shape [patterns, stages].
        classes: of which size of domain, shape [patterns].
        cost_bytes: what each pays less its cells' prices, above the least of its class [bytes].
        base_bytes: the cut of a choice of patterns that cost nought [bytes].
        all: no pattern of a better seating is missing.
    """

    rows: NDArray[np.int64]
    classes: NDArray[np.int64]
    cost_bytes: NDArray[np.float64]
    base_bytes: float
    all: bool


def _listed(of: Staged, priced: Priced, slack_bytes: float, most: int) -> _Listed | None:
    sizes, counts = of.domains
    for share in _SHARES:
        found = [
            priced.patterns.below(c, priced.patterns.least(c) + share * slack_bytes, most)
            for c in sizes.tolist()
        ]
        listed = [rows for rows in found if rows is not None]
        if len(listed) == len(found) and sum(map(len, listed)) <= most:
            break
    else:
        return None
    rows = np.vstack(listed)
    classes = np.repeat(np.arange(len(sizes)), [len(each) for each in listed])
    cost = pattern_bytes(of, rows) - rows @ priced.prices.cell_bytes
    least = np.array([cost[classes == k].min(initial=inf) for k in range(len(sizes))])
    if of.spare:
        least = np.zeros(len(sizes))  # a domain may stay empty
    given = float(priced.prices.cell_bytes.sum()) * of.sheet.cells - of.given_bytes
    return _Listed(
        rows=rows,
        classes=classes,
        cost_bytes=cost - least[classes],
        base_bytes=float(least @ counts) + given,
        all=share >= 1.0,
    )


def _dealt(of: Staged, listed: _Listed, times: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the cells of every stage that each domain holds, shape [domains, stages]."""
    held = np.zeros((len(of.question.capacities), of.stages), dtype=np.int64)
    sizes, _ = of.domains
    free = {
        k: [s for s, c in enumerate(of.question.capacities) if c == size]
        for k, size in enumerate(sizes.tolist())
    }
    for p in np.flatnonzero(times).tolist():
        for _ in range(int(times[p])):
            held[free[int(listed.classes[p])].pop(0)] = listed.rows[p]
    return held
