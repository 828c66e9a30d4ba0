"""A model by catalogue name or file: a Hugging Face config.json or our own YAML.

What kind of file it is shows in its content, never in its name.

Our own YAML has the fields of ``ModelSpec``, those of attention and experts in groups::

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
from difflib import get_close_matches
from pathlib import Path

from planner.documents import Document, Node, read_document
from planner.errors import SpecError
from planner.model import Attention, ModelSpec
from topologies.import_hf_config import import_hf_config, looks_like_hf_config
from topologies.pattern_text import MOST_ENTRIES, parse_pattern

CATALOGUE = Path(__file__).parent / "models"

_TOP = (
    "name", "source", "hidden", "vocab", "layers", "attention", "ffn", "gated_mlp", "moe",
    "windows", "mtp_layers", "tied_embeddings", "learned_positions", "mlp_bias", "norms_per_layer",
    "norm_bias", "embedding_norm", "parallel_block", "max_positions",
)  # fmt: skip
_ATTENTION = (
    "kind", "heads", "kv_heads", "head_dim", "v_head_dim", "q_lora_rank", "kv_lora_rank",
    "rope_head_dim", "qkv_bias", "out_bias", "qk_norm", "sinks",
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


def read_model(path_or_name: str | Path) -> ModelSpec:
    """Return the model of that catalogue name, or in that file.

    Raises:
        SpecError: no such model or file, or every fault in the file with its line.
    """
    text = str(path_or_name)
    if text.lower() in model_names():
        return read_catalogue_model(text.lower()).model
    path = Path(text)
    if len(text) > 4096 or "\0" in text or not path.exists():
        raise SpecError(_no_such_model(text))
    if path.is_dir():
        inside = path / "config.json"
        hint = f"give the file, {inside}" if inside.is_file() else "give a config.json or a YAML"
        raise SpecError(f"{path}: is a folder: {hint}")
    return model_from_document(read_document(path), name=_name_from(path))


def read_catalogue_model(name: str) -> CatalogueModel:
    """Return the catalogue's model *name* with its source."""
    document = read_document(CATALOGUE / f"{name}.yaml", name=f"{name}.yaml")
    source = document.root.text("source")
    return CatalogueModel(model=model_from_document(document, name=name), source=source)


def model_from_document(document: Document, *, name: str) -> ModelSpec:
    """Return the model that *document* describes, in whichever of the kinds it is.

    Args:
        document: a parsed file.
        name: what the model is called where the file does not say.
    """
    root = document.root
    if root.kind != "map":
        root.fault("expected a model: a Hugging Face config.json, or keys such as hidden, layers")
        document.finish()
    if root.has("hidden") and root.has("layers"):
        return _own(document, name)
    if looks_like_hf_config(root):
        return import_hf_config(document, name=name)
    keys = ", ".join(repr(key[:40]) for key in root.keys()[:5]) or "no keys"
    root.fault(
        f"no model: found {keys}; expected a Hugging Face config.json (model_type, hidden_size, "
        f"num_hidden_layers …) or our own YAML (hidden, layers, attention …)"
    )
    document.finish()
    raise SpecError(f"{document.name}: no model")


def _own(document: Document, name: str) -> ModelSpec:
    root = document.root
    root.only(*_TOP)
    layers = root.count("layers", maximum=MOST_ENTRIES)
    heads = root.map("attention")
    moe = root.map("moe", default=None)
    called = root.name("name", default=name)
    root.text("source", default="")
    numbers = {
        key: root.count(key, default=default, minimum=0)
        for key, default in (
            ("ffn", 0), ("mtp_layers", 0), ("learned_positions", 0), ("norms_per_layer", 2),
            ("max_positions", 0),
        )
    }  # fmt: skip
    flags = {
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


def _attention_fields(node: Node) -> dict[str, str | int | bool]:  # type: ignore[type-arg]
    node.only(*_ATTENTION)
    heads, head_dim = node.count("heads"), node.count("head_dim")
    kind = node.text("kind", default="gqa", choices=("gqa", "mla"))
    fields: dict[str, str | int | bool] = {
        "kind": kind, "heads": heads, "head_dim": head_dim,
        "kv_heads": node.count("kv_heads", default=heads),
        "v_head_dim": node.count("v_head_dim", default=head_dim),
    }  # fmt: skip
    for key in ("q_lora_rank", "kv_lora_rank", "rope_head_dim"):
        fields[key] = node.count(key, default=0, minimum=0)
    for key in ("qkv_bias", "out_bias", "qk_norm", "sinks"):
        fields[key] = node.flag(key, default=False)
    return fields


def _moe_fields(node: Node, layers: int) -> dict[str, object]:
    node.only(*_MOE)
    flags = _entries(node, "layers", layers, most=1) or (1,) * layers
    fields: dict[str, object] = {
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


def _name_from(path: Path) -> str:
    stem = path.parent.name if path.name == "config.json" and path.parent.name else path.stem
    return re.sub(r"[^A-Za-z0-9_.:+-]+", "-", stem)[:128].strip("-") or "model"


def _no_such_model(text: str) -> str:
    shown = text if len(text) <= 80 and text.isprintable() else ascii(text)[:80] + "…"
    near = get_close_matches(text.lower()[:80], model_names(), n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(model_names())}"
    return f"{shown}: no such file, nor a model of the catalogue; {hint}"
