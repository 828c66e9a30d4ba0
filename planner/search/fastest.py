"""The fastest layouts of a space without timing all of them: what cannot be among them is left out.

A row whose least step (``least_steps.py``) is longer than the last step wanted cannot be wanted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.search.evaluate import CHUNK_ROWS, Evaluated, Machine, times_on
from planner.search.least_steps import least_steps_s, with_gradients_s
from planner.search.pool import Best, best_of
from planner.search.search import Swept, best_of_each, space_on, sweep_on, unlike
from planner.search.whole import Whole
from planner.steptime.memory import step_memory

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.model import ModelSpec
    from planner.search.rules import Rule

    Ints = NDArray[np.int64]

SEATED = 4
"""Layouts of one machine that are seated at most before one of them is taken [1]."""
_FIRST_ROWS = 1_024  # timed at first; then two or four times as many, and so on
_SAME = 2e-9  # steps 1e-9 apart are told as one


def fastest_on(
    model: ModelSpec,
    machines: Sequence[Machine],
    gpus: int,
    fixed: Mapping[str, Any],
    rules: Sequence[Rule] = (),
) -> tuple[Whole, list[Swept]]:
    """Return the space of *model* on *gpus* GPUs, and the fastest of it on each machine.

    The first ``SEATED`` unlike entries of ``Swept.best``, and what is like them, are those that
    ``sweep_on`` finds; its ``evaluated`` holds only what was timed to find them.

    Raises:
        LayoutError, InfeasibleError: as ``sweep_on``.
    """
    space = space_on(model, machines, gpus, fixed, rules=rules)
    whole = Whole.of(model, space, fixed, machines[0])
    least_s = least_steps_s(whole, machines, 1.0, np.arange(space.size))
    count, limits = _FIRST_ROWS, [np.inf]
    kept: Ints = np.empty(0, np.int64)
    while not np.isfinite(limits).all() and count < 4 * space.size:
        kept = whole.that_can(1.0, _least_rows(least_s, count))
        if kept.size:
            limits = [_last_wanted_s(one) for one in _timed(whole, machines, kept, rules)]
        count *= 4
    if not kept.size:
        sweep_on(model, machines, gpus, fixed, rules=rules)  # says why there is none
    within = (least_s <= np.asarray(limits)[:, None] * (1.0 + _SAME)).any(axis=0)
    others = whole.that_can(1.0, np.flatnonzero(within))
    return whole, _timed(whole, machines, np.union1d(kept, others), rules)


def _least_rows(least_s: NDArray[np.float64], count: int) -> Ints:
    """Return the *count* rows of the least steps on each machine."""
    if count >= least_s.shape[1]:
        return np.arange(least_s.shape[1])
    return np.unique(np.argpartition(least_s, count, axis=1)[:, :count])


def _last_wanted_s(found: Swept) -> float:
    """Return the step of the last entry that may be seated, infinite where there are fewer [s]."""
    entries = unlike(found.evaluated, found.best)[:SEATED]
    steps_s = [float(found.evaluated.total_s[entry]) for entry, _ in entries]
    return max(steps_s) if len(steps_s) == SEATED else np.inf


def _timed(
    whole: Whole, machines: Sequence[Machine], rows: Ints, rules: Sequence[Rule]
) -> list[Swept]:
    """Return *rows*, all of which fit, timed on each machine."""
    columns = whole.longer(rows, 1.0)
    memory = step_memory(whole.model, columns, machines[0].accelerator.memory_bytes)
    worst = np.broadcast_to(memory.worst_stage_bytes, rows.shape)
    total_s, serial_s = times_on(whole.model, columns, machines)
    sets = whole.space.sets(rows)
    found = []
    for machine, total, serial in zip(machines, total_s, serial_s, strict=True):
        one = Evaluated(rows=rows, total_s=total, serial_s=serial, worst_bytes=worst,
                        too_large=0, nearest=-1)  # fmt: skip
        found.append(
            Swept(space=whole.space, evaluated=one, fixed=whole.fixed, machine=machine,
                  best=best_of_each(one, sets), rules=tuple(rules))
        )  # fmt: skip
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Raced:
    """What was timed on one machine to find its shortest step.

    Args:
        best: the shortest step.
        rows: of the space, ascending.
        steps_s: theirs, infinite where it was not timed on this machine [s].
    """

    best: Best
    rows: Ints
    steps_s: NDArray[np.float64]


def shortest_steps(
    whole: Whole, machines: Sequence[Machine], seq: float, below_s: Sequence[float]
) -> list[Raced]:
    """Return the shortest step up to *below_s* on each machine, of all layouts of the space.

    Args:
        whole: the space.
        machines: they differ in their network alone.
        seq: how many times as long the sequences are [1].
        below_s: what is of interest, for each machine; may be infinite [s].

    Returns:
        One for each machine; the best's row is -1 where none is that short.
    """
    race = _Race(whole, machines, seq, below_s)
    if not race.bounded:
        race.start()
    left = whole.near(seq, float(race.limits_s.max()))
    least_s = least_steps_s(whole, machines, seq, left)
    near = least_s <= race.limits_s[:, None] * (1.0 + _SAME)
    if np.logical_or.reduce(near).sum() > CHUNK_ROWS:
        left, least_s = left[near.any(axis=0)], least_s[:, near.any(axis=0)]
        least_s = with_gradients_s(whole, machines, seq, left, least_s)
        near = least_s <= race.limits_s[:, None] * (1.0 + _SAME)
    race.keep(np.logical_or.reduce(near, axis=1))
    count = _FIRST_ROWS
    while left.size:
        ratio = (least_s / race.limits_s[:, None]).min(axis=0)
        order = np.flatnonzero(ratio <= 1.0 + _SAME)
        if order.size > count:
            order = order[np.argpartition(ratio[order], count)]
        race.time(np.sort(left[order[:count]]))
        left, least_s = left[order[count:]], least_s[:, order[count:]]
        count = min(2 * count, CHUNK_ROWS)
    return race.ends()


class _Race:
    """The rows of a space that were timed on some machines, and the shortest steps among them."""

    def __init__(
        self, whole: Whole, machines: Sequence[Machine], seq: float, below_s: Sequence[float]
    ) -> None:
        self._whole, self._machines, self._seq = whole, machines, seq
        self._running = np.arange(len(machines))
        self.limits_s = np.asarray(below_s, dtype=float)
        self._rows: list[Ints] = [np.empty(0, np.int64)]
        self._steps_s = [np.empty((len(machines), 0))]

    @property
    def bounded(self) -> bool:
        """Whether anything is known that a step must not be longer than."""
        return bool(np.isfinite(self.limits_s).all())

    def start(self) -> None:
        """Time rows with the least compute until some fit."""
        rows = self._whole.near(self._seq, np.inf)
        rows = rows[np.argsort(self._whole.compute_s(self._seq, rows), kind="stable")]
        done, count = 0, _FIRST_ROWS
        while done < rows.size and not self.bounded:
            self.time(np.sort(rows[done : done + count]))
            done, count = done + count, min(2 * count, CHUNK_ROWS)

    def keep(self, running: NDArray[np.bool_]) -> None:
        """Time the others no more: nothing that is left can matter to them."""
        self._running = np.flatnonzero(running)

    def time(self, rows: Ints) -> None:
        """Time those of *rows* that fit, ascending."""
        rows = self._whole.that_can(self._seq, rows)
        if rows.size:
            columns = self._whole.longer(rows, self._seq)
            total_s = np.full((len(self._machines), rows.size), np.inf)
            running = [self._machines[int(at)] for at in self._running]
            total_s[self._running] = times_on(self._whole.model, columns, running)[0]
            self._rows.append(rows)
            self._steps_s.append(total_s)
            self.limits_s = np.minimum(self.limits_s, total_s.min(axis=1))

    def ends(self) -> list[Raced]:
        """Return the shortest step of each machine that is within its limit, and all others."""
        rows, steps_s = np.concatenate(self._rows), np.concatenate(self._steps_s, axis=1)
        order = np.argsort(rows)
        rows, steps_s = rows[order], steps_s[:, order]
        within = steps_s <= self.limits_s[:, None] * (1.0 + _SAME)
        bests = [best_of(rows, one) for one in np.where(within, steps_s, np.inf)]
        return [
            Raced(best=best, rows=rows, steps_s=one)
            for best, one in zip(bests, steps_s, strict=True)
        ]
