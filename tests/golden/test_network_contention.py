"""Published bandwidths of groups that share a cut, and steps whose TP group spans two nodes.

All-reduce on 2 nodes of 8 GPUs, mean bus bandwidth of 16 to 256 MiB [GB/s]: Galvatron (Hetu),
profiled hardware, allreduce_bandwidth_2nodes_8gpus_per_node. Its script lets NCCL use two adapters
of a node (NCCL_IB_HCA=mlx5_2,mlx5_5) and runs the first group of each kind alone. Steps: vTrain
(IISWC 2024), ground_truth_multi.csv, A100, one 100 Gbit/s NIC a GPU, full recomputation.
"""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest

from planner.collectives.cost import cheapest
from planner.collectives.links import Spread, two_tiers
from planner.network.flows import group_flows
from planner.network.routes import links_of_graph, route, vertices_of
from planner.network.sharing import fair_rates
from planner.units import GB

CONSECUTIVE = {8: 155.658, 4: 157.984, 2: 149.666}
STRIDED = {8: 20.7724, 4: 16.22, 2: 8.13007}
ALL_SIXTEEN = 44.682
# the same profile by the same authors, published at another time (AFDWang/Hetu-Galvatron 80c2d5b3)
AGAIN_STRIDED = {8: 32.111, 4: 19.2516, 2: 9.28218}
AGAIN_SIXTEEN = 45.6885
# each bandwidth from one row: inside a node; one GPU's way to its adapter (8.1 GB/s is 65 % of
# 100 Gbit/s, what one queue pair reaches); and a node's two adapters. 16 ranks on 2 nodes can only
# reach their rate as a tree, where V crosses once each way: bus bandwidth = 2 x 15/16 x adapters.
INSIDE, RAIL = CONSECUTIVE[8] * GB, STRIDED[2] * GB
ADAPTERS = ALL_SIXTEEN / (2 * 15 / 16) * GB


def two_nodes(rail: float = RAIL, adapters: float = ADAPTERS) -> Any:
    graph = nx.Graph()
    graph.add_node("leaf", kind="leaf")
    for gpu in range(16):
        node, nic = f"node{gpu // 8}", f"node{gpu // 8}.hca{gpu % 8 // 4}"
        graph.add_node(node, kind="scale_up_switch")
        graph.add_node(gpu, kind="gpu")
        graph.add_node(nic, kind="nic")
        graph.add_edge(gpu, node, capacity_bytes_per_s=INSIDE, tier="supernode")
        graph.add_edge(gpu, nic, capacity_bytes_per_s=rail, tier="cluster")
        graph.add_edge(nic, "leaf", capacity_bytes_per_s=adapters / 2, tier="cluster")
    return graph


def bus_bytes_per_s(groups: list[list[int]], graph: Any = None) -> float:
    """Return bytes of a ring's edge over the time of the slowest group, all *groups* at once."""
    homes = np.arange(16) // 8
    links = links_of_graph(graph or two_nodes())
    edge_bytes = 2 * (len(groups[0]) - 1) / len(groups[0])
    flows = group_flows("all_reduce", 1.0, groups, homes)
    vertex = vertices_of(links, list(range(16)))  # type: ignore[arg-type]  # vertices are numbers

    rates = fair_rates(route(links, vertex[flows.sources], vertex[flows.targets]))

    return edge_bytes / float((flows.sizes_bytes / rates).max())


def consecutive(size: int) -> list[list[int]]:
    return [list(range(i, i + size)) for i in range(0, 16, size)]


def strided(size: int) -> list[list[int]]:
    groups = 16 // size
    return [list(range(i, 16, groups)) for i in range(groups)]


@pytest.mark.parametrize("size", [8, 4, 2])
def test_groups_inside_a_node_get_its_bandwidth(size: int) -> None:
    assert bus_bytes_per_s(consecutive(size)) / GB == pytest.approx(CONSECUTIVE[size], rel=0.15)


@pytest.mark.parametrize("size", [8, 4, 2])
def test_a_strided_group_is_a_ring_over_its_gpus_ways_out_and_the_adapters(size: int) -> None:
    """4: two ways out; 8: four of them want 32.5 GB/s of the 23.8 that the adapters carry."""
    assert bus_bytes_per_s(strided(size)[:1]) / GB == pytest.approx(STRIDED[size], rel=0.15)


def test_sixteen_ranks_on_two_nodes_are_a_tree_over_the_adapters() -> None:
    """The row that gave the adapters' rate, back through the cost model; a ring would halve it."""
    links = two_tiers(inside_bytes_per_s=INSIDE, nic_bytes_per_s=ADAPTERS / 8)
    once = cheapest("all_reduce", 1.0, Spread.of(16, 8), links, available=["double_tree"])

    tree = 2 * 15 / 16 / float(once.time_s)

    assert tree / GB == pytest.approx(ALL_SIXTEEN, rel=1e-6)
    assert bus_bytes_per_s(consecutive(16)) / GB == pytest.approx(ALL_SIXTEEN / (15 / 8), rel=1e-6)


def test_the_same_profile_taken_again_differs_by_what_ring_and_tree_differ() -> None:
    """Groups of 8: 20.8 GB/s once and 32.1 the other time, on both sides of no single model.

    Ring and tree of the second run's own bandwidths lie around it; NCCL's choice is not told.
    """
    rail, adapters = AGAIN_STRIDED[2] * GB, AGAIN_SIXTEEN / (2 * 15 / 16) * GB
    graph = two_nodes(rail, adapters)

    ring = bus_bytes_per_s(strided(8)[:1], graph)

    tree = 2 * 7 / 8 * adapters
    assert ring < AGAIN_STRIDED[8] * GB < tree
    assert bus_bytes_per_s(strided(4)[:1], graph) / GB == pytest.approx(AGAIN_STRIDED[4], rel=0.15)
    assert AGAIN_STRIDED[8] / STRIDED[8] > 1.5


def test_groups_that_cross_at_once_would_share_the_adapters() -> None:
    """What the profile does not run: all groups together take turns on the one cut."""
    for size in (8, 4, 2):
        together = bus_bytes_per_s(strided(size))

        cut = together * len(strided(size))  # each group's edge crosses the cut once
        assert cut == pytest.approx(ADAPTERS)


# micro-batch, measured step of TP 16, of TP 8, hidden, layers, micro-batches a replica
SPANNING = [
    (32, 10.5806, 4.9723, 3072, 30, 512 // (4 * 32)),
    (16, 10.7193, 5.0178, 3072, 30, 512 // (4 * 16)),
    (8, 10.894, 5.178, 3072, 30, 512 // (4 * 8)),
    (4, 11.9601, 5.618, 3072, 30, 512 // (4 * 4)),
    (2, 13.4722, 8.8809, 3072, 30, 512 // (4 * 2)),
    (2, 20.4148, 10.4533, 6144, 40, 1024 // (16 * 2)),
]


@pytest.mark.parametrize("row", SPANNING)
def test_a_tp_group_of_two_nodes_is_a_ring_through_all_its_nics(row: tuple[float, ...]) -> None:
    micro_batch, spanning_s, inside_s, hidden, layers, micro_batches = row
    links = two_tiers(inside_bytes_per_s=300 * GB, nic_bytes_per_s=12.5 * GB)
    payload = micro_batch * 2048 * hidden * 2
    reductions = 6 * layers * micro_batches  # 2 forward, 2 again for recomputation, 2 backward

    def comm_s(walk: str) -> float:
        spread = Spread.of(16, 8)
        once = cheapest("all_reduce", payload, spread, links, available=[walk])
        return reductions * float(once.time_s)

    # the same model with TP inside a node takes inside_s; what the span adds is the network
    assert inside_s + comm_s("all_rail_ring") == pytest.approx(spanning_s, rel=0.15)
    assert comm_s("contiguous_ring") > 2 * spanning_s
