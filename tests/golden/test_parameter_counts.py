"""Published parameter counts, each from the shape that the model's config.json states.

Totals given to the last digit are the sizes of the released checkpoints (the safetensors total
that the model's page shows, without MTP and without quantization scales); the others are rounded
as the paper or the model card rounds them. Cards count *active* parameters in two ways: with the
output head only (``head``) or with the input embedding as well (``both``).
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from planner.documents import document_from_text
from planner.model import ModelSpec
from topologies.model_reader import model_from_document, model_names, read_model


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    model: str
    total: float
    active: float = 0.0
    counts: str = "head"
    source: str


CATALOGUE = (
    Published(model="llama-3.1-405b", total=405_853_388_800, source="model page; paper: 405B"),
    Published(model="llama-3.1-70b", total=70_553_706_496, source="model page"),
    Published(model="llama-3.1-8b", total=8_030_261_248, source="model page"),
    Published(model="llama-2-7b", total=6_738_415_616, source="model page"),
    Published(model="llama-2-70b", total=68_976_648_192, source="model page"),
    Published(model="gpt3-175b", total=174_600e6, source="arXiv:2005.14165 table D.1: 174,600 M"),
    Published(model="qwen3-32b", total=32.8e9, source="Qwen3-32B card: 32.8B"),
    Published(
        model="qwen3-235b-a22b", total=235.1e9, active=22e9, source="Qwen3-235B-A22B card: 235B/22B"
    ),
    Published(
        model="qwen3-30b-a3b", total=30.5e9, active=3.3e9, counts="both",
        source="Qwen3-30B-A3B card: 30.5B/3.3B",
    ),
    Published(
        model="mixtral-8x7b", total=46_702_792_704, active=12.9e9, counts="both",
        source="model page; Mistral AI's announcement: 46.7B/12.9B",
    ),
    Published(
        model="mixtral-8x22b", total=141e9, active=39e9, counts="both",
        source="Mistral AI's announcement: 141B/39B",
    ),
    Published(
        model="deepseek-v3", total=671_026_419_200, active=36.6e9,
        source="README_WEIGHTS.md: 671B, 36.6B including 0.9B for the output head",
    ),
    Published(
        model="kimi-k2", total=1026e9, active=32e9, source="arXiv:2507.20534: 1.04T/32.6B; card 32B"
    ),
    Published(
        model="gpt-oss-120b", total=116.83e9, active=5.13e9,
        source="arXiv:2508.10925 table 1: 116.83B/5.13B, unembedding counted, embedding not",
    ),
    Published(
        model="llama-4-maverick", total=400e9, active=17e9, counts="both",
        source="Llama 4 card: 400B/17B",
    ),
)  # fmt: skip

LLAMA_LIKE = {"hidden_act": "silu", "rms_norm_eps": 1e-6, "tie_word_embeddings": False}

CONFIGS: dict[str, tuple[dict[str, object], Published]] = {
    entry[1].model: entry
    for entry in (
        (
            {"model_type": "mistral", "hidden_size": 4096, "intermediate_size": 14336,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
             "sliding_window": 4096, "vocab_size": 32000, "max_position_embeddings": 32768},
            Published(model="Mistral-7B", total=7_241_732_096, source="model page"),
        ),
        (
            {"model_type": "qwen2", "hidden_size": 3584, "intermediate_size": 18944,
             "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
             "vocab_size": 152064, "use_sliding_window": False, "sliding_window": 131072,
             "tie_word_embeddings": False},
            Published(model="Qwen2.5-7B", total=7_615_616_512, source="model page"),
        ),
        (
            {"model_type": "qwen2", "hidden_size": 8192, "intermediate_size": 29568,
             "num_attention_heads": 64, "num_hidden_layers": 80, "num_key_value_heads": 8,
             "vocab_size": 152064, "tie_word_embeddings": False},
            Published(model="Qwen2.5-72B", total=72_706_203_648, source="model page"),
        ),
        (
            {"model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
             "num_attention_heads": 14, "num_hidden_layers": 24, "num_key_value_heads": 2,
             "vocab_size": 151936, "tie_word_embeddings": True},
            Published(model="Qwen2.5-0.5B", total=494_032_768, source="model page"),
        ),
        (
            {"model_type": "phi3", "hidden_size": 3072, "intermediate_size": 8192,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
             "vocab_size": 32064, "sliding_window": 262144, "max_position_embeddings": 131072},
            Published(model="Phi-3.5-mini", total=3_821_079_552, source="model page"),
        ),
        (
            {"model_type": "llama", "hidden_size": 7168, "intermediate_size": 20480,
             "num_attention_heads": 56, "num_hidden_layers": 60, "num_key_value_heads": 8,
             "vocab_size": 64000, "tie_word_embeddings": False},
            Published(model="Yi-1.5-34B", total=34_388_917_248, source="model page"),
        ),
        (
            {"model_type": "internlm2", "bias": False, "hidden_size": 4096,
             "intermediate_size": 14336, "num_attention_heads": 32, "num_hidden_layers": 32,
             "num_key_value_heads": 8, "vocab_size": 92544, "tie_word_embeddings": False},
            Published(model="InternLM2.5-7B", total=7_737_708_544, source="model page"),
        ),
        (
            {"model_type": "cohere", "hidden_size": 4096, "intermediate_size": 14336,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
             "use_qk_norm": False, "vocab_size": 256000},
            Published(model="Aya-Expanse-8B", total=8_028_033_024, source="model page"),
        ),
        (
            {"model_type": "cohere", "hidden_size": 8192, "intermediate_size": 22528,
             "num_attention_heads": 64, "num_hidden_layers": 40, "num_key_value_heads": 64,
             "use_qk_norm": False, "vocab_size": 256000},
            Published(model="Command-R", total=35e9, source="model card: 35 billion"),
        ),
        (
            {"model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": None,
             "vocab_size": 51200, "qk_layernorm": False},
            Published(model="Phi-2", total=2.78e9, source="model page: 2.78B"),
        ),
        (
            {"model_type": "gemma2", "hidden_size": 4608, "intermediate_size": 36864,
             "num_attention_heads": 32, "num_hidden_layers": 46, "num_key_value_heads": 16,
             "head_dim": 128, "vocab_size": 256000, "sliding_window": 4096},
            Published(model="Gemma-2-27B", total=27.2e9, source="model page: 27.2B"),
        ),
        (
            {"model_type": "gemma3_text", "hidden_size": 5376, "intermediate_size": 21504,
             "num_attention_heads": 32, "num_hidden_layers": 62, "num_key_value_heads": 16,
             "head_dim": 128, "vocab_size": 262208, "sliding_window": 1024,
             "sliding_window_pattern": 6},
            Published(
                model="Gemma-3-27B", total=1_416e6 + 25_600e6,
                source="arXiv:2503.19786 table 1: 1,416 M embedding + 25,600 M",
            ),
        ),
        (
            {"model_type": "gpt2", "n_embd": 768, "n_head": 12, "n_layer": 12,
             "n_positions": 1024, "vocab_size": 50257},
            Published(model="GPT-2", total=124_439_808, source="model page: 124M"),
        ),
        (
            {"model_type": "bloom", "n_embed": 14336, "hidden_size": 14336, "n_head": 112,
             "n_layer": 70, "vocab_size": 250880},
            Published(
                model="BLOOM", total=176_247_271_424, source="BigScience's model card"
            ),
        ),
        (
            {"model_type": "opt", "hidden_size": 12288, "ffn_dim": 49152, "num_attention_heads": 96,
             "num_hidden_layers": 96, "vocab_size": 50272, "max_position_embeddings": 2048,
             "word_embed_proj_dim": 12288},
            Published(model="OPT-175B", total=175e9, source="arXiv:2205.01068 table 1: 175B"),
        ),
        (
            {"model_type": "gpt_neox", "hidden_size": 6144, "intermediate_size": 24576,
             "num_attention_heads": 64, "num_hidden_layers": 44, "vocab_size": 50432,
             "tie_word_embeddings": False},
            Published(
                model="GPT-NeoX-20B", total=20_554_567_680,
                source="model card: 20554567680 parameters",
            ),
        ),
        (
            {"model_type": "falcon", "hidden_size": 4544, "num_attention_heads": 71,
             "num_hidden_layers": 32, "vocab_size": 65024, "bias": False, "multi_query": True,
             "parallel_attn": True, "new_decoder_architecture": False},
            Published(
                model="Falcon-7B", total=7.22e9 - 0.295e9,
                source="model page: 7.22B with a second copy of the tied embedding (0.295B)",
            ),
        ),
        (
            {"model_type": "starcoder2", "hidden_size": 3072, "intermediate_size": 12288,
             "num_attention_heads": 24, "num_hidden_layers": 30, "num_key_value_heads": 2,
             "vocab_size": 49152, "use_bias": True},
            Published(model="StarCoder2-3B", total=3.03e9, source="model page: 3.03B"),
        ),
        (
            {"model_type": "olmo", "hidden_size": 4096, "intermediate_size": 11008,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
             "vocab_size": 50304, "tie_word_embeddings": False},
            Published(
                model="OLMo-7B", total=6_888_095_744,
                source="arXiv:2402.00838: 6.9B; counted by Hugging Face's class",
            ),
        ),
        (
            {"model_type": "olmo2", "hidden_size": 4096, "intermediate_size": 11008,
             "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 32,
             "vocab_size": 100352, "tie_word_embeddings": False},
            Published(
                model="OLMo-2-7B", total=7_298_617_344,
                source="arXiv:2501.00656: 7B; counted by Hugging Face's class",
            ),
        ),
        (
            {"model_type": "olmo2", "hidden_size": 5120, "intermediate_size": 27648,
             "num_attention_heads": 40, "num_hidden_layers": 64, "num_key_value_heads": 8,
             "vocab_size": 100352, "tie_word_embeddings": False},
            Published(
                model="OLMo-2-32B", total=32_234_279_936,
                source="model page: 32B; counted by Hugging Face's class",
            ),
        ),
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
        (
            {"model_type": "phi3", "hidden_size": 5120, "intermediate_size": 17920,
             "num_attention_heads": 40, "num_hidden_layers": 40, "num_key_value_heads": 10,
             "vocab_size": 100352, "sliding_window": None, "tie_word_embeddings": False},
            Published(model="Phi-4", total=14_659_507_200, source="model page: 14.7B"),
        ),
    )
}  # fmt: skip


def check(model: ModelSpec, published: Published) -> None:
    assert model.parameters() == pytest.approx(published.total, rel=0.005)
    if published.total % 1000:
        assert model.parameters() == published.total
    if published.active:
        counted = {
            "head": model.active_parameters(), "both": model.active_parameters_with_lookup(),
        }[published.counts]  # fmt: skip
        digit = next(digit for digit in (1e9, 1e8, 1e7) if published.active % digit == 0)
        assert -digit / 2 <= counted - published.active < digit  # rounded or cut off


@pytest.mark.parametrize("published", CATALOGUE, ids=lambda published: published.model)
def test_a_catalogue_model_has_the_published_parameters(published: Published) -> None:
    check(read_model(published.model), published)


def test_every_catalogue_model_is_held_against_a_published_count() -> None:
    assert {published.model for published in CATALOGUE} == {*model_names()}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_json_gives_the_published_parameters(name: str) -> None:
    config, published = CONFIGS[name]

    document = document_from_text(json.dumps(config), name=f"{name}.json", kind="json")

    check(model_from_document(document, name=name), published)


def test_deepseek_v3_has_its_published_mtp_module() -> None:
    """README_WEIGHTS.md: 11.5B unique parameters; 256 + 1 experts alone make 11.3B of it."""
    assert read_model("deepseek-v3").mtp_parameters == pytest.approx(11.5e9, rel=0.01)


def test_training_llama_405b_takes_the_published_flops() -> None:
    """arXiv:2407.21783 §3.2: 3.8e25 FLOPs for 15.6T tokens (6 x parameters x tokens)."""
    model = read_model("llama-3.1-405b")

    assert 6 * model.parameters() * 15.6e12 == pytest.approx(3.8e25, rel=0.005)
    assert 3 * model.forward_flops_per_token(8192.0) * 15.6e12 == pytest.approx(3.8e25, rel=0.05)


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

    model = model_from_document(
        document_from_text(json.dumps(config), name="glm.json", kind="json"), name="glm-4.5"
    )

    tables = model.embedding_parameters + model.head_parameters
    assert model.parameters() + model.mtp_parameters - tables == pytest.approx(355e9, rel=0.002)
    assert model.parameters() + model.mtp_parameters + tables == 358_337_791_296
    assert model.active_parameters() == pytest.approx(32e9, rel=0.03)
