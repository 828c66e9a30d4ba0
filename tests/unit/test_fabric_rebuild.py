"""The generic family and rebuilt clusters: only the supernode size, or only the scale, differs."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.errors import SpecError
from topologies.fabric_catalogue import generic_cluster, load_cluster, load_spec
from topologies.fabric_network_spec import MeshSpec, TorusSpec

CATALOGUE = Path(__file__).parents[2] / "topologies" / "catalogue"


@pytest.mark.parametrize(
    ("supernode", "gpus", "sizes"),
    [
        (8, 1024, (8,) * 128),
        (64, 1024, (64,) * 16),
        (384, 1024, (384, 384, 256)),
        (5, 12, (5, 5, 2)),
        (1, 3, (1, 1, 1)),
        (1024, 1024, (1024,)),
        (7, 8, (7, 1)),
    ],
)
def test_the_generic_family_has_full_supernodes_and_a_partial_one(
    supernode: int, gpus: int, sizes: tuple[int, ...]
) -> None:
    assert generic_cluster(supernode, gpus).capacities("supernode") == sizes


def test_only_the_supernode_size_differs_between_generic_clusters() -> None:
    clusters = [generic_cluster(n, 1024) for n in (1, 5, 8, 64, 72, 384, 1023)]

    for fabric in clusters:
        assert [t.name for t in fabric.tiers] == ["supernode", "cluster"]
        assert [t.bytes_per_s for t in fabric.tiers] == [450e9, 50e9]
        assert [t.shared_bytes_per_s for t in fabric.tiers] == [450e9, 50e9]
        assert [t.latency_s for t in fabric.tiers] == pytest.approx([3.33e-6, 3.7e-6])
        assert fabric.accelerator == clusters[0].accelerator
        assert fabric.nic == clusters[0].nic


@pytest.mark.parametrize(("uplinks", "spines"), [(64, 8), (16, 2)])
@pytest.mark.parametrize("supernode", [8, 24, 48, 64, 72, 384])
def test_leaves_of_the_generic_family_are_filled_whatever_the_supernode(
    supernode: int, uplinks: int, spines: int, tmp_path: Path
) -> None:
    file = tmp_path / "own.yaml"
    text = (CATALOGUE / "generic.yaml").read_text()
    file.write_text(text.replace("    uplinks: 64\n", f"    uplinks: {uplinks}\n"))
    graph = load_cluster(str(file), supernode=supernode, gpus=1024).graph
    nics = {
        leaf: sum(graph.nodes[other]["kind"] == "nic" for other in graph[leaf])
        for leaf, kind in graph.nodes(data="kind")
        if kind == "leaf"
    }

    # 1,024 NICs on half of 128 ports each; 16 x 64 links up, or 16 x 16, to spines of 128.
    assert list(nics.values()) == [64] * 16
    assert sum(kind == "spine" for _, kind in graph.nodes(data="kind")) == spines


def test_leaves_that_are_domains_keep_supernodes_whole_below_them() -> None:
    fabric = load_cluster("gb200-nvl72", supernode=20, gpus=480)

    # A leaf of each of 4 rails has 18 ports down: 3 supernodes with 5 rows each, not 3.6.
    leaves = fabric.tier("leaf").domains
    assert all(len(one.gpus) == 60 for one in leaves)


def test_a_rebuilt_cluster_is_found_by_the_name_that_pages_print() -> None:
    assert load_spec("generic-sn72") == load_spec("generic", supernode=72)
    assert load_spec("hgx-h100-sn64", gpus=128) == load_spec("hgx-h100", supernode=64, gpus=128)
    assert load_spec("generic-sn72", supernode=8).name == "generic-sn8"


def test_one_supernode_alone_is_the_outermost_tier() -> None:
    fabric = generic_cluster(384, 384)

    assert [t.name for t in fabric.tiers] == ["supernode"]
    assert fabric.tiers[0].domains[0].uplink_bytes_per_s == 0


def test_a_job_smaller_than_a_supernode_gets_part_of_one() -> None:
    fabric = generic_cluster(64, 4)

    assert fabric.name == "generic-sn64"
    assert fabric.capacities("supernode") == (4,)
    assert fabric.full_supernode_gpus == 64
    assert fabric.tiers[-1].name == "supernode"
    assert fabric.tiers[-1].bytes_per_s == 450e9


def test_a_supernode_that_the_job_fills_is_as_large_as_it_is() -> None:
    assert generic_cluster(8, 8).full_supernode_gpus == 8
    assert generic_cluster(5, 12).full_supernode_gpus == 5


@pytest.mark.parametrize(
    ("supernode", "gpus", "fault"),
    [
        (2**21, 8, "supernode=2097152: expected 1 to 1,048,576"),
        (0, 8, "supernode=0: expected 1 to 1,048,576"),
        (8, 0, "gpus=0: expected 1 to 1,048,576"),
        (-1, -1, "supernode=-1"),
        (8, 2**40, "gpus=1099511627776: expected 1 to 1,048,576"),
    ],
)
def test_sizes_that_cannot_be_are_refused(supernode: int, gpus: int, fault: str) -> None:
    with pytest.raises(SpecError, match=fault):
        generic_cluster(supernode, gpus)


def test_the_generic_network_ends_where_its_radix_does() -> None:
    assert generic_cluster(8, 524_288).capacities("cluster") == (524_288,)
    with pytest.raises(SpecError, match="network"):
        generic_cluster(8, 524_288 + 64)


def test_a_rebuilt_cluster_says_so() -> None:
    fabric = load_cluster("hgx-h100", supernode=64, gpus=512)

    assert fabric.name == "hgx-h100-sn64"
    assert fabric.capacities("supernode") == (64,) * 8
    assert fabric.assumed["supernode.size"] == "rebuilt from the filed 8 GPUs to 64"
    assert fabric.assumed["gpus"] == "rebuilt from the filed 1024 GPUs to 512"
    assert "32, in proportion" in fabric.assumed["supernode.switches"]


def test_as_filed_nothing_is_rebuilt() -> None:
    assert load_spec("gb200-nvl72", gpus=1024) is load_spec("gb200-nvl72")


def test_a_cluster_with_spares_keeps_whole_supernodes() -> None:
    fabric = load_cluster("cloudmatrix384-3x384", gpus=2000)

    assert fabric.capacities("supernode") == (384,) * 6
    assert fabric.job_gpus == 2000


def test_a_mesh_shares_the_same_total_over_more_neighbours() -> None:
    spec = load_spec("mi300x", supernode=16)

    assert spec.supernode.bytes_per_s == 448e9
    assert spec.supernode.pair_bytes_per_s == pytest.approx(448e9 / 15)


def test_a_rack_mesh_finds_a_new_grid_for_its_racks() -> None:
    network = load_spec("ub-mesh-64", gpus=768).network

    assert isinstance(network, MeshSpec)
    assert network.dims == (4, 3)


def test_a_2d_mesh_of_one_board_is_a_full_mesh() -> None:
    spec = load_spec("ub-mesh-64", supernode=4, gpus=16)

    assert spec.supernode.kind == "full_mesh"
    assert spec.supernode.bytes_per_s == 326.7e9


def test_a_torus_is_cut_into_boxes_that_tile() -> None:
    spec = load_spec("tpu-torus", supernode=8, gpus=512)

    assert spec.supernode.dims == (2, 2, 2)
    assert isinstance(spec.network, TorusSpec)
    assert spec.network.dims == (4, 4, 4)
    with pytest.raises(SpecError, match="1000 GPUs do not fill torus supernodes of 64"):
        load_spec("tpu-torus", gpus=1000)


def test_naming_the_filed_size_keeps_the_supernodes_that_are_spare() -> None:
    filed = load_spec("cloudmatrix384-3x384")

    named = load_spec("cloudmatrix384-3x384", supernode=384)
    other = load_spec("cloudmatrix384-3x384", supernode=64)

    assert named.supernode == filed.supernode
    assert named.name == "cloudmatrix384-3x384-sn384"
    assert other.supernode.sizes == (64,) * 16
    assert "128 of the 1,152 GPUs that are filed are left out" in other.assumed["supernode.count"]
