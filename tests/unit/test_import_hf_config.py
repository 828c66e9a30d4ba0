"""Hugging Face configs with the quirks that real ones have."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from planner.errors import SpecError
from tests.hf_configs import GPT_OSS, LLAMA, MIXTRAL, QWEN_MOE, faults, read, without
from topologies.model_reader import read_model


def test_a_llama_says_all_that_matters_and_nothing_is_assumed() -> None:
    model = read(LLAMA)

    assert (model.hidden, model.ffn, model.layers, model.vocab) == (64, 128, 4, 100)
    assert (model.attention.heads, model.attention.kv_heads, model.attention.head_dim) == (8, 2, 8)
    assert model.max_positions == 4096
    assert not model.assumed


def test_every_missing_key_is_named() -> None:
    text = faults({"model_type": "llama", "hidden_size": 64})

    for key in ("num_hidden_layers", "num_attention_heads", "vocab_size", "intermediate_size"):
        assert f"missing key '{key}'" in text


def test_an_absent_or_null_number_of_kv_heads_means_as_many_as_heads() -> None:
    for config in (without(LLAMA, "num_key_value_heads"), LLAMA | {"num_key_value_heads": None}):
        model = read(config)

        assert model.attention.kv_heads == 8
        assert "as many as heads" in model.assumed["kv_heads"]


def test_a_stated_head_width_need_not_be_the_quotient() -> None:
    assert read(LLAMA | {"head_dim": 32}).attention.head_dim == 32
    assert read(LLAMA | {"head_dim": None}).attention.head_dim == 8
    assert "missing key 'head_dim'" in faults(LLAMA | {"num_attention_heads": 6})


def test_the_text_part_of_a_multimodal_model_is_read_and_the_tower_noted() -> None:
    model = read({
        "model_type": "qwen3_vl_moe", "tie_word_embeddings": True, "vision_config": {"depth": 9},
        "text_config": without(QWEN_MOE, "tie_word_embeddings") | {
            "model_type": "qwen3_vl_moe_text"
        },
    })  # fmt: skip

    assert model.experts == 8
    assert model.tied_embeddings
    assert "left out" in model.assumed["vision_config"]


def test_a_default_of_the_class_is_taken_and_said_to_be_assumed() -> None:
    llama = read(without(LLAMA, "tie_word_embeddings"))
    gemma = read(without(LLAMA, "tie_word_embeddings") | {"model_type": "gemma"})

    assert not llama.tied_embeddings
    assert gemma.tied_embeddings
    assert "default of its class" in gemma.assumed["tied_embeddings"]


def test_intermediate_size_is_the_expert_in_mixtral_and_the_dense_layer_in_qwen() -> None:
    mixtral, qwen = read(MIXTRAL), read(QWEN_MOE | {"mlp_only_layers": [0]})

    assert (mixtral.expert_ffn, mixtral.ffn) == (128, 0)
    assert (qwen.expert_ffn, qwen.ffn) == (32, 128)


def test_a_qwen_without_dense_layers_needs_no_dense_width() -> None:
    assert read(without(QWEN_MOE, "intermediate_size")).ffn == 0
    assert "intermediate_size" in faults(
        without(QWEN_MOE, "intermediate_size") | {"decoder_sparse_step": 2}
    )


@pytest.mark.parametrize(
    ("changes", "flags"),
    [
        ({"decoder_sparse_step": 2}, (False, True, False, True)),
        ({"mlp_only_layers": [0, 2]}, (False, True, False, True)),
        ({"moe_layer_freq": [0, 1, 1, 1]}, (False, True, True, True)),
        ({"moe_layer_freq": 2}, (True, False, True, False)),
        ({"first_k_dense_replace": 3}, (False, False, False, True)),
        ({"moe_layers": [1]}, (False, True, False, False)),
        ({"moe_layers_enum": "2,3"}, (False, False, True, True)),
        ({"interleave_moe_layer_step": 2, "moe_layers": None}, (False, True, False, True)),
    ],
)
def test_which_layers_are_moe_is_said_in_many_ways(
    changes: dict[str, object], flags: tuple[bool, ...]
) -> None:
    assert read(without(QWEN_MOE, "decoder_sparse_step") | changes).moe_layers == flags


def test_a_list_of_flags_must_have_one_a_layer() -> None:
    assert "has 3 entries for 4 layers" in faults(QWEN_MOE | {"moe_layer_freq": [0, 1, 1]})
    assert "no layer of it is MoE" in faults(QWEN_MOE | {"moe_layer_freq": [0, 0, 0, 0]})


def test_an_unknown_class_is_taken_for_a_llama_only_if_it_reads_like_one() -> None:
    model = read(LLAMA | {"model_type": "brand_new"})

    assert model.parameters() == read(LLAMA).parameters()
    assert "brand_new" in model.assumed["model_type"]
    assert "rms_norm_eps" in faults(without(LLAMA, "rms_norm_eps") | {"model_type": "brand_new"})
    assert "two matrices or three" in faults(
        LLAMA | {"model_type": "brand_new", "hidden_act": "relu2"}
    )


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("share_q_dim", 2048),  # queries through a bottleneck
        ("share_expert_dim", 5120),  # a shared expert under a name of its own
        ("num_loop_blocks", 4),
        ("per_layer_widths", [64, 64, 32, 32]),
    ],
)
def test_an_unknown_class_with_shapes_that_llama_has_not_is_refused(
    key: str, value: object
) -> None:
    text = faults(LLAMA | {"model_type": "brand_new", key: value})

    assert f"{key}: of a class that is not one we know: it may say a shape" in text


def test_what_says_no_shape_is_no_reason_to_refuse_an_unknown_class() -> None:
    harmless = {
        "rotary_dim": 64, "sliding_window_size": 4096, "image_size": 336, "bos_token_id": 7,
        "moe_aux_loss_coef_steps": 3, "shared_head": False, "use_cache": True, "num_beam_groups": 2,
    }  # fmt: skip

    assert read(LLAMA | {"model_type": "brand_new"} | harmless).layers == 4


def test_the_few_parameters_that_a_class_has_and_the_model_has_not_are_named() -> None:
    phi = {
        "model_type": "phi", "hidden_size": 2560, "intermediate_size": 10240, "vocab_size": 51200,
        "num_attention_heads": 32, "num_hidden_layers": 32, "tie_word_embeddings": False,
    }  # fmt: skip

    model = read(phi)

    # Phi-2 has 2,779,683,840
    assert model.parameters() + model.vocab == 2_779_683_840
    assert model.assumed["left_out"].startswith("the bias of the output matrix: one parameter")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"model_type": "bert"}, "encoder, not a decoder"),
        ({"model_type": "t5"}, "an encoder and a decoder"),
        ({"model_type": "jamba"}, "no attention"),
        ({"model_type": "qwen3_next"}, "linear attention"),
        ({"layer_types": ["linear_attention", "full_attention"] * 2}, "linear_attention layers"),
        ({"layer_types": ["mamba"] * 4}, "mamba layers are not modelled"),
        ({"layer_types": ["full_attention"] * 3}, "has 3 entries for 4 layers"),
        ({"hybrid_override_pattern": "M-M*"}, "state-space"),
        ({"linear_attn_config": {"kda_layers": [1]}}, "linear attention"),
        ({"attn_type_list": [0, 0, 1, 1]}, "2 layers have linear attention"),
        ({"global_head_dim": 512}, "differs from head_dim"),
        ({"swa_num_key_value_heads": 4}, "differs from num_key_value_heads"),
        ({"num_kv_shared_layers": 2}, "share or add to each other"),
        ({"model_type": "opt", "word_embed_proj_dim": 32}, "differs from the width"),
        ({"is_encoder_decoder": True, "model_type": "new"}, "encoder"),
    ],
)
def test_what_is_no_stack_of_equal_layers_is_refused_with_the_reason(
    changes: dict[str, object], reason: str
) -> None:
    assert reason in faults(LLAMA | changes)


def test_layers_of_their_own_shape_are_refused_and_counted() -> None:
    attention, ffn = {"n_heads_in_group": 8, "no_op": False}, {"ffn_mult": 2.6, "no_op": False}
    config = without(LLAMA, "intermediate_size", "num_key_value_heads") | {
        "block_configs": [
            {"attention": attention, "ffn": ffn},
            {"attention": {"no_op": True}, "ffn": ffn},
            {"attention": {"replace_with_linear": True}, "ffn": {"no_op": True}},
        ]
    }

    text = faults(config)

    assert "3 layers has a shape of its own (2 without attention, 1 without" in text
    assert "intermediate_size" not in text


def test_two_names_that_contradict_each_other_are_refused() -> None:
    assert "contradicts" in faults(GPT_OSS | {"experts_per_token": 4})


def test_a_list_of_one_number_a_layer_stands_for_the_number() -> None:
    config = without(QWEN_MOE, "moe_intermediate_size", "num_experts_per_tok")

    assert read(config | {"moe_topk": [2] * 4, "moe_intermediate_size": [32] * 4}).top_k == 2
    assert "differs from layer to layer" in faults(
        config | {"moe_topk": [2, 2, 2, 1], "moe_intermediate_size": 32}
    )


@pytest.mark.parametrize("value", ["64", 64.5, -64, 0, True, [], {}, 1e300, 10**30])
def test_a_width_that_is_no_positive_whole_number_is_refused_with_its_place(value: object) -> None:
    text = faults(LLAMA | {"hidden_size": value})

    assert "config.json:1:" in text
    assert "hidden_size" in text


@pytest.mark.parametrize("layers", [10**9, 20_000])
def test_absurdly_many_layers_are_refused_before_any_list_is_made(layers: int) -> None:
    assert "at most 10,000" in faults(LLAMA | {"num_hidden_layers": layers})


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "null", "3", '"llama"', "{}", '{"a": 1}', '{"model_type": "llama"', "{'a': 1}",
        '{"hidden_size": NaN, "model_type": "llama"}', '{"hidden_size": 1, "hidden_size": 2}',
        '{"benchmark": {"tp": 8}, "requests": [1, 2]}', '[{"model_type": "llama"}]',
    ],
)  # fmt: skip
def test_what_is_no_model_is_refused_with_its_place(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(SpecError) as caught:
        read_model(file)

    assert all(str(file) in fault for fault in caught.value.faults)


def test_a_folder_is_refused_and_the_config_in_it_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(LLAMA), encoding="utf-8")

    with pytest.raises(SpecError, match=r"config\.json"):
        read_model(tmp_path)
    assert read_model(tmp_path / "config.json").name == tmp_path.name.replace("_", "_")


def test_a_name_that_is_nearly_in_the_catalogue_gets_a_hint() -> None:
    with pytest.raises(SpecError, match=r"did you mean llama-3\.1-8b"):
        read_model("llama-3.1-8B-instruct")


SHARED = Path(os.environ.get("PLANNER_SHARED", Path(__file__).parents[3] / "shared"))
REAL = sorted((SHARED / "inputs").glob("hf-config*/*.json"))


@pytest.mark.skipif(not REAL, reason="the folder of real input files is not here")
@pytest.mark.parametrize("file", REAL, ids=lambda file: file.stem)
def test_a_real_config_is_read_or_refused_with_a_reason(file: Path) -> None:
    incomplete = {"deepseek_v2": "num_experts_per_tok", "glm4_moe": "head_dim"}
    reason = incomplete.get(file.stem) or ("not modelled" if "Nemotron" in file.name else "")

    if reason:
        with pytest.raises(SpecError, match=reason):
            read_model(file)
    else:
        assert read_model(file).parameters() > 10**7
