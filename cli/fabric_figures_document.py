"""What a document keeps of a cluster: the figures an answer depends on, and its machines."""

from __future__ import annotations

from hashlib import sha256
from itertools import groupby
from typing import Any

from planner.fabric import Fabric
from topologies.host_lists import fold_hosts


def fabric_document(fabric: Fabric) -> dict[str, Any]:
    """Return what an answer depends on of a cluster."""
    accelerator, nic = fabric.accelerator, fabric.nic
    return {
        "tiers": [
            {
                "tier": tier.name,
                "domains": len(tier.domains),
                "capacities": fabric.capacities(tier.name),
                "bytes_per_s": tier.bytes_per_s,
                "shared_bytes_per_s": tier.shared_bytes_per_s,
                "pair_bytes_per_s": tier.pair_bytes_per_s,
                "latency_s": tier.latency_s,
                "in_network_reduction": tier.in_network_reduction,
            }
            for tier in fabric.tiers
        ],
        "accelerator": {
            "name": accelerator.name,
            "peak_flops_per_s": accelerator.peak_flops_per_s,
            "memory_bytes": accelerator.memory_bytes,
            "memory_bytes_per_s": accelerator.memory_bytes_per_s,
            "efficiency_share": accelerator.efficiency_share,
            "memory_efficiency_share": accelerator.memory_efficiency_share,
        },
        "nic": {
            "line_bytes_per_s": nic.line_bytes_per_s,
            "in_flight": nic.in_flight,
            "transaction_bytes": nic.transaction_bytes,
            "turnaround_s": nic.turnaround_s,
        },
        "sources": fabric.sources,
        "machines_sha256": machines_sha256(fabric),
        "machines": _machines(fabric),
    }


def _machines(fabric: Fabric) -> list[dict[str, Any]] | None:
    """Return the machines of an imported cluster, GPUs in their order, or None of any other.

    They seat a plan's ranks where the cluster's file is not at hand.
    """
    if not fabric.sources.get("fabric") or not fabric.hosts:
        return None
    order = [g for host in fabric.hosts for g in host.gpus]
    if order != list(range(len(fabric.gpus))):
        return None
    runs = groupby(fabric.hosts, key=lambda host: len(host.gpus))
    return [{"hosts": fold_hosts(h.name for h in run), "gpus": gpus} for gpus, run in runs]


def machines_sha256(fabric: Fabric) -> str | None:
    """Return a hash of which GPU is in which machine and domains, or None without machines.

    A plan's seats are numbers of GPUs: they mean the same only while this is the same.
    """
    if not fabric.hosts:
        return None
    homes = [fabric.domain_index(tier.name).tolist() for tier in fabric.tiers]
    rows = [(host.name, host.gpus) for host in fabric.hosts]
    return sha256(repr((rows, homes)).encode()).hexdigest()
