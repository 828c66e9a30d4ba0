"""What a fabric is made of: GPUs, NICs, switches and links, counted on its graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

KINDS = ("gpu", "nic", "scale_up_switch", "leaf", "spine", "core")
"""Kinds of parts, the innermost first."""
_PORTS = {"leaf": "nic_ports", "spine": "radix", "core": "radix"}


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
class SwitchPorts:
    """Ports towards the GPUs that the switches of one kind have, and those with a link.

    Args:
        item: kind of switch: ``leaf``, ``spine`` or ``core``.
        ports: of a leaf those for NICs, of others all but uplinks and those to their like [1].
        used: of them, how many have a link [1].
    """

    item: str
    ports: int
    used: int

    @property
    def unused_share(self) -> float:
        """Ports that are bought and lead nowhere, 0 to 1."""
        return 1.0 - self.used / self.ports


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """A fabric's bill, without prices.

    Args:
        vertices: physical parts by kind; a vertex that stands for several switches counts as them.
        links: physical links by sort, innermost first.
        ports: of switches outside supernodes, innermost first; a kind is left out where nobody said
            how many ports one has.
    """

    vertices: Mapping[str, int]
    links: tuple[LinkCount, ...]
    ports: tuple[SwitchPorts, ...]


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
    return Parts(vertices=MappingProxyType(known), links=links, ports=_ports(graph, links))


def _ports(graph: Any, links: tuple[LinkCount, ...]) -> tuple[SwitchPorts, ...]:
    """Return the ports towards the GPUs of each kind of switch outside supernodes."""
    found: list[SwitchPorts] = []
    joined: Counter[tuple[str, str]] = Counter()
    for one in links:
        inner, outer = one.ends.split("-")
        joined[inner, outer] += one.links
    for kind, attribute in _PORTS.items():
        switches = [vertex for _, vertex in graph.nodes(data=True) if vertex["kind"] == kind]
        each = [vertex.get("units", 1) * vertex.get(attribute, 0) for vertex in switches]
        if not each or 0 in each:
            continue
        used = sum(count for (inner, outer), count in joined.items() if outer == kind != inner)
        up = sum(count for (inner, outer), count in joined.items() if inner == kind != outer)
        away = 0 if attribute == "nic_ports" else up + 2 * joined[kind, kind]
        ports = sum(each) - away
        found.append(SwitchPorts(item=kind, ports=max(ports, used), used=used))
    return tuple(one for one in found if one.ports)


def _rank(kind: str) -> int:
    return KINDS.index(kind)
