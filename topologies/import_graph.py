"""A cluster's graph in NetworkX's node-link JSON or GraphML to an ImportedFabric."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any

from planner.errors import SpecError
from planner.fabric_faults import must_be_safe_name
from topologies.imported_fabric import ImportedFabric, ImportedHost, ImportedLink
from topologies.strict_json import json_value
from topologies.xml_tree import xml_root

_NS = "{http://graphml.graphdrawing.org/xmlns}"
_SWITCH_KINDS = {"leaf", "spine", "core", "switch"}
_SHOWN = 20
_KINDS = {"gpu", "nic", "scale_up_switch", *_SWITCH_KINDS}
Attributes = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Edge:
    a: str
    b: str
    about: Attributes


@dataclass(frozen=True, slots=True)
class _Graph:
    about: Attributes
    nodes: dict[str, Attributes]
    edges: list[_Edge]


def import_graph(text: str, name: str) -> ImportedFabric:
    """Return the cluster in a graph whose vertices have ``kind`` and edges a capacity.

    A ``gpu`` has ``host`` (else ``board``, else ``supernode``) and ``supernode``; one that is
    ``usable: false``, being dead or another job's, is left out. An edge has
    ``capacity_bytes_per_s`` (all parallel links, one direction) and may have ``links``.

    Raises:
        SpecError: every fault.
    """
    graph = _graphml(text, name) if text.lstrip().startswith("<") else _node_link(text, name)
    faults = []
    for vertex, data in graph.nodes.items():
        faults += must_be_safe_name(f"{name}: vertex", vertex)
        if data.get("kind") not in _KINDS:
            seen = str(data.get("kind"))[:40]
            faults.append(f"{name}: {vertex[:60]!r}: kind={seen!r}: expected {sorted(_KINDS)}")
    for edge in graph.edges:
        faults += [
            f"{name}: edge to {end[:60]!r}, no vertex"
            for end in (edge.a, edge.b)
            if end not in graph.nodes
        ]
    if faults:
        raise SpecError(*faults[:20])
    return _fabric(_usable(graph), name)


def _usable(graph: _Graph) -> _Graph:
    """Return *graph* without the GPUs that may not be used, and what hangs on them alone."""
    gone = {v for v, data in graph.nodes.items() if data.get("usable", "").lower() == "false"}
    if not gone:
        return graph
    gpus_of: dict[str, set[str]] = defaultdict(set)
    for edge in graph.edges:
        for nic, gpu in ((edge.a, edge.b), (edge.b, edge.a)):
            if graph.nodes[nic]["kind"] == "nic" and graph.nodes[gpu]["kind"] == "gpu":
                gpus_of[nic].add(gpu)
    gone |= {nic for nic, gpus in gpus_of.items() if gpus <= gone}
    return _Graph(
        graph.about,
        {v: data for v, data in graph.nodes.items() if v not in gone},
        [one for one in graph.edges if one.a not in gone and one.b not in gone],
    )


def _fabric(graph: _Graph, name: str) -> ImportedFabric:
    kind = {vertex: data["kind"] for vertex, data in graph.nodes.items()}
    owner: dict[str, str] = {}
    supernode: dict[str, str] = {}
    sizes: Counter[str] = Counter()
    for vertex, data in graph.nodes.items():
        if kind[vertex] == "gpu":
            label = data.get("supernode", vertex)
            host = data.get("host") or f"host-{data.get('board', label)}"
            owner[vertex] = host
            supernode.setdefault(host, label if label == host else f"sn-{label}")
            sizes[host] += 1
    near: dict[str, list[str]] = defaultdict(list)
    for edge in graph.edges:
        near[edge.a].append(edge.b)
        near[edge.b].append(edge.a)
    for vertex, one in kind.items():
        if one == "nic":
            for gpu in [v for v in near[vertex] if kind[v] == "gpu"]:
                owner[vertex] = owner[gpu]
    links, inner = [], []
    for edge in graph.edges:
        a, b, data = edge.a, edge.b, edge.about
        rate = _rate(data, f"{name}: edge {a} - {b}")
        kinds = {kind[a], kind[b]}
        if "scale_up_switch" in kinds:
            inner += [rate] if "gpu" in kinds else []
            continue
        ends = [owner.get(end, end) for end in (a, b)]
        if ends[0] == ends[1] or (kinds == {"gpu"} and supernode.get(ends[0])):
            continue
        count = data.get("links", "1")
        whole = int(count) if count.isascii() and count.isdigit() and 0 < len(count) < 7 else 1
        links.append(ImportedLink(a=ends[0], b=ends[1], links=whole, bytes_per_s=rate))
    return ImportedFabric(
        name=graph.about.get("name") or "graph",
        kind="graph",
        provenance=f"graph {name}",
        hosts=tuple(
            ImportedHost(name=host, gpus=sizes[host], supernode=supernode[host]) for host in sizes
        ),
        switches=tuple(v for v, one in kind.items() if one in _SWITCH_KINDS),
        links=tuple(links),
        scale_up_bytes_per_s=min(inner) if inner else None,
        accelerator=graph.about.get("accelerator", ""),
        assumed={"latency": "start-ups of the graph's edges are not read"},
    )


def _rate(data: Attributes, where: str) -> float:
    text = data.get("capacity_bytes_per_s", "")
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not (isfinite(rate) and 0 < rate < 1e18):
        raise SpecError(f"{where}: capacity_bytes_per_s={text[:30]!r}: expected a number above 0")
    return rate


def _node_link(text: str, name: str) -> _Graph:
    """Return the graph of node-link JSON; large ones need the standard library's speed."""
    value = json_value(text, name)
    if not isinstance(value, dict):
        raise SpecError(f"{name}:1: expected a mapping with nodes and links")
    key = "edges" if "edges" in value else "links"
    faults = [
        f"{name}: {part}: expected a list"
        for part in ("nodes", key)
        if not isinstance(value.get(part), list)
    ]
    if faults:
        raise SpecError(*faults)
    nodes: dict[str, Attributes] = {}
    for i, item in enumerate(value["nodes"]):
        data = _plain(item)
        if "id" not in data:
            faults.append(f"{name}: nodes[{i}]: expected a node with an id")
        elif data["id"] in nodes:
            faults.append(f"{name}: nodes[{i}]: node {data['id'][:60]!r} is described twice")
        else:
            nodes[data["id"]] = data
        if len(faults) >= _SHOWN:
            break
    links = []
    for i, item in enumerate(value[key]):
        data = _plain(item)
        if len(faults) >= _SHOWN:
            break
        if "source" not in data or "target" not in data:
            faults.append(f"{name}: {key}[{i}]: expected an edge with source and target")
        else:
            links.append(_Edge(data["source"], data["target"], data))
    if faults:
        raise SpecError(*faults)
    return _Graph(_plain(value.get("graph")), nodes, links)


def _plain(value: object) -> Attributes:
    if not isinstance(value, Mapping):
        return {}
    return {str(k): str(v) for k, v in value.items() if isinstance(v, str | int | float)}


def _graphml(text: str, name: str) -> _Graph:
    root = xml_root(text, name)
    keys = {k.get("id"): str(k.get("attr.name", "")) for k in root.iter(f"{_NS}key")}
    graph = root.find(f"{_NS}graph")
    if graph is None:
        raise SpecError(f"{name}: has no <graph> of GraphML's namespace")

    def data_of(element: Any) -> Attributes:
        return {
            keys.get(d.get("key"), ""): str(d.text or "") for d in element if d.tag == f"{_NS}data"
        }

    nodes = {str(n.get("id", "")): data_of(n) for n in graph.findall(f"{_NS}node")}
    links = [
        _Edge(str(e.get("source", "")), str(e.get("target", "")), data_of(e))
        for e in graph.findall(f"{_NS}edge")
    ]
    return _Graph(data_of(graph), nodes, links)
