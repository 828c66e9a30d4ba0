"""A model's shape, held against sums written out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import SpecError
from planner.model import Attention, ModelSpec, mean_keys


def small(**changes: object) -> ModelSpec:
    fields: dict[str, object] = {
        "name": "small", "hidden": 8, "vocab": 10, "layers": 3, "ffn": 32,
        "attention": Attention(heads=4, kv_heads=2, head_dim=2, v_head_dim=2),
    }  # fmt: skip
    return ModelSpec(**(fields | changes))  # type: ignore[arg-type]


def small_moe(**changes: object) -> ModelSpec:
    fields: dict[str, object] = {
        "experts": 4, "top_k": 2, "expert_ffn": 16, "moe_layers": (False, True, True),
    }  # fmt: skip
    return small(**(fields | changes))


def test_a_dense_layer_is_attention_norms_and_three_matrices() -> None:
    model = small()

    assert model.attention_parameters == 8 * 8 + 2 * (8 * 4) + 8 * 8
    assert model.dense_layer_parameters == 192 + 2 * 8 + 3 * 8 * 32
    assert model.parameters() == 3 * model.dense_layer_parameters + 2 * 10 * 8 + 8


def test_a_model_without_gate_and_with_biases_has_two_matrices_and_their_biases() -> None:
    model = small(gated_mlp=False, mlp_bias=True, norm_bias=True)

    assert model.dense_ffn_parameters == 2 * 8 * 32 + 32 + 8
    assert model.norm_parameters == 2 * 2 * 8
    assert model.final_norm_parameters == 2 * 8


def test_tied_embeddings_are_counted_once_and_are_active_as_the_head() -> None:
    apart, tied = small(), small(tied_embeddings=True)

    assert apart.parameters() - tied.parameters() == 80
    assert tied.active_parameters() == tied.parameters()
    assert apart.active_parameters() == apart.parameters() - 80
    assert apart.active_parameters_with_lookup() == apart.parameters()
    assert tied.active_parameters_with_lookup() == tied.parameters()


def test_a_token_meets_its_top_k_experts_and_the_shared_ones() -> None:
    model = small_moe(shared_expert_ffn=5, shared_expert_gate=True, router_bias=True)

    assert model.expert_parameters == 3 * 8 * 16
    assert model.router_parameters == 4 * 8 + 4
    assert model.shared_expert_parameters == 3 * 8 * 5 + 8
    assert model.moe_layer_parameters() - model.moe_layer_parameters(2) == 2 * 384
    assert model.parameters() - model.active_parameters() == 80 + 2 * 2 * 384


def test_an_expert_parallel_rank_holds_its_share_of_the_experts() -> None:
    model = small_moe()

    assert model.moe_layer_parameters(1) == model.moe_layer_shared_parameters + 384
    assert model.moe_layer_parameters(0) == model.moe_layer_shared_parameters


def test_an_mtp_layer_adds_a_layer_a_projection_and_three_norms() -> None:
    model = small_moe(mtp_layers=2)

    assert model.mtp_parameters == 2 * (model.moe_layer_parameters() + 2 * 64 + 3 * 8)


def test_latent_attention_compresses_query_and_key_value() -> None:
    attention = Attention(
        kind="mla", heads=4, kv_heads=4, head_dim=6, v_head_dim=3, q_lora_rank=7, kv_lora_rank=5,
        rope_head_dim=2, qkv_bias=True,
    )  # fmt: skip
    plain_query = Attention(
        kind="mla", heads=4, kv_heads=4, head_dim=6, v_head_dim=3, kv_lora_rank=5, rope_head_dim=2
    )

    down, up, out = 8 * 7 + 8 * (5 + 2), 7 * 4 * 6 + 5 * 4 * (4 + 3), 4 * 3 * 8
    assert attention.matrix_parameters(8) == down + up + out
    assert attention.vector_parameters(8) == (7 + 5) + (7 + 5 + 2)
    assert plain_query.matrix_parameters(8) == 8 * 24 + 8 * 7 + 5 * 28 + 96


def test_sinks_and_head_norms_are_counted() -> None:
    bare = Attention(heads=4, kv_heads=2, head_dim=2, v_head_dim=2)
    dressed = Attention(
        heads=4, kv_heads=2, head_dim=2, v_head_dim=2, qk_norm=True, sinks=True, out_bias=True,
        qkv_bias=True,
    )  # fmt: skip

    assert bare.vector_parameters(8) == 0
    assert dressed.vector_parameters(8) == 2 * 2 + 4 + 8 + (8 + 4 + 4)


@pytest.mark.parametrize(("seq", "window"), [(1, 0), (7, 0), (7, 3), (7, 7), (7, 9), (100, 13)])
def test_mean_keys_is_the_mean_over_every_query(seq: int, window: int) -> None:
    seen = [min(query, window or query) for query in range(1, seq + 1)]

    assert mean_keys(float(seq), window) == pytest.approx(sum(seen) / seq)


def test_forward_flops_are_two_a_weight_and_four_a_key() -> None:
    model = small_moe(windows=(0, 4, 0))
    matrices = (
        3 * 192 + 3 * 8 * 32 + 2 * (2 * 3 * 8 * 16 + 4 * 8) + 80
    )  # attention, dense, MoE, head

    assert model.matrix_parameters() == matrices
    keys = 2 * mean_keys(16.0, 0) + mean_keys(16.0, 4)
    assert model.forward_flops_per_token(16.0) == pytest.approx(2 * matrices + 2 * 4 * 4 * keys)


def test_forward_flops_broadcast_over_sequences() -> None:
    model = small(windows=(0, 4, 0))

    both = model.forward_flops_per_token(np.array([16.0, 64.0]))

    assert both[0] == model.forward_flops_per_token(16.0)
    assert both[1] == model.forward_flops_per_token(64.0)


def test_every_impossible_number_is_named_at_once() -> None:
    with pytest.raises(SpecError) as caught:
        small(hidden=0, vocab=-1, layers=2.5, ffn=True)

    assert len(caught.value.faults) == 4
    assert "small: hidden=0: expected 1 to 16,777,216" in caught.value.faults


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"moe_layers": (True,)}, "moe_layers has 1 entries for 3 layers"),
        ({"windows": (1, 2)}, "windows has 2 entries for 3 layers"),
        ({"windows": (1, 2, -3)}, "windows[2]=-3"),
        ({"top_k": 2}, "top_k=2: a model with experts=0 has none"),
        ({"shared_expert_ffn": 2}, "shared_expert_ffn=2"),
        ({"ffn": 0}, "ffn=0: expected the width of the 3 dense layers"),
        ({"layers": 10**9}, "layers=1000000000"),
    ],
)
def test_a_dense_model_refuses(changes: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError, match="small: ") as caught:
        small(**changes)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"moe_layers": ()}, "moe_layers flags no layer, but experts=4"),
        ({"top_k": 5}, "top_k=5: expected 1 to experts=4"),
        ({"top_k": 0}, "top_k=0"),
        ({"expert_ffn": 0}, "expert_ffn=0"),
        ({"router_groups": 3}, "router_groups=3 does not divide experts=4"),
        ({"router_groups": 2, "router_top_groups": 3}, "router_top_groups=3 exceeds"),
        ({"router_top_groups": 3}, "router_top_groups=3 exceeds router_groups=0"),
        ({"router_groups": 4, "router_top_groups": 1}, "hold 1 experts, fewer than top_k=2"),
    ],
)
def test_a_mixture_of_experts_refuses(changes: dict[str, object], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        small_moe(**changes)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kv_heads": 3}, "kv_heads=3 does not divide heads=4"),
        ({"kind": "mqa"}, "kind='mqa': expected 'gqa' or 'mla'"),
        ({"kv_lora_rank": 4}, "kv_lora_rank=4: only kind 'mla' has one"),
        ({"kind": "mla", "kv_heads": 4}, "kv_lora_rank=0"),
        ({"kind": "mla"}, "kv_heads=2: MLA has as many as heads=4"),
        ({"heads": 0}, "heads=0"),
    ],
)
def test_an_attention_refuses(changes: dict[str, object], message: str) -> None:
    fields: dict[str, object] = {"heads": 4, "kv_heads": 2, "head_dim": 2, "v_head_dim": 2}

    with pytest.raises(SpecError, match="attention: ") as caught:
        Attention(**(fields | changes))  # type: ignore[arg-type]

    assert message in str(caught.value)


def test_what_was_assumed_does_not_tell_models_apart() -> None:
    stated, assumed = small(), small(assumed={"kv_heads": "not stated"})

    assert stated == assumed
    assert hash(stated) == hash(assumed)
