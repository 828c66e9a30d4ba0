"""Routes of flows over a cluster's graph: equal-cost paths, sprayed or hashed.

Costs are those of ``reach.py``. Among paths of least cost a flow is either *sprayed* evenly at each
vertex (adaptive routing, or many queue pairs) or *hashed*: one path, picked by a fixed hash of its
two ends.

All flows move together, one hop at a time: a *state* is (vertex, destination), so flows that meet
share the rest of their way, and 1024 GPUs take a fraction of a second.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from planner.network.reach import (
    FAR,
    RELAY_COST,
    Links,
    NoRouteError,
    Reach,
    ranges,
    reach,
    relayed,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

__all__ = ["Hop", "NoRouteError", "Paths", "Routes", "needs_relays", "route"]

_HASH = 0x9E3779B97F4A7C15
_LOOKED_AT_ONCE = 4_000_000
"""Links whose costs are compared at once, 0.2 GB."""
_MOST_ARCS = 40_000_000
"""Links that flows may fan out over at one hop: 3 GB for all that is kept of them."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Hop:
    """One hop of all flows.

    Args:
        states: number of states before the hop [1].
        origin: state before the hop; array [arcs].
        onward: state after it, -1 where it arrives; array [arcs].
        link: link taken; array [arcs].
        share: part of the state's traffic that takes it; array [arcs].
    """

    states: int
    origin: Ints
    onward: Ints
    link: Ints
    share: Floats


class Paths(Enum):
    """What becomes of a flow where several links cost the same."""

    SPRAYED = "split evenly over them"
    HASHED = "one of them, by hash"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Routes:
    """Where flows go.

    Args:
        links: the links there are.
        hops: first hop first.
        flow_state: state of each flow before the first hop; -1 for a flow to itself.
    """

    links: Links
    hops: tuple[Hop, ...]
    flow_state: Ints

    def path(self, flow: int) -> tuple[int, ...]:
        """Return the links of one flow, the first of equal ones where it is sprayed."""
        links, state = [], int(self.flow_state[flow])
        for hop in self.hops:
            if state < 0:
                break
            arc = int(np.flatnonzero(hop.origin == state)[0])
            links.append(int(hop.link[arc]))
            state = int(hop.onward[arc])
        return tuple(links)


def route(
    links: Links,
    sources: Ints,
    targets: Ints,
    *,
    paths: Paths = Paths.SPRAYED,
    relay_cost: int | None = None,
    known: Reach | None = None,
) -> Routes:
    """Return the routes of flows between vertices.

    Args:
        links: of ``links_of_graph``.
        sources: vertex each flow leaves; array [flows].
        targets: vertex each flow goes to; array [flows].
        paths: what becomes of a flow where several links cost the same.
        relay_cost: cost of passing through a GPU; None: as the module says [1].
        known: costs to these targets, and perhaps more, where they were found before.

    Raises:
        NoRouteError: a flow without a path.
    """
    known = known or reach(links, targets, relay_cost)
    column = np.searchsorted(known.ends, targets)
    moving = sources != targets
    lost = _lost(links, known, sources[moving], column[moving])
    if lost is not None and known.relay_cost is None:
        known = relayed(links, np.unique(targets), RELAY_COST)
        column = np.searchsorted(known.ends, targets)
        lost = _lost(links, known, sources[moving], column[moving])
    if lost is not None:
        a = links.vertices[sources[moving][lost]]
        b = links.vertices[targets[moving][lost]]
        raise NoRouteError(f"no path from {a} to {b}: expected a connected fabric")
    tag, key = sources * len(links.vertices) + targets, sources * len(known.ends) + column
    if paths is Paths.SPRAYED:
        tag = np.zeros(len(sources), np.int64)
    else:
        key = tag
    present, flow_state = np.unique(np.where(moving, key, -1), return_inverse=True)
    chosen = np.zeros(len(present), np.int64)
    chosen[flow_state[::-1]] = np.arange(len(sources))[::-1]
    if present.size and present[0] < 0:
        flow_state, chosen = flow_state - 1, chosen[1:]
    at, to, tag = sources[chosen], column[chosen], tag[chosen]
    hops: list[Hop] = []
    while len(at):
        taken = _hop(links, known, at, to, tag, paths, len(hops))
        at, to, tag = taken.at, taken.to, taken.tag
        hops.append(taken.hop)
    return Routes(links=links, hops=tuple(hops), flow_state=flow_state.astype(np.int64))


def needs_relays(links: Links, known: Reach, sources: Ints, targets: Ints) -> bool:
    """Return whether some flow has no path with the costs *known*, or takes GPUs for one."""
    column = np.searchsorted(known.ends, targets)
    return known.relay_cost is not None or _lost(links, known, sources, column) is not None


def _lost(links: Links, known: Reach, sources: Ints, column: Ints) -> int | None:
    """Return the first flow that cannot take a first step, if there is one."""
    least = np.full(len(sources), FAR, np.int64)
    counts = links.first[sources + 1] - links.first[sources]
    for step in range(int(counts.max(initial=0))):
        has = step < counts
        arc = links.first[sources[has]] + step
        least[has] = np.minimum(least[has], known.cost(links.heads[arc], column[has]))
    none = np.flatnonzero(least >= FAR)
    return int(none[0]) if len(none) else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Taken:
    """A hop, and the states after it: where they are, where they go, their hash."""

    hop: Hop
    at: Ints
    to: Ints
    tag: Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Cheapest:
    """The cheapest links of each pair of vertex and target, pair by pair, and how many each has."""

    edges: Ints
    fan: Ints


def _cheapest(links: Links, known: Reach, vertex: Ints, target: Ints) -> _Cheapest:
    """Return the links that lead cheapest from each of *vertex* to its *target*."""
    _, one, like = np.unique(known.alike(vertex, target), return_index=True, return_inverse=True)
    counts = links.first[vertex[one] + 1] - links.first[vertex[one]]
    parts = np.searchsorted(np.cumsum(counts), np.arange(0, counts.sum(), _LOOKED_AT_ONCE))
    found, fans = [], []
    for start, end in pairwise([*np.unique(parts).tolist(), len(one)]):
        vertices, targets, degree = (
            array[start:end] for array in (vertex[one], target[one], counts)
        )
        edges = ranges(links.first[vertices], degree)
        owner = np.repeat(np.arange(len(vertices)), degree)
        onward_cost = known.cost(links.heads[edges], targets[owner]) + links.cost[edges]
        best = np.minimum.reduceat(onward_cost, np.cumsum(degree) - degree)
        ties = onward_cost == best[owner]
        found.append(edges[ties])
        fans.append(np.bincount(owner[ties], minlength=len(vertices)))
    all_fans = np.concatenate(fans)
    fan = all_fans[like]
    if fan.sum() > _MOST_ARCS:
        raise NoRouteError(
            f"flows between {len(known.ends):,} GPUs fan out over {fan.sum():,} links at one hop: "
            f"routed each for itself up to {_MOST_ARCS:,}"
        )
    begin = np.cumsum(all_fans) - all_fans
    return _Cheapest(edges=np.concatenate(found)[ranges(begin[like], fan)], fan=fan)


def _hop(
    links: Links,
    known: Reach,
    at: Ints,
    to: Ints,
    tag: Ints,
    paths: Paths,
    depth: int,
) -> _Taken:
    """Return the next hop of all states, and the states after it."""
    ends = known.ends
    pairs, pair = np.unique(at * len(ends) + to, return_inverse=True)
    vertex, target = np.divmod(pairs, len(ends))
    cheapest = _cheapest(links, known, vertex, target)
    edges, fan = cheapest.edges, cheapest.fan
    owner = np.repeat(np.arange(len(pairs)), fan)
    begin = np.cumsum(fan) - fan
    if paths is Paths.SPRAYED:
        # states are unique pairs already
        order = np.argsort(pair, kind="stable")
        origin = order[owner]
        share = 1.0 / fan[owner]
    else:
        mixed = (tag.astype(np.uint64) + np.uint64(depth)) * np.uint64(_HASH)
        pick = ((mixed >> np.uint64(33)) % fan[pair].astype(np.uint64)).astype(np.int64)
        edges = edges[begin[pair] + pick]
        owner, origin = pair, np.arange(len(at))
        share = np.ones(len(at))
    head, goal = links.heads[edges], target[owner]
    arrived = head == ends[goal]
    tags = tag[origin]
    key = head * len(ends) + goal if paths is Paths.SPRAYED else tags
    kept, onward = np.unique(key[~arrived], return_inverse=True)
    after = np.full(len(edges), -1, np.int64)
    after[~arrived] = onward
    first = np.zeros(len(kept), np.int64)
    first[onward[::-1]] = np.flatnonzero(~arrived)[::-1]
    hop = Hop(states=len(at), origin=origin, onward=after, link=edges, share=share)
    return _Taken(hop=hop, at=head[first], to=goal[first], tag=tags[first])
