"""Fabric: what it refuses, what it answers, and when it builds its graph."""

from __future__ import annotations

import pickle
import time
from dataclasses import FrozenInstanceError, replace

import networkx as nx
import numpy as np
import pytest

from planner.errors import InputError, SpecError
from planner.fabric import Accelerator, Domain, Fabric, Nic, Tier
from planner.fabric_walks import islands

CHIP = Accelerator(
    name="chip",
    peak_flops_per_s={"bf16": 1e15},
    memory_bytes=80e9,
    memory_bytes_per_s=3e12,
    efficiency_share={"bf16": 0.8},
    memory_efficiency_share=0.9,
)
NIC = Nic(line_bytes_per_s=50e9, in_flight=8, transaction_bytes=524288, turnaround_s=2e-5)


def two_pairs() -> nx.Graph:
    """Return a - b and c - d, each pair by 100 GB/s, all four by 10 GB/s to one switch."""
    graph = nx.Graph()
    graph.add_nodes_from("abcd", kind="gpu")
    graph.add_node("leaf", kind="leaf", units=1, radix=4)
    pair = {"capacity_bytes_per_s": 100e9, "latency_s": 1e-6, "tier": "supernode", "links": 1}
    out = {"capacity_bytes_per_s": 10e9, "latency_s": 2e-6, "tier": "cluster", "links": 1}
    graph.add_edges_from([("a", "b"), ("c", "d")], **pair)
    graph.add_edges_from([(gpu, "leaf") for gpu in "abcd"], **out)
    return graph


def tier(name: str, *members: tuple[int, ...], uplink: float = 20e9) -> Tier:
    domains = tuple(
        Domain(name=f"{name}{i}", gpus=gpus, uplink_bytes_per_s=uplink if len(members) > 1 else 0)
        for i, gpus in enumerate(members)
    )
    return Tier(
        name=name, domains=domains, bytes_per_s=10e9, shared_bytes_per_s=10e9, latency_s=4e-6
    )


SUPERNODES = tier("supernode", (0, 1), (2, 3))
CLUSTER = tier("cluster", (0, 1, 2, 3))


def fabric(graph: object = None, **changes: object) -> Fabric:
    fields: dict[str, object] = {
        "name": "pairs",
        "graph": two_pairs() if graph is None else graph,
        "gpus": tuple("abcd"),
        "tiers": (SUPERNODES, CLUSTER),
        "accelerator": CHIP,
        "nic": NIC,
    }
    return Fabric(**{**fields, **changes})  # type: ignore[arg-type]


def test_a_gpu_that_does_not_exist_has_no_walk() -> None:
    with pytest.raises(InputError, match="GPU 4 does not exist: expected 0 to 3"):
        fabric().walk(4, 0)
    with pytest.raises(InputError, match="GPU -1 does not exist: expected 0 to 3"):
        fabric().walk(0, -1)


def test_a_walk_takes_the_path_with_the_least_latency() -> None:
    assert fabric().walk(0, 1) == ("a", "b")
    assert fabric().walk(0, 3) == ("a", "leaf", "d")


def test_two_islands_are_not_connected() -> None:
    graph = two_pairs()
    graph.remove_node("leaf")

    assert islands(two_pairs(), "abcd") == (("a", "b", "c", "d"),)
    assert islands(graph, "abcd") == (("a", "b"), ("c", "d"))
    with pytest.raises(InputError, match="no path from a to d"):
        fabric(graph).walk(0, 3)


def test_domains_are_found_from_the_gpu_and_from_the_tier() -> None:
    np.testing.assert_array_equal(fabric().domain_index("supernode"), [0, 0, 1, 1])
    assert fabric().capacities("supernode") == (2, 2)
    with pytest.raises(KeyError, match="no tier 'pod'"):
        fabric().tier("pod")


def test_the_graph_is_built_once_and_only_when_asked_for() -> None:
    built: list[nx.Graph] = []

    def build() -> nx.Graph:
        built.append(two_pairs())
        return built[-1]

    lazy = fabric(build)

    assert built == []
    assert lazy.graph is lazy.graph
    assert len(built) == 1


def test_a_graph_built_late_is_checked_too() -> None:
    lazy = fabric(nx.Graph)

    with pytest.raises(SpecError, match="GPU 'a' is no vertex of the graph"):
        lazy.graph  # noqa: B018 - reading it builds it


def test_a_fabric_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        fabric().graph = nx.Graph()  # type: ignore[misc]


def test_a_fabric_goes_to_a_worker_with_its_graph_unbuilt() -> None:
    lazy = fabric(two_pairs)

    copy = pickle.loads(pickle.dumps(lazy))

    assert copy.tiers == lazy.tiers
    assert copy.accelerator == lazy.accelerator
    assert sorted(copy.graph) == sorted(lazy.graph)


@pytest.mark.parametrize("missing", ["capacity_bytes_per_s", "latency_s"])
def test_a_link_without_a_figure_is_refused(missing: str) -> None:
    graph = two_pairs()
    del graph.edges["a", "b"][missing]

    with pytest.raises(SpecError, match=f"link a - b: {missing}=None"):
        fabric(graph)


@pytest.mark.parametrize("rate", [0.0, -1.0, float("nan"), float("inf")])
def test_a_link_with_an_impossible_rate_is_refused(rate: float) -> None:
    graph = two_pairs()
    graph.edges["c", "d"]["capacity_bytes_per_s"] = rate

    with pytest.raises(SpecError, match="link c - d: capacity_bytes_per_s="):
        fabric(graph)


def test_every_fault_of_a_fabric_is_named_at_once() -> None:
    with pytest.raises(SpecError) as refusal:
        fabric(
            gpus=("a", "b", "c", "c"),
            tiers=(
                tier("leaf", (0, 1), (1, 2, 3)),
                tier("pod", (0, 2), (1, 3)),
                tier("pod", (0, 1), (2, 3)),
            ),
            job_gpus=5,
        )

    faults = "\n".join(refusal.value.faults)
    assert "GPU name 'c' is used twice" in faults
    assert "job_gpus=5: expected 1 to 4" in faults
    assert "'supernode' among them" in faults
    assert "tier 'leaf' holds GPU 1 2 times" in faults
    assert "tier 'pod' splits a domain of the tier inside it" in faults
    assert "outermost tier 'pod' has 2 domains: expected 1" in faults


def test_the_name_used_twice_among_a_hundred_thousand_is_found_at_once() -> None:
    names = (*(f"g{i}" for i in range(100_000)), "g99999")
    start = time.process_time()

    with pytest.raises(SpecError, match="GPU name 'g99999' is used twice"):
        fabric(gpus=names)

    assert time.process_time() - start < 3


@pytest.mark.parametrize("name", ["", "rack[/]", "a b", "\x1b[31m", "x" * 129])
def test_a_name_that_a_terminal_would_obey_is_refused(name: str) -> None:
    with pytest.raises(SpecError, match="expected 1 to 128 of"):
        fabric(name=name)


def test_a_tier_tells_its_oversubscription() -> None:
    assert replace(CLUSTER, shared_bytes_per_s=2.5e9).oversubscription == 4


def test_an_accelerator_without_an_efficiency_for_a_peak_is_refused() -> None:
    with pytest.raises(SpecError, match="no efficiency_share for fp8"):
        replace(CHIP, peak_flops_per_s={"bf16": 1e15, "fp8": 2e15})


def test_a_nic_that_moves_nothing_is_refused() -> None:
    with pytest.raises(SpecError, match="in_flight=0"):
        replace(NIC, in_flight=0)


def test_a_description_gives_every_tier_with_its_figures() -> None:
    assert fabric().describe().splitlines() == [
        "pairs: 4 x chip, job of 4 GPUs",
        "  supernode: 2 of 2 GPUs, 10 GB/s alone, 10 GB/s when all send, start-up 4 us",
        "  cluster: 1 of 4 GPUs, 10 GB/s alone, 10 GB/s when all send, start-up 4 us",
    ]
