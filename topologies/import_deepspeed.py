"""A DeepSpeed JSON file, or a GPT-NeoX YAML file around one, to an ``ImportedRun``.

DeepSpeed's JSON states how data parallelism works (ZeRO stage, batch sizes, precision), never the
model and seldom a parallel degree; ``"auto"`` is filled in by the trainer and counts as not stated.
GPT-NeoX adds the model and the degrees to the same keys.

Source of names and defaults: DeepSpeed's configuration page (deepspeed.ai/docs/config-json);
megatron/neox_arguments/neox_args.py of GPT-NeoX.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from planner.documents import Document, Node
from planner.errors import SpecError
from planner.model import Attention, ModelSpec
from topologies.imported_run import Field, ImportedRun
from topologies.pattern_text import MOST_ENTRIES

_KNOWN = frozenset({
    "train_batch_size", "train_micro_batch_size_per_gpu", "zero_optimization",
})  # fmt: skip
_NOT_MODELLED = {
    "zero_hpz_partition_size": "weights are gathered within so many GPUs",
    "zero_quantized_weights": "weights travel quantised",
    "zero_quantized_gradients": "gradients travel quantised",
    "offload_optimizer": "optimizer states are kept off the GPU",
    "offload_param": "weights are kept off the GPU",
}
"""Keys of ``zero_optimization`` that change traffic or memory, and what they do."""
_SHAPE = ("num_layers", "hidden_size", "num_attention_heads")
_NOT_WHOLE = f"not read: {', '.join(_SHAPE)} or the vocabulary is not stated"
_NEOX = frozenset({"pipe_parallel_size", "model_parallel_size"})


def looks_like_deepspeed(root: Node) -> bool:
    """Return whether *root* has the keys of a DeepSpeed or GPT-NeoX file."""
    if root.kind != "map":
        return False
    return bool((_KNOWN | _NEOX) & {_plain(key) for key, _ in root.items()})


def import_deepspeed(document: Document) -> ImportedRun:
    """Return what a DeepSpeed (or GPT-NeoX) file says about its run.

    Raises:
        SpecError: every value that cannot be, with file and line.
    """
    root = document.root
    if not looks_like_deepspeed(root):
        root.fault("no DeepSpeed file: expected keys such as train_micro_batch_size_per_gpu")
        document.finish()
    keys = _Keys(root)
    fields = _layout(keys)
    model = _neox_fields(keys) if keys.find("num_layers") and keys.find("hidden_size") else None
    gpus = _gpus(keys)
    document.finish()
    built, unread = None, ""
    if model is not None:
        try:
            built = ModelSpec(**model)  # type: ignore[arg-type]
        except SpecError as error:
            raise SpecError(*(f"{document.name}: {fault}" for fault in error.faults)) from None
    elif any(keys.find(name) for name in _SHAPE):
        keys.assumed["model"] = unread = _NOT_WHOLE
    else:
        keys.assumed["model"] = "not read: a DeepSpeed file does not describe it"
    return ImportedRun(
        model=built, layout=MappingProxyType(fields), gpus=gpus,
        assumed=MappingProxyType(dict(sorted(keys.assumed.items()))),
        provenance=f"DeepSpeed {document.name}", unread_model=unread,
    )  # fmt: skip


def _plain(key: str) -> str:
    return key.replace("-", "_")


class _Keys:
    """Keys with hyphens or underscores; null and "auto" count as absent."""

    def __init__(self, root: Node) -> None:
        self.root = root
        self.assumed: dict[str, str] = {}
        self.spelled: Mapping[str, str] = {_plain(key): key for key, _ in root.items()}

    def find(self, key: str) -> Node | None:
        spelled = self.spelled.get(key)
        node = self.root.optional(spelled) if spelled is not None else None
        if node is None or node.kind == "null":
            return None
        if node.kind == "text" and node.as_text() == "auto":
            self.assumed[key] = '"auto": filled in by the trainer, not stated here'
            return None
        return node

    def count(self, key: str, default: int = 0, minimum: int = 1, maximum: int = 10**9) -> int:
        node = self.find(key)
        return default if node is None else node.as_count(minimum=minimum, maximum=maximum)

    def inner(self, key: str, name: str) -> Node | None:
        node = self.find(key)
        if node is not None and node.kind != "map":
            node.fault("expected a mapping")
            return None
        found = node.optional(name) if node is not None else None
        return None if found is None or found.kind in {"null", "text"} else found

    def enabled(self, key: str) -> bool:
        node = self.inner(key, "enabled")
        return node is not None and node.kind == "bool" and node.as_flag()


def _layout(keys: _Keys) -> dict[str, Field]:
    stage = keys.inner("zero_optimization", "stage")
    fields: dict[str, Field] = {
        "zero_stage": stage.as_count(minimum=0, maximum=3) if stage is not None else 0,
        "precision": _precision(keys), "sequence_parallel": False, "order": "tp-cp-ep-dp-pp",
    }  # fmt: skip
    for key, does in _NOT_MODELLED.items():
        told = keys.inner("zero_optimization", key)
        if told is not None and told.plain() not in (False, 0, -1) and not _on_no_device(told):
            keys.assumed[key] = f"{does}: not modelled, taken as plain ZeRO"
    mics = keys.inner("zero_optimization", "mics_shard_size")
    if mics is not None and mics.plain() not in (0, -1) and fields["zero_stage"] == 3:
        fields["dp_shard"] = mics.as_count(minimum=1)
        keys.assumed["mics_shard_size"] = (
            "replicas sum gradients with every micro-batch; MiCS sums them with the last alone"
        )
    overlap = keys.inner("zero_optimization", "overlap_comm")
    if overlap is not None:
        fields["overlap_gradients"] = fields["overlap_parameters"] = overlap.as_flag()
    autotp = keys.inner("tensor_parallel", "autotp_size")
    for ours, theirs in (("tp", "model_parallel_size"), ("pp", "pipe_parallel_size")):
        fields[ours] = max(keys.count(theirs, 1, minimum=0), 1)
    if autotp is not None:
        fields["tp"] = max(autotp.as_count(minimum=0), 1)
    if keys.find("sequence_parallel_size") is not None:
        fields["cp"], fields["cp_kind"] = keys.count("sequence_parallel_size"), "ulysses"
    if keys.find("seq_length") is not None:
        fields["seq"] = keys.count("seq_length")
    return fields | _batches(keys)


def _on_no_device(offload: Node) -> bool:
    device = offload.optional("device") if offload.kind == "map" else None
    return device is not None and device.plain() in (None, "none")


def _batches(keys: _Keys) -> dict[str, Field]:
    """Return the batches that are stated, and the replicas where they follow from all three."""
    micro = keys.count("train_micro_batch_size_per_gpu")
    steps = keys.count("gradient_accumulation_steps")
    batch = keys.count("train_batch_size")
    if micro and batch and batch % (micro * max(steps, 1)):
        keys.root.fault(
            f"train_batch_size={batch} is no multiple of train_micro_batch_size_per_gpu x "
            f"gradient_accumulation_steps = {micro} x {max(steps, 1)}"
        )
    stated: dict[str, Field] = {"micro_batch": micro, "global_batch": batch}
    if micro and steps and batch and not batch % (micro * steps):
        stated["dp"] = batch // (micro * steps)
    return {name: value for name, value in stated.items() if value}


def _precision(keys: _Keys) -> str:
    for key in ("bf16", "bfloat16"):
        if keys.enabled(key):
            return "bf16"
    if keys.enabled("fp16"):
        kind = keys.inner("fp16", "type")
        return "fp16" if kind is None else "bf16"
    keys.assumed["precision"] = "neither bf16 nor fp16 is enabled: bf16"
    return "bf16"


def _gpus(keys: _Keys) -> int | None:
    for key in ("global_num_gpus", "world_size"):
        if keys.find(key) is not None:
            return keys.count(key) or None
    return None


def _neox_fields(keys: _Keys) -> dict[str, object] | None:
    layers = keys.count("num_layers", maximum=MOST_ENTRIES)
    hidden, heads = keys.count("hidden_size"), keys.count("num_attention_heads")
    vocab = keys.count("padded_vocab_size") or keys.count("vocab_size")
    if not heads or not vocab:
        return None
    if hidden % heads:
        keys.root.fault(f"num_attention_heads={heads} does not divide hidden_size={hidden}")
        return None
    width = hidden // heads
    gated = _word(keys, "activation", "gelu") in {"swiglu", "geglu", "silu"}
    rotary = _word(keys, "pos_emb", "learned") != "learned"
    positions = keys.count("max_position_embeddings")
    bias = _flag(keys, "use_bias_in_attn_linear", default=True)
    return {
        "name": f"neox-l{layers}-h{hidden}", "hidden": hidden, "vocab": vocab, "layers": layers,
        "attention": Attention(
            heads=heads, kv_heads=keys.count("num_kv_heads", heads), head_dim=width,
            v_head_dim=width, qkv_bias=bias, out_bias=bias,
        ),
        "ffn": keys.count("intermediate_size", 4 * hidden), "gated_mlp": gated,
        "mlp_bias": _flag(keys, "use_bias_in_mlp", default=True),
        "norm_bias": _word(keys, "norm", "layernorm") == "layernorm",
        "tied_embeddings": not _flag(keys, "no_weight_tying", default=False),
        "parallel_block": _flag(keys, "gpt_j_residual", default=False),
        "learned_positions": 0 if rotary else positions, "max_positions": positions,
    }  # fmt: skip


def _word(keys: _Keys, key: str, default: str) -> str:
    node = keys.find(key)
    return default if node is None else node.as_text()


def _flag(keys: _Keys, key: str, *, default: bool) -> bool:
    node = keys.find(key)
    return default if node is None else node.as_flag()
