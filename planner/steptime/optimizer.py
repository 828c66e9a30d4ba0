"""The optimizer's update by the bytes it moves.

Adam in mixed precision reads the FP32 master weight, both moments and the gradient, and writes the
first three and the low-precision weight: 4 x 4 + 3 x 4 + 2 = 30 bytes a parameter of the shard, 4
more for the gradient norm. Sharded by ZeRO 1 to 3 over the data-parallel group.
"""

from __future__ import annotations

from planner.steptime.columns import LayoutColumns, Values, select
from planner.steptime.parameters import StageParameters
from planner.steptime.rates import Rates

_NORM_PASSES = 1.0


def update_bytes_per_parameter(columns: LayoutColumns) -> Values:
    """Return the bytes an update moves for each parameter of the shard [bytes]."""
    states = 2.0 * columns.optimizer_bytes
    return states + columns.parameter_bytes + (1.0 + _NORM_PASSES) * columns.gradient_bytes


def update_s(columns: LayoutColumns, parameters: StageParameters, rates: Rates) -> Values:
    """Return the seconds of the optimizer's update on the heaviest stage."""
    sharded = columns.zero_stage >= 1
    dense = parameters.dense / select(sharded, columns.cp * columns.dp, 1.0)
    experts = parameters.experts / select(sharded, columns.edp, 1.0)
    moved = update_bytes_per_parameter(columns) * (dense + experts)
    return moved / rates.memory_bytes_per_s
