"""FLOPs and bytes of one layer, operator by operator, on one rank and micro-batch.

Each operator says how many FLOPs it does, how many bytes it moves if every operand comes from
memory once, and how many kernels it launches. Nothing here is a time: ``compute.py`` turns work
into seconds. Shapes: T tokens of a micro-batch on a rank (b x s / cp), t = tp.

Source: a GPT/Llama/DeepSeek block as Megatron-LM and Transformer Engine run it (arXiv 1909.08053,
2104.04473, 2205.05198); flash attention's backward is 2.5 forwards (arXiv 2205.14135).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from planner.model import ModelSpec
from planner.steptime.columns import (
    STACKS,
    LayoutColumns,
    Values,
    larger,
    own_kernels,
    select,
)
from planner.steptime.elementwise import (
    activation,
    around,
    casts,
    cross_entropy,
    expert_activation,
)
from planner.steptime.work import (
    BothPasses,
    LayerWork,
    Matrix,
    Work,
    forward_gemm,
    input_gemm,
    memory_passes,
    weight_gemm,
)

FLASH_BACKWARD_OF_FORWARD = 2.5
_LAUNCHES_PER_EXPERT = 3.0
_SOFTMAX_WORTH = 32.0
_SCORE_BYTES = {"forward": 12.0, "backward": 17.0}
"""Passes over the s x s scores of 16 bit where attention is not fused, of one query and key.

Forward: the product writes them (2), the causal softmax reads half and writes all (3), dropout
reads and writes with a mask (5), the product with V reads (2). Backward: dropout's output read for
V's gradient (2), the scores' written (2), dropout (5), softmax (1 + 1 + 2), read for q and k (4).
"""

_SOFTMAX_APART_BYTES = {"forward": 34.0, "backward": 37.0}
"""What it moves more where the softmax is five operators: to FP32 (6), scale (8), mask (9),
softmax (8), to 16 bit (6), less the 3 of the fused one; backward 6 + 12 + 9 + 8 + 6, less 4."""

_PERMUTED_FUSED_BYTES = 4.0
_PERMUTED_BYTES = 16.0
_PERMUTED_COMPILED_BYTES = 26.0
_PERMUTED_EAGER_BYTES = 42.0
_SOFTMAX_APART_KERNELS = 4.0
_SOFTMAX_HEADS = 4.0
_SOFTMAX_KEYS = 4096.0


def _softmax_apart(model: ModelSpec, columns: LayoutColumns) -> Values:
    """Return 1 where Megatron-LM's fused causal softmax cannot run, else 0.

    It takes heads of a rank x micro-batch in fours, and 4,096 keys at most; else PyTorch's
    operators run one by one (``FusedScaleMaskSoftmax.is_kernel_available``).
    """
    heads = model.attention.heads / columns.tp * columns.micro_batch
    odd = (heads % _SOFTMAX_HEADS > 0) | (columns.seq > _SOFTMAX_KEYS)
    return (columns.stack == float(STACKS.index("unfused"))) * odd * 1.0


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


def _core(model: ModelSpec, columns: LayoutColumns) -> tuple[BothPasses, BothPasses]:
    """Attention core: fused, or the two batched GEMMs with the softmax between them."""
    shape, tokens = model.attention, columns.tokens
    heads = shape.heads / columns.tp
    keys = attended_keys(model, columns.seq, columns.fused_attention)
    width = shape.head_dim + shape.v_head_dim
    scores = tokens * keys * heads
    worth = (width / 2.0 + _SOFTMAX_WORTH) / (128.0 + _SOFTMAX_WORTH) * 128.0
    operands = 2.0 * tokens * (heads + larger(1.0, shape.kv_heads / columns.tp)) * width
    fused = columns.fused_attention
    apart = _softmax_apart(model, columns)

    def flash(passes: float, moved: float) -> Work:
        return Work(
            name="attention_core",
            kind="attention",
            flops=select(fused, passes * 4.0 * scores * worth, 0.0),
            moved_bytes=select(fused, moved * operands, 0.0),
            kernels=select(fused, 1.0, 0.0),
        )

    def written(passes: float, direction: str) -> Work:
        score_bytes = _SCORE_BYTES[direction] + apart * _SOFTMAX_APART_BYTES[direction]
        return Work(
            name="attention_scores",
            kind="gemm",
            flops=select(fused, 0.0, passes * 2.0 * scores * width),
            moved_bytes=select(fused, 0.0, scores * score_bytes + operands),
            kernels=select(fused, 0.0, 5.0 * passes + apart * _SOFTMAX_APART_KERNELS),
        )

    return (
        BothPasses(forward=flash(1.0, 1.0), backward=flash(FLASH_BACKWARD_OF_FORWARD, 2.0)),
        BothPasses(
            forward=written(1.0, "forward"),
            backward=written(2.0, "backward"),
        ),
    )


def feed_forward_matrices(
    model: ModelSpec, tokens: Values, width: Values, name: str
) -> tuple[Matrix, ...]:
    """Return the two (or, gated, three as two) matrices of a feed-forward *width* wide."""
    up = 2.0 if model.gated_mlp else 1.0
    return (
        Matrix(name=f"{name}_up", m=tokens, n=up * width, k=float(model.hidden)),
        Matrix(name=f"{name}_down", m=tokens, n=float(model.hidden), k=width),
    )


def _block(
    matrices: Sequence[Matrix],
    core: Sequence[BothPasses],
    others: Sequence[BothPasses],
    columns: LayoutColumns,
    element_bytes: Values,
) -> LayerWork:
    wide = [2.0 if x.kind == "logits" else element_bytes for x in matrices]
    pairs = list(zip(matrices, wide, strict=True))
    both = (*core, *others, casts(matrices, columns))
    return LayerWork(
        forward=(*(forward_gemm(x, e) for x, e in pairs), *(one.forward for one in both)),
        backward=(*(input_gemm(x, e) for x, e in pairs), *(one.backward for one in both)),
        weights=tuple(weight_gemm(x, e, columns.gradient_bytes) for x, e in pairs),
        core=tuple(one.forward for one in core),
    )


def dense_layer(model: ModelSpec, columns: LayoutColumns, element_bytes: Values) -> LayerWork:
    """Return the work of one layer with a dense feed-forward."""
    tokens = columns.tokens
    width = model.ffn / columns.tp
    matrices = (
        *attention_matrices(model, columns),
        *feed_forward_matrices(model, tokens, width, "ffn"),
    )
    others = (around(model, columns), activation(model, columns, tokens, width))
    work = _block(matrices, _core(model, columns), others, columns, element_bytes)
    return replace(work, last=(forward_gemm(matrices[-1], element_bytes),))


def _permuted_bytes(columns: LayoutColumns) -> Values:
    """Return what one element of a routed token's copy moves around the experts, not fused [bytes].

    PyTorch's own with an all-to-all of NCCL (torchtitan's ``AllToAllTokenDispatcher``): gathered in
    the order of experts (4), once more in padded groups (8, with the zeros put behind them), back
    (4), and added to its token (6); the scores are multiplied in FP32, one pass where compiled (4)
    and three where not (20). With DeepEP, and in Megatron-Core, there are four passes.
    """
    apart = own_kernels(columns) * (1.0 - columns.domain_copies)
    eager = columns.stack == float(STACKS.index("eager"))
    own = select(eager, _PERMUTED_EAGER_BYTES, _PERMUTED_COMPILED_BYTES)
    return select(apart, own, _PERMUTED_BYTES)


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
    moved = select(fused, _PERMUTED_FUSED_BYTES, _permuted_bytes(columns)) * routed * model.hidden
    scores = 24.0 * tokens / columns.tp * model.experts
    steps = select(fused, 2.0, 40.0)
    others = (
        memory_passes("permutation", moved, moved, steps),
        memory_passes("routing", scores, scores, steps),
        expert_activation(model, columns, routed, width),
        activation(model, columns, tokens, shared_width),
        around(model, columns),
    )
    return _block(
        (*attention_matrices(model, columns), *grouped, *shared, router),
        _core(model, columns),
        others,
        columns,
        element_bytes,
    )


def embedding(model: ModelSpec, columns: LayoutColumns) -> LayerWork:
    """Return the work of the input embedding: rows read forward, added to backward."""
    size = columns.tokens * model.hidden
    rows = memory_passes("embedding", 6.0 * size, 10.0 * size, 3.0)
    return LayerWork(forward=(rows.forward,), backward=(rows.backward,), weights=(), core=())


def logits(model: ModelSpec, columns: LayoutColumns) -> LayerWork:
    """Return the work of the final norm, the vocabulary GEMM and the cross entropy."""
    wide = model.vocab / columns.tp
    matrix = Matrix(name="logits", m=columns.tokens, n=wide, k=float(model.hidden), kind="logits")
    return _block((matrix,), (), (cross_entropy(columns, columns.tokens * wide),), columns, 2.0)
