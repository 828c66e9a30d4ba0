"""Boxes that no better seating splits, taken as new cells: a smaller question with a better bound.

A seating either keeps all boxes of a grid together, then the coarse grid's bound holds, or it
splits one, then it pays what ``least_when_split`` says. Proofs: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import inf, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import lower_bound, split_bound
from planner.place.clock import look
from planner.place.question import Charge, Kind, Question, coarsen, held_units
from planner.place.shapes import relaxed_bound, shape_rules
from planner.place.sharing import rising_shares, sharpened_bound
from planner.place.sheets import sheet_bound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    BoundsOf = Callable[[Question, NDArray[np.int64], float], Iterator[float]]

MET = 1e-9  # relative; below it a gap is rounding of sums of floating-point bytes
_PRICES_TRIED = ((0.85, 4), (0.95, 12))  # of what is missing, prices of what domains share
_NEAR_SHARE = 0.98  # of what is missing, from where on shapes are counted, too
_GRIDS_TRIED = 6  # coarse grids whose bound is worked out where splitting their boxes may be cheap


def bounds_by_merging(
    question: Question,
    home: NDArray[np.int64],
    cut_bytes: float,
    bounds_of: BoundsOf | None = None,
) -> Iterator[float]:
    """Yield bounds from grids whose boxes are kept together, each better, *cut* at most [bytes].

    Args:
        question: the grid and its charges.
        home: a seating, shape [cells]; boxes that it splits are not tried.
        cut_bytes: what *home* cuts [bytes].
        bounds_of: rising bounds of a grid, given a seating of it and a cut that is enough;
            ``counted_bounds`` if left out.
    """
    bounds_of = bounds_of or _counted
    grid = kept(question, home, cut_bytes)
    question, home = grid.question, grid.home
    bound = 0.0
    for better in bounds_of(question, home, cut_bytes):
        bound = max(bound, better)
        yield bound
    promising = []
    for sides in merges(question, home):
        split = least_when_split(question, sides)
        if split > bound * (1 + MET):
            promising.append((-split, prod(sides), sides))
    for minus_split, _, sides in sorted(promising)[:_GRIDS_TRIED]:
        if bound >= cut_bytes * (1 - MET):
            break
        look()
        coarse = coarse_home(question, sides, home)
        for of_boxes in bounds_of(merged(question, sides), coarse, cut_bytes):
            bound = max(bound, min(-minus_split, of_boxes))
            yield bound


def _counted(question: Question, home: NDArray[np.int64], cut_bytes: float) -> Iterator[float]:
    del home  # the rules need none
    return counted_bounds(question, cut_bytes)


def counted_bounds(question: Question, cut_bytes: float) -> Iterator[float]:
    """Yield bounds from what domains share, by one rule and by all together, each better [bytes].

    Args:
        question: the grid and its charges.
        cut_bytes: a bound that need not be better [bytes].
    """
    bound = 0.0
    for bound, _ in rising_shares(question, cut_bytes):
        yield bound
    if bound >= cut_bytes * (1 - MET):
        return
    bound = max(bound, sheet_bound(question))
    yield bound
    if bound >= cut_bytes * (1 - MET):
        return
    look()
    rules = shape_rules(question, cut_bytes)
    if rules is not None:
        yield max(bound, relaxed_bound(rules))


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The grid of the boxes that no better seating splits.

    Args:
        question: whose cells are the boxes.
        home: the seating on it, shape [boxes].
        sides: of a box, along each axis of the question asked [1].
    """

    question: Question
    home: NDArray[np.int64]
    sides: tuple[int, ...]


def kept(question: Question, home: NDArray[np.int64], cut_bytes: float) -> Kept:
    """Return the grid of the boxes that no seating better than *cut* splits, and *home* on it.

    Boxes of whole axes are taken as new cells, and the same is asked again of the coarse grid.
    """
    return _kept(question, home.astype(np.int64).tobytes(), cut_bytes)


@lru_cache(maxsize=16)  # several rules ask it of the same seating
def _kept(question: Question, home_bytes: bytes, cut_bytes: float) -> Kept:
    home = np.frombuffer(home_bytes, dtype=np.int64)
    boxes, closely = (1,) * len(question.sizes), False
    while True:
        sides = kept_together(question, home, cut_bytes, closely=closely)
        if prod(sides) > 1:
            question, home = merged(question, sides), coarse_home(question, sides, home)
            boxes = tuple(a * b for a, b in zip(boxes, sides, strict=True))
        elif closely:
            return Kept(question=question, home=home, sides=boxes)
        closely = prod(sides) == 1  # on a coarse grid a quick look may do


def merged(question: Question, sides: Sequence[int]) -> Question:
    """Return the question whose cells are boxes of *sides*: whole boxes only in every domain."""
    volume = prod(sides)
    return coarsen(question, sides, [c // volume for c in question.capacities])


def merges(question: Question, home: NDArray[np.int64]) -> Iterator[tuple[int, ...]]:
    """Yield boxes of whole axes that *home* keeps together, the finest grid first."""
    whole = [i for i, n in enumerate(question.sizes) if n > 1 and stays_whole(question, home, i)]
    for count in range(1, len(whole) + 1):
        for axes in combinations(whole, count):
            sides = tuple(n if i in axes else 1 for i, n in enumerate(question.sizes))
            if _fits(question, sides):
                yield sides


def kept_together(
    question: Question, home: NDArray[np.int64], cut_bytes: float, *, closely: bool = True
) -> tuple[int, ...]:
    """Return the boxes of all axes whose lines no seating better than *cut* splits.

    Unless *closely*, of those that are quickly told.
    """
    sides = [1] * len(question.sizes)
    for axis, n in enumerate(question.sizes):
        wider = (*sides[:axis], n, *sides[axis + 1 :])
        if n == 1 or not stays_whole(question, home, axis) or not _fits(question, wider):
            continue
        alone = tuple(n if i == axis else 1 for i in range(len(sides)))
        if least_when_split(question, alone, cut_bytes, closely=closely) >= cut_bytes * (1 - MET):
            sides[axis] = n
    return tuple(sides)


def _fits(question: Question, sides: Sequence[int]) -> bool:
    volume = prod(sides)
    return sum(c // volume for c in question.capacities) * volume >= question.cells


def stays_whole(question: Question, home: NDArray[np.int64], axis: int) -> bool:
    """Return whether *home* seats every line along *axis* in one domain."""
    grid = home.reshape(tuple(reversed(question.sizes)))
    place = len(question.sizes) - 1 - axis
    return bool((grid == np.take(grid, [0], axis=place)).all())


def coarse_home(
    question: Question, sides: Sequence[int], home: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the home of every box of *sides* that *home* keeps together."""
    grid = home.reshape(tuple(reversed(question.sizes)))
    picks = tuple(slice(None, None, a) for a in reversed(list(sides)))
    return np.ascontiguousarray(grid[picks]).ravel()


def least_when_split(
    question: Question, sides: Sequence[int], enough_bytes: float = inf, *, closely: bool = True
) -> float:
    """Return what every seating that splits one of the boxes crosses at least [bytes].

    A split box has a line along some merged axis i in two domains, and with it one group of every
    family that runs along i. The others pay their own bound besides, or all but those that run
    along i alone do; or the two domains pay that of a set with a parted line. The greatest of these
    holds. What is above *enough_bytes*, if finite, need not be sharp, nor what stays below it;
    what may reach it is tried harder if *closely*, which may take seconds.
    """
    least, reached_bytes = inf, enough_bytes * (1 - MET)
    for axis, side in enumerate(sides):
        if side == 1:
            continue
        others = tuple(c for c in question.charges if axis not in c.axes)
        rest = Question(sizes=question.sizes, charges=others, capacities=question.capacities)
        along = sum(least_split(question, c) for c in question.charges if axis in c.axes)
        paid = along + lower_bound(rest, enough_bytes=reached_bytes - along)
        if paid < min(least, reached_bytes):
            paid = max(paid, split_bound(question, axis, reached_bytes))
        if closely and paid < min(least, reached_bytes) < inf:
            paid = max(paid, _with_split_lines(question, axis, min(least, enough_bytes)))
        least = min(least, paid)
    return least


def _with_split_lines(question: Question, axis: int, enough_bytes: float) -> float:
    """Return the same from the families along *axis* alone: one group split, the rest as it is.

    What few prices leave far below *enough_bytes* is not looked at further.
    """
    lines = [c for c in question.charges if c.axes == (axis,)]
    price = sum(least_split(question, charge) for charge in lines)
    if not price:
        return 0.0
    others = tuple(c for c in question.charges if c.axes != (axis,))
    rest = Question(sizes=question.sizes, charges=others, capacities=question.capacities)
    missing = enough_bytes - price
    bound = lower_bound(rest)
    for share, tries in _PRICES_TRIED:
        if share * missing < bound < missing * (1 - MET):
            bound = max(bound, sharpened_bound(rest, missing, tries=tries))
    if _NEAR_SHARE * missing < bound < missing * (1 - MET):
        rules = shape_rules(rest, missing)
        bound = bound if rules is None else max(bound, relaxed_bound(rules))
    return price + bound


def least_split(question: Question, charge: Charge) -> float:
    """Return the least that one split group of a charge pays [bytes]."""
    size = question.group_size(charge.axes)
    if charge.kind in (Kind.PAIRS, Kind.COPIES):  # concave: one member apart is the cheapest split
        units = held_units(charge, size)
        return charge.weight_bytes * (units[1] + units[size - 1])
    fixed = {Kind.TOUCH: 1, Kind.CHAIN: 1, Kind.RING: 2, Kind.ENDS: 0}
    return charge.weight_bytes * fixed[charge.kind]
