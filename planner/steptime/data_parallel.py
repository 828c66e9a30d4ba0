"""What data parallelism and the optimizer add to a step: the stage that ends it last.

Gradients are reduced as the last micro-batch's backward yields them, parameters gathered as the
next forward needs them. The first stage ends its backward last; a stage p places behind it has p
passes of a backward longer before the step waits for it, but may hold more (a mixture of experts
often starts with dense layers).

ZeRO-3 gathers and scatters for every micro-batch, under the pass that needs it or makes it: a
stage's forward is as long as its compute or its gathers, whichever is longer, and its backward as
its compute or gathers and scatters. The pipeline of such passes is what a step takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace

from planner.model import ModelSpec
from planner.steptime.columns import LayoutColumns, Values, anywhere, larger, select
from planner.steptime.communication import gradient_s
from planner.steptime.kinds import Kinds, at_rows, kinds_of_rows, of_rows
from planner.steptime.memory import STAGES
from planner.steptime.optimizer import update_s
from planner.steptime.parameters import stage_layers, stage_parameters
from planner.steptime.rates import Rates
from planner.steptime.schedule import StageSeconds, stage_sum
from planner.steptime.spread import SHARDING
from planner.steptime.stages import StageCosts
from planner.steptime.wires import Wires


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ending:
    """Data parallelism and update of the stage that ends a step last.

    Args:
        total_s: all its gathers and reductions, hidden or not [s].
        reduce_s: of the reductions, what lengthens the step [s].
        gather_s: of the gathers, what lengthens the step [s].
        update_s: the optimizer's update [s].
    """

    total_s: Values
    reduce_s: Values
    gather_s: Values
    update_s: Values

    @property
    def longer_s(self) -> Values:
        """What the step is longer by [s]."""
        return self.reduce_s + self.gather_s + self.update_s


@dataclass(frozen=True, slots=True, kw_only=True)
class DataParallel(_Ending):
    """The same, and the passes of each stage with ZeRO-3's traffic of every micro-batch [s]."""

    forward: StageSeconds
    backward: StageSeconds


def data_parallel(
    model: ModelSpec,
    columns: LayoutColumns,
    costs: StageCosts,
    rates: Rates,
    wires: Wires,
) -> DataParallel:
    """Return what data parallelism and the update add to the steps of *columns*."""
    ahead_s = costs.backward.most(columns.pp) / columns.vpp
    windows = _windows(model, columns, costs)
    kinds = kinds_of_rows(columns, _DEPENDS_ON)
    traffic = _traffic(model, columns, rates, wires, kinds)

    def of_stage(name: str, places: Values) -> _Ending:
        return _stage(columns, traffic[name], windows, places * ahead_s)

    latest = _later(of_stage("first", 0.0), of_stage("middle", 1.0), columns.pp > 2)
    latest = _later(latest, of_stage("last", columns.pp - 1.0), columns.pp > 1)
    found = DataParallel(
        **{f.name: getattr(latest, f.name) for f in fields(_Ending)},
        forward=costs.forward,
        backward=costs.backward,
    )
    sharded = columns.zero_stage >= SHARDS_ALL
    return _with_shards(columns, found, traffic, sharded) if anywhere(sharded) else found


_DEPENDS_ON = (
    "tp", "cp", "ep", "etp", "dp", "pp", "zero_stage", "parameter_bytes", "gradient_bytes",
    "widened_bytes", "shard_gpus", "optimizer_bytes", "precision", "stack",
)  # fmt: skip
"""What the traffic of data parallelism and the update depend on: many layouts share it."""
_WIRES = ("dp", "edp", *SHARDING)
SHARDS_ALL = 3
"""The ZeRO stage that shards parameters, too, and sends all for each micro-batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Traffic:
    """One stage's reductions, gathers and update, each once, nothing hidden [s]."""

    reduce_s: Values
    gather_s: Values
    update_s: Values


def _traffic(
    model: ModelSpec, columns: LayoutColumns, rates: Rates, wires: Wires, kinds: Kinds | None
) -> dict[str, _Traffic]:
    """Return the traffic of each stage: reckoned once for each kind of row, then spread."""
    if kinds is not None:
        columns = of_rows(columns, kinds.first)
        few = {name: of_rows(wire, kinds.first) for name in _WIRES
               if (wire := getattr(wires, name)) is not None}  # fmt: skip
        wires = replace(wires, **few)
        rates = replace(rates, memory_bytes_per_s=at_rows(rates.memory_bytes_per_s, kinds.first))
    layers = stage_layers(model, columns)
    found = {}
    for stage in STAGES:
        held = stage_parameters(model, columns, layers, stage)
        each = gradient_s(columns, held, wires)
        values = {
            "reduce_s": each.reduce_s + each.expert_reduce_s,
            "gather_s": each.gather_s + each.expert_gather_s,
            "update_s": update_s(columns, held, rates),
        }
        if kinds is not None:
            values = {name: at_rows(value, kinds.of_row) for name, value in values.items()}
        found[stage] = _Traffic(**values)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class _Windows:
    """What traffic can run under, alike on every stage.

    Args:
        forward_s: the longest forward of one micro-batch [s].
        last_backward_s: the backward passes that gradients become ready in [s].
        layers: of a stage, on average; one at least [1].
    """

    forward_s: Values
    last_backward_s: Values
    layers: Values


def _windows(model: ModelSpec, columns: LayoutColumns, costs: StageCosts) -> _Windows:
    chunk, backward_s = columns.vpp, costs.backward.most(columns.pp)
    count = larger(1.0, model.layers / columns.pp)
    window = backward_s / chunk * (1.0 + (chunk - 1.0) * columns.pp)
    return _Windows(
        forward_s=costs.forward.most(columns.pp),
        last_backward_s=window * (1.0 - 1.0 / count),
        layers=count,
    )


def _later(left: _Ending, right: _Ending, there: Values) -> _Ending:
    later = there * (right.longer_s > left.longer_s)
    return _Ending(
        **{f.name: select(later, getattr(right, f.name), getattr(left, f.name))
           for f in fields(_Ending)}
    )  # fmt: skip


def _stage(
    columns: LayoutColumns, traffic: _Traffic, windows: _Windows, ahead_s: Values
) -> _Ending:
    """Return one stage's, which ends its last backward *ahead_s* before the first stage does."""
    m, count = columns.micro_batches, windows.layers
    reduce, gather = traffic.reduce_s, traffic.gather_s
    once_reduce = select(
        columns.overlap_gradients,
        larger(reduce / count / columns.vpp, reduce - windows.last_backward_s),
        reduce,
    )
    late_gather = gather - windows.forward_s
    once_gather = select(columns.overlap_parameters, larger(gather / count, late_gather), gather)
    both = reduce + gather
    full = columns.zero_stage >= SHARDS_ALL
    return _Ending(
        total_s=select(full, m * (reduce + 2.0 * gather), both),
        reduce_s=select(full, reduce / count, larger(0.0, once_reduce - ahead_s)),
        gather_s=select(full, gather / count, once_gather),
        update_s=traffic.update_s,
    )


def _with_shards(
    columns: LayoutColumns, alone: DataParallel, traffic: Mapping[str, _Traffic], sharded: Values
) -> DataParallel:
    """Return *alone* with ZeRO-3's traffic of every micro-batch in the passes where *sharded*.

    Of what the busiest stage is longer by, gathers and reductions have their parts of what all are.
    """
    under = columns.overlap_parameters

    def passes(compute: StageSeconds, sent_s: Callable[[_Traffic], Values]) -> StageSeconds:
        def on(stage: str, traffic: _Traffic) -> Values:
            own, sent = getattr(compute, stage), sent_s(traffic)
            return select(sharded, select(under, larger(own, sent), own + sent), own)

        middle = traffic["middle"]
        return StageSeconds(first=on("first", traffic["first"]), middle=on("middle", middle),
                            middle_mean=on("middle_mean", middle),
                            last=on("last", traffic["last"]))  # fmt: skip

    forward = passes(alone.forward, lambda one: one.gather_s)
    backward = passes(alone.backward, lambda one: one.reduce_s + one.gather_s)
    stages = columns.pp
    before = stage_sum((alone.forward, alone.backward)).most(stages)
    after = stage_sum((forward, backward)).most(stages)
    gathered = forward.total(stages) - alone.forward.total(stages)
    reduced = backward.total(stages) - alone.backward.total(stages)
    shown, shown_s = gathered + reduced, columns.micro_batches * (after - before)
    gathers_s = shown_s * gathered / select(shown > 0, shown, 1.0)
    return replace(
        alone,
        gather_s=alone.gather_s + gathers_s,
        reduce_s=alone.reduce_s + shown_s - gathers_s,
        forward=forward,
        backward=backward,
    )
