"""The bottleneck: the seating whose busiest border takes least time.

Begins with what has the least cut, for a cut that is least and evenly shared is best for every
border; then tiles, fillings and baselines by their busiest border, exchanges between busy domains
and others, and a solver where the question is small.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InputError, PlannerError
from planner.place.answer import Proof
from planner.place.baselines import baselines
from planner.place.fill import filled
from planner.place.objective_bound import border_bound_s
from planner.place.objective_search import border_times_s, less_busy
from planner.place.question import cut_bytes, refine_home
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
_BOUND_S = 4.0  # seconds that bounds may take at least


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
    """

    home: tuple[int, ...]
    objective_s: float
    lower_bound_s: float
    proof: Proof
    method: str


def least_busy(
    question: Question,
    rates: Sequence[float],
    total: Answer,
    *,
    time_limit_s: float = 20.0,
    seed: int = 0,
) -> BorderAnswer:
    """Return the best seating found for the busiest border, its bound, and how that was proved.

    Args:
        question: the grid, its charges, the domains' capacities.
        rates: uplink of each domain, one direction [bytes/s].
        total: the answer for the total cut of the same question; its bound is used.
        time_limit_s: seconds the solver may take, 0 to do without it [s].
        seed: of everything random.

    Raises:
        InputError: a domain among several has no uplink.
        SolverError: the solver failed without an answer.
    """
    ends_s = monotonic() + max(time_limit_s, _BOUND_S)
    home, method = np.array(total.home), total.method
    if len(question.capacities) < 2:
        return _answer(home, 0.0, 0.0, Proof.BOUND, method)
    _refuse_dead_ends(rates)
    speeds = np.asarray(rates, np.float64)
    busy_s = float(border_times_s(question, speeds, home).max())
    if busy_s == 0.0:
        return _answer(home, 0.0, 0.0, Proof.BOUND, method)
    bound_s = border_bound_s(question, rates, total.lower_bound_bytes, busy_s, ends_s)
    starts = [(busy_s, home, method)]
    for found, words in _candidates(question, seed):
        if _meets(starts[0][0], bound_s, _MET) or monotonic() > ends_s:
            break
        took_s = float(border_times_s(question, speeds, found).max())
        if took_s < starts[0][0] * (1 - _MET) or len(starts) < _STARTS:
            starts = sorted([*starts, (took_s, found, words)], key=lambda one: one[0])[:_STARTS]
    busy_s, home, method = starts[0]
    if not _meets(busy_s, bound_s, _MET) and question.cells <= _SEARCH_CELLS:
        for _, start, words in starts:
            found = less_busy(question, speeds, start, enough_s=bound_s, seed=seed)
            took_s = float(border_times_s(question, speeds, found).max())
            if took_s < busy_s * (1 - _MET):
                busy_s, home, method = took_s, found, f"{words}, then exchanges between borders"
    if _meets(busy_s, bound_s, _MET):
        return _answer(home, busy_s, busy_s, Proof.BOUND, method)
    left_s = ends_s - monotonic()
    if time_limit_s > 0 and left_s > 0 and _is_small(question, rates):
        return _solved(question, speeds, home, busy_s, bound_s, method, left_s, seed)
    return _answer(home, busy_s, bound_s, Proof.INCUMBENT, method)


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


def _refuse_dead_ends(rates: Sequence[float]) -> None:
    dead = [s for s, rate in enumerate(rates) if rate <= 0]
    if dead:
        raise InputError(
            f"objective 'bottleneck': domain {dead[0]} of {len(rates)} has no uplink, so that its "
            "border takes for ever; expected a rate above 0 for each"
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


def _is_small(question: Question, rates: Sequence[float]) -> bool:
    """Return whether a solver is worth while, and may take equal domains for interchangeable."""
    kinds = set(zip(question.capacities, rates, strict=True))
    alike = len(kinds) == len(set(question.capacities))
    return alike and question.cells * len(rates) <= _SOLVER_SEATS


def _solved(
    question: Question,
    rates: NDArray[np.float64],
    home: NDArray[np.int64],
    busy_s: float,
    bound_s: float,
    method: str,
    time_limit_s: float,
    seed: int,
) -> BorderAnswer:
    from planner.place.milp import solve_border  # noqa: PLC0415 - imports a solver

    mean = float(rates.mean())
    solved = solve_border(
        question, rates.tolist(), home, max(busy_s * mean / 1000.0, 1e-300), time_limit_s, seed
    )
    if solved.home is not None:
        found = np.array(solved.home)
        took_s = float(border_times_s(question, rates, found).max())
        if took_s < busy_s * (1 - _MET):
            home, busy_s, method = found, took_s, "solver"
    proved_s = min(solved.lower_bound_bytes / mean, busy_s)
    if solved.closed and _meets(busy_s, proved_s, _SOLVER_MET):
        return _answer(home, busy_s, busy_s, Proof.SOLVER, method)
    return _answer(home, busy_s, max(bound_s, proved_s), Proof.INCUMBENT, method)
