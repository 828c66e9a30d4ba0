"""Published parameter counts of mixtures of experts, from the shape that a config.json states."""

from __future__ import annotations

import json

import pytest

from tests.golden.published_counts import Published, by_model, check, model_of

CONFIGS = by_model(
    (
        (
            {"model_type": "dbrx", "d_model": 6144, "n_heads": 48, "n_layers": 40,
             "max_seq_len": 32768, "vocab_size": 100352, "attn_config": {"kv_n_heads": 8},
             "ffn_config": {"ffn_hidden_size": 10752, "moe_num_experts": 16, "moe_top_k": 4},
             "tie_word_embeddings": False},
            Published(
                model="DBRX", total=132e9, active=36e9, counts="both", source="model card: 132B/36B"
            ),
        ),
        (
            {"model_type": "deepseek_v2", "hidden_size": 5120, "intermediate_size": 12288,
             "moe_intermediate_size": 1536, "num_attention_heads": 128, "num_hidden_layers": 60,
             "num_key_value_heads": 128, "q_lora_rank": 1536, "kv_lora_rank": 512,
             "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128,
             "n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6,
             "first_k_dense_replace": 1, "moe_layer_freq": 1, "n_group": 8, "topk_group": 3,
             "vocab_size": 102400, "tie_word_embeddings": False},
            Published(
                model="DeepSeek-V2", total=235_741_434_880, active=21e9,
                source="model page; arXiv:2405.04434: 236B/21B",
            ),
        ),
        (
            {"model_type": "minimax_m2", "hidden_size": 3072, "intermediate_size": 1536,
             "num_attention_heads": 48, "head_dim": 128, "num_hidden_layers": 62,
             "num_key_value_heads": 8, "num_local_experts": 256, "num_experts_per_tok": 8,
             "attn_type_list": [1] * 62, "use_qk_norm": True, "use_routing_bias": True,
             "vocab_size": 200064, "num_mtp_modules": 3, "tie_word_embeddings": False},
            Published(model="MiniMax-M2", total=229e9, active=10e9, source="model page: 229B/10B"),
        ),
        (
            {"model_type": "phimoe", "hidden_size": 4096, "intermediate_size": 6400,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
             "num_local_experts": 16, "num_experts_per_tok": 2, "attention_bias": True,
             "sliding_window": 131072, "max_position_embeddings": 131072, "vocab_size": 32064,
             "tie_word_embeddings": False},
            Published(
                model="Phi-3.5-MoE", total=41.9e9, active=6.6e9, counts="both",
                source="model card: 16x3.8B, 6.6B active; page: 41.9B",
            ),
        ),
        (
            {"model_type": "qwen2_moe", "hidden_size": 2048, "intermediate_size": 5632,
             "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
             "num_attention_heads": 16, "num_hidden_layers": 24, "num_key_value_heads": 16,
             "num_experts": 60, "num_experts_per_tok": 4, "decoder_sparse_step": 1,
             "vocab_size": 151936, "tie_word_embeddings": False},
            Published(
                model="Qwen1.5-MoE-A2.7B", total=14.3e9, active=2.7e9, counts="both",
                source="model card: 14.3B/2.7B",
            ),
        ),
        (
            {"model_type": "olmoe", "hidden_size": 2048, "intermediate_size": 1024,
             "num_attention_heads": 16, "num_hidden_layers": 16, "num_key_value_heads": 16,
             "num_experts": 64, "num_experts_per_tok": 8, "vocab_size": 50304,
             "tie_word_embeddings": False},
            Published(
                model="OLMoE-1B-7B", total=6_919_161_856, active=1.3e9, counts="both",
                source="arXiv:2409.02060: 6.9B/1.3B; counted by Hugging Face's class",
            ),
        ),
        (
            {"model_type": "qwen3_moe", "hidden_size": 6144, "intermediate_size": 8192,
             "moe_intermediate_size": 2560, "num_attention_heads": 96, "head_dim": 128,
             "num_hidden_layers": 62, "num_key_value_heads": 8, "num_experts": 160,
             "num_experts_per_tok": 8, "shared_expert_intermediate_size": 0,
             "decoder_sparse_step": 1, "mlp_only_layers": [], "qkv_bias": False,
             "vocab_size": 151936, "tie_word_embeddings": False},
            Published(
                model="Qwen3-Coder-480B-A35B", total=480e9, active=35e9, counts="both",
                source="model card: 480B/35B",
            ),
        ),
        (
            {"model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880,
             "num_attention_heads": 64, "head_dim": 64, "num_hidden_layers": 24,
             "num_key_value_heads": 8, "num_local_experts": 32, "num_experts_per_tok": 4,
             "attention_bias": True, "sliding_window": 128, "vocab_size": 201088,
             "layer_types": ["sliding_attention", "full_attention"] * 12,
             "tie_word_embeddings": False},
            Published(
                model="gpt-oss-20b", total=20.91e9, active=3.61e9,
                source="gpt-oss model card table 1: 20.91B/3.61B",
            ),
        ),
        (
            {"model_type": "ernie4_5_moe", "hidden_size": 8192, "intermediate_size": 28672,
             "moe_intermediate_size": 3584, "num_attention_heads": 64, "num_hidden_layers": 54,
             "num_key_value_heads": 8, "moe_num_experts": 64, "moe_k": 8,
             "moe_num_shared_experts": 0, "moe_layer_start_index": 3, "moe_layer_end_index": 53,
             "moe_layer_interval": 1, "use_bias": False, "vocab_size": 103424,
             "tie_word_embeddings": False},
            Published(
                model="ERNIE-4.5-300B-A47B", total=300e9, active=47e9, source="model card: 300B/47B"
            ),
        ),
        (
            {"model_type": "hunyuan_v1_moe", "hidden_size": 4096, "intermediate_size": 3072,
             "moe_intermediate_size": [3072] * 32, "moe_topk": [8] * 32, "num_experts": 64,
             "num_shared_expert": [1] * 32, "num_attention_heads": 32, "num_hidden_layers": 32,
             "num_key_value_heads": 8, "head_dim": 128, "attention_bias": False,
             "use_qk_norm": True, "vocab_size": 128167, "tie_word_embeddings": True},
            Published(
                model="Hunyuan-A13B", total=80e9, active=13e9, source="model card: 80B/13B"
            ),
        ),
    )
)  # fmt: skip


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_json_gives_the_published_parameters(name: str) -> None:
    one = CONFIGS[name]

    check(model_of(one.text, name), one.published)


def test_glm_4_5_has_its_published_parameters_in_both_of_its_conventions() -> None:
    """arXiv:2508.06471 table 1: 355B/32B with MTP, without embedding and head.

    The checkpoint's 358,337,791,296 hold a second copy of embedding and head in the MTP layer.
    """
    config = {
        "model_type": "glm4_moe", "hidden_size": 5120, "intermediate_size": 12288,
        "moe_intermediate_size": 1536, "num_attention_heads": 96, "head_dim": 128,
        "num_hidden_layers": 92, "num_key_value_heads": 8, "attention_bias": True,
        "use_qk_norm": True, "n_routed_experts": 160, "n_shared_experts": 1,
        "num_experts_per_tok": 8, "first_k_dense_replace": 3, "n_group": 1, "topk_group": 1,
        "num_nextn_predict_layers": 1, "vocab_size": 151552, "tie_word_embeddings": False,
    }  # fmt: skip

    model = model_of(json.dumps(config), "glm-4.5")

    tables = model.embedding_parameters + model.head_parameters
    assert model.parameters() + model.mtp_parameters - tables == pytest.approx(355e9, rel=0.002)
    assert model.parameters() + model.mtp_parameters + tables == 358_337_791_296
    assert model.active_parameters() == pytest.approx(32e9, rel=0.03)
