"""Walks over a cluster's graph: least-latency path, islands.

NetworkX walks; it never supplies a number: capacities and latencies are read from the edges,
which ``check_graph`` has seen to be there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from planner.errors import InputError, SpecError


def check_graph(graph: Any, gpus: Sequence[str]) -> None:
    """Refuse a graph with an edge without a rate or start-up, or without one of the GPUs."""
    faults = [f"GPU {name!r} is no vertex of the graph" for name in gpus if name not in graph]
    if not faults and all(
        0 < link.get("capacity_bytes_per_s", 0) < inf and 0 <= link.get("latency_s", -1) < inf
        for _, near in graph.adjacency()
        for link in near.values()
    ):
        return
    for a, b, link in graph.edges(data=True):
        rate, latency_s = link.get("capacity_bytes_per_s"), link.get("latency_s")
        if rate is None or not 0 < rate < inf:
            faults.append(f"link {a} - {b}: capacity_bytes_per_s={rate!r}: expected above 0")
        if latency_s is None or not 0 <= latency_s < inf:
            faults.append(f"link {a} - {b}: latency_s={latency_s!r}: expected 0 or more")
    if faults:
        raise SpecError(*faults)


def least_latency_walk(graph: Any, a: str, b: str) -> tuple[str, ...]:
    """Return the vertices from *a* to *b* along the path with the least sum of ``latency_s``.

    Where several paths tie, the one found first by Dijkstra in the graph's fixed order.

    Raises:
        InputError: no path.
    """
    import networkx as nx  # noqa: PLC0415 - 100 ms that `planner --help` need not pay

    try:
        return tuple(nx.dijkstra_path(graph, a, b, weight="latency_s"))
    except nx.NetworkXNoPath:
        raise InputError(f"no path from {a} to {b}: expected a connected fabric") from None


def islands(graph: Any, gpus: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    """Return the sets of *gpus* that can reach each other, each in the order given.

    One island means that every GPU reaches every other; the largest island comes first.
    """
    import networkx as nx  # noqa: PLC0415 - 100 ms that `planner --help` need not pay

    order = {name: i for i, name in enumerate(gpus)}
    found = [
        tuple(sorted((v for v in part if v in order), key=order.__getitem__))
        for part in nx.connected_components(graph)
    ]
    return tuple(sorted((f for f in found if f), key=lambda f: (-len(f), order[f[0]])))
