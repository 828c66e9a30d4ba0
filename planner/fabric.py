"""Fabric: a checked, typed view of the cluster's graph, its tiers and its links.

Vertices are GPUs, NICs, scale-up switches, leaf, spine and core switches; every edge carries
``capacity_bytes_per_s`` (per direction), ``latency_s`` and, where known, ``buffer_bytes``.
NetworkX never supplies a number: an edge without a rate is refused when the Fabric is made.

*The rule that ties graph and tiers*: every edge carries ``tier``, the innermost tier inside which
it runs, so the domains of a tier are the connected components of the graph that keeps only the
edges of that tier and of the tiers inside it.
"""

from __future__ import annotations

import copyreg
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InputError, SpecError
from planner.fabric_faults import must_be_positive, must_be_safe_name, must_be_share, refuse
from planner.fabric_walks import check_graph, least_latency_walk

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _read_only(values: dict[str, Any]) -> MappingProxyType[str, Any]:
    return MappingProxyType(values)


def _reduced(mapping: MappingProxyType[str, Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return _read_only, (dict(mapping),)


# A read-only mapping does not pickle by itself, and worker processes are sent fabrics.
copyreg.pickle(MappingProxyType, _reduced)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """One GPU's own limits.

    Args:
        name: catalogue name, e.g. ``H100-SXM``.
        peak_flops_per_s: dense peak by precision (``bf16``, ``fp16``, ``fp8``) [FLOP/s].
        memory_bytes: capacity [bytes].
        memory_bytes_per_s: peak memory bandwidth [bytes/s].
        efficiency_share: achievable share of peak by precision, 0 to 1.
        memory_efficiency_share: achievable share of memory bandwidth, 0 to 1.
        power_w: board power [W], 0 where unknown.
        sources: field name to source.
        scale_up_bytes_per_s: what all its scale-up links carry, one direction [bytes/s], 0 where
            unknown; the cluster file decides what is wired.
        assumed: field name to why the figure is a guess.
    """

    name: str
    peak_flops_per_s: Mapping[str, float]
    memory_bytes: float
    memory_bytes_per_s: float
    efficiency_share: Mapping[str, float]
    memory_efficiency_share: float
    power_w: float = 0.0
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    scale_up_bytes_per_s: float = 0.0
    assumed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        owner = f"accelerator {self.name[:128]!r}"
        faults = must_be_safe_name(owner, self.name)
        faults += must_be_positive(
            owner, memory_bytes=self.memory_bytes, memory_bytes_per_s=self.memory_bytes_per_s
        )
        faults += must_be_positive(owner, **self.peak_flops_per_s)
        faults += must_be_share(
            owner, memory_efficiency_share=self.memory_efficiency_share, **self.efficiency_share
        )
        if not self.peak_flops_per_s:
            faults.append(f"{owner}: peak_flops_per_s is empty: expected one precision at least")
        if missing := sorted(set(self.peak_flops_per_s) - set(self.efficiency_share)):
            faults.append(f"{owner}: no efficiency_share for {', '.join(missing)}")
        for name in ("power_w", "scale_up_bytes_per_s"):
            if not (isfinite(getattr(self, name)) and getattr(self, name) >= 0):
                faults.append(f"{owner}: {name}={getattr(self, name)!r}: expected 0 or more")
        refuse(faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Nic:
    """One GPU's share of the scale-out adapter.

    Args:
        line_bytes_per_s: line rate per GPU, one direction [bytes/s].
        in_flight: transactions the NIC may have outstanding [1].
        transaction_bytes: payload of one transaction [bytes].
        turnaround_s: from issue until the slot is free again [s].
    """

    line_bytes_per_s: float
    in_flight: int
    transaction_bytes: float
    turnaround_s: float

    def __post_init__(self) -> None:
        refuse(
            must_be_positive(
                "nic",
                line_bytes_per_s=self.line_bytes_per_s,
                in_flight=self.in_flight,
                transaction_bytes=self.transaction_bytes,
                turnaround_s=self.turnaround_s,
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Domain:
    """One domain of a tier: a supernode, a leaf, a pod.

    Args:
        name: e.g. ``supernode-03``.
        gpus: indices into ``Fabric.gpus`` of the usable GPUs inside.
        uplink_bytes_per_s: capacity of the links that leave the domain, one direction [bytes/s];
            0 for the outermost domain, which has no uplink.
    """

    name: str
    gpus: tuple[int, ...]
    uplink_bytes_per_s: float

    def __post_init__(self) -> None:
        faults = must_be_safe_name("domain", self.name)
        if not self.gpus:
            faults.append(f"domain {self.name!r} holds no usable GPU: leave it out")
        if not (isfinite(self.uplink_bytes_per_s) and self.uplink_bytes_per_s >= 0):
            faults.append(
                f"domain {self.name!r}: uplink_bytes_per_s={self.uplink_bytes_per_s!r}: "
                "expected 0 or more"
            )
        refuse(faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One level of the tree of domains, e.g. all supernodes.

    Args:
        name: ``board``, ``supernode``, ``leaf``, ``pod``, ``cluster``.
        domains: in a fixed order; together they hold every usable GPU exactly once.
        bytes_per_s: rate of one GPU, one direction, to GPUs that share this domain but no inner
            one, when nothing else is on the links [bytes/s].
        shared_bytes_per_s: the same when every GPU of the domain sends at once, to GPUs drawn
            evenly from those outside its inner domain: less than *bytes_per_s* where the tier is
            oversubscribed [bytes/s].
        latency_s: start-up of one message between such GPUs [s].
        in_network_reduction: the tier's switches can reduce (NVLS, SHARP).
        pair_bytes_per_s: rate between two given GPUs; below *bytes_per_s* in a mesh or torus,
            where a GPU's links lead to different neighbours; 0 stands for *bytes_per_s* [bytes/s].
        has_switch_links: whether its GPUs meet over links between switches, which alone can be
            oversubscribed: not below one leaf, or one on each rail.
    """

    name: str
    domains: tuple[Domain, ...]
    bytes_per_s: float
    shared_bytes_per_s: float
    latency_s: float
    in_network_reduction: bool = False
    pair_bytes_per_s: float = 0.0
    has_switch_links: bool = True

    def __post_init__(self) -> None:
        if self.pair_bytes_per_s == 0:
            object.__setattr__(self, "pair_bytes_per_s", self.bytes_per_s)
        owner = f"tier {self.name!r}"
        faults = must_be_safe_name(owner, self.name)
        faults += must_be_positive(
            owner,
            bytes_per_s=self.bytes_per_s,
            shared_bytes_per_s=self.shared_bytes_per_s,
            pair_bytes_per_s=self.pair_bytes_per_s,
        )
        if not (isfinite(self.latency_s) and self.latency_s >= 0):
            faults.append(f"{owner}: latency_s={self.latency_s!r}: expected 0 or more")
        if not self.domains:
            faults.append(f"{owner} has no domains")
        refuse(faults)

    @property
    def oversubscription(self) -> float:
        """Return what one GPU may send alone over what it gets when all send [1].

        >>> Tier(name="pod", domains=(Domain(name="a", gpus=(0,), uplink_bytes_per_s=0),),
        ...      bytes_per_s=50e9, shared_bytes_per_s=10e9, latency_s=4e-6).oversubscription
        5.0
        """
        return self.bytes_per_s / self.shared_bytes_per_s


def _as_index(domains: tuple[Domain, ...], gpus: int) -> NDArray[np.int64] | str:
    """Return GPU to domain index, or the fault: a GPU in no domain, in two, or unknown."""
    sizes = np.fromiter((len(d.gpus) for d in domains), np.int64, len(domains))
    members = np.fromiter(chain.from_iterable(d.gpus for d in domains), np.int64, int(sizes.sum()))
    if members.size and (members.min() < 0 or members.max() >= gpus):
        wrong = int(members[(members < 0) | (members >= gpus)][0])
        return f"holds GPU {wrong}: expected 0 to {gpus - 1}"
    seen = np.bincount(members, minlength=gpus)
    if (seen != 1).any():
        wrong = int(np.flatnonzero(seen != 1)[0])
        return f"holds GPU {wrong} {int(seen[wrong])} times: expected once"
    index = np.empty(gpus, np.int64)
    index[members] = np.repeat(np.arange(len(domains)), sizes)
    return index


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """A cluster as the models see it.

    Args:
        name: cluster name.
        graph: the NetworkX graph (read only), or a function without arguments that builds it:
            then it is built and checked when first asked for, and kept.
        gpus: vertex name of each usable GPU; its index is the GPU's number.
        tiers: innermost first, each strictly coarser than the one before; ``supernode`` is always
            among them; the last holds all GPUs in one domain.
        accelerator: what every GPU is.
        nic: what every GPU has towards the scale-out network.
        assumed: what the file did not say, name to reason and source.
        sources: figure of the file to its source.
        job_gpus: GPUs one job uses unless told otherwise; the rest are spares; 0 stands for all.
        hosts: the machines, where known: a launcher starts one agent on each. Their order is the
            order of the host list, and the outermost rule holds: every usable GPU exactly once.
        host_slots: number of each usable GPU on its machine, unusable ones counted; empty where
            every machine has all its GPUs, in order.
        cut_from: the whole cluster, of which this has only the GPUs of a free list; None of a
            whole one.
        supernode_gpus: GPUs of a full supernode, where the job is smaller than one and this holds
            only a part of it; 0 stands for the largest supernode here [1].
    """

    name: str
    graph: Any
    gpus: tuple[str, ...]
    tiers: tuple[Tier, ...]
    accelerator: Accelerator
    nic: Nic
    assumed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    job_gpus: int = 0
    hosts: tuple[Domain, ...] = ()
    host_slots: tuple[int, ...] = ()
    cut_from: Fabric | None = None
    supernode_gpus: int = 0

    @property
    def full_supernode_gpus(self) -> int:
        """GPUs of a full supernode, also where only a part of one is here [1]."""
        return self.supernode_gpus or max(self.capacities("supernode"))

    @property
    def whole(self) -> Fabric:
        """The cluster as it was bought, whichever of its GPUs are free."""
        return self if self.cut_from is None else self.cut_from

    def __post_init__(self) -> None:
        if self.job_gpus == 0:
            object.__setattr__(self, "job_gpus", len(self.gpus))
        refuse(_faults_of(self))
        raw = _GRAPH_SLOT.__get__(self)
        if not callable(raw):
            check_graph(raw, self.gpus)

    def __getstate__(self) -> list[Any]:
        """Return the fields as they are: a graph not yet built travels unbuilt."""
        return [
            _GRAPH_SLOT.__get__(self) if name == "graph" else getattr(self, name)
            for name in self.__slots__
        ]

    def __setstate__(self, state: list[Any]) -> None:
        for name, value in zip(self.__slots__, state, strict=True):
            if name == "graph":
                _GRAPH_SLOT.__set__(self, value)
            else:
                object.__setattr__(self, name, value)

    def tier(self, name: str) -> Tier:
        """Return the tier called *name*; KeyError names the tiers there are."""
        for tier in self.tiers:
            if tier.name == name:
                return tier
        raise KeyError(f"no tier {name!r}; there are {[t.name for t in self.tiers]}")

    def domain_index(self, tier: str) -> NDArray[np.int64]:
        """Return the domain of *tier* that each GPU is in; shape (gpus,)."""
        index = _as_index(self.tier(tier).domains, len(self.gpus))
        if isinstance(index, str):
            raise SpecError(f"tier {tier!r} {index}")
        return index

    def capacities(self, tier: str) -> tuple[int, ...]:
        """Return how many usable GPUs each domain of *tier* holds, in order."""
        return tuple(len(d.gpus) for d in self.tier(tier).domains)

    def walk(self, gpu_a: int, gpu_b: int) -> tuple[str, ...]:
        """Return the vertices from one GPU to another along the path with the least latency."""
        for gpu in (gpu_a, gpu_b):
            if not 0 <= gpu < len(self.gpus):
                raise InputError(f"GPU {gpu} does not exist: expected 0 to {len(self.gpus) - 1}")
        return least_latency_walk(self.graph, self.gpus[gpu_a], self.gpus[gpu_b])

    def describe(self) -> str:
        """Return a few plain lines: GPUs, and per tier its domains, rates and start-up."""
        lines = [
            f"{self.name}: {len(self.gpus)} x {self.accelerator.name}, job of {self.job_gpus} GPUs"
        ]
        for tier in self.tiers:
            sizes = sorted(set(self.capacities(tier.name)), reverse=True)
            lines.append(
                f"  {tier.name}: {len(tier.domains)} of {'/'.join(map(str, sizes))} GPUs, "
                f"{tier.bytes_per_s / 1e9:g} GB/s alone, "
                f"{tier.shared_bytes_per_s / 1e9:g} GB/s when all send, "
                f"start-up {tier.latency_s * 1e6:g} us"
            )
        return "\n".join(lines)


def _faults_of(fabric: Fabric) -> list[str]:
    """Return what cannot be in *fabric*: names, partitions, nesting, outermost tier."""
    faults = must_be_safe_name("fabric", fabric.name)
    if not fabric.gpus:
        return [*faults, f"fabric {fabric.name!r} has no usable GPU"]
    for name in fabric.gpus:
        faults += must_be_safe_name("gpu", name)
    if len(set(fabric.gpus)) != len(fabric.gpus):
        twice = Counter(fabric.gpus).most_common(1)[0][0]
        faults.append(f"GPU name {twice!r} is used twice: expected unique names")
    if not 1 <= fabric.job_gpus <= len(fabric.gpus):
        faults.append(f"job_gpus={fabric.job_gpus}: expected 1 to {len(fabric.gpus)} usable GPUs")
    names = [t.name for t in fabric.tiers]
    if "supernode" not in names or len(set(names)) != len(names):
        faults.append(f"tiers {names}: expected different names, 'supernode' among them")
    inner: NDArray[np.int64] | None = None
    for tier in fabric.tiers:
        index = _as_index(tier.domains, len(fabric.gpus))
        if isinstance(index, str):
            faults.append(f"tier {tier.name!r} {index}")
            continue
        if inner is not None and not _is_nested(inner, index):
            faults.append(f"tier {tier.name!r} splits a domain of the tier inside it")
        inner = index
    if fabric.tiers and len(fabric.tiers[-1].domains) != 1:
        faults.append(
            f"outermost tier {names[-1]!r} has {len(fabric.tiers[-1].domains)} domains: expected 1"
        )
    if fabric.hosts and isinstance(wrong := _as_index(fabric.hosts, len(fabric.gpus)), str):
        faults.append(f"hosts: {wrong}")
    if fabric.host_slots and len(fabric.host_slots) != len(fabric.gpus):
        faults.append(f"host_slots: {len(fabric.host_slots)} for {len(fabric.gpus)} usable GPUs")
    return faults


def _is_nested(inner: NDArray[np.int64], outer: NDArray[np.int64]) -> bool:
    """Return whether every inner domain lies in one outer domain."""
    home = np.zeros(int(inner.max()) + 1, np.int64)
    home[inner] = outer
    return bool((home[inner] == outer).all())


_GRAPH_SLOT: Any = vars(Fabric)["graph"]


def _built_graph(fabric: Fabric) -> Any:
    """Return the graph, built and checked on first use."""
    raw = _GRAPH_SLOT.__get__(fabric)
    if callable(raw):
        build: Callable[[], Any] = raw
        raw = build()
        check_graph(raw, fabric.gpus)
        _GRAPH_SLOT.__set__(fabric, raw)
    return raw


# The slot's reader builds on use; assignment still meets the frozen dataclass first.
type.__setattr__(Fabric, "graph", property(_built_graph, _GRAPH_SLOT.__set__))
