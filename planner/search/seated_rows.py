"""Layouts of a space in quick seats, those first that could be fastest, until no other can be.

What no seating makes a layout's step shorter than is known of all (``any_seats.py``). Seating them
by that, least first, ends where the next is longer than what was wanted of those seated: every
other is left out by proof.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.search.sets import degrees_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.layout import Layout
    from planner.model import ModelSpec
    from planner.search.seated_steps import SeatedSteps
    from planner.search.sets import Degrees
    from planner.search.space import Space

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Seating:
    """How far a choice is.

    Args:
        seated: layouts in seats so far [1].
        shortest_s: the shortest step of them [s].
    """

    seated: int
    shortest_s: float


Told = Callable[[Seating], None]


def untold(_: Seating) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeatedRow:
    """A row of a space and its step in quick seats [s]."""

    row: int
    step_s: float


class SeatedRows:
    """Rows of a space, seated one by one.

    Args:
        steps: of the cluster.
        model: the transformer's shape.
        space, fixed: whose layouts.
        rows: of the space, all of which fit.
        least_s: what their steps take at least, wherever ranks sit [s].
        placed_s: what one takes at least in its quick seats, known sooner than its step [s].
        told: is told after each.
    """

    def __init__(
        self, steps: SeatedSteps, model: ModelSpec, space: Space, fixed: Mapping[str, Any],
        rows: Ints, least_s: Floats, placed_s: Callable[[int], float], told: Told,
    ) -> None:  # fmt: skip
        self.order = np.argsort(least_s, kind="stable")
        self.rows, self.least_s = rows[self.order], least_s[self.order]
        self._given, self._given_s = rows, least_s
        self.seated_s: dict[int, float] = {}
        self._steps, self._model, self._told = steps, model, told
        self._space, self._fixed = space, fixed
        self._placed_s, self._placed = placed_s, dict[int, float]()

    def layout(self, row: int) -> Layout:
        """Return the layout of one row."""
        return self._space.layout(row, self._fixed)

    def step_s(self, row: int) -> float:
        """Return the step of one row in quick seats [s]."""
        if row not in self.seated_s:
            self.seated_s[row] = self._steps.quick_s(self._model, self.layout(row))
            self._told(Seating(seated=len(self.seated_s), shortest_s=self.shortest_s))
        return self.seated_s[row]

    def may_be(self, row: int, below_s: float) -> bool:
        """Return whether one row may take *below_s* or less; its step is not timed where not."""
        if row in self.seated_s:
            return self.seated_s[row] <= below_s
        if row not in self._placed:
            self._placed[row] = self._placed_s(row)
        return self._placed[row] <= below_s

    @property
    def shortest_s(self) -> float:
        """The shortest step of those seated so far [s], infinite before."""
        return min(self.seated_s.values(), default=inf)

    def may_take(self, below_s: float) -> bool:
        """Return whether any may take less than *below_s*."""
        return bool(self.rows.size) and float(self.least_s[0]) < below_s

    def shortest(self, below_s: float = inf, tried: int | None = None) -> SeatedRow:
        """Return the shortest step of all below *below_s* [s], or that and the row -1.

        Args:
            below_s: longer steps are of no interest [s].
            tried: rows after which none is looked for where none of these was below; None for
                all [1].
        """
        best = SeatedRow(row=-1, step_s=below_s)
        every = zip(self.rows.tolist(), self.least_s.tolist(), strict=True)
        for at, (row, least_s) in enumerate(every):
            if least_s >= best.step_s or (best.row < 0 and at == tried):
                break
            if self.may_be(row, best.step_s) and self.step_s(row) < best.step_s:
                best = SeatedRow(row=row, step_s=self.step_s(row))
        return best

    def first_close(self, share: float, keys: Sequence[NDArray[Any]]) -> SeatedRow:
        """Return the first row by *keys* whose step is within *share* of the shortest of all.

        Rows are seated until that is sure, whatever the shortest is.

        Args:
            share: by how much it may be longer [1].
            keys: of all rows as they were given, the most important first.
        """
        ratio, left = 1.0 + share, iter(zip(self.rows.tolist(), self.least_s.tolist(), strict=True))
        row, least_s = next(left)
        self.step_s(row)
        order = self.order[: int(np.searchsorted(self.least_s, self.shortest_s * ratio, "right"))]
        for at in order[np.lexsort([key[order] for key in reversed(keys)])].tolist():
            enough_s = self.shortest_s * ratio
            if self._given_s[at] > enough_s or not self.may_be(int(self._given[at]), enough_s):
                continue
            step_s = self.step_s(int(self._given[at]))
            while step_s <= self.shortest_s * ratio:
                if step_s <= min(self.shortest_s, least_s) * ratio:
                    return SeatedRow(row=int(self._given[at]), step_s=step_s)
                if self.may_be(row, self.shortest_s):
                    self.step_s(row)
                row, least_s = next(left, (row, inf))
        raise ValueError("no rows: expected one at least")

    def next_to(self, row: int) -> SeatedRow | None:
        """Return the fastest in seats that has other degrees than *row*; one at least is seated.

        None where all have the same.
        """
        own = degrees_of(self._space, row)
        degrees = self._space.degrees(self.rows)
        others = self.rows[(degrees != np.asarray(own)).any(axis=1)]
        if not others.size:
            return None
        self.step_s(int(others[0]))
        steps = {one: self.seated_s[one] for one in others.tolist() if one in self.seated_s}
        best = min(steps, key=lambda one: steps[one])
        return SeatedRow(row=best, step_s=steps[best])

    def best_of_sets(self, most: int, skip: Callable[[SeatedRow], bool]) -> list[SeatedRow]:
        """Return the best row of each of the *most* fastest sets of degrees, fastest first.

        Args:
            most: sets that are wanted [1].
            skip: whether a row is no answer.
        """
        best: dict[Degrees, SeatedRow] = {}

        def last_s() -> float:
            steps = sorted(one.step_s for one in best.values())
            return steps[most - 1] if len(steps) >= most else inf

        for row, least_s in zip(self.rows.tolist(), self.least_s.tolist(), strict=True):
            if least_s >= last_s():
                break
            one = degrees_of(self._space, row)
            if one in best and best[one].step_s <= least_s:
                continue
            if not self.may_be(row, min(last_s(), best[one].step_s if one in best else inf)):
                continue
            found = SeatedRow(row=row, step_s=self.step_s(row))
            if (one not in best or found.step_s < best[one].step_s) and not skip(found):
                best[one] = found
        return sorted(best.values(), key=lambda one: one.step_s)[:most]
