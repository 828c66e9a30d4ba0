"""What one GPU of the fullest stage must hold, part by part, and what would make it fit.

Weights, gradients and optimizer states by ZeRO stage; activations by recomputation and by the
micro-batches in flight on the stage; the logits of the last stage; collective buffers.

Source: activations a layer keeps, arXiv 2205.05198 eq. 1-6 (without fused attention
s b h (10 + 24/t + 5 a s / (h t)), with SP s b h / t (34 + 5 a s / h)); ZeRO, arXiv 1910.02054.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from planner.model import ModelSpec
from planner.steptime.columns import (
    SCHEDULES,
    LayoutColumns,
    Values,
    anywhere,
    larger,
    own_kernels,
    repeats_operators,
    select,
    take,
)
from planner.steptime.operators import routed_tokens
from planner.steptime.parameters import (
    StageLayers,
    stage_layers,
    stage_parameters,
)
from planner.steptime.schedule import in_flight, in_flight_at
from planner.units import GIB, MIB

CONTEXT_BYTES = 1.2 * GIB
BUFFER_BYTES = 100.0 * MIB
MARGIN_SHARE = 0.05

STAGES = ("first", "middle", "last")
_MIRRORED = {"first": "last", "middle": "middle", "last": "first"}

_SUMMED_BYTES = 4.0
"""FSDP in a pipeline keeps a stage's parameters whole from one micro-batch to the next and sums
their gradients in FP32 before it scatters them (torchtitan's defaults)."""

_LOGIT_BYTES = {"fused": 6.0, "eager": 14.0, "parallel": 18.0, "compiled": 4.0}
"""Held of each logit at the peak of the loss.

A fused cross entropy: 2 + 4. PyTorch's own, while it runs backward: 16 bit, its logarithms, their
gradient and that of the FP32 logits (2 + 4 + 4 + 4). Its loss parallel over TP adds the gradient
and the exponentials up before it scales them: 4 more (torch/distributed/tensor/parallel/loss.py).
Compiled, the 16-bit logits and their gradient (torchtitan since 2025).
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of one GPU of the fullest stage.

    Args:
        worst_stage_bytes: what the framework allocates at the peak [bytes].
        capacity_bytes: what the GPU has [bytes].
        margin_bytes: kept free for the driver's context, libraries and fragmentation [bytes].
        fits: whether worst + margin is within the capacity.
        parts: weights, gradients, optimizer, activations, logits, buffers; they add up.
        stage: index into ``STAGES`` of the fullest one [1].
    """

    worst_stage_bytes: Values
    capacity_bytes: float
    margin_bytes: float
    fits: Values
    parts: Mapping[str, Values]
    stage: Values

    @property
    def missing_bytes(self) -> Values:
        """What is missing; 0 where it fits [bytes]."""
        return larger(0.0, self.worst_stage_bytes + self.margin_bytes - self.capacity_bytes)


def dense_layer_bytes(model: ModelSpec, columns: LayoutColumns) -> Values:
    """Return the activations a dense layer keeps for the backward of one micro-batch [bytes]."""
    inside = columns.tokens * model.ffn / columns.tp * _width_bytes(model, columns)
    everything = select(
        repeats_operators(columns),
        _kept_operators_bytes(model, columns),
        _attention_bytes(model, columns) + inside,
    )
    return _recomputed_bytes(model, columns, everything)


def moe_layer_bytes(model: ModelSpec, columns: LayoutColumns) -> Values:
    """Return the activations a MoE layer keeps for the backward of one micro-batch [bytes].

    Of what the experts take and give only the former is kept: the router's weights are applied
    between their two products (Megatron-Core, ``weighted_bias_swiglu_impl``), so that the backward
    of the sum over the experts needs no output of theirs.
    """
    t, tokens = columns.tp, columns.tokens
    routed = routed_tokens(model, columns)
    wide = routed * model.expert_ffn / columns.etp + tokens * model.shared_expert_ffn / t
    inside = routed * model.hidden * _operand_bytes(columns) + wide * _width_bytes(model, columns)
    scores = 8.0 * tokens / t * model.experts
    everything = _attention_bytes(model, columns) + inside + scores
    return _recomputed_bytes(model, columns, everything)


def _operand_bytes(columns: LayoutColumns) -> Values:
    """Bytes that an element of a product's input is kept in: as it was multiplied.

    Transformer Engine keeps the quantised input alone ("with FP8, TE saves quantized tensors, half
    the memory"); a scale of one byte for every 16 elements comes on top in FP4. PyTorch's own
    products in FP8 keep the input in 16 bit.
    """
    narrow = take((0.0, 0.0, 1.0, 0.5625), columns.precision)
    quantised = (columns.stack == 0) * (narrow > 0)
    return select(quantised, narrow, columns.activation_bytes)


def _width_bytes(model: ModelSpec, columns: LayoutColumns) -> Values:
    """Of a feed-forward's width: its first product (gated: two), and its second's input."""
    made = 2.0 if model.gated_mlp else 1.0
    return made * columns.activation_bytes + _operand_bytes(columns)


def _split_tokens(columns: LayoutColumns) -> Values:
    return select(columns.sequence_parallel, columns.tokens / columns.tp, columns.tokens)


def _recomputed_bytes(model: ModelSpec, columns: LayoutColumns, everything: Values) -> Values:
    """What is kept of *everything*: the layer's input alone where all of it comes again."""
    kept = _split_tokens(columns) * model.hidden * columns.activation_bytes
    return select(columns.recompute == 2, kept, everything)


def _attention_bytes(model: ModelSpec, columns: LayoutColumns) -> Values:
    """What norms, residuals and attention keep, and what attention's products take.

    The last of them takes the core's output, which the core keeps itself in 16 bit: quantised it
    is another tensor.
    """
    t, tokens, e = columns.tp, columns.tokens, columns.activation_bytes
    split, operand = _split_tokens(columns), _operand_bytes(columns)
    shape = model.attention
    dropout = 1.0 if model.learned_positions and not model.gated_mlp else 0.0
    norms = split * model.hidden * (2.0 * (e + operand) + 2.0 * dropout)
    kv = larger(1.0, shape.kv_heads / t)
    width = shape.heads / t * (shape.head_dim + shape.v_head_dim)
    attention = tokens * e * (width + kv * (shape.head_dim + shape.v_head_dim))
    again = select(operand < e, operand, 0.0)
    attention = attention + tokens * shape.heads / t * shape.v_head_dim * again
    if shape.kind == "mla":
        ranks = shape.q_lora_rank + shape.kv_lora_rank + shape.rope_head_dim
        attention = attention + split * e * ranks * 2.0
    return norms + attention + _kept_scores_bytes(model, columns)


def _kept_scores_bytes(model: ModelSpec, columns: LayoutColumns) -> Values:
    """Flash attention's logarithms, or the scores where they are neither fused nor recomputed."""
    rows = columns.tokens * model.attention.heads / columns.tp
    scores = select(columns.recompute == 0, 5.0 * rows * columns.seq, 0.0)
    return select(columns.fused_attention, 4.0 * rows, scores)


def _kept_operators_bytes(model: ModelSpec, columns: LayoutColumns) -> Values:
    """What a dense layer keeps where PyTorch repeats its cheap operators and every second product.

    The layer's input, q and v, the attention core's output, the first of the feed-forward's
    products and its last; k, the attention's output, the second product and all element-wise
    results come again (torchtitan's selective ``op`` policy).
    """
    shape, tokens, t, e = model.attention, columns.tokens, columns.tp, columns.activation_bytes
    kv = larger(1.0, shape.kv_heads / t)
    heads = shape.heads / t * (shape.head_dim + shape.v_head_dim) + kv * shape.v_head_dim
    inside = tokens * e * (heads + model.ffn / t)
    ends = 2.0 * _split_tokens(columns) * model.hidden * e
    return ends + inside + _kept_scores_bytes(model, columns)


def step_memory(model: ModelSpec, columns: LayoutColumns, capacity_bytes: float) -> Memory:
    """Return the memory of the fullest stage of each layout."""
    stages = list(stage_memory(model, columns).values())
    sums = [_total(parts) for parts in stages]
    best, worst = stages[0], sums[0]
    which: Values = 0.0
    for position in (1, 2):
        exists = columns.pp > (2 if position == 1 else 1)
        fuller = exists * (sums[position] > worst)
        best = {name: select(fuller, stages[position][name], best[name]) for name in best}
        worst = select(fuller, sums[position], worst)
        which = select(fuller, float(position), which)
    margin = CONTEXT_BYTES + MARGIN_SHARE * capacity_bytes
    return Memory(
        worst_stage_bytes=worst,
        capacity_bytes=capacity_bytes,
        margin_bytes=margin,
        fits=worst + margin <= capacity_bytes,
        parts=best,
        stage=which,
    )


def stage_memory(model: ModelSpec, columns: LayoutColumns) -> dict[str, dict[str, Values]]:
    """Return the parts of one GPU's memory on the first, the second and the last stage [bytes].

    The second is the fullest of those between the ends: it keeps the most micro-batches. Stages
    that a layout does not have are there, too: with one stage only the first means anything.
    """
    layers, each = stage_layers(model, columns), _each_layer(model, columns)
    return {
        stage: _stage_parts(model, columns, layers, each, stage, in_flight(columns, stage))
        for stage in STAGES
    }


def each_stage_memory(model: ModelSpec, columns: LayoutColumns) -> list[dict[str, Values]]:
    """Return the parts of one GPU's memory on every pipeline stage of one layout [bytes].

    All stages between the ends hold as many layers as the fullest of them; they differ by the
    micro-batches that they keep in flight.
    """
    layers, each, last = stage_layers(model, columns), _each_layer(model, columns), columns.pp - 1
    kinds = ["first", *["middle"] * (int(last) - 1), *["last"] * (last > 0)]
    return [
        _stage_parts(model, columns, layers, each, kind, in_flight_at(columns, float(position)))
        for position, kind in enumerate(kinds)
    ]


def _total(parts: Mapping[str, Values]) -> Values:
    total: Values = 0.0
    for part in parts.values():
        total = total + part
    return total


@dataclass(frozen=True, slots=True, kw_only=True)
class _EachLayer:
    """What a layer keeps or needs for one micro-batch, on whatever stage it is [bytes].

    Args:
        dense_bytes, moe_bytes: kept for the backward; 0 where the model has no such layer.
        working_bytes: held while one layer runs.
    """

    dense_bytes: Values
    moe_bytes: Values
    working_bytes: Values


def _each_layer(model: ModelSpec, columns: LayoutColumns) -> _EachLayer:
    dense, moe = model.dense_layer_count, model.moe_layer_count
    return _EachLayer(
        dense_bytes=dense_layer_bytes(model, columns) if dense else 0.0,
        moe_bytes=moe_layer_bytes(model, columns) if moe else 0.0,
        working_bytes=_working_bytes(model, columns),
    )


def _stage_parts(
    model: ModelSpec,
    columns: LayoutColumns,
    layers: StageLayers,
    each: _EachLayer,
    stage: str,
    flight: Values,
) -> dict[str, Values]:
    held = stage_parameters(model, columns, layers, stage)
    zero, copies = columns.zero_stage, copies_of_stage(columns)
    if anywhere(copies > 1):
        other = stage_parameters(model, columns, layers, _MIRRORED[stage])
        held = replace(
            held,
            dense=held.dense + (copies - 1.0) * other.dense,
            experts=held.experts + (copies - 1.0) * other.experts,
        )
    dense_group, expert_group = copies * columns.shards, copies * columns.expert_shards

    def shared(bytes_each: Values, from_stage: float) -> Values:
        sharded = zero >= from_stage
        return bytes_each * (
            held.dense / select(sharded, dense_group, 1.0)
            + held.experts / select(sharded, expert_group, 1.0)
        )

    dense_layers, moe_layers = getattr(layers, f"{stage}_dense"), getattr(layers, f"{stage}_moe")
    kept = dense_layers * each.dense_bytes + moe_layers * each.moe_bytes
    logits = _logits_bytes(model, columns, stage)
    logits = larger(logits, (copies - 1.0) * _logits_bytes(model, columns, _MIRRORED[stage]))
    whole = own_kernels(columns) * (zero >= 3) * (columns.pp > 1) * (held.dense + held.experts)
    return {
        "weights": shared(columns.parameter_bytes, 3.0) + whole * columns.parameter_bytes,
        "gradients": shared(columns.gradient_bytes, 2.0) + whole * _SUMMED_BYTES,
        "optimizer": shared(columns.optimizer_bytes, 1.0),
        "activations": kept * flight + each.working_bytes,
        "logits": larger(0.0, logits - each.working_bytes),
        "buffers": BUFFER_BYTES
        + _gathered_bytes(columns, held.dense + held.experts, layers, stage)
        + _placeholder_bytes(model, columns),
    }


def copies_of_stage(columns: LayoutColumns) -> Values:
    """Return the ranks of one replica that hold a stage: 2 of DualPipe, else 1 [1].

    Its micro-batches enter at both ends: rank r runs stages r and p - 1 - r ("keep two copies of
    the model parameters", arXiv 2412.19437 §3.2.1; table 2: parameters 2x). What is sharded is
    sharded over both copies' ranks.
    """
    return 1.0 + (columns.schedule == SCHEDULES.index("dualpipe")) * (columns.pp > 1)


def _working_bytes(model: ModelSpec, columns: LayoutColumns) -> Values:
    """One layer's activations while it is recomputed, or its gradients while it runs backward."""
    t, tokens, e = columns.tp, columns.tokens, columns.activation_bytes
    widest = model.ffn / t * (2.0 if model.gated_mlp else 1.0)
    working = tokens * (2.0 * model.hidden + widest) * e
    again = tokens * (4.0 * model.hidden + (3.0 * model.hidden + 2.0 * model.ffn) / t) * e
    scores = select(
        columns.fused_attention, 0.0, 5.0 * tokens * columns.seq * model.attention.heads / t
    )
    return working + select(columns.recompute == 2, again + scores, 0.0)


def _logits_bytes(model: ModelSpec, columns: LayoutColumns, stage: str) -> Values:
    """Logits in 16 bit and FP32 of one micro-batch, where the loss is.

    They are gone when the backward of the layers needs its working memory: the larger counts.
    PyTorch's own product also keeps its whole input, which TP gathers first.
    """
    own = own_kernels(columns)
    loose = select(columns.tp > 1, _LOGIT_BYTES["parallel"], _LOGIT_BYTES["eager"])
    loose = select(columns.compiled_loss, _LOGIT_BYTES["compiled"], loose)
    each = select(own, loose, _LOGIT_BYTES["fused"])
    kept = own * model.hidden * columns.activation_bytes
    size = columns.tokens * (model.vocab / columns.tp * each + kept)
    if stage == "last":
        return size
    return select(columns.pp > 1, 0.0, size) if stage == "first" else 0.0 * size


def _placeholder_bytes(model: ModelSpec, columns: LayoutColumns) -> Values:
    """One dense layer's weight gradients in 16 bit, which hold no values.

    Where weight gradients are added to the main gradient in the GEMM itself, Transformer Engine
    hands autograd a placeholder of each weight's shape and keeps one of each: measured peaks of
    unsharded steps on B200 exceed the tensors by as much (SimuMax's table of 2026).
    """
    widest = max(
        model.dense_layer_parameters if model.dense_layer_count else 0,
        model.moe_layer_shared_parameters if model.experts else 0,
    )
    added = (columns.stack == 0) * (columns.zero_stage < 3)
    return added * 2.0 * widest / columns.tp


def _gathered_bytes(
    columns: LayoutColumns, parameters: Values, layers: StageLayers, stage: str
) -> Values:
    """ZeRO-3: two layers' parameters and one layer's gradients stand whole at a time."""
    count = larger(1.0, getattr(layers, f"{stage}_dense") + getattr(layers, f"{stage}_moe"))
    whole = parameters / count * (2.0 * columns.parameter_bytes + columns.gradient_bytes)
    return select(columns.zero_stage >= 3, whole, 0.0)
