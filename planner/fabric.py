"""Fabric: a checked, typed view of the cluster's graph, its tiers and its links.

Vertices are GPUs, NICs, scale-up switches, leaf, spine and core switches; every edge carries
``capacity_bytes_per_s`` (per direction), ``latency_s`` and, where known, ``buffer_bytes``.
NetworkX never supplies a number: an edge without a rate is refused when the Fabric is made.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any


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
    """

    name: str
    peak_flops_per_s: Mapping[str, float]
    memory_bytes: float
    memory_bytes_per_s: float
    efficiency_share: Mapping[str, float]
    memory_efficiency_share: float
    power_w: float = 0.0
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """One level of the tree of domains, e.g. all supernodes.

    Args:
        name: ``board``, ``supernode``, ``leaf``, ``pod``, ``cluster``.
        domains: in a fixed order; together they hold every usable GPU exactly once.
        bytes_per_s: rate of one GPU, one direction, to GPUs that share this domain but no inner
            one, when nothing else is on the links [bytes/s].
        shared_bytes_per_s: the same when every GPU of the domain sends at once: less than
            *bytes_per_s* where the tier is oversubscribed [bytes/s].
        latency_s: start-up of one message between such GPUs [s].
        in_network_reduction: the tier's switches can reduce (NVLS, SHARP).
    """

    name: str
    domains: tuple[Domain, ...]
    bytes_per_s: float
    shared_bytes_per_s: float
    latency_s: float
    in_network_reduction: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabric:
    """A cluster as the models see it.

    Args:
        name: cluster name.
        graph: the checked NetworkX graph (read only).
        gpus: vertex name of each usable GPU; its index is the GPU's number.
        tiers: innermost first; ``supernode`` is always among them; the last holds all GPUs in
            one domain.
        accelerator: what every GPU is.
        nic: what every GPU has towards the scale-out network.
        assumed: what the file did not say, name to reason and source.
    """

    name: str
    graph: Any
    gpus: tuple[str, ...]
    tiers: tuple[Tier, ...]
    accelerator: Accelerator
    nic: Nic
    assumed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def tier(self, name: str) -> Tier:
        """Return the tier called *name*; KeyError names the tiers there are."""
        for tier in self.tiers:
            if tier.name == name:
                return tier
        raise KeyError(f"no tier {name!r}; there are {[t.name for t in self.tiers]}")
