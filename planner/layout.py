"""Layout: parallel degrees and rank order, to refined axes and groups of ranks.

The dense factorisation tp x cp x dp x pp and the expert one etp x ep x edp x pp both number the
same ranks. Writing both as mixed-radix digits over one common refinement (*axes*) turns every
group family into *the set of axes along which its members vary*.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

import numpy as np

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

_EXPERT_DIGIT = {"tp": "etp", "ep": "ep", "dp": "edp", "pp": "pp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One digit of the rank's mixed-radix number.

    Args:
        name: the dense digit it is part of, with a running number where that digit is split
            (``dp0``, ``dp1``, innermost first).
        size: values the digit takes [1].
        stride: ranks between two neighbours along the axis [1].
        dense: ``tp``, ``cp``, ``dp`` or ``pp``: the dense degree it belongs to.
        expert: ``etp``, ``ep``, ``edp`` or ``pp``: the expert degree it belongs to.
    """

    name: str
    size: int
    stride: int
    dense: str
    expert: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Parallel degrees, their rank order, and how a step is run.

    Args:
        tp, cp, ep, etp, dp, pp, vpp: degrees [1]; dp is the dense data-parallel degree, so
            gpus = tp x cp x dp x pp, and edp = tp x cp x dp / (etp x ep).
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
        if not faults:
            faults += self._degree_faults()
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

        >>> layout = Layout(tp=4, cp=2, dp=16, ep=8, global_batch=16)
        >>> [(axis.name, axis.size) for axis in layout.axes]
        [('tp', 4), ('cp', 2), ('dp', 16)]
        >>> layout.axes_of("ep"), layout.axes_of("edp"), layout.axes_of("dp")
        ((0, 1), (2,), (1, 2))
        """
        dense = {"tp": ("tp",), "cp": ("cp",), "dp": ("cp", "dp"), "pp": ("pp",)}
        if digit in dense:
            return tuple(i for i, axis in enumerate(self.axes) if axis.dense in dense[digit])
        return tuple(i for i, axis in enumerate(self.axes) if axis.expert == digit)


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def refine(layout: Layout) -> tuple[Axis, ...]:
    """Return the axes: the coarsest mixed radix in which both factorisations can be written.

    Raises:
        LayoutError: the two factorisations do not align; names the digits that clash.

    >>> [axis.size for axis in refine(Layout(tp=8, pp=4, dp=2, order="tp-cp-ep-pp-dp",
    ...                                      global_batch=2))]
    [8, 4, 2]
    """
    order = layout.order.split("-")
    dense = [(d, getattr(layout, d)) for d in order if d != "ep"]
    if layout.etp * layout.ep == 1:  # no expert group to align: its replicas are all but pp
        return _dense_axes(dense)
    expert = [(_EXPERT_DIGIT[d], getattr(layout, _EXPERT_DIGIT[d])) for d in order if d != "cp"]
    dense_ends, expert_ends = _ends(dense), _ends(expert)
    cuts = sorted({end for _, end in dense_ends} | {end for _, end in expert_ends} | {1})
    axes: list[Axis] = []
    for low, high in pairwise(cuts):
        dense_digit, expert_digit = _owner(dense_ends, high), _owner(expert_ends, high)
        if high % low:
            raise LayoutError(
                f"the digits clash: the dense factorisation {_spelled(dense)} and the expert "
                f"factorisation {_spelled(expert)} cannot share ranks, because {low} ranks "
                f"(inside {_owner(dense_ends, low)}/{_owner(expert_ends, low)}) do not divide "
                f"{high} ranks ({dense_digit}/{expert_digit})"
            )
        if (dense_digit == "pp") != (expert_digit == "pp"):
            raise LayoutError(
                f"the digits clash: in the order {layout.order} pp falls on {expert_digit} of the "
                f"experts and on {dense_digit} of the dense layers; use an order that ends in pp, "
                f"or etp x ep = tp x cp (here {layout.etp * layout.ep} and "
                f"{layout.tp * layout.cp})"
            )
        axes.append(
            Axis(
                name=dense_digit,
                size=high // low,
                stride=low,
                dense=dense_digit,
                expert=expert_digit,
            )
        )
    return _numbered(axes)


def _dense_axes(dense: Sequence[tuple[str, int]]) -> tuple[Axis, ...]:
    axes, stride = [], 1
    for digit, size in dense:
        if size > 1:
            axes.append(
                Axis(
                    name=digit,
                    size=size,
                    stride=stride,
                    dense=digit,
                    expert="pp" if digit == "pp" else "edp",
                )
            )
        stride *= size
    return tuple(axes)


def _ends(digits: Sequence[tuple[str, int]]) -> list[tuple[str, int]]:
    ends, reach = [], 1
    for name, degree in digits:
        reach *= degree
        if degree > 1:
            ends.append((name, reach))
    return ends


def _owner(ends: Sequence[tuple[str, int]], rank_end: int) -> str:
    return next(name for name, end in ends if end >= rank_end)


def _spelled(digits: Sequence[tuple[str, int]]) -> str:
    return " x ".join(f"{name}{degree}" for name, degree in digits)


def _numbered(axes: Sequence[Axis]) -> tuple[Axis, ...]:
    named = []
    for i, axis in enumerate(axes):
        twins = [j for j, other in enumerate(axes) if other.dense == axis.dense]
        name = axis.name if len(twins) == 1 else f"{axis.name}{twins.index(i)}"
        named.append(
            Axis(
                name=name, size=axis.size, stride=axis.stride, dense=axis.dense, expert=axis.expert
            )
        )
    return tuple(named)


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
