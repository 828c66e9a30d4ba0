"""The nearest change along a property, and that none nearer is missed.

What holds at two values need not hold between them: a winner may lose its place and win it back.
Where it can be *proved* from what is known at both ends that it does not, nothing more is asked
there; where it cannot, the value in the middle is asked, and so on, until the ends are as close as
one can ask. Premise of every proof here: no step gets shorter on a slower network, so that between
two networks it lies between its steps on both. A sequence length has no such order: of lengths only
those of the grid are asked.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import log
from typing import TYPE_CHECKING

from planner.search.best_steps import is_as_fast

if TYPE_CHECKING:
    from planner.search.axes import Axis
    from planner.search.changed import Change

Ask = Callable[[float], str]
IsFree = Callable[[str, float, float], bool]
"""Whether what holds at two factors is proved to hold at all between them."""

MOST_ASKED = 128
"""Factors of one property and side that are asked to prove it free; a compare then asks at most so
many more networks than the grid has, at 3 ms each. Bisection of a change goes on beyond."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Factors between which a change there and back is not ruled out; both ends are asked.

    Args:
        near_factor, far_factor: its ends, the one nearer to 1 first [1].
    """

    near_factor: float
    far_factor: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Along:
    """What there is along a property, outwards from 1.

    Args:
        before: what holds now.
        held_factor: the last factor that was asked before a change, or of all [1].
        beyond_factor: the first that was asked beyond it; None without a change [1].
        unproved: stretches up to it on which another change may have been missed.
    """

    before: str
    held_factor: float
    beyond_factor: float | None
    unproved: tuple[Stretch, ...]


Search = Generator[list[float], None, Along]


def first_change(axis: Axis, ask: Ask, grid: Sequence[float], is_free: IsFree | None) -> Search:
    """Return the nearest change along *grid*; yields the factors that it is going to ask about.

    Args:
        axis: what is varied.
        ask: factor to what holds there.
        grid: those that are asked first, near to far.
        is_free: the proof; None where there is none: then only the grid is asked, and a change on
            it located.

    >>> from planner.search.axes import Axis
    >>> from planner.search.changed import AS_IT_IS
    >>> axis = Axis(name="any", change=lambda _: AS_IT_IS)
    >>> def told(search):
    ...     while True:
    ...         try:
    ...             next(search)
    ...         except StopIteration as end:
    ...             return end.value
    >>> dip = lambda factor: "b" if 1.1 < factor < 1.2 else "a"
    >>> told(first_change(axis, dip, axis.grid(1), None)).beyond_factor is None
    True
    >>> known = lambda before, near, far: far <= 1.1 or near >= 1.2
    >>> round(told(first_change(axis, dip, axis.grid(1), known)).beyond_factor, 2)
    1.1
    """
    asked = [1.0, *grid]
    yield asked
    before = ask(1.0)
    while True:
        changed = next((at for at, factor in enumerate(asked) if ask(factor) != before), None)
        asked = asked if changed is None else asked[: changed + 1]
        near = asked if changed is None else asked[:-1]
        free = is_free or (lambda _before, _near, _far: True)
        unproved = [pair for pair in pairwise(near) if not free(before, *pair)]
        closer = unproved if len(asked) < MOST_ASKED else []
        closer += [] if changed is None else [(asked[-2], asked[-1])]
        middles = [m for pair in closer if (m := axis.between(*pair)) is not None]
        if not middles:
            break
        yield middles
        asked = sorted([*asked, *middles], key=lambda factor: abs(log(factor)))
    if is_free is None:
        unproved = list(pairwise(near))
    return Along(
        before=before, held_factor=near[-1], beyond_factor=None if changed is None else asked[-1],
        unproved=_joined([pair for pair in unproved if axis.between(*pair) is not None]),
    )  # fmt: skip


def is_ordered(axis: Axis) -> bool:
    """Return whether of any two of its values one is the faster network."""
    return axis.change(2.0).seq == 1.0


def fast_and_slow(axis: Axis, near_factor: float, far_factor: float) -> tuple[Change, Change]:
    """Return the faster and the slower network of two of a property that is ordered."""
    one, other = axis.change(near_factor), axis.change(far_factor)
    return (one, other) if is_as_fast(one, other) else (other, one)


def _joined(pairs: Sequence[tuple[float, float]]) -> tuple[Stretch, ...]:
    """Return *pairs*, near to far, as few stretches.

    >>> _joined([(1.0, 1.5), (1.5, 2.0), (3.0, 4.0)])[0]
    Stretch(near_factor=1.0, far_factor=2.0)
    """
    found: list[Stretch] = []
    for near, far in pairs:
        joins = bool(found) and found[-1].far_factor == near
        start = found.pop().near_factor if joins else near
        found.append(Stretch(near_factor=start, far_factor=far))
    return tuple(found)
