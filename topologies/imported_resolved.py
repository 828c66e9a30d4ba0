"""An ImportedFabric with nothing left to borrow, and that as a cluster file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

from planner.documents import yaml_text
from planner.errors import SpecError
from planner.units import parse_rate, parse_time
from topologies.fabric_from_import import JOINED, FabricBuild
from topologies.host_lists import fold_hosts
from topologies.imported_fabric import Borrowed, ImportedFabric, ImportedHost, ImportedLink
from topologies.imported_links import is_nic, safe_name

_HEADER = """\
# A cluster that `planner topology import` read from another file. `--cluster` takes this one.
# Rates are of one direction; those of links are of all parallel ones together.
"""


def resolved(found: ImportedFabric, borrowed: Borrowed) -> ImportedFabric:
    """Return *found* with every number said that a Fabric needs; what was borrowed is in assumed.

    Raises:
        SpecError: see ``fabric_from_import``.
    """
    build = FabricBuild(found, borrowed)
    edges = build.edges()
    ends = set(build.gpus_of)
    links = [one for one in build.links if one.a in ends or one.b in ends]
    links += [
        ImportedLink(a=edge.a, b=edge.b, links=edge.links, bytes_per_s=edge.bytes_per_s)
        for edge in edges
        if not is_nic(edge.a)
    ]
    joined = (JOINED,) if any(one.b == JOINED for one in build.links) else ()
    return replace(
        found,
        hosts=tuple(replace(h, gpus=build.gpus_of[h.name]) for h in found.hosts),
        switches=(*found.switches, *joined),
        links=tuple(links),
        scale_up_bytes_per_s=build.scale_up_bytes_per_s,
        nic_bytes_per_s=build.nic_bytes_per_s,
        scale_up_latency_s=build.scale_up_s,
        scale_out_latency_s=None,
        endpoint_latency_s=build.endpoint_s,
        hop_latency_s=build.hop_s,
        nic=build.nic(),
        in_network_reduction=build.in_network_reduction,
        accelerator=borrowed.accelerator.name,
        assumed=build.all_assumed(),
    )


def cluster_file_text(found: ImportedFabric) -> str:
    """Return what ``resolved`` returned as YAML that ``import_cluster`` reads as the same."""
    nic = found.nic
    if nic is None:
        raise SpecError(f"{found.provenance}: says too little of the NIC to be written")
    hosts = {host.name for host in found.hosts}
    down = [one for one in found.links if one.a in hosts or one.b in hosts]
    document = {
        "imported": found.provenance,
        "kind": found.kind,
        "name": safe_name(found.name),
        "accelerator": found.accelerator,
        "scale_up": {
            "rate": _rate(found.scale_up_bytes_per_s),
            "latency": _time(found.scale_up_latency_s),
            "in_network_reduction": bool(found.in_network_reduction),
        },
        "nic": {
            "rate": _rate(nic.line_bytes_per_s),
            "startup": _time(found.endpoint_latency_s),
            "in_flight": nic.in_flight,
            "transaction": f"{nic.transaction_bytes:.15g} B",
            "turnaround": _time(nic.turnaround_s),
        },
        "hop_latency": _time(found.hop_latency_s),
        "machines": _machines(found.hosts, down, hosts),
        "switches": fold_hosts(found.switches) if found.switches else [],
        "links": _between([one for one in found.links if not {one.a, one.b} & hosts]),
        "assumed": {name: str(why) for name, why in found.assumed.items()},
    }
    return _HEADER + yaml_text(document)


def _machines(
    hosts: Sequence[ImportedHost], links: Iterable[ImportedLink], names: set[str]
) -> list[dict[str, Any]]:
    """Return rows of machines that follow one another and have the same GPUs and links."""
    reached: dict[str, list[ImportedLink]] = defaultdict(list)
    for one in links:
        low, high = (one.a, one.b) if one.a in names else (one.b, one.a)
        reached[low].append(replace(one, a=low, b=high))
    rows: list[tuple[Any, list[str]]] = []
    for host in hosts:
        own = host.supernode == host.name
        to = tuple((r.b, r.links, r.bytes_per_s) for r in reached[host.name])
        alike = (host.gpus, None if own else host.supernode, to)
        if rows and rows[-1][0] == alike:
            rows[-1][1].append(host.name)
        else:
            rows.append((alike, [host.name]))
    return [
        {
            "hosts": fold_hosts(members),
            "gpus": gpus,
            **({} if supernode is None else {"supernode": supernode}),
            **({"links": _targets(to)} if to else {}),
        }
        for (gpus, supernode, to), members in rows
    ]


def _between(links: Iterable[ImportedLink]) -> list[dict[str, Any]]:
    """Return rows of switches that follow one another and have the same links up."""
    up: dict[str, list[tuple[str, int, float | None]]] = defaultdict(list)
    for one in links:
        up[one.a].append((one.b, one.links, one.bytes_per_s))
    rows: list[tuple[Any, list[str]]] = []
    for name, to in up.items():
        if rows and rows[-1][0] == to:
            rows[-1][1].append(name)
        else:
            rows.append((to, [name]))
    return [{"from": fold_hosts(names), "links": _targets(to)} for to, names in rows]


def _targets(to: Sequence[tuple[str, int, float | None]]) -> list[dict[str, Any]]:
    rows: list[tuple[Any, list[str]]] = []
    for name, links, rate in to:
        if rows and rows[-1][0] == (links, rate):
            rows[-1][1].append(name)
        else:
            rows.append(((links, rate), [name]))
    return [
        {
            "to": fold_hosts(names),
            **({} if links == 1 else {"links": links}),
            **({} if rate is None else {"rate": _rate(rate)}),
        }
        for (links, rate), names in rows
    ]


def _rate(rate_bytes_per_s: float | None) -> str:
    return _exact(rate_bytes_per_s or 0.0, 1e9, "GB/s", "B/s", parse_rate)


def _time(time_s: float | None) -> str:
    return _exact(time_s or 0.0, 1e-6, "us", "s", parse_time)


def _exact(value: float, unit: float, name: str, plain: str, parse: Callable[[str], float]) -> str:
    """Return *value* in the handy unit where that is exact, else in the plain one."""
    handy = f"{value / unit:.12g} {name}"
    return handy if parse(handy) == value else f"{value!r} {plain}"
