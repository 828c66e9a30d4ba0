"""Small Hugging Face configs of several classes, and how the tests read them."""

from __future__ import annotations

import json

import pytest

from planner.documents import document_from_text
from planner.errors import SpecError
from planner.model import ModelSpec
from topologies.model_reader import model_from_document

LLAMA: dict[str, object] = {
    "model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 4,
    "num_attention_heads": 8, "num_key_value_heads": 2, "vocab_size": 100, "hidden_act": "silu",
    "rms_norm_eps": 1e-5, "max_position_embeddings": 4096, "tie_word_embeddings": False,
}  # fmt: skip
DEEPSEEK = LLAMA | {
    "model_type": "deepseek_v3", "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 8, "n_shared_experts": 1,
    "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1,
    "moe_layer_freq": 1, "n_group": 2, "topk_group": 1, "num_nextn_predict_layers": 1,
}  # fmt: skip
QWEN_MOE = LLAMA | {
    "model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2,
    "moe_intermediate_size": 32, "decoder_sparse_step": 1, "mlp_only_layers": [],
}  # fmt: skip
MIXTRAL = LLAMA | {"model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
GPT_OSS = LLAMA | {
    "model_type": "gpt_oss", "num_local_experts": 8, "num_experts_per_tok": 2,
    "experts_per_token": 2, "sliding_window": 128, "head_dim": 16, "attention_bias": True,
    "layer_types": ["sliding_attention", "full_attention"] * 2,
}  # fmt: skip


def read(config: object) -> ModelSpec:
    document = document_from_text(json.dumps(config), name="config.json", kind="json")
    return model_from_document(document, name="test")


def faults(config: object) -> str:
    with pytest.raises(SpecError) as caught:
        read(config)
    return str(caught.value)


def without(config: dict[str, object], *names: str) -> dict[str, object]:
    return {key: value for key, value in config.items() if key not in names}
