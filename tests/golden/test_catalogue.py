"""The catalogue against what the designs' own publications print."""

from __future__ import annotations

import math
from itertools import pairwise

import networkx as nx
import pytest

from planner.errors import SpecError
from planner.fabric import Fabric
from planner.fabric_parts import parts_of
from planner.fabric_walks import islands
from topologies.fabric_accelerators import accelerator_names, load_accelerator
from topologies.fabric_catalogue import catalogue_names, load_cluster, load_spec
from topologies.fabric_graph import build_fabric


def switches(fabric: Fabric, kind: str) -> int:
    return parts_of(fabric.graph).vertices.get(kind, 0)


@pytest.mark.parametrize("name", catalogue_names())
def test_a_cluster_on_file_serves_1024_gpus_unless_it_is_one_as_published(name: str) -> None:
    fabric = load_cluster(name)

    assert fabric.job_gpus == (24_576 if name == "llama3-24k" else 1024)


@pytest.mark.parametrize("name", [n for n in catalogue_names() if n != "llama3-24k"])
def test_a_cluster_on_file_is_connected_and_each_figure_has_a_source(name: str) -> None:
    fabric = load_cluster(name)

    assert len(islands(fabric.graph, fabric.gpus)) == 1
    assert [k for k, v in fabric.sources.items() if "no source given" in v] == []
    assert "supernode.rate" in {**fabric.sources, **fabric.assumed}
    assert "nic.rate" in {**fabric.sources, **fabric.assumed}


@pytest.mark.parametrize("name", accelerator_names())
def test_each_figure_of_an_accelerator_has_a_source_or_a_reason(name: str) -> None:
    chip = load_accelerator(name)

    told = {**chip.sources, **chip.assumed}
    assert [k for k, v in told.items() if "no source given" in v] == []
    assert {f"peak.{p}" for p in chip.peak_flops_per_s} <= set(told)
    assert {f"efficiency.{p}" for p in chip.peak_flops_per_s} <= set(told)


@pytest.mark.parametrize("name", catalogue_names())
def test_no_cluster_wires_more_scale_up_than_its_accelerator_has(name: str) -> None:
    spec = load_spec(name)
    wired = spec.supernode.bytes_per_s

    if spec.supernode.kind == "mesh_2d":
        wired += spec.supernode.board_bytes_per_s + spec.nic.line_bytes_per_s
    if spec.accelerator.scale_up_bytes_per_s:
        assert wired <= spec.accelerator.scale_up_bytes_per_s * 1.001


@pytest.mark.parametrize(
    ("name", "printed_tflops"),
    [("A100-SXM-80", 271), ("H100-SXM", 795), ("H200-SXM", 795), ("B200-SXM", 1745),
     ("B300-SXM", 1769), ("GB200", 1822), ("MI300X", 668), ("MI325X", 785), ("MI355X", 1565)],
)  # fmt: skip
def test_bf16_efficiency_gives_the_measured_matmul_rate(name: str, printed_tflops: float) -> None:
    chip = load_accelerator(name)

    reached = chip.peak_flops_per_s["bf16"] * chip.efficiency_share["bf16"] / 1e12
    assert reached == pytest.approx(printed_tflops, rel=0.01)


def test_dense_peaks_are_not_the_sparse_ones() -> None:
    assert load_accelerator("H100-SXM").peak_flops_per_s["bf16"] == 989e12
    assert load_accelerator("A100-SXM-80").peak_flops_per_s["bf16"] == 312e12
    assert load_accelerator("GB200").peak_flops_per_s["fp4"] == 10e15


# CloudMatrix384 (arXiv 2506.12708 and SemiAnalysis): 48 nodes of 8, 7 L1 switches in each, 7
# sub-planes of 16 L2 switches, ~300 PFLOPS, ~49 TB of HBM, UB 7.8 times the RDMA plane.
def test_cloudmatrix384_has_its_published_totals() -> None:
    fabric = load_cluster("cloudmatrix384", gpus=384)

    assert len(fabric.tier("board").domains) == 48
    assert switches(fabric, "scale_up_switch") == 48 * 7 + 7 * 16
    assert 384 * fabric.accelerator.peak_flops_per_s["bf16"] == pytest.approx(300e15, rel=0.05)
    assert 384 * fabric.accelerator.memory_bytes == pytest.approx(49e12, rel=0.01)
    ratio = fabric.tier("supernode").bytes_per_s / fabric.nic.line_bytes_per_s
    assert ratio == pytest.approx(7.8, abs=0.05)


def test_1024_does_not_divide_by_384_and_both_ways_out_are_on_file() -> None:
    partial, spare = load_cluster("cloudmatrix384"), load_cluster("cloudmatrix384-3x384")

    assert partial.capacities("supernode") == (384, 384, 256)
    assert spare.capacities("supernode") == (384, 384, 384)
    assert len(spare.gpus) - spare.job_gpus == 128


# GB200 NVL72: 18 trays of 4; 1024 = 14 x 72 + 16.
def test_nvl72_fills_fourteen_racks_and_sixteen_gpus_of_another() -> None:
    fabric = load_cluster("gb200-nvl72")

    assert fabric.capacities("supernode") == (72,) * 14 + (16,)
    assert {len(h.gpus) for h in fabric.hosts} == {4}
    assert len(fabric.hosts) == 14 * 18 + 4


# A public ibnetdiscover dump of GB200: 18 ports down and 18 up on each leaf, two parallel links
# between a leaf and a spine, 9 spines (nominal).
def test_eight_nvl72_racks_have_the_dumped_leaves_and_spines() -> None:
    fabric = load_cluster("gb200-nvl72", gpus=8 * 72)

    assert switches(fabric, "leaf") == 32
    assert switches(fabric, "spine") == 9
    widths = {
        n for a, b, n in fabric.graph.edges(data="links") if {a[:4], b[:4]} == {"leaf", "spin"}
    }
    assert widths == {2}


# Alibaba HPN (SIGCOMM 2024), and SimAI's preset of it: a pod of 15,360 GPUs has 240 leaf and 120
# aggregation switches; the core is oversubscribed 15:1.
def test_an_hpn_pod_has_240_leaves_and_120_spines() -> None:
    fabric = load_cluster("hpn", gpus=15_360)

    assert switches(fabric, "leaf") == 240
    assert switches(fabric, "spine") == 120
    assert fabric.capacities("leaf") == (1024,) * 15


def test_hpn_is_oversubscribed_fifteen_to_one_above_its_pods() -> None:
    fabric = load_cluster("hpn", gpus=2 * 15_360)

    pod = fabric.tier("pod")
    down_bytes_per_s = 15 * 16 * 60 * 50e9
    assert down_bytes_per_s / pod.domains[0].uplink_bytes_per_s == pytest.approx(15)


# DeepSeek (arXiv 2505.09343): eight planes of 64-port switches in two layers reach 16,384 GPUs.
def test_the_multi_plane_fat_tree_reaches_16384_gpus_and_no_more() -> None:
    assert len(load_cluster("deepseek-mpft", gpus=16_384).gpus) == 16_384
    with pytest.raises(SpecError, match="network"):
        load_cluster("deepseek-mpft", gpus=16_385)


def test_planes_of_the_multi_plane_network_meet_only_inside_supernodes() -> None:
    fabric = load_cluster("deepseek-mpft")
    outside = fabric.graph.copy()
    outside.remove_edges_from(
        [(a, b) for a, b, tier in fabric.graph.edges(data="tier") if tier == "supernode"]
    )

    assert nx.number_connected_components(outside) - 128 == 8


# Llama 3 (arXiv 2407.21783): 2 servers in a rack, 192 racks in a pod of full bisection, 8 pods,
# 24,576 GPUs, 1:7 between pods.
def test_llama3_has_its_published_shape_and_oversubscription() -> None:
    fabric = load_cluster("llama3-24k")

    assert fabric.capacities("leaf") == (16,) * 1536
    assert fabric.capacities("pod") == (3072,) * 8
    assert fabric.tier("pod").oversubscription == 1
    assert fabric.tier("cluster").oversubscription == pytest.approx(7, rel=0.01)
    assert load_cluster("llama3-roce").tier("cluster").oversubscription == pytest.approx(
        7, rel=0.02
    )


# DeepSeek, Table 5: 64 B end to end, InfiniBand 2.8 us on one leaf and 3.7 us across leaves, RoCE
# 3.6 and 5.6 us, NVLink 3.33 us.
@pytest.mark.parametrize(
    ("name", "same_leaf_us", "across_us"), [("hgx-h100", 2.8, 3.7), ("mi300x", 3.6, 5.6)]
)
def test_start_up_is_what_was_measured_end_to_end(
    name: str, same_leaf_us: float, across_us: float
) -> None:
    fabric = load_cluster(name)

    walk = fabric.walk(0, 8)
    taken_s = math.fsum(fabric.graph.edges[a, b]["latency_s"] for a, b in pairwise(walk))
    assert taken_s * 1e6 == pytest.approx(same_leaf_us)
    assert fabric.tier("leaf").latency_s * 1e6 == pytest.approx(same_leaf_us)
    assert fabric.tier("cluster").latency_s * 1e6 == pytest.approx(across_us)
    assert fabric.tier("supernode").latency_s * 1e6 == pytest.approx(3.33)


def test_an_mi300x_has_seven_links_of_64() -> None:
    supernode = load_cluster("mi300x").tier("supernode")

    assert supernode.pair_bytes_per_s == pytest.approx(64e9)
    assert supernode.bytes_per_s == 448e9


# UB-Mesh (arXiv 2503.20377): a pod is 16 racks of 64 in a 4D full mesh; every lane is used: 7 + 7
# neighbours in the rack and the way out of it make up the NPU's 840 GB/s.
def test_a_ub_mesh_npu_uses_all_its_lanes() -> None:
    spec = load_spec("ub-mesh-64")
    fabric = build_fabric(spec)

    lanes = (
        spec.supernode.board_bytes_per_s + spec.supernode.bytes_per_s + spec.nic.line_bytes_per_s
    )
    assert lanes == pytest.approx(840e9, rel=0.001)
    assert len(fabric.tier("supernode").domains) == 16
    degree = sum(
        kind == "gpu"
        for kind in (fabric.graph.nodes[v]["kind"] for v in fabric.graph["sn00.gpu00"])
    )
    assert degree == 14


def test_a_tpu_has_six_neighbours_at_100() -> None:
    fabric = load_cluster("tpu-torus")

    assert {fabric.graph.degree(v) for v in fabric.gpus} == {6}
    assert {r for *_, r in fabric.graph.edges(data="capacity_bytes_per_s")} == {100e9}
    assert fabric.tier("supernode").domains[0].uplink_bytes_per_s == 6 * 16 * 100e9


def test_rail_only_has_one_switch_for_each_rail_and_no_spine() -> None:
    fabric = load_cluster("rail-only")

    assert (switches(fabric, "leaf"), switches(fabric, "spine")) == (8, 0)
    assert any(v.endswith(".switch") for v in fabric.walk(0, 9))
