"""The usual ways to train, and the layout that is fastest among them before ranks have seats.

Every combination of dividing degrees, virtual stages, micro-batches and recomputation is timed by
the step-time model; what cannot be is counted by reason. A layout gets the better of the two
seatings that the two rank orders give, on the domains as they are (384+384+256, dead GPUs).
``chosen.py`` seats what may be the fastest of these before it takes one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from planner.errors import InfeasibleError, LayoutError
from planner.layout import Layout
from planner.search.evaluate import Evaluated, Machine, evaluate
from planner.search.given import out_of_memory
from planner.search.near_counts import fewer_gpus_that_fit, fewer_gpus_words
from planner.search.search import machine_of
from planner.search.space import (
    USUAL,
    Space,
    first_of_each,
    layout_space,
    on_request,
    wide_choices,
)
from planner.steptime.columns import columns_of
from planner.steptime.memory import step_memory
from planner.steptime.rates import rates_of
from planner.steptime.uncertainty import faster

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Fabric
    from planner.model import ModelSpec
    from planner.search.rules import Rule
    from planner.steptime.rates import Efficiency

Take = Literal["usual", "fastest"]
"""Whether the usual ways to run go before others that the model cannot tell from them."""
TOO_LARGE = "does not fit in memory"
WHOLE_FITS = "fits with ZeRO 1, which is no slower"
AS_GOOD_SHARE = 0.02
_USUAL_STAGE, _SHARDED_STAGE = 1, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The chosen layout, and what it was chosen from.

    Args:
        layout: the fastest that fits.
        step_s: its step in the better of the two rank orders' seatings [s].
        considered: combinations looked at [1].
        feasible: of them, those that can run and fit [1].
        rejected: reason to how many fell to it, each counted once.
        runner_up: the next with other parallel degrees, where there is one.
        runner_up_step_s: its step, timed as *seated_s* is, or as *step_s* where nothing was seated
            [s]; 0 where there is none.
        fastest_s: the shortest step of all, timed likewise, whatever the choice rests on [s].
        seated_s: its step in quick seats, links shared [s]; 0 where nothing was seated.
        seated: layouts that were seated before it was taken [1].
        passed_over: the fastest of all layouts where it is faster than *layout* by more than what
            was chosen from is alike, and yet not usual; None where there is none such.
        passed_over_s: its step, timed as *seated_s* is [s]; 0 where there is none.
        take: ``usual``, or ``fastest`` where the shortest step of all was asked for.
        ways: whether *considered* counts the usual ways to run alone, or all.
    """

    layout: Layout
    step_s: float
    considered: int
    feasible: int
    rejected: Mapping[str, int]
    runner_up: Layout | None
    runner_up_step_s: float
    fastest_s: float
    seated_s: float = 0.0
    seated: int = 0
    passed_over: Layout | None = None
    passed_over_s: float = 0.0
    take: Take = "usual"
    ways: Literal["usual", "all"] = "usual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What a layout is wanted for.

    Args:
        model: the transformer's shape.
        fabric: the cluster.
        gpus: GPUs the layout must occupy [1].
        fixed: fields of ``Layout`` that are given; ``seq`` and ``global_batch`` must be.
        efficiency: as of ``step_time``.
        rules: conditions that every layout must meet.
    """

    model: ModelSpec
    fabric: Fabric
    gpus: int
    fixed: Mapping[str, Any]
    efficiency: Efficiency | None = None
    rules: tuple[Rule, ...] = ()


def best_layout(job: Job, *, ignore_memory: bool = False) -> Choice:
    """Return the layout with the shortest estimated step among those that *job* leaves open.

    Of those within 2 % of the shortest, closer than the model can tell apart, the one with the
    fewest pipeline stages, then the one that rests least on communication being hidden: least
    total of compute and all communication. ZeRO 1 is taken unless fixed: ZeRO 3, which gathers
    the weights for every micro-batch, only where nothing fits with 1, or where its step is
    shorter by so much that the model tells the two apart at 90 %.

    Args:
        job: what it is wanted for.
        ignore_memory: also take layouts that do not fit.

    Raises:
        LayoutError, InfeasibleError: as ``usual_spaces``.
    """
    some = usual_spaces(job, ignore_memory=ignore_memory)
    best = some[0]
    for other in some[1:]:
        least_s, usual_s = other.some.total_s.min(), best.some.total_s.min()
        if least_s < usual_s and faster(least_s, usual_s, best.spread).told_apart:
            best = other
    return best.estimated(min(float(one.some.total_s.min()) for one in some))


def usual_spaces(job: Job, *, ignore_memory: bool = False) -> list[Fitting]:
    """Return the usual layouts that fit: with ZeRO 1, and with ZeRO 3 what does not fit with 1.

    Args:
        job: what they are wanted for.
        ignore_memory: also return layouts that do not fit.

    Raises:
        LayoutError: no combination can run; says how many fell to each reason.
        InfeasibleError: none fits in memory; says by how much the nearest misses.
    """
    machine = machine_of(job.fabric, job.gpus, job.efficiency)
    capacity = machine.accelerator.memory_bytes
    # without the margin only where nothing at all fits with it
    for most_bytes in (np.inf,) if ignore_memory else (None, capacity):
        found = _usual_fitting(job, machine, most_bytes)
        some = [one for one in found if len(one.some.rows)]
        if some:
            return some
    raise _none_fits(job.model, found[-1], capacity)


def _usual_fitting(job: Job, machine: Machine, most_bytes: float | None) -> list[Fitting]:
    """Return the usual layouts that hold *most_bytes* at most, as ``evaluate``; each ZeRO stage.

    Raises:
        LayoutError: no combination can run; says how many fell to each reason.
    """
    model, fixed, rules = job.model, job.fixed, job.rules
    stages = (fixed["zero_stage"],) if "zero_stage" in fixed else (_USUAL_STAGE, _SHARDED_STAGE)
    found: list[Fitting] = []
    usual = on_request(USUAL, model, rules)
    # A rule may ask for what is not usual.
    for choices in (usual, wide_choices(model, rules)) if rules else (usual,):
        for stage in stages:
            given = {**fixed, "zero_stage": stage}
            space = layout_space(
                model, job.gpus, given, choices, rules=rules,
                domain_gpus=machine.seats.supernode_gpus,
            )  # fmt: skip
            if space.size:
                # What fits with whole weights is no faster with gathered ones.
                alike = bool(found) and found[0].space.size == space.size
                without = found[0].some.rows if alike else None
                some = evaluate(
                    model, space, given, machine, most_bytes=most_bytes, without=without
                )
                left_out = 0 if without is None else len(without)
                found.append(
                    Fitting(space=space, some=some, fixed=given, machine=machine, left_out=left_out)
                )
        if found:
            break
    if not found:
        counted = "; ".join(f"{count:,}: {reason}" for reason, count in space.rejected.items())
        raise LayoutError(
            f"no layout for {job.gpus} GPUs is left: of {space.considered:,} considered, {counted}"
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitting:
    """A space, the layouts of it that fit, and what they share.

    Args:
        space, fixed, machine: whose layouts.
        some: those that fit.
        left_out: that fit and are looked at elsewhere [1].
    """

    space: Space
    some: Evaluated
    fixed: Mapping[str, Any]
    machine: Machine
    left_out: int

    @property
    def spread(self) -> float:
        """The fit's spread, in log [1]."""
        columns = columns_of(self.layout(0))
        return rates_of(self.machine.accelerator, columns, self.machine.efficiency).spread

    @property
    def rejected(self) -> dict[str, int]:
        """Reason to how many layouts fell to it, each counted once."""
        rejected = dict(self.space.rejected)
        if self.left_out:
            rejected[WHOLE_FITS] = self.left_out
        if self.some.too_large > self.left_out:
            rejected[TOO_LARGE] = self.some.too_large - self.left_out
        return rejected

    def layout(self, entry: int) -> Layout:
        """Return the layout of one entry of *some*."""
        return self.space.layout(int(self.some.rows[entry]), self.fixed)

    def estimated(self, fastest_s: float) -> Choice:
        """Return the best of them before seating; *fastest_s* is of all that were looked at [s]."""
        best = _ranked(self.space, self.some)
        return Choice(
            layout=self.layout(best[0]),
            step_s=float(self.some.total_s[best[0]]),
            considered=self.space.considered,
            feasible=len(self.some.rows),
            rejected=self.rejected,
            runner_up=self.layout(best[1]) if len(best) > 1 else None,
            runner_up_step_s=float(self.some.total_s[best[1]]) if len(best) > 1 else 0.0,
            fastest_s=fastest_s,
        )


def _ranked(space: Space, some: Evaluated) -> NDArray[np.int64]:
    """Return the best entry of each set of degrees, the best first.

    First those within ``AS_GOOD_SHARE`` of the shortest step, by pipeline stages and by how
    little they rest on hidden communication; then the others by their step. Then memory; then
    what was considered first.
    """
    close = some.total_s <= some.total_s.min() * (1.0 + AS_GOOD_SHARE)
    seconds = np.where(close, some.serial_s, some.total_s)
    stages = np.where(close, space.table["pp"][some.rows], 0)
    # 1e-9 apart is rounding, not a difference.
    return first_of_each(
        space.sets(some.rows), (~close).astype(float), stages, np.round(np.log(seconds) * 1e9),
        some.worst_bytes,
    )  # fmt: skip


def _none_fits(model: ModelSpec, found: Fitting, capacity_bytes: float) -> InfeasibleError:
    nearest = found.space.layout(found.some.nearest, found.fixed)
    memory = step_memory(model, columns_of(nearest), capacity_bytes)
    counts = fewer_gpus_that_fit(model, nearest.gpus, found.fixed, capacity_bytes)
    return InfeasibleError(
        out_of_memory(model, nearest, memory, found.space.size)
        + fewer_gpus_words(nearest.gpus, counts)
    )
