"""A YAML file of NeMo or Megatron Bridge to an ``ImportedRun``: Megatron's arguments renamed.

NeMo 1 has them in ``model``; NeMo 2 in ``trainer.strategy``, ``data``, ``model.config`` and
``optim.config``; Megatron Bridge in ``model``, ``train``, ``dataset``, ``ddp`` and ``optimizer``.

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
    "gated_linear_unit": "swiglu",
    "sequence_length": "seq_length",
    "num_layers_in_first_pipeline_stage": "decoder_first_pipeline_num_layers",
    "num_layers_in_last_pipeline_stage": "decoder_last_pipeline_num_layers",
}
_TELLING = frozenset({
    "micro_batch_size", "global_batch_size", "tensor_model_parallel_size",
    "pipeline_model_parallel_size", "context_parallel_size", "expert_model_parallel_size",
})  # fmt: skip
_MOST_SHOWN = 5
_GATED = frozenset({"swiglu", "fast-swiglu", "geglu", "fast-geglu"})
_PARTS = (
    ("model",), ("trainer", "strategy"), ("trainer", "strategy", "ddp"), ("data",),
    ("model", "config"), ("optim", "config"), ("train",), ("dataset",), ("ddp",), ("optimizer",),
    ("mixed_precision",),
)  # fmt: skip
_MODEL_KEYS = frozenset({"tensor_model_parallel_size", "pipeline_model_parallel_size"})
_INNERMOST = re.compile(r"\$\{([^${}]{0,200})\}")
MOST_STEPS = 16


def looks_like_nemo(root: Node) -> bool:
    """Return whether *root* is a NeMo file: parallel degrees in its model, or its strategy."""
    return any(_MODEL_KEYS & {*part.keys()} for part in _parts(root))


def _parts(root: Node) -> tuple[Node, ...]:
    """Return the mappings that hold Megatron's arguments, the dialects' own first."""
    return tuple(part for way in _PARTS if (part := _inside(root, way)) is not None)


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
    precision = next(
        filter(None, (
            _text_in(trainer, "precision", root),
            _text_in(_inside(root, ("trainer", "plugins")), "precision", root),
            _text_in(root, "mixed_precision", root),
            texts.get("precision", ""),
        )), "",
    )  # fmt: skip
    for kind, label in (("bf16", "bf16"), ("fp16", "16"), ("fp16", "fp16")):
        if precision.startswith(label):
            arguments[kind] = Argument("true", where)
    if any(word in precision for word in ("fp8", "nvfp4")):
        arguments["fp8_format"] = Argument("hybrid", where)
    if texts.get("fp8", "").lower() in {"false", "null"}:
        del arguments["fp8"]
    optimizer = _text_in(_inside(root, ("model", "optim")), "name", root)
    if "distributed" in optimizer:
        arguments["use_distributed_optimizer"] = Argument("true", where)
    gpus = _product(_text_in(trainer, "num_nodes", root), _text_in(trainer, "devices", root))
    document.finish()
    found = MegatronArguments(arguments, document.name)
    if elsewhere := _stated_elsewhere(root, {*map(id, _parts(root))}):
        found.assumed["not_read"] = ", ".join(elsewhere[:_MOST_SHOWN]) + ": of another part"
    return run_from_arguments(found, gpus=gpus, kind="NeMo")


def _stated_elsewhere(root: Node, read: set[int]) -> list[str]:
    """Return where parts that are not read state batches or degrees."""
    found: list[str] = []
    waiting: list[tuple[str, Node]] = [("", root)]
    while waiting:
        way, node = waiting.pop(0)
        for key, value in node.items():
            if value.kind == "map":
                waiting.append((f"{way}{key}.", value))
            elif id(node) not in read and key in _TELLING and value.kind == "number":
                found.append(f"{way}{key}")
    return found


def _scalars(node: Node) -> list[tuple[str, Node]]:
    """Return the values of *node* that are no mappings; lists only where they are of numbers."""
    return [
        (key, value)
        for key, value in node.items()
        if value.kind != "map" and (value.kind != "list" or text_of(value).startswith("["))
    ]


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
