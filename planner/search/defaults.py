"""The layout that is taken where none, or only part of one, is given: the fastest that fits.

Every combination of dividing degrees, virtual stages, micro-batches and recomputation is timed by
the step-time model; what cannot be is counted by reason. The seating is not yet known here: a
layout gets the better of the two seatings that the two rank orders give. The best few are timed
again on the domains as they are (384+384+256, dead GPUs), where a group may straddle two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InfeasibleError, LayoutError
from planner.layout import Layout
from planner.search.given import out_of_memory
from planner.search.placed import inside_spreads, spreads_of, stacked
from planner.search.space import Space, layout_space
from planner.steptime.columns import LayoutColumns, columns_of, slice_columns
from planner.steptime.memory import step_memory
from planner.steptime.spread import contiguous_spread
from planner.steptime.step import Step, step_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.collectives.links import LinkNumbers
    from planner.fabric import Accelerator
    from planner.model import ModelSpec
    from planner.steptime.rates import Efficiency

TOO_LARGE = "does not fit in memory"
_CHUNK_ROWS = 16_384
_TIMED_AGAIN = 24
_AS_GOOD_SHARE = 0.02
_SEATINGS = ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The chosen layout, and what it was chosen from.

    Args:
        layout: the fastest that fits.
        step_s: its step in the better of the two rank orders' seatings [s].
        considered: combinations looked at [1].
        feasible: of them, those that can run and fit [1].
        rejected: reason to how many fell to it, each counted once.
        runner_up: the fastest with other parallel degrees, where there is one.
        runner_up_step_s: its step [s], 0 where there is none.
    """

    layout: Layout
    step_s: float
    considered: int
    feasible: int
    rejected: Mapping[str, int]
    runner_up: Layout | None
    runner_up_step_s: float


def best_layout(
    model: ModelSpec,
    *,
    accelerator: Accelerator,
    links: LinkNumbers,
    homes: Sequence[NDArray[np.int64]],
    gpus: int,
    fixed: Mapping[str, Any],
    efficiency: Efficiency | None = None,
    ignore_memory: bool = False,
) -> Choice:
    """Return the layout with the shortest step among those that *fixed* leaves open.

    Of those within 2 % of the shortest, closer than the model can tell apart, the one with the
    fewest pipeline stages, then the one that rests least on communication being hidden: least
    total of compute and all communication. ZeRO 1 is taken unless fixed; ZeRO 3 only where
    nothing fits with 1.

    Args:
        model: the transformer's shape.
        accelerator: what every GPU is.
        links: nominal rates of the tiers, supernode first.
        homes: domain of each usable GPU at each tier from the supernode outwards but the last.
        gpus: GPUs the layout must occupy [1].
        fixed: fields of ``Layout`` that are given; ``seq`` and ``global_batch`` must be.
        efficiency: as of ``step_time``.
        ignore_memory: also take layouts that do not fit.

    Raises:
        LayoutError: no combination can run; says how many fell to each reason.
        InfeasibleError: none fits in memory; says by how much the nearest misses.
    """
    capacity = accelerator.memory_bytes
    for stage in (fixed["zero_stage"],) if "zero_stage" in fixed else (1, 3):
        given = {**fixed, "zero_stage": stage}
        space = layout_space(model, gpus, given)
        if not space.size:
            raise _none_can_run(space, gpus)
        columns = space.columns(given)
        held = _held(model, columns, capacity, ignore_memory=ignore_memory)
        if held.fits.any():
            break
    else:
        raise _none_fits(model, space, given, held, capacity)
    timed = partial(
        step_columns, model, accelerator=accelerator, links=links, efficiency=efficiency
    )
    fitting = np.flatnonzero(held.fits)
    sizes = [int(np.bincount(home).max()) for home in homes]
    times = _times(timed, _rows(columns, fitting), sizes)
    rows, times = _ranked(space, fitting, times, held.worst_bytes)
    if any(_is_uneven(home, gpus) for home in homes):
        rows = rows[:_TIMED_AGAIN]
        times = _seated_times(timed, [space.layout(int(r), given) for r in rows], homes)
        rows, times = _ranked(space, rows, times, held.worst_bytes)
    layouts = [space.layout(int(row), given) for row in rows[:2]]
    rejected = dict(space.rejected)
    if space.size > fitting.size:
        rejected[TOO_LARGE] = space.size - int(fitting.size)
    return Choice(
        layout=layouts[0],
        step_s=float(times.total_s[0]),
        considered=space.considered,
        feasible=int(fitting.size),
        rejected=rejected,
        runner_up=layouts[1] if len(layouts) > 1 else None,
        runner_up_step_s=float(times.total_s[1]) if len(layouts) > 1 else 0.0,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """Memory of every row: whether it fits, and what the fullest stage holds [bytes]."""

    fits: NDArray[np.bool_]
    worst_bytes: NDArray[np.float64]


def _held(
    model: ModelSpec, columns: LayoutColumns, capacity_bytes: float, *, ignore_memory: bool
) -> _Held:
    """Return which rows fit with the margin; where none does, which fit without it."""
    worst, fits = [], []
    for part in _chunks(columns):
        memory = step_memory(model, part, capacity_bytes)
        worst.append(np.broadcast_to(memory.worst_stage_bytes, part.tp.shape))
        fits.append(np.broadcast_to(memory.fits, part.tp.shape))
    bytes_, enough = np.concatenate(worst), np.concatenate(fits).astype(bool)
    if ignore_memory:
        enough = np.ones_like(enough)
    elif not enough.any():
        enough = bytes_ <= capacity_bytes
    return _Held(fits=enough, worst_bytes=bytes_)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Times:
    """Steps of rows as they are, and as they were if no communication were hidden [s]."""

    total_s: NDArray[np.float64]
    serial_s: NDArray[np.float64]

    def of(self, rows: Any) -> _Times:
        return _Times(total_s=self.total_s[rows], serial_s=self.serial_s[rows])


def _times(timed: Callable[..., Step], columns: LayoutColumns, domains: Sequence[float]) -> _Times:
    """Return the times of each row in the better of both seatings on equal domains."""
    parts = []
    for part in _chunks(columns):
        if domains:
            spreads = [contiguous_spread(part, domains, order) for order in _SEATINGS]
        else:
            spreads = [inside_spreads(part)]
        parts.append(_better([timed(part, spreads=one) for one in spreads], part))
    return _Times(
        total_s=np.concatenate([part.total_s for part in parts]),
        serial_s=np.concatenate([part.serial_s for part in parts]),
    )


def _seated_times(
    timed: Callable[..., Step], layouts: Sequence[Layout], homes: Sequence[NDArray[np.int64]]
) -> _Times:
    """Return the times of each layout in the better of both seatings on the domains as they are."""
    columns = columns_of(layouts)
    steps = []
    for order in _SEATINGS:
        spreads = [
            spreads_of(layout, [home[_seats(layout, order)] for home in homes])
            for layout in layouts
        ]
        steps.append(timed(columns, spreads=stacked(spreads)))
    return _better(steps, columns)


def _better(steps: Sequence[Step], columns: LayoutColumns) -> _Times:
    total = np.stack([np.broadcast_to(step.total_s, columns.tp.shape) for step in steps])
    serial = np.stack([np.broadcast_to(step.serial_s, columns.tp.shape) for step in steps])
    best, every = total.argmin(axis=0), np.arange(total.shape[1])
    return _Times(total_s=total[best, every], serial_s=serial[best, every])


def _chunks(columns: LayoutColumns) -> list[LayoutColumns]:
    count = len(columns.tp)
    return [
        slice_columns(columns, slice(start, start + _CHUNK_ROWS))
        for start in range(0, count, _CHUNK_ROWS)
    ]


def _rows(columns: LayoutColumns, rows: NDArray[np.int64]) -> LayoutColumns:
    values = {field.name: getattr(columns, field.name) for field in fields(LayoutColumns)}
    return LayoutColumns(
        **{name: v[rows] if isinstance(v, np.ndarray) else v for name, v in values.items()}
    )


def _seats(layout: Layout, order: str) -> NDArray[np.int64]:
    """Return the GPU of each rank when consecutive GPUs are filled in *order*."""
    ranks = np.arange(layout.gpus)
    if order == layout.order:
        return ranks
    inside = layout.tp * layout.cp
    outer, inner = (layout.pp, layout.dp) if layout.order.endswith("pp") else (layout.dp, layout.pp)
    return ranks.reshape(inner, outer, inside).transpose(1, 0, 2).ravel()


def _is_uneven(home: NDArray[np.int64], gpus: int) -> bool:
    """Return whether equal domains, filled one after the other, say too little of the real ones."""
    sizes = np.bincount(home)
    full = int(sizes.max())
    return bool((sizes != full).any()) or gpus % full != 0 or bool((np.diff(home) < 0).any())


def _ranked(
    space: Space, rows: NDArray[np.int64], times: _Times, worst_bytes: NDArray[np.float64]
) -> tuple[NDArray[np.int64], _Times]:
    """Return the best row of each set of degrees, the best first, and their times.

    First those within ``_AS_GOOD_SHARE`` of the shortest step, by pipeline stages and by how
    little they rest on hidden communication; then the others by their step. Then memory; then
    what was considered first.
    """
    close = times.total_s <= times.total_s.min() * (1.0 + _AS_GOOD_SHARE)
    seconds = np.where(close, times.serial_s, times.total_s)
    # 1e-9 apart is rounding, not a difference.
    stages = np.where(close, space.table["pp"][rows], 0)
    order = np.lexsort((rows, worst_bytes[rows], np.round(np.log(seconds) * 1e9), stages, ~close))
    _, first = np.unique(space.degrees(rows[order]), axis=0, return_index=True)
    best = order[np.sort(first)]
    return rows[best], times.of(best)


def _none_can_run(space: Space, gpus: int) -> LayoutError:
    return LayoutError(
        f"no layout for {gpus} GPUs is left: of {space.considered:,} considered, {_counted(space)}"
    )


def _none_fits(
    model: ModelSpec, space: Space, fixed: Mapping[str, Any], held: _Held, capacity_bytes: float
) -> InfeasibleError:
    nearest = space.layout(int(held.worst_bytes.argmin()), fixed)
    memory = step_memory(model, columns_of(nearest), capacity_bytes)
    return InfeasibleError(out_of_memory(model, nearest, memory, space.size))


def _counted(space: Space) -> str:
    return "; ".join(f"{count:,}: {reason}" for reason, count in space.rejected.items())
