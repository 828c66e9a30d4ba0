"""Clusters with dead NICs, links or switches: what is left, measured on the graph.

*Pushing up.* What leaves a domain is followed from its GPUs to its NICs, leaves, spines: a vertex
that only this domain uses passes on min(what comes in, what its upward links carry), spread over
those links in proportion. That is a flow the links can carry, so never above the least cut.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from difflib import get_close_matches
from math import isinf
from typing import Any

from planner.errors import SpecError
from planner.fabric import Domain, Tier
from planner.fabric_walks import islands
from topologies.fabric_scale_up import add_supernodes
from topologies.fabric_seats import Seats
from topologies.fabric_spec import FabricSpec

_LEVELS = ("scale_up_switch", "gpu", "nic", "leaf", "spine", "core")


def without_dead(graph: Any, spec: FabricSpec, seats: Seats) -> None:
    """Take the dead NICs, switches and links of *spec* out of *graph*; dead GPUs are not in it.

    A vertex that stands for several switches loses one of them each time it is named; a bundle of
    parallel links loses one link each time its ends are named.

    Raises:
        SpecError: a name that does not exist, or is already gone.
    """
    nics = seats.names("nic")
    graph.remove_nodes_from([nics[n] for n in spec.dead.nics if nics[n] in graph])
    faults: list[str] = []
    for name in spec.dead.switches:
        if name not in graph or graph.nodes[name]["kind"] in {"gpu", "nic"}:
            switches = [v for v, kind in graph.nodes(data="kind") if kind not in {"gpu", "nic"}]
            faults.append(f"dead switch {name!r} does not exist{_meant(name, switches)}")
            continue
        units = graph.nodes[name]["units"]
        for neighbour in list(graph[name]):
            _take(graph, name, neighbour, 1 / units)
        if units == 1:
            graph.remove_node(name)
        else:
            graph.nodes[name]["units"] = units - 1
    for a, b in spec.dead.links:
        if not graph.has_edge(a, b):
            wrong = next((x for x in (a, b) if x not in graph), None)
            near = (
                _meant(wrong, list(graph))
                if wrong
                else f"; {a} is linked to " + ", ".join(sorted(graph[a])[:5])
            )
            faults.append(f"dead link {a} - {b} does not exist{near}")
            continue
        _take(graph, a, b, 1 / graph.edges[a, b]["links"])
    if faults:
        raise SpecError(*faults)


def _meant(name: str, known: list[str]) -> str:
    near = get_close_matches(name, known, n=3)
    return f": did you mean {', '.join(near)}?" if near else f": names look like {known[0]}"


def _take(graph: Any, a: str, b: str, share: float) -> None:
    """Take *share* of a bundle's links away, the whole edge when none is left."""
    bundle = graph.edges[a, b]
    left = bundle["links"] * (1 - share)
    if left < 0.5 and share > 1 - 1e-9:
        graph.remove_edge(a, b)
        return
    bundle["links"] = max(1, round(left))
    bundle["capacity_bytes_per_s"] *= 1 - share


def pushed_up_bytes_per_s(graph: Any, domain_of: Mapping[str, int], domains: int) -> list[float]:
    """Return the capacity that leaves each domain, one direction [bytes/s].

    Args:
        graph: the cluster's graph.
        domain_of: domain of each usable GPU vertex.
        domains: how many there are.
    """
    level = {v: _LEVELS.index(kind) for v, kind in graph.nodes(data="kind")}
    owner = _owners(graph, level, domain_of)
    inflow: dict[str, float] = dict.fromkeys(domain_of, float("inf"))
    leaving = [0.0] * domains
    for v in sorted((v for v in graph if v in owner), key=level.__getitem__):
        ups = [
            (u, link["capacity_bytes_per_s"])
            for u, link in graph[v].items()
            if level[u] > level[v] or (level[u] == level[v] and owner.get(u) != owner[v])
        ]
        total = sum(rate for _, rate in ups)
        if level[v] == 0:
            across = [u for u in graph[v] if level[u] == 0 and owner.get(u) != owner[v]]
            leaving[owner[v]] += sum(graph.edges[v, u]["capacity_bytes_per_s"] for u in across)
        if level[v] == 0 or total == 0:
            continue
        share = 1.0 if isinf(inflow[v]) else min(1.0, inflow.get(v, 0.0) / total)
        for u, rate in ups:
            if owner.get(u) == owner[v]:
                inflow[u] = inflow.get(u, 0.0) + rate * share
            else:
                leaving[owner[v]] += rate * share
    return leaving


def working_gpus(seats: Seats) -> list[str]:
    """Return the vertex name of each usable GPU, in order."""
    names = seats.names("gpu")
    return [names[g] for g in seats.numbers.tolist()]


def refuse_islands(graph: Any, spec: FabricSpec, seats: Seats) -> None:
    """Refuse a cluster whose dead parts keep usable GPUs from reaching each other."""
    apart = islands(graph, working_gpus(seats))[1:]
    if apart:
        raise SpecError(
            f"cluster {spec.name!r}: what is dead cuts off {sum(map(len, apart))} GPUs in "
            f"{len(apart)} parts, the first at {apart[0][0]}: expected every usable GPU to reach "
            "every other"
        )


def _owners(graph: Any, level: Mapping[str, int], domain_of: Mapping[str, int]) -> dict[str, int]:
    """Return the domain of each vertex whose lower neighbours are all of one domain.

    Lower means nearer to the GPUs: scale-up switches come after their GPUs, those that join only
    other scale-up switches after these.
    """
    gpu = _LEVELS.index("gpu")
    above = {
        v: gpu + 0.1 if any(level[u] == gpu for u in graph[v]) else gpu + 0.2
        for v in graph
        if level[v] == 0
    }
    height = {**level, **above}
    owner = dict(domain_of)
    for v in sorted((v for v in graph if v not in owner), key=height.__getitem__):
        below = {owner.get(u, -1) for u in graph[v] if height[u] < height[v]}
        if len(below) == 1 and -1 not in below:
            owner[v] = below.pop()
    return owner


def measured_tiers(graph: Any, spec: FabricSpec, seats: Seats, whole: list[Tier]) -> list[Tier]:
    """Return the tiers of the whole cluster with the rates that the damaged graph leaves.

    A tier's rate is that of its slowest GPU.

    Raises:
        SpecError: GPUs without scale-up.
    """
    names = working_gpus(seats)
    tiers: list[Tier] = []
    shared = float("inf")
    for i, tier in enumerate(whole):
        domain_of = {names[g]: d for d, x in enumerate(tier.domains) for g in x.gpus}
        last = i == len(whole) - 1
        count = len(tier.domains)
        ups = [0.0] * count if last else pushed_up_bytes_per_s(graph, domain_of, count)
        domains = tuple(
            Domain(name=d.name, gpus=d.gpus, uplink_bytes_per_s=up)
            for d, up in zip(tier.domains, ups, strict=True)
        )
        if tier.name in {"board", "supernode"}:
            share = _scale_up_left(graph, spec, seats, names, tier.name)
            tiers.append(
                replace(
                    tier,
                    domains=domains,
                    bytes_per_s=tier.bytes_per_s * share,
                    shared_bytes_per_s=tier.shared_bytes_per_s * share,
                    pair_bytes_per_s=tier.pair_bytes_per_s * share,
                )
            )
        else:
            inner = tiers[-1].domains
            shared = min(shared, *(d.uplink_bytes_per_s / len(d.gpus) for d in inner))
            tiers.append(
                replace(
                    tier, domains=domains, shared_bytes_per_s=min(tier.shared_bytes_per_s, shared)
                )
            )
    return tiers


def _scale_up_left(
    graph: Any, spec: FabricSpec, seats: Seats, names: list[str], tier: str
) -> float:
    """Return the share of its scale-up links that the worst-off GPU still has; 1 if none is dead.

    Raises:
        SpecError: GPUs that have lost them all.
    """
    import networkx as nx  # noqa: PLC0415 - only for what is damaged

    whole = nx.Graph()
    add_supernodes(whole, spec.supernode, seats, "supernode")
    had = {name: _scale_up_bytes_per_s(whole, name, tier) for name in names}
    left = {n: _scale_up_bytes_per_s(graph, n, tier) / had[n] for n in names if had[n] > 0}
    if lost := [name for name, share in left.items() if share == 0]:
        raise SpecError(
            *(f"GPU {n} has no scale-up link left: list it among the dead gpus" for n in lost)
        )
    return min(left.values(), default=1.0)


def _scale_up_bytes_per_s(graph: Any, gpu: str, tier: str) -> float:
    """Return what a GPU's own links of *tier*, or inside it, carry."""
    inside = {"board"} if tier == "board" else {"board", "supernode"}
    links = graph[gpu].items()
    return float(
        sum(
            link["capacity_bytes_per_s"]
            for other, link in links
            if link["tier"] in inside and graph.nodes[other]["kind"] != "nic"
        )
    )
