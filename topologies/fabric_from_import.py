"""ImportedFabric and borrowed rates to planner.fabric.Fabric.

What the file does not say is taken from a named cluster of the catalogue, or from the user, and
listed as assumed. Tiers are not told but found: the height of a switch is its least distance from
a machine, and the domains of a level are what the links up to that height hold together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from planner.errors import SpecError
from planner.fabric import Domain, Fabric, Nic, Tier
from topologies.fabric_links import link
from topologies.fabric_spec import MOST_GPUS
from topologies.imported_fabric import Borrowed, ImportedFabric, ImportedLink
from topologies.imported_links import (
    Edge,
    Levels,
    Sets,
    domain_names,
    gpu_names,
    heights,
    is_nic,
    meeting_height,
    merged,
    nic_name,
    safe_name,
    spelled_parts,
    usual_rate_of_machines,
)

_KINDS = ("leaf", "leaf", "spine", "core")
JOINED = "assumed-core"


def fabric_from_import(found: ImportedFabric, borrowed: Borrowed) -> Fabric:
    """Return the Fabric of *found*, its gaps filled from *borrowed* and listed as assumed.

    Raises:
        SpecError: GPUs per machine unknown, faults of the file, parts that do not hang together.
    """
    if found.faults:
        raise SpecError(*found.faults)
    return FabricBuild(found, borrowed).fabric()


class FabricBuild:
    """The steps from file to Fabric, each using the ones before."""

    def __init__(self, found: ImportedFabric, borrowed: Borrowed) -> None:
        self.found, self.borrowed, self.like = found, borrowed, borrowed.like
        self.assumed: dict[str, str] = dict(found.assumed)
        self.gpus_of = self._gpus_of_hosts()
        self.links = merged(found.links)
        self._refuse_forest()
        self.height = heights([h.name for h in found.hosts], self.links)
        self.nic_bytes_per_s = self._nic_rate()
        self.scale_up_bytes_per_s = self._scale_up_rate()
        self.hop_s = self._told(
            "network.leaf.latency", found.hop_latency_s, None, self.like.hop_latency_s
        )
        whole = found.scale_out_latency_s  # of a whole message: the two hops of the least way too
        filed = None if whole is None else max(whole - 2 * self.hop_s, whole / 10)
        self.endpoint_s = self._told(
            "nic.startup", filed, found.endpoint_latency_s, self.like.endpoint_latency_s
        )
        self.scale_up_s = self._told(
            "supernode.latency", found.scale_up_latency_s, None, self.like.scale_up_latency_s
        )

    def _told(self, name: str, filed: float | None, given: float | None, like: float) -> float:
        if given is not None:
            return given
        if filed is not None:
            return filed
        self.assumed[name] = f"not in the file: {self.like.says(name)}"
        return like

    def _scale_up_rate(self) -> float:
        """Return a GPU's scale-up rate: given, filed, its accelerator's, or borrowed."""
        filed, given = self.found.scale_up_bytes_per_s, self.borrowed.scale_up_bytes_per_s
        if self.found.no_scale_up and filed is None and given is None:
            raise SpecError(f"{self.found.provenance}: {self.found.no_scale_up}")
        accelerator = self.borrowed.accelerator
        own = accelerator.scale_up_bytes_per_s
        if filed is None and given is None and own and accelerator != self.like.accelerator:
            self.assumed["supernode.rate"] = f"not in the file: what one {accelerator.name} has"
            return own
        return self._told("supernode.rate", filed, given, self.like.scale_up_bytes_per_s)

    def _gpus_of_hosts(self) -> dict[str, int]:
        given = self.borrowed.gpus_per_host
        gpus = {
            h.name: given if given is not None else (h.gpus or 0 if h.gpus is not None else -1)
            for h in self.found.hosts
        }
        if unknown := [name for name, n in gpus.items() if n < 0]:
            raise SpecError(
                f"{self.found.provenance}: does not say how many GPUs {unknown[0]} has "
                f"({len(unknown)} machines): give --gpus-per-node"
            )
        if not 1 <= sum(gpus.values()) <= MOST_GPUS:
            raise SpecError(
                f"{self.found.provenance}: {sum(gpus.values()):,} GPUs in all: "
                f"expected 1 to {MOST_GPUS:,}"
            )
        if given is not None:
            self.assumed["gpus_per_node"] = f"{given}: as given"
        return gpus

    def _refuse_forest(self) -> None:
        """Refuse parts that do not hang together, or join their tops where that was asked for."""
        sets = Sets()
        for host in self.found.hosts:
            sets.join(("supernode", host.supernode), host.name)
        for one in self.links:
            sets.join(one.a, one.b)
        names = [h.name for h in self.found.hosts if self.gpus_of[h.name]]
        parts: dict[Hashable, list[str]] = defaultdict(list)
        for name in names:
            parts[sets.root(name)].append(name)
        if len(parts) == 1:
            return
        if not self.borrowed.join:
            raise SpecError(
                f"{self.found.provenance}: {len(parts)} parts without a common switch, so that "
                f"no job can span them ({spelled_parts(tuple(parts.values()))}): "
                "give --join to put a non-blocking switch above them"
            )
        self.assumed["network.join"] = f"a non-blocking switch above {len(parts)} parts: --join"
        height = heights([h.name for h in self.found.hosts], self.links)
        tops: dict[Hashable, str] = {}
        for name in (*names, *self.found.switches):
            part = sets.root(name)
            if part in parts and height.get(name, -1) >= height.get(tops.get(part, ""), -1):
                tops[part] = name
        self.links += tuple(ImportedLink(a=top, b=JOINED) for top in tops.values())

    def _nic_rate(self) -> float:
        """Return a GPU's line rate: given, filed, what its machine's links carry, or borrowed."""
        filed = self.found.nic_bytes_per_s
        usual = usual_rate_of_machines(self.links, self.gpus_of) if filed is None else None
        if usual is not None:
            filed = usual.bytes_per_s
            self.assumed |= {"nic.rate": usual.words} if usual.words else {}
        share = self.found.adapters_per_gpu
        like = self.like.nic.line_bytes_per_s * share
        rate = self._told("nic.rate", filed, self.borrowed.nic_bytes_per_s, like)
        if share < 1 and rate == like:
            self.assumed["nic.rate"] += f", and {share:g} adapters for a GPU"
        return rate

    def fabric(self) -> Fabric:
        """Return the Fabric."""
        import networkx as nx  # noqa: PLC0415 - 100 ms that a refusal need not pay

        edges = self.edges()
        levels = self._levels(edges)
        graph = nx.Graph(name=self.found.name)
        names: list[str] = []
        hosts: list[Domain] = []
        supernodes = {s: i for i, s in enumerate(dict.fromkeys(h.supernode for h in self._hosts()))}
        members: dict[str, list[str]] = defaultdict(list)
        for board, host in enumerate(self._hosts()):
            of_host = gpu_names(host.name, self.gpus_of[host.name])
            hosts.append(
                Domain(
                    name=host.name, uplink_bytes_per_s=0.0,
                    gpus=tuple(range(len(names), len(names) + len(of_host))),
                )
            )  # fmt: skip
            names += of_host
            members[host.supernode] += of_host
            for place, name in enumerate(of_host):
                graph.add_node(
                    name, kind="gpu", supernode=supernodes[host.supernode], board=board, place=place
                )
        for supernode, inside in members.items():
            if len(inside) > 1:
                hub, at = f"{supernode}.switch", supernodes[supernode]
                graph.add_node(hub, kind="scale_up_switch", supernode=at, units=1)
                one = link(self.scale_up_bytes_per_s, self.scale_up_s / 2, "supernode", 1)
                graph.add_edges_from((name, hub, one) for name in inside)
        for name, height in self.height.items():
            if height:
                kind = _KINDS[min(height, len(_KINDS) - 1)]
                graph.add_node(name, kind=kind, units=1, radix=0)
        tiers = ["supernode", *levels.names]
        for edge in edges:
            a, b = edge.a, edge.b
            within = is_nic(a) and b not in self.height
            latency_s = self.endpoint_s / 2 if within else self.hop_s
            if is_nic(a):
                graph.add_node(a, kind="nic")
            tier = tiers[min(levels.level_of(edge.height), len(tiers) - 1)]
            graph.add_edge(a, b, **link(edge.bytes_per_s, latency_s, tier, edge.links))
        return Fabric(
            name=safe_name(self.found.name),
            graph=nx.freeze(graph),
            gpus=tuple(names),
            tiers=self._tiers(graph, names, tiers, levels),
            accelerator=self.borrowed.accelerator,
            nic=self.nic(),
            assumed=MappingProxyType(self.all_assumed()),
            sources=MappingProxyType({"fabric": self.found.provenance}),
            hosts=tuple(hosts),
        )

    def all_assumed(self) -> dict[str, str]:
        """Return what was borrowed, name to reason."""
        of_nic = ("nic.in_flight", "nic.transaction", "nic.turnaround")
        nic = {} if self.found.nic else {key: self.like.says(key) for key in of_nic}
        name, filed = self.borrowed.accelerator.name, self.found.accelerator
        chip = {} if name == filed else {"accelerator": f"{name}: {self.like.says('accelerator')}"}
        if filed and name != filed:
            chip = {"accelerator": f"{name}: as given; the file names {filed}"}
        return {**self.assumed, **chip, **nic}

    def nic(self) -> Nic:
        """Return what every GPU has towards the scale-out network."""
        return replace(self.found.nic or self.like.nic, line_bytes_per_s=self.nic_bytes_per_s)

    @property
    def in_network_reduction(self) -> bool:
        """Return whether scale-up switches can reduce."""
        filed = self.found.in_network_reduction
        return self.like.in_network_reduction if filed is None else filed

    def _hosts(self) -> list[Any]:
        return [host for host in self.found.hosts if self.gpus_of[host.name]]

    def edges(self) -> list[Edge]:
        """Return every scale-out edge, NICs included."""
        of_host: dict[str, list[tuple[str, ImportedLink]]] = defaultdict(list)
        between: list[ImportedLink] = []
        for one in self.links:
            ends = [end for end in (one.a, one.b) if end in self.gpus_of]
            if not ends:
                between.append(one)
            for end in ends:
                if self.gpus_of[end]:
                    of_host[end].append((one.b if end == one.a else one.a, one))
        edges: list[Edge] = []
        below: defaultdict[str, float] = defaultdict(float)
        rate = self.nic_bytes_per_s
        for host in self._hosts():
            names, reached = gpu_names(host.name, self.gpus_of[host.name]), of_host[host.name]
            if not reached:
                continue
            one_each = len(reached) == len(names)
            total = sum(one.links for _, one in reached)
            for g, gpu in enumerate(names):
                nic = nic_name(gpu)
                mine = [reached[g]] if one_each else reached
                edges.append(Edge(a=nic, b=gpu, bytes_per_s=rate, links=1, height=1))
                for other, one in mine:
                    share = 1.0 if one_each else one.links / total
                    to = other
                    if other in self.gpus_of:  # machines joined directly: to the same place there
                        there = gpu_names(other, self.gpus_of[other])
                        to = nic_name(there[min(g, len(there) - 1)])
                    if other in self.gpus_of and host.name > other:
                        continue
                    edges.append(Edge(a=nic, b=to, bytes_per_s=rate * share, links=1, height=1))
                    below[other] += rate * share
        return edges + self._between(between, below)

    def _between(
        self, between: Sequence[ImportedLink], below: defaultdict[str, float]
    ) -> list[Edge]:
        """Return the edges between switches, rates that the file lacks worked out upwards."""
        up: dict[str, list[tuple[str, ImportedLink]]] = defaultdict(list)
        for one in between:
            if one.a not in self.height or one.b not in self.height:
                continue  # no machine hangs on it
            low, high = sorted((one.a, one.b), key=lambda v: (self.height[v], v))
            up[low].append((high, one))
        edges: list[Edge] = []
        for low in sorted(up, key=lambda v: (self.height[v], v)):
            height = self.height[low]
            width = sum(one.links for _, one in up[low])
            for high, one in up[low]:
                hangs = max(below[low], below[high] if self.height[high] == height else 0.0)
                total = self._uplink(height, hangs)
                rate = one.bytes_per_s
                if rate is None:
                    rate = total * one.links / width
                    name = f"network.{_KINDS[min(height, 3)]}.uplink_rate"
                    self.assumed.setdefault(name, self._uplink_reason(height))
                if rate > 0:
                    at = meeting_height(height, self.height[high])
                    edges.append(Edge(a=low, b=high, bytes_per_s=rate, links=one.links, height=at))
                    below[high] += rate
        return edges

    def _uplink(self, height: int, below: float) -> float:
        given = self.borrowed.uplinks_bytes_per_s
        if height <= len(given):
            return given[height - 1]
        return below * self._share(height)

    def _share(self, height: int) -> float:
        """Return a switch's capacity up over that down, as the lending cluster has it."""
        return self.like.leaf_uplink_share if height == 1 else 1.0

    def _uplink_reason(self, height: int) -> str:
        if height <= len(self.borrowed.uplinks_bytes_per_s):
            return "of a whole switch, shared evenly by its links up: as given"
        return (
            f"not in the file: {self._share(height):g} of what hangs below, "
            f"{self.like.words}, shared evenly by the links up"
        )

    def _levels(self, edges: Sequence[Edge]) -> Levels:
        """Return the heights at which domains grow, and what the tiers are called."""
        sets = Sets()
        for host in self._hosts():
            for name in gpu_names(host.name, self.gpus_of[host.name]):
                sets.join(("supernode", host.supernode), name)
        roots = [("supernode", s) for s in dict.fromkeys(h.supernode for h in self._hosts())]
        count, grown = len(roots), []
        for height in sorted({edge.height for edge in edges}):
            for edge in edges:
                if edge.height == height:
                    sets.join(edge.a, edge.b)
            now = len({sets.root(r) for r in roots})
            if now < count:
                grown.append(height)
                count = now
        inner = grown[:-1]
        kept = [*dict.fromkeys([*inner[:1], *inner[-1:]]), *grown[-1:]]
        labels = ["leaf", "pod"][: len(kept) - 1] if kept else []
        return Levels(heights=tuple(kept), names=(*labels, *(["cluster"] if kept else [])))

    def _alone_bytes_per_s(self, height: int) -> float:
        """Return what one GPU sends alone across switches of *height* [bytes/s]."""
        own = self.found.own_bytes_per_s[:height]
        return min(self.nic_bytes_per_s, *own) if own else self.nic_bytes_per_s

    def _tiers(
        self, graph: Any, names: Sequence[str], tiers: Sequence[str], levels: Levels
    ) -> tuple[Tier, ...]:
        sets = Sets()
        links = [(a, b, d["tier"], d["capacity_bytes_per_s"]) for a, b, d in graph.edges(data=True)]
        at_end = {name for name, kind in graph.nodes(data="kind") if kind in {"gpu", "nic"}}
        switched = {at for a, b, at, _ in links if a not in at_end and b not in at_end}
        made: list[Tier] = []
        known = tuple(dict.fromkeys(host.supernode for host in self._hosts()))
        inner_share = self.scale_up_bytes_per_s
        for depth, tier in enumerate(tiers):
            for a, b, at, _ in links:
                if at == tier:
                    sets.join(a, b)
            inside: dict[Hashable, list[int]] = defaultdict(list)
            for g, name in enumerate(names):
                inside[sets.root(name)].append(g)
            leaving: defaultdict[Hashable, float] = defaultdict(float)
            for a, b, at, rate in links:
                if tiers.index(at) > depth:
                    ends = (sets.root(a), sets.root(b))
                    for root in ends if ends[0] != ends[1] else ():
                        leaving[root] += rate
            last = depth == len(tiers) - 1
            height = levels.heights[depth - 1] if depth else 0
            line = self._alone_bytes_per_s(int(height)) if depth else self.scale_up_bytes_per_s
            called = tuple(known[graph.nodes[names[g[0]]]["supernode"]] for g in inside.values())
            if depth:
                taken = {domain.name for inner in made for domain in inner.domains}
                called = domain_names(sets, tuple(inside), self.height, tier=tier, taken=taken)
            ups = [0.0 if last else float(leaving[root]) for root in inside]
            made.append(
                Tier(
                    name=tier,
                    domains=tuple(
                        Domain(name=name, gpus=tuple(gpus), uplink_bytes_per_s=up)
                        for name, gpus, up in zip(called, inside.values(), ups, strict=True)
                    ),
                    bytes_per_s=line,
                    shared_bytes_per_s=line if depth == 0 else min(line, inner_share),
                    latency_s=self.scale_up_s
                    if depth == 0
                    else self.endpoint_s + 2 * height * self.hop_s,
                    in_network_reduction=self.in_network_reduction and depth == 0,
                    has_switch_links=not set(tiers[1 : depth + 1]).isdisjoint(switched),
                )
            )
            if not last:
                inner_share = min(
                    leaving[root] / len(gpus) or line for root, gpus in inside.items()
                )
        return tuple(made)
