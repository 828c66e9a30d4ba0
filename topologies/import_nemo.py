"""A NeMo YAML file to an ``ImportedRun``: Megatron's arguments under other names.

NeMo fills values in with OmegaConf's ``${multiply:4, ${.hidden_size}}`` and ``${model.seq}``; a
few such forms are resolved here by their own rules, anything else counts as unknown.
"""

from __future__ import annotations

import re

from planner.documents import Document, Node
from topologies.import_megatron import run_from_arguments
from topologies.import_megatron_yaml import text_of
from topologies.imported_run import ImportedRun
from topologies.megatron_args import Argument, MegatronArguments
from topologies.shell_text import UNKNOWN

_RENAMED = {
    "encoder_seq_length": "seq_length",
    "virtual_pipeline_model_parallel_size": "num_virtual_stages_per_pipeline_rank",
    "activations_checkpoint_granularity": "recompute_granularity",
    "bias": "add_bias_linear",
    "num_moe_experts": "num_experts",
    "override_vocab_size": "padded_vocab_size",
    "qkv_bias": "add_qkv_bias",
}
_GATED = frozenset({"swiglu", "fast-swiglu", "geglu", "fast-geglu"})
_MODEL_KEYS = frozenset({"tensor_model_parallel_size", "pipeline_model_parallel_size"})
_INNERMOST = re.compile(r"\$\{([^${}]{0,200})\}")
MOST_STEPS = 16


def looks_like_nemo(root: Node) -> bool:
    """Return whether *root* is a NeMo file: parallel degrees in its model, or its strategy."""
    return any(_MODEL_KEYS & {*part.keys()} for part in _parts(root))


def _parts(root: Node) -> tuple[Node, ...]:
    """Return the mappings that hold Megatron's arguments: of NeMo 1 one, of NeMo 2 three."""
    ways = (("model",), ("trainer", "strategy"), ("data",), ("model", "config"))
    return tuple(part for way in ways if (part := _inside(root, way)) is not None)


def _inside(root: Node, way: tuple[str, ...]) -> Node | None:
    node: Node | None = root
    for key in way:
        node = node.optional(key) if node is not None and node.kind == "map" else None
    return node if node is not None and node.kind == "map" else None


def import_nemo(document: Document) -> ImportedRun:
    """Return the run that a NeMo file describes.

    Raises:
        SpecError: every value that cannot be read, with file and line.
    """
    root = document.root
    texts: dict[str, str] = {}
    arguments: dict[str, Argument] = {}
    for part in _parts(root):
        for key, value in _scalars(part):
            texts[key] = _resolve(text_of(value), root, part)
            arguments[_RENAMED.get(key, key)] = Argument(texts[key], str(value.where))
    where = str(_parts(root)[0].where)
    activation = texts.get("activation", "")
    if activation in _GATED:
        arguments["swiglu"] = Argument("true", where)
    if texts.get("share_embeddings_and_output_weights", "true").lower() == "false":
        arguments["untie_embeddings_and_output_weights"] = Argument("true", where)
    if "num_query_groups" in texts and texts["num_query_groups"] != "null":
        arguments["group_query_attention"] = Argument("true", where)
    trainer = root.optional("trainer")
    precision = _text_in(trainer, "precision", root) or texts.get("precision", "")
    for kind, label in (("bf16", "bf16"), ("fp16", "16")):
        if precision.startswith(label):
            arguments[kind] = Argument("true", where)
    if texts.get("fp8", "").lower() == "false":
        del arguments["fp8"]
    optimizer = _text_in(_inside(root, ("model", "optim")), "name", root)
    if "distributed" in optimizer:
        arguments["use_distributed_optimizer"] = Argument("true", where)
    gpus = _product(_text_in(trainer, "num_nodes", root), _text_in(trainer, "devices", root))
    document.finish()
    return run_from_arguments(MegatronArguments(arguments, document.name), gpus=gpus, kind="NeMo")


def _scalars(node: Node) -> list[tuple[str, Node]]:
    return [(key, value) for key, value in node.items() if value.kind not in {"map", "list"}]


def _text_in(node: Node | None, key: str, root: Node) -> str:
    value = node.optional(key) if node is not None and node.kind == "map" else None
    if value is None or value.kind in {"map", "list", "null"} or node is None:
        return ""
    return _resolve(text_of(value), root, node)


def _product(left: str, right: str) -> int | None:
    if re.fullmatch(r"[0-9]{1,9}", left) and re.fullmatch(r"[0-9]{1,9}", right):
        return int(left) * int(right) or None
    return None


def _resolve(text: str, root: Node, holder: Node) -> str:
    """Return *text* with its interpolations filled in, ``UNKNOWN`` for those we do not know."""
    if text == "???":
        return UNKNOWN
    for _ in range(MOST_STEPS):
        match = _INNERMOST.search(text)
        if match is None:
            return text
        text = text[: match.start()] + _value(match.group(1), root, holder) + text[match.end() :]
        if len(text) > 1000:
            return UNKNOWN
    return UNKNOWN


def _value(inner: str, root: Node, holder: Node) -> str:
    operation, colon, rest = inner.partition(":")
    if colon and operation.strip() in {"multiply", "add", "sum"}:
        terms = [term.strip() for term in rest.split(",")]
        if not all(re.fullmatch(r"[0-9]{1,9}", term) for term in terms):
            return UNKNOWN
        product = 1
        for term in terms:
            product *= int(term)
        multiplied = operation.strip() == "multiply"
        return str(product if multiplied else sum(int(term) for term in terms))
    if colon:
        return UNKNOWN
    node: Node | None = holder if inner.startswith(".") else root
    for key in inner.strip(".").split("."):
        node = node.optional(key) if node is not None and node.kind == "map" else None
    if node is None or node.kind in {"map", "list"}:
        return UNKNOWN
    return text_of(node)
