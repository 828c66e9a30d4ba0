"""Measured runs: what was run, on what, and how long a step took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from planner.collectives.links import LinkNumbers
from planner.fabric import Accelerator
from planner.model import ModelSpec
from planner.steptime.columns import PRECISIONS, LayoutColumns, Values
from planner.steptime.covered import Kind, kind_of
from planner.steptime.memory import step_memory
from planner.steptime.rates import Efficiency, rates_of
from planner.steptime.spread import contiguous_spread
from planner.steptime.step import Step, step_columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One row of a table of measured steps.

    Args:
        name: the row's id.
        source: the table it comes from.
        group: model and GPUs; layouts of one group compete with each other.
        model: the transformer's shape.
        columns: the layout, scalars.
        accelerator: what every GPU is.
        chip: key of the accelerator's efficiencies; those of one chip with several memories share
            it.
        links: nominal rates.
        supernode: GPUs of a scale-up domain [1].
        measured_s: measured step, 0 where there is none [s].
        published_s: what another program published for the row, 0 where nothing [s].
        weak: the source itself calls the row weak.
        assumed: what the row did not say.
    """

    name: str
    source: str
    group: str
    model: ModelSpec
    columns: LayoutColumns
    accelerator: Accelerator
    chip: str
    links: LinkNumbers
    supernode: Values
    measured_s: float = 0.0
    published_s: float = 0.0
    weak: bool = False
    assumed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


def kind_of_run(run: Run) -> Kind:
    """Return what sort of step *run* is."""
    columns = run.columns
    return kind_of(
        run.model, run.accelerator.name, PRECISIONS[int(columns.precision)],
        gpus=int(columns.gpus), domain=int(run.supernode), seq=int(columns.seq),
    )  # fmt: skip


def stacked(rows: Sequence[LayoutColumns]) -> LayoutColumns:
    """Return scalar layouts as one set of arrays."""
    return LayoutColumns(
        **{
            f.name: np.array([getattr(row, f.name) for row in rows], dtype=float)
            for f in fields(LayoutColumns)
        }
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Runs that share model, accelerator, machine and links: predicted in one call.

    Args:
        positions: where the runs stand in the table [1].
        runs: the runs.
        columns: their layouts as arrays.
    """

    positions: NDArray[np.intp]
    runs: tuple[Run, ...]
    columns: LayoutColumns


def batches(runs: Iterable[Run]) -> tuple[Batch, ...]:
    """Return *runs* grouped so that each group is one call, in order of first appearance."""
    groups: dict[tuple[object, ...], list[tuple[int, Run]]] = {}
    for position, run in enumerate(runs):
        key = (run.model, run.chip, run.accelerator.name, run.supernode, run.source,
               _key(run.links))  # fmt: skip
        groups.setdefault(key, []).append((position, run))
    return tuple(
        Batch(
            positions=np.array([position for position, _ in members]),
            runs=tuple(run for _, run in members),
            columns=stacked([run.columns for _, run in members]),
        )
        for members in groups.values()
    )


def _key(links: LinkNumbers) -> tuple[object, ...]:
    return tuple(
        (tier.name, float(np.asarray(tier.bytes_per_s)), float(np.asarray(tier.shared_bytes_per_s)))
        for tier in links.tiers
    )


def batch_step(batch: Batch, efficiency: Efficiency | None) -> Step:
    """Return the predicted steps of one batch."""
    first = batch.runs[0]
    return step_columns(
        first.model,
        batch.columns,
        accelerator=first.accelerator,
        links=first.links,
        spreads=contiguous_spread(batch.columns, first.supernode),
        efficiency=efficiency.on(first.source) if efficiency else None,
    )


def predicted_s(
    parts: Sequence[Batch], efficiencies: Mapping[str, Efficiency], count: int
) -> NDArray[np.float64]:
    """Return the predicted step of every run, in table order [s]."""
    answer = np.full(count, np.nan)
    for batch in parts:
        efficiency = efficiencies.get(batch.runs[0].chip)
        paces = efficiency.pace_ratio if efficiency else {}
        pace = np.array([paces.get(run.source, 1.0) for run in batch.runs])
        answer[batch.positions] = batch_step(batch, efficiency).total_s * pace
    return answer


def assumed_of(run: Run, efficiencies: Mapping[str, Efficiency]) -> Mapping[str, str]:
    """Return what a run does not say and what nobody measured on its accelerator, with reasons."""
    rates = rates_of(run.accelerator, run.columns, efficiencies.get(run.chip))
    return {**run.assumed, **rates.assumed}


def predicted_memory_bytes(runs: Sequence[Run]) -> NDArray[np.float64]:
    """Return the memory of the fullest stage of every run, in table order [bytes]."""
    answer = np.full(len(runs), np.nan)
    for batch in batches(runs):
        first = batch.runs[0]
        memory = step_memory(first.model, batch.columns, first.accelerator.memory_bytes)
        answer[batch.positions] = memory.worst_stage_bytes
    return answer
