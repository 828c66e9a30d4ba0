"""Memory and step of every layout of a space, as arrays, chunk by chunk.

Ranks fill the GPUs in either of two rank orders, and a layout gets the better. No Python runs per
layout.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.search.seats import RankOrderSeats
from planner.steptime.columns import LayoutColumns, Values
from planner.steptime.memory import step_memory
from planner.steptime.spread import Spreads
from planner.steptime.step import Step, step_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.collectives.links import LinkNumbers
    from planner.fabric import Accelerator
    from planner.model import ModelSpec
    from planner.search.space import Space
    from planner.steptime.rates import Efficiency

    Floats = NDArray[np.float64]

CHUNK_ROWS = 16_384


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What a step is predicted from beside model and layout.

    Args:
        accelerator: what every GPU is.
        links: nominal rates of the tiers, supernode first.
        seats: where the job's ranks sit in rank order.
        efficiency: as of ``step_columns``.
    """

    accelerator: Accelerator
    links: LinkNumbers
    seats: RankOrderSeats
    efficiency: Efficiency | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluated:
    """The layouts of a space that fit, one entry each.

    Args:
        rows: their rows in the space [1].
        total_s: step in the better seating [s].
        serial_s: that step if no communication were hidden [s].
        worst_bytes: memory of the fullest stage [bytes].
        too_large: layouts that do not fit [1].
        nearest: row of the layout that needs least memory, fitting or not; -1 of an empty space.
    """

    rows: NDArray[np.int64]
    total_s: Floats
    serial_s: Floats
    worst_bytes: Floats
    too_large: int
    nearest: int


def evaluate(
    model: ModelSpec,
    space: Space,
    fixed: Mapping[str, Any],
    machine: Machine,
    *,
    most_bytes: float | None = None,
    like: Evaluated | None = None,
    without: NDArray[np.int64] | None = None,
) -> Evaluated:
    """Return memory and step of every layout of *space* that fits.

    Args:
        model: the transformer's shape.
        space: the layouts.
        fixed: the fields of ``Layout`` that they share.
        machine: where they run.
        most_bytes: what a stage may hold; left out, the GPU's memory less the margin [bytes].
        like: the same space on another machine with the same GPUs: what fits is known then.
        without: rows that are of no interest, as if they did not fit.
    """
    if like is not None:
        return _timed_again(model, space, fixed, machine, like)
    capacity = machine.accelerator.memory_bytes
    found: list[tuple[Any, ...]] = []
    least, nearest = np.inf, -1
    for start in range(0, space.size, CHUNK_ROWS):
        columns = space.columns(fixed, slice(start, start + CHUNK_ROWS))
        memory = step_memory(model, columns, capacity)
        worst = np.broadcast_to(memory.worst_stage_bytes, columns.tp.shape)
        fits = memory.fits if most_bytes is None else worst <= most_bytes
        if worst.min() < least:
            least, nearest = float(worst.min()), start + int(worst.argmin())
        wanted = np.broadcast_to(fits, columns.tp.shape)
        if without is not None:
            among = np.arange(start, start + len(columns.tp))
            wanted = wanted & ~np.isin(among, without, assume_unique=True)
        kept = np.flatnonzero(wanted)
        if kept.size:
            total, serial = times(model, taken(columns, kept), machine)
            found.append((start + kept, total, serial, worst[kept]))
    if not found:
        none = np.empty(0)
        found.append((np.empty(0, np.int64), none, none, none))
    rows, total_s, serial_s, held = (np.concatenate(part) for part in zip(*found, strict=True))
    return Evaluated(rows=rows, total_s=total_s, serial_s=serial_s, worst_bytes=held,
                     too_large=space.size - len(rows), nearest=nearest)  # fmt: skip


def _timed_again(
    model: ModelSpec, space: Space, fixed: Mapping[str, Any], machine: Machine, like: Evaluated
) -> Evaluated:
    parts = [
        times(model, space.columns(fixed, like.rows[start : start + CHUNK_ROWS]), machine)
        for start in range(0, len(like.rows), CHUNK_ROWS)
    ]
    total_s, serial_s = (np.concatenate(part) for part in zip(*parts, strict=True))
    return replace(like, total_s=total_s, serial_s=serial_s)


def times(model: ModelSpec, columns: LayoutColumns, machine: Machine) -> tuple[Floats, Floats]:
    """Return total and serial step of each row in the better of the seatings [s]."""
    step = step_of(model, columns, machine, machine.seats.spreads(columns))
    total, serial = (by_seating(value, columns) for value in (step.total_s, step.serial_s))
    better, every = total.argmin(axis=0), np.arange(total.shape[1])
    return total[better, every], serial[better, every]


def by_seating(values: Values, columns: LayoutColumns) -> Floats:
    """Return a column of steps as one row of values a seating."""
    shape = np.broadcast_shapes(np.shape(values), (1, len(columns.tp)))
    return np.broadcast_to(np.asarray(values, float), shape)


def step_of(model: ModelSpec, columns: LayoutColumns, machine: Machine, spreads: Spreads) -> Step:
    """Return the steps of *columns* seated as *spreads* say."""
    return step_columns(
        model, columns, accelerator=machine.accelerator, links=machine.links, spreads=spreads,
        efficiency=machine.efficiency,
    )  # fmt: skip


def taken(columns: LayoutColumns, rows: Any) -> LayoutColumns:
    """Return some rows of *columns*; scalars stay scalars."""
    values = {field.name: getattr(columns, field.name) for field in fields(LayoutColumns)}
    return LayoutColumns(
        **{name: v[rows] if isinstance(v, np.ndarray) else v for name, v in values.items()}
    )
