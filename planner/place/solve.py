"""Question to Answer: bound first, then tiles and fillings, then a solver for what is left.

Every source of the lower bound is valid by itself, and the greatest is kept: the domain bound of
``bound.py``; with what domains share, of ``sharing.py``; the same on a grid whose boxes are kept
together, or what splitting one would cost, if that is less; and a solver's bound on such a grid.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import gcd, prod
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import PlannerError
from planner.place.answer import Answer, Proof
from planner.place.baselines import baselines
from planner.place.bound import lower_bound, split_bound
from planner.place.fill import filled
from planner.place.improve import improved
from planner.place.question import (
    Charge,
    Kind,
    Question,
    coarsen,
    cut_bytes,
    held_units,
    refine_home,
)
from planner.place.sharing import sharpened_bound
from planner.place.tiles import best_tiles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

_MET = 1e-9  # relative; below it a gap is rounding of sums of floating-point bytes
_SOLVER_MET = 1e-6  # relative; HiGHS' own feasibility tolerance
_SOLVER_SEATS = 6000  # cells x domains past which the assignment model is not worth building
_EXACT_SEATS = 200  # cells x domains up to which nothing is merged
_IMPROVE_CELLS = 20_000
_NOISE_BYTES = 1e-3  # what rounding may leave of a bound that is nought
_STARTS = 3  # seatings that exchanges start from
_BOUND_S = 2.0  # seconds the bounds may take at least, also where the solver may not run
_WAYS_LIMIT = 7000  # ways to seat one slice
_LEVELS_LIMIT = 600  # level variables of all-to-all charges along the axis of the slices


def solve_question(question: Question, *, time_limit_s: float = 20.0, seed: int = 0) -> Answer:
    """Return the best seating found, its bound, and how that was proved.

    Args:
        question: the grid, its charges, the domains' capacities.
        time_limit_s: seconds the solver may take, 0 to do without it [s].
        seed: of everything random.

    Raises:
        SolverError: the solver failed without an answer.
    """
    ends_s = monotonic() + max(time_limit_s, _BOUND_S)
    bound = lower_bound(question)
    seatings = _seatings(question, bound, seed)
    home, cut, method = seatings[0].home, seatings[0].cut_bytes, seatings[0].method
    if not _meets(cut, bound, _MET):
        bound = max(bound, _bound_by_merging(question, home, cut, ends_s))
    if not _meets(cut, bound, _MET) and question.cells <= _IMPROVE_CELLS:
        better = _exchanged(question, seatings[:_STARTS], seed)
        if better.cut_bytes < cut * (1 - _MET):
            home, cut, method = better.home, better.cut_bytes, better.method
            bound = max(bound, _bound_by_merging(question, home, cut, ends_s))
    if _meets(cut, bound, _MET):
        return _answer(home, cut, cut, Proof.BOUND, method)
    if time_limit_s > 0 and monotonic() < ends_s:
        left_s = ends_s - monotonic()
        home, cut, bound, proof, method = _solve_by_slices(
            question, home, cut, bound, method, left_s, seed
        )
        if proof is not Proof.INCUMBENT:
            return _answer(home, cut, cut, proof, method)
    proof = Proof.INCUMBENT
    for sides in _grids_to_solve(question, home, cut):
        left_s = ends_s - monotonic()
        if left_s <= 0 or time_limit_s <= 0:
            break
        home, cut, bound, proof, method = _solve_merged(
            question, sides, home, cut, bound, method, left_s, seed
        )
        if proof is not Proof.INCUMBENT:
            break
    if _meets(cut, bound, _MET) and proof is Proof.INCUMBENT:
        proof = Proof.BOUND
    lower = cut if proof is not Proof.INCUMBENT else min(bound, cut)
    return _answer(home, cut, lower, proof, method)


def _answer(home: NDArray[np.int64], cut: float, bound: float, proof: Proof, method: str) -> Answer:
    return Answer(
        home=tuple(home.tolist()),
        objective_bytes=cut,
        lower_bound_bytes=bound,
        proof=proof,
        method=method,
    )


def _meets(cut: float, bound: float, share: float) -> bool:
    """Return whether *bound* proves *cut*.

    Raises:
        PlannerError: a bound above a cut that was counted is a fault of ours, not a proof.
    """
    if bound > cut * (1 + 1e-6) + _NOISE_BYTES:
        raise PlannerError(
            f"the lower bound of {bound:.6g} bytes is above a seating's {cut:.6g}: this is a "
            "fault of the planner, and the placement is withheld"
        )
    return cut - bound <= share * max(cut, 1e-300)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seating:
    """A seating found by a rule: its homes, its cut and the rule's name."""

    home: NDArray[np.int64]
    cut_bytes: float
    method: str


def _seatings(question: Question, bound: float, seed: int) -> list[_Seating]:
    """Return tiles, fillings and baselines, the cheapest first; only one if it meets the bound."""
    found = []
    for home, method in _candidates(question, seed):
        seating = _Seating(home=home, cut_bytes=cut_bytes(question, home), method=method)
        if _meets(seating.cut_bytes, bound, _MET):
            return [seating]
        found.append(seating)
    return sorted(found, key=lambda seating: seating.cut_bytes)


def _exchanged(question: Question, starts: Sequence[_Seating], seed: int) -> _Seating:
    """Return the best that exchanges make of *starts*."""
    ends = [improved(question, start.home, seed=seed) for start in starts]
    costs = [cut_bytes(question, home) for home in ends]
    best = int(np.argmin(costs))
    return _Seating(
        home=ends[best],
        cut_bytes=costs[best],
        method=f"{starts[best].method}, then exchanges",
    )


def _spelled(sides: Sequence[int]) -> str:
    return "x".join(str(a) for a in sides)


def _candidates(question: Question, seed: int) -> Iterator[tuple[NDArray[np.int64], str]]:
    capacities = question.capacities
    if len(set(capacities)) == 1 and sum(capacities) == question.cells:
        for tile in best_tiles(question, capacities[0]):
            yield (
                refine_home(question, tile.sides, np.arange(len(capacities))),
                f"equal tiles {_spelled(tile.sides)}",
            )
    for home in filled(question):
        yield home, "tiles filled one domain after the other"
    for name, home in baselines(question, seed):
        yield home, f"the {name} baseline"


def _merges(
    question: Question, home: NDArray[np.int64], most_seats: int | None
) -> Iterator[tuple[int, ...]]:
    """Yield boxes of whole axes to keep together, the finest grid first.

    Only axes that *home* keeps whole, and only where the boxes fill every domain exactly. With
    *most_seats*, only grids of at most so many cells x domains: those a solver can handle.
    """
    domains = len(question.capacities)
    if most_seats is not None and question.cells * domains <= _EXACT_SEATS:
        yield tuple(1 for _ in question.sizes)
        return
    step = gcd(*question.capacities)
    whole = [i for i, n in enumerate(question.sizes) if n > 1 and _stays_whole(question, home, i)]
    for axes in _subsets(whole):
        sides = tuple(n if i in axes else 1 for i, n in enumerate(question.sizes))
        volume = prod(sides)
        seats = question.cells // volume * domains
        if step % volume == 0 and (most_seats is None or seats <= most_seats):
            yield sides


def _grids_to_solve(
    question: Question, home: NDArray[np.int64], cut: float
) -> list[tuple[int, ...]]:
    """Return boxes to keep together for the solver, the most promising first.

    First the coarsest grid whose boxes cost too much to split, because its optimum is the
    question's; then the finest, for a better seating only.
    """
    grids = list(_merges(question, home, _SOLVER_SEATS))
    proving = [g for g in grids if _least_when_split(question, g) >= cut * (1 - _MET)]
    return [*sorted(proving, key=prod, reverse=True)[:1], *grids[:1]][:2]


def _subsets(items: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for count in range(1, len(items) + 1):
        yield from combinations(items, count)


def _bound_by_merging(
    question: Question, home: NDArray[np.int64], cut: float, ends_s: float
) -> float:
    """Return the best bound from grids whose boxes are kept together [bytes].

    A seating either keeps all boxes together, then the coarse grid's bound holds, or it splits
    one, then it pays what ``_least_when_split`` says. Where splitting costs more than the seating
    in hand the boxes may be taken as the new cells, and the same is asked again of them.
    """
    sides = _kept_together(question, home, cut)
    if prod(sides) > 1:
        coarse = coarsen(question, sides, [c // prod(sides) for c in question.capacities])
        return min(cut, _bound_by_merging(coarse, _coarse_home(question, sides, home), cut, ends_s))
    bound = sharpened_bound(question, cut, ends_s)
    for grid in _merges(question, home, None):
        if _meets(cut, bound, _MET) or monotonic() > ends_s:
            break
        volume = prod(grid)
        coarse = coarsen(question, grid, [c // volume for c in question.capacities])
        split = _least_when_split(question, grid)
        if split > bound:
            bound = max(bound, min(split, sharpened_bound(coarse, cut, ends_s)))
    return bound


def _kept_together(question: Question, home: NDArray[np.int64], cut: float) -> tuple[int, ...]:
    """Return the boxes of all axes whose lines no seating as good as *cut* splits."""
    sides = [1] * len(question.sizes)
    step = gcd(*question.capacities)
    for axis, n in enumerate(question.sizes):
        if n == 1 or step % (prod(sides) * n) or not _stays_whole(question, home, axis):
            continue
        alone = tuple(n if i == axis else 1 for i in range(len(sides)))
        if _least_when_split(question, alone) >= cut:
            sides[axis] = n
    return tuple(sides)


def _stays_whole(question: Question, home: NDArray[np.int64], axis: int) -> bool:
    grid = home.reshape(tuple(reversed(question.sizes)))
    place = len(question.sizes) - 1 - axis
    return bool((grid == np.take(grid, [0], axis=place)).all())


def _solve_by_slices(
    question: Question,
    home: NDArray[np.int64],
    cut: float,
    bound: float,
    method: str,
    time_limit_s: float,
    seed: int,
) -> tuple[NDArray[np.int64], float, float, Proof, str]:
    """Return the answer bettered by counting slices, where the boxes kept leave few ways."""
    sides = _kept_together(question, home, cut)
    volume = prod(sides)
    coarse = coarsen(question, sides, [c // volume for c in question.capacities])
    axis = _sliceable_axis(coarse)
    if axis is None:
        return home, cut, bound, Proof.INCUMBENT, method
    from planner.place.milp import solve_slices  # noqa: PLC0415 - imports a solver

    solved = solve_slices(coarse, axis, max(cut / 1000.0, 1e-300), time_limit_s, seed)
    if solved.home is not None:
        found = refine_home(question, sides, np.array(solved.home))
        price = cut_bytes(question, found)
        if price < cut * (1 - _MET):
            home, cut = found, price
            method = f"solver on {coarse.sizes[axis]} slices of the grid"
    proved = min(solved.lower_bound_bytes, cut)
    if solved.closed and _meets(cut, proved, _SOLVER_MET):
        return home, cut, cut, Proof.SOLVER, method
    return home, cut, max(bound, proved), Proof.INCUMBENT, method


def _sliceable_axis(question: Question) -> int | None:
    """Return the axis to cut into slices, the longest that leaves few enough ways; None if none."""
    domains = len(question.capacities)
    fitting = []
    for axis, n in enumerate(question.sizes):
        along = [charge for charge in question.charges if axis in charge.axes]
        ordered = any(charge.kind in (Kind.CHAIN, Kind.ENDS) for charge in along)
        levels = sum(
            question.cells // n * domains * question.group_size(charge.axes)
            for charge in along
            if charge.kind in (Kind.PAIRS, Kind.COPIES)
        )
        cells = question.cells // n
        few = cells * np.log(domains) <= np.log(_WAYS_LIMIT)
        if n > 1 and not ordered and few and levels <= _LEVELS_LIMIT:
            fitting.append((n, axis))
    return max(fitting)[1] if fitting else None


def _solve_merged(
    question: Question,
    sides: tuple[int, ...],
    home: NDArray[np.int64],
    cut: float,
    bound: float,
    method: str,
    time_limit_s: float,
    seed: int,
) -> tuple[NDArray[np.int64], float, float, Proof, str]:
    from planner.place.milp import solve_milp  # noqa: PLC0415 - spawns and imports a solver

    volume = prod(sides)
    merged = coarsen(question, sides, [c // volume for c in question.capacities])
    start = _coarse_home(question, sides, home)
    solved = solve_milp(merged, start, max(cut / 1000.0, 1e-300), time_limit_s, seed)
    if solved.home is not None:
        found = refine_home(question, sides, np.array(solved.home))
        price = cut_bytes(question, found)
        if price < cut * (1 - _MET):
            home, cut, method = found, price, f"solver on a grid of {merged.cells} blocks"
    split = _least_when_split(question, sides)
    proved = min(solved.lower_bound_bytes, split)
    if (
        solved.closed
        and _meets(cut, min(solved.lower_bound_bytes, cut), _SOLVER_MET)
        and (split >= cut * (1 - _MET))
    ):
        return home, cut, cut, Proof.SOLVER, method
    return home, cut, max(bound, proved), Proof.INCUMBENT, method


def _coarse_home(
    question: Question, sides: Sequence[int], home: NDArray[np.int64]
) -> NDArray[np.int64]:
    grid = home.reshape(tuple(reversed(question.sizes)))
    picks = tuple(slice(None, None, a) for a in reversed(list(sides)))
    return np.ascontiguousarray(grid[picks]).ravel()


def _least_when_split(question: Question, sides: Sequence[int]) -> float:
    """Return what every seating that splits one of the boxes crosses at least [bytes].

    A split box has a line along some merged axis i in two domains, and with it one group of every
    family that runs along i. Either the other families pay their own bound besides, or the two
    domains pay that of a set with a parted line: the greater of both holds.
    """
    least = np.inf
    for axis, side in enumerate(sides):
        if side == 1:
            continue
        along = [c for c in question.charges if axis in c.axes]
        others = tuple(c for c in question.charges if axis not in c.axes)
        rest = lower_bound(
            Question(sizes=question.sizes, charges=others, capacities=question.capacities)
        )
        paid = rest + sum(_least_split(question, charge) for charge in along)
        least = min(least, max(paid, split_bound(question, axis)))
    return least


def _least_split(question: Question, charge: Charge) -> float:
    """Return the least that one split group of a charge pays [bytes]."""
    size = question.group_size(charge.axes)
    if charge.kind in (Kind.PAIRS, Kind.COPIES):  # concave: one member apart is the cheapest split
        units = held_units(charge, size)
        return charge.weight_bytes * (units[1] + units[size - 1])
    fixed = {Kind.TOUCH: 1, Kind.CHAIN: 1, Kind.RING: 2, Kind.ENDS: 0}
    return charge.weight_bytes * fixed[charge.kind]
