"""ns-3's and SimAI's topologies, and InfraGraph's newer schema, by hand-worked rates."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import SpecError
from topologies.fabric_catalogue import load_cluster
from topologies.fabric_import import ImportAsked, fabric_of, import_fabric_text, recognised

# Two servers of two GPUs (0 to 3), an NVSwitch each (4, 5), two leaves (6, 7), one spine (8).
SIMAI = """\
9 2 2 3 10 H100
4 5 6 7 8
0 4 2880Gbps 0.000025ms 0
1 4 2880Gbps 0.000025ms 0
2 5 2880Gbps 0.000025ms 0
3 5 2880Gbps 0.000025ms 0
0 6 400Gbps 0.0005ms 0
1 7 400Gbps 0.0005ms 0
2 6 400Gbps 0.0005ms 0
3 7 400Gbps 0.0005ms 0
6 8 200Gbps 0.0005ms 0
7 8 200Gbps 0.0005ms 0
"""
PLAIN = """\
5 1 4
4
0 4 100Gbps 1000ns 0.000000
1 4 100Gbps 1000ns 0.000000
2 4 100Gbps 1000ns 0.000000
3 4 100Gbps 1000ns 0.000000
"""
EDGES = """\
name: fabric
devices:
- name: server
  components:
  - {name: npu, choice: npu, count: 2}
  - {name: nvsw, choice: switch, count: 3}
  - {name: nic, choice: nic, count: 2}
  edges:
  - ep1: {component: npu}
    ep2: {component: nvsw}
    link: nvlink
    scheme: many2many
  links:
  - {name: nvlink, physical: {bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 50}}}
- name: switch
  components:
  - {name: asic, choice: cpu, count: 1}
  - {name: port, choice: port, count: 8}
edges:
- ep1: {instance: "host[0:2]", component: nic}
  ep2: {instance: "leaf[0]", component: "port[0:4]"}
  link: leaf-link
  scheme: one2one
- ep1: {instance: "host[2:4]", component: nic}
  ep2: {instance: "leaf[1]", component: "port[0:4]"}
  link: leaf-link
  scheme: one2one
- ep1: {instance: leaf, component: "port[3]"}
  ep2: {instance: spine, component: "port[0:2]"}
  link: up-link
  scheme: one2one
instances:
- {name: host, device: server, count: 4}
- {name: leaf, device: switch, count: 2}
- {name: spine, device: switch, count: 1}
links:
- name: leaf-link
  physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 400}}
- name: up-link
  physical: {bandwidth: {choice: gigabits_per_second, gigabits_per_second: 800}}
"""


def written(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(("text", "kind"), [(SIMAI, "ns3"), (PLAIN, "ns3"), (EDGES, "infragraph")])
def test_the_kind_shows_in_the_content(text: str, kind: str) -> None:
    assert recognised(text.encode(), "file") == kind


def test_simais_servers_are_supernodes_of_the_rate_of_their_nvswitch(tmp_path: Path) -> None:
    fabric = load_cluster(written(tmp_path, "topo", SIMAI))

    assert fabric.capacities("supernode") == (2, 2)
    assert fabric.accelerator.name == "H100-SXM"
    assert fabric.tier("supernode").bytes_per_s == 2880e9 / 8
    assert fabric.tier("supernode").latency_s == pytest.approx(2 * 25e-9)
    assert fabric.nic.line_bytes_per_s == 400e9 / 8
    # Two leaves with 200 Gb/s up each; every GPU of a server may send 400 Gb/s into them.
    spine = fabric.tiers[-1]
    assert fabric.graph["sw6"]["sw8"]["capacity_bytes_per_s"] == 200e9 / 8
    assert len(spine.domains[0].gpus) == 4


def test_servers_that_share_an_nvswitch_are_one_supernode(tmp_path: Path) -> None:
    text = SIMAI.replace("2 5 2880", "2 4 2880").replace("3 5 2880", "3 4 2880")

    assert load_cluster(written(tmp_path, "topo", text)).capacities("supernode") == (4,)


def test_a_plain_topology_has_nodes_of_one_gpu_and_says_so(tmp_path: Path) -> None:
    fabric = load_cluster(written(tmp_path, "topology.txt", PLAIN))

    assert fabric.capacities("supernode") == (1, 1, 1, 1)
    assert fabric.nic.line_bytes_per_s == 100e9 / 8
    assert "gpus_per_node" in fabric.assumed


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("9 2 2 3 10 H100", "9 2 2 3 11 H100"), "has 10 links, its first line says 11"),
        (("9 2 2 3 10 H100", "5 2 2 3 10 H100"), "leave 0 GPUs"),
        (("4 5 6 7 8", "4 5 6 7"), "expected 5 numbers of switches"),
        (("4 5 6 7 8", "4 5 6 7 7"), "listed twice|lists 4 switches"),
        (("0 4 2880Gbps", "0 4 2880"), ":3: .*expected two nodes below 9"),
        (("0 4 2880Gbps", "0 99 2880Gbps"), ":3: .*expected two nodes below 9"),
        (("0.000025ms", "soon"), "a delay"),
        (("9 2 2 3 10 H100", "9 0 2 3 10 H100"), "gpus_per_server=0"),
    ],
)
def test_a_fault_of_a_topology_is_named(change: tuple[str, str], fault: str) -> None:
    with pytest.raises(SpecError, match=fault):
        import_fabric_text(SIMAI.replace(*change).encode(), "topo", ImportAsked(format="ns3"))


def test_edges_of_slices_are_wired_as_they_say(tmp_path: Path) -> None:
    fabric = load_cluster(written(tmp_path, "infra.yaml", EDGES))

    assert fabric.capacities("supernode") == (2, 2, 2, 2)
    assert fabric.capacities("leaf") == (4, 4)  # two hosts below each leaf
    assert fabric.tier("supernode").bytes_per_s == 3 * 50e9  # three switches of 50 GB/s
    assert fabric.nic.line_bytes_per_s == 400e9 / 8
    assert fabric.tier("leaf").domains[0].uplink_bytes_per_s == 800e9 / 8


def test_machines_whose_accelerators_meet_in_a_switch_are_one_supernode(tmp_path: Path) -> None:
    rack = """\
- ep1: {instance: host, component: npu}
  ep2: {instance: nv, component: port}
  link: nv-link
  scheme: many2many
"""
    text = EDGES.replace("\nedges:\n- ep1: {inst", f"\nedges:\n{rack}- ep1: {{inst", 1)
    text = text.replace("- {name: spine,", "- {name: nv, device: port1, count: 2}\n- {name: spine,")
    text = text.replace(
        "- name: switch\n",
        "- name: port1\n  components:\n  - {name: port, choice: port, count: 1}\n- name: switch\n",
    )
    text += "- name: nv-link\n  physical: {bandwidth: {gigabytes_per_second: 100}}\n"

    fabric = load_cluster(written(tmp_path, "infra.yaml", text))

    assert fabric.capacities("supernode") == (8,)
    assert fabric.tier("supernode").bytes_per_s == 2 * 100e9  # each npu to both nv switches


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("host[0:2]", "host[0:9]"), "'host\\[0:9\\]': there are 4"),
        (("host[0:2]", "hosts[0:2]"), "'hosts' is not described"),
        (("component: nic}", "component: wire}"), "'wire' is not described"),
        (("scheme: many2many", "scheme: some"), "expected one of one2one, many2many"),
        (("  scheme: one2one\n- ep1: {instance: leaf", "  scheme: any\n- ep1: {instance: leaf"),
         "expected one of one2one, many2many"),
        (("choice: npu", "choice: cpu"), "0 instances with accelerators"),
    ],
)  # fmt: skip
def test_a_fault_of_an_edge_is_named(change: tuple[str, str], fault: str) -> None:
    text = EDGES.replace(*change)
    assert text != EDGES

    with pytest.raises(SpecError, match=fault):
        import_fabric_text(text.encode(), "infra.yaml", ImportAsked())


def test_a_device_composed_of_itself_is_refused() -> None:
    text = EDGES.replace(
        "- {name: nvsw, choice: switch, count: 3}", "- {name: server, choice: device, count: 2}"
    ).replace("ep2: {component: nvsw}", "ep2: {component: nic}")

    with pytest.raises(SpecError, match="more than 8 deep"):
        import_fabric_text(text.encode(), "infra.yaml", ImportAsked())


FIRST_VERSION = """{
 "topology-name": "Hierarchical", "dimensions-count": 2,
 "topologies-per-dim": ["FullyConnected", "Switch"], "dimension-type": ["N", "P"],
 "units-count": [8, 4], "links-count": [7, 1], "link-latency": [500, 1000],
 "link-bandwidth": [20, 25], "nic-latency": [0, 0]
}"""


def test_astra_sims_first_version_counts_the_links_of_an_npu(tmp_path: Path) -> None:
    fabric = load_cluster(written(tmp_path, "net.json", FIRST_VERSION))

    assert fabric.capacities("supernode") == (8, 8, 8, 8)
    assert fabric.tier("supernode").bytes_per_s == 7 * 20e9
    assert fabric.nic.line_bytes_per_s == 1 * 25e9


def test_a_list_that_is_too_short_is_refused() -> None:
    text = FIRST_VERSION.replace('"links-count": [7, 1]', '"links-count": [7]')

    with pytest.raises(SpecError, match="must have the same length"):
        import_fabric_text(text.encode(), "net.json", ImportAsked())


def test_outer_dimensions_of_astra_sim_are_tiers_with_rates_of_their_own() -> None:
    text = (
        "topology: [ Ring, FullyConnected, Switch ]\nnpus_count: [ 4, 2, 8 ]\n"
        "bandwidth: [ 200.0, 100.0, 50.0 ]  # GB/s\nlatency: [ 500.0, 700.0, 2000.0 ]  # ns\n"
    )

    fabric = fabric_of(import_fabric_text(text.encode(), "f", ImportAsked()), ImportAsked())

    assert [(t.name, len(t.domains), t.shared_bytes_per_s / 1e9) for t in fabric.tiers] == [
        ("supernode", 16, 400),  # both neighbours of a ring, at 200 each
        ("leaf", 8, 100),
        ("cluster", 1, 50),
    ]
    assert fabric.tier("leaf").domains[0].gpus == tuple(range(8))  # NPU 7 is the second ring's last
    assert fabric.tier("leaf").domains[0].uplink_bytes_per_s == 8 * 50e9


def test_an_npu_has_a_link_to_each_other_of_a_fully_connected_dimension_of_astra_sim() -> None:
    text = "topology: [ FullyConnected ]\nnpus_count: [ 8 ]\nbandwidth: [ 20 ]\nlatency: [ 500 ]\n"

    found = import_fabric_text(text.encode(), "f", ImportAsked())

    assert found.scale_up_bytes_per_s == 7 * 20e9  # as the first version's seven links say


BOX = """\
infrastructure:
  devices:
  - name: box
    components: [{name: xpu, type: xpu}, {name: pcisw, type: custom}, {name: hub, type: custom}]
    links:
    - {name: pcie, bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 32}}
    - {name: up, bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 128}}
    connections: [pcisw.0.pcie.xpu.0, pcisw.1.pcie.xpu.1, xpu.0.up.hub.0, xpu.1.up.hub.0,
                  xpu.0.up.hub.1, xpu.1.up.hub.1]
"""


def test_what_joins_all_xpus_of_an_infragraph_device_is_its_scale_up_network() -> None:
    found = import_fabric_text(BOX.encode(), "f", ImportAsked())

    assert found.scale_up_bytes_per_s == 2 * 128e9  # two hubs; PCIe switches have an xpu each


def test_a_gpu_alone_has_only_its_own_link_of_each_dimension() -> None:
    """ASTRA-sim gives each NPU a link for each dimension: 25 GB/s in the third, whoever sends."""
    text = (
        "topology: [ Switch, Switch, Switch ]\nnpus_count: [ 8, 4, 2 ]\n"
        "bandwidth: [ 400.0, 100.0, 25.0 ]\nlatency: [ 500.0, 1000.0, 2000.0 ]\n"
    )

    fabric = fabric_of(import_fabric_text(text.encode(), "f", ImportAsked()), ImportAsked())

    rates = [(tier.name, tier.bytes_per_s / 1e9, tier.shared_bytes_per_s / 1e9)
             for tier in fabric.tiers]  # fmt: skip
    assert rates == [("supernode", 400, 400), ("leaf", 100, 100), ("cluster", 25, 25)]


def test_an_outer_dimension_that_is_faster_does_not_hide_a_slower_one_inside() -> None:
    text = (
        "topology: [ Ring, Switch, Switch ]\nnpus_count: [ 4, 2, 2 ]\n"
        "bandwidth: [ 100, 20, 50 ]\nlatency: [ 500, 500, 500 ]\n"
    )

    fabric = fabric_of(import_fabric_text(text.encode(), "f", ImportAsked()), ImportAsked())

    assert [tier.bytes_per_s / 1e9 for tier in fabric.tiers] == [200, 20, 20]
