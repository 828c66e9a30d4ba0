"""NetQ's graph and a provider's answer in JSON, as topograph reads them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from planner.errors import SpecError
from topologies.fabric_catalogue import load_cluster
from topologies.fabric_import import ImportAsked, import_fabric_text, recognised


def device(ident: str, name: str, tier: int) -> dict[str, Any]:
    kind = "switch" if tier > 0 else "discovered_via_lldp"
    return {"id": ident, "name": name, "tier": tier, "device_type": kind, "node_type": "device"}


def link(a: str, b: str, size: int) -> dict[str, Any]:
    return {"src": a, "target": b, "size": size, "id": f"{a}-*-{b}", "compounded_links": []}


GRAPH: list[dict[str, Any]] = [
    {
        "links": [
            link("l1", "h1", 4), link("h2", "l1", 4), link("l2", "h3", 4), link("l1", "s", 8),
            link("l2", "s", 8),
        ],
        "nodes": [
            {"node_type": "tier", "id": "tier-u", "compounded_nodes": [
                device("h1", "dgx-01", -1), device("h2", "dgx-02", -1), device("h3", "dgx-03", -1),
            ]},
            {"node_type": "tier", "id": "tier-1", "compounded_nodes": [
                device("l1", "leaf-1", 1), device("l2", "leaf-2", 1),
            ]},
            {"node_type": "tier", "id": "tier-2", "compounded_nodes": [device("s", "spine", 2)]},
        ],
    }
]  # fmt: skip
ANSWER = {
    "switches": {
        "S1": {"switches": ["S2", "S3"]},
        "S2": {"nodes": [{"node_id": f"I2{i}", "accelerated_network_id": "c2"} for i in (1, 2)]},
        "S3": {"nodes": [{"node_id": f"I3{i}", "accelerated_network_id": "c3"} for i in (4, 5, 6)]},
    }
}


def test_the_kinds_are_told_apart() -> None:
    assert recognised(json.dumps(GRAPH).encode(), "f") == "netq"
    assert recognised(json.dumps(ANSWER).encode(), "f") == "topograph"


def test_netqs_tiers_and_parallel_links_are_read(tmp_path: Path) -> None:
    path = tmp_path / "graph.json"
    path.write_text(json.dumps(GRAPH, indent=2), encoding="utf-8")

    fabric = load_cluster(f"{path},gpus-per-node=8")

    assert [host.name for host in fabric.hosts] == ["dgx-01", "dgx-02", "dgx-03"]
    assert fabric.capacities("leaf") == (16, 8)
    assert fabric.graph["leaf-1"]["spine"]["links"] == 8


def test_a_providers_answer_has_machines_in_its_switches_and_accelerated_networks() -> None:
    found = import_fabric_text(json.dumps(ANSWER).encode(), "f", ImportAsked())

    assert {h.name: h.supernode for h in found.hosts} == {
        "I21": "c2", "I22": "c2", "I34": "c3", "I35": "c3", "I36": "c3",
    }  # fmt: skip
    assert {(one.a, one.b) for one in found.links} >= {("S2", "S1"), ("S3", "S1"), ("I21", "S2")}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (('"size": 8', '"size": 0'), "a size of 1 or more"),
        (('"leaf-2"', '"leaf-1"'), "two devices are called 'leaf-1'"),
        (('"dgx-01"', '"dgx 01"'), "'dgx 01': expected letters"),
        (('"nodes"', '"knots"'), "expected NetQ's topology"),
        (('"size": 8', '"size": NaN'), "NaN"),
    ],
)
def test_a_fault_of_the_graph_is_named(change: tuple[str, str], fault: str) -> None:
    text = json.dumps(GRAPH).replace(*change)

    with pytest.raises(SpecError, match=fault):
        import_fabric_text(text.encode(), "f", ImportAsked(format="netq"))


def test_a_link_to_what_is_no_device_is_left_out_and_said() -> None:
    graph = [{**GRAPH[0], "links": [*GRAPH[0]["links"], link("l1", "gone", 1)]}]

    found = import_fabric_text(json.dumps(graph).encode(), "f", ImportAsked())

    assert any("'gone', which is no device" in str(one) for one in found.findings)
