"""Memory of a stage, against the published formulas by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.layout import Layout
from planner.model import Attention, ModelSpec
from planner.steptime.columns import LayoutColumns, columns_of
from planner.steptime.memory import (
    dense_layer_bytes,
    moe_layer_bytes,
    stage_memory,
    step_memory,
)
from planner.steptime.parameters import stage_layers, stage_parameters
from planner.steptime.schedule import in_flight

GPT = ModelSpec(
    name="gpt-22b", hidden=6144, vocab=51200, layers=48, ffn=24576, gated_mlp=False,
    tied_embeddings=True, learned_positions=2048, norm_bias=True,
    attention=Attention(heads=64, kv_heads=64, head_dim=96, v_head_dim=96),
)  # fmt: skip
LLAMA = ModelSpec(
    name="llama-3.1-405b", hidden=16384, vocab=128256, layers=126, ffn=53248,
    attention=Attention(heads=128, kv_heads=8, head_dim=128, v_head_dim=128),
)  # fmt: skip


def before_flash(layout: Layout) -> LayoutColumns:
    return replace(columns_of(layout), stack=2.0)


S, B, H, A = 2048, 4, 6144, 64


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_a_layer_without_sp_keeps_what_korthikanti_says(tp: int) -> None:
    layout = Layout(
        tp=tp, micro_batch=B, global_batch=B, seq=S, recompute="none", sequence_parallel=False
    )

    found = dense_layer_bytes(GPT, before_flash(layout))

    # arXiv 2205.05198 eq. 2: s b h (10 + 24/t + 5 a s / (h t))
    assert found == pytest.approx(S * B * H * (10 + 24 / tp + 5 * A * S / (H * tp)))


@pytest.mark.parametrize("tp", [1, 2, 8])
def test_a_layer_with_sp_keeps_what_korthikanti_says(tp: int) -> None:
    layout = Layout(tp=tp, micro_batch=B, global_batch=B, seq=S, recompute="none")

    found = dense_layer_bytes(GPT, before_flash(layout))

    # eq. 4: s b h / t (34 + 5 a s / h)
    assert found == pytest.approx(S * B * H / tp * (34 + 5 * A * S / H))


def test_selective_recomputation_keeps_34_over_t_and_full_keeps_the_input() -> None:
    layout = Layout(tp=8, micro_batch=B, global_batch=B, seq=S)
    full = replace(layout, recompute="full")

    # eq. 6: s b h 34 / t; full recomputation with SP: 2 s b h / t
    assert dense_layer_bytes(GPT, before_flash(layout)) == pytest.approx(S * B * H * 34 / 8)
    assert dense_layer_bytes(GPT, before_flash(full)) == pytest.approx(2 * S * B * H / 8)


def test_micro_batches_in_flight_fall_from_the_first_stage_to_the_last() -> None:
    columns = columns_of(Layout(pp=8, global_batch=64))

    assert in_flight(columns, "first") == 8
    assert in_flight(columns, "last") == 1


def test_interleaving_keeps_more_on_the_first_stage() -> None:
    # arXiv 2205.05198 §4.2.3: L (1 + (p-1)/(p m)) layers' activations, m chunks a stage
    columns = columns_of(Layout(pp=8, vpp=3, global_batch=64))

    assert in_flight(columns, "first") == pytest.approx(8 * (1 + 7 / (8 * 3)), rel=0.03)


def test_a_short_run_keeps_no_more_than_it_has() -> None:
    assert in_flight(columns_of(Layout(pp=8, global_batch=2)), "first") == 2


@pytest.mark.parametrize(
    ("zero", "weights", "gradients", "optimizer"),
    [(0, 1, 1, 1), (1, 1, 1, 8), (2, 1, 8, 8), (3, 8, 8, 8)],
)
def test_zero_shards_what_its_stage_says(
    zero: int, weights: int, gradients: int, optimizer: int
) -> None:
    layout = Layout(tp=8, dp=8, global_batch=64, seq=4096, zero_stage=zero)

    parts = step_memory(LLAMA, columns_of(layout), 80e9).parts

    whole = step_memory(LLAMA, columns_of(replace(layout, zero_stage=0)), 80e9).parts
    assert parts["weights"] == pytest.approx(whole["weights"] / weights)
    assert parts["gradients"] == pytest.approx(whole["gradients"] / gradients)
    assert parts["optimizer"] == pytest.approx(whole["optimizer"] / optimizer)


def test_what_is_missing_is_the_sum_over_the_capacity() -> None:
    layout = Layout(tp=8, pp=2, dp=8, global_batch=64, seq=8192)

    memory = step_memory(LLAMA, columns_of(layout), 80e9)

    assert not memory.fits
    assert memory.missing_bytes == pytest.approx(
        sum(memory.parts.values()) + memory.margin_bytes - 80e9
    )


@pytest.mark.parametrize("pp", [1, 2, 3, 4, 8, 16, 18])
def test_every_parameter_and_layer_is_on_one_stage(pp: int) -> None:
    columns = columns_of(Layout(pp=pp))
    layers = stage_layers(LLAMA, columns)
    counts = layers.first_dense + (pp > 1) * layers.last_dense
    held = stage_parameters(LLAMA, columns, layers, "first").dense
    if pp > 1:
        held += stage_parameters(LLAMA, columns, layers, "last").dense
    if pp > 2:
        counts += (pp - 2) * layers.middle_mean_dense
        held += (pp - 2) * layers.middle_mean_dense * LLAMA.dense_layer_parameters

    assert counts == pytest.approx(126)
    assert held == pytest.approx(LLAMA.parameters(), rel=1e-9)


def test_405b_on_eight_stages_is_laid_out_15_16_15_as_nvidia_does() -> None:
    layers = stage_layers(LLAMA, columns_of(Layout(pp=8)))

    assert (layers.first_dense, layers.middle_dense, layers.last_dense) == (15, 16, 15)


def test_pytorchs_selective_recomputation_keeps_every_second_product() -> None:
    """Llama 3 8B, of one token, in 16 bit: its input, q, v, the core's output, the first of the
    feed-forward's products and its last; the core's logarithms in FP32.
    """
    model = replace(
        LLAMA, hidden=4096, ffn=14336,
        attention=Attention(heads=32, kv_heads=8, head_dim=128, v_head_dim=128),
    )  # fmt: skip
    layout = Layout(seq=8192, micro_batch=2, global_batch=2, recompute="selective")
    columns = replace(columns_of(layout), stack=1.0)

    found = dense_layer_bytes(model, columns)

    each = 2 * (4096 + 4096 + 1024 + 4096 + 14336 + 4096) + 4 * 32
    assert found == pytest.approx(2 * 8192 * each)


def test_pytorchs_own_loss_holds_fourteen_bytes_of_each_logit() -> None:
    layout = Layout(dp=8, seq=32768, micro_batch=1, global_batch=8, zero_stage=3, recompute="full")
    fused = columns_of(layout)

    more = [
        float(step_memory(LLAMA, replace(fused, stack=stack), 96e9).worst_stage_bytes)
        for stack in (1.0, 0.0)
    ]

    kept_input = 2 * 32768 * 16384  # of the logits' product, for its weights' gradient
    assert more[0] - more[1] == pytest.approx((14 - 6) * 32768 * 128256 + kept_input, rel=1e-6)


@pytest.mark.parametrize(("tp", "compiled_loss", "each"), [(8, 0.0, 18), (8, 1.0, 4), (1, 1.0, 4)])
def test_loss_parallel_holds_four_bytes_more_and_a_compiled_loss_two_tensors_of_16_bit(
    tp: int, compiled_loss: float, each: int
) -> None:
    layout = Layout(tp=tp, dp=8, seq=262144, micro_batch=1, global_batch=8, zero_stage=3)
    own = replace(columns_of(layout), stack=1.0, compiled_loss=compiled_loss)

    logits = [
        float(step_memory(replace(LLAMA, vocab=vocab), own, 96e9).parts["logits"])
        for vocab in (256000, 128000)
    ]

    assert logits[0] - logits[1] == pytest.approx(each * 262144 * 128000 / tp, rel=1e-9)


def test_fsdp_in_a_pipeline_keeps_parameters_whole_and_sums_gradients_in_fp32() -> None:
    layout = Layout(pp=2, dp=8, seq=2048, global_batch=16, zero_stage=3, recompute="full")
    columns = replace(columns_of(layout), stack=1.0)

    piped = step_memory(LLAMA, columns, 96e9)
    alone = step_memory(LLAMA, replace(columns, stack=0.0), 96e9)

    held = [
        stage_parameters(LLAMA, columns, stage_layers(LLAMA, columns), stage).dense
        for stage in ("first", "last")
    ]
    more = sum(float(piped.parts[part] - alone.parts[part]) for part in ("weights", "gradients"))
    assert more == pytest.approx(6 * max(held), rel=0.01)


def test_dualpipe_keeps_two_copies_of_the_parameters_and_shards_over_both() -> None:
    """DeepSeek-V3 report (arXiv 2412.19437), table 2: parameters 2x, activations p + 1."""
    plain = Layout(tp=8, pp=4, dp=2, global_batch=32, seq=8192)
    both_ways = replace(plain, schedule="dualpipe")

    one = stage_memory(LLAMA, columns_of(plain))["last"]
    two = stage_memory(LLAMA, columns_of(both_ways))["last"]

    ends = {
        stage: stage_parameters(
            LLAMA, columns_of(plain), stage_layers(LLAMA, columns_of(plain)), stage
        ).dense
        for stage in ("first", "last")
    }
    assert two["weights"] == pytest.approx(2.0 * sum(ends.values()))
    assert two["gradients"] == pytest.approx(2.0 * two["weights"])  # FP32 against 16 bit
    # 12 bytes a parameter, over two replicas of either copy
    assert two["optimizer"] == pytest.approx(12.0 * sum(ends.values()) / (2 * 2))
    assert two["activations"] > one["activations"]


def test_one_stage_needs_no_second_copy() -> None:
    plain = Layout(tp=8, dp=2, global_batch=32, seq=8192)

    one = step_memory(LLAMA, columns_of(plain), 80e9).parts
    two = step_memory(LLAMA, columns_of(replace(plain, schedule="dualpipe")), 80e9).parts

    assert two["weights"] == one["weights"]


def kept_bytes_a_token(model: ModelSpec, **run: float) -> float:
    columns = columns_of(
        Layout(micro_batch=1, global_batch=1, seq=4096, recompute="none", sequence_parallel=False),
        **run,
    )
    layer = moe_layer_bytes if model.experts else dense_layer_bytes
    return float(layer(model, columns)) / 4096


def test_in_fp8_inputs_of_products_are_kept_in_one_byte_and_the_cores_output_twice() -> None:
    h, f, heads, kv = 16384, 53248, 128 * 128, 8 * 128
    norms, core, logarithms = 4 * h, 2 * heads + 2 * kv, 4 * 128

    # two norms' inputs and outputs, q, k, v and the core's output, two products and a gate
    assert kept_bytes_a_token(LLAMA) == 2 * (norms + core + 3 * f) + logarithms
    fp8 = 2 * norms // 2 + norms // 2 + 2 * core + heads + 2 * 2 * f + f + logarithms
    assert kept_bytes_a_token(LLAMA, precision=2.0) == fp8
    fp4 = kept_bytes_a_token(LLAMA, precision=3.0)
    assert fp4 == pytest.approx(fp8 - (1 - 0.5625) * (norms // 2 + heads + f))


def test_pytorchs_own_products_in_fp8_keep_their_inputs_in_16_bit() -> None:
    eager = kept_bytes_a_token(LLAMA, stack=1.0)

    assert kept_bytes_a_token(LLAMA, stack=1.0, precision=2.0) == eager


def test_experts_keep_what_they_take_and_not_what_they_give() -> None:
    moe = ModelSpec(
        name="qwen3-30b-a3b", hidden=2048, vocab=151936, layers=48, ffn=6144, experts=128, top_k=8,
        expert_ffn=768, moe_layers=(True,) * 48,
        attention=Attention(heads=32, kv_heads=4, head_dim=128, v_head_dim=128),
    )  # fmt: skip

    attention = 2 * (4 * 2048 + 2 * 32 * 128 + 2 * 4 * 128) + 4 * 32
    routed = 2 * 8 * 2048 + 2 * 3 * 8 * 768
    assert kept_bytes_a_token(moe) == attention + routed + 8 * 128  # and the router's scores
    # Measured: 24.1 GB more for each micro-batch more (64 B200, NeMo 25.11), logits among them.
    logits = 6 * 151936
    assert 4096 * (48 * kept_bytes_a_token(moe) + logits) == pytest.approx(24.1e9, rel=0.04)
