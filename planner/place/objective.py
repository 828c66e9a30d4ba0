"""The bottleneck: the seating whose busiest border takes least time.

Begins with what has the least cut, for a cut that is least and evenly shared is best for every
border; then tiles, fillings and baselines by their busiest border, exchanges between busy domains
and others, and a solver where the question is small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InputError, PlannerError
from planner.place.answer import Proof
from planner.place.baselines import baselines
from planner.place.clock import TimeUp, left_s, look
from planner.place.fill import filled
from planner.place.objective_bound import border_bound_s, boxes_kept
from planner.place.objective_search import (
    border_times_s,
    coarse_home,
    less_busy,
    stages_swapped,
)
from planner.place.question import coarsen, cut_bytes, refine_home
from planner.place.tiles import best_tiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from planner.place.answer import Answer
    from planner.place.question import Question

_MET = 1e-9  # relative; rounding of sums of floating-point bytes
_SOLVER_MET = 1e-6  # relative; HiGHS' own feasibility tolerance
_SOLVER_SEATS = 240  # cells x domains past which the model is not worth building
_SEARCH_CELLS = 20_000
_STARTS = 3  # seatings that exchanges start from
_TILES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class BorderAnswer:
    """A seating of a question's cells by its busiest border.

    Args:
        home: domain of each cell.
        objective_s: the longest that any border takes for what it sends in one step [s].
        lower_bound_s: what the busiest border takes at least in every seating; equal to the
            objective where that is proved [s].
        proof: how the bound was reached.
        method: how the seating was found, in words.
        interrupted: the user ended the search; the seating is the best until then.
    """

    home: tuple[int, ...]
    objective_s: float
    lower_bound_s: float
    proof: Proof
    method: str
    interrupted: bool = False


def least_busy(
    question: Question,
    uplink_bytes_per_s: Sequence[float],
    total: Answer,
    *,
    time_limit_s: float = 20.0,
    seed: int = 0,
) -> BorderAnswer:
    """Return the best seating found for the busiest border, its bound, and how that was proved.

    Ctrl-C or the end of the whole run ends the search: the answer is the best so far.

    Args:
        question: the grid, its charges, the domains' capacities.
        uplink_bytes_per_s: uplink of each domain, one direction [bytes/s].
        total: the answer for the total cut of the same question; its bound is used.
        time_limit_s: seconds the solver may take, 0 to do without it [s].
        seed: of everything random.

    Raises:
        InputError: a domain among several has no uplink.
        SolverError: the solver failed without an answer.
    """
    home = np.array(total.home)
    if len(question.capacities) < 2:
        return _answer(home, 0.0, 0.0, Proof.BOUND, total.method)
    _refuse_dead_ends(uplink_bytes_per_s)
    state = _Search(question, uplink_bytes_per_s, total, seed)
    state.offer(home, total.method)
    if state.busy_s == 0.0:
        return _answer(home, 0.0, 0.0, Proof.BOUND, total.method)
    proof, interrupted = Proof.BOUND, False
    try:
        state.raise_bound()
        state.try_candidates()
        state.exchange()
        if not state.met():
            state.raise_bound()  # less busy seatings than before are left to look at
        time_limit_s = min(time_limit_s, left_s())
        if not state.met() and time_limit_s > 0 and state.solve(time_limit_s):
            proof = Proof.SOLVER
    except (KeyboardInterrupt, TimeUp) as ended:
        interrupted = isinstance(ended, KeyboardInterrupt)
    if proof is Proof.BOUND and not state.met():
        proof = Proof.INCUMBENT
    bound_s = state.bound_s if proof is Proof.INCUMBENT else state.busy_s
    found = _answer(state.home, state.busy_s, bound_s, proof, state.method)
    return replace(found, interrupted=interrupted)


class _Search:
    """The best seatings so far by their busiest border, and the bound."""

    def __init__(
        self,
        question: Question,
        uplink_bytes_per_s: Sequence[float],
        total: Answer,
        seed: int,
    ) -> None:
        self.question, self.rates, self.total = question, uplink_bytes_per_s, total
        self.speeds = np.asarray(uplink_bytes_per_s, np.float64)
        self.seed, self.bound_s = seed, 0.0
        self.sides = (1,) * len(question.sizes)
        self.starts: list[tuple[float, NDArray[np.int64], str]] = []

    @property
    def busy_s(self) -> float:
        """The busiest border of the best seating [s]."""
        return self.starts[0][0]

    @property
    def home(self) -> NDArray[np.int64]:
        """The best seating."""
        return self.starts[0][1]

    @property
    def method(self) -> str:
        """How it was found."""
        return self.starts[0][2]

    def met(self, share: float = _MET) -> bool:
        """Return whether the bound proves the best seating."""
        return _meets(self.busy_s, self.bound_s, share)

    def offer(self, home: NDArray[np.int64], method: str) -> None:
        """Keep *home* if it is among the best few, before those that it beats by a hair or more."""
        took_s = float(border_times_s(self.question, self.speeds, home).max())
        place = sum(took_s >= other_s * (1 - _MET) for other_s, _, _ in self.starts)
        self.starts.insert(place, (took_s, home, method))
        del self.starts[_STARTS:]

    @property
    def boxes(self) -> Question:
        """The question of the boxes that every less busy seating keeps, as far as known."""
        volume = prod(self.sides)
        return coarsen(self.question, self.sides, [c // volume for c in self.question.capacities])

    def raise_bound(self) -> None:
        """Take the bound of the boxes that every less busy seating keeps."""
        self.sides = boxes_kept(self.question, self.home, self.rates, self.busy_s)
        found_s = border_bound_s(self.boxes, self.rates, self.total.lower_bound_bytes, self.busy_s)
        self.bound_s = max(self.bound_s, found_s)

    def try_candidates(self) -> None:
        """Offer tiles, fillings and baselines."""
        for home, method in _candidates(self.question, self.seed):
            if self.met():
                return
            self.offer(home, method)
            look()

    def exchange(self) -> None:
        """Offer what exchanges make of the best few."""
        if self.met() or self.question.cells > _SEARCH_CELLS:
            return
        for _, start, method in list(self.starts):
            home = stages_swapped(self.question, self.speeds, start)
            if (home != start).any():
                self.offer(home, f"{method}, then stages exchanged")
        for _, start, method in list(self.starts):
            if self.met():
                return
            home = less_busy(
                self.question, self.speeds, start, enough_s=self.bound_s, seed=self.seed
            )
            home = stages_swapped(self.question, self.speeds, home)
            if (home != start).any():
                self.offer(home, f"{method}, then exchanges between borders")

    def solve(self, time_limit_s: float) -> bool:
        """Let a solver seat these boxes where they are few; return whether it closed the gap."""
        question, sides, coarse = self.question, self.sides, self.boxes
        if not _is_small(coarse, self.rates):
            return False
        start = coarse_home(question, sides, self.home)
        solved_s, found, closed = _solved(
            coarse, self.speeds, start, self.busy_s, time_limit_s, self.seed
        )
        if found is not None:
            words = "solver" if prod(sides) == 1 else f"solver on {coarse.cells} blocks"
            self.offer(refine_home(question, sides, found), words)
        self.bound_s = max(self.bound_s, min(solved_s, self.busy_s))
        return closed and self.met(_SOLVER_MET)


def by_border(question: Question, total: Answer, border: BorderAnswer) -> Answer:
    """Return *border*'s seating as an answer to what it cuts, by the bound of *total*."""
    cut = cut_bytes(question, np.array(border.home))
    least = cut - total.lower_bound_bytes <= _MET * cut
    return replace(
        total,
        home=border.home,
        objective_bytes=cut,
        proof=total.proof if least else Proof.INCUMBENT,
        method=border.method,
    )


def _answer(
    home: NDArray[np.int64], busy_s: float, bound_s: float, proof: Proof, method: str
) -> BorderAnswer:
    return BorderAnswer(
        home=tuple(home.tolist()),
        objective_s=busy_s,
        lower_bound_s=min(bound_s, busy_s),
        proof=proof,
        method=method,
    )


def _refuse_dead_ends(uplink_bytes_per_s: Sequence[float]) -> None:
    dead = [s for s, rate in enumerate(uplink_bytes_per_s) if rate <= 0]
    if dead:
        raise InputError(
            f"objective 'bottleneck': domain {dead[0]} has no uplink, so that its border takes "
            "for ever; expected a rate above 0 for each"
        )


def _meets(busy_s: float, bound_s: float, share: float) -> bool:
    """Return whether *bound_s* proves *busy_s*.

    Raises:
        PlannerError: a bound above a time that was counted is a fault of ours, not a proof.
    """
    if bound_s > busy_s * (1 + 1e-6):
        raise PlannerError(
            f"the lower bound of {bound_s:.6g} s is above a seating's {busy_s:.6g} s: this is a "
            "fault of the planner, and the placement is withheld"
        )
    return busy_s - bound_s <= share * busy_s


def _candidates(question: Question, seed: int) -> Iterator[tuple[NDArray[np.int64], str]]:
    capacities = question.capacities
    if len(set(capacities)) == 1 and sum(capacities) == question.cells:
        for tile in best_tiles(question, capacities[0], _TILES):
            sides = "x".join(str(a) for a in tile.sides)
            home = refine_home(question, tile.sides, np.arange(len(capacities)))
            yield home, f"equal tiles {sides}"
    for home in filled(question):
        yield home, "tiles filled one domain after the other"
    for name, home in baselines(question, seed):
        yield home, f"the {name} baseline"


def _is_small(question: Question, uplink_bytes_per_s: Sequence[float]) -> bool:
    """Return whether a solver is worth while."""
    return question.cells * len(uplink_bytes_per_s) <= _SOLVER_SEATS


def _solved(
    question: Question,
    uplink_bytes_per_s: NDArray[np.float64],
    home: NDArray[np.int64],
    busy_s: float,
    time_limit_s: float,
    seed: int,
) -> tuple[float, NDArray[np.int64] | None, bool]:
    """Return (what the solver proved [s], a seating better than *busy_s* or None, closed)."""
    from planner.place.milp import solve_border  # noqa: PLC0415 - imports a solver

    mean = float(uplink_bytes_per_s.mean())
    solved = solve_border(
        question,
        uplink_bytes_per_s.tolist(),
        home,
        max(busy_s * mean / 1000.0, 1e-300),
        time_limit_s,
        seed,
    )
    better = None
    if solved.home is not None:
        found = np.array(solved.home)
        if border_times_s(question, uplink_bytes_per_s, found).max() < busy_s * (1 - _MET):
            better = found
    return solved.lower_bound_bytes / mean, better, solved.closed
