"""The step time of layouts, with its parts: the only door of this package.

    step = pipeline of stages (compute + exposed TP, CP, EP) + exposed DP + update + fixed

Every argument of ``step_columns`` may be arrays that broadcast: one layout and a million run the
same lines. ``step_time`` is its one-row case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from planner.collectives.links import LinkNumbers
from planner.fabric import Accelerator
from planner.layout import Layout
from planner.model import ModelSpec
from planner.steptime.columns import LayoutColumns, Values, columns_of, larger, lone
from planner.steptime.communication import pipeline_hop_s
from planner.steptime.data_parallel import DataParallel, data_parallel
from planner.steptime.memory import Memory, step_memory
from planner.steptime.rates import Efficiency, Rates, rates_of
from planner.steptime.schedule import Pipeline, busiest, pipeline, stage_sum
from planner.steptime.spread import Spreads
from planner.steptime.stages import StageCosts, compute_parts, stage_costs
from planner.steptime.wires import wires_of

if TYPE_CHECKING:
    from planner.network.pressure import PhasePressure

STRAGGLING_SHARE = 0.0075
"""Longer per doubling of the GPUs: the slowest sets the pace [1].

FSDP steps of one model on 16 to 128 A100 and 128 to 512 H100 (MosaicML's table) grow by 0.6 to 2 %
a doubling beyond their communication; 0.5 to 1 % fits all A100 and H100 tables best.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSeconds:
    """A step's sums alone; every value is a column.

    Args:
        total_s: the step [s].
        serial_s: the step if no communication ran under compute [s].
    """

    total_s: Values
    serial_s: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSums(StepSeconds):
    """A step's sums and what they are made of, beside the pipeline.

    Args:
        communication_s: family to its own time on the busiest stage [s].
        exposed_s: family to the part that lengthens the step [s].
        straggling_s: waiting for the slowest of many GPUs [s].
        fixed_s: what no layout changes [s].
    """

    communication_s: Mapping[str, Values]
    exposed_s: Mapping[str, Values]
    straggling_s: Values
    fixed_s: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Step(StepSums):
    """One training step with all its parts.

    Args:
        compute_s: the busiest stage's kernels and launches, all micro-batches [s].
        bubble_s: filling and draining the pipeline [s].
        update_s: the optimizer's update [s].
        compute_parts_s: GEMMs, attention, memory-bound operators, host, recomputation [s].
        model_flops: model FLOPs of the step over all GPUs, causal, without recomputation [FLOP].
        mfu: of the 16-bit peak [1].
        tokens_per_s: over all GPUs [1/s].
        spread: standard deviation of the log of predicted over measured [1].
        machine_spread: of what all layouts of one machine have in common, beside it [1].
        least_s: what the model's FLOPs take at the fastest peak that the step runs at [s].
        assumed: what was not measured or stated, name to reason.
        slowdown: digit to how many times as long its bytes take than at its tier's rates, because
            of who shares its links [1]; empty where that was not looked at.
        phases: what binds in each phase of the seating; empty where that was not looked at.
        exposed_gather_s: of what shows of data parallelism, the gathers of parameters [s].
    """

    compute_s: Values
    bubble_s: Values
    update_s: Values
    compute_parts_s: Mapping[str, Values]
    model_flops: Values
    mfu: Values
    tokens_per_s: Values
    spread: float
    pipeline: Pipeline
    stages: StageCosts
    assumed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    slowdown: Mapping[str, Values] = field(default_factory=lambda: MappingProxyType({}))
    phases: tuple[PhasePressure, ...] = ()
    exposed_gather_s: Values = 0.0
    machine_spread: float = 0.0
    least_s: Values = 0.0


def step_time(
    model: ModelSpec,
    layout: Layout,
    *,
    accelerator: Accelerator,
    links: LinkNumbers,
    spreads: Spreads,
    efficiency: Efficiency | None = None,
    slowdown: Mapping[str, Values] | None = None,
) -> Step:
    """Return the step of one layout; see ``step_columns``."""
    return step_columns(
        model, columns_of(layout), accelerator=accelerator, links=links, spreads=spreads,
        efficiency=efficiency, slowdown=slowdown,
    )  # fmt: skip


def layout_memory(model: ModelSpec, layout: Layout, accelerator: Accelerator) -> Memory:
    """Return the memory of the fullest stage of one layout."""
    return step_memory(model, columns_of(layout), accelerator.memory_bytes)


def model_flops(model: ModelSpec, columns: LayoutColumns) -> Values:
    """Return a step's FLOPs over all GPUs: causal, without what is computed again [FLOP]."""
    tokens = columns.global_batch * columns.seq
    return 3.0 * model.forward_flops_per_token(columns.seq) * tokens


def step_columns(
    model: ModelSpec,
    columns: LayoutColumns,
    *,
    accelerator: Accelerator,
    links: LinkNumbers,
    spreads: Spreads,
    efficiency: Efficiency | None = None,
    slowdown: Mapping[str, Values] | None = None,
) -> Step:
    """Return the steps of layouts.

    Args:
        model: the transformer's shape.
        columns: the layouts.
        accelerator: what every GPU is.
        links: nominal rates of the tiers, supernode first; shares of ``efficiency`` are applied.
        spreads: how the groups sit.
        efficiency: what was fitted on this accelerator; left out, it is assumed and said so.
        slowdown: digit to how many times as long its bytes take; see ``wires_of``.
    """
    timed = _timed(model, columns, accelerator, links, spreads, efficiency, slowdown)
    m, total = columns.micro_batches, timed.total_s
    compute = compute_parts(model, columns, timed.costs)
    tokens = columns.global_batch * columns.seq
    flops = model_flops(model, columns)
    return Step(
        **{one.name: getattr(timed, one.name) for one in fields(StepSums)},
        compute_s=m * stage_sum(tuple(compute.values())).of_stage(timed.stage),
        bubble_s=timed.pipe.bubble_s,
        update_s=timed.data.update_s,
        compute_parts_s=MappingProxyType(
            {name: m * part.of_stage(timed.stage) for name, part in compute.items()}
        ),
        model_flops=flops,
        mfu=flops / total / columns.gpus / timed.rates.peak_flops_per_s,
        tokens_per_s=tokens / total,
        exposed_gather_s=timed.data.gather_s,
        spread=timed.rates.spread,
        machine_spread=timed.rates.machine_spread,
        least_s=flops / columns.gpus / timed.rates.fastest_flops_per_s,
        pipeline=timed.pipe,
        stages=timed.costs,
        assumed=timed.rates.assumed,
        slowdown=MappingProxyType(dict(slowdown or {})),
    )


def step_seconds(
    model: ModelSpec,
    columns: LayoutColumns,
    *,
    accelerator: Accelerator,
    links: LinkNumbers,
    spreads: Spreads,
    efficiency: Efficiency | None = None,
) -> StepSeconds:
    """Return the steps of layouts without the parts that only a reader wants."""
    timed = _timed(model, columns, accelerator, links, spreads, efficiency, None)
    return StepSeconds(total_s=timed.total_s, serial_s=timed.serial_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Timed(StepSums):
    """What every step needs: its sums, and what they are of. *stage* is the busiest's code."""

    rates: Rates
    costs: StageCosts
    pipe: Pipeline
    data: DataParallel
    stage: Values


def _timed(
    model: ModelSpec,
    columns: LayoutColumns,
    accelerator: Accelerator,
    links: LinkNumbers,
    spreads: Spreads,
    efficiency: Efficiency | None,
    slowdown: Mapping[str, Values] | None,
) -> _Timed:
    rates = rates_of(accelerator, columns, efficiency)
    wires = wires_of(spreads, links, rates.inner_share, rates.outer_share, slowdown)
    costs = stage_costs(model, columns, rates, wires)
    m, hop_s = columns.micro_batches, pipeline_hop_s(model, columns, wires)
    data = data_parallel(model, columns, costs, rates, wires)
    both = stage_sum((costs.forward, costs.backward))
    pipe = pipeline(columns, data.forward, data.backward, costs.weights, hop_s)
    pipe = pipe.busy_for(m * both.most(columns.pp))
    exposed_dp = data.reduce_s + data.gather_s
    fixed = 0.0 * columns.pp + rates.step_s
    straggling = STRAGGLING_SHARE * lone(np.log2(columns.gpus)) * pipe.busy_s
    total = pipe.total_s + exposed_dp + data.update_s + fixed + straggling
    stage = busiest(both, columns.pp)
    exposed = {name: m * part.of_stage(stage) for name, part in costs.exposed.items()}
    exposed["dp"] = exposed_dp
    exposed["pp"] = pipe.hops_s
    communication = {name: m * part.of_stage(stage) for name, part in costs.traffic.items()}
    communication["dp"] = data.total_s
    communication["pp"] = 2.0 * m * columns.vpp * hop_s
    hidden: Values = 0.0
    for name, own in communication.items():
        hidden = hidden + larger(0.0, own - exposed[name])
    return _Timed(
        rates=rates,
        costs=costs,
        pipe=pipe,
        data=data,
        stage=stage,
        communication_s=MappingProxyType(communication),
        exposed_s=MappingProxyType(exposed),
        straggling_s=straggling,
        fixed_s=fixed,
        total_s=total,
        serial_s=total + hidden,
    )
