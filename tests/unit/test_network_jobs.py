"""Blast radius, endpoint state, sharing and incast of real layouts on clusters of the catalogue."""

from __future__ import annotations

import time
import tracemalloc

import numpy as np
import pytest

from planner.errors import InputError
from planner.fabric import Fabric
from planner.layout import Layout
from planner.network import routes
from planner.network.blast import Relayed, blast_radius
from planner.network.endpoints import endpoint_state, layout_endpoints
from planner.network.flows import Flows, group_flows
from planner.network.incast import fabric_gates
from planner.network.sharing import share_links
from planner.traffic import Family, step_families
from topologies.fabric_catalogue import generic_cluster, load_cluster
from topologies.model_reader import read_model

LAYOUT = Layout(tp=4, ep=8, dp=4, pp=2, micro_batch=1, global_batch=16)


def families_of(layout: Layout, model: str = "mixtral-8x7b") -> list[tuple[Family, np.ndarray]]:
    return [(f, f.members(layout)) for f in step_families(read_model(model), layout)]


@pytest.fixture(scope="module")
def small() -> Fabric:
    return generic_cluster(8, 32)


def groups() -> dict[str, np.ndarray]:
    return {family.name: members for family, members in families_of(LAYOUT)}


def test_a_dead_gpu_stalls_its_groups_at_once_and_the_job_in_the_end(small: Fabric) -> None:
    seen = blast_radius(small, [small.gpus[5]], groups(), range(32))

    expected = {5}
    for members in groups().values():
        expected |= {int(r) for group in members if 5 in group for r in group}
    assert seen.dead_ranks == (5,)
    assert set(seen.stalled_ranks) == expected
    assert seen.in_the_end_ranks == 32


def test_a_dead_supernode_takes_its_ranks_wherever_they_sit(small: Fabric) -> None:
    seats = list(range(31, -1, -1))
    name = small.tier("supernode").domains[0].name

    seen = blast_radius(small, [name], groups(), seats)

    assert seen.dead_ranks == tuple(range(24, 32))


def test_a_gpu_without_its_nic_only_reaches_others_through_its_neighbours(small: Fabric) -> None:
    nic = next(n for n in small.graph[small.gpus[3]] if small.graph.nodes[n]["kind"] == "nic")

    alone = blast_radius(small, [nic], groups(), range(32))
    helped = blast_radius(small, [nic], groups(), range(32), Relayed.GO_ON)
    link = blast_radius(small, [(small.gpus[3], nic)], groups(), range(32))

    assert alone.relayed_ranks == link.relayed_ranks == (3,)
    assert 3 in alone.stalled_ranks
    assert helped.stalled_ranks == ()
    assert helped.slowed_ranks == (3,)


def test_a_gpu_off_its_scale_up_switch_keeps_the_way_over_its_nic(small: Fabric) -> None:
    # 450 GB/s to the switch are gone, 63 GB/s to its whole NIC are left
    seen = blast_radius(small, [(small.gpus[3], "sn00.switch")], groups(), range(32))

    assert seen.slowed_ranks == (3,)
    assert seen.least_links_share == pytest.approx(63 / 513)
    assert seen.stalled_ranks == ()


def test_one_spine_of_several_stalls_nobody_but_takes_its_share_of_the_uplinks(
    small: Fabric,
) -> None:
    spines = [n for n, kind in small.graph.nodes(data="kind") if kind == "spine"]
    if len(spines) < 2:
        small = generic_cluster(8, 256)
        spines = [n for n, kind in small.graph.nodes(data="kind") if kind == "spine"]

    seen = blast_radius(small, [spines[0]], {}, range(len(small.gpus)))

    assert seen.stalled_ranks == ()
    assert seen.least_uplinks_share == pytest.approx(1 - 1 / len(spines))


def test_two_planes_survive_one_leaf() -> None:
    fabric = load_cluster("hpn")
    leaf = next(n for n, kind in fabric.graph.nodes(data="kind") if kind == "leaf")

    seen = blast_radius(fabric, [leaf], {}, range(len(fabric.gpus)))

    assert seen.cut_off_ranks == ()
    assert seen.relayed_ranks == ()
    assert len(seen.slowed_ranks) > 0
    assert seen.least_links_share < 1


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("nowhere", "'nowhere': no such vertex, link or domain; there are sn00.gpu00, sn00.gpu01"),
        ("sn00.swich", "link or domain, did you mean 'sn00.switch'"),
        (("sn00.gpu00", "sn00.swich"), "no such link: 'sn00.swich' is no vertex, did you mean"),
        (("sn00.gpu00", "sn01.gpu00"), "sn00.gpu00--sn01.gpu00: no such link: these two are not"),
    ],
)
def test_an_unknown_part_is_refused_and_the_nearest_name_told(
    small: Fabric, part: str | tuple[str, str], said: str
) -> None:
    with pytest.raises(InputError, match=said):
        blast_radius(small, [part], {}, range(32))


def test_a_larger_supernode_needs_fewer_connections() -> None:
    layout = Layout(tp=8, ep=32, dp=128, pp=1, micro_batch=1, global_batch=128)
    families = [(f.collective, m) for f, m in families_of(layout, "deepseek-v3")]
    held = []
    for supernode in (8, 64, 384):
        homes = np.arange(1024) // supernode
        seen = layout_endpoints(families, homes, np.arange(1024) // 8, queue_pairs=16)
        held.append([t.connections for t in seen.transports])

    reliable, _, connectionless = zip(*held, strict=True)
    assert reliable[0] > reliable[1] >= reliable[2]
    assert all(c < d <= r for r, d, c in held)
    assert connectionless[0] > connectionless[1]


def test_peers_are_those_of_the_groups_that_leave_the_supernode() -> None:
    # 16 ranks, all-to-all of 8 over two supernodes of 8: each rank has 4 peers beyond, in 1 node
    groups_of_two_halves = np.array([[0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]])
    seen = layout_endpoints(
        [("all_to_all", groups_of_two_halves)], np.arange(16) // 8, np.arange(16) // 8
    )

    assert seen.peers == 4
    assert seen.peer_nodes == 1
    assert [t.all_connections for t in seen.transports] == [64, 16, 32]


def test_every_fault_of_an_endpoint_question_is_named() -> None:
    with pytest.raises(InputError) as refused:
        endpoint_state(-1, 5, queue_pairs=0, cache_bytes=float("nan"))

    assert len(refused.value.faults) == 3


@pytest.mark.parametrize("name", ["generic", "hgx-h100", "llama3-roce", "cloudmatrix384"])
def test_all_families_of_1024_gpus_are_shared_out_in_a_second(name: str) -> None:
    fabric = load_cluster(name)
    layout = Layout(tp=4, ep=64, dp=64, pp=4, micro_batch=1, global_batch=2048)
    families = families_of(layout, "deepseek-v3")
    homes = fabric.domain_index("supernode")

    start = time.process_time()
    flows = {
        f.name: group_flows(f.collective, f.payload_bytes, members, homes)
        for f, members in families
    }
    seen = share_links(fabric, flows)
    spent_s = time.process_time() - start

    assert sum(len(part) for part in flows.values()) > 250_000
    assert spent_s < 2.0  # 0.4 to 0.7 s alone on one core; room for a busy machine
    assert seen.bottleneck == seen.links[0].link
    assert seen.bound_s <= seen.shared_s * (1 + 1e-9)
    assert all(share.contention >= 1 - 1e-9 for share in seen.families)


def test_oversubscription_falls_out_of_the_routes() -> None:
    fabric = load_cluster("llama3-roce")  # 7 to 1 towards the core
    homes = fabric.domain_index("supernode")
    pods = fabric.tier("pod").domains
    n = min(len(pod.gpus) for pod in pods[:2])
    pairs = np.array([[a, b] for a, b in zip(pods[0].gpus[:n], pods[1].gpus[:n], strict=True)])
    pod = fabric.tier("cluster")

    seen = share_links(fabric, {"exchange": group_flows("all_reduce", 1e9, pairs, homes)})

    # every GPU of the pod sends out at once: each gets the tier's shared rate
    assert seen.families[0].shared_bytes_per_s == pytest.approx(pod.shared_bytes_per_s, rel=0.05)


def test_flows_without_a_choice_of_links_cannot_collide(small: Fabric) -> None:
    ring = group_flows("all_reduce", 1e9, [list(range(8))], small.domain_index("supernode"))

    assert share_links(small, {"tp": ring}).collisions is None


def test_a_placement_that_spreads_an_all_to_all_fails_the_gate_that_a_whole_one_passes() -> None:
    fabric = generic_cluster(16, 64)
    families = [("exchange", "all_to_all", np.arange(64).reshape(4, 16))]
    apart = [16 * (rank % 4) + rank // 4 for rank in range(64)]

    (whole,) = fabric_gates(fabric, families, range(64))
    (spread,) = fabric_gates(fabric, families, apart)

    assert (whole.tier, whole.degree, whole.passes, whole.family) == ("supernode", 0, True, "")
    # 12 of 16 sit elsewhere; at 50 GB/s each, 11 too many for 20 us; each has 8 x 512 KiB at most
    room = 1_289_062.5
    assert (spread.degree, spread.passes, spread.family) == (12, False, "exchange")
    assert spread.room_bytes == room
    assert spread.peak_bytes == pytest.approx(min(11 * 50e9 * 20e-6, 12 * 8 * 512 * 1024))
    assert spread.margin_share == pytest.approx(room / spread.peak_bytes - 1)
    assert spread.safe_degree == 2


def test_a_port_without_a_known_buffer_is_judged_by_an_assumed_one_and_says_so() -> None:
    fabric = load_cluster("hgx-h100", gpus=32)

    gates = fabric_gates(fabric, [("hop", "ring", np.arange(32).reshape(2, 16))], range(32))

    assert gates[0].room_bytes == 256 * 1024
    assert gates[0].passes
    assert [p.holds for p in gates[0].premises if "cluster's file" in p.states] == [False]


def test_four_thousand_flows_over_a_spine_take_little_memory() -> None:
    """Each spine leads to 128 leaves: which of them is next is found once a leaf, not once a GPU.

    Every GPU sends 1 byte to the one 1,024 on: its NIC carries it, at 50 GB/s.
    """
    fabric = generic_cluster(8, 4096)
    gpus = np.arange(4096)
    flows = Flows(sources=gpus, targets=(gpus + 1024) % 4096, sizes_bytes=np.ones(4096))
    tracemalloc.start()

    seen = share_links(fabric, {"ring": flows})

    assert tracemalloc.get_traced_memory()[1] < 100e6
    tracemalloc.stop()
    assert seen.bound_s == pytest.approx(1 / 50e9)


def test_flows_that_fan_out_too_far_are_refused_before_memory_is_taken(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(routes, "_MOST_ARCS", 100)
    monkeypatch.setattr(routes, "_LOOKED_AT_ONCE", 7)
    fabric = load_cluster("llama3-roce", gpus=256)
    gpus = np.arange(256)
    few = Flows(sources=gpus[:1], targets=gpus[200:201], sizes_bytes=np.ones(1))
    many = Flows(sources=gpus, targets=(gpus + 64) % 256, sizes_bytes=np.ones(256))

    assert share_links(fabric, {"one": few}).bound_s > 0
    with pytest.raises(InputError, match=r"fan out over .* links at one hop"):
        share_links(fabric, {"all": many})
