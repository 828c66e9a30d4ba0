"""Even all-to-all on meshes and toruses, against every pair routed one by one."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import permutations, product
from math import prod

import pytest

from planner.fabric import Fabric
from topologies.fabric_catalogue import load_cluster, load_spec
from topologies.fabric_direct import grid_links
from topologies.fabric_network_spec import TorusSpec
from topologies.fabric_scale_up import supernode_rates

Place = tuple[int, ...]
Load = Counter[tuple[Place, Place]]


def steps(length: int, a: int, b: int, wraps: bool) -> list[tuple[float, int]]:
    """Return (share, direction) of the shortest ways from a to b along one axis."""
    ahead = (b - a) % length
    if not wraps:
        return [(1.0, 1 if b > a else -1)]
    if 2 * ahead == length:
        return [(0.5, 1), (0.5, -1)]
    return [(1.0, 1 if 2 * ahead < length else -1)]


def load_of(dims: Place, wraps: bool) -> Load:
    """Return what each link carries when every place sends 1 to every other, axis by axis."""
    load: Load = Counter()
    for start, end in permutations(product(*map(range, dims)), 2):
        here = list(start)
        for axis, length in enumerate(dims):
            if here[axis] == end[axis]:
                continue
            for share, way in steps(length, here[axis], end[axis], wraps and length > 2):
                at = here[axis]
                while at != end[axis]:
                    onward = (at + way) % length
                    a, b = list(here), list(here)
                    a[axis], b[axis] = at, onward
                    load[tuple(a), tuple(b)] += share  # type: ignore[assignment]
                    at = onward
            here[axis] = end[axis]
    return load


@pytest.mark.parametrize("gpus", [64 * 4, 64, 32])
def test_a_torus_gives_each_gpu_what_its_busiest_link_leaves(gpus: int) -> None:
    spec = load_spec("tpu-torus", supernode=8, gpus=gpus)
    assert isinstance(spec.network, TorusSpec)
    dims = tuple(n * b for n, b in zip(spec.network.dims, spec.supernode.dims, strict=True))
    fabric = load_cluster("tpu-torus", supernode=8, gpus=gpus)

    busiest = max(load_of(dims, wraps=True).values()) / (gpus - 1)

    uplink_share = min(d.uplink_bytes_per_s for d in fabric.tier("supernode").domains) / 8
    expected = min(100e9 / busiest, uplink_share)
    assert fabric.tier("cluster").shared_bytes_per_s == pytest.approx(expected)


@pytest.mark.parametrize("dims", [(4, 4, 4), (3, 2), (5,), (2, 2, 2)])
def test_an_open_box_gives_each_gpu_what_its_busiest_link_leaves(dims: Place) -> None:
    filed = load_spec("tpu-torus").supernode
    size = prod(dims)
    box = replace(
        filed, sizes=(size,), size=size, dims=dims, board_gpus=size,
        bytes_per_s=200e9 * len(dims), wraps=False,
    )  # fmt: skip

    busiest = max(load_of(dims, wraps=False).values()) / (size - 1)

    rates = supernode_rates(box)
    assert rates.shared_bytes_per_s == pytest.approx(min(100e9 / busiest, rates.bytes_per_s))


def mesh_cluster(racks: int) -> Fabric:
    return load_cluster("ub-mesh-64", gpus=64 * racks)


@pytest.mark.parametrize(("racks", "dims"), [(16, (4, 4)), (4, (2, 2)), (3, (3, 1))])
def test_a_mesh_of_racks_gives_each_gpu_what_its_busiest_bundle_leaves(
    racks: int, dims: Place
) -> None:
    fabric = mesh_cluster(racks)
    bundle = fabric.graph.edges["sn00.mesh", "sn01.mesh"]["capacity_bytes_per_s"]
    load: Load = Counter()
    for start, end in permutations(product(*map(range, dims)), 2):
        for corner in ((start[0], end[1]), (end[0], start[1])):  # half goes one way, half the other
            for a, b in ((start, corner), (corner, end)):
                load[a, b] += 0.5 * (a != b)  # type: ignore[assignment]

    busiest = max(load.values()) * 64 / (racks - 1)

    uplink_share = fabric.tier("supernode").domains[0].uplink_bytes_per_s / 64
    expected = min(bundle / busiest, uplink_share)
    assert fabric.tier("cluster").shared_bytes_per_s == pytest.approx(expected)


def test_a_grid_has_the_links_of_a_torus_once_each() -> None:
    heads, tails = grid_links((4, 2, 3), (True, True, False))

    pairs = {frozenset(p) for p in zip(heads.tolist(), tails.tolist(), strict=True)}
    assert len(pairs) == len(heads) == 24 + 12 + 16
