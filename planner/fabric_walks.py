"""Walks over a cluster's graph: least-latency path, least cut, islands.

NetworkX walks; it never supplies a number: capacities and latencies are read from the edges,
which ``check_graph`` has seen to be there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from math import inf
from typing import Any

import numpy as np

from planner.errors import InputError, SpecError

_FLOW_LIMIT = 2**31 - 1  # scipy's maximum_flow counts in 32-bit integers


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


def min_cut_bytes_per_s(graph: Any, gpus: Sequence[str], inside: Collection[int]) -> float:
    """Return the least capacity of links, one direction, that part *inside* from the other GPUs.

    max flow = min cut (Ford & Fulkerson 1956), every GPU inside a source of any rate, every other
    GPU a sink of any rate, switches free to be on either side.

    Args:
        graph: the cluster's graph.
        gpus: vertex name of each GPU.
        inside: GPU numbers; the cut of all of them, or of none, is 0.

    Returns:
        Capacity of the cut [bytes/s], summed over the links' own rates, so without rounding; which
        cut is least is decided to 1 part in 2e9 of the total.
    """
    from scipy.sparse import coo_array  # noqa: PLC0415 - as above
    from scipy.sparse.csgraph import (  # noqa: PLC0415 - as above
        breadth_first_order,
        maximum_flow,
    )

    if wrong := sorted(g for g in inside if not 0 <= g < len(gpus)):
        raise InputError(f"GPU {wrong[0]} does not exist: expected 0 to {len(gpus) - 1}")
    if not inside or len(set(inside)) == len(gpus):
        return 0.0
    vertex = {name: i + 2 for i, name in enumerate(graph)}
    heads, tails, rates = [], [], []
    for a, b, rate in graph.edges(data="capacity_bytes_per_s"):
        heads += [vertex[a], vertex[b]]
        tails += [vertex[b], vertex[a]]
        rates += [rate, rate]
    link_rates = np.array(rates)
    for g, name in enumerate(gpus):
        heads.append(0 if g in inside else vertex[name])
        tails.append(vertex[name] if g in inside else 1)
    degree = np.bincount(np.array(heads[: len(rates)]), link_rates, len(vertex) + 2)
    # Twice what a GPU's own links carry: the ends themselves never are the cut.
    ends = 2 * np.array([degree[vertex[name]] for name in gpus])
    scale = (_FLOW_LIMIT // 2) / ends.sum()
    capacity = np.floor(np.concatenate([link_rates, ends]) * scale).astype(np.int32)
    size = len(vertex) + 2
    network = coo_array((capacity, (heads, tails)), shape=(size, size)).tocsr()
    network.sum_duplicates()
    flow = maximum_flow(network, 0, 1).flow
    residual = network - flow
    residual.data = np.maximum(residual.data, 0)
    residual.eliminate_zeros()
    near = np.zeros(size, bool)
    near[breadth_first_order(residual, 0, return_predecessors=False)] = True
    crossing = near[np.array(heads[: len(rates)])] & ~near[np.array(tails[: len(rates)])]
    return float(link_rates[crossing].sum())
