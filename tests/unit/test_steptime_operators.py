"""Work of a layer, operator by operator, against the model's own FLOPs and bytes by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.layout import Layout
from planner.model import Attention, ModelSpec
from planner.steptime.columns import columns_of
from planner.steptime.operators import attended_keys, dense_layer, logits, moe_layer
from planner.steptime.work import LayerWork

LLAMA = ModelSpec(
    name="llama-3.1-8b", hidden=4096, vocab=128256, layers=32, ffn=14336,
    attention=Attention(heads=32, kv_heads=8, head_dim=128, v_head_dim=128),
)  # fmt: skip
DEEPSEEK = ModelSpec(
    name="deepseek-v3", hidden=7168, vocab=129280, layers=61, ffn=18432, experts=256, top_k=8,
    expert_ffn=2048, shared_expert_ffn=2048, moe_layers=(False,) * 3 + (True,) * 58,
    attention=Attention(kind="mla", heads=128, kv_heads=128, head_dim=192, v_head_dim=128,
                        q_lora_rank=1536, kv_lora_rank=512, rope_head_dim=64),
)  # fmt: skip


def forward_flops(work: LayerWork) -> float:
    return float(sum(one.flops for one in work.forward))


def test_a_dense_models_forward_does_the_flops_of_its_shape() -> None:
    columns = columns_of(Layout(seq=8192, recompute="none"))

    layer = forward_flops(dense_layer(LLAMA, columns, 2.0))
    head = forward_flops(logits(LLAMA, columns))

    # the model counts (s + 1) / 2 keys a query, the kernel s / 2
    assert 32 * layer + head == pytest.approx(8192 * LLAMA.forward_flops_per_token(8192), rel=1e-4)


def test_an_moe_models_forward_does_the_flops_of_its_shape() -> None:
    columns = columns_of(Layout(seq=4096, recompute="none"))

    dense = forward_flops(dense_layer(DEEPSEEK, columns, 2.0))
    moe = forward_flops(moe_layer(DEEPSEEK, columns, 2.0))
    head = forward_flops(logits(DEEPSEEK, columns))

    # the kernel's softmax is worth more FLOPs where heads are not 128 wide: 3 % of a layer here
    assert 3 * dense + 58 * moe + head == pytest.approx(
        4096 * DEEPSEEK.forward_flops_per_token(4096), rel=0.03
    )


@pytest.mark.parametrize("tp", [2, 4, 8])
def test_tensor_parallelism_splits_every_flop(tp: int) -> None:
    alone = forward_flops(dense_layer(LLAMA, columns_of(Layout()), 2.0))

    split = forward_flops(dense_layer(LLAMA, columns_of(Layout(tp=tp)), 2.0))

    assert split * tp == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize(
    ("run", "element_bytes"),
    [
        ({}, 16.0),
        ({"fused_experts": 1.0}, 4.0),
        ({"stack": 1.0, "domain_copies": 1.0}, 16.0),
        # torchtitan's: gather 4, padding 8, back 4, added up 6; scores 4 in one pass, 20 in three
        ({"stack": 3.0, "domain_copies": 0.0}, 26.0),
        ({"stack": 1.0, "domain_copies": 0.0}, 42.0),
        ({"stack": 1.0, "domain_copies": 0.0, "fused_experts": 1.0}, 4.0),
    ],
)
def test_what_moves_a_routed_token_is_that_of_its_software(
    run: dict[str, float], element_bytes: float
) -> None:
    columns = replace(columns_of(Layout(seq=4096)), **run)

    work = moe_layer(DEEPSEEK, columns, 2.0)

    (moved,) = (one.moved_bytes for one in work.forward if one.name == "permutation")
    assert moved == 4096 * 8 * 7168 * element_bytes


def test_expert_parallelism_leaves_the_routed_work_of_a_rank_as_it_is() -> None:
    def work(ep: int) -> float:
        layout = Layout(ep=ep, dp=8, global_batch=8)
        return forward_flops(moe_layer(DEEPSEEK, columns_of(layout), 2.0))

    assert work(8) == pytest.approx(work(1), rel=1e-12)


def test_a_backward_does_twice_the_matrix_flops_of_a_forward() -> None:
    work = dense_layer(LLAMA, columns_of(Layout()), 2.0)

    def gemm(part: tuple[object, ...]) -> float:
        return float(sum(one.flops for one in part if one.kind == "gemm"))  # type: ignore[attr-defined]

    assert gemm(work.backward) + gemm(work.weights) == pytest.approx(2 * gemm(work.forward))


def test_flash_attention_goes_back_with_five_matrix_products_for_two() -> None:
    work = dense_layer(LLAMA, columns_of(Layout()), 2.0)
    core = {one.name: one.flops for one in work.forward}["attention_core"]

    back = {one.name: one.flops for one in work.backward}["attention_core"]

    assert back == pytest.approx(2.5 * core)


def test_a_window_keeps_only_the_keys_inside_it() -> None:
    # by hand: 4 tokens, window 2: 1 + 2 + 2 + 2 keys are seen; the kernel's count is continuous
    half = replace(LLAMA, windows=(2,) * 32)

    assert attended_keys(half, 1e6, 1.0) == pytest.approx(2.0, rel=1e-5)
    assert attended_keys(LLAMA, 4096.0, 1.0) == 2048.0
    assert attended_keys(LLAMA, 4096.0, 0.0) == 4096.0


def scores_of(tp: int, micro_batch: int) -> LayerWork:
    """Return a layer's work in kernels of before flash attention."""
    columns = columns_of(Layout(seq=2048, tp=tp, micro_batch=micro_batch, global_batch=2))
    return dense_layer(LLAMA, replace(columns, stack=2.0), 2.0)


def test_the_fused_softmax_takes_heads_in_fours_and_else_five_operators_run() -> None:
    """Megatron-LM's ``is_kernel_available``: heads of a rank x micro-batch in fours."""
    found = {}
    for tp, micro_batch in ((8, 1), (16, 1), (16, 2)):  # 4, 2 and 4 of the 32 heads x sequences
        core = next(
            one for one in scores_of(tp, micro_batch).forward if one.name == "attention_scores"
        )
        scores = micro_batch * 32 / tp * 2048**2
        operands = 2 * micro_batch * 2048 * (32 / tp + max(1, 8 / tp)) * 256
        found[tp, micro_batch] = (core.moved_bytes - operands) / scores, core.kernels

    assert found[8, 1] == found[16, 2] == (12.0, 5.0)
    # 12 less the fused one's 3; to FP32 6, scale 8, mask 9, softmax 8, to 16 bit 6
    assert found[16, 1] == (46.0, 9.0)


def test_unfused_attention_moves_its_scores_and_fused_does_not() -> None:
    columns = columns_of(Layout(seq=2048))
    fused = dense_layer(LLAMA, columns, 2.0)
    unfused = dense_layer(LLAMA, replace(columns, stack=2.0), 2.0)

    def moved(work: LayerWork) -> float:
        return float(sum(one.moved_bytes for one in work.forward))

    # scores: b a s^2 elements; forward, bytes of each: written by Q K^T (2), softmax reads the
    # lower half (1) and writes all (2), dropout reads, writes and keeps a mask (5), P V reads (2)
    assert moved(unfused) - moved(fused) == pytest.approx(12 * 32 * 2048**2)


def test_gpts_biases_and_dropout_move_bytes_of_their_own_before_they_were_fused() -> None:
    columns = replace(columns_of(Layout(tp=2, seq=1024)), sequence_parallel=0.0)
    gpt = replace(
        LLAMA, gated_mlp=False, norm_bias=True, learned_positions=1024,
        attention=Attention(heads=32, kv_heads=32, head_dim=128, v_head_dim=128),
        hidden=4096, ffn=16384,
    )  # fmt: skip

    def norms(stack: float) -> tuple[float, float]:
        work = dense_layer(gpt, replace(columns, stack=stack), 2.0)
        both = ([w.moved_bytes for w in part if w.name == "norms"] for part in
                (work.forward, work.backward))  # fmt: skip
        forward, backward = (float(sum(found)) for found in both)
        return forward, backward

    # by hand, of h = 4096 and half of the heads. Forward, two norms of 4 and two residuals of 6
    # bytes: 20 h; two masks more, a bias added to q, k and v (4 of 3 h/2) and a copy (4 of h/2).
    assert norms(0.0)[0] == pytest.approx(1024 * 20 * 4096)
    assert norms(2.0)[0] == pytest.approx(1024 * (22 * 4096 + 4 * 6144 + 4 * 2048))
    # backward: norms 10 each, residuals 13 each; q, k, v 6 of 3 h/2, copy 4, bias 2 of 4 h/2.
    assert norms(2.0)[1] == pytest.approx(1024 * (46 * 4096 + 6 * 6144 + 4 * 2048 + 2 * 8192))


def test_the_cross_entropy_of_before_fused_kernels_goes_over_the_logits_in_fp32() -> None:
    columns = columns_of(Layout(seq=1024))

    def moved(stack: float) -> float:
        work = logits(LLAMA, replace(columns, stack=stack))
        return float(
            sum(w.moved_bytes for w in (*work.forward, *work.backward) if w.kind == "memory")
        )

    # cast 6, maximum 4, difference 8, exponential 8, sum 4, quotient 8; backward 8 and 6
    assert moved(2.0) == pytest.approx(52 * 1024 * LLAMA.vocab)
    assert moved(0.0) == pytest.approx(22 * 1024 * LLAMA.vocab)


def moved_bytes(model: ModelSpec, name: str, stack: float) -> float:
    columns = columns_of(Layout(seq=4096, sequence_parallel=False), stack=stack)
    work = dense_layer(model, columns, 2.0)
    return sum(float(one.moved_bytes) for one in work.forward if one.name == name)


def test_pytorch_without_compile_runs_rms_norm_and_rotation_operator_by_operator() -> None:
    """A token of Llama 3 8B forward: 2 norms of 4096 x 36 bytes where a fused kernel moves 4, 40
    heads of 128 rotated with 20 bytes for 4."""
    apart, fused = moved_bytes(LLAMA, "norms", 1.0), moved_bytes(LLAMA, "norms", 3.0)

    assert apart - fused == 4096 * (2 * 4096 * (36 - 4) + 40 * 128 * (20 - 4))
    assert moved_bytes(LLAMA, "activation", 1.0) > moved_bytes(LLAMA, "activation", 3.0)


def test_layer_norm_is_one_kernel_with_and_without_compile() -> None:
    gpt = replace(LLAMA, norm_bias=True, gated_mlp=False)

    assert moved_bytes(gpt, "norms", 1.0) == moved_bytes(gpt, "norms", 3.0)
    assert moved_bytes(gpt, "activation", 1.0) == moved_bytes(gpt, "activation", 3.0)
