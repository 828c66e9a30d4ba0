"""Large grids: boxes of ranks are seated instead of ranks, and the bound stays that of the ranks.

What is lost is only what a seating could gain by parting one of the boxes; the bound says how much
that is at most.
"""

from __future__ import annotations

from dataclasses import replace
from math import gcd, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.answer import Answer, Proof
from planner.place.bound import lower_bound
from planner.place.clock import TimeUp
from planner.place.question import coarsen, cut_bytes, refine_home
from planner.place.sharing import sharpened_bound
from planner.place.solve import solve_question
from planner.place.tiles import best_tiles, divisors

if TYPE_CHECKING:
    from collections.abc import Callable

    from planner.place.answer import Progress
    from planner.place.question import Question

LARGE_CELLS = 20_000  # grids past which boxes are seated
_COARSE_CELLS = 4096  # boxes that are left to seat, if possible
_MET = 1e-9  # relative; below it a gap is rounding of sums of floating-point bytes


def solve_large(
    question: Question,
    *,
    time_limit_s: float = 20.0,
    seed: int = 0,
    progress: Callable[[Progress], None] | None = None,
) -> Answer:
    """Return the best seating of boxes of ranks, with the bound of every seating of ranks.

    Arguments as in ``solve_question``, which is asked as it is where no box divides the domains.
    """
    sides = unit_box(question)
    volume = prod(sides)
    if volume == 1:
        return solve_question(question, time_limit_s=time_limit_s, seed=seed, progress=progress)
    coarse = coarsen(question, sides, [c // volume for c in question.capacities])
    found = solve_question(coarse, time_limit_s=time_limit_s, seed=seed, progress=progress)
    home = refine_home(question, sides, np.array(found.home))
    cut, bound = cut_bytes(question, home), 0.0
    try:
        bound = lower_bound(question)
        if cut - bound > _MET * cut:
            bound = max(bound, sharpened_bound(question, cut))
    except (KeyboardInterrupt, TimeUp) as ended:  # the seating stands, and the bound so far
        if isinstance(ended, KeyboardInterrupt):
            found = replace(found, interrupted=True)
    met = cut - bound <= _MET * max(cut, 1e-300)
    return Answer(
        home=tuple(home.tolist()),
        objective_bytes=cut,
        lower_bound_bytes=cut if met else min(bound, cut),
        proof=Proof.BOUND if met else Proof.INCUMBENT,
        method=f"{found.method}, of boxes {'x'.join(map(str, sides))}",
        interrupted=found.interrupted,
    )


def unit_box(question: Question) -> tuple[int, ...]:
    """Return the box that moves as one: a part of the best tile, until few enough boxes are left.

    It fills every domain exactly. Axes are taken in the order of what parting a line along them
    costs by the tile's own side, the dearest first.

    >>> from planner.place.question import Charge, Kind, Question
    >>> lines = [Charge(axes=(i,), kind=Kind.TOUCH, weight_bytes=w) for i, w in enumerate((4., 1.))]
    >>> unit_box(Question(sizes=(512, 256), charges=tuple(lines), capacities=(1024,) * 128))
    (32, 1)
    """
    step = gcd(*question.capacities)
    tiles = best_tiles(question, step)
    sides = [1] * len(question.sizes)
    if not tiles:
        return tuple(sides)
    tile = tiles[0].sides
    for axis in sorted(range(len(tile)), key=lambda i: (-_price(question, i), i)):
        for side in divisors(tile[axis]):
            if question.cells // prod(sides) <= _COARSE_CELLS:
                return tuple(sides)
            sides[axis] = side  # whatever divides the tile divides the grid and the domains
    return tuple(sides)


def _price(question: Question, axis: int) -> float:
    """Return the weight of all charges whose groups run along *axis*, by group [bytes]."""
    return sum(
        charge.weight_bytes * question.groups(charge.axes)
        for charge in question.charges
        if axis in charge.axes
    )
