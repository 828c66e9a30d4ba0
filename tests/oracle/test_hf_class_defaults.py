"""Our defaults of Hugging Face's classes against the classes themselves, where installed."""

from __future__ import annotations

from typing import Any

import pytest

from topologies.hf_class_numbers import class_numbers
from topologies.hf_families import FAMILIES
from topologies.hf_hub_classes import HUB_CLASSES
from topologies.hf_nested_shapes import NESTED_SHAPES

# Read with the outer config's word: the nested one never decides over the head.
TIED_OUTSIDE = {"qwen3_vl_moe_text", "qwen3_vl_text", "qwen3_omni_moe_text"}


CLASSES = pytest.importorskip("transformers.models.auto.configuration_auto").CONFIG_MAPPING
KINDS = sorted(kind for kind in FAMILIES if kind not in HUB_CLASSES)


def made(kind: str, **given: int) -> Any:
    config = CLASSES[kind](**given)
    return getattr(config, "text_config", None) or config


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_tied_and_has_a_bias_is_what_the_class_defaults(kind: str) -> None:
    config, family = made(kind), FAMILIES[kind]

    tied = getattr(config, "tie_word_embeddings", None)
    assert kind in TIED_OUTSIDE or bool(tied) == family.tied
    for key in family.bias_keys:
        said = getattr(config, key, None)
        if said is not None:
            assert said == family.qkv_bias or key == "bias"


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_that_a_file_may_leave_out_are_what_the_class_defaults(kind: str) -> None:
    config, ours = made(kind), class_numbers(kind)
    mla = getattr(config, "kv_lora_rank", None)

    if ours.kv_heads:
        assert config.num_key_value_heads == ours.kv_heads
    if ours.head_dim:
        assert config.head_dim == ours.head_dim
    if ours.window:
        assert config.sliding_window == ours.window
    if ours.first_dense or mla:
        assert (getattr(config, "first_k_dense_replace", 0) or 0) == ours.first_dense
    if ours.shared_experts or mla:
        assert (getattr(config, "n_shared_experts", 0) or 0) == ours.shared_experts


@pytest.mark.parametrize("kind", KINDS)
def test_a_class_whose_key_value_heads_are_a_number_has_it_on_file(kind: str) -> None:
    config = made(kind)
    heads = getattr(config, "num_attention_heads", None)
    number = getattr(config, "num_key_value_heads", None)
    if not heads or number is None or getattr(config, "kv_lora_rank", None):
        return  # the class has no such key, or does not use it
    try:
        other = made(kind, num_attention_heads=2 * heads)
    except Exception as error:  # noqa: BLE001 - the class refuses that number
        pytest.skip(str(error)[:80])

    follows = getattr(other, "num_key_value_heads", None) != number
    assert follows or class_numbers(kind).kv_heads == number or kind in {"dbrx", "gpt_bigcode"}


@pytest.mark.parametrize("kind", sorted(NESTED_SHAPES))
def test_the_shape_of_a_part_inside_is_what_the_class_defaults(kind: str) -> None:
    config = CLASSES[kind]()

    assert dict(NESTED_SHAPES[kind]) == {
        "vocab": config.vocab_size, "hidden": config.hidden_size, "ffn": config.intermediate_size,
        "layers": config.num_hidden_layers, "heads": config.num_attention_heads,
    }  # fmt: skip
