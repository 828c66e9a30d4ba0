"""The part of each kind that is named as the worst, against the failure of every part."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

from planner.fabric import Fabric
from planner.network.blast import blast_radius
from planner.network.worst_parts import worst_of_each_kind
from topologies.fabric_catalogue import generic_cluster, load_cluster

RANKS = 24


def uneven_groups(draw: random.Random) -> dict[str, np.ndarray]:
    """Return families of which each rank is in some groups, of sizes that differ."""
    groups = {}
    for number in range(draw.randint(1, 3)):
        order = draw.sample(range(RANKS), RANKS)
        for size in draw.sample([2, 3, 5, 7], draw.randint(1, 2)):
            groups[f"family{number}.{size}"] = np.array([order[:size]])
            order = order[size:]
    return groups


def stalled(
    fabric: Fabric, part: str | tuple[str, str], groups: dict[str, np.ndarray], seats: Sequence[int]
) -> int:
    return len(blast_radius(fabric, [part], groups, seats).stalled_ranks)


@pytest.mark.parametrize("seed", range(20))
def test_no_gpu_nic_or_supernode_stalls_more_ranks_than_the_one_named(seed: int) -> None:
    draw = random.Random(seed)
    fabric = generic_cluster(4, 32) if seed % 2 else load_cluster("hgx-h100", gpus=32)
    groups, seats = uneven_groups(draw), draw.sample(range(32), RANKS)

    named = {one.kind: one for one in worst_of_each_kind(fabric, groups, seats)}

    kind_of = dict(fabric.graph.nodes(data="kind"))
    for kind in ("gpu", "nic"):
        every = [name for name, of in kind_of.items() if of == kind]
        most = max(stalled(fabric, part, groups, seats) for part in every)
        assert stalled(fabric, named[kind].part, groups, seats) == most
        assert named[kind].parts == len(every) == 32
    supernodes = [domain.name for domain in fabric.tier("supernode").domains]
    most = max(stalled(fabric, name, groups, seats) for name in supernodes)
    assert stalled(fabric, named["supernode"].part, groups, seats) == most


def test_the_leaf_named_has_the_ranks_whose_groups_are_widest() -> None:
    fabric = load_cluster("llama3-roce", gpus=64)  # a leaf for 16 GPUs
    groups = {"wide": np.array([[16, 48, 49, 50, 51, 52]]), "narrow": np.array([[0, 1], [40, 41]])}

    named = {one.kind: one for one in worst_of_each_kind(fabric, groups, range(64))}

    beyond = {
        far for nic in fabric.graph[fabric.gpus[16]] for far in fabric.graph[nic]
        if fabric.graph.nodes[far]["kind"] == "leaf"
    }  # fmt: skip
    assert beyond == {named["leaf"].part}
    assert named["gpu"].part == fabric.gpus[16]
