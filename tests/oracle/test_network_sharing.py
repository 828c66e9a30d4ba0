"""Routes against all paths enumerated, fair rates against one small drop at a time."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import Any

import networkx as nx
import numpy as np
import pytest

from planner.network.deadlock import Route, check_routes
from planner.network.deadlock_fabric import check_fabric
from planner.network.flows import group_flows
from planner.network.reach import links_of_graph, vertices_of
from planner.network.routes import Paths, route
from planner.network.sharing import fair_rates, link_load


def leaf_spine(draw: random.Random) -> Any:
    """Return a small cluster: supernodes with a switch each, NICs, leaves, spines."""
    graph = nx.Graph()
    leaves, spines = draw.randint(1, 3), draw.randint(1, 3)
    for s in range(spines):
        for leaf in range(leaves):
            if s == 0 or draw.random() < 0.8:
                add(graph, f"leaf{leaf}", "leaf", f"spine{s}", "spine", draw.randint(2, 9), "pod")
    for node in range(draw.randint(2, 3)):
        for i in range(draw.randint(1, 3)):
            gpu, nic = f"n{node}g{i}", f"n{node}nic{i}"
            add(graph, gpu, "gpu", f"n{node}sw", "scale_up_switch", 20, "supernode")
            add(graph, gpu, "gpu", nic, "nic", 10, "pod")
            for leaf in draw.sample(range(leaves), draw.randint(1, min(2, leaves))):
                add(graph, nic, "nic", f"leaf{leaf}", "leaf", draw.randint(2, 9), "pod")
    return graph


def add(graph: Any, a: str, kind_a: str, b: str, kind_b: str, rate: float, tier: str) -> None:
    graph.add_node(a, kind=kind_a)
    graph.add_node(b, kind=kind_b)
    graph.add_edge(a, b, capacity_bytes_per_s=float(rate), latency_s=0.0, tier=tier)


def torus(sides: tuple[int, ...]) -> Any:
    graph = nx.Graph()
    for at in np.ndindex(*sides):
        for axis, side in enumerate(sides):
            near = list(at)
            near[axis] = (at[axis] + 1) % side
            if side > 1:
                add(graph, f"g{at}", "gpu", f"g{tuple(near)}", "gpu", 1.0, "supernode")
    return graph


def every_path(graph: Any, source: str, target: str) -> list[tuple[str, ...]]:
    """Return all least-cost paths by trying every simple path."""
    kinds = dict(graph.nodes(data="kind"))
    meshed = any(kinds[a] == kinds[b] == "gpu" for a, b in graph.edges)
    costed = []
    for path in nx.all_simple_paths(graph, source, target, cutoff=8):
        middle = path[1:-1]
        relays = sum(kinds[v] == "gpu" for v in middle)
        if relays and not meshed:
            continue
        if any(
            kinds[v] == "nic" and "gpu" not in {kinds[path[i]], kinds[path[i + 2]]}
            for i, v in enumerate(middle)
        ):
            continue  # a NIC is no switch
        cost = 4 * relays + sum(
            1 if graph.edges[a, b]["tier"] == "supernode" else 2 for a, b in pairwise(path)
        )
        costed.append((cost, tuple(path)))
    least = min(cost for cost, _ in costed)
    return [path for cost, path in costed if cost == least]


def shares_of(paths: list[tuple[str, ...]]) -> dict[tuple[str, str], float]:
    """Return the part of a flow on each link, split evenly at every vertex."""
    shares: dict[tuple[str, str], float] = {}
    at: dict[str, float] = {paths[0][0]: 1.0}
    for _ in range(max(map(len, paths))):
        after: dict[str, float] = {}
        for vertex, amount in at.items():
            onward = sorted({p[i + 1] for p in paths for i, v in enumerate(p[:-1]) if v == vertex})
            for near in onward:
                shares[vertex, near] = shares.get((vertex, near), 0.0) + amount / len(onward)
                after[near] = after.get(near, 0.0) + amount / len(onward)
        at = after
    return shares


def filled_rates(
    shares: list[dict[tuple[str, str], float]], capacity: dict[tuple[str, str], float]
) -> list[float]:
    """Return fair rates by raising all flows together and stopping those on a link that is full."""
    rates = [0.0] * len(shares)
    growing = set(range(len(shares)))
    left = dict(capacity)
    while growing:
        use: dict[tuple[str, str], float] = {}
        for f in growing:
            for link, share in shares[f].items():
                use[link] = use.get(link, 0.0) + share
        step = min(left[link] / share for link, share in use.items())
        for f in growing:
            rates[f] += step
        for link, share in use.items():
            left[link] -= step * share
        full = {link for link in use if left[link] <= 1e-9 * capacity[link]}
        growing = {f for f in growing if not full & set(shares[f])}
    return rates


def test_routes_and_fair_rates_are_those_of_all_paths_enumerated() -> None:
    draw = random.Random(10)
    for _ in range(40):
        graph = leaf_spine(draw) if draw.random() < 0.8 else torus((3, 2))
        gpus = [v for v, kind in graph.nodes(data="kind") if kind == "gpu"]
        pairs = [tuple(draw.sample(gpus, 2)) for _ in range(draw.randint(1, 8))]
        links = links_of_graph(graph)
        sources = vertices_of(links, [a for a, _ in pairs])
        targets = vertices_of(links, [b for _, b in pairs])

        routes = route(links, sources, targets)
        rates = fair_rates(routes)
        sizes = np.array([float(draw.randint(1, 9)) for _ in pairs])
        load = link_load(routes, sizes)

        shares = [shares_of(every_path(graph, a, b)) for a, b in pairs]
        both = {
            (a, b): link["capacity_bytes_per_s"]
            for x, y, link in graph.edges(data=True)
            for a, b in ((x, y), (y, x))
        }
        assert rates.tolist() == pytest.approx(filled_rates(shares, both))
        expected: dict[str, float] = {}
        for size, share in zip(sizes, shares, strict=True):
            for (a, b), part in share.items():
                expected[f"{a} -> {b}"] = expected.get(f"{a} -> {b}", 0.0) + size * part
        told = {links.name(i): amount for i, amount in enumerate(load) if amount}
        assert told == pytest.approx(expected)


def test_a_flow_with_a_limit_of_its_own_leaves_the_rest_to_the_others() -> None:
    graph = nx.Graph()
    for gpu in "abc":
        add(graph, gpu, "gpu", "sw", "scale_up_switch", 10, "supernode")
    links = links_of_graph(graph)
    sources, targets = vertices_of(links, ["a", "b"]), vertices_of(links, ["c", "c"])
    routes = route(links, sources, targets)

    assert fair_rates(routes).tolist() == [5, 5]
    assert fair_rates(routes, np.array([2.0, np.inf])).tolist() == [2, 8]
    assert fair_rates(routes, 3.0).tolist() == [3, 3]


def test_a_neighbour_gpu_relays_only_where_no_switch_leads() -> None:
    def rails(joined: bool) -> Any:
        graph = nx.Graph()
        for node in "nm":
            for rail in (0, 1):
                gpu, nic = f"{node}{rail}", f"nic{node}{rail}"
                add(graph, gpu, "gpu", f"sw{node}", "scale_up_switch", 20, "supernode")
                add(graph, gpu, "gpu", nic, "nic", 10, "cluster")
                add(graph, nic, "nic", f"leaf{rail}", "leaf", 10, "cluster")
        if joined:  # a long way around: over two spines and a core
            for a, b in (("leaf0", "s0"), ("s0", "core"), ("core", "s1"), ("s1", "leaf1")):
                add(graph, a, a[:4].rstrip("01"), b, "spine", 10, "cluster")
        return graph

    def middle(graph: Any) -> list[str]:
        links = links_of_graph(graph)
        routes = route(links, vertices_of(links, ["n0"]), vertices_of(links, ["m1"]))
        return [links.vertices[links.heads[link]] for link in routes.path(0)[:-1]]

    assert not {"n1", "m0"} & set(middle(rails(joined=True)))
    assert "core" in middle(rails(joined=True))
    assert {"n1", "m0"} & set(middle(rails(joined=False)))


def test_a_hashed_flow_takes_one_of_the_least_cost_paths_and_always_the_same() -> None:
    draw = random.Random(11)
    for _ in range(20):
        graph = leaf_spine(draw)
        gpus = [v for v, kind in graph.nodes(data="kind") if kind == "gpu"]
        pairs = [tuple(draw.sample(gpus, 2)) for _ in range(6)]
        links = links_of_graph(graph)
        ends = [vertices_of(links, [p[i] for p in pairs]) for i in (0, 1)]

        routes = route(links, *ends, paths=Paths.HASHED)
        again = route(links, *ends, paths=Paths.HASHED)

        for flow, (a, b) in enumerate(pairs):
            taken = routes.path(flow)
            assert taken == again.path(flow)
            names = (a, *(links.vertices[links.heads[link]] for link in taken))
            assert names in every_path(graph, a, b)


def test_flows_of_a_group_move_the_bytes_of_its_closed_form() -> None:
    draw = random.Random(12)
    for _ in range(80):
        n = draw.randint(2, 9)
        homes = np.array([draw.randrange(3) for _ in range(n)])
        k = len(set(homes.tolist()))
        group = [list(range(n))]

        flows = group_flows("all_reduce", 12.0, group, homes)
        crossing = homes[flows.sources] != homes[flows.targets]

        # a flat ring through k domains: 2 V (n - 1) / n over each of its k crossings
        per_edge = 2 * 12.0 * (n - 1) / n
        assert flows.sizes_bytes.sum() == pytest.approx(n * per_edge)
        assert flows.sizes_bytes[crossing].sum() == pytest.approx(k * per_edge * (k > 1))
        exchange = group_flows("all_to_all", 1.0, group, homes)
        counts = np.bincount(homes)
        far = homes[exchange.sources] != homes[exchange.targets]
        assert exchange.sizes_bytes[far].sum() == (counts * (n - counts)).sum()


@pytest.mark.parametrize("seed", range(12))
def test_a_fabric_is_free_of_deadlock_exactly_if_all_its_least_cost_paths_are(seed: int) -> None:
    draw = random.Random(seed)
    graph = torus(draw.choice([(3,), (4,), (5,), (2, 2), (3, 3)])) if seed % 2 else leaf_spine(draw)
    gpus = [v for v, kind in graph.nodes(data="kind") if kind == "gpu"]
    routes = [
        Route(name=f"{a} to {b}", vertices=path)
        for a in gpus
        for b in gpus
        if a != b
        for path in every_path(graph, a, b)
    ]

    assert check_fabric(graph, gpus).free == check_routes(routes).free
