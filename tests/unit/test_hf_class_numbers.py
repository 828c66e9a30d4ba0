"""What a Hugging Face class defaults where the file leaves the key out, and that it is said."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from tests.hf_configs import DEEPSEEK, LLAMA, MIXTRAL, read, without


def test_an_absent_number_of_kv_heads_is_that_of_the_class_and_null_is_as_many_as_heads() -> None:
    absent = read(without(MIXTRAL, "num_key_value_heads") | {"num_attention_heads": 16})
    null = read(MIXTRAL | {"num_key_value_heads": None, "num_attention_heads": 16})

    assert absent.attention.kv_heads == 8  # MixtralConfig().num_key_value_heads
    assert "transformers" in absent.assumed["kv_heads"]
    assert null.attention.kv_heads == 16


def test_a_class_number_that_does_not_divide_the_heads_is_not_taken() -> None:
    config = without(MIXTRAL, "num_key_value_heads") | {"num_attention_heads": 4}

    assert read(config).attention.kv_heads == 4


def test_an_absent_head_width_is_that_of_the_class() -> None:
    gemma = read(LLAMA | {"model_type": "gemma2", "query_pre_attn_scalar": 256})
    llama = read(LLAMA)

    assert gemma.attention.head_dim == 256  # Gemma2Config().head_dim
    assert "head_dim" in gemma.assumed
    assert llama.attention.head_dim == 64 // 8
    assert "head_dim" not in llama.assumed


def test_the_first_dense_layers_and_the_shared_expert_of_deepseek_v3_are_those_of_its_class() -> (
    None
):
    config = without(DEEPSEEK, "first_k_dense_replace", "n_shared_experts")

    model = read(config)

    assert model.moe_layers == (False, False, False, True)  # DeepseekV3Config: 3
    assert model.shared_expert_ffn == 32  # one expert's width
    assert {"first_dense_layers", "shared_experts"} <= set(model.assumed)


@pytest.mark.parametrize(
    ("kind", "window"), [("mistral", 4096), ("gemma2", 4096), ("llama", 0), ("mixtral", 0)]
)
def test_an_absent_window_is_that_of_the_class(kind: str, window: int) -> None:
    base = MIXTRAL if kind == "mixtral" else LLAMA
    config = base | {"model_type": kind, "max_position_embeddings": 100_000}

    model = read(config)

    assert max(model.windows, default=0) == window
    assert ("sliding_window" in model.assumed) == (window > 0)
    assert read(config | {"sliding_window": None}).windows == ()


def test_smollm3_ties_its_embeddings_and_glm_has_biases_unless_the_file_says_otherwise() -> None:
    untold = without(LLAMA, "tie_word_embeddings")

    assert read(untold | {"model_type": "smollm3"}).tied_embeddings
    assert read(LLAMA | {"model_type": "glm"}).attention.qkv_bias
    assert not read(LLAMA | {"model_type": "glm", "attention_bias": False}).attention.qkv_bias


def test_the_names_of_layers_in_newer_files_are_read() -> None:
    kinds = ["dense", "sparse", "sparse", "dense"]
    config = without(DEEPSEEK, "first_k_dense_replace", "moe_layer_freq")
    indexed = {
        "model_type": "deepseek_v32", "index_topk": 128, "layer_types": ["indexed_attention"] * 4,
    }  # fmt: skip

    model = read(config | {"mlp_layer_types": kinds} | indexed)

    assert model.moe_layers == (False, True, True, False)
    assert model.windows == (128,) * 4


def test_ernies_last_moe_layer_may_be_minus_one() -> None:
    config = LLAMA | {
        "model_type": "ernie4_5_moe", "moe_num_experts": 8, "moe_k": 2,
        "moe_intermediate_size": 32, "moe_layer_start_index": 1, "moe_layer_end_index": -1,
    }  # fmt: skip

    assert read(config).moe_layers == (False, True, True, True)


def test_gpt_bigcode_has_one_key_value_head() -> None:
    config = {
        "model_type": "gpt_bigcode", "n_embd": 64, "n_layer": 2, "n_head": 8, "vocab_size": 100,
        "n_positions": 128,
    }  # fmt: skip

    assert read(config).attention.kv_heads == 1
    assert read(config | {"multi_query": False}).attention.kv_heads == 8


def test_biases_that_only_the_class_says_are_listed_as_assumed() -> None:
    untold = LLAMA | {"model_type": "glm"}

    assert "qkv_bias" in read(untold).assumed
    assert "qkv_bias" not in read(untold | {"attention_bias": True}).assumed
    assert "qkv_bias" not in read(LLAMA).assumed


def test_the_part_inside_a_multimodal_file_may_leave_its_shape_to_its_class() -> None:
    inside = {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
              "num_hidden_layers": 34, "sliding_window": 1024}  # fmt: skip

    model = read({"model_type": "gemma3", "text_config": inside, "vision_config": {}})

    # Gemma3TextConfig(): 262,208 entries, 8 heads of 256, 4 for keys and values; 3.88 billion
    # parameters in gemma-3-4b without its vision tower.
    assert (model.vocab, model.attention.heads, model.attention.kv_heads) == (262_208, 8, 4)
    assert model.parameters() == pytest.approx(3.88e9, rel=0.001)
    assert {"vocab", "heads"} <= set(model.assumed)
    with pytest.raises(SpecError, match="missing key 'vocab_size'"):
        read(inside)
