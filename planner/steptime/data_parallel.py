"""What data parallelism and the optimizer add to a step: the stage that ends it last.

Gradients are reduced as the last micro-batch's backward yields them, parameters gathered as the
next forward needs them; ZeRO-3 gathers and scatters for every micro-batch. The first stage ends
its backward last; a stage p places behind it has p passes of a backward longer before the step
waits for it, but may hold more (a mixture of experts often starts with dense layers).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from planner.model import ModelSpec
from planner.steptime.columns import LayoutColumns, Values, larger, select
from planner.steptime.communication import gradient_s
from planner.steptime.optimizer import update_s
from planner.steptime.parameters import StageLayers, StageParameters, stage_parameters
from planner.steptime.rates import Rates
from planner.steptime.stages import StageCosts
from planner.steptime.wires import Wires


@dataclass(frozen=True, slots=True, kw_only=True)
class DataParallel:
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


def data_parallel(
    model: ModelSpec,
    columns: LayoutColumns,
    layers: StageLayers,
    costs: StageCosts,
    rates: Rates,
    wires: Wires,
) -> DataParallel:
    """Return what data parallelism and the update add to the steps of *columns*."""
    ahead_s = costs.backward.most(columns.pp) / columns.vpp

    def of_stage(name: str, places: Values) -> DataParallel:
        held = stage_parameters(model, columns, layers, name)
        return _stage(model, columns, held, costs, rates, wires, places * ahead_s)

    latest = _later(of_stage("first", 0.0), of_stage("middle", 1.0), columns.pp > 2)
    return _later(latest, of_stage("last", columns.pp - 1.0), columns.pp > 1)


def _later(left: DataParallel, right: DataParallel, there: Values) -> DataParallel:
    later = there * (right.longer_s > left.longer_s)
    return DataParallel(
        **{f.name: select(later, getattr(right, f.name), getattr(left, f.name))
           for f in fields(DataParallel)}
    )  # fmt: skip


def _stage(
    model: ModelSpec,
    columns: LayoutColumns,
    held: StageParameters,
    costs: StageCosts,
    rates: Rates,
    wires: Wires,
    ahead_s: Values,
) -> DataParallel:
    """Return one stage's, which ends its last backward *ahead_s* before the first stage does."""
    m, chunk = columns.micro_batches, columns.vpp
    gradients = gradient_s(columns, held, wires)
    forward_s, backward_s = costs.forward.most(columns.pp), costs.backward.most(columns.pp)
    reduce = gradients.reduce_s + gradients.expert_reduce_s
    gather = gradients.gather_s + gradients.expert_gather_s
    count = larger(1.0, model.layers / columns.pp)

    window = backward_s / chunk * (1.0 + (chunk - 1.0) * columns.pp)
    once_reduce = select(
        columns.overlap_gradients,
        larger(reduce / count / chunk, reduce - window * (1.0 - 1.0 / count)),
        reduce,
    )
    once_gather = select(columns.overlap_parameters, larger(gather / count, gather - forward_s),
                         gather)  # fmt: skip
    under = columns.overlap_parameters
    each_reduce = select(under, larger(0.0, reduce + gather - backward_s), reduce + gather)
    each_gather = select(under, larger(0.0, gather - forward_s), gather)
    full = columns.zero_stage >= 3
    return DataParallel(
        total_s=select(full, m * (reduce + 2.0 * gather), reduce + gather),
        reduce_s=select(full, m * each_reduce + reduce / count, larger(0.0, once_reduce - ahead_s)),
        gather_s=select(full, m * each_gather + gather / count, once_gather),
        update_s=update_s(columns, held, rates),
    )
