"""Operators that only move bytes: norms, residuals, activations, casts, the cross entropy.

Counted tensor by tensor, as the framework of each stack runs them: what one kernel reads and
writes once, in bytes an element. ``fused`` (Transformer Engine and its like) has one kernel for
each; ``eager`` PyTorch runs RMSNorm, rotation and gates operator by operator; ``unfused`` is
Megatron-LM in FP16 before Transformer Engine (its layers and cross entropy as of arXiv 2104.04473).
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.model import ModelSpec
from planner.steptime.columns import STACKS, LayoutColumns, Values, select
from planner.steptime.work import BothPasses, Matrix, memory_passes, memory_work

_EAGER = float(STACKS.index("eager"))
_UNFUSED = float(STACKS.index("unfused"))

_NORM_BYTES = {"forward": 4.0, "backward": 6.0}  # x, y; dy, x, dx
_NORM_UNFUSED_BYTES = {"forward": 4.0, "backward": 10.0}  # dy and x again for the weights' gradient
_RESIDUAL_BYTES = {"forward": 6.0, "backward": 6.0}  # two read, one written
_RESIDUAL_UNFUSED_BYTES = {"forward": 7.0, "backward": 13.0}
"""With dropout's mask of one byte; backward, dropout is a kernel of its own and the bias's
gradient reads once more: 6 + (2 + 1 + 2) + 2."""

_RMS_NORM_BYTES = {"forward": 36.0, "backward": 72.0}
"""Read and written by its seven operators: 6 + 8 + 4 + 8 + 6 + 4; twice that backward."""

_RMS_NORM_KERNELS = {"forward": 7.0, "backward": 14.0}
_ROTATION_BYTES = 4.0  # q and k read and written
_ROTATION_EAGER_BYTES = 20.0  # to FP32, complex product, back to 16 bit: 6 + 8 + 6
_QKV_UNFUSED_BYTES = {"forward": 4.0, "backward": 6.0}
"""Of q, k and v each: the bias is added in place after the product; backward, their gradients are
put side by side (4) and summed for the bias (2)."""

_CONTEXT_UNFUSED_BYTES = 4.0  # copied from heads first to tokens first, and back
_FFN_BIAS_UNFUSED_BYTES = 2.0  # backward, the gradient is read once more for the bias
_CROSS_ENTROPY_BYTES = {"forward": 14.0, "backward": 8.0}
_CROSS_ENTROPY_UNFUSED_BYTES = {"forward": 38.0, "backward": 14.0}
"""To FP32 (6), maximum (4), less it (8), exponential (8), sum (4), quotient (8); backward, times
the loss's gradient (8) and back to 16 bit (6)."""

_BIASED_PASSES = {"fused": 4.0, "apart": 14.0}
_CAST_BYTES = 4.0  # read in 16 bit, written in 8 twice, straight and transposed


def around(model: ModelSpec, columns: LayoutColumns) -> BothPasses:
    """Return norms, residuals and dropout on the whole width, rotary embedding on q and k.

    PyTorch without ``torch.compile`` has one kernel for LayerNorm, but runs RMSNorm and the
    rotation operator by operator in FP32: casts, square, mean, scaling, weight and back. GPT's
    biases and dropout are counted where they are not fused.
    """
    tokens, t = columns.tokens, columns.tp
    split = select(columns.sequence_parallel, tokens / t, tokens)
    apart = (columns.stack == _EAGER) * (0.0 if model.norm_bias else 1.0)
    unfused = (columns.stack == _UNFUSED) * (1.0 if model.norm_bias else 0.0)
    shape = model.attention
    turned = tokens * (shape.heads + shape.kv_heads) * shape.head_dim / t
    turn = select(apart, _ROTATION_EAGER_BYTES, _ROTATION_BYTES)
    rotated = 0.0 if model.learned_positions else turn * turned
    heads = tokens * shape.heads * shape.head_dim / t
    projected = tokens * (shape.heads + 2.0 * shape.kv_heads) * shape.head_dim / t
    bias = {"forward": 0.0, "backward": _FFN_BIAS_UNFUSED_BYTES * tokens * model.ffn / t}
    works = {}
    for direction in ("forward", "backward"):
        norm = select(apart, _RMS_NORM_BYTES[direction], _NORM_BYTES[direction])
        norm = select(unfused, _NORM_UNFUSED_BYTES[direction], norm)
        residual = select(unfused, _RESIDUAL_UNFUSED_BYTES[direction], _RESIDUAL_BYTES[direction])
        whole = split * model.hidden * (norm * model.norms_per_layer + residual * 2.0)
        copied = _QKV_UNFUSED_BYTES[direction] * projected + _CONTEXT_UNFUSED_BYTES * heads
        kernels = model.norms_per_layer + 4.0
        many = _RMS_NORM_KERNELS[direction]
        works[direction] = memory_work(
            "norms",
            whole + rotated + select(unfused, copied + bias[direction], 0.0),
            select(apart, many * model.norms_per_layer + 8.0 * many / 7.0, kernels),
        )
    return BothPasses(**works)


def activation(
    model: ModelSpec, columns: LayoutColumns, tokens: Values, width: Values
) -> BothPasses:
    """Each tensor read or written once; a gate that is not fused goes through memory again."""
    forward: Values = 2.0
    backward: Values = 3.0
    if model.gated_mlp:
        eager = columns.stack == _EAGER
        forward, backward = select(eager, 5.0, 3.0), select(eager, 8.0, 5.0)
    size = 2.0 * tokens * width
    return memory_passes("activation", forward * size, backward * size, 1.0)


def expert_activation(
    model: ModelSpec, columns: LayoutColumns, tokens: Values, width: Values
) -> BothPasses:
    """Biased, clamped expert activations (gpt-oss) run operator by operator where not fused.

    Bias, clamp, scaled sigmoid and product in FP32, and the sums over tokens that the biases'
    gradients are: about 14 passes over what a fused SwiGLU moves once, 4 in fused graphs.
    """
    plain = activation(model, columns, tokens, width)
    passes: Values = 1.0
    if model.expert_bias:
        passes = select(columns.fused_experts, _BIASED_PASSES["fused"], _BIASED_PASSES["apart"])
    return memory_passes(
        plain.forward.name,
        plain.forward.moved_bytes * passes,
        plain.backward.moved_bytes * passes,
        plain.forward.kernels * passes,
    )


def casts(matrices: Sequence[Matrix], columns: LayoutColumns) -> BothPasses:
    """FP8 (and FP4): each operand is read in 16 bit and written twice, straight and transposed."""
    inputs: Values = 0.0
    outputs: Values = 0.0
    for x in matrices:
        inputs = inputs + x.count * x.m * x.k
        outputs = outputs + x.count * x.m * x.n
    narrow = select(columns.precision >= 2, _CAST_BYTES, 0.0)
    kernels = select(narrow, float(len(matrices)), 0.0)
    return memory_passes("casts", narrow * inputs, narrow * outputs, kernels)


def cross_entropy(columns: LayoutColumns, logits: Values) -> BothPasses:
    """Return the loss of *logits* on one rank [1]: FP32 passes over them, and their gradient."""
    unfused = columns.stack == _UNFUSED
    each = {
        direction: select(unfused, _CROSS_ENTROPY_UNFUSED_BYTES[direction], usual)
        for direction, usual in _CROSS_ENTROPY_BYTES.items()
    }
    return BothPasses(
        forward=memory_work("cross_entropy", each["forward"] * logits, 6.0),
        backward=memory_work("cross_entropy", each["backward"] * logits, 3.0),
    )
