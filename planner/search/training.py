"""How long a sequence and how large a batch are taken where they are not given."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.model import ModelSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A published choice of sequence length and batch.

    Args:
        seq: sequence length [tokens].
        global_batch: sequences of one step [1].
        source: where it is printed.
        rounded_from: sequences that were published, where GPUs do not divide them; else 0 [1].
        multiple_of: of what the batch is the nearest multiple to those, where it is rounded [1].
    """

    seq: int
    global_batch: int
    source: str
    rounded_from: int = 0
    multiple_of: int = 0

    @property
    def words(self) -> str:
        """The batch and where it is from, and from what it was rounded."""
        if not self.rounded_from:
            return f"{self.global_batch}: {self.source}"
        return (
            f"{self.global_batch}: rounded from {self.rounded_from}, so that replicas get whole "
            f"micro-batches, to a multiple of {self.multiple_of}; {self.source}"
        )


_LLAMA_3 = 128256
"""The vocabulary of every Llama 3 [1]: its 70B has the other dimensions of Llama 2's."""
_LLAMA_3_SMALLER = frozenset({(4096, 32, 0), (8192, 80, 0)})

# By shape (hidden, layers, experts), so that a renamed config.json finds its own.
_PUBLISHED = {
    (16384, 126, 0): Batch(
        seq=8192, global_batch=2048,
        source="Llama 3 trained 405B on 16 M tokens a step of 8,192 each (arXiv:2407.21783 §3.4)",
    ),
    (7168, 61, 256): Batch(
        seq=4096, global_batch=15360,
        source="DeepSeek-V3 trained on 15,360 sequences of 4 K (arXiv:2412.19437 §4.2)",
    ),
    (12288, 96, 0): Batch(
        seq=2048, global_batch=1536,
        source="Megatron-LM trained GPT-3 on 1,536 sequences of 2,048 (arXiv:2104.04473 table 1)",
    ),
    (8192, 80, 0): Batch(
        seq=4096, global_batch=1024,
        source="Llama 2 trained on 4 M tokens a step of 4,096 each (arXiv:2307.09288 §2.2)",
    ),
}  # fmt: skip
_AS_LLAMA_3_405B = Batch(
    seq=8192, global_batch=2048,
    source="as Llama 3's 405B, 16 M tokens a step of 8,192 each, for its 8B and 70B had similar "
    "recipes; no batch of theirs is published (arXiv:2407.21783 §3.4)",
)  # fmt: skip
_USUAL = Batch(
    seq=4096, global_batch=1024,
    source="4 M tokens a step of 4,096 each, as Llama 2 (arXiv:2307.09288 §2.2)",
)  # fmt: skip
_MOST_OFF = 1 / 8  # of the published batch: what the nearest multiple of a quarter of it is off


def usual_batch(model: ModelSpec, gpus: int, fixed: Mapping[str, Any]) -> Batch:
    """Return the sequence length and batch for what *fixed* leaves open, with their source.

    The tokens of a step stay near the published ones when the sequence is another. The batch is
    the nearest multiple of what shares it out in whole micro-batches: of the replicas where they
    are given, else of the GPUs, for replicas are any divisor of them. Where that is too coarse,
    factors of 2 are left out, and layouts with more replicas with them.

    Args:
        model: the transformer's shape.
        gpus: GPUs of the job [1].
        fixed: fields of ``Layout`` that are given.

    >>> from planner.model import Attention, ModelSpec
    >>> heads = Attention(heads=32, kv_heads=8, head_dim=128, v_head_dim=128)
    >>> model = ModelSpec(name="m", hidden=4096, vocab=32000, layers=32, attention=heads,
    ...                   ffn=14336)
    >>> usual_batch(model, 1024, {}).global_batch, usual_batch(model, 12, {}).global_batch
    (1024, 1020)
    >>> usual_batch(model, 640, {"dp": 40, "micro_batch": 1}).global_batch
    1040
    """
    usual = _published(model)
    seq = fixed.get("seq", min(usual.seq, model.max_positions or usual.seq))
    if "global_batch" in fixed:
        return Batch(seq=seq, global_batch=fixed["global_batch"], source=usual.source)
    wanted = usual.global_batch * usual.seq / seq
    unit = _shared_out(wanted, gpus, fixed)
    batch = unit * max(1, round(wanted / unit))
    if batch == wanted:
        return Batch(seq=seq, global_batch=batch, source=usual.source)
    return Batch(seq=seq, global_batch=batch, source=usual.source, rounded_from=round(wanted),
                 multiple_of=unit)  # fmt: skip


def _shared_out(wanted: float, gpus: int, fixed: Mapping[str, Any]) -> int:
    """Return of what the batch must be a multiple: replicas x micro-batch, or GPUs x micro-batch.

    Args:
        wanted: sequences of a step that were published [1].
        gpus: GPUs of the job [1].
        fixed: fields of ``Layout`` that are given.
    """
    micro_batch = int(fixed.get("micro_batch", 1))
    if "dp" in fixed:  # with virtual stages, stages take turns in whole rounds
        stages = int(fixed.get("pp", 1)) if fixed.get("vpp", 1) > 1 else 1
        return int(fixed["dp"]) * micro_batch * stages
    unit = gpus * micro_batch
    while unit % 2 == 0 and abs(max(1, round(wanted / unit)) * unit / wanted - 1.0) > _MOST_OFF:
        unit //= 2
    return unit


def _published(model: ModelSpec) -> Batch:
    """Return what its makers trained *model* with, or what is usual."""
    shape = (model.hidden, model.layers, model.experts)
    if model.vocab == _LLAMA_3 and shape in _LLAMA_3_SMALLER:
        return _AS_LLAMA_3_405B
    return _PUBLISHED.get(shape, _USUAL)
