"""The channel dependency graph of a whole fabric on its least-cost routes.

Every GPU may send to every other on any least-cost path. GPUs that hang on the same switches have
the same routes between switches, so one of them stands for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.network.deadlock import DeadlockCheck, check_dependencies
from planner.network.findings import Finding
from planner.network.reach import FAR, RELAY_COST, Links, costs_to, links_of_graph, vertices_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MOST_ENDS = 2048  # different attachments of GPUs that routes are followed to
_MOST_CYCLES = 3  # told
_MOST_BREAKS = 4  # turns that are named; of more, only how many


def findings(graph: Any, gpus: Sequence[str]) -> list[Finding]:
    """Return what the least-cost routes between all *gpus* could lock up.

    A cycle is a fault where the graph says that there is one virtual channel
    (``graph.graph["virtual_channels"] == 1``), a warning where it says nothing.
    """
    ends = _representatives(graph, gpus)
    if len(ends) > _MOST_ENDS:
        return [
            Finding(
                severity="note",
                check="deadlock",
                where=(),
                message=f"not checked: {len(ends)} different GPU attachments, at most "
                f"{_MOST_ENDS} are followed",
            )
        ]
    channels = graph.graph.get("virtual_channels")
    if channels is not None and channels > 1:
        return []
    seen = check_fabric(graph, gpus)
    return [
        Finding(
            severity="warning" if channels is None else "fault",
            check="deadlock",
            where=cycle.links,
            message=f"{len(cycle.links)} links wait for each other in a circle, closed by "
            f"{', '.join(sorted({name for names in cycle.closing_routes for name in names})[:4])}; "
            f"without a second virtual channel: {cycle.advice}" + (_all_breaks(seen) * (not place)),
        )
        for place, cycle in enumerate(seen.cycles[:_MOST_CYCLES])
    ]


def _all_breaks(seen: DeadlockCheck) -> str:
    """Return how many turns must be forbidden for no circle to be left, and which where few."""
    named = ", ".join(f"{first} to {second}" for first, second in seen.breaks)
    which = f": {named}" if len(seen.breaks) <= _MOST_BREAKS else ""
    return (
        f"; giving up {len(seen.breaks)} of the {seen.dependencies} turns in use leaves no circle "
        f"at all{which}"
    )


def check_fabric(graph: Any, gpus: Sequence[str]) -> DeadlockCheck:
    """Return the deadlock check of the least-cost routes between all *gpus*.

    >>> import networkx as nx
    >>> ring = nx.Graph()
    >>> for i in range(4):
    ...     ring.add_node(f"g{i}", kind="gpu")
    ...     ring.add_edge(f"g{i}", f"g{(i + 1) % 4}", capacity_bytes_per_s=1.0, tier="supernode")
    >>> len(check_fabric(ring, ["g0", "g1", "g2", "g3"]).cycles)
    2
    """
    ends = _representatives(graph, gpus)
    kept = {name for name, vertex in graph.nodes(data=True) if vertex.get("kind") not in _ENDPOINTS}
    kept.update(ends)
    kept.update(nic for end in ends for nic in graph[end] if _kind(graph, nic) == "nic")
    links = links_of_graph(graph.subgraph([name for name in graph.nodes if name in kept]))
    targets = vertices_of(links, ends)
    direct = bool((links.is_gpu[links.tails] & links.is_gpu[links.heads]).any())
    used = _used(links, targets, RELAY_COST if direct else None)
    holding = np.flatnonzero(~links.is_gpu | direct)
    pairs = _dependencies(links, used, holding)
    users = {
        (int(a), int(b)): _RoutesThrough(links, used, (int(a), int(b)), targets)
        for a, b in _in_circles(pairs, len(links.tails))
    }
    found = check_dependencies(users, channels=int(used.any(axis=1).sum()), name=links.name)
    return replace(found, dependencies=len(pairs))


_ENDPOINTS = ("gpu", "nic")


def _kind(graph: Any, name: str) -> Any:
    return graph.nodes[name].get("kind")


def _representatives(graph: Any, gpus: Sequence[str]) -> list[str]:
    """Return one GPU for each set of switches that GPUs hang on, all where GPUs pass traffic on.

    Of scale-up switches that lead to GPUs only, one stands for all: a route over one of them ends
    behind it, so nothing waits there for anything else.
    """
    seen: dict[Any, str] = {}
    star = {
        name
        for name, kind in graph.nodes(data="kind")
        if kind not in _ENDPOINTS and all(_kind(graph, near) == "gpu" for near in graph[name])
    }
    for gpu in gpus:
        near = list(graph[gpu])
        if any(_kind(graph, name) == "gpu" for name in near):
            return list(gpus)
        outside = {
            leaf
            for nic in near
            if _kind(graph, nic) == "nic"
            for leaf in graph[nic]
            if _kind(graph, leaf) != "gpu"
        }
        seen.setdefault(("out", frozenset(outside)), gpu)
        inside = frozenset(
            name for name in near if _kind(graph, name) != "nic" and name not in star
        )
        seen.setdefault(("in", inside), gpu)
    return list(dict.fromkeys(seen.values()))


def _used(links: Links, targets: NDArray[np.int64], relay: int | None) -> NDArray[np.bool_]:
    """Return which links carry traffic to each target; array [links, targets]."""
    costs = costs_to(links, targets, relay)
    onward = costs[links.heads].astype(np.int32) + links.cost[:, None]
    leaves = np.unique(links.tails)
    best = np.full(costs.shape, FAR, np.int32)
    best[leaves] = np.minimum.reduceat(onward, links.first[leaves], axis=0)
    tight = (onward == best[links.tails]) & (onward < FAR)
    tight[links.tails[:, None] == targets[None, :]] = False
    reached = np.zeros(costs.shape, bool)
    reached[targets] = True
    while True:
        used: NDArray[np.bool_] = tight & reached[links.tails]
        grown = reached.copy()
        np.logical_or.at(grown, links.heads, used)
        if (grown == reached).all():
            return used
        reached = grown


def _dependencies(
    links: Links, used: NDArray[np.bool_], holding: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the pairs of links that a route takes one after another; array [pairs, 2].

    Args:
        links: of the graph.
        used: which carry traffic to each target; array [links, targets].
        holding: vertices that hold the link before while they wait for the next; array.
    """
    order = np.argsort(links.heads, kind="stable")
    starts = np.searchsorted(links.heads[order], np.arange(len(links.vertices) + 1))
    pairs = [np.zeros((0, 2), np.int64)]
    for vertex in holding:
        into = order[starts[vertex] : starts[vertex + 1]]
        out = np.arange(links.first[vertex], links.first[vertex + 1])
        if not len(into) or not len(out):
            continue
        common = used[into].astype(np.float32) @ used[out].astype(np.float32).T
        a, b = np.nonzero(common)
        pairs.append(np.stack([into[a], out[b]], axis=1))
    return np.concatenate(pairs)


def _in_circles(pairs: NDArray[np.int64], links: int) -> NDArray[np.int64]:
    """Return those of *pairs* that may be part of a circle; array [pairs, 2].

    Links that wait for none fall away, and with them who waits only for these; then those that
    none waits for.
    """
    for near, far in ((0, 1), (1, 0)):
        while len(pairs):
            waits = np.zeros(links, bool)
            waits[pairs[:, near]] = True
            kept = waits[pairs[:, far]]
            if kept.all():
                break
            pairs = pairs[kept]
    return pairs


class _RoutesThrough(Sequence[str]):
    """Names of the routes over two links in a row, found by walking back only when read."""

    def __init__(
        self,
        links: Links,
        used: NDArray[np.bool_],
        pair: tuple[int, int],
        targets: NDArray[np.int64],
    ) -> None:
        self._links, self._used, self._pair, self._targets = links, used, pair, targets

    @cached_property
    def _columns(self) -> NDArray[np.int64]:
        first, second = self._pair
        return np.flatnonzero(self._used[first] & self._used[second])

    def __len__(self) -> int:
        return len(self._columns)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return [self._name(int(column)) for column in self._columns[index]]
        return self._name(int(self._columns[index]))

    def _name(self, column: int) -> str:
        links, vertex = self._links, int(self._links.tails[self._pair[0]])
        while not links.is_gpu[vertex]:
            before = np.flatnonzero((links.heads == vertex) & self._used[:, column])
            vertex = int(links.tails[before[0]])
        return f"{links.vertices[vertex]} to {links.vertices[self._targets[column]]}"
