"""The directed links of a cluster's graph, and what it costs to get from anywhere to a GPU.

Cost of a path: 1 for a scale-up link, 2 for any other. A GPU passes traffic on, for a cost of 4,
only in fabrics that link GPUs to each other (mesh, torus) or where nothing else leads (rail-only
across rails). So traffic stays inside a scale-up domain where it can. A NIC leads from its GPU to
the network or back, never from one switch to another: it appears as two vertices of one name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
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

_NEVER_ASKED = np.iinfo(np.int64).max


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
        known = unrelayed(links, np.unique(targets))
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

    Vertices that lead to each other without a GPU between them are one *part*: the network, the
    scale-up switches of a supernode, a NIC on its way in. Targets behind the same switches of a
    part share a column there, and parts share columns: a cluster has far fewer leaves than GPUs.

    Args:
        ends: target vertices, ascending; array [targets].
        costs: least cost from each vertex by column; array [vertices, columns].
        part: of each vertex, -1 where it leads nowhere; array [vertices].
        reached: part x targets + target wherever a part leads to a target, ascending, and behind
            them ``_NEVER_ASKED``.
        columns: of each of these; array [reached].
        relay_cost: cost of passing through a GPU that they were found with; None: no GPU does.
        inner: whether all links of a vertex lead on inside its part, so that which of them are
            cheapest depends on a target's column only; array [vertices].
        main: the part that reaches most targets: the network.
        main_rows: where *reached* has it with each target; array [targets].
    """

    ends: Ints
    costs: NDArray[np.int16]
    part: Ints
    reached: Ints
    columns: Ints
    relay_cost: int | None
    inner: NDArray[np.bool_]
    main: int = field(init=False)
    main_rows: Ints = field(init=False)

    def __post_init__(self) -> None:
        parts = self.reached[:-1] // max(1, len(self.ends))
        main = int(np.argmax(np.bincount(parts))) if len(parts) else 0
        keys = main * len(self.ends) + np.arange(len(self.ends))
        object.__setattr__(self, "main", main)
        object.__setattr__(self, "main_rows", np.searchsorted(self.reached, keys))

    def cost(self, vertices: Ints, targets: Ints) -> Ints:
        """Return the least cost from each of *vertices* to each of *targets*, numbers in *ends*."""
        at = self._rows(vertices, targets)
        least: Ints = self.costs[vertices, self.columns[at]].astype(np.int64)
        least[self.reached[at] != self.part[vertices] * len(self.ends) + targets] = FAR
        least[vertices == self.ends[targets]] = 0
        return least

    def alike(self, vertices: Ints, targets: Ints) -> Ints:
        """Return numbers that pairs share whose cheapest links are the same, below 0 or not."""
        column = self.columns[self._rows(vertices, targets)]
        by_column = -1 - (vertices * self.costs.shape[1] + column)
        numbers: Ints = np.where(
            self.inner[vertices], by_column, vertices * len(self.ends) + targets
        )
        return numbers

    def _rows(self, vertices: Ints, targets: Ints) -> Ints:
        """Return where *reached* has the part of each of *vertices* with its target."""
        part = self.part[vertices]
        at: Ints = self.main_rows[targets]
        beside = np.flatnonzero(part != self.main)
        at[beside] = np.searchsorted(self.reached, part[beside] * len(self.ends) + targets[beside])
        return at


def reach(links: Links, targets: Ints, relay_cost: int | None = None) -> Reach:
    """Return the least costs to *targets*; *relay_cost* as of ``route``."""
    ends = np.unique(targets)
    between_gpus = bool((links.is_gpu[links.tails] & links.is_gpu[links.heads]).any())
    relay = RELAY_COST if relay_cost is None and between_gpus else relay_cost
    if relay is not None:
        return relayed(links, ends, relay)
    return unrelayed(links, ends)


def relayed(links: Links, ends: Ints, relay_cost: int) -> Reach:
    """Return the costs where GPUs pass traffic on: all one part, a column for each target."""
    if len(ends) > MOST_RELAYED:
        raise NoRouteError(
            f"{len(ends):,} GPUs, and some pass traffic on for others: routed up to "
            f"{MOST_RELAYED:,}"
        )
    return Reach(
        ends=ends,
        costs=costs_to(links, ends, relay_cost),
        part=np.zeros(len(links.vertices), np.int64),
        reached=np.append(np.arange(len(ends)), _NEVER_ASKED),
        columns=np.append(np.arange(len(ends)), 0),
        relay_cost=relay_cost,
        inner=np.zeros(len(links.vertices), bool),
    )


def unrelayed(links: Links, ends: Ints) -> Reach:
    """Return the costs where no GPU passes traffic on."""
    target = np.full(len(links.vertices), -1)
    target[ends] = np.arange(len(ends))
    switches = ~links.is_gpu & ~links.is_nic
    core = switches[links.tails] & switches[links.heads]
    out = links.is_nic[links.tails] & switches[links.heads]
    part = _parts(links, core | out)
    last = _last_steps(links, target)
    shared = _shared_columns(part, last, len(ends))
    table = np.full((len(links.vertices), 1 + int(shared.columns.max(initial=0))), FAR, np.int16)
    row = np.searchsorted(shared.reached, part[last.froms] * len(ends) + last.ats)
    np.minimum.at(table, (last.froms, shared.columns[row]), last.costs.astype(np.int16))
    nothing = np.zeros(len(links.vertices), np.int16)
    inner = part >= 0
    inner[links.tails[part[links.tails] != part[links.heads]]] = False
    _settle(links, table, links.tails[core], core, nothing)
    _settle_once(links, table, links.heads[out], np.flatnonzero(out), nothing)
    return Reach(
        ends=ends,
        costs=table,
        part=part,
        reached=shared.reached,
        columns=shared.columns,
        relay_cost=None,
        inner=inner,
    )


def _parts(links: Links, joining: NDArray[np.bool_]) -> Ints:
    """Return a number of each vertex that those share that *joining* links connect; -1 for GPUs."""
    tails, heads = links.tails[joining], links.heads[joining]
    part: Ints = np.arange(len(links.vertices))
    while True:
        lower = part.copy()
        np.minimum.at(lower, heads, part[tails])
        np.minimum.at(lower, tails, part[heads])
        if (lower == part).all():
            break
        part = lower
    part[links.is_gpu] = -1
    return part


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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _SharedColumns:
    """Which targets each part reaches, and in which column of it; as of ``Reach``."""

    reached: Ints
    columns: Ints


def _shared_columns(part: Ints, last: _LastSteps, targets: int) -> _SharedColumns:
    """Return the columns of targets: one for all behind the same switches at the same costs."""
    order = np.lexsort((last.costs, last.froms, part[last.froms] * targets + last.ats))
    keys = part[last.froms[order]] * targets + last.ats[order]
    steps = last.froms[order] * FAR + last.costs[order]
    reached, first = np.unique(keys, return_index=True)
    numbers: dict[int, dict[bytes, int]] = {}
    columns = np.empty(len(reached), np.int64)
    ends = np.append(first, len(keys))[1:]
    for row, (key, start, end) in enumerate(
        zip(reached.tolist(), first.tolist(), ends.tolist(), strict=True)
    ):
        of_part = numbers.setdefault(key // targets, {})
        columns[row] = of_part.setdefault(steps[start:end].tobytes(), len(of_part))
    return _SharedColumns(reached=np.append(reached, _NEVER_ASKED), columns=np.append(columns, 0))


def vertices_of(links: Links, names: Sequence[str]) -> Ints:
    """Return the vertex number of each name."""
    number = {name: i for i, name in enumerate(links.vertices)}
    return np.array([number[name] for name in names], np.int64)
