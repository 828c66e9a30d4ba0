"""Memory and step of every layout of a space, as arrays, chunk by chunk.

Ranks fill the GPUs in either of two rank orders, and a layout gets the better. No Python runs per
layout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.search.seats import RankOrderSeats
from planner.search.together import grouped, shape_of, stacked_links, stacked_spreads
from planner.steptime.columns import LayoutColumns
from planner.steptime.memory import step_memory
from planner.steptime.spread import Spreads
from planner.steptime.step import StepSeconds, step_seconds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.collectives.links import LinkNumbers
    from planner.fabric import Accelerator
    from planner.model import ModelSpec
    from planner.search.space import Space
    from planner.steptime.rates import Efficiency

    Floats = NDArray[np.float64]

CHUNK_ROWS = 8_192
"""So that the arrays of several machines at once stay in a core's cache."""


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
    without: NDArray[np.int64] | None = None,
) -> Evaluated:
    """Return memory and step of every layout of *space* that fits; see ``evaluate_on``."""
    return evaluate_on(
        model, space, fixed, (machine,), most_bytes=most_bytes, without=without
    )[0]  # fmt: skip


def evaluate_on(
    model: ModelSpec,
    space: Space,
    fixed: Mapping[str, Any],
    machines: Sequence[Machine],
    *,
    most_bytes: float | None = None,
    without: NDArray[np.int64] | None = None,
) -> list[Evaluated]:
    """Return memory and step of every layout of *space* that fits, on each machine.

    Args:
        model: the transformer's shape.
        space: the layouts.
        fixed: the fields of ``Layout`` that they share.
        machines: where they run; they differ in their network alone.
        most_bytes: what a stage may hold; left out, the GPU's memory less the margin [bytes].
        without: rows that are of no interest, as if they did not fit.
    """
    capacity = machines[0].accelerator.memory_bytes
    kept_rows: list[NDArray[np.int64]] = [np.empty(0, np.int64)]
    held: list[Floats] = [np.empty(0)]
    steps: list[Floats] = [np.empty((2, len(machines), 0))]
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
            steps.append(times_on(model, taken(columns, kept), machines))
            kept_rows.append(start + kept)
            held.append(worst[kept])
    rows, worst_bytes = np.concatenate(kept_rows), np.concatenate(held)
    total_s, serial_s = np.concatenate(steps, axis=2)
    return [
        Evaluated(rows=rows, total_s=total, serial_s=serial, worst_bytes=worst_bytes,
                  too_large=space.size - len(rows), nearest=nearest)
        for total, serial in zip(total_s, serial_s, strict=True)
    ]  # fmt: skip


def times_on(model: ModelSpec, columns: LayoutColumns, machines: Sequence[Machine]) -> Floats:
    """Return the steps of *columns* in the better of the seatings [s].

    Shape [2, machines, rows]: the step, and the step if no communication were hidden.
    """
    found = np.empty((2, len(machines), len(columns.tp)))
    for some in grouped(machines, key=lambda machine: shape_of(machine.links)):
        alike = [machines[position] for position in some]
        together = replace(alike[0], links=stacked_links([one.links for one in alike]))
        spreads = stacked_spreads([one.seats.spreads(columns) for one in alike])
        step = step_of(model, columns, together, spreads)
        shape = np.broadcast_shapes(np.shape(step.total_s), (len(alike), 1, len(columns.tp)))
        total, serial = (np.broadcast_to(v, shape) for v in (step.total_s, step.serial_s))
        better = total.argmin(axis=1)[:, None]
        found[:, some] = [np.take_along_axis(v, better, axis=1)[:, 0] for v in (total, serial)]
    return found


def step_of(
    model: ModelSpec, columns: LayoutColumns, machine: Machine, spreads: Spreads
) -> StepSeconds:
    """Return the steps of *columns* seated as *spreads* say."""
    return step_seconds(
        model, columns, accelerator=machine.accelerator, links=machine.links, spreads=spreads,
        efficiency=machine.efficiency,
    )  # fmt: skip


def taken(columns: LayoutColumns, rows: Any) -> LayoutColumns:
    """Return some rows of *columns*; scalars stay scalars."""
    values = {field.name: getattr(columns, field.name) for field in fields(LayoutColumns)}
    return LayoutColumns(
        **{name: v[rows] if isinstance(v, np.ndarray) else v for name, v in values.items()}
    )


def filled(columns: LayoutColumns) -> LayoutColumns:
    """Return *columns* with every value an array of one length."""
    count = len(columns.tp)
    return LayoutColumns(
        **{
            f.name: np.broadcast_to(np.asarray(getattr(columns, f.name), float), count)
            for f in fields(LayoutColumns)
        }
    )
