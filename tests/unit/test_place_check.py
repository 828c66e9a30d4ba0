"""The independent judge: prices of CONTRACT's table by hand, and refusals."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from planner.errors import PlannerError
from planner.place.check import CheckedEntry, CheckError, checked_cut_bytes, judged, walked_domains

TIERS = ("board", "supernode", "cluster")


def _two_supernodes_of_two_boards() -> nx.Graph:
    """8 GPUs; boards of 2 wired directly, supernodes of 2 boards by a switch, all by a leaf."""
    graph = nx.Graph()
    for gpu in range(8):
        graph.add_edge(f"g{gpu}", f"switch{gpu // 4}", tier="supernode")
        graph.add_edge(f"g{gpu}", f"nic{gpu}", tier="cluster")
        graph.add_edge(f"nic{gpu}", "leaf", tier="cluster")
    for board in range(4):
        graph.add_edge(f"g{2 * board}", f"g{2 * board + 1}", tier="board")
    return graph


GPUS = tuple(f"g{i}" for i in range(8))


def _entry(collective: str, *members: list[int]) -> CheckedEntry:
    return CheckedEntry(
        collective=collective, payload_bytes=10.0, times_per_step=3.0, members=members
    )


@pytest.mark.parametrize(
    ("tier", "domains"),
    [("board", [0, 0, 1, 1, 2, 2, 3, 3]), ("supernode", [0] * 4 + [1] * 4), ("cluster", [0] * 8)],
)
def test_domains_are_what_a_walk_inside_the_tier_reaches(tier: str, domains: list[int]) -> None:
    found = walked_domains(_two_supernodes_of_two_boards(), GPUS, tier=tier, tiers=TIERS)

    assert found.tolist() == domains


def test_domains_follow_the_wires_and_not_the_order_of_the_gpus() -> None:
    shuffled = ("g7", "g0", "g5", "g2")

    found = walked_domains(_two_supernodes_of_two_boards(), shuffled, tier="supernode", tiers=TIERS)

    assert found.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("collective", "units"),
    [
        # members in domains 0 0 1 0 2: k = 3, n_i = 3, 1, 1
        ("all_reduce", 2 * (3 - 1)),
        ("reduce_scatter", 3 - 1),
        ("all_gather", 3 - 1),
        ("all_to_all", 3 * 2 + 1 * 4 + 1 * 4),
        ("ring", 3),
        ("chain", 3),  # 0|1, 1|0, 0|2
    ],
)
def test_each_collective_costs_what_the_table_says(collective: str, units: int) -> None:
    domain_of_gpu = np.array([0, 0, 1, 0, 2])

    cut = judged(domain_of_gpu, range(5), [_entry(collective, [0, 1, 2, 3, 4])])

    assert cut.total_bytes == 10.0 * 3.0 * units
    assert cut.by_entry == (cut.total_bytes,)


@pytest.mark.parametrize(
    "collective", ["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "ring", "chain"]
)
def test_a_group_inside_one_domain_costs_nothing(collective: str) -> None:
    assert judged(np.array([5, 5, 5]), [2, 0, 1], [_entry(collective, [0, 1, 2])]).total_bytes == 0


def test_a_chain_is_walked_in_the_order_of_its_members() -> None:
    domain_of_gpu = np.array([0, 1, 0, 1])

    along = judged(domain_of_gpu, range(4), [_entry("chain", [0, 2, 1, 3])])
    across = judged(domain_of_gpu, range(4), [_entry("chain", [0, 1, 2, 3])])

    assert (along.total_bytes, across.total_bytes) == (30.0, 90.0)


def test_groups_of_different_sizes_add_up() -> None:
    cut = judged(np.array([0, 0, 1, 1, 1]), range(5), [_entry("ring", [0, 1], [2], [1, 2, 3])])

    assert cut.total_bytes == 30.0 * 2


def test_the_cut_of_a_map_on_the_graph_is_counted_at_the_tier_asked_for() -> None:
    graph, traffic = _two_supernodes_of_two_boards(), [_entry("reduce_scatter", [0, 1, 2, 3])]
    seats = [0, 2, 4, 6]

    cuts = [
        checked_cut_bytes(graph, GPUS, seats, traffic, tier=tier, tiers=TIERS).total_bytes
        for tier in TIERS
    ]

    assert cuts == [30.0 * 3, 30.0 * 1, 0.0]


@pytest.mark.parametrize(
    ("seats", "fault"),
    [
        ([0, 1, 2, 2], "ranks 2 and 3 both sit on GPU 2"),
        ([0, 1, 2, 8], "rank 3 sits on GPU 8: expected 0 to 7"),
        ([0, 1, 2, -1], "rank 3 sits on GPU -1"),
        ([0.0, 1.5], "expected one whole GPU number"),
    ],
)
def test_a_map_that_no_cluster_can_run_is_refused(seats: list[int], fault: str) -> None:
    with pytest.raises(CheckError, match=fault):
        checked_cut_bytes(
            _two_supernodes_of_two_boards(), GPUS, seats, [], tier="supernode", tiers=TIERS
        )


def test_a_dead_gpu_is_refused_by_name() -> None:
    graph = _two_supernodes_of_two_boards()
    graph.remove_node("g3")

    with pytest.raises(PlannerError, match="GPU 'g3' is not in the cluster's graph"):
        checked_cut_bytes(graph, GPUS, range(8), [], tier="supernode", tiers=TIERS)


def test_an_unknown_tier_is_refused() -> None:
    with pytest.raises(CheckError, match="'rack' is unknown: one of board, supernode, cluster"):
        walked_domains(_two_supernodes_of_two_boards(), GPUS, tier="rack", tiers=TIERS)


@pytest.mark.parametrize(
    ("entry", "fault"),
    [
        (_entry("broadcast", [0, 1]), "collective 'broadcast' is unknown"),
        (_entry("ring", [0, 4]), "members 0 to 4: expected 0 to 3"),
        (_entry("ring", [1, 1]), "names a rank twice"),
        (
            CheckedEntry(
                collective="ring", payload_bytes=float("nan"), times_per_step=1.0, members=[[0, 1]]
            ),
            "payload_bytes=nan",
        ),
    ],
)
def test_traffic_that_cannot_be_read_is_refused(entry: CheckedEntry, fault: str) -> None:
    with pytest.raises(CheckError, match=fault):
        judged(np.zeros(4, np.int64), range(4), [entry])
