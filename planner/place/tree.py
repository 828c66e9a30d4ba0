"""The tree of domains: how the domains of one tier lie in those of the next.

Tiers are nested (``Fabric`` refuses others), so who sits where at one tier says it for all outer
ones. What is not nested, such as the rails that cut across supernodes, is no tier of a Fabric.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.fabric import Fabric


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """Domains of every tier, innermost tier first.

    Args:
        names: of the tiers.
        capacities: seats of each domain, by tier [1].
        parents: the domain of the next tier that each domain lies in; one less than tiers.
        uplinks_bytes_per_s: of each domain, by tier [bytes/s].
    """

    names: tuple[str, ...]
    capacities: tuple[tuple[int, ...], ...]
    parents: tuple[NDArray[np.int64], ...]
    uplinks_bytes_per_s: tuple[tuple[float, ...], ...]

    def outward(self, home: NDArray[np.int64], inner: int, outer: int) -> NDArray[np.int64]:
        """Return the domain at tier *outer* of what sits in domains *home* at tier *inner*."""
        for parents in self.parents[inner:outer]:
            home = parents[home]
        return home

    def regular(self, tier: int, cells: int) -> bool:
        """Return whether *cells* cells fill the tier's domains, and all are of one size."""
        sizes = self.capacities[tier]
        return len(set(sizes)) == 1 and sum(sizes) == cells


def tree_of(fabric: Fabric) -> Tree:
    """Return the tree of *fabric*'s domains.

    >>> from topologies.fabric_catalogue import load_cluster
    >>> tree_of(load_cluster("cloudmatrix384")).capacities[1:]
    ((384, 384, 256), (1024,))
    """
    indices = [fabric.domain_index(tier.name) for tier in fabric.tiers]
    parents = []
    for inner, outer, tier in zip(indices[:-1], indices[1:], fabric.tiers[:-1], strict=True):
        parent = np.empty(len(tier.domains), np.int64)
        parent[inner] = outer
        parents.append(parent)
    return Tree(
        names=tuple(tier.name for tier in fabric.tiers),
        capacities=tuple(fabric.capacities(tier.name) for tier in fabric.tiers),
        parents=tuple(parents),
        uplinks_bytes_per_s=tuple(
            tuple(domain.uplink_bytes_per_s for domain in tier.domains) for tier in fabric.tiers
        ),
    )


def kinds_of(tree: Tree, start: int) -> list[NDArray[np.int64]]:
    """Return the kind of each domain, by tier from *start*: equal kinds hold the same subtree.

    Subtrees are looked into down to tier *start*; there, size and uplink decide.
    """
    kinds: list[NDArray[np.int64]] = []
    for tier in range(start, len(tree.names)):
        inside: Sequence[tuple[int, ...]] = [()] * len(tree.capacities[tier])
        if kinds:
            below: list[list[int]] = [[] for _ in tree.capacities[tier]]
            for parent, kind in zip(tree.parents[tier - 1], kinds[-1], strict=True):
                below[parent].append(int(kind))
            inside = [tuple(sorted(found)) for found in below]
        shapes = list(
            zip(tree.capacities[tier], tree.uplinks_bytes_per_s[tier], inside, strict=True)
        )
        number: dict[tuple[int, float, tuple[int, ...]], int] = {}
        kinds.append(np.array([number.setdefault(shape, len(number)) for shape in shapes]))
    return kinds
