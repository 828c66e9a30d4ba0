"""Each class of Hugging Face models by its own keys: attention, experts, windows."""

from __future__ import annotations

import pytest

from tests.hf_configs import DEEPSEEK, GPT_OSS, LLAMA, read, without


def test_deepseek_has_latent_attention_groups_shared_expert_and_mtp() -> None:
    model = read(DEEPSEEK)

    assert model.attention.kind == "mla"
    assert (model.attention.head_dim, model.attention.kv_heads) == (12, 8)
    assert (model.router_groups, model.router_top_groups, model.mtp_layers) == (2, 1, 1)
    assert (model.shared_expert_ffn, model.dense_layer_count) == (32, 1)
    assert model.router_bias


def test_null_shared_experts_and_null_query_rank_mean_none() -> None:
    model = read(DEEPSEEK | {"n_shared_experts": None, "q_lora_rank": None})

    assert model.shared_expert_ffn == 0
    assert model.attention.q_lora_rank == 0


def test_llama_4_alternates_and_has_a_shared_expert_that_no_key_mentions() -> None:
    config = LLAMA | {
        "model_type": "llama4_text", "num_local_experts": 8, "num_experts_per_tok": 1,
        "intermediate_size_mlp": 256, "interleave_moe_layer_step": 2, "attention_chunk_size": 512,
    }  # fmt: skip

    model = read(config)

    assert model.moe_layers == (False, True, False, True)
    assert (model.ffn, model.expert_ffn, model.shared_expert_ffn) == (256, 128, 128)
    assert model.windows == (512, 512, 512, 0)
    assert "chunks of 512" in model.assumed["windows"]


def test_gpt_oss_has_biases_sinks_and_windows_on_every_other_layer() -> None:
    model = read(GPT_OSS)

    assert model.windows == (128, 0, 128, 0)
    assert model.attention.sinks
    assert model.attention.out_bias
    assert model.expert_bias
    assert model.router_bias


def test_qwen_2_has_biases_on_q_k_v_that_no_key_mentions() -> None:
    for stated in ({}, {"qkv_bias": True}):
        model = read(LLAMA | {"model_type": "qwen2"} | stated)

        assert model.attention.qkv_bias
        assert not model.attention.out_bias
    assert read(LLAMA | {"attention_bias": True}).attention.out_bias


def test_a_window_that_is_switched_off_is_no_window() -> None:
    off = LLAMA | {"model_type": "qwen2", "sliding_window": 512, "use_sliding_window": False}
    on = off | {"use_sliding_window": True, "max_window_layers": 3}

    assert read(off).windows == ()
    assert read(without(off, "use_sliding_window")).windows == ()
    assert read(on).windows == (0, 0, 0, 512)


@pytest.mark.parametrize(
    ("kind", "windows"),
    [
        ("mistral", (512,) * 4),
        ("gemma2", (512, 0, 512, 0)),
        ("cohere2", (512, 512, 512, 0)),
        ("gemma3_text", (512, 512, 512, 512)),
        ("llama", ()),
    ],
)
def test_each_class_has_its_rule_for_windows(kind: str, windows: tuple[int, ...]) -> None:
    assert read(LLAMA | {"model_type": kind, "sliding_window": 512}).windows == windows


def test_a_window_as_wide_as_the_longest_sequence_is_no_window() -> None:
    assert read(LLAMA | {"model_type": "mistral", "sliding_window": 4096}).windows == ()
    assert read(LLAMA | {"model_type": "mistral", "sliding_window": None}).windows == ()


def test_sparse_attention_is_taken_as_a_window_and_said_so() -> None:
    model = read(DEEPSEEK | {"model_type": "deepseek_v32", "index_topk": 256})

    assert model.windows == (256,) * 4
    assert "indexer" in model.assumed["windows"]


def test_old_keys_of_gpt_2_opt_bloom_and_falcon_are_known() -> None:
    gpt2 = read({
        "model_type": "gpt2", "n_embd": 64, "n_head": 8, "n_layer": 2, "n_positions": 128,
        "vocab_size": 100, "n_inner": None,
    })  # fmt: skip
    opt = read(without(LLAMA, "intermediate_size") | {"model_type": "opt", "ffn_dim": 128})
    falcon = read({
        "model_type": "RefinedWeb", "hidden_size": 64, "n_head": 8, "n_head_kv": 2, "n_layer": 2,
        "vocab_size": 100, "bias": False, "alibi": False, "parallel_attn": True,
    })  # fmt: skip

    assert (gpt2.learned_positions, gpt2.ffn, gpt2.gated_mlp) == (128, 256, False)
    assert gpt2.tied_embeddings
    assert (opt.learned_positions, opt.ffn) == (4098, 128)
    assert (falcon.attention.kv_heads, falcon.norms_per_layer, falcon.ffn) == (2, 2, 256)
    assert falcon.parallel_block


def test_parallel_blocks_are_known_as_such() -> None:
    assert read(LLAMA | {"model_type": "cohere"}).parallel_block
    assert read(LLAMA | {"model_type": "gpt_neox"}).parallel_block
    serial = LLAMA | {"model_type": "gpt_neox", "use_parallel_residual": False}
    assert not read(serial).parallel_block
    assert not read(LLAMA).parallel_block


def test_the_keys_of_deepseeks_own_inference_code_are_known() -> None:
    model = read({
        "vocab_size": 129280, "dim": 7168, "inter_dim": 18432, "moe_inter_dim": 2048,
        "n_layers": 61, "n_dense_layers": 3, "n_heads": 128, "n_routed_experts": 256,
        "n_shared_experts": 1, "n_activated_experts": 8, "n_expert_groups": 8,
        "n_limited_groups": 4, "q_lora_rank": 1536, "kv_lora_rank": 512, "qk_nope_head_dim": 128,
        "qk_rope_head_dim": 64, "v_head_dim": 128, "dtype": "fp8",
    })  # fmt: skip

    assert model.parameters() == 671_026_419_200
    assert "inference code" in model.assumed["model_type"]


def test_the_keys_of_llamas_own_params_json_are_known() -> None:
    model = read({
        "dim": 4096, "ffn_dim_multiplier": 1.3, "multiple_of": 1024, "n_heads": 32,
        "n_kv_heads": 8, "n_layers": 32, "norm_eps": 1e-05, "rope_theta": 500000.0,
        "vocab_size": 128256,
    })  # fmt: skip

    assert model.parameters() == 8_030_261_248
