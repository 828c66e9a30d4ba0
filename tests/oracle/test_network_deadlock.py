"""Deadlock on random wirings against every shortest path written out."""

from __future__ import annotations

import random
from itertools import pairwise, permutations
from typing import Any

import networkx as nx
import pytest

from planner.network.deadlock_fabric import check_fabric

LINK = {"capacity_bytes_per_s": 1.0, "latency_s": 0.0}


def random_wiring(draw: random.Random, vertices: int, more: int) -> Any:
    """Return a random tree with *more* links."""
    graph = nx.Graph()
    graph.add_nodes_from(range(vertices))
    graph.add_edges_from((vertex, draw.randrange(vertex)) for vertex in range(1, vertices))
    graph.add_edges_from(draw.sample(range(vertices), 2) for _ in range(more))
    return graph


def waits_of(graph: Any, ends: list[Any]) -> set[tuple[Any, Any]]:
    """Return (held link, awaited link) of all shortest paths between *ends*."""
    return {
        turn
        for a, b in permutations(ends, 2)
        for path in nx.all_shortest_paths(graph, a, b)
        for turn in pairwise(pairwise(path))
    }


@pytest.mark.parametrize("seed", range(40))
def test_switches_lock_up_where_some_shortest_paths_wait_in_a_circle(seed: int) -> None:
    draw = random.Random(seed)
    wiring = random_wiring(draw, draw.randint(3, 9), draw.randint(0, 5))
    leaves = draw.sample(range(len(wiring)), draw.randint(2, len(wiring)))
    graph = nx.Graph()
    for vertex in wiring:
        graph.add_node(f"s{vertex}", kind="leaf")
    graph.add_edges_from((f"s{a}", f"s{b}", {"tier": "cluster", **LINK}) for a, b in wiring.edges)
    for leaf in leaves:
        graph.add_node(f"g{leaf}", kind="gpu")
        graph.add_node(f"n{leaf}", kind="nic")
        graph.add_edge(f"g{leaf}", f"n{leaf}", tier="cluster", **LINK)
        graph.add_edge(f"n{leaf}", f"s{leaf}", tier="cluster", **LINK)
    gpus = [f"g{leaf}" for leaf in leaves]
    waits = waits_of(graph, gpus)

    seen = check_fabric(graph, gpus)

    assert seen.free == nx.is_directed_acyclic_graph(nx.DiGraph(waits))
    assert seen.dependencies == len(waits)


@pytest.mark.parametrize("seed", range(40))
def test_linked_gpus_lock_up_where_some_shortest_paths_wait_in_a_circle(seed: int) -> None:
    draw = random.Random(seed)
    wiring = random_wiring(draw, draw.randint(3, 9), draw.randint(0, 5))
    graph = nx.Graph()
    for vertex in wiring:
        graph.add_node(f"g{vertex}", kind="gpu")
    graph.add_edges_from((f"g{a}", f"g{b}", {"tier": "supernode", **LINK}) for a, b in wiring.edges)
    waits = waits_of(graph, list(graph))

    seen = check_fabric(graph, list(graph))

    assert seen.free == nx.is_directed_acyclic_graph(nx.DiGraph(waits))
    assert seen.dependencies == len(waits)
    broken = waits - {
        (tuple(first.split(" -> ")), tuple(second.split(" -> "))) for first, second in seen.breaks
    }
    assert nx.is_directed_acyclic_graph(nx.DiGraph(broken))
