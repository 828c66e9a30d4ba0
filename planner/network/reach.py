"""The directed links of a cluster's graph, and what it costs to get from anywhere to a GPU.

Cost of a path: 1 for a scale-up link, 2 for any other. A GPU passes traffic on, for a cost of 4,
only in fabrics that link GPUs to each other (mesh, torus) or where nothing else leads (rail-only
across rails). So traffic stays inside a scale-up domain where it can. A NIC leads from its GPU to
the network or back, never from one switch to another: it appears as two vertices of one name.
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
MOST_RELAYED = 2_500
"""GPUs that are routed at most where some pass traffic on: costs of each to each, 0.3 GB."""
FAR = 15_000
"""Cost where there is no path: above every real one, and twice it still is a 16-bit number."""


class NoRouteError(InputError):
    """Two GPUs that have to talk and that no links join."""


_SCALE_UP_TIERS = ("board", "supernode")


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
    if relay_cost is None:
        known = _by_switches(links, np.unique(targets))
        vertices = np.repeat(np.arange(len(links.vertices)), len(targets))
        numbers = np.tile(np.searchsorted(known.ends, targets), len(links.vertices))
        return known.cost(vertices, numbers).reshape(-1, len(targets)).astype(np.int16)
    costs = np.full((len(links.vertices), len(targets)), FAR, np.int16)
    costs[targets, np.arange(len(targets))] = 0
    passing = np.where(links.is_gpu, relay_cost, 0).astype(np.int16)
    _settle(links, costs, targets, np.ones(len(links.tails), bool), passing)
    return costs


def _settle(
    links: Links,
    costs: NDArray[np.int16],
    start: Ints,
    used: NDArray[np.bool_],
    passing: NDArray[np.int16],
) -> None:
    """Lower *costs* over the links in *used* until none changes, beginning at vertices *start*."""
    arcs = np.flatnonzero(used)
    changed = start
    while len(changed):
        changed = _settle_once(links, costs, changed, arcs, passing)


def _settle_once(
    links: Links,
    costs: NDArray[np.int16],
    changed: Ints,
    arcs: Ints,
    passing: NDArray[np.int16],
) -> Ints:
    """Lower *costs* over one link of *arcs* towards the vertices *changed*; return those lowered.

    Costs of 0 are targets, which stay.
    """
    news = np.zeros(len(links.vertices), bool)
    news[changed] = True
    touched = np.unique(links.tails[arcs[news[links.heads[arcs]]]])
    if not len(touched):
        return touched
    tails = links.tails[arcs]
    first = np.searchsorted(tails, touched)
    counts = np.searchsorted(tails, touched, side="right") - first
    edges = arcs[ranges(first, counts)]
    via = costs[links.heads[edges]]
    via += links.cost[edges].astype(np.int16)[:, None]
    best = np.minimum.reduceat(via, np.cumsum(counts) - counts, axis=0)
    best += passing[touched, None]
    better = np.minimum(best, costs[touched])
    better[costs[touched] == 0] = 0
    lowered = (better < costs[touched]).any(axis=1)
    costs[touched] = better
    result: Ints = touched[lowered]
    return result


def ranges(starts: Ints, counts: Ints) -> Ints:
    """Return the numbers start, start + 1 … of every range, one after another."""
    ends = np.cumsum(counts)
    offsets = np.repeat(starts - (ends - counts), counts)
    result: Ints = offsets + np.arange(ends[-1] if len(ends) else 0)
    return result


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reach:
    """Least costs to a set of targets, to be used by many calls of ``route``.

    Targets behind the same switches share a column: a cluster has far fewer leaves than GPUs. What
    leads to one target only, its NIC and its scale-up switch, is kept beside them.

    Args:
        ends: target vertices, ascending; array [targets].
        costs: least cost from each vertex; array [vertices, columns].
        column: of each target; array [targets].
        near: vertex x targets + target of each link that leads to one target only, ascending.
        near_costs: cost of that link; array [near].
        leads_near: whether such a link leaves a vertex; array [vertices].
        relay_cost: cost of passing through a GPU that they were found with; None: no GPU does.
    """

    ends: Ints
    costs: NDArray[np.int16]
    column: Ints
    near: Ints
    near_costs: Ints
    leads_near: NDArray[np.bool_]
    relay_cost: int | None

    def cost(self, vertices: Ints, targets: Ints) -> Ints:
        """Return the least cost from each of *vertices* to each of *targets*, numbers in *ends*."""
        least: Ints = self.costs[vertices, self.column[targets]].astype(np.int64)
        beside = np.flatnonzero(self.leads_near[vertices])
        if len(beside):
            key = vertices[beside] * len(self.ends) + targets[beside]
            at = np.minimum(np.searchsorted(self.near, key), len(self.near) - 1)
            found = self.near[at] == key
            hit, cost = beside[found], self.near_costs[at[found]]
            least[hit] = np.minimum(least[hit], cost)
        least[vertices == self.ends[targets]] = 0
        return least


def reach(links: Links, targets: Ints, relay_cost: int | None = None) -> Reach:
    """Return the least costs to *targets*; *relay_cost* as of ``route``."""
    ends = np.unique(targets)
    between_gpus = bool((links.is_gpu[links.tails] & links.is_gpu[links.heads]).any())
    relay = RELAY_COST if relay_cost is None and between_gpus else relay_cost
    if relay is not None:
        return relayed(links, ends, relay)
    return _by_switches(links, ends)


def relayed(links: Links, ends: Ints, relay_cost: int) -> Reach:
    """Return the costs where GPUs pass traffic on: a column for each target."""
    if len(ends) > MOST_RELAYED:
        raise NoRouteError(
            f"{len(ends):,} GPUs, and some pass traffic on for others: routed up to "
            f"{MOST_RELAYED:,}"
        )
    none = np.zeros(0, np.int64)
    return Reach(
        ends=ends,
        costs=costs_to(links, ends, relay_cost),
        column=np.arange(len(ends)),
        near=none,
        near_costs=none,
        leads_near=np.zeros(len(links.vertices), bool),
        relay_cost=relay_cost,
    )


def _by_switches(links: Links, ends: Ints) -> Reach:
    """Return the costs where no GPU passes traffic on: a column for each set of last switches."""
    target = np.full(len(links.vertices), -1)
    target[ends] = np.arange(len(ends))
    switches = ~links.is_gpu & ~links.is_nic
    core = switches[links.tails] & switches[links.heads]
    joined = np.zeros(len(links.vertices), bool)
    joined[links.heads[core]] = True  # switches that others lead to
    out = links.is_nic[links.tails] & switches[links.heads]
    joined[links.heads[out]] = True
    last = _last_steps(links, target)
    froms, ats, costs = last.froms, last.ats, last.costs
    far = joined[froms]
    column, shapes = _alike(len(ends), froms[far], ats[far], costs[far])
    table = np.full((len(links.vertices), len(shapes)), FAR, np.int16)
    for number, shape in enumerate(shapes):
        for vertex, cost in shape:
            table[vertex, number] = cost
    nothing = np.zeros(len(links.vertices), np.int16)
    _settle(links, table, links.tails[core], core, nothing)
    _settle_once(links, table, links.heads[out], np.flatnonzero(out), nothing)
    near, near_costs = (froms * len(ends) + ats)[~far], costs[~far]
    order = np.lexsort((near_costs, near))
    near, near_costs = near[order], near_costs[order]
    first = np.ones(len(near), bool)
    first[1:] = near[1:] != near[:-1]
    leads_near = np.zeros(len(links.vertices), bool)
    leads_near[froms[~far]] = True
    return Reach(
        ends=ends,
        costs=table,
        column=column,
        near=near[first],
        near_costs=near_costs[first],
        leads_near=leads_near,
        relay_cost=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _LastSteps:
    """Whence, whither and at what cost; arrays [steps]."""

    froms: Ints
    ats: Ints
    costs: Ints


def _last_steps(links: Links, target: Ints) -> _LastSteps:
    """Return the steps from switch or NIC to target, and from switch over its NIC."""
    last = np.flatnonzero(~links.is_gpu[links.tails] & (target[links.heads] >= 0))
    into = np.flatnonzero(~links.is_nic[links.tails] & links.is_nic[links.heads])
    nic = links.heads[into]
    counts = links.first[nic + 1] - links.first[nic]
    behind, before = ranges(links.first[nic], counts), np.repeat(into, counts)
    leads = ~links.is_gpu[links.tails[before]] & (target[links.heads[behind]] >= 0)
    behind, before = behind[leads], before[leads]
    return _LastSteps(
        froms=np.concatenate([links.tails[last], links.tails[before]]),
        ats=np.concatenate([target[links.heads[last]], target[links.heads[behind]]]),
        costs=np.concatenate([links.cost[last], links.cost[before] + links.cost[behind]]),
    )


def _alike(
    targets: int, froms: Ints, ats: Ints, costs: Ints
) -> tuple[Ints, list[tuple[tuple[int, int], ...]]]:
    """Return the column of each target, and of each column the last switches with their costs."""
    of_target: list[dict[int, int]] = [{} for _ in range(targets)]
    for vertex, at, cost in zip(froms.tolist(), ats.tolist(), costs.tolist(), strict=True):
        known = of_target[at]
        known[vertex] = min(cost, known.get(vertex, cost))
    number: dict[tuple[tuple[int, int], ...], int] = {}
    column = [number.setdefault(tuple(sorted(one.items())), len(number)) for one in of_target]
    return np.array(column, np.int64), list(number)


def vertices_of(links: Links, names: Sequence[str]) -> Ints:
    """Return the vertex number of each name."""
    number = {name: i for i, name in enumerate(links.vertices)}
    return np.array([number[name] for name in names], np.int64)
