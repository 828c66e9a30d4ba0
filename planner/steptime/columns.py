"""Layouts as columns: one array for each degree, so that one layout and a million run one code.

A column is a float (one layout) or a NumPy array (many); all columns broadcast against each
other. Words become small integers: ``RECOMPUTE``, ``PRECISIONS``, ``SCHEDULES``, ``CP_KINDS``
give the code of each word by its position.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from planner.layout import Layout

Values: TypeAlias = Any
"""A float, or an array of floats that broadcasts; typed loosely because both run every line."""

RECOMPUTE = ("none", "selective", "full")
PRECISIONS = ("bf16", "fp16", "fp8", "fp4")
SCHEDULES = ("1f1b", "gpipe", "zb-h1", "dualpipe")
CP_KINDS = ("ring", "all_gather", "ulysses")
STACKS = ("fused", "eager", "unfused", "compiled")
"""Kernels a framework runs: Transformer Engine's, PyTorch's own with flash attention, those of
before flash attention, or PyTorch's with element-wise operators fused by ``torch.compile``."""

_CODES = {
    "recompute": RECOMPUTE,
    "precision": PRECISIONS,
    "schedule": SCHEDULES,
    "cp_kind": CP_KINDS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LayoutColumns:
    """Layouts as a struct of arrays; field names are those of ``planner.layout.Layout``.

    Args:
        recompute, precision, schedule, cp_kind: codes, the position in the tuples above [1].
        sequence_parallel, overlap_gradients, overlap_parameters, domain_copies: 0 or 1.
        overlap_tensor: 1 where TP traffic runs under the GEMMs it feeds (Megatron's
            ``--tp-comm-overlap``), 0 where it stands between them.
        stack: code of ``STACKS``: ``fused`` (Transformer Engine and its like), ``eager`` (operator
            by operator, flash attention), ``unfused`` (the s x s scores are written to memory),
            ``compiled`` (eager but for fused element-wise operators).
        overlap_experts: 1 where dispatch and combine run under another micro-batch's compute.
        fused_experts: 1 where routing, permutation and grouped GEMMs are fused and launched as one
            captured graph, 0 where the host launches each expert's kernels.
        overlap_hops: 1 where an interleaved pipeline's hops run under other chunks, 0 where each
            stage waits for them (Megatron before ``--overlap-p2p-communication``).
        scatter_gather: 1 where a pipeline hop sends each TP rank's part only (always with SP).
        stops_early: 1 where a full recomputation ends with the last tensor that the backward reads,
            0 where it repeats the whole forward.
        widened_bytes: by so many bytes a gradient grows before it is reduced: FSDP2 reduces in FP32
            what the backward made in 16 bit.
        shard_gpus: members of the dense data-parallel group (cp x dp) that share one copy of what
            is sharded, neighbours in it (HSDP); 0 where the whole group does.
        newer_attention: 1 where PyTorch runs kernels written for Hopper or later (cuDNN's,
            FlashAttention 3), as fused stacks do, instead of FlashAttention 2.
        compiled_loss: 1 where PyTorch's own loss is compiled, 0 where it runs operator by operator.
    """

    tp: Values
    cp: Values
    ep: Values
    etp: Values
    dp: Values
    pp: Values
    vpp: Values
    zero_stage: Values
    micro_batch: Values
    global_batch: Values
    seq: Values
    recompute: Values
    precision: Values
    sequence_parallel: Values
    cp_kind: Values
    schedule: Values
    overlap_gradients: Values
    overlap_parameters: Values
    domain_copies: Values
    activation_bytes: Values
    dispatch_bytes: Values
    combine_bytes: Values
    parameter_bytes: Values
    gradient_bytes: Values
    optimizer_bytes: Values
    overlap_tensor: Values = 0.0
    overlap_experts: Values = 0.0
    fused_experts: Values = 0.0
    overlap_hops: Values = 1.0
    scatter_gather: Values = 0.0
    compiled_loss: Values = 0.0
    stops_early: Values = 0.0
    widened_bytes: Values = 0.0
    shard_gpus: Values = 0.0
    newer_attention: Values = 0.0
    stack: Values = 0.0

    @property
    def gpus(self) -> Values:
        """GPUs each layout occupies [1]."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def fused_attention(self) -> Values:
        """1 for flash attention, 0 where scores are written to memory."""
        return (self.stack != 2) * 1.0

    @property
    def edp(self) -> Values:
        """Expert data-parallel degree [1]."""
        return self.tp * self.cp * self.dp / (self.etp * self.ep)

    @property
    def shards(self) -> Values:
        """Ranks that one copy of the dense parameters is sharded over, where it is [1]."""
        return select(self.shard_gpus > 0, self.shard_gpus, self.cp * self.dp)

    @property
    def expert_shards(self) -> Values:
        """Ranks that one copy of a rank's experts is sharded over: as many replicas [1]."""
        return self.edp / self.replicas

    @property
    def replicas(self) -> Values:
        """Copies of what is sharded, 1 where the whole data-parallel group shares one [1]."""
        return self.cp * self.dp / self.shards

    @property
    def micro_batches(self) -> Values:
        """Micro-batches one replica runs in a step [1]."""
        return self.global_batch / (self.dp * self.micro_batch)

    @property
    def tokens(self) -> Values:
        """Tokens of one micro-batch on one rank, before TP splits them [1]."""
        return self.micro_batch * self.seq / self.cp


def own_kernels(columns: LayoutColumns) -> Values:
    """Return 1 where PyTorch's own kernels run, operator by operator or compiled, else 0 [1]."""
    eager, compiled = STACKS.index("eager"), STACKS.index("compiled")
    return ((columns.stack == eager) + (columns.stack == compiled)) * 1.0


def repeats_operators(columns: LayoutColumns) -> Values:
    """Return 1 where selective recomputation is PyTorch's, operator by operator, else 0 [1]."""
    return own_kernels(columns) * (columns.recompute == RECOMPUTE.index("selective"))


def columns_of(layout: Layout | Sequence[Layout], **run: float) -> LayoutColumns:
    """Return one layout as scalars, or many as arrays.

    Args:
        layout: one layout, or a sequence of them.
        run: values of the columns that ``Layout`` does not have. Left out, TP traffic overlaps
            where it is sequence parallel, kernels are fused, experts' are not.

    >>> from planner.layout import Layout
    >>> columns_of(Layout(tp=8, dp=2, global_batch=16)).gpus
    16.0
    """
    if isinstance(layout, Sequence):
        return _stack([_row(one) for one in layout], run)
    return LayoutColumns(**{**_row(layout), **run})


def _row(layout: Layout) -> dict[str, Any]:
    row: dict[str, Any] = {}
    for field in fields(LayoutColumns):
        if field.name == "domain_copies":
            row[field.name] = float(layout.ep_copies == "domain")
        elif field.name in _CODES:
            row[field.name] = float(_CODES[field.name].index(getattr(layout, field.name)))
        elif field.name == "shard_gpus":
            row[field.name] = float(layout.cp * layout.dp_shard)
        elif field.name == "overlap_tensor":
            row[field.name] = float(layout.sequence_parallel)
        elif hasattr(layout, field.name):
            row[field.name] = float(getattr(layout, field.name))
    return row


def _stack(rows: Sequence[dict[str, Any]], run: dict[str, float]) -> LayoutColumns:
    columns = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    return LayoutColumns(**{**columns, **run})


def take(table: Sequence[float], code: Values) -> Values:
    """Return ``table[code]`` for a scalar code or an array of them."""
    if isinstance(code, np.ndarray):
        return np.asarray(table, dtype=float)[code.astype(np.intp)]
    return table[int(code)]


def select(flag: Values, when_true: Values, when_false: Values) -> Values:
    """Return *when_true* where *flag* is not 0, else *when_false*; scalars stay floats."""
    if isinstance(flag, np.ndarray):
        return np.where(flag if flag.dtype == np.bool_ else flag != 0, when_true, when_false)
    return when_true if flag else when_false


def lone(values: Values) -> Values:
    """Return a NumPy value of no dimension as a float, whose arithmetic is several times as fast.

    Columns and floats are returned as they are.

    >>> lone(np.asarray(2.0)), lone(np.array([2.0])), lone(2.0)
    (2.0, array([2.]), 2.0)
    """
    if isinstance(values, np.ndarray | np.generic) and values.ndim == 0:
        return values.item()
    return values


def anywhere(flag: Values) -> bool:
    """Return whether *flag* is not 0 for any layout."""
    return bool(flag.any()) if isinstance(flag, np.ndarray) else bool(flag)


def larger(left: Values, right: Values) -> Values:
    """Return the larger of two columns, element by element; scalars stay floats."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.maximum(left, right)
    return max(left, right)


def smaller(left: Values, right: Values) -> Values:
    """Return the smaller of two columns, element by element; scalars stay floats."""
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        return np.minimum(left, right)
    return min(left, right)


def whole(values: Values) -> Values:
    """Return the next whole number at or above *values*; scalars stay floats."""
    if isinstance(values, np.ndarray):
        return np.ceil(values - 1e-9)
    return float(-(-(values - 1e-9) // 1))
