"""The feed-forward of a Hugging Face model: widths of dense layers and of experts.

``intermediate_size`` is the width of one expert in some classes and of the dense layers in others;
what class a config is of decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from topologies.hf_class_numbers import class_numbers
from topologies.hf_families import LLAMA, HfFamily
from topologies.hf_keys import HfKeys
from topologies.hf_layers import moe_flags

FFN = (
    "intermediate_size", "n_inner", "ffn_dim", "ffn_hidden_size", "d_ff", "inter_dim", "hidden_dim",
)  # fmt: skip
EXPERTS = (
    "num_local_experts", "num_experts", "n_routed_experts", "num_routed_experts",
    "moe_num_experts", "ffn_config.moe_num_experts", "moe.num_experts",
)  # fmt: skip
TOP_K = (
    "num_experts_per_tok", "experts_per_token", "num_experts_per_token", "top_k_experts",
    "moe_top_k", "moe_topk", "moe_k", "num_selected_experts", "n_activated_experts",
    "ffn_config.moe_top_k", "moe.num_experts_per_tok",
)  # fmt: skip
EXPERT_FFN = (
    "moe_intermediate_size", "expert_ffn_hidden_size", "moe_inter_dim",
    "ffn_config.ffn_hidden_size",
)  # fmt: skip
SHARED_EXPERTS = (
    "n_shared_experts", "num_shared_experts", "num_shared_expert", "moe_num_shared_experts",
)  # fmt: skip
SHARED_FFN = (
    "shared_expert_intermediate_size", "moe_shared_expert_intermediate_size",
    "shared_intermediate_size",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class HfMoe:
    """The numbers of the MoE layers, all nought for a dense model."""

    experts: int = 0
    top_k: int = 0
    expert_ffn: int = 0
    shared_expert_ffn: int = 0
    shared_expert_gate: bool = False
    router_bias: bool = False
    expert_bias: bool = False
    layers: tuple[bool, ...] = ()
    groups: int = 0
    top_groups: int = 0


def read_moe(keys: HfKeys, family: HfFamily | None, layers: int) -> HfMoe:
    """Return the experts of the MoE layers.

    Args:
        keys: the config.
        family: defaults of its class, none for a class we do not know.
        layers: transformer layers [1].
    """
    experts = keys.count(*EXPERTS, default=0, minimum=0)
    if experts < 2:
        return HfMoe()
    kind = keys.text("model_type")
    llama4 = kind.startswith("llama4")
    expert_ffn = _expert_width(keys, family)
    shared = keys.class_count(class_numbers(kind).shared_experts, "shared_experts", *SHARED_EXPERTS)
    shared_ffn = keys.count(*SHARED_FFN, default=expert_ffn, minimum=0)
    if keys.has(*SHARED_FFN):
        shared = max(shared, 1)
    elif llama4:
        shared = 1
    bias = family.router_bias if family else False
    return HfMoe(
        experts=experts, top_k=keys.count(*TOP_K), expert_ffn=expert_ffn,
        shared_expert_ffn=shared * shared_ffn,
        shared_expert_gate=kind == "qwen2_moe" and shared > 0,
        router_bias=keys.flag("use_routing_bias", "moe_use_aux_free", default=bias),
        expert_bias=kind == "gpt_oss",
        layers=moe_flags(keys, layers, interleaved=llama4),
        groups=keys.count("n_group", "n_expert_groups", default=0, minimum=0),
        top_groups=keys.count("topk_group", "n_limited_groups", default=0, minimum=0),
    )  # fmt: skip


def _expert_width(keys: HfKeys, family: HfFamily | None) -> int:
    if keys.has(*EXPERT_FFN):
        return keys.count(*EXPERT_FFN)
    if family is None and keys.has(*FFN):
        keys.assumed["expert_ffn"] = (
            f"{keys.name_of(*FFN)} taken as the width of one expert: no key such as "
            f"moe_intermediate_size says otherwise"
        )
    elif family is not None and not family.expert_is_intermediate:
        keys.missing(*EXPERT_FFN[:2])
        return 1
    return keys.count(*FFN)


def dense_width(keys: HfKeys, family: HfFamily | None, hidden: int, moe: HfMoe) -> int:
    """Return the width of the dense feed-forward, 0 where every layer is MoE [1]."""
    if moe.experts and all(moe.layers):
        return 0
    if moe.experts and (family is None or family.expert_is_intermediate):
        other = ("intermediate_size_mlp", "dense_intermediate_size")
        if not keys.has(*other) and not keys.has(*EXPERT_FFN):
            keys.missing(*other)
            return 1
        if keys.has(*other):
            return keys.count(*other)
    return _stated_width(keys, family or LLAMA, hidden)


def _stated_width(keys: HfKeys, family: HfFamily, hidden: int) -> int:
    if keys.has(*FFN):
        return keys.count(*FFN)
    if keys.has("multiple_of") and keys.has("dim"):
        return _llama_width(keys, hidden)
    ratio = keys.count("expansion_ratio", default=family.ffn_ratio, minimum=0)
    if not ratio:
        return 1 if keys.has("block_configs") else keys.shape_count("ffn", *FFN[:4])
    keys.assumed["ffn"] = f"not stated: {ratio} x the width, as its class has it"
    return ratio * hidden


def _llama_width(keys: HfKeys, hidden: int) -> int:
    """Return the feed-forward width that Llama's own code derives in params.json."""
    multiple = keys.count("multiple_of")
    factor = keys.part.number("ffn_dim_multiplier", default=1.0, minimum=0.01, maximum=100.0)
    keys.assumed["ffn"] = "not stated: from multiple_of and ffn_dim_multiplier, as in Llama's code"
    return multiple * ceil(int(factor * int(8 * hidden / 3)) / multiple)
