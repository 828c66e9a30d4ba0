"""The best step when a model has more or fewer experts, all else equal: memory grows with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import SpecError
from planner.search.best_steps import BEHIND
from planner.search.evaluate import times_on
from planner.search.fastest import Raced, shortest_steps
from planner.search.search import space_on
from planner.search.sets import least_of_each
from planner.search.space import DEGREES
from planner.search.together import grouped
from planner.search.whole import Whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.layout import Layout
    from planner.model import ModelSpec
    from planner.search.pool import Pool

    Ints = NDArray[np.int64]

_DOUBLINGS, _HALVINGS = 3, 2  # from a quarter of the experts to eight times as many


def expert_counts(experts: int) -> tuple[int, ...]:
    """Return the numbers of experts that are looked at beside *experts*, by doublings, ascending.

    >>> expert_counts(256)
    (64, 128, 512, 1024, 2048)
    """
    if not experts:
        return ()
    fewer = [experts >> k for k in range(_HALVINGS, 0, -1) if experts % (1 << k) == 0]
    return (*fewer, *(experts << k for k in range(1, _DOUBLINGS + 1)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpertsBest:
    """The fastest layouts when a model has another number of experts.

    Args:
        step_s: the shortest step, infinite where none fits [s].
        row: of the space, -1 where none fits.
        whole: the space.
        raced: all that was timed to find it; None where nothing was.
    """

    step_s: float
    row: int
    whole: Whole
    raced: Raced | None = None

    @property
    def layout(self) -> Layout | None:
        """The fastest, None where none fits."""
        return None if self.row < 0 else self._layout(self.row)

    def promised(self) -> Iterator[tuple[Layout, float]]:
        """Yield what was timed with its step [s], the fastest first, one of each step."""
        if self.raced is None:
            yield self._layout(self.row), self.step_s
            return
        rows, steps_s = self.raced.rows, self.raced.steps_s
        for at in least_of_each(steps_s):
            yield self._layout(int(rows[at])), float(steps_s[at])

    def _layout(self, row: int) -> Layout:
        return self.whole.space.layout(row, self.whole.fixed)


class Experts:
    """The fastest layouts of some clusters when their model has more or fewer experts.

    Tokens still visit ``top_k`` of them. One space for the most of them holds those of all: only
    the expert-parallel degrees must divide another number.

    Args:
        pools: the clusters, each with a few layouts that are good now, the best among them; all
            with one number of experts.
    """

    def __init__(self, pools: Sequence[Pool]) -> None:
        self._pools = tuple(pools)
        self._groups = [
            [pools[at] for at in some] for some in grouped(pools, key=lambda pool: id(pool.whole))
        ]
        self._wholes: dict[int, Whole] = {}
        self._known: dict[int, list[ExpertsBest]] = {}

    def best(self, experts: int) -> list[ExpertsBest]:
        """Return each pool's fastest layout with *experts* experts."""
        if experts not in self._known:
            self._known[experts] = self._best(experts)
        return self._known[experts]

    def keeps(self, pool: Pool, experts: int, today: Layout) -> bool:
        """Return whether with *experts* experts the degrees of *today* fit and are as good as any.

        They are until another layout is 0.1 % faster.
        """
        names = [one.name for one in self._pools]
        best = self.best(experts)[names.index(pool.name)]
        if best.row < 0:
            return False
        table = best.whole.space.table
        own = np.logical_and.reduce([table[name] == getattr(today, name) for name in DEGREES])
        rows = best.whole.that_can(1.0, np.flatnonzero(own))
        if not rows.size:
            return False
        steps_s = times_on(best.whole.model, best.whole.longer(rows, 1.0), [pool.machine])[0, 0]
        return bool(steps_s.min() <= best.step_s * (1.0 + BEHIND))

    def _best(self, experts: int) -> list[ExpertsBest]:
        found: dict[str, ExpertsBest] = {}
        for pools in self._groups:
            model = _with_experts(pools[0].model, experts)
            if model is None:  # a shape that cannot have so many
                continue
            best = [_now(pool) for pool in pools]
            if model != pools[0].model:
                best = self._searched(pools, model)
            found |= {pool.name: one for pool, one in zip(pools, best, strict=True)}
        return [
            found.get(pool.name, ExpertsBest(step_s=inf, row=-1, whole=pool.whole))
            for pool in self._pools
        ]

    def _searched(self, pools: Sequence[Pool], model: ModelSpec) -> list[ExpertsBest]:
        machines = [pool.machine for pool in pools]
        most = self._most(pools)
        whole = most.of_another(model, model.experts % most.space.table["ep"] == 0)
        near = whole.that_can(1.0, _alike_but_for_experts(pools, whole))
        below_s = [inf] * len(pools)
        if near.size:
            steps_s = times_on(model, whole.longer(near, 1.0), machines)[0]
            below_s = steps_s.min(axis=1).tolist()
        return [
            ExpertsBest(step_s=one.best.step_s, row=one.best.row, whole=whole, raced=one)
            for one in shortest_steps(whole, machines, 1.0, below_s)
        ]

    def _most(self, pools: Sequence[Pool]) -> Whole:
        """Return the layouts of a group's model with the most experts that are asked about."""
        whole = pools[0].whole
        if id(whole) not in self._wholes:
            counts = (*expert_counts(whole.model.experts), whole.model.experts)
            models = [_with_experts(whole.model, count) for count in sorted(counts, reverse=True)]
            most = next(model for model in models if model is not None)
            machines = [pool.machine for pool in pools]
            gpus = int(pools[0].columns.gpus[0])
            space = space_on(most, machines, gpus, whole.fixed, rules=pools[0].rules)
            self._wholes[id(whole)] = Whole.of(most, space, whole.fixed, machines[0])
        return self._wholes[id(whole)]


def _with_experts(model: ModelSpec, experts: int) -> ModelSpec | None:
    try:
        return replace(model, experts=experts)
    except SpecError:
        return None


def _now(pool: Pool) -> ExpertsBest:
    best = pool.best()
    return ExpertsBest(step_s=best.step_s, row=best.row, whole=pool.whole)


def _alike_but_for_experts(pools: Sequence[Pool], whole: Whole) -> Ints:
    """Return the rows of *whole* that differ from the pools' best layouts in EP alone."""
    table = pools[0].whole.space.table
    rows = np.zeros(whole.space.size, dtype=bool)
    for best in {pool.best().row for pool in pools}:
        alike = [whole.space.table[name] == column[best]
                 for name, column in table.items() if name != "ep"]  # fmt: skip
        rows |= np.logical_and.reduce(alike)
    return np.flatnonzero(rows & (whole.fails_from_ratio > 0))
