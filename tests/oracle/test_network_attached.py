"""Flows between the same switches routed as one, against every flow routed for itself."""

from __future__ import annotations

import random
from dataclasses import replace

import networkx as nx
import numpy as np
import pytest

from planner.fabric import Fabric
from planner.layout import Layout
from planner.network import routes
from planner.network.flows import PASSES, Flows, group_flows, in_passing_order
from planner.network.loads import unit_load
from planner.network.reach import reach
from planner.network.routes import route
from planner.network.sharing import link_load
from planner.network.wiring import Wiring, wiring_of
from planner.traffic import step_families
from topologies.fabric_catalogue import generic_cluster, load_cluster
from topologies.model_reader import read_model


def _each_for_itself(wiring: Wiring, flows: Flows) -> tuple[np.ndarray, np.ndarray]:
    routed = route(
        wiring.links,
        wiring.vertices[flows.sources],
        wiring.vertices[flows.targets],
        known=wiring.known,
    )
    return link_load(routed, flows.sizes_bytes), link_load(routed, np.ones(len(flows)))


CLUSTERS = [
    ("generic", lambda: generic_cluster(8, 60), True),
    ("hgx-h100", lambda: load_cluster("hgx-h100", gpus=256), True),
    ("llama3-roce", lambda: load_cluster("llama3-roce", gpus=512), True),
    ("gb200-nvl72", lambda: load_cluster("gb200-nvl72", gpus=200), True),
    ("dragonfly-plus", lambda: load_cluster("dragonfly-plus", gpus=512), True),
    ("cloudmatrix384", lambda: load_cluster("cloudmatrix384", gpus=768), True),
    ("rail-only", lambda: load_cluster("rail-only", gpus=128), True),
    ("hpn", lambda: load_cluster("hpn", gpus=256), True),
    ("mi300x", lambda: load_cluster("mi300x", gpus=64), True),
    ("ub-mesh-64", lambda: load_cluster("ub-mesh-64", gpus=128), False),
]


@pytest.mark.parametrize(
    ("cluster", "attached"),
    [pytest.param(make, attached, id=name) for name, make, attached in CLUSTERS],
)
def test_any_flows_put_the_same_on_every_link(cluster: object, attached: bool) -> None:
    fabric: Fabric = cluster()  # type: ignore[operator]
    wiring = wiring_of(fabric)
    draw = np.random.default_rng(7)
    gpus = len(fabric.gpus)
    flows = Flows(
        sources=draw.integers(0, gpus, 600),
        targets=draw.integers(0, gpus, 600),
        sizes_bytes=draw.uniform(0.1, 3.0, 600),
    )

    load, counts = unit_load(wiring, flows)

    wanted_load, wanted_counts = _each_for_itself(wiring, flows)
    assert (wiring.attached is not None) == attached
    np.testing.assert_allclose(load, wanted_load, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(counts, wanted_counts, rtol=1e-9, atol=1e-9)


def several_links(draw: random.Random) -> nx.Graph:
    """Return supernodes of GPUs that have one to three NICs of one or two links, or share them."""
    graph = nx.Graph()
    pairs_share = draw.random() < 0.3
    leaves, per = draw.randint(1, 4), draw.randint(1, 3)

    def link(a: str, b: str, tier: str) -> None:
        graph.add_edge(a, b, capacity_bytes_per_s=draw.choice([2.0, 3.0]), latency_s=0, tier=tier)

    for leaf in range(leaves):
        graph.add_node(f"leaf{leaf}", kind="leaf")
        for spine in range(2):
            graph.add_node(f"spine{spine}", kind="spine")
            link(f"leaf{leaf}", f"spine{spine}", "cluster")
    for rank in range(draw.randint(4, 14)):
        gpu, switch = f"gpu{rank}", f"switch{rank // per}"
        graph.add_node(gpu, kind="gpu")
        graph.add_node(switch, kind="scale_up_switch")
        link(gpu, switch, "supernode")
        if pairs_share and rank % 2:
            for nic in [n for n in graph[f"gpu{rank - 1}"] if n.startswith("nic")]:
                link(gpu, nic, "cluster")
            continue
        for n in range(draw.randint(1, 3)):
            nic = f"nic{rank}.{n}"
            graph.add_node(nic, kind="nic")
            link(gpu, nic, "cluster")
            for leaf in draw.sample(range(leaves), min(leaves, draw.randint(1, 2))):
                link(nic, f"leaf{leaf}", "cluster")
    return graph


@pytest.mark.parametrize("seed", range(60))
def test_gpus_with_any_nics_put_the_same_on_every_link(seed: int) -> None:
    draw = random.Random(seed)
    graph = several_links(draw)
    gpus = tuple(v for v, kind in graph.nodes(data="kind") if kind == "gpu")
    usual = generic_cluster(len(gpus), len(gpus))
    wiring = wiring_of(replace(usual, graph=graph, gpus=gpus, hosts=(), host_slots=()))
    pairs = [(a, b) for a in range(len(gpus)) for b in range(len(gpus)) if draw.random() < 0.6]
    flows = Flows(
        sources=np.array([a for a, _ in pairs]),
        targets=np.array([b for _, b in pairs]),
        sizes_bytes=np.array([draw.uniform(0.1, 3.0) for _ in pairs]),
    )

    load, counts = unit_load(wiring, flows)

    wanted_load, wanted_counts = _each_for_itself(wiring, flows)
    assert wiring.attached is not None
    np.testing.assert_allclose(load, wanted_load, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(counts, wanted_counts, rtol=1e-9, atol=1e-9)


def full_meshes(draw: random.Random) -> nx.Graph:
    """Return full meshes of GPUs: a few without a NIC, some NICs or leaves far from the others."""
    graph = nx.Graph()
    per, leaves = draw.randint(2, 4), draw.randint(1, 3)
    nics, spines = draw.choice([[0], [0, 1], [0, 20], [0, 0, 3]]), draw.choice([[0], [9], [0, 20]])

    def line(*ends: str, length: int) -> None:
        between = [f"{ends[0]}-{n}" for n in range(length)]
        graph.add_nodes_from(between, kind="leaf")
        for near, far in zip([ends[0], *between], [*between, ends[1]], strict=True):
            link(near, far, "cluster")

    def link(a: str, b: str, tier: str) -> None:
        graph.add_edge(a, b, capacity_bytes_per_s=draw.choice([2.0, 3.0]), latency_s=0, tier=tier)

    for leaf in range(leaves):
        graph.add_node(f"leaf{leaf}", kind="leaf")
        graph.add_node("spine", kind="spine")
        line(f"leaf{leaf}", "spine", length=draw.choice(spines))
    for supernode in range(draw.randint(2, 4)):
        near = draw.sample(range(leaves), min(leaves, draw.choice([1, 1, 2])))
        for rank in range(per * supernode, per * (supernode + 1)):
            graph.add_node(f"gpu{rank}", kind="gpu")
            for other in range(per * supernode, rank):
                link(f"gpu{other}", f"gpu{rank}", "supernode")
            for leaf in near if draw.random() < 0.98 else []:
                graph.add_node(f"nic{rank}.{leaf}", kind="nic")
                link(f"gpu{rank}", f"nic{rank}.{leaf}", "cluster")
                line(f"nic{rank}.{leaf}", f"leaf{leaf}", length=draw.choice(nics))
    return graph


def test_full_meshes_put_the_same_on_every_link_as_where_gpus_pass_traffic_on() -> None:
    kinds = []
    for seed in range(120):
        draw = random.Random(seed)
        graph = full_meshes(draw)
        gpus = tuple(v for v, kind in graph.nodes(data="kind") if kind == "gpu")
        usual = generic_cluster(len(gpus), len(gpus))
        wiring = wiring_of(replace(usual, graph=graph, gpus=gpus, hosts=(), host_slots=()))
        pairs = [(a, b) for a in range(len(gpus)) for b in range(len(gpus)) if draw.random() < 0.6]
        sources, targets = np.array(pairs).T
        sizes_bytes = np.array([draw.uniform(0.1, 3.0) for _ in pairs])
        flows = Flows(sources=sources, targets=targets, sizes_bytes=sizes_bytes)

        load, _ = unit_load(wiring, flows)

        links, of = wiring.links, wiring.vertices
        passed_on = reach(links, of)
        plain = route(links, of[sources], of[targets], known=passed_on)
        np.testing.assert_allclose(load, link_load(plain, sizes_bytes), rtol=1e-9, atol=1e-9)
        assert passed_on.relay_cost is not None
        kinds.append(wiring.attached is not None)

    assert 20 < sum(kinds) < 100  # both where it pays to pass through a GPU and where not


def test_the_families_of_a_step_put_the_same_on_every_link() -> None:
    fabric = load_cluster("llama3-roce", gpus=512)
    wiring = wiring_of(fabric)
    layout = Layout(tp=4, cp=1, dp=32, pp=4, micro_batch=1, global_batch=64)
    for family in step_families(read_model("llama-3.1-8b"), layout):
        flows = group_flows(
            "all_gather" if family.collective in PASSES else family.collective,
            1.0,
            in_passing_order(family, family.members(layout)),
            wiring.homes,
        )

        load, counts = unit_load(wiring, flows)

        wanted_load, wanted_counts = _each_for_itself(wiring, flows)
        np.testing.assert_allclose(load, wanted_load, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(counts, wanted_counts, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("cluster", ["llama3-roce", "hpn", "mi300x", "rail-only"])
def test_links_whose_costs_are_compared_in_parts_are_the_same(
    cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wiring = wiring_of(load_cluster(cluster, gpus=64))
    draw = np.random.default_rng(3)
    flows = Flows(
        sources=draw.integers(0, 64, 200),
        targets=draw.integers(0, 64, 200),
        sizes_bytes=draw.uniform(0.1, 3.0, 200),
    )
    whole, _ = _each_for_itself(wiring, flows)

    monkeypatch.setattr(routes, "_LOOKED_AT_ONCE", 5)
    parts, _ = _each_for_itself(wiring, flows)

    np.testing.assert_array_equal(parts, whole)
