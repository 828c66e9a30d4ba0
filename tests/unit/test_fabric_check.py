"""What `topology check` finds, on graphs small enough to see it."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.network.findings import Finding
from topologies.fabric_catalogue import load_cluster, load_spec
from topologies.fabric_check import cut_off_gpus, findings_of
from topologies.fabric_graph import build_graph, usable_gpus
from topologies.fabric_spec import DeadParts


def checked(name: str, dead: DeadParts | None = None) -> dict[str, Finding]:
    spec = replace(load_spec(name), dead=dead or DeadParts())
    found = findings_of(build_graph(spec), usable_gpus(spec), dead=spec.dead)
    return {f.check: f for f in found}


@settings(max_examples=80, deadline=None)
@given(st.integers(2, 9), st.data())
def test_cut_off_gpus_are_those_that_leave_the_largest_part_when_the_vertex_goes(
    size: int, data: st.DataObject
) -> None:
    names = "abcdefghi"[:size]
    pairs = [(a, b) for a in names for b in names if a < b]
    graph = nx.Graph(data.draw(st.lists(st.sampled_from(pairs), max_size=14)))
    graph.add_nodes_from(names)
    gpus = data.draw(st.sets(st.sampled_from(names)))

    expected = {}
    for vertex in graph:
        home = nx.node_connected_component(graph, vertex) - {vertex}
        parts = [
            sum(v in gpus for v in part) for part in nx.connected_components(graph.subgraph(home))
        ]
        if len([n for n in parts if n]) > 1:
            expected[vertex] = sum(parts) - max(parts)

    assert cut_off_gpus(graph, list(gpus)) == expected


def test_a_rail_optimised_cluster_has_no_single_point_of_failure() -> None:
    assert checked("hgx-h100") == {}


def test_one_leaf_for_a_rack_is_a_single_point_of_failure() -> None:
    found = checked("llama3-roce")["single point of failure"]

    assert found.message == "64 leaf switches: the loss of one cuts off up to 16 GPUs"
    assert found.severity == "warning"


def test_gpus_that_are_cut_off_are_a_fault() -> None:
    found = checked("llama3-roce", DeadParts(switches=("leaf07",)))

    assert found["disconnected"].severity == "fault"
    assert found["disconnected"].message == "16 GPUs in 2 parts cannot reach the other 1008"
    assert found["dead"].message == "1 switch listed as dead"


def test_a_bundle_of_half_width_is_found() -> None:
    dead = DeadParts(links=(("leaf0.rail0", "spine00"), ("leaf1.rail3", "spine07")))

    found = checked("hgx-h100", dead)["narrow bundle"]

    assert found.message.startswith("2 of 512 leaf-spine bundles have half of the usual 2 links")
    assert found.where == ("leaf0.rail0 - spine00", "leaf1.rail3 - spine07")


def test_more_links_than_ports_are_a_fault() -> None:
    graph = nx.Graph()
    graph.add_nodes_from("ab", kind="gpu")
    graph.add_node("leaf", kind="leaf", radix=3, units=1)
    for gpu in "ab":
        graph.add_edge(gpu, "leaf", capacity_bytes_per_s=1, latency_s=0, tier="cluster", links=2)

    found = [f for f in findings_of(graph, "ab") if f.check == "radix"]

    assert [f.message for f in found] == [
        "1 leaf switch with more links than ports: 4 of 3 on the worst"
    ]


def test_an_oversubscribed_tier_is_a_warning_with_its_ratio() -> None:
    fabric = load_cluster("llama3-roce")

    found = findings_of(fabric.graph, fabric.gpus, tiers=fabric.tiers)

    assert [f.message for f in found if f.check == "oversubscription"] == [
        "7.11:1: 50 GB/s alone, 7.031 GB/s when all GPUs send"
    ]


def test_a_further_check_is_asked_too_and_faults_come_first() -> None:
    fabric = load_cluster("llama3-roce")
    worst = Finding(severity="fault", check="deadlock", where=("leaf00",), message="a cycle")

    found = findings_of(fabric.graph, fabric.gpus, more=[lambda _graph, _gpus: [worst]])

    assert found[0] is worst
