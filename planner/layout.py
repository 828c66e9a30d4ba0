"""Layout: parallel degrees and rank order, and the groups of ranks along some of its axes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.axes import Axis, refine, replica_axes
from planner.errors import LayoutError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.model import ModelSpec

RANK_ORDERS = ("tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp")
_COUNTS = ("tp", "cp", "ep", "etp", "dp", "pp", "vpp", "micro_batch", "global_batch", "seq")
RECOMPUTES = ("none", "selective", "full")
PRECISIONS = ("bf16", "fp16", "fp8")
CP_KINDS = ("ring", "all_gather", "ulysses")
SCHEDULES = ("1f1b", "gpipe", "zb-h1", "dualpipe")
EP_COPIES = ("expert", "domain")

PART_OF = {"dp_shard": "dp", "edp_shard": "edp", "dp_replicate": "dp"}
"""The groups of hybrid sharding, and the digit that each is a part of."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Parallel degrees, their rank order, and how a step is run.

    Args:
        tp, cp, ep, etp, dp, pp, vpp: degrees [1]; dp is the dense data-parallel degree, so
            gpus = tp x cp x dp x pp, and edp = tp x cp x dp / (etp x ep).
        dp_shard: data-parallel ranks that share one copy of what ZeRO shards (hybrid sharding:
            HSDP, HYBRID_SHARD, MiCS), neighbours along dp; their dp / dp_shard groups are replicas.
            0, or dp itself, which is the same: all of dp [1].
        zero_stage: 0 (plain DDP) to 3 (FSDP).
        micro_batch: sequences in one micro-batch on one data-parallel replica [1].
        global_batch: sequences of one step over all replicas [1].
        seq: sequence length [tokens].
        recompute: ``none``, ``selective`` (attention core) or ``full``.
        precision: ``bf16``, ``fp16`` or ``fp8`` of the GEMMs.
        sequence_parallel: activations between TP regions are split along the sequence.
        cp_kind: ``ring``, ``all_gather`` or ``ulysses``.
        schedule: ``1f1b`` (interleaved when vpp > 1), ``gpipe``, ``zb-h1``, ``dualpipe``.
        order: rank order in Megatron's words, innermost first.
        overlap_gradients: gradient reduction runs under the backward pass.
        overlap_parameters: ZeRO parameter gathers run under compute.
        ep_copies: ``expert`` (one copy per expert) or ``domain`` (one copy per domain, then
            forwarded inside; DeepEP style).
        activation_bytes: bytes of one activation element [bytes].
        dispatch_bytes: bytes of one activation element on the dispatch wire [bytes].
        combine_bytes: bytes of one activation element on the combine wire [bytes].
        parameter_bytes, gradient_bytes, optimizer_bytes: bytes per parameter of each kind [bytes].

    Raises:
        LayoutError: degrees that cannot exist; every fault is named.
    """

    tp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    dp: int = 1
    pp: int = 1
    vpp: int = 1
    dp_shard: int = 0
    zero_stage: int = 1
    micro_batch: int = 1
    global_batch: int = 1
    seq: int = 4096
    recompute: str = "selective"
    precision: str = "bf16"
    sequence_parallel: bool = True
    cp_kind: str = "ring"
    schedule: str = "1f1b"
    order: str = "tp-cp-ep-dp-pp"
    overlap_gradients: bool = True
    overlap_parameters: bool = True
    ep_copies: str = "expert"
    activation_bytes: int = 2
    dispatch_bytes: int = 2
    combine_bytes: int = 2
    parameter_bytes: int = 2
    gradient_bytes: int = 4
    optimizer_bytes: int = 12

    def __post_init__(self) -> None:
        faults = [
            f"{name}={value!r} is not a whole number of at least 1"
            for name in _COUNTS
            if not _is_count(value := getattr(self, name))
        ]
        if self.dp_shard != 0 and not _is_count(self.dp_shard):
            faults.append(f"dp_shard={self.dp_shard!r} is not a whole number of at least 1")
        if not faults:
            if self.dp_shard == self.dp:  # one spelling of one layout
                object.__setattr__(self, "dp_shard", 0)
            faults += self._degree_faults() + self._shard_faults()
        if self.zero_stage not in (0, 1, 2, 3):
            faults.append(f"zero={self.zero_stage!r} is not a ZeRO stage: 0, 1, 2 or 3")
        for name, value, known in (
            ("recompute", self.recompute, RECOMPUTES),
            ("precision", self.precision, PRECISIONS),
            ("cp_kind", self.cp_kind, CP_KINDS),
            ("schedule", self.schedule, SCHEDULES),
            ("ep_copies", self.ep_copies, EP_COPIES),
        ):
            if value not in known:
                faults.append(f"{name}={value!r} is unknown: one of {', '.join(known)}")
        if sorted(self.order.split("-")) != ["cp", "dp", "ep", "pp", "tp"]:
            faults.append(
                f"order={self.order!r} does not name tp, cp, ep, dp and pp once each: "
                f"for instance {RANK_ORDERS[0]}"
            )
        if not faults:
            try:
                refine(self)
            except LayoutError as error:
                faults += error.faults
        if faults:
            raise LayoutError(*faults)

    def _degree_faults(self) -> list[str]:
        faults = []
        width = self.tp * self.cp * self.dp
        if width % (self.etp * self.ep):
            faults.append(
                f"etp x ep = {self.etp} x {self.ep} = {self.etp * self.ep} does not divide "
                f"tp x cp x dp = {self.tp} x {self.cp} x {self.dp} = {width}"
            )
        if self.global_batch % (self.dp * self.micro_batch):
            faults.append(
                f"dp x micro_batch = {self.dp} x {self.micro_batch} = "
                f"{self.dp * self.micro_batch} does not divide global_batch = {self.global_batch}"
            )
        elif self.vpp > 1 and self.micro_batches % self.pp:
            faults.append(
                f"vpp={self.vpp} needs the micro-batches of a replica "
                f"(global_batch / dp / micro_batch = {self.micro_batches}) "
                f"to be a multiple of pp = {self.pp}"
            )
        if self.vpp > 1 and self.pp == 1:
            faults.append(f"vpp={self.vpp} needs pp > 1; pp = 1")
        if self.seq % self.cp:
            faults.append(f"cp={self.cp} does not divide seq = {self.seq}")
        elif self.sequence_parallel and (self.seq // self.cp) % self.tp:
            faults.append(f"tp={self.tp} does not divide seq / cp = {self.seq // self.cp}")
        return faults

    def _shard_faults(self) -> list[str]:
        if not self.dp_shard:
            return []
        faults = []
        if self.dp % self.dp_shard:
            faults.append(f"dp_shard={self.dp_shard} does not divide dp = {self.dp}")
        if self.zero_stage == 0:
            faults.append(f"dp_shard={self.dp_shard} needs zero 1, 2 or 3: zero 0 shards nothing")
        inside = self.etp * self.ep
        if inside > 1 and self.tp * self.cp * self.dp_shard % inside:
            faults.append(
                f"etp x ep = {self.etp} x {self.ep} = {inside} does not divide tp x cp x dp_shard "
                f"= {self.tp} x {self.cp} x {self.dp_shard} = {self.tp * self.cp * self.dp_shard}: "
                "an expert group cannot span two replicas"
            )
        return faults

    @property
    def dp_replicate(self) -> int:
        """Replicas of what ZeRO shards: 1 where it shards over all of dp [1]."""
        return self.dp // self.dp_shard if self.dp_shard else 1

    @property
    def gpus(self) -> int:
        """GPUs the layout occupies [1]."""
        return self.tp * self.cp * self.dp * self.pp

    @property
    def edp(self) -> int:
        """Expert data-parallel degree [1]."""
        return self.tp * self.cp * self.dp // (self.etp * self.ep)

    @property
    def micro_batches(self) -> int:
        """Micro-batches one replica runs in a step [1]."""
        return self.global_batch // (self.dp * self.micro_batch)

    @property
    def axes(self) -> tuple[Axis, ...]:
        """Common refinement of the dense and the expert factorisation, innermost first."""
        return refine(self)

    def axes_of(self, digit: str) -> tuple[int, ...]:
        """Return indices of the axes that make up *digit* (``dp`` of dense gradients: cp and dp).

        Of hybrid sharding ``dp_replicate`` are the replicas, of dense parameters and of experts
        alike; ``dp_shard`` and ``edp_shard`` are the rest of ``dp`` and of ``edp``.

        >>> layout = Layout(tp=4, cp=2, dp=16, ep=8, global_batch=16)
        >>> [(axis.name, axis.size) for axis in layout.axes]
        [('tp', 4), ('cp', 2), ('dp', 16)]
        >>> layout.axes_of("ep"), layout.axes_of("edp"), layout.axes_of("dp")
        ((0, 1), (2,), (1, 2))
        >>> hybrid = Layout(tp=4, cp=2, dp=16, dp_shard=4, global_batch=16)
        >>> hybrid.axes_of("dp_shard"), hybrid.axes_of("dp_replicate")
        ((1, 2), (3,))
        """
        if digit == "dp_replicate":
            return replica_axes(self)
        if digit in PART_OF:
            replicas = replica_axes(self)
            return tuple(i for i in self.axes_of(PART_OF[digit]) if i not in replicas)
        dense = {"tp": ("tp",), "cp": ("cp",), "dp": ("cp", "dp"), "pp": ("pp",)}
        if digit in dense:
            return tuple(i for i, axis in enumerate(self.axes) if axis.dense in dense[digit])
        return tuple(i for i, axis in enumerate(self.axes) if axis.expert == digit)


def layout_values(layout: Layout) -> dict[str, Any]:
    """Return the fields of *layout* as plain values; ``dp_shard`` only where not all of dp is one.

    >>> "dp_shard" in layout_values(Layout(dp=8, dp_shard=8, global_batch=8))
    False
    """
    told = asdict(layout)
    if not layout.dp_shard:
        del told["dp_shard"]
    return told


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def groups_along(sizes: Sequence[int], along: Sequence[int]) -> NDArray[np.int64]:
    """Return the ranks of every group that varies along some axes.

    Args:
        sizes: axis sizes, innermost first [1].
        along: indices of the axes a group's members vary along.

    Returns:
        Array [groups, group_size]; members innermost axis first, groups in order of their least
        rank.

    >>> groups_along((2, 3), (1,)).tolist()
    [[0, 2, 4], [1, 3, 5]]
    """
    count = prod(sizes)
    ranks = np.arange(count).reshape(tuple(reversed(sizes)))
    last = len(sizes) - 1
    inside = sorted(along)
    outside = [i for i in range(len(sizes)) if i not in set(along)]
    order = [last - i for i in reversed(outside)] + [last - i for i in reversed(inside)]
    size = prod(sizes[i] for i in inside)
    return np.ascontiguousarray(ranks.transpose(order).reshape(count // size, size))


def check_layout(layout: Layout, model: ModelSpec, gpus: int) -> None:
    """Refuse a layout that does not fit *model* or *gpus*.

    Raises:
        LayoutError: names every degree that does not divide what it must, with both values.
    """
    faults = _gpu_faults(layout, gpus) + _dense_faults(layout, model)
    faults += _expert_faults(layout, model)
    if faults:
        raise LayoutError(*faults)


def _gpu_faults(layout: Layout, gpus: int) -> list[str]:
    if layout.gpus == gpus:
        return []
    ranks = f"{layout.tp} x {layout.cp} x {layout.dp} x {layout.pp} = {layout.gpus}"
    return [f"tp x cp x dp x pp = {ranks} does not equal the {gpus} GPUs asked for"]


def _dense_faults(layout: Layout, model: ModelSpec) -> list[str]:
    faults = []
    attention = model.attention
    if attention.heads % layout.tp:
        faults.append(f"tp={layout.tp} does not divide the {attention.heads} attention heads")
    if (
        attention.kind == "gqa"
        and attention.kv_heads % layout.tp
        and (layout.tp % attention.kv_heads)
    ):
        faults.append(
            f"tp={layout.tp} neither divides the {attention.kv_heads} key/value heads nor is "
            "a multiple of them"
        )
    if layout.cp_kind == "ulysses" and attention.heads % (layout.tp * layout.cp):
        faults.append(
            f"ulysses needs tp x cp = {layout.tp * layout.cp} to divide the "
            f"{attention.heads} attention heads"
        )
    if model.hidden % layout.tp:
        faults.append(f"tp={layout.tp} does not divide hidden = {model.hidden}")
    if model.dense_layer_count and model.ffn % layout.tp:
        faults.append(f"tp={layout.tp} does not divide ffn = {model.ffn}")
    if layout.pp * layout.vpp > model.layers:
        faults.append(
            f"pp x vpp = {layout.pp} x {layout.vpp} = {layout.pp * layout.vpp} exceeds the "
            f"{model.layers} layers"
        )
    return faults


def _expert_faults(layout: Layout, model: ModelSpec) -> list[str]:
    if not model.experts:
        return [
            f"{name}={degree} needs a model with experts; {model.name} has none"
            for name, degree in (("ep", layout.ep), ("etp", layout.etp))
            if degree > 1
        ]
    faults = []
    if model.experts % layout.ep:
        faults.append(f"ep={layout.ep} does not divide the {model.experts} experts")
    if model.expert_ffn % layout.etp:
        faults.append(f"etp={layout.etp} does not divide expert_ffn = {model.expert_ffn}")
    return faults
