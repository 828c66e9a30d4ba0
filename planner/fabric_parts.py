"""What a fabric is made of: GPUs, NICs, switches and links, counted on its graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

KINDS = ("gpu", "nic", "scale_up_switch", "leaf", "spine", "core")
"""Kinds of parts, the innermost first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkCount:
    """Physical links of one sort.

    Args:
        ends: kinds of the two ends, the inner one first, e.g. ``leaf-spine``.
        tier: the tier they run in.
        links: how many [1].
        link_bytes_per_s: rate of one, one direction [bytes/s].
    """

    ends: str
    tier: str
    links: int
    link_bytes_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A fabric's bill, without prices.

    Args:
        vertices: physical parts by kind; a vertex that stands for several switches counts as them.
        links: physical links by sort, innermost first.
    """

    vertices: Mapping[str, int]
    links: tuple[LinkCount, ...]


def parts_of(graph: Any) -> Parts:
    """Return what *graph* is made of; dead parts are not in it.

    >>> import networkx as nx
    >>> pair = nx.Graph()
    >>> pair.add_nodes_from(["a", "b"], kind="gpu")
    >>> pair.add_edge("a", "b", capacity_bytes_per_s=100e9, tier="supernode", links=2)
    >>> parts_of(pair).links[0]
    LinkCount(ends='gpu-gpu', tier='supernode', links=2, link_bytes_per_s=50000000000.0)
    """
    counts: Counter[str] = Counter()
    for _, vertex in graph.nodes(data=True):
        counts[vertex["kind"]] += vertex.get("units", 1)
    kinds = dict(graph.nodes(data="kind"))
    sorts: Counter[tuple[int, int, str, float]] = Counter()
    for a, b, link in graph.edges(data=True):
        inner, outer = sorted((_rank(kinds[a]), _rank(kinds[b])))
        count = link.get("links", 1)
        sorts[inner, outer, link["tier"], link["capacity_bytes_per_s"] / count] += count
    links = tuple(
        LinkCount(
            ends=f"{KINDS[inner]}-{KINDS[outer]}", tier=tier, links=count, link_bytes_per_s=rate
        )
        for (inner, outer, tier, rate), count in sorted(sorts.items())
    )
    known = {kind: counts[kind] for kind in KINDS if counts[kind]}
    return Parts(vertices=MappingProxyType(known), links=links)


def _rank(kind: str) -> int:
    return KINDS.index(kind)
