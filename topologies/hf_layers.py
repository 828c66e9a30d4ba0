"""Which layers of a Hugging Face model are what: MoE or dense, windowed or full.

Each function takes the config's keys and the number of layers and returns one entry a layer, or
records why the stack cannot be described by layers of one shape.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from planner.documents import Node
from topologies.hf_class_numbers import class_numbers
from topologies.hf_families import HfFamily
from topologies.hf_keys import HfKeys
from topologies.pattern_text import MOST_ENTRIES

SLIDING = frozenset(
    {"sliding_attention", "window_attention", "chunked_attention", "local", "local_attention"}
)
INDEXED = frozenset({"indexed_attention"})
FULL = frozenset({"full_attention", "attention", "global", "global_attention"})

_HYBRID_KEYS = {
    "hybrid_override_pattern": "it mixes attention with state-space layers",
    "linear_attn_config": "some of its layers have linear attention",
    "ssm_cfg": "some of its layers are state-space layers",
    "mamba_d_state": "some of its layers are state-space layers",
    "mamba_num_heads": "some of its layers are state-space layers",
    "ssm_state_size": "some of its layers are state-space layers",
    "linear_num_value_heads": "some of its layers have linear attention",
    "lightning_head_dim": "some of its layers have linear attention",
    "altup_num_inputs": "its layers carry several parallel streams (AltUp)",
    "zero_expert_num": "some of its experts are empty (zero-computation experts)",
}
_PER_LAYER_KEYS = {
    "global_head_dim": "head_dim",
    "num_global_key_value_heads": "num_key_value_heads",
    "swa_num_attention_heads": "num_attention_heads",
    "swa_num_key_value_heads": "num_key_value_heads",
    "swa_head_dim": "head_dim",
    "swa_v_head_dim": "v_head_dim",
}


def refuse_mixed_shapes(keys: HfKeys) -> None:
    """Record every sign that the layers are not transformer layers of one shape."""
    for key, reason in _HYBRID_KEYS.items():
        if keys.has(key):
            keys.part.fault(f"{reason}, which are not modelled", key=key)
    for key, usual in _PER_LAYER_KEYS.items():
        special, common = keys.node(key), keys.node(usual)
        if special is not None and (common is None or special.plain() != common.plain()):
            keys.part.fault(
                f"differs from {usual}: layers with attention of two shapes are not modelled",
                key=key,
            )
    for key in ("hidden_size_per_layer_input", "num_kv_shared_layers"):
        node = keys.node(key)
        if node is not None and node.plain():
            keys.part.fault("layers that share or add to each other are not modelled", key=key)
    blocks = keys.node("block_configs")
    if blocks is not None:
        keys.part.fault(_differing_blocks(blocks), key="block_configs")


def _differing_blocks(blocks: Node) -> str:
    plain = blocks.plain()
    listed = plain if isinstance(plain, list) else []
    layers = [layer for layer in listed if isinstance(layer, dict)]
    lost: Counter[str] = Counter()
    for layer in layers:
        for part in ("attention", "ffn"):
            inner = layer.get(part)
            if isinstance(inner, dict) and (inner.get("no_op") or inner.get("replace_with_linear")):
                lost[part] += 1
    return (
        f"each of {len(layers)} layers has a shape of its own ({lost['attention']} without "
        f"attention, {lost['ffn']} without a feed-forward): not modelled"
    )


def moe_flags(keys: HfKeys, layers: int, *, interleaved: bool) -> tuple[bool, ...]:
    """Return which layers are MoE, for a model that has experts.

    Args:
        keys: the config.
        layers: transformer layers [1].
        interleaved: the class alternates dense and MoE layers (Llama 4).
    """
    flags = _listed_flags(keys, layers) or _stepped_flags(keys, layers, interleaved=interleaved)
    if not any(flags):
        keys.part.fault("has experts, but no layer of it is MoE")
    return flags


def _listed_flags(keys: HfKeys, layers: int) -> tuple[bool, ...]:
    named = keys.node("mlp_layer_types")
    if named is not None and named.kind == "list":
        kinds = [item.as_text() for item in _one_a_layer(keys, "mlp_layer_types", layers)]
        if strange := sorted({*kinds} - {"dense", "sparse"}):
            named.fault(f"{_listing(strange)}: expected dense or sparse")
        return tuple(kind == "sparse" for kind in kinds) or (True,) * layers
    frequency = keys.node("moe_layer_freq")
    if frequency is not None and frequency.kind == "list":
        entries = _one_a_layer(keys, "moe_layer_freq", layers)
        return tuple(entry.as_count(minimum=0) > 0 for entry in entries) or (True,) * layers
    if keys.has("moe_layers"):
        chosen = _layer_numbers(keys.part, "moe_layers", layers)
        return tuple(layer in chosen for layer in range(layers))
    listed = keys.text("moe_layers_enum")
    if listed:
        try:
            chosen = frozenset(int(entry) for entry in listed.split(","))
        except ValueError:
            keys.part.fault("expected layer numbers such as '4,5,6'", key="moe_layers_enum")
            return (True,) * layers
        return tuple(layer in chosen for layer in range(layers))
    return ()


def _stepped_flags(keys: HfKeys, layers: int, *, interleaved: bool) -> tuple[bool, ...]:
    first = keys.class_count(
        class_numbers(keys.text("model_type")).first_dense, "first_dense_layers",
        "first_k_dense_replace", "num_dense_layers", "n_dense_layers", "moe_layer_start_index",
    )  # fmt: skip
    end = keys.count("moe_layer_end_index", default=layers - 1, minimum=-1)
    end = layers - 1 if end < 0 else end  # Ernie's word for the last layer
    modulo = keys.count("moe_layer_freq", default=1)
    if not keys.has("interleave_moe_layer_step") and interleaved:
        keys.missing("interleave_moe_layer_step", "moe_layers")
    step = keys.count(
        "decoder_sparse_step", "interleave_moe_layer_step", "moe_layer_interval", default=1
    )
    dense = _layer_numbers(keys.part, "mlp_only_layers", layers)
    return tuple(
        first <= layer <= end
        and not layer % modulo
        and not (layer + 1) % step
        and layer not in dense
        for layer in range(layers)
    )


def _layer_numbers(part: Node, key: str, layers: int) -> frozenset[int]:
    node = part.optional(key)
    if node is None or node.kind == "null":
        return frozenset()
    numbers = part.list(key)
    if len(numbers) > layers:
        node.fault(f"{len(numbers)} layer numbers for {layers} layers")
        return frozenset()
    return frozenset(item.as_count(minimum=0, maximum=layers - 1) for item in numbers)


def _one_a_layer(keys: HfKeys, key: str, layers: int) -> tuple[Node, ...]:
    """Return the items of a list that has one for each layer, none (and a fault) if it has not."""
    items = keys.part.list(key)
    if len(items) != layers:
        keys.part.fault(f"has {len(items)} entries for {layers} layers", key=key)
        return ()
    return items


def windows(keys: HfKeys, family: HfFamily | None, layers: int) -> tuple[int, ...]:
    """Return the attention window of each layer [tokens], empty where all layers are full."""
    if not keys.flag("use_sliding_window", default=True):
        return ()
    rule = family.windows if family else "all"
    named = _layer_types(keys, layers)
    width = _width(keys, rule)
    if not width:
        if any(named):
            keys.missing("sliding_window", "attention_chunk_size")
        return ()
    by_rule = [] if named else _by_rule(keys, rule, layers, family.window_pattern if family else 0)
    narrow = named or by_rule
    if not named and any(narrow) and "windows" not in keys.assumed:
        keys.assumed["windows"] = (
            f"{sum(narrow)} of {layers} layers see {width} tokens; the file does not list them, "
            f"this is what its class does"
        )
    if rule == "chunk" and any(narrow):
        keys.assumed["windows"] = (
            f"{sum(narrow)} of {layers} layers attend within chunks of {width} tokens, taken as a "
            f"window of {width}, of which a token in mid-chunk sees half"
        )
    return tuple(width if flag else 0 for flag in narrow) if any(narrow) else ()


def _width(keys: HfKeys, rule: str) -> int:
    if rule == "chunk":
        return keys.count("attention_chunk_size", default=0, minimum=0)
    index = keys.count("index_topk", default=0, minimum=0)
    if index:
        keys.assumed["windows"] = (
            f"sparse attention: each token attends to {index} chosen tokens, taken as a window of "
            f"{index}; the indexer that chooses them is left out"
        )
        return index
    usual = class_numbers(keys.text("model_type")).window
    return keys.class_count(
        usual, "sliding_window", "sliding_window", "sliding_window_size", "window_size"
    )


def _layer_types(keys: HfKeys, layers: int) -> list[bool]:
    """Return which layers the file lists as windowed, empty where it lists none."""
    for key in ("layer_types", "attention_layers"):
        node = keys.node(key)
        if node is None or node.kind != "list":
            continue
        names = [item.as_text() for item in _one_a_layer(keys, key, layers)]
        chosen = INDEXED if keys.has("index_topk") else frozenset()
        strange = sorted({*names} - SLIDING - FULL - chosen)
        if strange:
            keys.part.fault(f"{_listing(strange)} layers are not modelled", key=key)
        return [name in SLIDING | chosen for name in names]
    for key, windowed in (("hybrid_layer_pattern", 1), ("attn_type_list", None)):
        node = keys.node(key)
        if node is None or node.kind != "list":
            continue
        kinds = [item.as_count(minimum=0) for item in _one_a_layer(keys, key, layers)]
        if windowed is None and 0 in kinds:
            keys.part.fault(f"{kinds.count(0)} layers have linear attention: not modelled", key=key)
        return [kind == windowed for kind in kinds]
    return []


def _listing(names: Sequence[str]) -> str:
    shown = ", ".join(name[:40] for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} other kinds of"


def _by_rule(keys: HfKeys, rule: str, layers: int, pattern: int) -> list[bool]:
    if keys.has("index_topk"):
        return [True] * layers
    if rule == "all":
        return [True] * layers
    if rule == "even":
        return [layer % 2 == 0 for layer in range(layers)]
    if rule == "late":
        if not keys.has("use_sliding_window"):
            return [False] * layers
        first = keys.count("max_window_layers", default=layers, minimum=0)
        return [layer >= first for layer in range(layers)]
    if rule in {"pattern", "chunk"}:
        every = keys.count("sliding_window_pattern", "no_rope_layer_interval", default=pattern or 4)
        return [(layer + 1) % every != 0 for layer in range(layers)]
    return [False] * layers


def entries_allowed(keys: HfKeys, layers: int) -> bool:
    """Return whether *layers* is a number of layers one may list; a fault is recorded if not."""
    if layers > MOST_ENTRIES:
        keys.part.fault(f"{layers} layers: expected at most {MOST_ENTRIES:,}")
    return layers <= MOST_ENTRIES
