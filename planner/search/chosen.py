"""The layout that is taken where none, or only part of one, is given: chosen as it is seated.

``planner place`` seats it, ``search`` lists it first, ``compare`` compares clusters by it. A layout
is left out unseated only where no seating could make it fast enough: see ``seated_rows.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InfeasibleError, LayoutError
from planner.search.any_seats import AnySeats
from planner.search.defaults import (
    AS_GOOD_SHARE,
    TOO_LARGE,
    Choice,
    Fitting,
    Job,
    Take,
    usual_spaces,
)
from planner.search.evaluate import evaluate, times_on
from planner.search.search import machine_of, space_on
from planner.search.seated_rows import SeatedRows, Told, untold
from planner.search.whole import ROUNDING, Whole
from planner.steptime.step import layout_memory
from planner.steptime.uncertainty import faster

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.layout import Layout
    from planner.search.evaluate import Machine
    from planner.search.seated_steps import SeatedSteps
    from planner.search.space import Space

    Ints = NDArray[np.int64]

_PASSED_OVER_TRIED = 48
"""Layouts that are seated to find one that is passed over before none is named [1]: a second or
two. ``planner search`` and ``--take fastest`` seat all that could be it."""
_HALVINGS = 40
"""Of a step, to find the longest that is surely shorter: to 1e-12 of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fastest:
    """The fastest layout of all as seated, and its step in quick seats [s]."""

    layout: Layout
    step_s: float

    @property
    def token_s(self) -> float:
        """What a token takes [s]."""
        return self.step_s / (self.layout.global_batch * self.layout.seq)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Near:
    """All layouts that may take less than *below_s* [s]."""

    below_s: float
    rows: SeatedRows


class Chooser:
    """What may be taken on one cluster, and what of it was seated so far.

    Args:
        job: what a layout is wanted for.
        steps: of its cluster.
        whole: all layouts of the job; None to make it when it is asked for.
        told: is told after each layout that is seated.
    """

    def __init__(
        self, job: Job, steps: SeatedSteps, *, whole: Whole | None = None, told: Told = untold
    ) -> None:
        self.steps = steps
        self.job, self._told, self._known = job, told, whole
        self._any = AnySeats(job.fabric, job.gpus)
        self._near: _Near | None = None

    def taken(self, take: Take = "usual", *, ignore_memory: bool = False) -> Choice:
        """Return the layout that is taken.

        Of those within 2 % of the shortest step in quick seats, closer than the model can tell
        apart, the one with the fewest pipeline stages, then the one that rests least on
        communication being hidden. ZeRO 1 and the usual ways to run are taken unless fixed: ZeRO 3,
        and what nobody but ``planner search`` tries, only where nothing else fits, or where their
        step is shorter by so much that the model tells the two apart at 90 %. One that is more than
        2 % faster and yet not taken is named as passed over.

        Args:
            take: ``fastest`` for the shortest step of all layouts, however it is run.
            ignore_memory: also take layouts that do not fit; of the usual ones alone.

        Raises:
            LayoutError, InfeasibleError: as ``usual_spaces``.
        """
        choice = self._usual(ignore_memory=ignore_memory)
        if ignore_memory or not choice.seated_s:
            return choice
        return self._shortest(choice) if take == "fastest" else self._named(choice)

    def _named(self, choice: Choice) -> Choice:
        """Return *choice* with what is passed over for it, if it is soon found."""
        limit_s = choice.seated_s / (1.0 + AS_GOOD_SHARE)
        rows = self._below(choice.seated_s)
        found = rows.shortest(limit_s, tried=_PASSED_OVER_TRIED)
        if found.row < 0:
            return choice
        return replace(choice, passed_over=rows.layout(found.row), passed_over_s=found.step_s)

    def _shortest(self, choice: Choice) -> Choice:
        """Return the fastest of all, where *choice* would be taken else."""
        rows, whole = self._below(choice.seated_s), self.whole()
        found = rows.shortest(choice.seated_s)
        fitting = len(whole.that_can(1.0, np.arange(whole.space.size)))
        rejected = dict(whole.space.rejected)
        if fitting < whole.space.size:
            rejected[TOO_LARGE] = whole.space.size - fitting
        fastest = replace(
            choice, take="fastest", ways="all", considered=whole.space.considered, feasible=fitting,
            rejected=rejected, seated=len(rows.seated_s),
        )  # fmt: skip
        if found.row < 0:
            return fastest
        return replace(
            fastest, layout=rows.layout(found.row), step_s=self._estimated_s(found.row),
            seated_s=found.step_s, fastest_s=found.step_s, runner_up=choice.layout,
            runner_up_step_s=choice.seated_s,
        )  # fmt: skip

    def _estimated_s(self, row: int) -> float:
        """Return the step of one row of the whole space in the better rank order's seats [s]."""
        whole = self.whole()
        columns = whole.space.columns(whole.fixed, np.array([row]))
        return float(times_on(whole.model, columns, [whole.machine])[0, 0, 0])

    def _usual(self, *, ignore_memory: bool) -> Choice:
        """Return what is taken, the usual ways before the others."""
        try:
            some = usual_spaces(self.job, ignore_memory=ignore_memory)
        except (LayoutError, InfeasibleError) as error:
            if ignore_memory:
                raise
            return self._instead(error)
        if not ignore_memory and not self._has_margin(some[0]):
            try:
                return self._of_all()  # one that leaves a margin, however it is run
            except InfeasibleError:
                pass
        if len(some) == 1 and len(some[0].some.rows) == 1:  # nothing to choose from
            return some[0].estimated(float(some[0].some.total_s[0]))
        tried = [self._rows(one) for one in some]
        choice = _taken(some[0], tried[0])
        limit_s = _surely_shorter_s(choice.fastest_s, some[0].spread)
        every = [] if ignore_memory else [self._below(choice.seated_s)]
        if any(one.may_take(limit_s) for one in (*tried[1:], *every)):
            return self._surely_faster(some, tried, every)
        return choice

    def _has_margin(self, some: Fitting) -> bool:
        """Return whether layouts that fit leave the margin of memory: all of them, or none."""
        accelerator = some.machine.accelerator
        return bool(layout_memory(self.job.model, some.layout(0), accelerator).fits)

    def _surely_faster(
        self, some: Sequence[Fitting], tried: Sequence[SeatedRows], every: Sequence[SeatedRows]
    ) -> Choice:
        """Return what is taken where more than the first of *some* may have to be looked at."""
        best, shortest = 0, tried[0].shortest()
        for at, one in enumerate(tried[1:], 1):
            shorter = one.shortest(_surely_shorter_s(shortest.step_s, some[0].spread))
            if shorter.row >= 0:
                best, shortest = at, shorter
        limit_s = _surely_shorter_s(shortest.step_s, some[0].spread)
        if any(one.shortest(limit_s).row >= 0 for one in every):
            return self._of_all()
        return _taken(some[best], tried[best])

    def fastest(self, choice: Choice) -> Fastest:
        """Return the fastest layout of all, where *choice* is what is taken."""
        known_s = choice.seated_s or self.steps.quick_s(self.job.model, choice.layout)
        rows = self._below(known_s)
        found = rows.shortest(known_s)
        if found.row < 0:
            return Fastest(layout=choice.layout, step_s=known_s)
        return Fastest(layout=rows.layout(found.row), step_s=found.step_s)

    def rows_of(self, rows: Ints, below_s: float) -> SeatedRows:
        """Return *rows* of the whole space, all of which fit, to be seated.

        Args:
            rows: of the space.
            below_s: longer steps are of no interest [s].
        """
        whole = self.whole()
        return self._seatable(whole.space, whole.fixed, whole.machine, rows, below_s)

    def _instead(self, error: LayoutError | InfeasibleError) -> Choice:
        """Return what is taken of all layouts where no usual one fits, which *error* says."""
        try:
            return self._of_all()
        except (LayoutError, InfeasibleError):
            raise error from None

    def _of_all(self) -> Choice:
        """Return what is taken of all layouts.

        Raises:
            InfeasibleError: none fits.
        """
        whole = self.whole()
        some = evaluate(whole.model, whole.space, whole.fixed, whole.machine)
        if not len(some.rows):
            raise InfeasibleError(f"none of {whole.space.size:,} layouts fits in memory")
        fitting = Fitting(space=whole.space, some=some, fixed=whole.fixed, machine=whole.machine,
                          left_out=0)  # fmt: skip
        rows = self._rows(fitting)
        return replace(_taken(fitting, rows), ways="all")

    def _rows(self, one: Fitting) -> SeatedRows:
        """Return what may be within ``AS_GOOD_SHARE`` of the shortest of *one*, and the others."""
        likely = one.layout(int(one.some.total_s.argmin()))
        enough_s = self.steps.quick_s(self.job.model, likely) * (1.0 + AS_GOOD_SHARE)
        return self._seatable(one.space, one.fixed, one.machine, one.some.rows, enough_s)

    def _below(self, step_s: float) -> SeatedRows:
        """Return all layouts that fit and may take less than *step_s*, and maybe others."""
        if self._near is None or self._near.below_s < step_s:
            whole = self.whole()
            rows = self.rows_of(whole.that_can(1.0, whole.near(1.0, step_s)), step_s)
            self._near = _Near(below_s=step_s, rows=rows)
        return self._near.rows

    def _seatable(
        self, space: Space, fixed: Mapping[str, Any], machine: Machine, rows: Ints, below_s: float
    ) -> SeatedRows:
        model = self.job.model
        least_s = self._any.least_s(model, machine, space, fixed, rows)
        near = np.flatnonzero(least_s <= below_s)
        closer_s = self._any.closer_s(model, machine, space, fixed, rows[near])
        least_s[near] = np.maximum(least_s[near], closer_s)

        def placed_s(row: int) -> float:
            columns = space.columns(fixed, np.array([row]))
            spreads = self.steps.quick_spreads(model, space.layout(row, fixed))
            each = (self._any.placed_s(model, machine, columns, one)[0] for one in spreads)
            return float(min(each)) * (1.0 - ROUNDING)

        return SeatedRows(self.steps, model, space, fixed, rows, least_s, placed_s, self._told)

    def whole(self) -> Whole:
        """Return all layouts of the job, made when first asked for."""
        if self._known is None:
            job = self.job
            machine = machine_of(job.fabric, job.gpus, job.efficiency)
            space = space_on(job.model, [machine], job.gpus, job.fixed, rules=job.rules)
            self._known = Whole.of(job.model, space, job.fixed, machine)
        return self._known


def _surely_shorter_s(step_s: float, spread: float) -> float:
    """Return the step below which the model tells every other from *step_s* at 90 % [s].

    >>> 8.6 < _surely_shorter_s(10.0, 0.1) < 8.7
    True
    """
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        if faster(middle, 1.0, spread).told_apart:
            low = middle
        else:
            high = middle
    return step_s * low


def _taken(some: Fitting, rows: SeatedRows) -> Choice:
    """Return the choice among *rows*, which are those of *some*."""
    found, space = some.some, some.space
    row = rows.first_close(
        AS_GOOD_SHARE,
        [space.table["pp"][found.rows], np.round(np.log(found.serial_s) * 1e9),
         found.worst_bytes],
    )  # fmt: skip
    after = rows.next_to(row.row)
    return Choice(
        layout=rows.layout(row.row),
        step_s=float(found.total_s[np.searchsorted(found.rows, row.row)]),
        considered=space.considered,
        feasible=len(found.rows),
        rejected=some.rejected,
        runner_up=None if after is None else rows.layout(after.row),
        runner_up_step_s=0.0 if after is None else after.step_s,
        fastest_s=rows.shortest_s,
        seated_s=row.step_s,
        seated=len(rows.seated_s),
    )
