"""Numbers that a Hugging Face model class takes where its config.json leaves the key out.

Only what no key of the file can tell. ``null`` in the file is another thing: for key/value heads it
means as many as heads, for a window none.

Source: the configuration classes of transformers 5.24.0 (Apache-2.0), each made without arguments,
and once more with other heads to tell a number from a rule; a test does so again where that
package is installed. Those of ``hf_hub_classes`` are as the copies named there have them.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType

from topologies.hf_hub_classes import HUB_CLASSES

SOURCE = "the default of its class in transformers 5.24.0"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassNumbers:
    """Defaults of one class; 0 where it has a rule instead, or none.

    Args:
        kv_heads: key/value heads [1]; 0 for as many as heads.
        head_dim: width of a head [1]; 0 for the width over the heads.
        window: ``sliding_window`` [tokens]; 0 for none.
        first_dense: dense layers before the first MoE layer [1].
        shared_experts: experts that every token visits [1].
    """

    kv_heads: int = 0
    head_dim: int = 0
    window: int = 0
    first_dense: int = 0
    shared_experts: int = 0


_GEMMA23 = ClassNumbers(kv_heads=4, head_dim=256, window=4096)
_DEEPSEEK3 = ClassNumbers(first_dense=3, shared_experts=1)
_GLM = ClassNumbers(kv_heads=2, head_dim=128)
_8 = ClassNumbers(kv_heads=8)
_8_BY_128 = ClassNumbers(kv_heads=8, head_dim=128)

CLASS_NUMBERS = MappingProxyType(
    {
        "Yi": ClassNumbers(kv_heads=4),
        "chatglm": ClassNumbers(kv_heads=1, head_dim=128),
        "cohere2": ClassNumbers(window=4096),
        "deepseek_v2": ClassNumbers(shared_experts=2),
        "deepseek_v3": _DEEPSEEK3,
        "deepseek_v32": _DEEPSEEK3,
        "dots1": ClassNumbers(kv_heads=32),
        "ernie4_5": ClassNumbers(kv_heads=2, head_dim=128),
        "ernie4_5_moe": ClassNumbers(kv_heads=4),
        "exaone": _8,
        "exaone4": ClassNumbers(kv_heads=32, window=4096),
        "gemma": ClassNumbers(kv_heads=16, head_dim=256),
        "gemma2": _GEMMA23,
        "gemma3": _GEMMA23,
        "gemma3_text": _GEMMA23,
        "glm": _GLM,
        "glm4": _GLM,
        "glm4_moe": ClassNumbers(kv_heads=8, first_dense=1, shared_experts=1),
        "glm_moe_dsa": _DEEPSEEK3,
        "gpt_oss": ClassNumbers(kv_heads=8, head_dim=64, window=128),
        "helium": ClassNumbers(kv_heads=20, head_dim=128),
        "internlm3": _GLM,
        "llama4": _8_BY_128,
        "llama4_text": _8_BY_128,
        "minimax_m2": _8_BY_128,
        "ministral": ClassNumbers(kv_heads=8, window=4096),
        "mistral": ClassNumbers(kv_heads=8, window=4096),
        "mistral3": _8_BY_128,
        "mixtral": _8,
        "olmo3": ClassNumbers(window=4096),
        "phimoe": _8,
        "qwen2": ClassNumbers(kv_heads=32),
        "qwen2_5_vl": _8,
        "qwen2_5_vl_text": _8,
        "qwen2_moe": ClassNumbers(kv_heads=16),
        "qwen2_vl": _8,
        "qwen2_vl_text": _8,
        "qwen3": ClassNumbers(kv_heads=32, head_dim=128),
        "qwen3_moe": ClassNumbers(kv_heads=4),
        "qwen3_omni_moe_text": ClassNumbers(kv_heads=4),
        "qwen3_vl_moe_text": ClassNumbers(kv_heads=16),
        "qwen3_vl_text": ClassNumbers(kv_heads=32, head_dim=128),
        "seed_oss": _8_BY_128,
        "smollm3": ClassNumbers(kv_heads=4),
        "stablelm": ClassNumbers(kv_heads=32),
        "starcoder2": ClassNumbers(kv_heads=2),
    }
)


def class_numbers(model_type: str) -> ClassNumbers:
    """Return the numbers of the class of *model_type*, all 0 where we know none.

    >>> class_numbers("mixtral").kv_heads
    8
    """
    return CLASS_NUMBERS.get(model_type, _NONE)


def default_source(model_type: str) -> str:
    """Return what says the defaults of the class of *model_type*.

    >>> default_source("Yi")
    'the default of its class, configuration_yi.py as vLLM 0.2 has it'
    """
    hub = HUB_CLASSES.get(model_type)
    return SOURCE if hub is None else f"the default of its class, {hub.source}"


_NONE = ClassNumbers()
