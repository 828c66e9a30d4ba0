"""The optimizer's update by the bytes it moves.

Adam in mixed precision reads the FP32 master weight, both moments and the gradient, and writes the
first three and the low-precision weight: 4 x 4 + 3 x 4 + 2 = 30 bytes a parameter of the shard, 4
more for the gradient norm. In FP16 with a scaled loss the gradient is copied to FP32 (6), unscaled
and checked (8), and clipped in place (8), 2 less where 16 bits were counted before. Sharded by
ZeRO 1 to 3 over the data-parallel group.
"""

from __future__ import annotations

from planner.steptime.columns import PRECISIONS, LayoutColumns, Values, select
from planner.steptime.parameters import StageParameters
from planner.steptime.rates import Rates

_NORM_PASSES = 1.0
_SCALED_LOSS_BYTES = 20.0
_FP16 = float(PRECISIONS.index("fp16"))


def update_bytes_per_parameter(columns: LayoutColumns) -> Values:
    """Return the bytes an update moves for each parameter of the shard [bytes]."""
    states = 2.0 * columns.optimizer_bytes
    scaled = select(columns.precision == _FP16, _SCALED_LOSS_BYTES, 0.0)
    moved = columns.parameter_bytes + (1.0 + _NORM_PASSES) * columns.gradient_bytes
    return states + moved + scaled


def update_s(columns: LayoutColumns, parameters: StageParameters, rates: Rates) -> Values:
    """Return the seconds of the optimizer's update on the heaviest stage."""
    sharded = columns.zero_stage >= 1
    dense = parameters.dense / select(sharded, columns.shards, 1.0)
    experts = parameters.experts / select(sharded, columns.expert_shards, 1.0)
    moved = update_bytes_per_parameter(columns) * (dense + experts)
    return moved / rates.memory_bytes_per_s
