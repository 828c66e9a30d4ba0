"""What each algorithm costs on a spread: start-ups and busy times, inside and across.

A *walk* is one way to run a collective. It is priced by four parts: start-ups inside and across
the supernodes, and the time that the busiest GPU's scale-up port and NIC are busy. Phases that run
one after another add up; phases that a chunk pipeline overlaps cost only the longer one.
Symbols: n ranks, m of them in one supernode, k supernodes, V the full vector [bytes].
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from planner.collectives.links import LinkNumbers, Spread


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The parts of one algorithm's time; each broadcasts.

    Args:
        inside_start_s: sum of scale-up latencies on the critical chain [s].
        across_start_s: sum of NIC latencies on the critical chain [s].
        issue_s: starting messages one after another [s].
        inside_s: the busiest GPU's scale-up port is busy [s].
        across_s: the busiest NIC, or the busiest share of a cut, is busy [s].
        pipelined: the two busy times overlap.
        reduces_in_switch: needs a protocol that lets switches reduce.
    """

    inside_start_s: Any
    across_start_s: Any
    inside_s: Any
    across_s: Any
    issue_s: Any = 0.0
    pipelined: bool = False
    reduces_in_switch: bool = False


WalkOf = Callable[[Any, Spread, LinkNumbers], Walk]


def inside_bytes_per_s(spread: Spread, links: LinkNumbers) -> Any:
    """Return one GPU's scale-up rate when its m group members in the supernode all send [bytes/s].

    On a full mesh m members reach each other over m - 1 pair links only.
    """
    tier = links.inside
    if np.all(np.isinf(tier.pair_bytes_per_s)):
        return tier.crowded_bytes_per_s()
    pairs = np.maximum(spread.together - 1, 1) * np.asarray(tier.pair_bytes_per_s, float)
    return np.minimum(tier.crowded_bytes_per_s(), pairs * tier.efficiency_share)


def across_bytes_per_s(spread: Spread, links: LinkNumbers, *, flows: Any) -> Any:
    """Return the rate of one of *flows* flows that leave each domain on the way round [bytes/s].

    Each flow has its own NIC. A domain of tier t-1 that holds M members of the group has M shares
    of that tier's oversubscribed uplink: rate = min over tiers touched of
    (line, shared x M / flows). Infinite where the group stays in one supernode.
    """
    rate: Any = np.inf
    for tier, held, touched in zip(links.outer, spread.members, spread.domains, strict=True):
        share = np.minimum(tier.alone_bytes_per_s(), tier.crowded_bytes_per_s() * held / flows)
        rate = np.minimum(rate, np.where(touched > 1, share, np.inf))
    return rate


def crowd_bytes_per_s(spread: Spread, links: LinkNumbers) -> Any:
    """Return one NIC's rate when every member sends across the outermost tier touched [bytes/s]."""
    rate: Any = np.inf
    for tier, touched in zip(links.outer, spread.domains, strict=True):
        rate = np.minimum(rate, np.where(touched > 1, tier.crowded_bytes_per_s(), np.inf))
    return rate


def across_latency_s(spread: Spread, links: LinkNumbers) -> Any:
    """Return the latency of the outermost tier that the group touches, 0 inside one supernode."""
    latency: Any = 0.0
    for tier, touched in zip(links.outer, spread.domains, strict=True):
        latency = np.where(touched > 1, tier.latency_s, latency)
    return latency


def circle_latency_s(spread: Spread, links: LinkNumbers) -> tuple[Any, Any]:
    """Return inside and across latency of one way round a contiguous ring, less its cheapest hop.

    A chunk passes n - 1 hops, so one of the n is saved: an inside hop where there is one.
    Of the hops that leave supernodes, those that leave leaves pay the outer tier.
    """
    n, k = spread.group_size, spread.supernodes
    crossing = [np.where(d > 1, d, 0) for d in spread.domains] + [0.0]
    across: Any = 0.0
    for position, tier in enumerate(links.outer):
        across = across + (crossing[position] - crossing[position + 1]) * tier.latency_s
    inside_hops = n - np.where(k > 1, k, 0)
    saved_inside = np.minimum(inside_hops, 1)
    inside = (inside_hops - saved_inside) * links.inside.latency_s
    across = across - (1 - saved_inside) * across_latency_s(spread, links)
    return inside, across


def _log2(count: Any) -> Any:
    return np.ceil(np.log2(np.maximum(count, 1)))


def _fold(count: Any) -> Any:
    """Return 1 where *count* is no power of two: halving then folds the excess in and out."""
    return np.where(2.0 ** _log2(count) == count, 0.0, 1.0)


def tree_load(nodes: Any) -> Any:
    """Return what the busiest node of a double binary tree sends, in vectors V.

    Each tree carries V/2. A node that is inner in one tree (one up, two down) and leaf in the
    other (one up) sends 4 x V/2; two nodes exchange one half each way per tree, V in all.

    >>> [float(tree_load(k)) for k in (1, 2, 3, 4, 64)]
    [0.0, 1.0, 1.5, 2.0, 2.0]
    """
    return np.clip(np.asarray(nodes, float) - 1, 0, 3) * 0.5 + np.where(np.equal(nodes, 1), 0, 0.5)


# --- all-reduce, reduce-scatter, all-gather -------------------------------------------------


def _ring_bytes(vector: Any, spread: Spread, passes: int) -> Any:
    return passes * (spread.group_size - 1) / spread.group_size * vector


def interleaved_ring(vector: Any, spread: Spread, links: LinkNumbers, passes: int) -> Walk:
    """Ring in an order that changes supernode at every hop: all n edges cross, each on its own NIC.

    Every rank sends passes x (n-1)/n x V over its NIC. Alone on the wire it takes as long as the
    contiguous ring; it puts n/k times the bytes on the cut, so it loses where the cut is shared.
    """
    split = spread.supernodes > 1
    hops = passes * (spread.group_size - 1)
    moved = _ring_bytes(vector, spread, passes)
    return Walk(
        inside_start_s=np.where(split, 0.0, hops * links.inside.latency_s),
        across_start_s=hops * across_latency_s(spread, links),
        inside_s=np.where(split, 0.0, moved / inside_bytes_per_s(spread, links)),
        across_s=moved / crowd_bytes_per_s(spread, links),
        pipelined=True,
    )


def contiguous_ring(vector: Any, spread: Spread, links: LinkNumbers, passes: int) -> Walk:
    """Ring in domain order over one NIC a supernode: k edges cross, the slowest edge sets the pace.

    time = passes x (n-1)/n x V / min(scale-up, NIC).
    """
    inside, across = circle_latency_s(spread, links)
    moved = _ring_bytes(vector, spread, passes)
    hops_inside = spread.together > 1
    return Walk(
        inside_start_s=passes * inside,
        across_start_s=passes * across,
        inside_s=np.where(hops_inside, moved / inside_bytes_per_s(spread, links), 0.0),
        across_s=moved / across_bytes_per_s(spread, links, flows=1.0),
        pipelined=True,
    )


def all_rail_ring(vector: Any, spread: Spread, links: LinkNumbers, passes: int) -> Walk:
    """As many contiguous rings as the smallest supernode has members, each over its own NIC.

    Each ring carries its part of V; a member is the last hop of one ring in m, so its scale-up
    port carries (m-1)/m of a ring's bytes. Bytes on the cut are those of one contiguous ring.
    """
    inside, across = circle_latency_s(spread, links)
    moved = _ring_bytes(vector, spread, passes)
    m, rails = spread.together, spread.least_members
    port = np.where(spread.supernodes > 1, moved * (m - 1) / m, moved)
    return Walk(
        inside_start_s=passes * inside,
        across_start_s=passes * across,
        inside_s=port / inside_bytes_per_s(spread, links),
        across_s=moved / rails / across_bytes_per_s(spread, links, flows=rails),
        pipelined=True,
    )


def _shares_across(vector: Any, spread: Spread, links: LinkNumbers, passes: int) -> Any:
    """Return the time that the NICs of the smallest supernode need in a hierarchical walk [s].

    A supernode that keeps n_i/n of the result sends V (1 - n_i/n) over n_i NICs in a pass, which
    is V (k-1)/k / m where all are equal.
    """
    n, least = spread.group_size, spread.least_members
    rate = across_bytes_per_s(spread, links, flows=spread.together)
    return passes * (n - least) / n * vector / least / rate


def hierarchical(vector: Any, spread: Spread, links: LinkNumbers, passes: int) -> Walk:
    """Reduce-scatter inside, ring across on every NIC, all-gather inside, one after another.

    all-reduce: 2 (m-1)/m V / scale-up + 2 (k-1)/k V/m / NIC.
    """
    m, k = spread.together, spread.supernodes
    return Walk(
        inside_start_s=passes * (m - 1) * links.inside.latency_s,
        across_start_s=passes * (k - 1) * across_latency_s(spread, links),
        inside_s=passes * (m - 1) / m * vector / inside_bytes_per_s(spread, links),
        across_s=_shares_across(vector, spread, links, passes),
    )


def pipelined_hierarchical(vector: Any, spread: Spread, links: LinkNumbers, passes: int) -> Walk:
    """The hierarchical walk cut into chunks, so that scale-up ports and NICs work together."""
    walk = hierarchical(vector, spread, links, passes)
    return Walk(
        inside_start_s=walk.inside_start_s,
        across_start_s=walk.across_start_s,
        inside_s=walk.inside_s,
        across_s=walk.across_s,
        pipelined=True,
    )


def halving_doubling(vector: Any, spread: Spread, links: LinkNumbers, passes: int) -> Walk:
    """Recursive halving and doubling, near partners first: the hierarchical bytes, log2 start-ups.

    Where m or k is no power of two the excess is folded in and out: one more start-up a pass and
    the whole vector (inside) or share (across) once more.
    """
    m, k = spread.together, spread.supernodes
    fold_in, fold_out = _fold(m), _fold(k)
    rate = inside_bytes_per_s(spread, links)
    share = vector / spread.least_members
    nic = across_bytes_per_s(spread, links, flows=spread.together)
    return Walk(
        inside_start_s=passes * _log2(m) * links.inside.latency_s,
        across_start_s=passes * _log2(k) * across_latency_s(spread, links),
        inside_s=passes * ((m - 1) / m + fold_in) * vector / rate,
        across_s=_shares_across(vector, spread, links, passes) + passes * fold_out * share / nic,
    )


def direct_exchange(vector: Any, spread: Spread, links: LinkNumbers, passes: int) -> Walk:
    """Every rank sends each other rank its shard at once: one start-up a pass, all pairs cross.

    Each member sends V (n-n_i)/n over its NIC in a pass, m times the hierarchical walk.
    """
    n, m, split = spread.group_size, spread.together, spread.supernodes > 1
    far = (n - spread.least_members) / n * vector
    return Walk(
        inside_start_s=np.where(split, 0.0, passes * (n > 1) * links.inside.latency_s),
        across_start_s=passes * across_latency_s(spread, links),
        inside_s=passes * (m - 1) / n * vector / inside_bytes_per_s(spread, links),
        across_s=passes * far / crowd_bytes_per_s(spread, links),
        issue_s=passes * (n - 1) * links.issue_s,
        pipelined=True,
    )


def one_shot(vector: Any, spread: Spread, links: LinkNumbers, passes: int) -> Walk:
    """Every rank sends its whole vector to every other and adds up: one start-up, (n-1) V a rank.

    For a few KiB (decode). Inside one supernode only.
    """
    n, split = spread.group_size, spread.supernodes > 1
    busy = (n - 1) * vector / inside_bytes_per_s(spread, links)
    return Walk(
        inside_start_s=(n > 1) * links.inside.latency_s,
        across_start_s=np.where(split, np.inf, 0.0),
        inside_s=busy,
        across_s=0.0,
        issue_s=(n - 1) * links.issue_s,
    )


def double_tree(vector: Any, spread: Spread, links: LinkNumbers, passes: int) -> Walk:
    """Two binary trees over the supernodes, a chain inside each, every NIC used; all-reduce only.

    Across: the busiest node sends ``tree_load(k)`` x V over all its NICs; inside: each port
    carries the chain up and down, 2 (m-1)/m V. Start-ups: 2 (m-1) inside, 2 log2 k across.
    """
    m, k, rails = spread.together, spread.supernodes, spread.least_members
    nic = across_bytes_per_s(spread, links, flows=rails)
    return Walk(
        inside_start_s=passes * (m - 1) * links.inside.latency_s,
        across_start_s=passes * _log2(k) * across_latency_s(spread, links),
        inside_s=passes * (m - 1) / m * vector / inside_bytes_per_s(spread, links),
        across_s=tree_load(k) * vector / rails / nic,
        pipelined=True,
    )


def _switch_s(vector: Any, spread: Spread, links: LinkNumbers) -> Any:
    """Return the time of an all-reduce in the scale-up switch, infinite where it cannot [s].

    A port sends its V once for the reduction and V/m once for the multicast: V (1 + 1/m).
    """
    tier = links.inside
    rate = inside_bytes_per_s(spread, links) * tier.reduction_share
    busy = vector * (1 + 1 / spread.together) / rate
    alone = spread.together <= 1
    return np.where(tier.in_network_reduction, np.where(alone, 0.0, busy), np.inf)


def switch_reduction(vector: Any, spread: Spread, links: LinkNumbers, passes: int) -> Walk:
    """All-reduce in the scale-up switch (NVLS): V (1 + 1/m) / scale-up, one supernode only."""
    split = spread.supernodes > 1
    return Walk(
        inside_start_s=2 * (spread.together > 1) * links.inside.latency_s,
        across_start_s=np.where(split, np.inf, 0.0),
        inside_s=_switch_s(vector, spread, links),
        across_s=0.0,
        reduces_in_switch=True,
    )


def switch_tree(vector: Any, spread: Spread, links: LinkNumbers, passes: int) -> Walk:
    """NVLS inside each supernode, a double binary tree across on every NIC (NVLSTree)."""
    k, rails = spread.supernodes, spread.least_members
    nic = across_bytes_per_s(spread, links, flows=rails)
    return Walk(
        inside_start_s=2 * (spread.together > 1) * links.inside.latency_s,
        across_start_s=passes * _log2(k) * across_latency_s(spread, links),
        inside_s=np.where(k > 1, _switch_s(vector, spread, links), np.inf),
        across_s=tree_load(k) * vector / rails / nic,
        pipelined=True,
        reduces_in_switch=True,
    )


def network_reduction(vector: Any, spread: Spread, links: LinkNumbers, passes: int) -> Walk:
    """Reduce-scatter inside, reduction in the network's switches (SHARP), all-gather inside.

    Each NIC sends V/m and receives V/m; the inside part uses the scale-up switch where it can.
    """
    m, k = spread.together, spread.supernodes
    able: Any = True
    share: Any = 1.0
    for tier, touched in zip(links.outer, spread.domains, strict=True):
        able = able & np.where(touched > 1, np.asarray(tier.in_network_reduction, bool), True)
        share = np.where(touched > 1, np.minimum(share, tier.reduction_share), share)
    ring = passes * (m - 1) / m * vector / inside_bytes_per_s(spread, links)
    switch = _switch_s(vector, spread, links)
    steps = np.where(switch < ring, np.minimum(m - 1, 1), m - 1)
    nic = across_bytes_per_s(spread, links, flows=m) * share
    return Walk(
        inside_start_s=passes * steps * links.inside.latency_s,
        across_start_s=np.where(k > 1, 2 * across_latency_s(spread, links), np.inf),
        inside_s=np.minimum(ring, switch),
        across_s=np.where(able, vector / spread.least_members / nic, np.inf),
        pipelined=True,
        reduces_in_switch=True,
    )


# --- all-to-all, neighbours, broadcast ------------------------------------------------------


def direct_all_to_all(pair: Any, spread: Spread, links: LinkNumbers) -> Walk:
    """Every rank sends *pair* bytes straight to every other; ports and NICs work together.

    Across: pair x (n - M) bytes a GPU leave each tier's domain of M members.
    """
    n, m, split = spread.group_size, spread.together, spread.supernodes > 1
    return Walk(
        inside_start_s=np.where(split, 0.0, (n > 1) * links.inside.latency_s),
        across_start_s=across_latency_s(spread, links),
        inside_s=pair * (m - 1) / inside_bytes_per_s(spread, links),
        across_s=_leaving_s(pair, spread, links),
        issue_s=(n - 1) * links.issue_s,
        pipelined=True,
    )


def hierarchical_all_to_all(
    pair: Any, spread: Spread, links: LinkNumbers, across_share: Any = 1.0
) -> Walk:
    """Swap inside to the rank on the target's rail, then one message a supernode across.

    Inside: pair x (m-1) x k bytes a GPU. Across: *across_share* of the direct bytes; less than 1
    where one copy of a token serves all its experts in a supernode (one copy per domain).
    """
    m, k = spread.together, spread.supernodes
    return Walk(
        inside_start_s=np.minimum(m - 1, 1) * links.inside.latency_s,
        across_start_s=across_latency_s(spread, links),
        inside_s=pair * (m - 1) * k / inside_bytes_per_s(spread, links),
        across_s=_leaving_s(pair, spread, links) * across_share,
        issue_s=(m - 1 + k - 1) * links.issue_s,
        pipelined=True,
    )


def _leaving_s(pair: Any, spread: Spread, links: LinkNumbers) -> Any:
    """Return the longest time that any tier's uplink needs for one GPU's all-to-all [s]."""
    busy: Any = 0.0
    n = spread.group_size
    for position, (tier, held) in enumerate(zip(links.outer, spread.members, strict=True)):
        stay = spread.least_members if position == 0 else held
        busy = np.maximum(busy, pair * (n - stay) / tier.crowded_bytes_per_s())
    return busy


def neighbour(hop: Any, spread: Spread, links: LinkNumbers) -> Walk:
    """One message of *hop* bytes to the next rank of a contiguous ring or chain.

    The slowest hop counts: across where the group touches several supernodes, one NIC.
    """
    n, split = spread.group_size, spread.supernodes > 1
    port = np.minimum(links.inside.alone_bytes_per_s(), np.asarray(links.inside.pair_bytes_per_s))
    inside = np.where((n > 1) & ~np.asarray(split), hop / port, 0.0)
    return Walk(
        inside_start_s=np.where(split, 0.0, (n > 1) * links.inside.latency_s),
        across_start_s=across_latency_s(spread, links),
        inside_s=inside,
        across_s=hop / across_bytes_per_s(spread, links, flows=1.0),
    )


def broadcast_tree(vector: Any, spread: Spread, links: LinkNumbers) -> Walk:
    """Binomial tree across, then inside: log2 k + log2 m whole-vector messages in turn."""
    m, k = spread.together, spread.supernodes
    nic = across_bytes_per_s(spread, links, flows=1.0)
    return Walk(
        inside_start_s=_log2(m) * links.inside.latency_s,
        across_start_s=_log2(k) * across_latency_s(spread, links),
        inside_s=_log2(m) * vector / inside_bytes_per_s(spread, links),
        across_s=_log2(k) * vector / nic,
    )


def broadcast_chain(vector: Any, spread: Spread, links: LinkNumbers) -> Walk:
    """Pipelined chain in domain order: V / the slowest hop, after n - 1 start-ups."""
    m, k = spread.together, spread.supernodes
    port = inside_bytes_per_s(spread, links)
    return Walk(
        inside_start_s=(spread.group_size - k) * links.inside.latency_s,
        across_start_s=(k - 1) * across_latency_s(spread, links),
        inside_s=np.where(m > 1, vector / port, 0.0),
        across_s=vector / across_bytes_per_s(spread, links, flows=1.0),
        pipelined=True,
    )


def broadcast_hierarchical(vector: Any, spread: Spread, links: LinkNumbers) -> Walk:
    """Scatter inside the root's supernode, chain each share across on its rail, gather inside."""
    m, k = spread.together, spread.supernodes
    nic = across_bytes_per_s(spread, links, flows=m)
    return Walk(
        inside_start_s=np.where(k > 1, 2.0, 1.0) * (m - 1) * links.inside.latency_s,
        across_start_s=(k - 1) * across_latency_s(spread, links),
        inside_s=2 * (m - 1) / m * vector / inside_bytes_per_s(spread, links),
        across_s=vector / spread.least_members / nic,
        pipelined=True,
    )


def _passes(
    algorithm: Callable[[Any, Spread, LinkNumbers, int], Walk], passes: int
) -> WalkOf:
    def walk(vector: Any, spread: Spread, links: LinkNumbers) -> Walk:
        return algorithm(vector, spread, links, passes)

    return walk


_SHARDED = MappingProxyType(
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
_REDUCED = MappingProxyType(
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
        "all_reduce": {name: _passes(f, 2) for name, f in {**_SHARDED, **_REDUCED}.items()},
        "reduce_scatter": {name: _passes(f, 1) for name, f in _SHARDED.items()},
        "all_gather": {name: _passes(f, 1) for name, f in _SHARDED.items()},
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
