"""Published bandwidths of groups that share a cut, and steps whose TP group spans two nodes.

All-reduce on 2 nodes of 8 GPUs, bus bandwidth [GB/s]: Galvatron (Hetu), profiled hardware,
allreduce_bandwidth_2nodes_8gpus_per_node. Steps: vTrain (IISWC 2024), ground_truth_multi.csv,
A100, one 100 Gbit/s NIC a GPU, full recomputation.
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
# the two bandwidths: inside a node, and of one GPU's way out, each from one row of the table
INSIDE, RAIL = CONSECUTIVE[8] * GB, STRIDED[2] * GB


def two_nodes() -> Any:
    graph = nx.Graph()
    graph.add_node("leaf", kind="leaf")
    for gpu in range(16):
        node, nic = f"node{gpu // 8}", f"nic{gpu}"
        graph.add_node(node, kind="scale_up_switch")
        graph.add_node(gpu, kind="gpu")
        graph.add_node(nic, kind="nic")
        graph.add_edge(gpu, node, capacity_bytes_per_s=INSIDE, tier="supernode")
        graph.add_edge(gpu, nic, capacity_bytes_per_s=RAIL, tier="cluster")
        graph.add_edge(nic, "leaf", capacity_bytes_per_s=RAIL, tier="cluster")
    return graph


def bus_bytes_per_s(groups: list[list[int]]) -> float:
    """Return bytes of a ring's edge over the time of the slowest group, all groups at once."""
    homes = np.arange(16) // 8
    links = links_of_graph(two_nodes())
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


@pytest.mark.parametrize("size", [4, 2])
def test_strided_groups_share_the_cut(size: int) -> None:
    assert bus_bytes_per_s(strided(size)) / GB == pytest.approx(STRIDED[size], rel=0.15)


def test_groups_with_four_or_more_members_a_node_reach_two_thirds_of_their_rails() -> None:
    """No two bandwidths give both kinds of rows: the miss is kept here, not hidden.

    The crossing rows add up to 65 GB/s for groups of 2 and 4 and to 42 and 45 GB/s for groups of
    8 and 16. (The profiler runs one group at a time, so they never shared a cut: 8.13 GB/s is one
    GPU's way out, and wide groups use their ways out less well.)
    """
    for measured, predicted in (
        (STRIDED[8], bus_bytes_per_s(strided(8)) / GB),
        (ALL_SIXTEEN, bus_bytes_per_s(consecutive(16)) / GB),
    ):
        assert 0.6 < measured / predicted < 0.7


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
