"""Attributes of links and switches in a cluster's graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from topologies.fabric_clos import Bundles
from topologies.fabric_network_spec import SwitchTierSpec


def link(
    bytes_per_s: float, latency_s: float, tier: str, links: int, buffer_bytes: float = 0.0
) -> dict[str, Any]:
    """Return the attributes of *links* parallel links that together carry *bytes_per_s*."""
    attributes: dict[str, Any] = {
        "capacity_bytes_per_s": bytes_per_s,
        "latency_s": latency_s,
        "tier": tier,
        "links": links,
    }
    if buffer_bytes:
        attributes["buffer_bytes"] = buffer_bytes
    return attributes


def switch(kind: str, spec: SwitchTierSpec, **more: int) -> dict[str, Any]:
    """Return the attributes of one switch."""
    known = {"radix": spec.radix, "buffer_bytes": spec.buffer_bytes, "units": 1}
    return {"kind": kind, **known, **more}


def add_bundles(
    graph: Any,
    lower: list[str],
    upper: list[str],
    bundles: Bundles,
    port_bytes_per_s: float,
    spec: SwitchTierSpec,
    tier: str,
) -> None:
    """Add bundles of parallel links; *spec* is the upper switch's."""
    of_width = {
        n: link(n * port_bytes_per_s, spec.hop_latency_s, tier, n, n * spec.port_buffer_bytes)
        for n in np.unique(bundles.links).tolist()
    }
    graph.add_edges_from(
        (lower[a], upper[b], of_width[n])
        for a, b, n in zip(
            bundles.lower.tolist(), bundles.upper.tolist(), bundles.links.tolist(), strict=True
        )
    )
