"""Parameters of small models of Hugging Face's classes, counted by the classes themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from planner.documents import document_from_text
from topologies.hf_families import FAMILIES
from topologies.hf_hub_classes import HUB_CLASSES
from topologies.model_reader import model_from_document

torch = pytest.importorskip("torch")
auto = pytest.importorskip("transformers.models.auto")

SMALL = {
    "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "hidden_size": 256,
    "intermediate_size": 512, "vocab_size": 1000, "n_layer": 4, "n_head": 8, "n_embd": 256,
    "n_positions": 128, "max_position_embeddings": 128, "moe_intermediate_size": 96,
    "num_experts": 8, "num_local_experts": 8, "n_routed_experts": 8, "num_experts_per_tok": 2,
    "shared_expert_intermediate_size": 128, "q_lora_rank": 64, "kv_lora_rank": 32,
    "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, "v_head_dim": 16, "n_group": 2, "topk_group": 1,
    "first_k_dense_replace": 1, "d_model": 256, "n_heads": 8, "n_layers": 4, "expansion_ratio": 4,
    "max_seq_len": 128, "ffn_dim": 512, "word_embed_proj_dim": 256, "head_dim": 32,
    "intermediate_size_mlp": 640, "moe_num_experts": 8, "moe_k": 2, "moe_num_shared_experts": 1,
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
NOT_MODELLED = {
    "apertus": "its activation has two parameters of its own a layer",
    "gptj": "a bias on the output matrix", "phi": "a bias on the output matrix",
    "deepseek_v32": "the indexer of sparse attention", "glm_moe_dsa": "that indexer, too",
    "gemma3": "a tower for images",
    "gpt_neo": "refused: its heads are called otherwise",
    "hunyuan_v1_moe": "refused: the class keeps no width of an expert, published files do",
}  # fmt: skip
KINDS = sorted({*FAMILIES} - {*HUB_CLASSES} - {*NOT_MODELLED})


def small(kind: str, **given: Any) -> Any:
    cls = auto.CONFIG_MAPPING[kind]
    known = cls().to_dict()
    inner = known.get("text_config")
    keys = inner if isinstance(inner, dict) else known
    chosen = {k: v for k, v in SMALL.items() if k in keys} | given
    if "layer_types" in keys:
        chosen["layer_types"] = None
    return cls(text_config=chosen) if isinstance(inner, dict) else cls(**chosen)


def counted(config: Any) -> int:
    """Return what the class counts, and the biases of routers, which it keeps apart."""
    with torch.device("meta"):
        model = auto.modeling_auto.AutoModelForCausalLM.from_config(config)
    biases = (held for name, held in model.named_buffers() if "correction" in name)
    return sum(one.numel() for one in (*model.parameters(), *biases))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore")
def test_a_class_has_the_parameters_that_it_counts_itself(kind: str) -> None:
    known = auto.CONFIG_MAPPING[kind]().to_dict()
    for switched in ({}, {"use_qk_norm": True}, {"qk_layernorm": True}):
        if not switched.keys() <= known.keys():
            continue
        try:
            config = small(kind, **switched)
            theirs = counted(config)
        except (AssertionError, AttributeError, TypeError, ValueError) as error:
            pytest.skip(f"the class makes no such model: {str(error)[:80]}")

        text = json.dumps(config.to_dict(), default=str)
        ours = model_from_document(document_from_text(text, name=kind, kind="json"), name=kind)

        assert ours.parameters() == theirs
