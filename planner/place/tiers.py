"""All tiers at once: the asked one first, then the outer ones, then the inner ones.

Every tier is made as good as the tiers before it allow: equal domains by chains of nested tiles,
others by dealing whole contents out anew (``rise.py``) and by seating each content in the inner
domains (``inside.py``). Or, weighted, the sum over tiers of cut / rate is made least. Each tier
has a lower bound of its own; what is proved when some are met: ``FORMULATION.md``, *Tiers*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, prod
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InputError, PlannerError
from planner.place.answer import Proof
from planner.place.bound import lower_bound, split_bound
from planner.place.chains import ordered_chain, weighted_chain
from planner.place.fill import filled
from planner.place.inside import sunk
from planner.place.question import (
    Kind,
    Question,
    coarsen,
    cut_bytes,
    held_units,
    refine_home,
)
from planner.place.rise import risen
from planner.place.sharing import sharpened_bound
from planner.place.solve import solve_question

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from planner.place.question import Charge
    from planner.place.tree import Tree

WAYS = ("lexicographic", "weighted")

_MET = 1e-9  # relative; below it a gap is rounding of sums of floating-point bytes
_NOISE_BYTES = 1e-3  # what rounding may leave of a bound that is nought
_MORE_CELLS = 4096  # grids up to which other seatings of the same cut are tried
_TILED_CELLS = 20_000  # grids past which a chain of tiles is not held against other seatings
_MORE_TRIED = 4
_SOLVE_S = 2.0  # seconds that the question of another tier alone may take


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
    """

    home: NDArray[np.int64]
    bounds: tuple[TierBound, ...]
    order: tuple[int, ...]
    weights: tuple[float, ...]
    method: str = ""

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


def weights_of(tree: Tree, given: Mapping[str, float] | None = None) -> tuple[float, ...]:
    """Return 1 / rate of each tier, the rate being that of all its borders together [s/byte].

    So weight x cut is how long a border of the tier takes on average. The outermost tier has no
    border and no weight.

    Raises:
        InputError: no rate is known for a border, or a weight is given that cannot be.
    """
    faults, weights = [], []
    for name, uplinks in zip(tree.names, tree.uplinks, strict=True):
        rate = sum(uplinks)
        value = 0.0 if len(uplinks) == 1 else 1 / rate if rate > 0 else inf
        value = (given or {}).get(name, value)
        if not 0 <= value < inf:
            faults.append(
                f"tier {name!r}: weight {value!r}: expected 0 or more, or uplinks with a rate"
            )
        weights.append(value)
    faults += [
        f"tier {name!r} is unknown: one of {', '.join(tree.names)}"
        for name in sorted(set(given or {}) - set(tree.names))
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
        ends_s: start no further search when ``time.monotonic()`` is past this [s].
    """
    order = importance(len(tree.names), asked)
    questions = [replace(question, capacities=capacities) for capacities in tree.capacities]
    bounds = [0.0 if len(q.capacities) == 1 else lower_bound(q) for q in questions]
    bounds[asked] = max(bounds[asked], asked_bound.lower_bound_bytes)
    state = _Search(
        questions=questions, tree=tree, order=order, bounds=bounds, weights=weights, ends_s=ends_s
    )
    if fixed:
        state.offer(sunk(question, tree, asked, home, ends_s=ends_s))
    else:
        _search(state, asked, home)
    return _judged(state, asked, asked_bound)


class _Search:
    """The best seating so far, by the cuts of all tiers."""

    def __init__(
        self,
        *,
        questions: list[Question],
        tree: Tree,
        order: tuple[int, ...],
        bounds: list[float],
        weights: Sequence[float] | None,
        ends_s: float,
    ) -> None:
        self.questions = questions
        self.tree = tree
        self.order = order
        self.bounds = bounds
        self.weights = weights
        self.ends_s = ends_s
        self.home: NDArray[np.int64] | None = None
        self.cuts: tuple[float, ...] = ()
        self.method = ""

    @property
    def cells(self) -> int:
        """Cells of the grid [1]."""
        return self.questions[0].cells

    def cuts_of(self, home: NDArray[np.int64], tier: int) -> tuple[float, ...]:
        """Return the cut at *tier*, where *home* is given, and at every outer one [bytes]."""
        return tuple(
            cut_bytes(self.questions[outer], self.tree.outward(home, tier, outer))
            if len(self.tree.capacities[outer]) > 1
            else 0.0
            for outer in range(tier, len(self.questions))
        )

    def offer(self, home: NDArray[np.int64], method: str = "") -> None:
        """Keep *home*, given at the innermost tier, if it is the best so far."""
        cuts = self.cuts_of(home, 0)
        if self.home is None or self._before(cuts, self.cuts):
            self.home, self.cuts, self.method = home, cuts, method

    def _before(self, one: Sequence[float], two: Sequence[float]) -> bool:
        if self.weights is not None:
            weighed = [
                sum(w * cut for w, cut in zip(self.weights, cuts, strict=True))
                for cuts in (one, two)
            ]
            return weighed[0] < weighed[1] * (1 - _MET)
        return first_less([one[t] for t in self.order], [two[t] for t in self.order])

    def met(self) -> bool:
        """Return whether every tier's cut meets its bound."""
        return self.home is not None and all(map(_meets, self.cuts, self.bounds))


def first_less(one: Sequence[float], two: Sequence[float]) -> bool:
    """Return whether *one* comes before *two* in lexicographic order, rounding apart.

    >>> first_less((1.0, 5.0), (1.0 + 1e-12, 6.0))
    True
    """
    for a, b in zip(one, two, strict=True):
        if abs(a - b) > _MET * max(abs(a), abs(b)):
            return a < b
    return False


def _meets(cut: float, bound: float) -> bool:
    """Return whether *bound* proves *cut*.

    Raises:
        PlannerError: a bound above a cut that was counted is a fault of ours, not a proof.
    """
    if bound > cut * (1 + 1e-6) + _NOISE_BYTES:
        raise PlannerError(
            f"the lower bound of {bound:.6g} bytes is above a seating's {cut:.6g}: this is a "
            "fault of the planner, and the placement is withheld"
        )
    return cut - bound <= _MET * max(cut, 1e-300)


def _search(state: _Search, asked: int, home: NDArray[np.int64]) -> None:
    _offer_chain(state, asked)
    if state.met() or (state.home is not None and state.cells > _TILED_CELLS):
        return
    _grow(state, asked, home)
    if state.met():
        return
    if state.cells <= _MORE_CELLS:
        for other in _as_cheap(state, asked, home):
            _grow(state, asked, other)
            if state.met() or monotonic() > state.ends_s:
                return
    for tier in state.order[1:]:
        if monotonic() > state.ends_s:
            return
        if not _meets(state.cuts[tier], state.bounds[tier]):
            left_s = state.ends_s - monotonic()
            answer = solve_question(state.questions[tier], time_limit_s=min(_SOLVE_S, left_s))
            state.bounds[tier] = max(state.bounds[tier], answer.lower_bound_bytes)
            if tier > asked or state.weights is not None:
                _grow(state, tier, np.array(answer.home))


def _grow(
    state: _Search,
    tier: int,
    home: NDArray[np.int64],
    *,
    method: str = "",
    tile: Sequence[int] | None = None,
    settled: int | None = None,
) -> None:
    """Offer what *home*, given at *tier*, becomes when outer and then inner tiers are chosen."""
    question, tree = state.questions[tier], state.tree
    settled = tier if settled is None else settled
    if monotonic() <= state.ends_s and settled < len(tree.names) - 2:
        home = risen(question, tree, tier, home, tile=tile, settled=settled, ends_s=state.ends_s)
    state.offer(sunk(question, tree, tier, home, ends_s=state.ends_s), method)


def _as_cheap(state: _Search, asked: int, home: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield seatings by filling that cut as little as *home* at the asked tier, the best first."""
    question, known = state.questions[asked], {home.tobytes()}
    least = cut_bytes(question, home)
    found: list[tuple[tuple[float, ...], int, NDArray[np.int64]]] = []
    for other in filled(question):
        if monotonic() > state.ends_s:
            break
        if other.tobytes() in known:
            continue
        known.add(other.tobytes())
        if cut_bytes(question, other) <= least * (1 + _MET):
            found.append((state.cuts_of(other, asked), len(found), other))
    for _, _, other in sorted(found, key=lambda one: one[:2])[:_MORE_TRIED]:
        yield other


def _offer_chain(state: _Search, asked: int) -> None:
    """Offer the best chain of nested tiles, where domains are equal.

    The chain runs over all neighbouring tiers of equal domains around the asked one; tiers outside
    them are chosen as for any seating.
    """
    tree, cells = state.tree, state.cells
    low = high = asked
    while low > 0 and tree.regular(low - 1, cells):
        low -= 1
    while high < len(tree.names) - 1 and tree.regular(high + 1, cells):
        high += 1
    if not tree.regular(asked, cells):
        return
    volumes = [tree.capacities[tier][0] for tier in range(low, high + 1)]
    question = state.questions[asked]
    if state.weights is None:
        order = [tier - low for tier in state.order if low <= tier <= high]
        chain = ordered_chain(question, volumes, order)
    else:
        chain = weighted_chain(question, volumes, state.weights[low : high + 1])
    home = nested_home(question.sizes, chain, tree, low)
    tiles = ["x".join(map(str, sides)) for sides in chain]
    method = f"equal tiles {tiles[asked - low]}"
    others = [
        f"{name} {tile}"
        for tier, (name, tile) in enumerate(zip(tree.names[low:], tiles, strict=False), low)
        if tier != asked and len(tree.capacities[tier]) > 1
    ]
    method += f", nested with {', '.join(others)}" if others else ""
    _grow(state, low, home, method=method, tile=chain[-1], settled=high)


def nested_home(
    sizes: Sequence[int], chain: Sequence[Sequence[int]], tree: Tree, low: int
) -> NDArray[np.int64]:
    """Return the domain at tier *low* of each cell, for a chain of tiles from there outwards.

    The boxes inside a box take the inner domains of its domain in grid order.

    Args:
        sizes: of the grid.
        chain: sides of the tile of each tier from *low*, each divides the next.
        tree: the domains; those of a tier of the chain are all equal.
        low: innermost tier of the chain.
    """
    home = _numbers(sizes, chain[-1])
    for step in range(len(chain) - 2, -1, -1):
        tier = low + step
        per_parent = len(tree.capacities[tier]) // len(tree.capacities[tier + 1])
        children = np.argsort(tree.parents[tier], kind="stable").reshape(-1, per_parent)
        within = _numbers_within(sizes, chain[step], chain[step + 1])
        home = children[home, within]
    return home


def _numbers(sizes: Sequence[int], sides: Sequence[int]) -> NDArray[np.int64]:
    """Return the number of the box of *sides* that each cell of a grid of *sizes* lies in."""
    grid = Question(sizes=tuple(sizes), charges=(), capacities=(prod(sizes),))
    return refine_home(grid, sides, np.arange(prod(sizes) // prod(sides)))


def _numbers_within(
    sizes: Sequence[int], inner: Sequence[int], outer: Sequence[int]
) -> NDArray[np.int64]:
    """Return the number, inside its outer box, of the inner box that each cell lies in."""
    number, step, left = np.zeros(prod(sizes), np.int64), 1, np.arange(prod(sizes))
    for size, small, large in zip(sizes, inner, outer, strict=True):
        number += (left % size % large) // small * step
        step *= large // small
        left //= size
    return number


def _judged(state: _Search, asked: int, asked_bound: TierBound) -> SeatedTiers:
    """Return the best seating with a bound and a proof for every tier."""
    if state.home is None:
        raise PlannerError("no seating was found: this is a fault of the planner")
    judged: dict[int, TierBound] = {}
    for place, tier in enumerate(state.order):
        cut, bound, among = state.cuts[tier], state.bounds[tier], "all"
        proof = Proof.BOUND if _meets(cut, bound) else Proof.INCUMBENT
        if tier == asked and abs(cut - asked_bound.cut_bytes) <= _MET * cut:
            proof = asked_bound.proof
        if proof is Proof.INCUMBENT and tier != asked:
            bound, among = _closer_bound(state, place)
            proof = Proof.BOUND if _meets(cut, bound) else Proof.INCUMBENT
        judged[tier] = TierBound(
            cut_bytes=cut,
            lower_bound_bytes=cut if proof is not Proof.INCUMBENT else min(cut, bound),
            proof=proof,
            among=among,
        )
    return SeatedTiers(
        home=state.home,
        bounds=tuple(judged[tier] for tier in range(len(state.questions))),
        order=state.order,
        weights=tuple(state.weights or [0.0] * len(state.questions)),
        method=state.method,
    )


def _closer_bound(state: _Search, place: int) -> tuple[float, str]:
    """Return the best bound of the tier at *place* in the order, and what it is a bound of."""
    tier = state.order[place]
    cut, question = state.cuts[tier], state.questions[tier]
    bound = max(state.bounds[tier], sharpened_bound(question, cut, state.ends_s))
    if _meets(cut, bound) or state.weights is not None:
        return bound, "all"
    kept: set[int] = set()
    for before in state.order[:place]:
        if before < tier and len(state.tree.capacities[before]) > 1:  # whole there, whole here
            kept |= _kept_axes(state.questions[before], state.cuts[before], kept)
    conditional = _bound_when_kept(question, kept, cut, state.ends_s) if kept else 0.0
    return (conditional, "as good before") if conditional > bound * (1 + _MET) else (bound, "all")


def _bound_when_kept(question: Question, kept: set[int], cut: float, ends_s: float) -> float:
    """Return the bound of seatings that keep every line along the axes *kept* whole [bytes]."""
    sides = [n if axis in kept else 1 for axis, n in enumerate(question.sizes)]
    boxes = [capacity // prod(sides) for capacity in question.capacities]
    if sum(boxes) < question.cells // prod(sides):
        return 0.0
    coarse = coarsen(question, sides, boxes)
    bound = sharpened_bound(coarse, cut, ends_s)
    left_s = min(_SOLVE_S, ends_s - monotonic())
    if _meets(cut, bound) or left_s <= 0:
        return bound
    return max(bound, solve_question(coarse, time_limit_s=left_s).lower_bound_bytes)


def _kept_axes(question: Question, cut: float, known: set[int]) -> set[int]:
    """Return the axes whose every line lies in one domain in all seatings that cut no more.

    Axes *known* to be are left out. A seating that parts a line pays one split group of every
    charge along the axis besides the bound of the others, and at least ``split_bound``:
    *Splitting is dear* in ``FORMULATION.md``.
    """
    kept = set()
    for axis, size in enumerate(question.sizes):
        along = [charge for charge in question.charges if axis in charge.axes]
        if size == 1 or not along or axis in known or size > max(question.capacities):
            continue
        others = tuple(charge for charge in question.charges if axis not in charge.axes)
        split = lower_bound(replace(question, charges=others)) + sum(
            charge.weight_bytes * _least_split_units(charge, question.group_size(charge.axes))
            for charge in along
        )
        if max(split, split_bound(question, axis)) > cut * (1 + 1e-6) + _NOISE_BYTES:
            kept.add(axis)
    return kept


def _least_split_units(charge: Charge, size: int) -> float:
    """Return the units that a group of *size* members pays at least when it is parted."""
    if charge.kind in (Kind.PAIRS, Kind.COPIES):  # concave: one member apart is the cheapest
        units = held_units(charge, size)
        return units[1] + units[size - 1]
    return {Kind.TOUCH: 1.0, Kind.CHAIN: 1.0, Kind.RING: 2.0, Kind.ENDS: 0.0}[charge.kind]
