"""FLOPs and bytes of one layer, operator by operator, on one rank and micro-batch.

Each operator says how many FLOPs it does, how many bytes it moves if every operand comes from
memory once, and how many kernels it launches. Nothing here is a time: ``compute.py`` turns work
into seconds. Shapes: T tokens of a micro-batch on a rank (b x s / cp), t = tp.

Source: a GPT/Llama/DeepSeek block as Megatron-LM and Transformer Engine run it (arXiv 1909.08053,
2104.04473, 2205.05198); flash attention's backward is 2.5 forwards (arXiv 2205.14135).
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.model import ModelSpec
from planner.steptime.columns import LayoutColumns, Values, larger, select
from planner.steptime.work import (
    LayerWork,
    Matrix,
    Work,
    forward_gemm,
    input_gemm,
    memory_work,
    weight_gemm,
)

FLASH_BACKWARD_OF_FORWARD = 2.5
_LAUNCHES_PER_EXPERT = 3.0
_BIASED_PASSES = {"fused": 4.0, "apart": 14.0}
_RMS_NORM_BYTES = 36.0  # read and written by its seven operators: 6 + 8 + 4 + 8 + 6 + 4
_ROTATION_BYTES = 20.0  # to FP32, complex product, back to 16 bit: 6 + 8 + 6
_SOFTMAX_WORTH = 32.0
_SCORE_BYTES_FORWARD = 9.0
_SCORE_BYTES_BACKWARD = 11.0


def attended_keys(model: ModelSpec, seq: Values, fused: Values) -> Values:
    """Return the keys a query attends to, mean over queries and layers [1].

    Causal fused attention skips the masked half: s / 2; a window w keeps w - w^2 / 2s. Attention
    that writes its scores computes all s.
    """
    windows = model.windows or (0,) * model.layers
    causal: Values = 0.0
    for width in sorted(set(windows)):
        share = windows.count(width) / len(windows)
        if width:
            inside = larger(0.0, seq - width)
            causal = causal + share * (seq / 2.0 - inside * inside / (2.0 * seq))
        else:
            causal = causal + share * seq / 2.0
    return select(fused, causal, seq)


def attention_matrices(model: ModelSpec, columns: LayoutColumns) -> tuple[Matrix, ...]:
    """Return the projections of one attention block on one rank."""
    shape, tokens, t = model.attention, columns.tokens, columns.tp
    if shape.kind != "mla":
        kv = larger(1.0, shape.kv_heads / t)
        wide = shape.heads / t * shape.head_dim + kv * (shape.head_dim + shape.v_head_dim)
        return (
            Matrix(name="qkv", m=tokens, n=wide, k=float(model.hidden)),
            Matrix(
                name="attention_out",
                m=tokens,
                n=float(model.hidden),
                k=shape.heads * shape.v_head_dim / t,
            ),
        )
    nope = shape.head_dim - shape.rope_head_dim
    heads = shape.heads / t
    query = shape.q_lora_rank or model.hidden
    down = shape.kv_lora_rank + shape.rope_head_dim
    split = select(columns.sequence_parallel, tokens / t, tokens)
    return (
        Matrix(name="kv_down", m=split, n=float(down + shape.q_lora_rank), k=float(model.hidden)),
        Matrix(name="q_up", m=tokens, n=heads * shape.head_dim, k=float(query)),
        Matrix(
            name="kv_up",
            m=tokens,
            n=heads * (nope + shape.v_head_dim),
            k=float(shape.kv_lora_rank),
        ),
        Matrix(name="attention_out", m=tokens, n=float(model.hidden), k=heads * shape.v_head_dim),
    )


def _core(model: ModelSpec, columns: LayoutColumns, backward: bool) -> tuple[Work, ...]:
    """Attention core: fused, or the two batched GEMMs with the softmax between them."""
    shape, tokens = model.attention, columns.tokens
    heads = shape.heads / columns.tp
    keys = attended_keys(model, columns.seq, columns.fused_attention)
    width = shape.head_dim + shape.v_head_dim
    scores = tokens * keys * heads
    passes = FLASH_BACKWARD_OF_FORWARD if backward else 1.0
    worth = (width / 2.0 + _SOFTMAX_WORTH) / (128.0 + _SOFTMAX_WORTH) * 128.0
    operands = 2.0 * tokens * (heads + larger(1.0, shape.kv_heads / columns.tp)) * width
    fused = columns.fused_attention
    unfused_passes = 2.0 if backward else 1.0
    score_bytes = (_SCORE_BYTES_BACKWARD + 8.0) if backward else (_SCORE_BYTES_FORWARD + 4.0)
    return (
        Work(
            name="attention_core",
            kind="attention",
            flops=select(fused, passes * 4.0 * scores * worth, 0.0),
            moved_bytes=select(fused, operands * (2.0 if backward else 1.0), 0.0),
            kernels=select(fused, 1.0, 0.0),
        ),
        Work(
            name="attention_scores",
            kind="gemm",
            flops=select(fused, 0.0, unfused_passes * 2.0 * scores * width),
            moved_bytes=select(fused, 0.0, scores * score_bytes + operands),
            kernels=select(fused, 0.0, 5.0 * unfused_passes),
        ),
    )


def core_flops(model: ModelSpec, columns: LayoutColumns) -> Values:
    """Return the model FLOPs of one attention core's forward on one rank [FLOP]."""
    shape = model.attention
    keys = attended_keys(model, columns.seq, 1.0)
    width = shape.head_dim + shape.v_head_dim
    return 2.0 * columns.tokens * keys * shape.heads / columns.tp * width


def _around(model: ModelSpec, columns: LayoutColumns, backward: bool) -> Work:
    """Norms, residuals and dropout on the whole width, rotary embedding on q and k.

    PyTorch without ``torch.compile`` has one kernel for LayerNorm, but runs RMSNorm and the
    rotation operator by operator in FP32: casts, square, mean, scaling, weight and back.
    """
    tokens, t = columns.tokens, columns.tp
    split = select(columns.sequence_parallel, tokens / t, tokens)
    norms = model.norms_per_layer
    per_norm, per_residual = (6.0, 6.0) if backward else (4.0, 6.0)
    rotated, kernels = (0.0 if model.learned_positions else 4.0), norms + 4.0
    if not model.norm_bias:
        apart = columns.stack == 1
        per_norm = select(apart, _RMS_NORM_BYTES * (1.0 + backward), per_norm)
        rotated = select(apart, _ROTATION_BYTES, rotated)
        kernels = select(apart, (7.0 * norms + 8.0) * (1.0 + backward), kernels)
    around = split * model.hidden * (per_norm * norms + per_residual * 2.0)
    shape = model.attention
    turned = rotated * tokens * (shape.heads + shape.kv_heads) * shape.head_dim / t
    return memory_work("norms", around + turned, kernels)


def _activation(
    model: ModelSpec, columns: LayoutColumns, tokens: Values, width: Values, backward: bool
) -> Work:
    """Each tensor read or written once; a gate that is not fused goes through memory again."""
    tensors: Values = 2.0 + backward
    if model.gated_mlp:
        tensors = 3.0 + 2.0 * backward
        tensors = select(columns.stack == 1, tensors + 2.0 + backward, tensors)
    return memory_work("activation", 2.0 * tensors * tokens * width, 1.0)


def _expert_activation(
    model: ModelSpec, columns: LayoutColumns, tokens: Values, width: Values, backward: bool
) -> Work:
    """Biased, clamped expert activations (gpt-oss) run operator by operator where not fused.

    Bias, clamp, scaled sigmoid and product in FP32, and the sums over tokens that the biases'
    gradients are: about 14 passes over what a fused SwiGLU moves once, 4 in fused graphs.
    """
    plain = _activation(model, columns, tokens, width, backward)
    passes: Values = 1.0
    if model.expert_bias:
        passes = select(columns.fused_experts, _BIASED_PASSES["fused"], _BIASED_PASSES["apart"])
    return memory_work(plain.name, plain.moved_bytes * passes, plain.kernels * passes)


def feed_forward_matrices(
    model: ModelSpec, tokens: Values, width: Values, name: str
) -> tuple[Matrix, ...]:
    """Return the two (or, gated, three as two) matrices of a feed-forward *width* wide."""
    up = 2.0 if model.gated_mlp else 1.0
    return (
        Matrix(name=f"{name}_up", m=tokens, n=up * width, k=float(model.hidden)),
        Matrix(name=f"{name}_down", m=tokens, n=float(model.hidden), k=width),
    )


def _casts(matrices: Sequence[Matrix], columns: LayoutColumns, backward: bool) -> Work:
    """FP8 (and FP4): each operand is read in 16 bit and written twice, straight and transposed."""
    per_element = 4.0
    size: Values = 0.0
    for x in matrices:
        size = size + x.count * x.m * (x.n if backward else x.k)
    narrow = select(columns.precision >= 2, per_element, 0.0)
    return memory_work("casts", narrow * size, select(narrow, float(len(matrices)), 0.0))


def _block(
    matrices: Sequence[Matrix],
    forward: Sequence[Work],
    backward: Sequence[Work],
    core: tuple[tuple[Work, ...], tuple[Work, ...]],
    columns: LayoutColumns,
    element_bytes: Values,
) -> LayerWork:
    wide = [2.0 if x.kind == "logits" else element_bytes for x in matrices]
    pairs = list(zip(matrices, wide, strict=True))
    return LayerWork(
        forward=(
            *(forward_gemm(x, e) for x, e in pairs),
            *core[0],
            *forward,
            _casts(matrices, columns, backward=False),
        ),
        backward=(
            *(input_gemm(x, e) for x, e in pairs),
            *core[1],
            *backward,
            _casts(matrices, columns, backward=True),
        ),
        weights=tuple(weight_gemm(x, e, columns.gradient_bytes) for x, e in pairs),
        core=core[0],
    )


def dense_layer(model: ModelSpec, columns: LayoutColumns, element_bytes: Values) -> LayerWork:
    """Return the work of one layer with a dense feed-forward."""
    tokens = columns.tokens
    width = model.ffn / columns.tp
    matrices = (
        *attention_matrices(model, columns),
        *feed_forward_matrices(model, tokens, width, "ffn"),
    )
    return _block(
        matrices,
        (
            _around(model, columns, backward=False),
            _activation(model, columns, tokens, width, False),
        ),
        (_around(model, columns, backward=True), _activation(model, columns, tokens, width, True)),
        (_core(model, columns, backward=False), _core(model, columns, backward=True)),
        columns,
        element_bytes,
    )


def routed_tokens(model: ModelSpec, columns: LayoutColumns) -> Values:
    """Return the token copies the experts of one rank work on in a micro-batch [1]."""
    return columns.tokens / columns.tp * model.top_k * columns.etp


def moe_layer(model: ModelSpec, columns: LayoutColumns, element_bytes: Values) -> LayerWork:
    """Return the work of one MoE layer: router, permutations, grouped GEMMs, shared experts."""
    tokens, routed = columns.tokens, routed_tokens(model, columns)
    local = model.experts / columns.ep
    width = model.expert_ffn / columns.etp
    up = 2.0 if model.gated_mlp else 1.0
    fused = columns.fused_experts
    launches = select(fused, 1.0, _LAUNCHES_PER_EXPERT * local)
    grouped = (
        Matrix(
            name="experts_up",
            m=routed / local,
            n=up * width,
            k=float(model.hidden),
            count=local,
            launches=launches,
        ),
        Matrix(
            name="experts_down",
            m=routed / local,
            n=float(model.hidden),
            k=width,
            count=local,
            launches=launches,
        ),
    )
    shared_width = model.shared_expert_ffn / columns.tp
    shared = (
        feed_forward_matrices(model, tokens, shared_width, "shared")
        if model.shared_expert_ffn
        else ()
    )
    router = Matrix(
        name="router",
        m=tokens / columns.tp,
        n=float(model.experts),
        k=float(model.hidden),
        kind="logits",
    )
    moved = select(fused, 4.0, 16.0) * routed * model.hidden
    steps = select(fused, 2.0, 40.0)
    around = (
        memory_work("permutation", moved, steps),
        memory_work("routing", 24.0 * tokens / columns.tp * model.experts, steps),
        _expert_activation(model, columns, routed, width, backward=False),
        _activation(model, columns, tokens, shared_width, backward=False),
        _around(model, columns, backward=False),
    )
    back = (
        memory_work("permutation", moved, steps),
        memory_work("routing", 24.0 * tokens / columns.tp * model.experts, steps),
        _expert_activation(model, columns, routed, width, backward=True),
        _activation(model, columns, tokens, shared_width, backward=True),
        _around(model, columns, backward=True),
    )
    return _block(
        (*attention_matrices(model, columns), *grouped, *shared, router),
        around,
        back,
        (_core(model, columns, backward=False), _core(model, columns, backward=True)),
        columns,
        element_bytes,
    )


def embedding(model: ModelSpec, columns: LayoutColumns) -> LayerWork:
    """Return the work of the input embedding: rows read forward, added to backward."""
    size = columns.tokens * model.hidden
    none: tuple[Work, ...] = ()
    return LayerWork(
        forward=(memory_work("embedding", 6.0 * size, 3.0),),
        backward=(memory_work("embedding", 10.0 * size, 3.0),),
        weights=none,
        core=none,
    )


def logits(model: ModelSpec, columns: LayoutColumns) -> LayerWork:
    """Return the work of the final norm, the vocabulary GEMM and the cross entropy."""
    tokens = columns.tokens
    wide = model.vocab / columns.tp
    matrix = Matrix(name="logits", m=tokens, n=wide, k=float(model.hidden), kind="logits")
    none: tuple[Work, ...] = ()
    return _block(
        (matrix,),
        (memory_work("cross_entropy", 14.0 * tokens * wide, 6.0),),
        (memory_work("cross_entropy", 8.0 * tokens * wide, 3.0),),
        (none, none),
        columns,
        2.0,
    )
