"""Routes of flows over a cluster's graph: equal-cost paths, sprayed or hashed.

Cost of a path: 1 for a scale-up link, 2 for any other. A GPU passes traffic on, for a cost of 4,
only in fabrics that link GPUs to each other (mesh, torus) or where nothing else leads (rail-only
across rails). So traffic stays inside a scale-up domain where it can. A NIC leads from its GPU to
the network or back, never from one switch to another: it appears as two vertices of one name.
Among paths of least cost a flow is either *sprayed* evenly at each vertex (adaptive routing, or
many queue pairs) or *hashed*: one path, picked by a fixed hash of its two ends.

All flows move together, one hop at a time: a *state* is (vertex, destination), so flows that meet
share the rest of their way, and 1024 GPUs take a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

RELAY_COST = 4


class NoRouteError(InputError):
    """Two GPUs that have to talk and that no links join."""


_SCALE_UP_TIERS = ("board", "supernode")
_FAR = 15_000
_HASH = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Links:
    """The directed links of a graph, sorted by the vertex they leave.

    Args:
        vertices: vertex names.
        tails: index of the vertex a link leaves; array [links].
        heads: index of the vertex it enters; array [links].
        capacity_bytes_per_s: array [links] [bytes/s].
        cost: array [links] [1].
        first: links[first[v]:first[v + 1]] leave vertex v; array [vertices + 1].
        is_gpu: array [vertices].
        is_nic: array [vertices].
    """

    vertices: tuple[str, ...]
    tails: Ints
    heads: Ints
    capacity_bytes_per_s: Floats
    cost: Ints
    first: Ints
    is_gpu: NDArray[np.bool_]
    is_nic: NDArray[np.bool_]

    def name(self, link: int) -> str:
        """Return a link as ``leaf-3 -> spine-1``."""
        return f"{self.vertices[self.tails[link]]} -> {self.vertices[self.heads[link]]}"


def links_of_graph(graph: Any) -> Links:
    """Return the directed links of *graph*, both directions where it is undirected.

    The first vertices are the graph's own, in its order; a NIC stands there as the way out, and
    once more behind them as the way in.
    """
    names = list(graph.nodes)
    kinds = [vertex.get("kind") for _, vertex in graph.nodes(data=True)]
    number = {name: i for i, name in enumerate(names)}
    nics = [name for name, kind in zip(names, kinds, strict=True) if kind == "nic"]
    inward = {name: len(names) + i for i, name in enumerate(nics)}
    gpus = {name for name, kind in zip(names, kinds, strict=True) if kind == "gpu"}
    rows = []

    def add(tail: str, head: str, link: Any) -> None:
        cost = 1 if link.get("tier") in _SCALE_UP_TIERS else 2
        leaves = inward[tail] if tail in inward and head in gpus else number[tail]
        enters = inward[head] if head in inward and tail not in gpus else number[head]
        rows.append((leaves, enters, link["capacity_bytes_per_s"], cost))

    for a, b, link in graph.edges(data=True):
        add(a, b, link)
        if not graph.is_directed():
            add(b, a, link)
    rows.sort()
    tails = np.array([row[0] for row in rows], np.int64)
    kinds += ["nic"] * len(nics)
    return Links(
        vertices=(*names, *nics),
        tails=tails,
        heads=np.array([row[1] for row in rows], np.int64),
        capacity_bytes_per_s=np.array([row[2] for row in rows], np.float64),
        cost=np.array([row[3] for row in rows], np.int64),
        first=np.searchsorted(tails, np.arange(len(kinds) + 1)),
        is_gpu=np.array([kind == "gpu" for kind in kinds]),
        is_nic=np.array([kind == "nic" for kind in kinds]),
    )


def costs_to(links: Links, targets: Ints, relay_cost: int | None) -> NDArray[np.int16]:
    """Return the least cost from each vertex, as a passer-on, to each target.

    Array [vertices, targets]; 15,000 or more where there is no path. With *relay_cost* None no
    GPU passes traffic on. Bellman-Ford on all targets at once.
    """
    costs = np.full((len(links.vertices), len(targets)), _FAR, np.int16)
    costs[targets, np.arange(len(targets))] = 0
    if relay_cost is not None:
        passing = np.where(links.is_gpu, relay_cost, 0).astype(np.int16)
        _settle(links, costs, targets, np.ones(len(links.tails), bool), passing)
        return costs
    column = np.full(len(links.vertices), -1)
    column[targets] = np.arange(len(targets))
    _attach(links, costs, column)
    switches = ~links.is_gpu & ~links.is_nic
    nothing = np.zeros(len(links.vertices), np.int16)
    core = switches[links.tails] & switches[links.heads]
    _settle(links, costs, links.tails[core], core, nothing)
    out = links.is_nic[links.tails] & switches[links.heads]
    _settle(links, costs, links.heads[out], out, nothing, once=True)
    return costs


def _attach(links: Links, costs: NDArray[np.int16], column: Ints) -> None:
    """Note the cost of the last links before each target: NIC or switch to GPU, switch to NIC."""
    last = np.flatnonzero(~links.is_gpu[links.tails] & (column[links.heads] >= 0))
    np.minimum.at(costs, (links.tails[last], column[links.heads[last]]), links.cost[last])
    into = np.flatnonzero(~links.is_nic[links.tails] & links.is_nic[links.heads])
    nic = links.heads[into]
    counts = links.first[nic + 1] - links.first[nic]
    behind, before = _ranges(links.first[nic], counts), np.repeat(into, counts)
    leads = ~links.is_gpu[links.tails[before]] & (column[links.heads[behind]] >= 0)
    behind, before = behind[leads], before[leads]
    total = links.cost[before] + links.cost[behind]
    np.minimum.at(costs, (links.tails[before], column[links.heads[behind]]), total)


def _settle(
    links: Links,
    costs: NDArray[np.int16],
    start: Ints,
    used: NDArray[np.bool_],
    passing: NDArray[np.int16],
    *,
    once: bool = False,
) -> None:
    """Lower *costs* over the links in *used* until none changes, beginning at vertices *start*."""
    arcs = np.flatnonzero(used)
    tails, heads, cost = links.tails[arcs], links.heads[arcs], links.cost[arcs].astype(np.int16)
    first = np.searchsorted(tails, np.arange(len(links.vertices) + 1))
    changed = np.zeros(len(links.vertices), bool)
    changed[start] = True
    zero = costs == 0
    while changed.any():
        touched = np.unique(tails[changed[heads]])
        if not len(touched):
            return
        counts = first[touched + 1] - first[touched]
        edges = _ranges(first[touched], counts)
        via = costs[heads[edges]]
        via += cost[edges, None]
        best = np.minimum.reduceat(via, np.cumsum(counts) - counts, axis=0)
        best += passing[touched, None]
        better = np.minimum(best, costs[touched])
        better[zero[touched]] = 0
        changed[:] = False
        changed[touched] = (better < costs[touched]).any(axis=1)
        costs[touched] = better
        if once:
            return


def _ranges(starts: Ints, counts: Ints) -> Ints:
    """Return the numbers start, start + 1 … of every range, one after another."""
    ends = np.cumsum(counts)
    offsets = np.repeat(starts - (ends - counts), counts)
    result: Ints = offsets + np.arange(ends[-1] if len(ends) else 0)
    return result


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reach:
    """Least costs to a set of targets, to be used by many calls of ``route``.

    Args:
        ends: target vertices, ascending; array [targets].
        costs: of ``costs_to``, array [vertices, targets].
        relay_cost: cost of passing through a GPU that they were found with; None: no GPU does.
    """

    ends: Ints
    costs: NDArray[np.int16]
    relay_cost: int | None


def reach(links: Links, targets: Ints, relay_cost: int | None = None) -> Reach:
    """Return the least costs to *targets*; *relay_cost* as of ``route``."""
    ends = np.unique(targets)
    between_gpus = bool((links.is_gpu[links.tails] & links.is_gpu[links.heads]).any())
    relay = RELAY_COST if relay_cost is None and between_gpus else relay_cost
    return Reach(ends=ends, costs=costs_to(links, ends, relay), relay_cost=relay)


def route(
    links: Links,
    sources: Ints,
    targets: Ints,
    *,
    spray: bool = True,
    relay_cost: int | None = None,
    known: Reach | None = None,
) -> Routes:
    """Return the routes of flows between vertices.

    Args:
        links: of ``links_of_graph``.
        sources: vertex each flow leaves; array [flows].
        targets: vertex each flow goes to; array [flows].
        spray: split evenly over equal-cost links at each vertex; else one path by hash.
        relay_cost: cost of passing through a GPU; None: as the module says [1].
        known: costs to these targets, and perhaps more, where they were found before.

    Raises:
        NoRouteError: a flow without a path.
    """
    known = known or reach(links, targets, relay_cost)
    ends, costs, relay = known.ends, known.costs, known.relay_cost
    column = np.searchsorted(ends, targets)
    moving = sources != targets
    lost = _lost(links, costs, sources[moving], column[moving])
    if lost is not None and relay is None:
        ends, column = np.unique(targets, return_inverse=True)
        costs = costs_to(links, ends, RELAY_COST)
        lost = _lost(links, costs, sources[moving], column[moving])
    if lost is not None:
        a = links.vertices[sources[moving][lost]]
        b = links.vertices[targets[moving][lost]]
        raise NoRouteError(f"no path from {a} to {b}: expected a connected fabric")
    tag = np.zeros(len(sources), np.int64) if spray else sources * len(links.vertices) + targets
    key = sources * len(ends) + column if spray else tag
    present, flow_state = np.unique(np.where(moving, key, -1), return_inverse=True)
    chosen = np.zeros(len(present), np.int64)
    chosen[flow_state[::-1]] = np.arange(len(sources))[::-1]
    if present.size and present[0] < 0:
        flow_state, chosen = flow_state - 1, chosen[1:]
    at, to, tag = sources[chosen], column[chosen], tag[chosen]
    hops: list[Hop] = []
    while len(at):
        hop, at, to, tag = _hop(links, costs, ends, at, to, tag, spray, len(hops))
        hops.append(hop)
    return Routes(links=links, hops=tuple(hops), flow_state=flow_state.astype(np.int64))


def _lost(links: Links, costs: NDArray[np.int16], sources: Ints, column: Ints) -> int | None:
    """Return the first flow that cannot take a first step, if there is one."""
    reach = np.full(len(sources), _FAR, np.int64)
    counts = links.first[sources + 1] - links.first[sources]
    for step in range(int(counts.max(initial=0))):
        has = step < counts
        arc = links.first[sources[has]] + step
        reach[has] = np.minimum(reach[has], costs[links.heads[arc], column[has]])
    none = np.flatnonzero(reach >= _FAR)
    return int(none[0]) if len(none) else None


def _hop(
    links: Links,
    costs: NDArray[np.int16],
    ends: Ints,
    at: Ints,
    to: Ints,
    tag: Ints,
    spray: bool,
    depth: int,
) -> tuple[Hop, Ints, Ints, Ints]:
    """Return the next hop of all states, and the states after it."""
    pairs, pair = np.unique(at * len(ends) + to, return_inverse=True)
    vertex, target = np.divmod(pairs, len(ends))
    counts = links.first[vertex + 1] - links.first[vertex]
    edges = _ranges(links.first[vertex], counts)
    owner = np.repeat(np.arange(len(pairs)), counts)
    onward_cost = costs[links.heads[edges], target[owner]].astype(np.int64) + links.cost[edges]
    best = np.minimum.reduceat(onward_cost, np.cumsum(counts) - counts)
    ties = onward_cost == best[owner]
    edges, owner = edges[ties], owner[ties]
    fan = np.bincount(owner, minlength=len(pairs))
    begin = np.cumsum(fan) - fan
    if spray:
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
    key = head * len(ends) + goal if spray else tags
    kept, onward = np.unique(key[~arrived], return_inverse=True)
    after = np.full(len(edges), -1, np.int64)
    after[~arrived] = onward
    first = np.zeros(len(kept), np.int64)
    first[onward[::-1]] = np.flatnonzero(~arrived)[::-1]
    hop = Hop(states=len(at), origin=origin, onward=after, link=edges, share=share)
    return hop, head[first], goal[first], tags[first]


def vertices_of(links: Links, names: Sequence[str]) -> Ints:
    """Return the vertex number of each name."""
    number = {name: i for i, name in enumerate(links.vertices)}
    return np.array([number[name] for name in names], np.int64)
