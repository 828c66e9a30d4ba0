"""NetQ's topology graph, as topograph asks it for one, to an ImportedFabric."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from planner.errors import SpecError
from topologies.imported_fabric import (
    MOST_VERTICES,
    ImportedFabric,
    ImportedHost,
    ImportedLink,
    ImportFinding,
)
from topologies.strict_json import json_value

_NAME = re.compile(r"[A-Za-z0-9_.:+-]{1,128}")
_DEEPEST = 8
_SHOWN = 20


def import_netq(text: str, name: str) -> ImportedFabric:
    """Return the graph: switches by tier, machines, and how many links join two of them.

    A device is a switch where it says so or stands in tier 1 or higher; all others are machines.
    The graph says nothing of GPUs and rates.

    Raises:
        SpecError: every fault; a graph without machines.
    """
    value = json_value(text, name)
    graphs = [one for one in (value if isinstance(value, list) else [value]) if _is_graph(one)]
    if not graphs:
        raise SpecError(
            f"{name}: expected NetQ's topology: a list of mappings with links and nodes"
        )
    devices = {
        str(device.get("id")): device
        for graph in graphs
        for device in _devices(graph["nodes"], _DEEPEST)
    }
    if len(devices) > MOST_VERTICES:
        raise SpecError(f"{name}: has {len(devices):,} devices: expected at most {MOST_VERTICES:,}")
    called, faults = _names(devices, name)
    links: list[ImportedLink] = []
    findings: list[ImportFinding] = []
    for graph in graphs:
        for i, link in enumerate(graph["links"]):
            ends = [link.get(key) for key in ("src", "target")] if isinstance(link, dict) else []
            count = link.get("size", 1) if isinstance(link, dict) else 0
            if len(ends) != 2 or type(count) is not int or not 1 <= count <= 100_000:
                faults.append(f"{name}: links[{i}]: expected src, target and a size of 1 or more")
            elif lost := [end for end in ends if str(end) not in called]:
                message = f"a link leads to {str(lost[0])[:60]!r}, which is no device: left out"
                findings.append(ImportFinding(severity="warning", where=name, message=message))
            else:
                a, b = (called[str(end)] for end in ends)
                links.append(ImportedLink(a=a, b=b, links=count))
            if len(faults) >= _SHOWN:
                raise SpecError(*faults)
    if faults:
        raise SpecError(*faults[:_SHOWN])
    switches = [called[ident] for ident, device in devices.items() if _is_switch(device)]
    linked = {end for link in links for end in (link.a, link.b)}
    hosts = [n for n in called.values() if n not in set(switches) and n in linked]
    return ImportedFabric(
        name="netq",
        kind="netq",
        provenance=f"NetQ topology {name}",
        hosts=tuple(ImportedHost(name=n, gpus=None, supernode=n) for n in hosts),
        switches=tuple(switches),
        links=tuple(one for one in links if {one.a, one.b} <= {*hosts, *switches}),
        findings=tuple(findings[:_SHOWN]),
    )


def _is_graph(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        isinstance(value.get(key), list) for key in ("links", "nodes")
    )


def _devices(nodes: Any, depth: int) -> Iterator[Mapping[str, Any]]:
    """Yield the devices in *nodes*, out of the tiers that hold them."""
    for node in nodes if isinstance(nodes, list) else ():
        if not isinstance(node, Mapping):
            continue
        if depth and isinstance(node.get("compounded_nodes"), list):
            yield from _devices(node["compounded_nodes"], depth - 1)
        elif node.get("node_type", "device") == "device" and "id" in node:
            yield node


def _names(devices: Mapping[str, Mapping[str, Any]], name: str) -> tuple[dict[str, str], list[str]]:
    """Return what each device is called by its id, and the faults."""
    called: dict[str, str] = {}
    faults, seen = [], set()
    for ident, device in devices.items():
        label = str(device.get("name") or ident)
        if _NAME.fullmatch(label) is None:
            faults.append(f"{name}: device {label[:60]!r}: expected letters, digits and _ . : + -")
        elif label in seen:
            faults.append(f"{name}: two devices are called {label!r}")
        seen.add(label)
        called[ident] = label
    return called, faults


def _is_switch(device: Mapping[str, Any]) -> bool:
    tier = device.get("tier", -1)
    return device.get("device_type") == "switch" or (type(tier) is int and tier >= 1)
