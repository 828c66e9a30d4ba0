"""A Hugging Face config.json to a ``ModelSpec``.

The file says shapes under names that change from class to class, nests them for multimodal models,
and leaves out what its class fixes. What is missing and cannot be known is a fault; what the class
defaults is taken and recorded in ``ModelSpec.assumed``. Layers that are no transformer layers of
one shape (state space, linear attention, per-layer widths) are refused with the reason.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import Any

from planner.documents import Document, Node
from planner.errors import SpecError
from planner.model import Attention, ModelSpec
from topologies.hf_class_numbers import class_numbers, default_source
from topologies.hf_families import FAMILIES, LEFT_OUT, LLAMA, REFUSED_TYPES, HfFamily
from topologies.hf_feed_forward import dense_width, read_moe
from topologies.hf_hub_classes import HUB_CLASSES
from topologies.hf_keys import HfKeys
from topologies.hf_layers import entries_allowed, refuse_mixed_shapes, windows

HIDDEN = ("hidden_size", "n_embd", "d_model", "dim")
LAYERS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
HEADS = ("num_attention_heads", "n_head", "n_heads")
KV_HEADS = (
    "num_key_value_heads", "attn_config.kv_n_heads", "num_kv_heads", "n_head_kv", "n_kv_heads",
    "multi_query_group_num",
)  # fmt: skip
HEAD_DIM = ("head_dim", "kv_channels")
VOCAB = ("vocab_size", "padded_vocab_size")
POSITIONS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "seq_length", "max_sequence_length",
    "model_max_length", "max_seqlen",
)  # fmt: skip
MTP = ("num_nextn_predict_layers", "num_mtp_modules", "mtp_num_hidden_layers")
QK_NORM = ("use_qk_norm", "qk_layernorm", "qk_norm", "attn_config.qk_ln")
NESTED = ("text_config", "llm_config", "language_config", "thinker_config.text_config")
TOWERS = ("vision_config", "audio_config", "vision_encoder", "speech_config")

_GATED = frozenset({"silu", "swish", "swiglu", "fast-swish"})
_SHAPE_WORD = re.compile(
    r"dim|size|rank|head|group|expert|layer|width|inter|channel|hidden|kernel|block|stream"
)
_NO_SHAPE_WORD = re.compile(
    r"^(rotary|rope|max_|sliding|num_beam|image|vision|audio|patch|spatial|temporal)"
    r"|token|_id$|coef|loss|window|chunk"
)
_INFERENCE_KEYS = ("n_activated_experts", "inter_dim", "kv_lora_rank")


def looks_like_hf_config(root: Node) -> bool:
    """Return whether *root* has the keys of some Hugging Face (or released) model config."""
    if root.kind != "map":
        return False
    part = _language_part(root)
    keys = HfKeys(part, root)
    named = keys.has("model_type", "architectures")
    layers = keys.has(*LAYERS) and not keys.has("num_layers")  # which is Megatron's word
    return named or (layers and keys.has(*HIDDEN) and keys.has(*HEADS))


def import_hf_config(document: Document, *, name: str) -> ModelSpec:
    """Return the model that *document* describes.

    Args:
        document: the parsed config.json.
        name: what the model is called where the file does not say.

    Raises:
        SpecError: every missing, contradicting or impossible number, with file and line.
    """
    root = document.root
    if root.kind != "map":
        root.fault("expected the keys of a model's config.json")
        document.finish()
    part = _language_part(root)
    keys = HfKeys(part, root)
    family = _family(keys)
    _note_what_is_left_out(keys)
    refuse_mixed_shapes(keys)
    layers = keys.shape_count("layers", *LAYERS)
    if not entries_allowed(keys, layers):
        layers = 1
    fields = _shape(keys, family)
    attention = _attention(keys, family, fields["hidden"])
    moe = read_moe(keys, family, layers)
    ffn = dense_width(keys, family, fields["hidden"], moe)
    narrow = windows(keys, family, layers)
    if narrow and fields["max_positions"] and max(narrow) >= fields["max_positions"]:
        narrow = ()
    flags = _flags(keys, family)
    if family is None:
        _refuse_shapes_that_nothing_asked_for(keys)
    document.finish()
    try:
        return ModelSpec(
            name=_called(keys, name), layers=layers, attention=Attention(**attention), ffn=ffn,
            experts=moe.experts, top_k=moe.top_k, expert_ffn=moe.expert_ffn,
            shared_expert_ffn=moe.shared_expert_ffn, shared_expert_gate=moe.shared_expert_gate,
            router_bias=moe.router_bias, expert_bias=moe.expert_bias, moe_layers=moe.layers,
            windows=narrow, router_groups=moe.groups, router_top_groups=moe.top_groups,
            assumed=MappingProxyType(dict(sorted(keys.assumed.items()))), **fields, **flags,
        )  # fmt: skip
    except SpecError as error:
        raise SpecError(*(f"{document.name}: {fault}" for fault in error.faults)) from None


def _language_part(root: Node) -> Node:
    for dotted in NESTED:
        part: Node | None = root
        for key in dotted.split("."):
            part = part.optional(key) if part is not None and part.kind == "map" else None
        if part is not None and part.kind == "map":
            return part
    return root


def _called(keys: HfKeys, name: str) -> str:
    stated = keys.text("_name_or_path") or ""
    last = stated.rstrip("/").rsplit("/", 1)[-1]
    return re.sub(r"[^A-Za-z0-9_.:+-]+", "-", last)[:128].strip("-") or name


def _family(keys: HfKeys) -> HfFamily | None:
    """Return the class's defaults, none for a class we do not know but that reads like Llama."""
    kind = keys.text("model_type")
    if kind in FAMILIES:
        _refuse_what_copies_differ_in(keys, kind)
        return FAMILIES[kind]
    if kind in REFUSED_TYPES:
        keys.part.fault(f"{kind!r}: {REFUSED_TYPES[kind]}, not modelled", key="model_type")
        return None
    encoder = keys.flag("is_encoder_decoder", default=False)
    if encoder or keys.has("type_vocab_size"):
        keys.part.fault("describes an encoder; only decoder-only models are modelled")
        return None
    if not kind and all(keys.has(key) for key in _INFERENCE_KEYS):
        keys.assumed["model_type"] = "not stated: the keys of DeepSeek-V3's inference code"
        return FAMILIES["deepseek_v3"]
    if not kind and keys.has("dim") and keys.has("norm_eps"):
        keys.assumed["model_type"] = "not stated: the keys are those of a Llama params.json"
        return LLAMA
    _check_reads_like_llama(keys, kind)
    return None


def _refuse_what_copies_differ_in(keys: HfKeys, kind: str) -> None:
    """Record every key that the class of *kind* defaults in one copy so, in another otherwise."""
    hub = HUB_CLASSES.get(kind)
    for key in hub.must_say if hub is not None else ():
        if keys.absent(key) and not keys.whole.has(key):
            keys.part.fault(
                f"missing key {key!r}: copies of the class {kind!r} (code on the hub) have "
                "different defaults"
            )


def _check_reads_like_llama(keys: HfKeys, kind: str) -> None:
    label = f"model_type {kind!r} is not one we know" if kind else "no model_type"
    if not keys.has("rms_norm_eps"):
        keys.part.fault(f"{label}, and without rms_norm_eps it does not read like Llama")
    activation = keys.text("hidden_act") or keys.text("hidden_activation")
    if activation not in _GATED:
        keys.part.fault(
            f"{label}, and with hidden_act={activation or 'absent'} one cannot tell whether its "
            f"feed-forward has two matrices or three; Llama's silu has three"
        )
    keys.assumed["model_type"] = (
        f"{label}: read like Llama (RMSNorm, {activation} with three matrices, biases only where "
        f"a key says so)"
    )


def _refuse_shapes_that_nothing_asked_for(keys: HfKeys) -> None:
    """Record the keys of a class we do not know that seem to say shapes, and that Llama has not."""
    for name, value in keys.part.items():
        plain = value.plain()
        counts = plain if isinstance(plain, list) else [plain]
        if (
            name not in keys.asked
            and _SHAPE_WORD.search(name)
            and not _NO_SHAPE_WORD.search(name)
            and any(isinstance(one, int) and one not in {0, 1} for one in counts)
        ):
            keys.part.fault(
                "of a class that is not one we know: it may say a shape that Llama has not",
                key=name,
            )


def _note_what_is_left_out(keys: HfKeys) -> None:
    for tower in TOWERS:
        node = keys.whole.optional(tower)
        if node is not None and node.kind == "map":
            keys.assumed[tower] = "left out: only the language model is modelled"
    if (extra := LEFT_OUT.get(keys.text("model_type"))) is not None:
        keys.assumed["left_out"] = extra
    quantized = keys.node("quantization_config") or keys.whole.optional("quantization_config")
    if quantized is not None and quantized.kind == "map":
        method = quantized.optional("quant_method")
        label = method.as_text() if method is not None and method.kind == "text" else "quantized"
        keys.assumed["quantization_config"] = (
            f"{label[:40]}: how weights are stored, not a shape; precision is the layout's"
        )


def _shape(keys: HfKeys, family: HfFamily | None) -> dict[str, Any]:
    family = family or LLAMA
    hidden = keys.shape_count("hidden", *HIDDEN)
    positions = keys.count(*POSITIONS, default=0, minimum=0)
    table = 0
    learned = family.positions
    if keys.text("model_type") == "mpt":
        learned = not keys.flag("attn_config.alibi", "attn_config.rope", default=False)
    if learned:
        table = positions + family.position_offset
        if not positions:
            keys.missing("n_positions", "max_position_embeddings")
    proj = keys.count("word_embed_proj_dim", default=hidden, minimum=1)
    if proj != hidden:
        keys.part.fault(
            f"{proj} differs from the width {hidden}: not modelled", key="word_embed_proj_dim"
        )
    return {
        "hidden": hidden, "vocab": keys.shape_count("vocab", *VOCAB), "max_positions": positions,
        "learned_positions": table, "norms_per_layer": _norms(keys, family),
        "mtp_layers": keys.count(*MTP, default=0, minimum=0),
    }  # fmt: skip


def _norms(keys: HfKeys, family: HfFamily) -> int:
    if keys.text("model_type") not in {"falcon", "RefinedWeb", "RefinedWebModel"}:
        return family.norms
    default = 2 if _new_falcon(keys) or not keys.flag("parallel_attn", default=True) else 1
    return keys.count("num_ln_in_parallel_attn", default=default)


def _new_falcon(keys: HfKeys) -> bool:
    kind = keys.text("model_type")
    return keys.flag("new_decoder_architecture", default=kind == "RefinedWeb")


def _attention(keys: HfKeys, family: HfFamily | None, hidden: int) -> dict[str, Any]:
    family = family or LLAMA
    heads = keys.shape_count("heads", *HEADS)
    kind = keys.text("model_type")
    bias = keys.flag(*family.bias_keys, default=family.qkv_bias)
    out = bias if family.out_follows and keys.has(*family.bias_keys) else family.out_bias
    if bias and family.bias_keys and not keys.has(*family.bias_keys):
        source = default_source(keys.text("model_type"))
        keys.assumed["qkv_bias"] = f"not stated: biases on queries, keys and values, {source}"
    if keys.text("model_type") == "mpt":
        bias = out = not keys.flag("no_bias", default=False)
    common = {
        "heads": heads, "qkv_bias": bias, "out_bias": out,
        # Llama 4 norms queries and keys without weights.
        "qk_norm": keys.flag(*QK_NORM, default=family.qk_norm) and not kind.startswith("llama4"),
        "sinks": kind == "gpt_oss",
    }  # fmt: skip
    if keys.has("kv_lora_rank"):
        nope, rope = keys.count("qk_nope_head_dim"), keys.count("qk_rope_head_dim", minimum=0)
        return common | {
            "kind": "mla", "kv_heads": heads, "head_dim": nope + rope, "rope_head_dim": rope,
            "v_head_dim": keys.count("v_head_dim"), "qk_norm": False,
            "q_lora_rank": keys.count("q_lora_rank", default=0, minimum=0),
            "kv_lora_rank": keys.count("kv_lora_rank"),
        }  # fmt: skip
    width, groups = _head_width(keys, hidden, heads), _kv_heads(keys, heads)
    own = common["qk_norm"] and (family.qk_norm_wide or family.qk_norm_bias)
    normed = (heads + groups if family.qk_norm_wide else 2) * (1 + family.qk_norm_bias)
    return common | {
        "kv_heads": groups, "head_dim": width,
        "qk_norm_elements": normed * width if own else 0,
        "v_head_dim": keys.count("v_head_dim", default=width),
    }  # fmt: skip


def _head_width(keys: HfKeys, hidden: int, heads: int) -> int:
    usual = class_numbers(keys.text("model_type")).head_dim
    if keys.has(*HEAD_DIM) or (usual and keys.absent(*HEAD_DIM)):
        return keys.class_count(usual, "head_dim", *HEAD_DIM)
    if heads and hidden > 1 and hidden % heads:  # 1 stands for a width that is faulty itself
        keys.part.fault(
            f"missing key 'head_dim': {heads} heads do not divide the width {hidden}, so it cannot "
            f"be their quotient"
        )
    return hidden // max(heads, 1) or 1


def _kv_heads(keys: HfKeys, heads: int) -> int:
    falcon = keys.text("model_type") in {"falcon", "RefinedWeb", "RefinedWebModel"}
    one = falcon or keys.text("model_type") == "gpt_bigcode"  # the default of these classes
    if keys.flag("multi_query", default=one) and not (falcon and _new_falcon(keys)):
        return 1
    if keys.text("model_type") == "chatglm" and not keys.flag(
        "multi_query_attention", default=False
    ):
        return heads
    usual = class_numbers(keys.text("model_type")).kv_heads
    if usual and heads and not heads % usual and keys.absent(*KV_HEADS):
        return keys.class_count(usual, "kv_heads", *KV_HEADS)
    if not keys.has(*KV_HEADS):
        keys.assumed["kv_heads"] = f"not stated: as many as heads ({heads})"
    return keys.count(*KV_HEADS, default=heads)


def _flags(keys: HfKeys, family: HfFamily | None) -> dict[str, Any]:
    family = family or LLAMA
    kind = keys.text("model_type")
    mlp_bias = keys.flag(*family.mlp_bias_keys, default=family.mlp_bias)
    norm_bias = family.norm_bias
    if kind == "mpt":
        mlp_bias = norm_bias = not keys.flag("no_bias", default=False)
    return {
        "gated_mlp": family.gated, "mlp_bias": mlp_bias, "norm_bias": norm_bias,
        "tied_embeddings": _tied(keys, family), "embedding_norm": family.embedding_norm,
        "parallel_block": keys.flag(
            "use_parallel_residual", "parallel_attn",
            default=family.parallel or kind.startswith(("falcon", "RefinedWeb")),
        ),
    }  # fmt: skip


def _tied(keys: HfKeys, family: HfFamily) -> bool:
    if keys.has("tie_word_embeddings"):
        return keys.flag("tie_word_embeddings", default=family.tied)
    outer = keys.whole.optional("tie_word_embeddings")
    if outer is not None and outer.kind != "null":
        return keys.whole.flag("tie_word_embeddings")
    word = "tied" if family.tied else "apart"
    kind = keys.text("model_type")
    source = default_source(kind) if kind in FAMILIES else "as Llama"
    keys.assumed["tied_embeddings"] = f"not stated: {word}, {source}"
    return family.tied
