"""All tiers at once: the asked one first, then the outer ones, then the inner ones.

Every tier is made as good as the tiers before it allow: equal domains by chains of nested tiles,
others by dealing whole contents out anew (``rise.py``) and by seating each content in the inner
domains (``inside.py``). Or, weighted, the sum over tiers of cut / rate is made least. Each tier
has a lower bound of its own; what is proved when some are met: ``FORMULATION.md``, *Tiers*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from planner.errors import InputError, PlannerError
from planner.place.answer import Proof
from planner.place.bound import lower_bound
from planner.place.clock import TimeUp, unhurried
from planner.place.inside import sunk
from planner.place.interrupts import held_back
from planner.place.kept import holdings, whole_boxes
from planner.place.kept_inside import inside_bound
from planner.place.kept_stages import stage_boxes
from planner.place.labour import Labour
from planner.place.sharing import sharpened_bound
from planner.place.tier_search import HOLDINGS_FEW, MET, TILED_CELLS, Search, grow, meets, search

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from planner.place.question import Question
    from planner.place.tree import Tree

WAYS = ("lexicographic", "weighted")
_AS_GOOD = "as good before"
_HOLDINGS_MOST = 256  # sizes of content past which a tier's bound takes too long


@dataclass(frozen=True, slots=True, kw_only=True)
class TierBound:
    """One tier's cut and what is known to be the least.

    Args:
        cut_bytes: what crosses between the tier's domains [bytes].
        lower_bound_bytes: what crosses at least [bytes].
        proof: ``BOUND`` or ``SOLVER`` where the cut is the least, ``INCUMBENT`` where that is open.
        among: ``all`` placements; or only those ``as good before``, at the tiers that come first.
    """

    cut_bytes: float
    lower_bound_bytes: float
    proof: Proof
    among: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatedTiers:
    """A seating for all tiers.

    Args:
        home: domain of the innermost tier of each cell.
        bounds: by tier, innermost first.
        order: tiers by importance.
        weights: seconds for each byte across a tier, by tier; all nought in lexicographic order.
        method: the chain of tiles, in words, where that is the seating; or nothing.
        interrupted: the user ended the search.
    """

    home: NDArray[np.int64]
    bounds: tuple[TierBound, ...]
    order: tuple[int, ...]
    weights: tuple[float, ...]
    method: str = ""
    interrupted: bool = False

    @property
    def weighted_s(self) -> float:
        """Sum over tiers of weight x cut [s]."""
        return sum(w * b.cut_bytes for w, b in zip(self.weights, self.bounds, strict=True))

    @property
    def weighted_bound_s(self) -> float:
        """Sum over tiers of weight x bound, which no placement goes below [s]."""
        return sum(w * b.lower_bound_bytes for w, b in zip(self.weights, self.bounds, strict=True))


def importance(tiers: int, asked: int) -> tuple[int, ...]:
    """Return the tiers in order: the asked one, then outwards, then inwards.

    >>> importance(5, 1)
    (1, 2, 3, 4, 0)
    """
    return (asked, *range(asked + 1, tiers), *range(asked - 1, -1, -1))


def weights_of(tree: Tree, tier_weights: Mapping[str, float] | None = None) -> tuple[float, ...]:
    """Return 1 / rate of each tier, the rate being that of all its borders together [s/byte].

    So weight x cut is how long a border of the tier takes on average. The outermost tier has no
    border and no weight.

    Raises:
        InputError: no rate is known for a border, or a weight is given that cannot be.
    """
    faults, weights = [], []
    for name, uplinks in zip(tree.names, tree.uplinks_bytes_per_s, strict=True):
        rate = sum(uplinks)
        value = 0.0 if len(uplinks) == 1 else 1 / rate if rate > 0 else inf
        value = (tier_weights or {}).get(name, value)
        if not 0 <= value < inf:
            faults.append(
                f"tier {name!r}: weight {value!r}: expected 0 or more, or uplinks with a rate"
            )
        weights.append(value)
    faults += [
        f"tier {name!r} is unknown: one of {', '.join(tree.names)}"
        for name in sorted(set(tier_weights or {}) - set(tree.names))
    ]
    if faults:
        raise InputError(*faults)
    return tuple(weights)


def seat_tiers(
    question: Question,
    tree: Tree,
    asked: int,
    home: NDArray[np.int64],
    *,
    asked_bound: TierBound,
    weights: Sequence[float] | None = None,
    fixed: bool = False,
    favoured: NDArray[np.int64] | None = None,
    ends_s: float = inf,
) -> SeatedTiers:
    """Return the seating for all tiers that *home*, good at the asked one, grows into.

    Args:
        question: the grid, its charges, and the capacities of the asked tier.
        tree: the domains of all tiers.
        asked: the tier that comes first.
        home: domain of each cell at that tier.
        asked_bound: what is proved there for *home*.
        weights: seconds for each byte across each tier; None for lexicographic order.
        fixed: every cell stays in the very domain that *home* says; only inner tiers are chosen.
        favoured: homes that go before any other seating of the same cuts; none if left out.
        ends_s: start no further search when ``time.monotonic()`` is past this [s].

    Ctrl-C and the end of the whole run end the search, too: the answer is the best so far.
    """
    order = importance(len(tree.names), asked)
    questions = [replace(question, capacities=capacities) for capacities in tree.capacities]
    with held_back() as held:
        bounds = [_at_least(q) for q in questions]
    bounds[asked] = max(bounds[asked], asked_bound.lower_bound_bytes)
    state = Search(
        questions=questions,
        tree=tree,
        order=order,
        bounds=bounds,
        weights=weights,
        labour=Labour(ends_s=-inf if held.interrupted else ends_s),
    )
    try:
        if fixed:
            state.offer(sunk(question, tree, asked, home, labour=state.labour))
        else:
            if favoured is not None:
                grow(state, asked, favoured)
            search(state, asked, home)
        return replace(_judged(state, asked, asked_bound), interrupted=held.interrupted)
    except (KeyboardInterrupt, TimeUp) as ended:  # the asked tier is seated, others are in order
        interrupted = isinstance(ended, KeyboardInterrupt)
    state.labour.ends_s = -inf
    with unhurried():
        if state.home is None:
            state.offer(sunk(question, tree, asked, home, labour=state.labour))
        return replace(_judged(state, asked, asked_bound), interrupted=interrupted)


def _at_least(question: Question) -> float:
    """Return the quick bound of one tier, 0 where that takes too long [bytes]."""
    if len(question.capacities) == 1 or holdings(question) > _HOLDINGS_MOST:
        return 0.0
    try:
        return lower_bound(question)
    except TimeUp:
        return 0.0


def _judged(state: Search, asked: int, asked_bound: TierBound) -> SeatedTiers:
    """Return the best seating with a bound and a proof for every tier."""
    if state.home is None:
        raise PlannerError("no seating was found: this is a fault of the planner")
    judged: dict[int, TierBound] = {}
    for tier in state.order:
        found = _plain_bound(state, tier)
        same = abs(state.cuts[tier] - asked_bound.cut_bytes) <= MET * state.cuts[tier]
        if tier == asked and same:
            found = replace(found, proof=asked_bound.proof)
        if found.proof is Proof.INCUMBENT and tier != asked and state.labour.ends_s > -inf:
            found = _closer_bound(state, asked, tier)
        if found.proof is not Proof.INCUMBENT:
            found = replace(found, lower_bound_bytes=found.cut_bytes)
        judged[tier] = found
    return SeatedTiers(
        home=state.home,
        bounds=tuple(judged[tier] for tier in range(len(state.questions))),
        order=state.order,
        weights=tuple(state.weights or [0.0] * len(state.questions)),
        method=state.method,
    )


def _plain_bound(state: Search, tier: int) -> TierBound:
    word = Proof.SOLVER if tier in state.believed else Proof.BOUND
    return _bounded(state.cuts[tier], state.bounds[tier], "all", word)


def _bounded(cut_bytes: float, bound_bytes: float, among: str, word: Proof) -> TierBound:
    """Return a cut and its bound, proved by whose *word* the bound is if they meet."""
    return TierBound(
        cut_bytes=cut_bytes,
        lower_bound_bytes=min(cut_bytes, bound_bytes),
        proof=word if meets(cut_bytes, bound_bytes) else Proof.INCUMBENT,
        among=among,
    )


def _closer_bound(state: Search, asked: int, tier: int) -> TierBound:
    """Return the best bound of *tier*, of all placements or of those as good before.

    What holds for all is tried first, but for large grids, where it takes long.
    """
    found = _plain_bound(state, tier)
    ways = [
        partial(_sharper_bound, state, tier),
        partial(_bound_as_good, state, asked, tier)
        if tier > asked
        else partial(_bound_inside, state, tier),
    ]
    for bound_of in ways if state.cells <= TILED_CELLS else reversed(ways):
        other = bound_of()
        if other.lower_bound_bytes > found.lower_bound_bytes * (1 + MET):
            found = other
        if found.proof is not Proof.INCUMBENT:
            break
    return found


def _sharper_bound(state: Search, tier: int) -> TierBound:
    """Return what all seatings cut at least at *tier*, by what domains share."""
    question = state.questions[tier]
    if holdings(question) > HOLDINGS_FEW:
        return _plain_bound(state, tier)
    cut = state.cuts[tier]
    return _bounded(cut, sharpened_bound(question, cut), "all", Proof.BOUND)


def _bound_as_good(state: Search, asked: int, tier: int) -> TierBound:
    """Return what seatings as good before cut at least at *tier*, outside the asked one."""
    cut, known = state.cuts[tier], state.known_as_good(asked, tier)
    found = _bounded(cut, known.bound_bytes, _AS_GOOD, known.proof)
    if state.weights is not None or known.bound_bytes > 0.0:
        return found
    for boxes_of in (whole_boxes, stage_boxes):
        boxes = boxes_of(state.questions, state.tree, state.cuts, asked, tier)
        if boxes is not None and holdings(boxes.question) <= HOLDINGS_FEW:
            sharper = sharpened_bound(boxes.question, cut)
            if sharper > found.lower_bound_bytes:
                found = _bounded(cut, sharper, _AS_GOOD, Proof.BOUND)
        if found.proof is not Proof.INCUMBENT:
            break
    return found


def _bound_inside(state: Search, tier: int) -> TierBound:
    """Return the same of a tier inside the asked one."""
    if state.weights is not None:
        return _bounded(state.cuts[tier], 0.0, _AS_GOOD, Proof.BOUND)
    least = inside_bound(state.questions, state.tree, state.cuts, tier, state.labour)
    return _bounded(state.cuts[tier], least.bound_bytes, _AS_GOOD, least.proof)
