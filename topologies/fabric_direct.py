"""Direct networks: a full mesh of supernodes along each axis, and a torus of GPUs.

*All to all on an axis.* When every node sends evenly to all others, on a line of k nodes the middle
link carries ⌊k²/4⌋/k times what one node sends, on a ring half of that, as it has two ways round.
Routes are minimal and spread evenly; a real router may do worse.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from topologies.fabric_fat_tree import out_of_exclusive
from topologies.fabric_levels import Level
from topologies.fabric_links import link
from topologies.fabric_network_spec import MeshSpec, TorusSpec
from topologies.fabric_seats import Seats, sums
from topologies.fabric_spec import FabricSpec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


def mean_axis_hops(length: int, wraps: bool) -> float:
    """Return the mean hops along an axis between two places drawn evenly, equal ones too [1].

    Ring: ⌊k²/4⌋/k; line: (k² - 1)/(3k).

    >>> mean_axis_hops(4, wraps=True), mean_axis_hops(4, wraps=False)
    (1.0, 1.25)
    """
    if wraps:
        return length**2 // 4 / length
    return (length**2 - 1) / (3 * length)


def link_load(length: int, wraps: bool) -> float:
    """Return the load of the busiest link of an axis, per unit that each node sends evenly [1].

    >>> link_load(4, wraps=True), link_load(4, wraps=False)
    (0.5, 1.0)
    """
    load = length**2 // 4 / length
    return load / 2 if wraps and length > 2 else load


def grid_links(dims: Sequence[int], wraps: Sequence[bool]) -> tuple[Ints, Ints]:
    """Return both ends of each link of a torus or open grid; the last axis varies fastest.

    An axis of two places has one link, not two, whether it wraps or not.
    """
    place = np.arange(prod(dims)).reshape(tuple(dims))
    heads, tails = [], []
    for axis, (length, wrap) in enumerate(zip(dims, wraps, strict=True)):
        near = np.take(place, np.arange(length - 1), axis)
        heads.append(near.ravel())
        tails.append(np.take(place, np.arange(1, length), axis).ravel())
        if wrap and length > 2:
            heads.append(np.take(place, [length - 1], axis).ravel())
            tails.append(np.take(place, [0], axis).ravel())
    return np.concatenate(heads), np.concatenate(tails)


@dataclass(frozen=True, kw_only=True)
class MeshPlan:
    """Supernodes joined directly, each to every other along each axis of a grid."""

    spec: FabricSpec
    network: MeshSpec
    seats: Seats

    @property
    def alone_bytes_per_s(self) -> float:
        """Return NIC or the way to it, whichever is slower [bytes/s]."""
        return min(self.spec.nic.line_bytes_per_s, self.spec.pcie_bytes_per_s)

    @property
    def pair_bytes_per_s(self) -> float:
        """Return the same: the switches of a supernode spread one GPU over all its links."""
        return min(self.alone_bytes_per_s, self._neighbour_bytes_per_s)

    @property
    def _bundle_links(self) -> int:
        """Return the links between two neighbours: a full supernode's, dealt over all of them."""
        return self.spec.supernode.size * self.network.links // max(1, self.network.neighbours)

    @property
    def _neighbour_bytes_per_s(self) -> float:
        """Return the rate of the bundle between two neighbours [bytes/s]."""
        return self._bundle_links * self.alone_bytes_per_s / self.network.links

    @property
    def mixing_bytes_per_s(self) -> float:
        """Return the even all-to-all rate: on an axis of n, (n-1)/n of the traffic makes a hop.

        x · size · (n-1)/n · N/(N-1) = (n-1) · c, so x = c · n · (N-1) / (N · size).
        """
        boxes = len(self.seats.supernode_names)
        if boxes == 1:
            return np.inf
        even = self._neighbour_bytes_per_s * (boxes - 1) / boxes / self.spec.supernode.size
        return even * min(n for n in self.network.dims if n > 1)

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Return the cluster: start-up with the mean number of hops between two supernodes."""
        boxes = len(self.seats.supernode_names)
        hops = sum((n - 1) / n for n in self.network.dims) * boxes / max(1, boxes - 1)
        latency_s = self.spec.endpoint_latency_s + hops * self.network.hop_latency_s
        everything = np.zeros_like(self.seats.supernode)
        return (
            Level(
                name="cluster", of_gpu=everything, latency_s=latency_s, has_switch_links=boxes > 1
            ),
        )  # fmt: skip

    def uplinks(self, domain: Ints, domains: int) -> Floats:
        """Return its NICs, for a supernode never more than its bundles to neighbours."""
        usable, supernode = self.seats.usable, self.seats.supernode
        rate = np.where(usable, self.alone_bytes_per_s, 0.0)
        out = self.network.neighbours * self._neighbour_bytes_per_s
        bundles = np.full(len(self.seats.supernode_names), out)
        own = out_of_exclusive(domain[usable], domains, supernode[usable], bundles)
        return np.minimum(sums(domain, rate, domains), own)

    def add_to(self, graph: Any, tier_of: dict[str, str]) -> None:
        """Add NICs, one switch vertex for each supernode, and the bundles between them."""
        tier, spec = tier_of["cluster"], self.spec
        gpus, nics = self.seats.names("gpu"), self.seats.names("nic")
        supernode = self.seats.supernode.tolist()
        hubs = [f"{name}.mesh" for name in self.seats.supernode_names]
        units = self.network.switches
        radix = units * self.network.radix
        hub = {"kind": "leaf", "radix": radix, "units": units, "buffer_bytes": 0.0}
        graph.add_nodes_from((name, hub) for name in hubs)
        half_s, links = spec.endpoint_latency_s / 2, self.network.links
        for g in self.seats.numbers.tolist():
            graph.add_node(nics[g], kind="nic", supernode=supernode[g])
            graph.add_edge(gpus[g], nics[g], **link(spec.pcie_bytes_per_s, half_s, tier, links))
            graph.add_edge(
                nics[g], hubs[supernode[g]], **link(spec.nic.line_bytes_per_s, 0.0, tier, links)
            )
        grid = np.arange(len(hubs)).reshape(self.network.dims)
        hop_s = self.network.hop_latency_s
        bundle = link(self._neighbour_bytes_per_s, hop_s, tier, self._bundle_links)
        for axis in range(grid.ndim):
            for row in np.moveaxis(grid, axis, -1).reshape(-1, grid.shape[axis]).tolist():
                for i, a in enumerate(row):
                    graph.add_edges_from((hubs[a], hubs[b], bundle) for b in row[i + 1 :])


@dataclass(frozen=True, kw_only=True)
class TorusPlan:
    """One torus of GPUs; supernodes are boxes of it, and no GPU needs a NIC."""

    spec: FabricSpec
    network: TorusSpec
    seats: Seats

    @cached_property
    def dims(self) -> tuple[int, ...]:
        """Return GPUs along each axis of the whole torus."""
        return tuple(
            n * b for n, b in zip(self.network.dims, self.spec.supernode.dims, strict=True)
        )

    @cached_property
    def number(self) -> Ints:
        """Return the GPU number at each place of the torus; shape (gpus,), last axis fastest."""
        box = self.spec.supernode.dims
        split = np.arange(self.spec.supernode.gpus).reshape(*self.network.dims, *box)
        axes = [axis for i in range(len(box)) for axis in (i, len(box) + i)]
        return split.transpose(axes).ravel()

    @cached_property
    def links(self) -> tuple[Ints, Ints]:
        """Return both GPU numbers of each link of the torus, dead GPUs' too."""
        heads, tails = grid_links(self.dims, [True] * len(self.dims))
        return self.number[heads], self.number[tails]

    @property
    def alone_bytes_per_s(self) -> float:
        """Return all links of one GPU: its neighbours forward what is not for them [bytes/s]."""
        axis = self.spec.supernode.axis_bytes_per_s
        return axis * sum(min(2, n - 1) for n in self.dims)

    @property
    def pair_bytes_per_s(self) -> float:
        """Return one link: a minimal route uses one at a time."""
        return self.spec.supernode.axis_bytes_per_s

    @property
    def mixing_bytes_per_s(self) -> float:
        """Return the even all-to-all rate: x · load of the busiest link = link rate."""
        gpus = prod(self.dims)
        load = max(link_load(n, True) for n in self.dims) * gpus / max(1, gpus - 1)
        return self.spec.supernode.axis_bytes_per_s / load

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Return the cluster: start-up with the mean number of hops."""
        hops = sum(mean_axis_hops(n, True) for n in self.dims)
        latency_s = self.spec.endpoint_latency_s + hops * self.spec.supernode.latency_s
        everything = np.zeros_like(self.seats.supernode)
        return (
            Level(name="cluster", of_gpu=everything, latency_s=latency_s, has_switch_links=False),
        )

    def uplinks(self, domain: Ints, domains: int) -> Floats:
        """Return the links between usable GPUs that leave each domain."""
        a, b = self.links
        leaving = (domain[a] != domain[b]) & self.seats.usable[a] & self.seats.usable[b]
        ends = np.concatenate([domain[a[leaving]], domain[b[leaving]]])
        return sums(ends, np.ones(len(ends)), domains) * self.spec.supernode.axis_bytes_per_s

    def add_to(self, graph: Any, tier_of: dict[str, str]) -> None:
        """Add the links between boxes; those inside belong to the supernodes."""
        gpus, usable = self.seats.names("gpu"), self.seats.usable
        supernode, spec = self.seats.supernode, self.spec.supernode
        a, b = self.links
        outside = (supernode[a] != supernode[b]) & usable[a] & usable[b]
        attributes = link(spec.axis_bytes_per_s, spec.latency_s, tier_of["cluster"], 1)
        graph.add_edges_from(
            (gpus[i], gpus[j], attributes)
            for i, j in zip(a[outside].tolist(), b[outside].tolist(), strict=True)
        )
