"""What each algorithm costs on a spread: start-ups and busy times, inside and across.

A *walk* is one way to run a collective. It is priced by its start-ups and by the time that the
busiest GPU's scale-up port and the busiest NIC are busy. Phases that run one after another add
up; phases that a chunk pipeline overlaps cost only the longer one.
Symbols: n ranks, m of them in one supernode, k supernodes, V the full vector [bytes]; *passes* is
2 for all-reduce (reduce-scatter and all-gather), 1 for either half.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from planner.collectives.ground import Ground
from planner.collectives.one_way import (
    broadcast_chain,
    broadcast_hierarchical,
    broadcast_tree,
    neighbour,
)
from planner.collectives.walk import Walk

Reduction = Callable[[Any, Ground, int], Walk]
WalkOf = Callable[[Any, Ground], Walk]


def tree_load(nodes: Any) -> Any:
    """Return what the busiest node of a double binary tree sends, in vectors V.

    Each tree carries V/2. A node that is inner in one tree (one up, two down) and leaf in the
    other (one up) sends 4 x V/2; two nodes exchange one half each way per tree, V in all.

    >>> [float(tree_load(k)) for k in (1, 2, 3, 4, 64)]
    [0.0, 1.0, 1.5, 2.0, 2.0]
    """
    return np.minimum(nodes, 4) * 0.5 * np.greater(nodes, 1)


def _own(vector: Any, at: Ground) -> Any:
    """Return the time of the last copy of a ring or tree, V/n that no wire carries [s]."""
    return 0.0 if at.links.own_step_share == 0 else at.own_s_per_byte * vector / at.n


def interleaved_ring(vector: Any, at: Ground, passes: int) -> Walk:
    """Ring in an order that changes supernode at every hop: all n edges cross, each on its own NIC.

    Every rank sends passes x (n-1)/n x V over its NIC. Alone on the wire it takes as long as the
    contiguous ring; it puts n/k times the bytes on the cut, so it loses where the cut is shared.
    """
    hops = passes * (at.n - 1)
    moved = passes * at.ring_share * vector
    return Walk(
        inside_start_s=np.where(at.split, 0.0, hops * at.inside_latency_s),
        across_start_s=hops * at.across_latency_s,
        across_hops=hops * at.split,
        inside_s=np.where(at.split, 0.0, moved / at.inside_bytes_per_s),
        across_s=moved / at.crowd_bytes_per_s,
        pipelined=True,
    )


def contiguous_ring(vector: Any, at: Ground, passes: int) -> Walk:
    """Ring in domain order over one NIC a supernode: k edges cross, the slowest edge sets the pace.

    time = passes x (n-1)/n x V / min(scale-up, NIC).
    """
    inside, across = at.circle_s
    moved = passes * at.ring_share * vector
    return Walk(
        inside_start_s=passes * inside,
        across_start_s=passes * across,
        across_hops=passes * at.circle_across_hops,
        inside_s=np.greater(at.m, 1) * moved / at.inside_bytes_per_s + _own(vector, at),
        across_s=moved / at.one_flow_bytes_per_s,
        pipelined=True,
    )


def all_rail_ring(vector: Any, at: Ground, passes: int) -> Walk:
    """As many contiguous rings as the smallest supernode has members, each over its own NIC.

    Each ring carries its part of V; a member is the last hop of one ring in m, so its scale-up
    port carries (m-1)/m of a ring's bytes. Bytes on the cut are those of one contiguous ring.
    """
    inside, across = at.circle_s
    moved = passes * at.ring_share * vector
    port = np.where(at.split, moved * at.left_share, moved)
    return Walk(
        inside_start_s=passes * inside,
        across_start_s=passes * across,
        across_hops=passes * at.circle_across_hops,
        inside_s=port / at.inside_bytes_per_s + _own(vector, at),
        across_s=moved * at.rails_s_per_byte,
        pipelined=True,
    )


def hierarchical(vector: Any, at: Ground, passes: int) -> Walk:
    """Reduce-scatter inside, ring across on every NIC, all-gather inside, one after another.

    all-reduce: 2 (m-1)/m V / scale-up + 2 (k-1)/k V/m / NIC.
    """
    return Walk(
        inside_start_s=passes * (at.m - 1) * at.inside_latency_s,
        across_start_s=passes * (at.k - 1) * at.across_latency_s,
        across_hops=passes * (at.k - 1),
        inside_s=passes * at.left_share * vector / at.inside_bytes_per_s,
        across_s=passes * at.share_s_per_byte * vector,
    )


def pipelined_hierarchical(vector: Any, at: Ground, passes: int) -> Walk:
    """The hierarchical walk cut into chunks, so that scale-up ports and NICs work together."""
    return replace(hierarchical(vector, at, passes), pipelined=True)


def halving_doubling(vector: Any, at: Ground, passes: int) -> Walk:
    """Recursive halving and doubling, near partners first: the hierarchical bytes, log2 start-ups.

    Where m (or k) is no power of two, the excess folds its whole vector (share) into partners and
    gets its part back: two more start-ups and at most 1 + (1 + log2)/m times the vector more in
    each pass. That is a bound; the schedule itself stays within a quarter of it.
    """
    inside = at.left_share + at.fold_m * (1 + at.log2_m / at.m)
    across = at.fold_k * (1 + at.log2_k / at.k) / (at.rails * at.rail_bytes_per_s)
    return Walk(
        inside_start_s=passes * (at.log2_m + at.fold_m) * at.inside_latency_s,
        across_start_s=passes * (at.log2_k + at.fold_k) * at.across_latency_s,
        across_hops=passes * (at.log2_k + at.fold_k),
        inside_s=passes * inside * vector / at.inside_bytes_per_s,
        across_s=passes * (at.share_s_per_byte + across) * vector,
    )


def direct_exchange(vector: Any, at: Ground, passes: int) -> Walk:
    """Every rank sends each other rank its shard at once: one start-up a pass, all pairs cross.

    Each member sends V (n-n_i)/n over its NIC in a pass, m times the hierarchical walk.
    """
    inside = (at.m - 1) / (at.n * at.inside_bytes_per_s)
    return Walk(
        inside_start_s=np.where(at.split, 0.0, passes * np.greater(at.n, 1) * at.inside_latency_s),
        across_start_s=passes * at.across_latency_s,
        across_hops=passes * at.split,
        inside_s=passes * inside * vector,
        across_s=passes / at.n * at.pair_leaving_s_per_byte * vector,
        issue_s=passes * (at.n - 1) * at.issue_s,
        pipelined=True,
    )


def one_shot(vector: Any, at: Ground, passes: int) -> Walk:
    """Every rank sends its whole vector to every other and adds up: one start-up, (n-1) V a rank.

    For a few KiB (decode). Inside one supernode only.
    """
    del passes  # one pass does both halves
    return Walk(
        inside_start_s=np.greater(at.n, 1) * at.inside_latency_s,
        across_start_s=0.0,
        inside_s=(at.n - 1) / at.inside_bytes_per_s * vector,
        across_s=0.0,
        issue_s=(at.n - 1) * at.issue_s,
        possible=~at.split,
    )


def double_tree(vector: Any, at: Ground, passes: int) -> Walk:
    """Two binary trees over the supernodes, a chain inside each, every NIC used; all-reduce only.

    Across: the busiest node sends ``tree_load(k)`` x V over all its NICs; inside: each port
    carries the chain up and down, 2 (m-1)/m V. Start-ups: 2 (m-1) inside, 2 log2 k across; the
    first chunk of every rail takes all these hops before the last rank has anything.
    """
    return Walk(
        inside_start_s=passes * (at.m - 1) * at.inside_latency_s,
        across_start_s=passes * at.log2_k * at.across_latency_s,
        across_hops=passes * at.log2_k,
        inside_s=passes * at.left_share * vector / at.inside_bytes_per_s + _own(vector, at),
        across_s=tree_load(at.k) * at.rails_s_per_byte * vector,
        pipelined=True,
        rail_bytes=vector / at.rails,
        fill_inside_s_per_byte=passes * (at.m - 1) * at.rails / at.inside_bytes_per_s,
        fill_across_s_per_byte=passes * _rails_in_turn_s_per_byte(at),
    )


def _rails_in_turn_s_per_byte(at: Ground) -> Any:
    """Return the time of one byte of every rail's chunk over log2 k rails, one after another.

    Inside, the chunks of all rails pass through the same port; across, each has its own NIC.
    """
    return at.log2_k * at.rails * at.rails_s_per_byte


def _switch_fill_s(vector: Any, chunk_bytes: Any, at: Ground) -> Any:
    """Return the time until the switch has a first chunk of every member's part of V [s].

    Each of the m members reduces its own part of V, chunk by chunk, and nothing comes back before
    all have had one: m chunks, V at most, at the rate of the reduction.
    """
    first_bytes = np.minimum(vector, at.m * chunk_bytes)
    return np.greater(at.m, 1) * first_bytes * _finite(at.switch_s_per_byte)


def switch_reduction(vector: Any, at: Ground, passes: int) -> Walk:
    """All-reduce in the scale-up switch (NVLS): V (1 + 1/m) / scale-up, one supernode only."""
    return Walk(
        inside_start_s=passes * np.greater(at.m, 1) * at.inside_latency_s,
        across_start_s=0.0,
        issue_s=_switch_fill_s(vector, at.links.inside.reduction_chunk_bytes, at),
        inside_s=_finite(at.switch_s_per_byte) * vector,
        across_s=0.0,
        reduces_in_switch=True,
        possible=np.isfinite(at.switch_s_per_byte) & ~at.split,
    )


def switch_tree(vector: Any, at: Ground, passes: int) -> Walk:
    """NVLS inside each supernode, a double binary tree across on every NIC (NVLSTree).

    Each rail hands on the switch's chunks: the first goes up and down the tree before all flow.
    """
    chunk_bytes = at.links.inside.reduction_chunk_bytes * np.asarray(at.links.tree_chunk_factor)
    rail_chunk_bytes = np.minimum(vector / at.rails, chunk_bytes)
    tree_fill_s = passes * rail_chunk_bytes * _rails_in_turn_s_per_byte(at)
    return Walk(
        inside_start_s=passes * np.greater(at.m, 1) * at.inside_latency_s,
        across_start_s=passes * at.log2_k * at.across_latency_s,
        across_hops=passes * at.log2_k,
        issue_s=_switch_fill_s(vector, chunk_bytes, at) + tree_fill_s,
        inside_s=_finite(at.switch_s_per_byte) * vector,
        across_s=tree_load(at.k) * at.rails_s_per_byte * vector,
        pipelined=True,
        reduces_in_switch=True,
        possible=np.isfinite(at.switch_s_per_byte) & at.split,
    )


def network_reduction(vector: Any, at: Ground, passes: int) -> Walk:
    """Reduce-scatter inside, reduction in the network's switches (SHARP), all-gather inside.

    Each NIC sends V/m and receives V/m; the inside part uses the scale-up switch where it can.
    """
    ring = passes * at.left_share / at.inside_bytes_per_s
    quicker = np.less(at.switch_s_per_byte, ring)
    steps = np.where(quicker, np.greater(at.m, 1), at.m - 1)
    return Walk(
        inside_start_s=passes * steps * at.inside_latency_s,
        across_start_s=2 * at.across_latency_s,
        across_hops=2 * at.split,
        inside_s=np.where(quicker, at.switch_s_per_byte, ring) * vector,
        across_s=_finite(at.network_s_per_byte) / at.rails * vector,
        pipelined=True,
        reduces_in_switch=True,
        possible=np.isfinite(at.network_s_per_byte),
    )


def _finite(value: Any) -> Any:
    """Return *value* with 0 for infinite: the walk is marked impossible there."""
    return np.where(np.isfinite(value), value, 0.0)


def direct_all_to_all(pair: Any, at: Ground) -> Walk:
    """Every rank sends *pair* bytes straight to every other; ports and NICs work together.

    Across: pair x (n - M) bytes a GPU leave each tier's domain of M members.
    """
    return Walk(
        inside_start_s=np.where(at.split, 0.0, np.greater(at.n, 1) * at.inside_latency_s),
        across_start_s=at.across_latency_s,
        across_hops=1.0 * at.split,
        inside_s=((at.m - 1) / at.inside_bytes_per_s + at.own_s_per_byte) * pair,
        across_s=at.pair_leaving_s_per_byte * pair,
        issue_s=(at.n - 1) * at.issue_s,
        pipelined=True,
    )


def hierarchical_all_to_all(pair: Any, at: Ground, across_share: Any = 1.0) -> Walk:
    """Swap inside to the rank on the target's rail, then one message a supernode across.

    Inside: pair x (m-1) x k bytes a GPU. Across: *across_share* of the direct bytes; less than 1
    where one copy of a token serves all its experts in a supernode (one copy per domain).
    """
    return Walk(
        inside_start_s=np.greater(at.m, 1) * at.inside_latency_s,
        across_start_s=at.across_latency_s,
        across_hops=1.0 * at.split,
        inside_s=(at.m - 1) * at.k / at.inside_bytes_per_s * pair,
        across_s=at.pair_leaving_s_per_byte * across_share * pair,
        issue_s=(at.m + at.k - 2) * at.issue_s,
        pipelined=True,
    )


def _with_passes(algorithm: Reduction, passes: int) -> WalkOf:
    def walk(vector: Any, at: Ground) -> Walk:
        return algorithm(vector, at, passes)

    return walk


_SHARDED: Mapping[str, Reduction] = MappingProxyType(
    {
        "interleaved_ring": interleaved_ring,
        "contiguous_ring": contiguous_ring,
        "all_rail_ring": all_rail_ring,
        "hierarchical": hierarchical,
        "pipelined_hierarchical": pipelined_hierarchical,
        "halving_doubling": halving_doubling,
        "direct": direct_exchange,
    }
)
_REDUCED: Mapping[str, Reduction] = MappingProxyType(
    {
        "double_tree": double_tree,
        "one_shot": one_shot,
        "switch_reduction": switch_reduction,
        "switch_tree": switch_tree,
        "network_reduction": network_reduction,
    }
)

WALKS: Mapping[str, Mapping[str, WalkOf]] = MappingProxyType(
    {
        "all_reduce": {name: _with_passes(f, 2) for name, f in {**_SHARDED, **_REDUCED}.items()},
        "reduce_scatter": {name: _with_passes(f, 1) for name, f in _SHARDED.items()},
        "all_gather": {name: _with_passes(f, 1) for name, f in _SHARDED.items()},
        "all_to_all": {"direct": direct_all_to_all, "hierarchical": hierarchical_all_to_all},
        "ring": {"neighbour": neighbour},
        "chain": {"neighbour": neighbour},
        "broadcast": {
            "tree": broadcast_tree,
            "chain": broadcast_chain,
            "hierarchical": broadcast_hierarchical,
        },
    }
)
"""Collective to algorithm to its walk."""
