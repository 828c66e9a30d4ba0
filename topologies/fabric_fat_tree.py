"""Fat trees: levels, uplinks, vertices and links."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import SpecError
from topologies.fabric_clos import ClosWiring, clos_wiring
from topologies.fabric_levels import Level
from topologies.fabric_links import add_bundles, link, switch
from topologies.fabric_network_spec import ClosSpec, SwitchTierSpec
from topologies.fabric_seats import Seats, sums
from topologies.fabric_spec import FabricSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


def out_of_exclusive(domain: Ints, domains: int, unit: Ints, unit_out: Floats) -> Floats:
    """Return, per domain, the sum of *unit_out* if all its units are its own, else infinity.

    Args:
        domain: of each GPU, never decreasing; shape (gpus,).
        domains: how many.
        unit: of each GPU, never decreasing; shape (gpus,).
        unit_out: capacity that leaves each unit, by unit [bytes/s].
    """
    first = np.flatnonzero(np.append(True, np.diff(unit) > 0))
    last = np.append(first[1:], len(unit)) - 1
    total = sums(domain[first], unit_out[unit[first]], domains)
    for g in np.flatnonzero(domain[first] != domain[last]):
        total[domain[first[g]] : domain[last[g]] + 1] = np.inf
    return total


@dataclass(frozen=True, kw_only=True)
class FatTreePlan:
    """A fat tree of identical planes."""

    spec: FabricSpec
    network: ClosSpec
    seats: Seats

    @cached_property
    def wiring(self) -> ClosWiring:
        """Return the wiring of one plane."""
        board_gpus = self.spec.supernode.board_gpus
        return clos_wiring(self.network, self.seats, board_gpus, self._kept)

    @property
    def _kept(self) -> Ints:
        """Return which GPUs stay together below leaves: supernodes, or all where that is no use.

        It is of use where leaf groups or pods are domains, which hold whole supernodes. Elsewhere
        it would leave ports empty: 8 of 64 used by every second leaf of supernodes of 72. There
        leaves are filled in order, as they are bought, however slow their uplinks are: networks
        that differ in nothing but that are cabled alike.
        """
        network, levels = self.network, self.spec.levels
        rows = -(-self.spec.supernode.size // network.rails)
        has_pods = network.core is not None or (network.spine is not None and network.spine.holds)
        leaves_are_domains = "leaf" in levels and rows <= network.leaf.holds
        if leaves_are_domains or ("pod" in levels and has_pods):
            return self.seats.supernode
        return np.zeros_like(self.seats.supernode)

    @property
    def _spine(self) -> SwitchTierSpec:
        """Return the spine tier; asked for only where there is one."""
        if self.network.spine is None:
            raise SpecError("network: no spine")
        return self.network.spine

    @property
    def alone_bytes_per_s(self) -> float:
        """Return NIC or PCIe, whichever is slower, or a leaf's uplinks where they are [bytes/s]."""
        rate = min(self.spec.nic.line_bytes_per_s, self.spec.pcie_bytes_per_s)
        leaf = self.network.leaf
        if self.wiring.spine_pod.size:
            rate = min(rate, self.network.planes * leaf.uplinks * leaf.uplink_bytes_per_s)
        return rate

    @property
    def pair_bytes_per_s(self) -> float:
        """Return the same: any path carries one NIC."""
        return self.alone_bytes_per_s

    @property
    def mixing_bytes_per_s(self) -> float:
        """Return no limit: what leaves a domain reaches any other through the tier above."""
        return np.inf

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Return leaf groups, pods and the cluster; latency is the sum over the links passed."""
        w, network = self.wiring, self.network
        leaf_s = self.spec.endpoint_latency_s + 2 * network.leaf.hop_latency_s
        spine_s = leaf_s + (2 * network.spine.hop_latency_s if network.spine else 0)
        core_s = spine_s + (2 * network.core.hop_latency_s if network.core else 0)
        pod_s = spine_s if w.group[-1] > 0 else leaf_s
        top_s = core_s if w.cores else pod_s
        everything = np.zeros_like(w.group)
        return tuple(
            Level(name=name, of_gpu=of_gpu, latency_s=latency_s,
                  has_switch_links=bool(of_gpu[-1] < w.group[-1]))
            for name, of_gpu, latency_s in (
                ("leaf", w.group, leaf_s), ("pod", w.pod, pod_s), ("cluster", everything, top_s)
            )
        )  # fmt: skip

    @cached_property
    def _nic_bytes_per_s(self) -> Floats:
        """Return what each GPU's NIC carries on one plane; 0 for a dead GPU; shape (gpus,)."""
        rate = min(self.spec.nic.line_bytes_per_s, self.spec.pcie_bytes_per_s)
        return np.where(self.seats.usable, rate / self.network.planes, 0.0)

    @property
    def _leaf_uplink_bytes_per_s(self) -> float:
        """Return what the uplinks of one leaf carry together."""
        return self.network.leaf.uplinks * self.network.leaf.uplink_bytes_per_s

    @cached_property
    def _spine_out(self) -> Floats:
        """Return what each spine lets out of its pod: min(links below, uplinks)."""
        w = self.wiring
        if not w.spine_uplinks:
            return np.full(len(w.spine_pod), np.inf)
        below = sums(w.up.upper, w.up.links, len(w.spine_pod))
        below *= self.network.leaf.uplink_bytes_per_s
        return np.minimum(below, w.spine_uplinks * self._spine.uplink_bytes_per_s)

    def _reaches_out(self, domain: Ints) -> NDArray[np.bool_]:
        """Return, by rail, whether its network joins two domains; shape (rails,).

        Where each rail has a network of its own, one that only one domain uses leads nowhere.
        """
        rails = self.network.rails
        if self.network.spine_scope == "shared":
            return np.ones(rails, bool)
        usable = self.seats.usable
        rail, home = self.wiring.leaf_rail[self.wiring.leaf][usable], domain[usable]
        return np.array([len(np.unique(home[rail == r])) > 1 for r in range(rails)])

    def uplinks(self, domain: Ints, domains: int) -> Floats:
        """Return the least capacity, over NICs, leaves and spines, that leaves each domain."""
        w, usable = self.wiring, self.seats.usable
        out = self._reaches_out(domain)
        nics = self._nic_bytes_per_s * out[w.leaf_rail[w.leaf]]
        least = sums(domain, nics, domains)
        if w.spine_pod.size:
            below = sums(w.leaf, nics, len(w.leaf_group))
            leaf_out = np.minimum(below, self._leaf_uplink_bytes_per_s)
            spine_out = np.where(out[w.spine_rail], self._spine_out, 0.0)
            for unit, of_part, part_out in (
                (w.group, w.leaf_group, leaf_out),
                (w.pod, w.spine_pod, spine_out),
            ):
                unit_out = sums(of_part, part_out, int(unit[-1]) + 1)
                own = out_of_exclusive(domain[usable], domains, unit[usable], unit_out)
                least = np.minimum(least, own)
        return self.network.planes * least

    def add_to(self, graph: Any, tier_of: dict[str, str]) -> None:
        """Add NICs, leaves, spines and cores of every plane, and their links."""
        nics = self.seats.names("nic")
        usable = self.seats.numbers.tolist()
        self._add_nics(graph, nics, usable, tier_of["leaf"])
        for plane in range(self.network.planes):
            prefix = f"plane{plane}." if self.network.planes > 1 else ""
            leaves = self._add_leaves(graph, prefix, plane, nics, usable, tier_of["leaf"])
            spines = self._add_spines(graph, prefix, plane, leaves, tier_of["pod"])
            self._add_cores(graph, prefix, plane, spines, tier_of["cluster"])

    def _add_nics(self, graph: Any, nics: list[str], usable: list[int], tier: str) -> None:
        gpus, supernode = self.seats.names("gpu"), self.seats.supernode.tolist()
        rate, half_s = self.spec.pcie_bytes_per_s, self.spec.endpoint_latency_s / 2
        graph.add_nodes_from((nics[g], {"kind": "nic", "supernode": supernode[g]}) for g in usable)
        one = link(rate, half_s, tier, 1)
        graph.add_edges_from((gpus[g], nics[g], one) for g in usable)

    def _add_leaves(
        self, graph: Any, prefix: str, plane: int, nics: list[str], usable: list[int], tier: str
    ) -> list[str]:
        w, spec = self.wiring, self.network.leaf
        digits = len(str(int(w.leaf_group[-1])))
        rails = self.network.rails
        names = [
            f"{prefix}leaf{g:0{digits}d}" + (f".rail{r}" if rails > 1 else "")
            for g, r in zip(w.leaf_group.tolist(), w.leaf_rail.tolist(), strict=True)
        ]
        rail = w.leaf_rail.tolist()
        graph.add_nodes_from(
            (name, switch("leaf", spec, plane=plane, rail=rail[i], nic_ports=spec.holds))
            for i, name in enumerate(names)
        )
        rate = self.spec.nic.line_bytes_per_s / self.network.planes
        leaf = w.leaf.tolist()
        one = link(rate, spec.hop_latency_s, tier, 1, spec.port_buffer_bytes)
        graph.add_edges_from((nics[g], names[leaf[g]], one) for g in usable)
        return names

    def _add_spines(
        self, graph: Any, prefix: str, plane: int, leaves: list[str], tier: str
    ) -> list[str]:
        w, spec = self.wiring, self.network.spine
        if spec is None or not w.spine_pod.size:
            return []
        digits, pods = len(str(int(w.spine_slot.max()))), int(w.pod[-1]) + 1
        names = []
        for p, r, j in zip(
            w.spine_pod.tolist(), w.spine_rail.tolist(), w.spine_slot.tolist(), strict=True
        ):
            where = (f"pod{p}." if pods > 1 else "") + f"spine{j:0{digits}d}"
            rail = f".rail{r}" if self.network.spine_scope == "rail" else ""
            names.append(prefix + where + rail)
        graph.add_nodes_from((name, switch("spine", spec, plane=plane)) for name in names)
        rate = self.network.leaf.uplink_bytes_per_s
        add_bundles(graph, leaves, names, w.up, rate, spec, tier)
        return names

    def _add_cores(self, graph: Any, prefix: str, plane: int, spines: list[str], tier: str) -> None:
        w, spec = self.wiring, self.network.core
        if spec is None or not w.cores:
            return
        digits = len(str(w.cores - 1))
        names = [f"{prefix}core{i:0{digits}d}" for i in range(w.cores)]
        graph.add_nodes_from((name, switch("core", spec, plane=plane)) for name in names)
        rate = self._spine.uplink_bytes_per_s
        add_bundles(graph, spines, names, w.core_up, rate, spec, tier)
