"""The search over all tiers: chains of tiles, deals outwards, seats inwards; the best is kept."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import PlannerError
from planner.place.answer import Proof
from planner.place.chains import ordered_chain, weighted_chain
from planner.place.fill import filled
from planner.place.inside import sunk
from planner.place.kept import holdings, whole_boxes
from planner.place.kept_stages import stage_boxes
from planner.place.labour import Least, least_of
from planner.place.question import Question, cut_bytes, refine_home
from planner.place.rise import risen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from planner.place.answer import Answer
    from planner.place.labour import Labour
    from planner.place.tree import Tree

    Answering = Callable[[Question], Answer | None]

MET = 1e-9  # relative; below it a gap is rounding of sums of floating-point bytes
_NOISE_BYTES = 1e-3  # what rounding may leave of a bound that is nought
_MORE_CELLS = 4096  # grids up to which other seatings of the same cut are tried
TILED_CELLS = 20_000  # grids past which a chain of tiles is not held against other seatings
_MORE_TRIED = 4
HOLDINGS_FEW = 64  # sizes of content up to which another tier's question is asked by itself


@dataclass(frozen=True, slots=True, kw_only=True)
class AsGood:
    """A bound of an outer tier that holds for seatings as good at the tiers before it.

    Args:
        before_bytes: what these cut at most at the tiers from the asked one up to it [bytes].
        least: what they cut at least at the tier.
    """

    before_bytes: tuple[float, ...]
    least: Least


class Search:
    """The best seating so far, by the cuts of all tiers, and what is known of the least.

    ``bounds`` hold for all seatings; those of the tiers in ``believed`` are a solver's word.
    """

    def __init__(
        self,
        *,
        questions: list[Question],
        tree: Tree,
        order: tuple[int, ...],
        bounds: list[float],
        weights: Sequence[float] | None,
        labour: Labour,
    ) -> None:
        self.questions = questions
        self.tree = tree
        self.order = order
        self.bounds = bounds
        self.weights = weights
        self.labour = labour
        self.home: NDArray[np.int64] | None = None
        self.cuts: tuple[float, ...] = ()
        self.method = ""
        self.believed: set[int] = set()
        self.as_good: dict[int, AsGood] = {}

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
            return weighed[0] < weighed[1] * (1 - MET)
        return _first_less([one[t] for t in self.order], [two[t] for t in self.order])

    def known_as_good(self, asked: int, tier: int) -> Least:
        """Return what *tier* cuts at least in seatings as good from *asked* to it, if known."""
        known = self.as_good.get(tier)
        if known is None:
            return Least()
        now = self.cuts[asked:tier]
        close = all(b <= a * (1 + MET) for a, b in zip(known.before_bytes, now, strict=True))
        return known.least if close else Least()

    def met_at(self, asked: int, tier: int) -> bool:
        """Return whether *tier* meets its bound, of all seatings or of those as good before."""
        cut = self.cuts[tier]
        return meets(cut, self.bounds[tier]) or meets(
            cut, self.known_as_good(asked, tier).bound_bytes
        )

    def met(self) -> bool:
        """Return whether every tier's cut meets its bound."""
        return self.home is not None and all(map(meets, self.cuts, self.bounds))


def _first_less(one: Sequence[float], two: Sequence[float]) -> bool:
    """Return whether *one* comes before *two* in lexicographic order, rounding apart.

    >>> _first_less((1.0, 5.0), (1.0 + 1e-12, 6.0))
    True
    """
    for a, b in zip(one, two, strict=True):
        if abs(a - b) > MET * max(abs(a), abs(b)):
            return a < b
    return False


def meets(cut_bytes: float, bound_bytes: float) -> bool:
    """Return whether *bound_bytes* proves *cut_bytes*.

    Raises:
        PlannerError: a bound above a cut that was counted is a fault of ours, not a proof.
    """
    if bound_bytes > cut_bytes * (1 + 1e-6) + _NOISE_BYTES:
        raise PlannerError(
            f"the lower bound of {bound_bytes:.6g} bytes is above a seating's {cut_bytes:.6g}: "
            "this is a fault of the planner, and the placement is withheld"
        )
    return cut_bytes - bound_bytes <= MET * max(cut_bytes, 1e-300)


def search(state: Search, asked: int, home: NDArray[np.int64]) -> None:
    """Offer *state* whatever *home*, given at the *asked* tier, and its rivals grow into."""
    _offer_chain(state, asked)
    if state.met() or (state.home is not None and state.cells > TILED_CELLS):
        return
    grow(state, asked, home)
    _ask(state, asked, state.labour.quick)
    _ask(state, asked, state.labour.answer)
    if state.cells <= _MORE_CELLS:
        for other in _as_cheap(state, asked, home):
            if state.labour.over or all(state.met_at(asked, tier) for tier in state.order):
                return
            grow(state, asked, other)


def _ask(state: Search, asked: int, answer_to: Answering) -> None:
    """Ask the questions of the tiers that do not meet their bounds."""
    for tier in state.order[1:]:
        if not state.met_at(asked, tier) and state.weights is None and tier > asked:
            _solve_whole(state, asked, tier, answer_to)
        if not (state.met_at(asked, tier) or state.known_as_good(asked, tier).bound_bytes):
            _solve_alone(state, asked, tier, answer_to)


def _solve_whole(state: Search, asked: int, tier: int, answer_to: Answering) -> None:
    """Seat whole boxes in the domains of an outer tier; bound what keeps them."""
    before, least = state.cuts[asked:tier], Least()
    for boxes_of in (stage_boxes, whole_boxes):
        boxes = boxes_of(state.questions, state.tree, state.cuts, asked, tier)
        if boxes is None or holdings(boxes.question) > HOLDINGS_FEW:
            continue
        answer = answer_to(boxes.question)
        if answer is None:
            return
        if answer.lower_bound_bytes > least.bound_bytes:
            least = least_of(answer)
            state.as_good[tier] = AsGood(before_bytes=before, least=least)
        grow(state, tier, refine_home(state.questions[tier], boxes.sides, np.array(answer.home)))
        if state.met_at(asked, tier):
            return


def _solve_alone(state: Search, asked: int, tier: int, answer_to: Answering) -> None:
    """Ask the question of one tier as if it were the only one."""
    if holdings(state.questions[tier]) > HOLDINGS_FEW:
        return
    answer = answer_to(state.questions[tier])
    if answer is None:
        return
    if answer.lower_bound_bytes > state.bounds[tier]:
        state.bounds[tier] = answer.lower_bound_bytes
        if least_of(answer).proof is Proof.SOLVER:
            state.believed.add(tier)
    if tier > asked or state.weights is not None:
        grow(state, tier, np.array(answer.home))


def grow(
    state: Search,
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
    if not state.labour.over and settled < len(tree.names) - 2:
        home = risen(question, tree, tier, home, tile=tile, settled=settled, labour=state.labour)
    state.offer(sunk(question, tree, tier, home, labour=state.labour), method)


def _as_cheap(state: Search, asked: int, home: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Yield seatings by filling that cut as little as *home* at the asked tier, the best first."""
    question, known = state.questions[asked], {home.tobytes()}
    least = cut_bytes(question, home)
    found: list[tuple[tuple[float, ...], int, NDArray[np.int64]]] = []
    for other in filled(question):
        if state.labour.over:
            break
        if other.tobytes() in known:
            continue
        known.add(other.tobytes())
        if cut_bytes(question, other) <= least * (1 + MET):
            found.append((state.cuts_of(other, asked), len(found), other))
    for _, _, other in sorted(found, key=lambda one: one[:2])[:_MORE_TRIED]:
        yield other


def _offer_chain(state: Search, asked: int) -> None:
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
    tiles = ["x".join(map(str, sides)) or "1" for sides in chain]
    method = f"equal tiles {tiles[asked - low]}"
    others = [
        f"{name} {tile}"
        for tier, (name, tile) in enumerate(zip(tree.names[low:], tiles, strict=False), low)
        if tier != asked and len(tree.capacities[tier]) > 1
    ]
    method += f", nested with {', '.join(others)}" if others else ""
    grow(state, low, home, method=method, tile=chain[-1], settled=high)


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
