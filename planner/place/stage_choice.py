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

from planner.errors import PlannerError
from planner.place.stage_rings import ring_rules
from planner.place.stages import pattern_bytes, piece_rows
from planner.place.whole_numbers import Model, least_choice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.stage_prices import Priced
    from planner.place.stages import Staged
    from planner.place.whole_numbers import Effort

_SURE = 1e-6  # relative; a pattern at the limit may be left out by rounding
_MET = 1e-9  # relative; by which patterns are listed beyond the slack
_SHARES = (1.0, 0.5, 0.25, 0.12, 0.06, 0.03, 0.01)  # of the slack, till patterns are few enough


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The best choice of patterns found, and a bound of all choices.

    Args:
        held: cells of every stage that each domain holds, shape [domains, stages]; None where the
            solver found none.
        bound_bytes: what every seating cuts at least [bytes].
        all: whether no pattern of a better seating was left out.
    """

    held: NDArray[np.int64] | None
    bound_bytes: float
    all: bool


def choice_of(
    of: Staged,
    priced: Priced,
    cut_bytes: float,
    limit_s: float,
    effort: Effort,
    known: NDArray[np.int64] | None = None,
) -> Choice:
    """Choose a pattern for every domain, in whole numbers.

    Args:
        of: the question.
        priced: prices of the stages' cells.
        cut_bytes: of the best seating known; patterns of no better one are left out [bytes].
        limit_s: seconds that the solver may take [s].
        effort: where there are more patterns to choose from, less is proved.
        known: cells of every stage that each domain holds in a seating that cuts no more than
            *cut_bytes*, shape [domains, stages]; its patterns are looked for in the list.

    Raises:
        PlannerError: one is not there, though it is cheap enough: that nothing can be chosen from
            the list would prove nothing.
    """
    slack = max(cut_bytes - priced.bound_bytes, _MET * cut_bytes) * (1 + _MET)
    listed = _listed(of, priced, slack, effort.listed)
    if listed is None:
        return Choice(held=None, bound_bytes=0.0, all=False)
    if known is not None:
        _refuse_incomplete(of, priced, listed, known, slack)
    model = _model(of, listed)
    unit_bytes = max(cut_bytes - listed.base_bytes, slack)  # rings may count in the choice alone
    solved = least_choice(model, unit_bytes, limit_s, effort)
    bound = 0.0
    if solved.least > -inf:
        bound = listed.base_bytes + solved.sure(len(of.question.capacities)) * unit_bytes
        bound = min(bound, priced.bound_bytes + listed.share * slack)
    held = None
    if solved.times is not None:
        held = _dealt(of, listed, np.rint(solved.times[: len(listed.rows)]).astype(int))
    return Choice(held=held, bound_bytes=bound, all=listed.share >= 1.0 and solved.ended)


def _model(of: Staged, listed: _Listed) -> Model:
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
    return Model(cost_bytes=cost, whole=whole, highest=highest, rows=rows, least=least, most=most)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Listed:
    """Patterns to choose from.

    Args:
        rows: shape [patterns, stages].
        classes: of which size of domain, shape [patterns].
        cost_bytes: what each pays less its cells' prices, above the least of its class [bytes].
        base_bytes: the cut of a choice of patterns that cost nought [bytes].
        share: of the slack; a seating with another pattern cuts more than the bound and this.
    """

    rows: NDArray[np.int64]
    classes: NDArray[np.int64]
    cost_bytes: NDArray[np.float64]
    base_bytes: float
    share: float


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
        share=share,
    )


def _refuse_incomplete(
    of: Staged, priced: Priced, listed: _Listed, known: NDArray[np.int64], slack_bytes: float
) -> None:
    sizes, _ = of.domains
    held = np.column_stack([np.searchsorted(sizes, of.question.capacities), known])
    held = np.unique(held[known.any(axis=1)], axis=0)
    there = set(map(bytes, np.column_stack([listed.classes, listed.rows])))
    for row in held:
        if bytes(row) in there:
            continue
        pays = float(pattern_bytes(of, row[None, 1:])[0] - row[1:] @ priced.prices.cell_bytes)
        above = pays - priced.patterns.least(int(sizes[row[0]]))
        if above < listed.share * slack_bytes * (1 - _SURE):
            raise PlannerError(
                f"the choice of stages leaves out {row[1:].tolist()} cells, which the placement in "
                "hand has: this is a fault of the planner, and the placement is withheld"
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
