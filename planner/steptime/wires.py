"""Seconds of one collective on its group's spread: the walks a stock library takes.

A small, fast twin of ``planner.collectives.cost`` (which compares every algorithm and protocol):
the rates of each digit are worked out once and shared by all its collectives. Gathers and
scatters run as one ring a rail; an all-reduce takes the quickest of that, a double tree, and the
switches where they reduce. A tree's pipeline fills chunk by chunk before the last rank has
anything. An oracle test holds both to the same seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from planner.collectives.links import LinkNumbers, Spread
from planner.layout import PART_OF
from planner.steptime.columns import Values, anywhere, larger, lone, select, smaller
from planner.steptime.spread import Spreads, digits_of
from planner.units import KIB

FILL_BYTES = 128.0 * KIB
"""Chunk of one rail that a tree hands on [bytes]: NCCL halves its 512 KiB down to it while a
channel has fewer chunks than 8 times the tree's depth (src/enqueue.cc, ``lastChunkSize``)."""

TREE_SHARE = 0.8
"""Of the NIC rate that a ring reaches, what a tree does with the payloads of training steps [1].

NCCL's own tuner takes 0.7, 0.7, 0.8, 0.9 and 0.9 at 16, 32, 64, 128 and 256 MiB
(``treeCorrectionFactor`` of the protocol Simple, src/graph/tuning.cc): their mean. Below 16 MiB
it takes less, which the filling above stands for.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """What the groups of one digit stand on.

    Args:
        n, m, k: members, members in one supernode, supernodes touched [1].
        rails: members in the supernode that holds fewest [1].
        inside_bytes_per_s: one GPU's scale-up rate in a collective [bytes/s].
        pair_bytes_per_s: scale-up rate between two GPUs [bytes/s].
        rail_bytes_per_s: one member's NIC when all members send [bytes/s].
        hop_bytes_per_s: one member's NIC when only its group's neighbours send [bytes/s].
        inside_latency_s, across_latency_s: one message's start-up [s].
        launch_s: paid by each collective [s].
        switch_bytes_per_s: scale-up rate of a reduction in the switch, 0 where there is none.
    """

    n: Values
    m: Values
    k: Values
    rails: Values
    inside_bytes_per_s: Values
    pair_bytes_per_s: Values
    rail_bytes_per_s: Values
    hop_bytes_per_s: Values
    inside_latency_s: Values
    across_latency_s: Values
    launch_s: Values
    switch_bytes_per_s: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class Wires:
    """The wire of every digit.

    ``dp_shard`` to ``dp_replicate`` are as ``Spreads`` has them. ``tp_whole`` is what TP groups
    would stand on if each had a supernode to itself; None where each has its own supernode.
    """

    tp: Wire
    cp: Wire
    ep: Wire
    etp: Wire
    dp: Wire
    edp: Wire
    pp: Wire
    dp_shard: Wire | None = None
    edp_shard: Wire | None = None
    dp_replicate: Wire | None = None
    tp_whole: Wire | None = None


def wires_of(
    spreads: Spreads,
    links: LinkNumbers,
    inner_share: float = 1.0,
    outer_share: float = 1.0,
    slowdown: Mapping[str, Values] | None = None,
) -> Wires:
    """Return the wires of every digit.

    Args:
        spreads: how the groups sit.
        links: nominal rates of the tiers, supernode first.
        inner_share: of the scale-up rate, what large collectives reach [1].
        outer_share: of the NIC's rate, what large collectives reach [1].
        slowdown: digit to how many times as long its bytes take because of who else is on its
            links; a digit left out has them to itself, and so has a part of it [1].
    """
    longer = slowdown or {}
    tp = spreads.tp
    split = anywhere(np.greater(tp.supernodes, 1.0))
    return Wires(
        tp_whole=_wire(_in_one(tp), links, inner_share, outer_share) if split else None,
        **{
            digit: _slowed(
                _wire(getattr(spreads, digit), links, inner_share, outer_share),
                longer.get(PART_OF.get(digit, digit), 1.0),
            )
            for digit in digits_of(spreads)
        },
    )


def _in_one(spread: Spread) -> Spread:
    """Return the spread of groups as large in one supernode each."""
    n = spread.group_size
    ones = tuple(1.0 for _ in spread.domains)
    return Spread(group_size=n, members=tuple(n for _ in ones), domains=ones, least_members=n)


def _slowed(wire: Wire, factor: Values) -> Wire:
    """Return *wire* with every rate divided by *factor*; start-ups stay."""
    if isinstance(factor, float) and factor == 1.0:
        return wire
    return replace(
        wire,
        inside_bytes_per_s=wire.inside_bytes_per_s / factor,
        pair_bytes_per_s=wire.pair_bytes_per_s / factor,
        rail_bytes_per_s=wire.rail_bytes_per_s / factor,
        hop_bytes_per_s=wire.hop_bytes_per_s / factor,
        switch_bytes_per_s=wire.switch_bytes_per_s / factor,
    )


def _wire(spread: Spread, links: LinkNumbers, inner_share: float, outer_share: float) -> Wire:
    inside = links.inside
    n, m, k = lone(spread.group_size), lone(spread.together), lone(spread.supernodes)
    alone: Values = lone(inside.alone_bytes_per_s() * inner_share)
    crowded, pair = lone(inside.crowded_bytes_per_s() * inner_share), alone
    meshed = np.isfinite(inside.pair_bytes_per_s)
    if meshed.all():
        one = lone(np.asarray(inside.pair_bytes_per_s, float) * inner_share)
        crowded = smaller(crowded, larger(m - 1.0, 1.0) * one)
        pair = smaller(pair, one)
    rail: Values = np.inf
    latency: Values = 0.0
    for tier, touched in zip(links.outer, spread.domains, strict=True):
        reached = touched > 1
        rate = lone(tier.crowded_bytes_per_s() * outer_share)
        rail = select(reached, smaller(rail, rate), rail)
        latency = select(reached, tier.latency_s, latency)
    reduces = anywhere(inside.in_network_reduction)
    return Wire(
        n=n,
        m=m,
        k=k,
        rails=lone(spread.least_members),
        inside_bytes_per_s=crowded,
        pair_bytes_per_s=pair,
        rail_bytes_per_s=rail,
        hop_bytes_per_s=rail,
        inside_latency_s=inside.latency_s,
        across_latency_s=latency,
        launch_s=links.launch_s,
        switch_bytes_per_s=(alone * inside.reduction_share if reduces else 0.0),
    )


def _ring_s(payload_bytes: Values, wire: Wire, passes: float) -> Any:
    """One ring a rail: every NIC carries its part of V, ports carry (m-1)/m of it, both at once."""
    n, m, k = wire.n, wire.m, wire.k
    split = k > 1
    moved = passes * (n - 1.0) / n * payload_bytes
    inside = moved * select(split, (m - 1.0) / m, 1.0) / wire.inside_bytes_per_s
    across = moved / (wire.rails * wire.rail_bytes_per_s)
    hops_inside = n - select(split, k, 1.0)
    saved = select(split * (m <= 1), 1.0, 0.0)
    hops_across = select(split, k - saved, 0.0)
    inner_hops = hops_inside - select(split * (m > 1), 1.0, 0.0)
    start = passes * (inner_hops * wire.inside_latency_s + hops_across * wire.across_latency_s)
    return start + larger(inside, across)


def gather_s(payload_bytes: Values, wire: Wire) -> Any:
    """Return the seconds of an all-gather or reduce-scatter of *payload_bytes* in all."""
    return select(wire.n > 1, wire.launch_s + _ring_s(payload_bytes, wire, 1.0), 0.0)


def all_reduce_s(payload_bytes: Values, wire: Wire) -> Any:
    """Return the seconds of an all-reduce of *payload_bytes*: the quickest walk."""
    best = smaller(_ring_s(payload_bytes, wire, 2.0), _tree_s(payload_bytes, wire))
    if anywhere(wire.switch_bytes_per_s):
        best = smaller(best, _switch_s(payload_bytes, wire))
    return select(wire.n > 1, wire.launch_s + best, 0.0)


def _tree_load(k: Values) -> Any:
    return smaller(k, 4.0) * 0.5 * (k > 1)


def _tree_s(payload_bytes: Values, wire: Wire) -> Any:
    """Double binary tree across, chains inside: log2 k start-ups instead of k.

    The first chunk of every rail goes up and down before the last rank has anything: inside, all
    rails' chunks through one port; across, each over its own NIC.
    """
    depth, hops = lone(np.ceil(np.log2(wire.k))), wire.m - 1.0
    rail = TREE_SHARE * wire.rail_bytes_per_s
    inside = 2.0 * hops / wire.m * payload_bytes / wire.inside_bytes_per_s
    across = _tree_load(wire.k) * payload_bytes / (wire.rails * rail)
    start = 2.0 * (hops * wire.inside_latency_s + depth * wire.across_latency_s)
    chunk = smaller(payload_bytes / wire.rails, FILL_BYTES)
    fill = 2.0 * chunk * (hops * wire.rails / wire.inside_bytes_per_s + depth / rail)
    return start + fill + larger(inside, across)


def _switch_s(payload_bytes: Values, wire: Wire) -> Any:
    """Reduction in the scale-up switch: V (1 + 1/m) a port; a double tree across."""
    inside = select(wire.m > 1, (1.0 + 1.0 / wire.m) * payload_bytes / wire.switch_bytes_per_s, 0.0)
    across = _tree_load(wire.k) * payload_bytes / (wire.rails * wire.rail_bytes_per_s)
    depth = lone(np.ceil(np.log2(wire.k)))
    start = 2.0 * (wire.inside_latency_s + depth * wire.across_latency_s)
    return start + larger(inside, across)


def all_to_all_s(pair_bytes: Values, wire: Wire) -> Any:
    """Return the seconds of an all-to-all of *pair_bytes* for each ordered pair: both at once."""
    inside = pair_bytes * (wire.m - 1.0) / wire.inside_bytes_per_s
    across = pair_bytes * (wire.n - wire.rails) / wire.rail_bytes_per_s
    start = wire.launch_s + larger(wire.inside_latency_s, wire.across_latency_s)
    return select(wire.n > 1, start + larger(inside, across), 0.0)


def hop_s(hop_bytes: Values, wire: Wire) -> Any:
    """Return the seconds of one hop of a ring, the slowest of them: it sets the ring's pace.

    Every member's own NIC carries its hop at the same time as its neighbours' groups do.
    """
    inside, across = _hops(hop_bytes, wire)
    return select(wire.n > 1, select(wire.k > 1, across, inside), 0.0)


def chain_hop_s(hop_bytes: Values, wire: Wire) -> Any:
    """Return the seconds of one hop of a chain, mean over its n - 1 hops, k - 1 of which cross."""
    inside, across = _hops(hop_bytes, wire)
    crossing = smaller(1.0, (wire.k - 1.0) / larger(1.0, wire.n - 1.0))
    mean = inside + crossing * select(wire.k > 1, across - inside, 0.0)
    return select(wire.n > 1, mean, 0.0)


def _hops(hop_bytes: Values, wire: Wire) -> tuple[Any, Any]:
    across = hop_bytes / wire.hop_bytes_per_s + wire.across_latency_s
    return hop_bytes / wire.pair_bytes_per_s + wire.inside_latency_s, across
