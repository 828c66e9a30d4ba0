"""From homes to seats: ranks ascending, boards kept together, spare seats last."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from planner.errors import InfeasibleError
from planner.fabric import Accelerator, Domain, Fabric, Nic, Tier
from planner.place.expand import seat_order, seats


def _fabric(boards: list[list[int]], supernodes: list[list[int]]) -> Fabric:
    import networkx as nx

    gpus = sum(len(s) for s in supernodes)
    graph = nx.star_graph(gpus)
    names = tuple(f"g{i}" for i in range(gpus))
    graph = nx.relabel_nodes(graph, {0: "switch"} | {i + 1: names[i] for i in range(gpus)})
    for edge in graph.edges:
        graph.edges[edge].update(capacity_bytes_per_s=1e9, latency_s=1e-6, tier="cluster")

    def tier(name: str, parts: list[list[int]]) -> Tier:
        return Tier(
            name=name,
            bytes_per_s=1e9,
            shared_bytes_per_s=1e9,
            latency_s=1e-6,
            domains=tuple(
                Domain(name=f"{name}-{i}", gpus=tuple(part), uplink_bytes_per_s=0.0)
                for i, part in enumerate(parts)
            ),
        )

    numbers: dict[str, Any] = {
        "peak_flops_per_s": {"bf16": 1e15}, "memory_bytes": 80e9, "memory_bytes_per_s": 3e12,
        "efficiency_share": {"bf16": 0.8}, "memory_efficiency_share": 0.8,
    }  # fmt: skip
    return Fabric(
        name="small",
        graph=graph,
        gpus=names,
        tiers=(
            tier("board", boards),
            tier("supernode", supernodes),
            tier("cluster", [list(range(gpus))]),
        ),
        accelerator=Accelerator(name="A", **numbers),
        nic=Nic(line_bytes_per_s=1e9, in_flight=1, transaction_bytes=256, turnaround_s=1e-6),
    )


def _plain() -> Fabric:
    return _fabric([[0, 1], [2, 3], [4, 5], [6, 7]], [[0, 1, 2, 3], [4, 5, 6, 7]])


def test_ranks_of_a_domain_sit_on_its_gpus_in_order() -> None:
    assert seats(np.array([1, 0, 1, 0, 0, 1, 1, 0]), _plain(), "supernode") == (
        4,
        0,
        5,
        1,
        2,
        6,
        7,
        3,
    )


def test_spare_seats_are_the_last_of_their_domain() -> None:
    assert seats(np.array([1, 0, 1]), _plain(), "supernode") == (4, 0, 5)


def test_a_board_holds_ranks_that_follow_each_other_however_its_gpus_are_numbered() -> None:
    fabric = _fabric([[0, 2], [1, 3], [4, 6], [5, 7]], [[0, 1, 2, 3], [4, 5, 6, 7]])

    assert seats(np.array([0, 0, 0, 0, 1, 1, 1, 1]), fabric, "supernode") == (
        0,
        2,
        1,
        3,
        4,
        6,
        5,
        7,
    )


def test_a_board_with_a_dead_gpu_is_filled_last_and_shifts_no_other() -> None:
    fabric = _fabric([[0], [1, 2], [3, 4]], [[0, 1, 2, 3, 4]])

    assert seats(np.zeros(4, np.int64), fabric, "supernode") == (1, 2, 3, 4)
    assert seat_order(fabric, "supernode").tolist() == [1, 2, 3, 4, 0]


def test_every_gpu_is_in_the_seat_order_once_at_every_tier() -> None:
    for tier in ("board", "supernode", "cluster"):
        assert sorted(seat_order(_plain(), tier).tolist()) == list(range(8))


def test_more_ranks_than_gpus_in_a_domain_are_refused() -> None:
    with pytest.raises(InfeasibleError, match="supernode-1 holds 5 ranks, 1 more than its 4"):
        seats(np.ones(5, np.int64), _plain(), "supernode")


def test_each_rank_sits_in_the_domain_that_is_its_home() -> None:
    fabric = _plain()
    index = fabric.domain_index("board")
    home = np.random.default_rng(3).permutation(np.repeat(np.arange(4), 2))[:7]

    found = seats(home, fabric, "board")

    assert len(set(found)) == 7
    assert index[list(found)].tolist() == home.tolist()
