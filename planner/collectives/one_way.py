"""What one sender's algorithms cost on a spread: a hop of a ring or chain, and broadcasts.

Symbols as in ``walks.py``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from planner.collectives.ground import Ground
from planner.collectives.walk import Walk


def neighbour(hop: Any, at: Ground) -> Walk:
    """One message of *hop* bytes to the next rank of a contiguous ring or chain.

    The slowest hop counts: across where the group touches several supernodes, one NIC.
    """
    inside = np.greater(at.n, 1) & ~at.split
    return Walk(
        inside_start_s=inside * at.inside_latency_s,
        across_start_s=at.across_latency_s,
        across_hops=1.0 * at.split,
        inside_s=inside / at.pair_bytes_per_s * hop,
        across_s=hop / at.one_flow_bytes_per_s,
    )


def broadcast_tree(vector: Any, at: Ground) -> Walk:
    """Binomial tree across, then inside: log2 k + log2 m whole-vector messages in turn."""
    return Walk(
        inside_start_s=at.log2_m * at.inside_latency_s,
        across_start_s=at.log2_k * at.across_latency_s,
        across_hops=at.log2_k,
        inside_s=at.log2_m / at.pair_bytes_per_s * vector,
        across_s=at.log2_k / at.one_flow_bytes_per_s * vector,
    )


def broadcast_chain(vector: Any, at: Ground) -> Walk:
    """Pipelined chain in domain order: V / the slowest hop, after n - 1 start-ups."""
    return Walk(
        inside_start_s=(at.n - at.k) * at.inside_latency_s,
        across_start_s=(at.k - 1) * at.across_latency_s,
        across_hops=at.k - 1,
        inside_s=np.greater(at.m, 1) / at.pair_bytes_per_s * vector,
        across_s=vector / at.one_flow_bytes_per_s,
        pipelined=True,
    )


def broadcast_hierarchical(vector: Any, at: Ground) -> Walk:
    """Scatter inside the root's supernode, chain each share across on its rail, gather inside.

    The root's port sends V (m-1)/m to scatter, in m - 1 messages; every port gathers as much in as
    many: 2 V (m-1)/m.
    """
    return Walk(
        inside_start_s=2 * (at.m - 1) * at.inside_latency_s,
        across_start_s=(at.k - 1) * at.across_latency_s,
        across_hops=at.k - 1,
        inside_s=2 * at.left_share / at.inside_bytes_per_s * vector,
        across_s=at.split / (at.rails * at.rail_bytes_per_s) * vector,
        pipelined=True,
    )
