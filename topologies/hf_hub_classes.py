"""Model classes whose code is on the hub, not in transformers, and who says what they default.

Copies of one class differ where its authors changed it, or others wrote it anew. A key whose
default differs from copy to copy must stand in the file: it is refused where it does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True, slots=True, kw_only=True)
class HubClass:
    """One class of the hub.

    Args:
        source: the copy whose defaults are ours.
        must_say: keys that copies default differently.
    """

    source: str
    must_say: tuple[str, ...] = ()


HUB_CLASSES: Mapping[str, HubClass] = MappingProxyType(
    {
        "Yi": HubClass(source="configuration_yi.py as vLLM 0.2 has it"),
        "aquila": HubClass(source="configuration_aquila.py as vLLM 0.2 has it"),
        "baichuan": HubClass(source="configuration_baichuan.py as vLLM 0.5 has it"),
        "chatglm": HubClass(source="configuration_chatglm.py of ChatGLM2-6B as vLLM has it"),
        "deepseek": HubClass(
            source="configuration_deepseek.py of DeepSeek-MoE", must_say=("n_shared_experts",)
        ),
        "grok-1": HubClass(
            source="configuration_grok1.py of hpcai-tech's and keyfan's grok-1",
            must_say=("tie_word_embeddings", "num_key_value_heads"),
        ),
        "internlm": HubClass(source="configuration_internlm.py of internlm-7b"),
        "internlm2": HubClass(source="configuration_internlm2.py as InternVL has it"),
        "kimi_k2": HubClass(
            source="DeepseekV3Config, whose code Kimi K2 names",
            must_say=("first_k_dense_replace", "n_shared_experts"),
        ),
        "minicpm": HubClass(source="configuration_minicpm.py of MiniCPM-V"),
        "phi-msft": HubClass(source="configuration_phi.py of phi-2 before transformers had it"),
        "RefinedWeb": HubClass(
            source="configuration_RW.py of falcon-40b", must_say=("parallel_attn",)
        ),
        "RefinedWebModel": HubClass(source="configuration_RW.py of falcon-7b"),
    }
)
