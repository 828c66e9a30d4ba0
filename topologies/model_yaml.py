"""Our own model YAML, and the models we ship in it.

The keys are the fields of ``ModelSpec``, those of attention and experts in groups::

    name: mixtral-8x7b
    source: where the numbers come from
    hidden: 4096
    vocab: 32000
    layers: 32
    attention: {heads: 32, kv_heads: 8, head_dim: 128}
    moe: {experts: 8, top_k: 2, expert_ffn: 14336}

``moe.layers`` and ``windows`` have one entry a layer, as a list or as a pattern
(``"[0]*3 + [1]*58"``); without ``moe.layers`` every layer is MoE.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from planner.documents import Document, Node, read_document
from planner.errors import SpecError
from planner.model import Attention, ModelSpec
from topologies.pattern_text import MOST_ENTRIES, parse_pattern

CATALOGUE = Path(__file__).parent / "models"

_TOP = (
    "name", "source", "hidden", "vocab", "layers", "attention", "ffn", "gated_mlp", "moe",
    "windows", "mtp_layers", "tied_embeddings", "learned_positions", "mlp_bias", "norms_per_layer",
    "norm_bias", "embedding_norm", "parallel_block", "max_positions",
)  # fmt: skip
_ATTENTION = (
    "kind", "heads", "kv_heads", "head_dim", "v_head_dim", "q_lora_rank", "kv_lora_rank",
    "rope_head_dim", "qkv_bias", "out_bias", "qk_norm", "qk_norm_elements", "sinks",
)  # fmt: skip
_MOE = (
    "experts", "top_k", "expert_ffn", "shared_expert_ffn", "shared_expert_gate", "router_bias",
    "expert_bias", "layers", "router_groups", "router_top_groups",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogueModel:
    """A model of the catalogue and where its numbers come from."""

    model: ModelSpec
    source: str


def model_names() -> tuple[str, ...]:
    """Return the names of the models we ship, sorted."""
    return tuple(sorted(path.stem for path in CATALOGUE.glob("*.yaml")))


def read_catalogue_model(name: str) -> CatalogueModel:
    """Return the catalogue's model *name* with its source."""
    document = read_document(CATALOGUE / f"{name}.yaml", name=f"{name}.yaml")
    source = document.root.text("source")
    return CatalogueModel(model=import_own_model(document, name=name), source=source)


def catalogue_like(text: str) -> str | None:
    """Return the catalogue model that *text* names, however it is spelled.

    >>> catalogue_like("meta-llama/Llama-3.1-405B"), catalogue_like("llama3.1_405B.yaml")
    ('llama-3.1-405b', 'llama-3.1-405b')
    """
    last = text[:200].rsplit("/", 1)[-1].lower().removesuffix(".yaml")
    wanted = _letters(re.sub(r"^meta-|-(instruct|base|v0\.1)$", "", last))
    return next((name for name in model_names() if _letters(name) == wanted), None)


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9.]", "", text)


def looks_like_own_model(root: Node) -> bool:
    """Return whether *root* has the keys of our own YAML."""
    return root.kind == "map" and root.has("hidden") and root.has("layers")


def import_own_model(document: Document, *, name: str) -> ModelSpec:
    """Return the model that *document* describes in our own keys.

    Args:
        document: the parsed YAML.
        name: what the model is called where the file does not say.

    Raises:
        SpecError: every fault, with file and line.
    """
    root = document.root
    root.only(*_TOP)
    layers = root.count("layers", maximum=MOST_ENTRIES)
    heads = root.map("attention")
    moe = root.map("moe", default=None)
    called = root.name("name", default=name)
    root.text("source", default="")
    numbers: dict[str, Any] = {
        key: root.count(key, default=default, minimum=0)
        for key, default in (
            ("ffn", 0), ("mtp_layers", 0), ("learned_positions", 0), ("norms_per_layer", 2),
            ("max_positions", 0),
        )
    }  # fmt: skip
    flags: dict[str, Any] = {
        key: root.flag(key, default=key == "gated_mlp")
        for key in ("gated_mlp", "tied_embeddings", "mlp_bias", "norm_bias", "embedding_norm",
                    "parallel_block")
    }  # fmt: skip
    hidden, vocab = root.count("hidden"), root.count("vocab")
    windows = _entries(root, "windows", layers)
    attention = _attention_fields(heads)
    experts = _moe_fields(moe, layers) if moe is not None else {}
    document.finish()
    try:
        return ModelSpec(
            name=called, hidden=hidden, vocab=vocab, layers=layers,
            attention=Attention(**attention), windows=windows, **numbers, **flags, **experts,
        )  # fmt: skip
    except SpecError as error:
        raise SpecError(*(f"{document.name}: {fault}" for fault in error.faults)) from None


def _attention_fields(node: Node) -> dict[str, Any]:
    node.only(*_ATTENTION)
    heads, head_dim = node.count("heads"), node.count("head_dim")
    kind = node.text("kind", default="gqa", choices=("gqa", "mla"))
    fields: dict[str, Any] = {
        "kind": kind, "heads": heads, "head_dim": head_dim,
        "kv_heads": node.count("kv_heads", default=heads),
        "v_head_dim": node.count("v_head_dim", default=head_dim),
    }  # fmt: skip
    for key in ("q_lora_rank", "kv_lora_rank", "rope_head_dim", "qk_norm_elements"):
        fields[key] = node.count(key, default=0, minimum=0)
    for key in ("qkv_bias", "out_bias", "qk_norm", "sinks"):
        fields[key] = node.flag(key, default=False)
    return fields


def _moe_fields(node: Node, layers: int) -> dict[str, Any]:
    node.only(*_MOE)
    flags = _entries(node, "layers", layers, most=1) or (1,) * layers
    fields: dict[str, Any] = {
        "experts": node.count("experts"), "top_k": node.count("top_k"),
        "expert_ffn": node.count("expert_ffn"), "moe_layers": tuple(flag > 0 for flag in flags),
    }  # fmt: skip
    for key in ("shared_expert_ffn", "router_groups", "router_top_groups"):
        fields[key] = node.count(key, default=0, minimum=0)
    for key in ("shared_expert_gate", "router_bias", "expert_bias"):
        fields[key] = node.flag(key, default=False)
    return fields


def _entries(node: Node, key: str, layers: int, most: int = 10**9) -> tuple[int, ...]:
    """Return one number a layer from a list or a pattern, empty where the key is absent."""
    given = node.optional(key)
    if given is None:
        return ()
    if given.kind == "list" and len(node.list(key)) != layers:
        given.fault(f"{len(node.list(key))} entries for {layers} layers")
        return ()
    if given.kind == "list":
        entries = tuple(item.as_count(minimum=0, maximum=most) for item in node.list(key))
    else:
        try:
            parsed = parse_pattern(given.as_text())
        except SpecError as error:
            given.fault(str(error))
            return ()
        entries = parsed if isinstance(parsed, tuple) else (parsed,) * layers
        if max(entries, default=0) > most:
            given.fault(f"expected only numbers from 0 to {most}")
    if len(entries) != layers:
        given.fault(f"{len(entries)} entries for {layers} layers")
    return entries
