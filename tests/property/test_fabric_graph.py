"""Laws that tie a fabric's tiers to its graph, on clusters of every kind and odd sizes."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from math import prod

import networkx as nx
import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from planner.errors import SpecError
from planner.fabric import Accelerator, Domain, Fabric, Nic
from planner.fabric_walks import islands
from topologies.fabric_degraded import pushed_up_bytes_per_s
from topologies.fabric_graph import build_fabric
from topologies.fabric_network_spec import (
    ClosSpec,
    DragonflySpec,
    MeshSpec,
    Network,
    SwitchTierSpec,
    TorusSpec,
)
from topologies.fabric_spec import DeadParts, FabricSpec, SupernodeSpec

CHIP = Accelerator(
    name="chip",
    peak_flops_per_s={"bf16": 1e15},
    memory_bytes=80e9,
    memory_bytes_per_s=3e12,
    efficiency_share={"bf16": 0.8},
    memory_efficiency_share=0.9,
)
NIC = Nic(line_bytes_per_s=50e9, in_flight=8, transaction_bytes=524288, turnaround_s=2e-5)
SLOW = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def spec_of(
    supernode: SupernodeSpec, network: Network, dead: DeadParts | None = None
) -> FabricSpec:
    return FabricSpec(
        name="drawn",
        accelerator=CHIP,
        supernode=supernode,
        nic=NIC,
        endpoint_latency_s=2e-6,
        pcie_bytes_per_s=63e9,
        network=network,
        network_label="drawn",
        job_gpus=1,
        dead=dead or DeadParts(),
    )


@st.composite
def switched_supernodes(draw: st.DrawFn) -> SupernodeSpec:
    size = draw(st.integers(1, 12))
    count = draw(st.integers(1, 8))
    plain = SupernodeSpec(
        sizes=(size,) * (count - 1) + (draw(st.integers(1, size)),),
        size=size,
        kind=draw(st.sampled_from(["switched", "full_mesh"])),
        bytes_per_s=450e9,
        latency_s=3e-6,
        links=18,
        switches=4,
        board_gpus=draw(st.integers(1, size)),
    )
    if draw(st.booleans()):
        return plain
    return replace(
        plain, kind="switched", board_bytes_per_s=450e9, board_latency_s=1e-6, board_switches=2
    )


def tier_spec(**fields: float) -> SwitchTierSpec:
    return SwitchTierSpec(radix=64, hop_latency_s=4e-7, **fields)  # type: ignore[arg-type]


@st.composite
def fat_trees(draw: st.DrawFn) -> FabricSpec:
    supernode = draw(switched_supernodes())
    leaf = tier_spec(
        holds=draw(st.integers(1, 24)),
        uplinks=draw(st.integers(4, 16)),
        uplink_bytes_per_s=draw(st.sampled_from([25e9, 50e9])),
    )
    pods = draw(st.booleans())
    spine = tier_spec(
        holds=draw(st.integers(1, 40)) if pods else 0,
        uplinks=draw(st.integers(4, 16)) if pods else 0,
        uplink_bytes_per_s=50e9,
    )
    network = ClosSpec(
        rails=draw(st.integers(1, supernode.board_gpus)),
        planes=draw(st.sampled_from([1, 1, 2])),
        spine_scope=draw(st.sampled_from(["shared", "rail"])),
        leaf=leaf,
        spine=spine,
        core=tier_spec(),
    )
    dead = draw(st.sets(st.integers(0, supernode.gpus - 1), max_size=min(3, supernode.gpus - 1)))
    return spec_of(supernode, network, DeadParts(gpus=tuple(sorted(dead))))


@st.composite
def rail_only(draw: st.DrawFn) -> FabricSpec:
    supernode = replace(draw(switched_supernodes()), kind="switched")
    network = ClosSpec(
        rails=draw(st.integers(1, supernode.board_gpus)),
        planes=1,
        spine_scope="none",
        leaf=SwitchTierSpec(radix=128, hop_latency_s=4e-7, holds=128),
    )
    return spec_of(supernode, network)


@st.composite
def meshes(draw: st.DrawFn) -> FabricSpec:
    board, boards = draw(st.integers(2, 4)), draw(st.integers(2, 4))
    dims = (draw(st.integers(1, 4)), draw(st.integers(1, 3)))
    size = board * boards
    supernode = SupernodeSpec(
        sizes=(size,) * prod(dims),
        size=size,
        kind="mesh_2d",
        bytes_per_s=300e9,
        latency_s=1e-6,
        links=14,
        board_gpus=board,
        board_bytes_per_s=draw(st.sampled_from([200e9, 300e9])),
        board_latency_s=1e-6,
    )
    mesh = MeshSpec(dims=dims, hop_latency_s=1e-6, links=16, switches=4, radix=512)
    return spec_of(supernode, mesh)


@st.composite
def toruses(draw: st.DrawFn) -> FabricSpec:
    axes = draw(st.integers(2, 3))
    box = tuple(draw(st.lists(st.integers(1, 3), min_size=axes, max_size=axes)))
    grid = tuple(draw(st.lists(st.integers(1, 3), min_size=axes, max_size=axes)))
    supernode = SupernodeSpec(
        sizes=(prod(box),) * prod(grid),
        size=prod(box),
        kind="torus",
        bytes_per_s=200e9 * axes,
        latency_s=1e-6,
        links=2 * axes,
        board_gpus=prod(box),
        dims=box,
        wraps=False,
    )
    assume(prod(box) > 1)
    return spec_of(supernode, TorusSpec(dims=grid))


@st.composite
def dragonflies(draw: st.DrawFn) -> FabricSpec:
    supernode = replace(draw(switched_supernodes()), kind="switched")
    leaf = tier_spec(holds=draw(st.integers(4, 16)), uplinks=8, uplink_bytes_per_s=50e9)
    spine = tier_spec(
        holds=draw(st.integers(8, 48)),
        switches=draw(st.integers(0, 4)),
        uplinks=draw(st.integers(8, 32)),
        uplink_bytes_per_s=50e9,
    )
    return spec_of(supernode, DragonflySpec(leaf=leaf, spine=spine))


CLUSTERS = st.one_of(fat_trees(), rail_only(), meshes(), toruses(), dragonflies())


def built(spec: FabricSpec) -> Fabric:
    """Return the fabric, or draw another one where the radix cannot join so many switches."""
    try:
        fabric = build_fabric(spec)
        assert fabric.graph is not None
    except SpecError as error:
        assume(not any(text in str(error) for text in ("network", "cuts off")))
        raise
    return fabric


@SLOW
@given(CLUSTERS)
def test_the_domains_of_a_tier_are_what_its_links_and_inner_ones_keep_connected(
    spec: FabricSpec,
) -> None:
    fabric = built(spec)

    kept: set[str] = set()
    for tier in fabric.tiers:
        kept.add(tier.name)
        inside = nx.Graph((a, b) for a, b, name in fabric.graph.edges(data="tier") if name in kept)
        inside.add_nodes_from(fabric.gpus)
        number = {name: i for i, name in enumerate(fabric.gpus)}
        found = {
            frozenset(number[v] for v in part if v in number)
            for part in nx.connected_components(inside)
        } - {frozenset()}
        assert found == {frozenset(d.gpus) for d in tier.domains}


@SLOW
@given(CLUSTERS)
def test_an_uplink_is_what_following_the_links_upward_finds(spec: FabricSpec) -> None:
    fabric = built(spec)

    for tier in fabric.tiers[:-1]:
        home = {fabric.gpus[g]: d for d, x in enumerate(tier.domains) for g in x.gpus}
        measured = pushed_up_bytes_per_s(fabric.graph, home, len(tier.domains))
        stated = [d.uplink_bytes_per_s for d in tier.domains]
        assert measured == pytest.approx(stated, rel=1e-9)


def least_cut_bytes_per_s(fabric: Fabric, domain: Domain) -> float:
    """Return the least capacity of links that part the GPUs of *domain* from the others."""
    flow = nx.Graph()
    flow.add_weighted_edges_from(fabric.graph.edges(data="capacity_bytes_per_s"), "capacity")
    inside = set(domain.gpus)
    for number, gpu in enumerate(fabric.gpus):  # an edge without a capacity carries any rate
        flow.add_edge("inside" if number in inside else "outside", gpu)
    return float(nx.minimum_cut_value(flow, "inside", "outside"))


@settings(SLOW, max_examples=20)
@given(CLUSTERS)
def test_no_cut_is_wider_than_the_uplink_of_the_domain(spec: FabricSpec) -> None:
    fabric = built(spec)

    for tier in fabric.tiers[:-1]:
        for domain in tier.domains[:2] + tier.domains[-1:]:
            cut = least_cut_bytes_per_s(fabric, domain)
            assert 0 < cut <= domain.uplink_bytes_per_s * (1 + 1e-9)


@SLOW
@given(CLUSTERS)
def test_all_gpus_of_a_domain_together_send_no_more_than_its_uplink(spec: FabricSpec) -> None:
    fabric = built(spec)

    for inner, tier in pairwise(fabric.tiers):
        if inner.name == "board":
            continue
        for domain in inner.domains:
            together = tier.shared_bytes_per_s * len(domain.gpus)
            assert together <= domain.uplink_bytes_per_s * (1 + 1e-9)


@SLOW
@given(CLUSTERS)
def test_every_cluster_is_connected_and_shares_no_more_than_it_gives_alone(
    spec: FabricSpec,
) -> None:
    fabric = built(spec)

    assert len(islands(fabric.graph, fabric.gpus)) == 1
    for tier in fabric.tiers:
        assert tier.shared_bytes_per_s <= tier.bytes_per_s * (1 + 1e-12)
        assert tier.pair_bytes_per_s <= tier.bytes_per_s * (1 + 1e-12)


@SLOW
@given(fat_trees(), st.data())
def test_no_walk_of_a_fat_tree_takes_longer_than_the_tier_where_it_turns(
    spec: FabricSpec, data: st.DataObject
) -> None:
    fabric = built(spec)
    a, b = (data.draw(st.integers(0, len(fabric.gpus) - 1)) for _ in range(2))
    network = spec.network
    assert isinstance(network, ClosSpec)
    assume(a != b and (network.rails == 1 or network.spine_scope == "shared"))

    walk = fabric.walk(a, b)

    taken = sum(fabric.graph.edges[x, y]["latency_s"] for x, y in pairwise(walk))
    turns = next(t for t in fabric.tiers if np.equal(*fabric.domain_index(t.name)[[a, b]]))
    across_rails_s = 2 * 4e-7 if network.rails > 1 else 0.0
    assert taken <= turns.latency_s + across_rails_s + 1e-12


@SLOW
@given(fat_trees())
def test_links_of_a_tier_of_switches_never_exceed_their_ports(spec: FabricSpec) -> None:
    fabric = built(spec)

    for name, vertex in fabric.graph.nodes(data=True):
        if vertex["kind"] in {"leaf", "spine", "core"}:
            used = sum(link["links"] for link in fabric.graph[name].values())
            assert used <= vertex["radix"]


@SLOW
@given(fat_trees(), st.sampled_from([1.5, 2.0, 4.0]))
def test_wider_uplinks_never_slow_a_tier(spec: FabricSpec, factor: float) -> None:
    assert isinstance(spec.network, ClosSpec)
    leaf = spec.network.leaf
    wide = replace(leaf, uplink_bytes_per_s=leaf.uplink_bytes_per_s * factor)

    before, after = built(spec), built(replace(spec, network=replace(spec.network, leaf=wide)))

    for narrow_tier, wide_tier in zip(before.tiers, after.tiers, strict=True):
        assert wide_tier.shared_bytes_per_s >= narrow_tier.shared_bytes_per_s * (1 - 1e-12)
