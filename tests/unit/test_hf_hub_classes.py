"""Classes of the hub: what a file leaves out is what their published code defaults, or refused."""

from __future__ import annotations

import pytest

from planner.errors import SpecError
from tests.hf_configs import LLAMA, MIXTRAL, read, without
from topologies.hf_families import FAMILIES
from topologies.hf_hub_classes import HUB_CLASSES

UNTOLD = without(LLAMA, "tie_word_embeddings", "num_key_value_heads")

# Key/value heads, tied, biases on q, k, v and on the output: read in each configuration_*.py.
PUBLISHED = [
    ("Yi", 4, False, False, False),  # num_key_value_heads=4, tie_word_embeddings=False
    ("aquila", 8, False, False, False),  # num_key_value_heads=None: as many as heads
    ("baichuan", 8, False, False, False),
    ("internlm", 8, False, True, True),  # bias=True
    ("internlm2", 8, False, True, True),  # bias=True
    ("minicpm", 8, True, False, False),  # tie_word_embeddings=True, attention_bias=False
]


@pytest.mark.parametrize(("kind", "kv_heads", "tied", "bias", "out_bias"), PUBLISHED)
def test_what_a_file_leaves_out_is_what_the_published_class_has(
    kind: str, kv_heads: int, tied: bool, bias: bool, out_bias: bool
) -> None:
    model = read(UNTOLD | {"model_type": kind})

    assert model.attention.kv_heads == kv_heads
    assert model.tied_embeddings == tied
    assert (model.attention.qkv_bias, model.attention.out_bias) == (bias, out_bias)
    assert HUB_CLASSES[kind].source in model.assumed["tied_embeddings"]


def test_chatglm_has_one_group_and_heads_of_128_where_its_file_does_not_say() -> None:
    config = {
        "model_type": "chatglm", "hidden_size": 64, "ffn_hidden_size": 128, "num_layers": 4,
        "num_attention_heads": 8, "padded_vocab_size": 100, "multi_query_attention": True,
        "seq_length": 2048, "add_qkv_bias": True, "add_bias_linear": False,
    }  # fmt: skip

    attention = read(config).attention

    assert (attention.kv_heads, attention.head_dim) == (1, 128)  # multi_query_group_num=1
    assert (attention.qkv_bias, attention.out_bias) == (True, False)


@pytest.mark.parametrize(
    ("kind", "base", "key"),
    [
        ("grok-1", MIXTRAL, "tie_word_embeddings"),  # True in one copy, False in another
        ("grok-1", MIXTRAL, "num_key_value_heads"),  # 8 and 32
        ("kimi_k2", MIXTRAL, "first_k_dense_replace"),  # 1 and 3
        ("deepseek", MIXTRAL, "n_shared_experts"),  # none and 2
        ("RefinedWeb", LLAMA, "parallel_attn"),
    ],
)
def test_what_copies_of_a_class_default_differently_must_stand_in_the_file(
    kind: str, base: dict[str, object], key: str
) -> None:
    with pytest.raises(SpecError, match=f"missing key '{key}': copies of the class '{kind}'"):
        read(without(base, key) | {"model_type": kind})


def test_every_class_of_the_hub_is_a_family_and_an_unheard_of_one_is_not() -> None:
    assert set(HUB_CLASSES) <= set(FAMILIES)
    with pytest.raises(SpecError, match="'grok1' is not one we know"):
        read(MIXTRAL | {"model_type": "grok1", "hidden_act": "gelu"})
