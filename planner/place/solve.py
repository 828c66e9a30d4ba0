"""Question to Answer: bound first, then tiles and fillings, then a solver for what is left.

Every source of the lower bound is valid by itself, and the greatest is kept: the domain bound of
``bound.py`` and of ``stacked.py``; with what domains share, of ``sharing.py``; the same on boxes
kept together, of ``merge.py``; and a solver's, of ``finish.py``. Cheap rules come first; what
closes the gap ends the search. Every step has its time limit and the run's end, of ``clock.py``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import PlannerError
from planner.place.answer import Answer, Progress, Proof
from planner.place.baselines import baselines
from planner.place.bound import lower_bound, rough_bound
from planner.place.clock import TimeUp, at_most_until, end_s, look, over, unhurried
from planner.place.fill import filled, ways_to_fill
from planner.place.improve import improved
from planner.place.merge import MET, bounds_by_merging
from planner.place.nested_fill import nested_fillings
from planner.place.pieces import piece_fillings
from planner.place.question import cut_bytes, refine_home
from planner.place.seat_line import line_fillings
from planner.place.strips import strip_fillings
from planner.place.tiles import best_tiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from planner.place.by_stages import Sweeps
    from planner.place.question import Question
    from planner.place.sheet_prices import SheetPrices
    from planner.place.stage_prices import Priced

    _Axes = tuple[int, ...]

_IMPROVE_CELLS = 20_000
_LARGE = 96  # seats of a domain, past which a sharp bound of what it pays may take seconds
_NOISE_BYTES = 1e-3  # what rounding may leave of a bound that is nought
_WAYS_HALVED = 3  # ways to fill the domains for which the grid is cut into slabs
SOLVER_MET = 1e-6  # relative; HiGHS' own feasibility tolerance
_FEW_SHARE = 0.5  # of the time, for the first choice of parts of sheets
_LATE = 1.2  # time limits after which exchanges end, too
_BOUNDS_SHARE = 0.8  # of that time, for bounds and first choices, before other seatings are tried
_ORDERS_SHARE = 0.35  # of what is left then, for domains filled one after the other
_NEAR_SHARE = 0.05  # open after it, up to which seatings and other choices come first
_CLOSE_SHARE = 0.005  # open, up to which exchanges are tried before slow bounds of large domains
_STARTS = 3  # seatings that exchanges start from, and the best by another rule


def solve_question(
    question: Question,
    *,
    time_limit_s: float = 20.0,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> Answer:
    """Return the best seating found, its bound, and how that was proved.

    Ctrl-C once a seating is in hand ends the search: the answer is the best so far, with its gap.
    So does the end of the whole run, by then with the baselines at least.

    Args:
        question: the grid, its charges, the domains' capacities.
        time_limit_s: seconds after which nothing is begun but rules and baselines, and long steps
            give what they have; 0 to do without a solver, in the time that takes [s].
        seed: of everything random.
        progress: called with every better seating or bound, as they come.

    Raises:
        SolverError: the solver failed without an answer.
    """
    work = Work(question=question, seed=seed, progress=progress)
    try:
        _search(work, time_limit_s)
    except KeyboardInterrupt:
        if not work.seatings:
            raise
        return work.answer(interrupted=True)
    except TimeUp:
        if not work.seatings:
            with unhurried():
                _offered(work, _baselines(question, seed))
    return work.answer()


def solve_within(question: Question, *, time_limit_s: float) -> Answer:
    """Return ``solve_question`` of a question asked within another.

    Ctrl-C goes on to the question that asks: its search ends, not only this one.
    """
    answer = solve_question(question, time_limit_s=time_limit_s)
    if answer.interrupted:
        raise KeyboardInterrupt
    return answer


def solve_by_rules(question: Question) -> Answer:
    """Return a seating and its bound without exchanges and without a solver."""
    work = Work(question=question, seed=0)
    if not _ruled(work, lower_bound):
        _bettered(work)
    return work.answer()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seating:
    """A seating found by a rule: its homes, its cut and the rule's name."""

    home: NDArray[np.int64]
    cut_bytes: float
    method: str


@dataclass(slots=True, kw_only=True)
class Work:
    """The best seatings and the best bound so far.

    Args:
        question: what is asked.
        seed: of everything random.
        progress: told of everything better.
        seatings: the best few, the cheapest first.
        bound_bytes: what every seating cuts at least, by our own arithmetic [bytes].
        solver_bytes: the same as a solver says, up to its tolerance [bytes].
        priced: good prices of parts, by the sides of boxes kept together and the sheets' axes.
        pricing: what may yet be found of them.
        staged: prices of what domains hold of every stage, by the same sides; None if it has none.
        stages_bytes: the best bound of such prices [bytes].
        swept: what is known of sweeps at these prices, and at those of parts of stages.
        few_bytes: the cut in hand when stages were chosen from few patterns last [bytes].
        stages_open: whether the last choice of stages was cut short, or made from some patterns.
        bettered: what exchanges made of seatings, by the question of their grid and their homes.
    """

    question: Question
    seed: int
    progress: Callable[[Progress], None] | None = None
    seatings: list[Seating] = field(default_factory=list)
    bound_bytes: float = 0.0
    solver_bytes: float = 0.0
    priced: dict[tuple[_Axes, _Axes], SheetPrices] = field(default_factory=dict)
    pricing: dict[tuple[_Axes, _Axes], Iterator[SheetPrices]] = field(default_factory=dict)
    staged: dict[_Axes, Priced | None] = field(default_factory=dict)
    stages_bytes: float = 0.0
    swept: dict[tuple[_Axes, bool], Sweeps] = field(default_factory=dict)
    few_bytes: float = inf
    stages_open: bool = False
    bettered: dict[tuple[Question, bytes], NDArray[np.int64]] = field(default_factory=dict)

    @property
    def best(self) -> Seating:
        """The cheapest seating so far."""
        return self.seatings[0]

    @property
    def proved(self) -> bool:
        """Whether nothing is left to do.

        Raises:
            PlannerError: a bound above a cut that was counted is a fault of ours, not a proof.
        """
        cut, bound = self.best.cut_bytes, max(self.bound_bytes, self.solver_bytes)
        if bound > cut * (1 + 2 * SOLVER_MET) + _NOISE_BYTES:
            raise PlannerError(
                f"the lower bound of {bound:.6g} bytes is above a seating's {cut:.6g}: "
                "this is a fault of the planner, and the placement is withheld"
            )
        return self.met or cut - self.solver_bytes <= SOLVER_MET * max(cut, 1e-300)

    @property
    def open_share(self) -> float:
        """Share of the best seating's cut that is above every bound [1]."""
        cut = self.best.cut_bytes
        return max(0.0, cut - max(self.bound_bytes, self.solver_bytes)) / max(cut, 1e-300)

    @property
    def met(self) -> bool:
        """Whether our own bound proves the best seating."""
        cut = self.best.cut_bytes
        return cut - self.bound_bytes <= MET * max(cut, 1e-300)

    def offer(self, home: NDArray[np.int64], method: str) -> bool:
        """Take up a seating if it is among the best; return whether that proves the answer."""
        cut = cut_bytes(self.question, home)
        if len(self.seatings) <= _STARTS or cut < self.seatings[-1].cut_bytes * (1 - MET):
            better = not self.seatings or cut < self.best.cut_bytes * (1 - MET)
            self.seatings.append(Seating(home=home, cut_bytes=cut, method=method))
            self.seatings.sort(key=lambda seating: seating.cut_bytes)
            first, rest = self.seatings[:_STARTS], self.seatings[_STARTS:]
            methods = {one.method for one in first}
            self.seatings = first + [one for one in rest if one.method not in methods][:1]
            if better:
                self._tell()
        return self.proved

    def exchanged(self, question: Question, home: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what exchanges make of a seating of *question*, which they do once."""
        key = question, home.tobytes()
        if key in self.bettered:
            return self.bettered[key]
        better = improved(question, home, seed=self.seed)
        if not over():
            self.bettered[key] = better
        return better

    def raise_bound(self, bound_bytes: float) -> bool:
        """Take up a bound if it is the best; return whether that proves the answer."""
        if bound_bytes > self.bound_bytes * (1 + MET):
            self.bound_bytes = bound_bytes
            if self.seatings:
                self._tell()
        return bool(self.seatings) and self.proved

    def believe(self, solver_bytes: float) -> bool:
        """Take up a solver's bound if it is the best; return whether that proves the answer."""
        if solver_bytes > max(self.bound_bytes, self.solver_bytes) * (1 + MET):
            self.solver_bytes = solver_bytes
            self._tell()
        return self.proved

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress(
                Progress(
                    cut_bytes=self.best.cut_bytes,
                    lower_bound_bytes=min(
                        max(self.bound_bytes, self.solver_bytes), self.best.cut_bytes
                    ),
                    method=self.best.method,
                )
            )

    def answer(self, *, interrupted: bool = False) -> Answer:
        """Return the answer as it stands."""
        cut, proof = self.best.cut_bytes, Proof.INCUMBENT
        if self.proved:
            proof = Proof.BOUND if self.met else Proof.SOLVER
        return Answer(
            home=tuple(self.best.home.tolist()),
            objective_bytes=cut,
            lower_bound_bytes=cut
            if self.proved
            else min(max(self.bound_bytes, self.solver_bytes), cut),
            proof=proof,
            method=self.best.method,
            interrupted=interrupted,
        )


def _search(work: Work, time_limit_s: float) -> None:
    """Go on until the best seating is proved or nothing is left to try."""
    starts_s = monotonic()
    if time_limit_s <= 0:
        if not _ruled(work, lower_bound):
            _searched_by_rules(work)
        return
    large = max(work.question.capacities) > _LARGE
    if _ruled(work, rough_bound if large else lower_bound):
        return
    from planner.place.by_stages import by_few_patterns, by_sweep  # noqa: PLC0415 - imports a solver
    from planner.place.finish import by_few_parts, finish  # noqa: PLC0415 - as above

    ends_s = min(starts_s + time_limit_s, end_s())
    late_s = min(starts_s + _LATE * time_limit_s, end_s())
    bounded_s = starts_s + _BOUNDS_SHARE * (late_s - starts_s)
    with at_most_until(bounded_s):
        if (large and _large_bounded(work)) or by_sweep(work, bounded_s):
            return
        if by_few_parts(work, starts_s + _FEW_SHARE * (ends_s - starts_s)):
            return
    near = work.open_share <= _NEAR_SHARE  # what domains share has little left to prove then
    with at_most_until(bounded_s):
        look()
        if (not near and _bettered(work)) or by_few_patterns(work, bounded_s):
            return
    before_bytes = work.best.cut_bytes
    with at_most_until(monotonic() + _ORDERS_SHARE * (late_s - monotonic())):
        if _offered(work, _orders(work.question)):
            return
    if _offered(work, _baselines(work.question, work.seed)):
        return
    with at_most_until(late_s):
        if work.question.cells <= _IMPROVE_CELLS and _exchanged(work):
            return
    with at_most_until(ends_s):
        look()
        if work.best.cut_bytes < before_bytes * (1 - MET) and not near and _bettered(work):
            return
        finish(work, ends_s)
        if near and not work.proved:
            look()
            _bettered(work)


def _large_bounded(work: Work) -> bool:
    """Raise the bound of large domains and come near it; return whether that proves."""
    from planner.place.by_layers import by_layers  # noqa: PLC0415 - imports a solver
    from planner.place.by_sheets import by_wide_sheets  # noqa: PLC0415 - as above

    if by_layers(work) or by_wide_sheets(work):
        return True
    near = work.open_share <= _CLOSE_SHARE
    return (near and _exchanged(work)) or work.raise_bound(lower_bound(work.question))


def _searched_by_rules(work: Work) -> None:
    """Do all that needs no solver."""
    question = work.question
    if _bettered(work):
        return
    before_bytes = work.best.cut_bytes
    if _offered(work, _orders(question)) or _offered(work, _baselines(question, work.seed)):
        return
    if question.cells <= _IMPROVE_CELLS and _exchanged(work):
        return
    if work.best.cut_bytes < before_bytes * (1 - MET):
        _bettered(work)


def _ruled(work: Work, bound_of: Callable[[Question], float]) -> bool:
    """Bound the cut and try what is quick; return whether that proves."""
    work.raise_bound(bound_of(work.question))
    return any(
        _offered(work, rule(work.question)) for rule in (_tiles, _nested, _halved, _pieces, _strips)
    )


def _offered(work: Work, seatings: Iterator[tuple[NDArray[np.int64], str]]) -> bool:
    for home, method in seatings:
        if work.offer(home, method):
            return True
        look()
    return False


def _bettered(work: Work) -> bool:
    """Raise the bound by what domains share and by boxes kept together."""
    best = work.best
    bounds = bounds_by_merging(work.question, best.home, best.cut_bytes)
    return any(work.raise_bound(bound_bytes) for bound_bytes in bounds)


def _exchanged(work: Work) -> bool:
    """Better the best few by exchanges of cells."""
    for start in tuple(work.seatings):
        look()
        home = work.exchanged(work.question, start.home)
        if work.offer(home, f"{start.method}, then exchanges"):
            return True
    return False


def _tiles(question: Question) -> Iterator[tuple[NDArray[np.int64], str]]:
    capacities = question.capacities
    if len(set(capacities)) == 1 and sum(capacities) == question.cells:
        for tile in best_tiles(question, capacities[0]):
            yield (
                refine_home(question, tile.sides, np.arange(len(capacities))),
                f"equal tiles {'x'.join(map(str, tile.sides))}",
            )


def _nested(question: Question) -> Iterator[tuple[NDArray[np.int64], str]]:
    for held in ways_to_fill(question):
        for home in nested_fillings(question, held):
            yield home, "boxes within boxes"


def _halved(question: Question) -> Iterator[tuple[NDArray[np.int64], str]]:
    for held in ways_to_fill(question)[:_WAYS_HALVED]:
        for home in line_fillings(question, held):
            yield home, "slabs along the domains' borders"


def _pieces(question: Question) -> Iterator[tuple[NDArray[np.int64], str]]:
    for home in piece_fillings(question) if sum(question.capacities) > question.cells else ():
        yield home, "boxes that need not fill their domains"


def _strips(question: Question) -> Iterator[tuple[NDArray[np.int64], str]]:
    for home in strip_fillings(question):
        yield home, "strips of domains that fill them together"


def _orders(question: Question) -> Iterator[tuple[NDArray[np.int64], str]]:
    for home in filled(question):
        yield home, "tiles filled one domain after the other"


def _baselines(question: Question, seed: int) -> Iterator[tuple[NDArray[np.int64], str]]:
    yield from ((home, f"the {name} baseline") for name, home in baselines(question, seed))
