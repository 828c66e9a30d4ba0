"""FabricSpec: what a cluster file says, in SI, before any vertex exists.

Rates are per GPU and one direction unless the name says otherwise. A GPU's *number* counts all
GPUs of the cluster in order, dead ones too; a ``Fabric`` numbers only the usable ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from types import MappingProxyType

from planner.fabric import Accelerator, Nic
from planner.fabric_faults import refuse
from topologies.fabric_network_spec import (
    ClosSpec,
    MeshSpec,
    Network,
    TorusSpec,
    must_be_above_0,
)

MOST_GPUS = 2**20
SUPERNODE_KINDS = ("switched", "full_mesh", "mesh_2d", "torus")


@dataclass(frozen=True, slots=True, kw_only=True)
class SupernodeSpec:
    """The scale-up domains.

    Args:
        sizes: GPUs of each supernode, dead ones included; they need not be equal.
        size: GPUs of a full one; sets what a mesh's pair rate is when the size is changed.
        kind: ``switched`` (every pair through switches), ``full_mesh`` (a link for every pair),
            ``mesh_2d`` (full mesh inside a board, full mesh of same places across boards) or
            ``torus`` (neighbours along each axis of *dims*).
        bytes_per_s: all scale-up links of one GPU together; in ``mesh_2d`` the links across
            boards, in a torus the sum over its neighbours [bytes/s].
        latency_s: start-up of one message between two GPUs of a supernode; in a torus, of one
            hop between neighbours [s].
        links: physical links of one GPU [1].
        switches: physical switches of a full supernode, 0 in a mesh or torus [1].
        board_gpus: GPUs of one board (one machine) [1].
        board_bytes_per_s: links of one GPU to its own board, where boards are domains of their
            own (``mesh_2d``, or two levels of scale-up switches); else 0 [bytes/s].
        board_latency_s: start-up inside such a board [s].
        board_switches: physical first-level switches of one board [1].
        dims: GPUs along each axis of a torus.
        wraps: a torus closes on itself inside the supernode.
        in_network_reduction: scale-up switches can reduce (NVLS).
    """

    sizes: tuple[int, ...]
    size: int
    kind: str
    bytes_per_s: float
    latency_s: float
    links: int
    board_gpus: int
    switches: int = 0
    board_bytes_per_s: float = 0.0
    board_latency_s: float = 0.0
    board_switches: int = 0
    dims: tuple[int, ...] = ()
    wraps: bool = True
    in_network_reduction: bool = False

    def __post_init__(self) -> None:
        faults = must_be_above_0(
            "supernode",
            size=self.size,
            bytes_per_s=self.bytes_per_s,
            latency_s=self.latency_s,
            links=self.links,
            board_gpus=self.board_gpus,
        )
        if self.kind not in SUPERNODE_KINDS:
            faults.append(f"supernode.kind={self.kind!r}: expected {', '.join(SUPERNODE_KINDS)}")
        if not self.sizes:
            faults.append("supernode.sizes is empty: expected one supernode at least")
        if self.gpus > MOST_GPUS:
            faults.append(f"supernode: {self.gpus:,} GPUs: expected {MOST_GPUS:,} at most")
        for size in sorted({s for s in self.sizes if not 1 <= s <= self.size}):
            faults.append(f"supernode of {size} GPUs: expected 1 to size={self.size}")
        if self.kind == "switched" and self.switches < 1:
            faults.append(f"supernode.switches={self.switches}: expected 1 or more")
        if self.kind == "mesh_2d":
            faults += must_be_above_0("supernode.board", bytes_per_s=self.board_bytes_per_s)
        if self.board_bytes_per_s:
            faults += must_be_above_0("supernode.board", latency_s=self.board_latency_s)
        if self.kind == "torus":
            faults += self._torus_faults()
        refuse(faults)

    def _torus_faults(self) -> list[str]:
        if not self.dims or min(self.dims) < 1 or prod(self.dims) != self.size:
            return [f"supernode.dims={self.dims}: expected axes whose product is {self.size}"]
        if partial := sorted({s for s in self.sizes if s != self.size}):
            return [f"supernode of {partial[0]} GPUs: a torus of {self.dims} is whole or absent"]
        return []

    @property
    def gpus(self) -> int:
        """Return the GPUs of all supernodes, dead ones included."""
        return sum(self.sizes)

    @property
    def is_part_of_one(self) -> bool:
        """Return whether there is but one supernode, and it is not full."""
        return len(self.sizes) == 1 and self.sizes[0] < self.size

    @property
    def has_boards(self) -> bool:
        """Return whether a board is a domain of its own, with its own rate."""
        return self.board_bytes_per_s > 0 and 1 < self.board_gpus < max(self.sizes)

    @property
    def pair_bytes_per_s(self) -> float:
        """Return the rate of one link of a full mesh: total / (size - 1) [bytes/s]."""
        return self.bytes_per_s / max(1, self.size - 1)

    @property
    def board_pair_bytes_per_s(self) -> float:
        """Return the rate of one link inside a board of a 2D mesh [bytes/s]."""
        return self.board_bytes_per_s / max(1, self.board_gpus - 1)

    @property
    def across_pair_bytes_per_s(self) -> float:
        """Return the rate of one link across boards of a 2D mesh [bytes/s]."""
        return self.bytes_per_s / max(1, -(-self.size // self.board_gpus) - 1)

    @property
    def axis_bytes_per_s(self) -> float:
        """Return the rate of one link of a torus: two neighbours on each axis [bytes/s]."""
        return self.bytes_per_s / (2 * len(self.dims))


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadParts:
    """What is broken: GPU numbers, NIC numbers, switch names, and links as pairs of vertex names.

    A dead link takes one of the parallel links of its pair for each time it is listed.
    """

    gpus: tuple[int, ...] = ()
    nics: tuple[int, ...] = ()
    switches: tuple[str, ...] = ()
    links: tuple[tuple[str, str], ...] = ()

    @property
    def only_gpus(self) -> bool:
        """Return whether the network is whole, so that its tiers need no graph."""
        return not (self.nics or self.switches or self.links)


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricSpec:
    """A whole cluster file in SI.

    Args:
        name: cluster name.
        about: one line for the catalogue.
        accelerator: what every GPU is.
        supernode: the scale-up domains.
        nic: a GPU's adapter; its line rate is the sum over planes.
        endpoint_latency_s: start-up of a message that no wire explains: software, both NICs [s].
        pcie_bytes_per_s: what the way from GPU to NIC carries at most [bytes/s].
        network: the scale-out network.
        network_label: the kind as the file names it, for display.
        in_network_reduction: scale-out switches can reduce (SHARP).
        job_gpus: GPUs a job uses; the rest of the usable ones are spares.
        levels: of the network, those that count as domains; the cluster always does.
        dead: what is broken.
        sources: figure (``supernode.rate``) to source.
        assumed: figure to reason.
    """

    name: str
    accelerator: Accelerator
    supernode: SupernodeSpec
    nic: Nic
    endpoint_latency_s: float
    pcie_bytes_per_s: float
    network: Network
    network_label: str
    job_gpus: int
    levels: tuple[str, ...] = ("leaf", "pod", "cluster")
    about: str = ""
    in_network_reduction: bool = False
    dead: DeadParts = field(default_factory=DeadParts)
    sources: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    assumed: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        faults = must_be_above_0(
            "nic",
            endpoint_latency_s=self.endpoint_latency_s,
            pcie_bytes_per_s=self.pcie_bytes_per_s,
        )
        gpus = self.supernode.gpus
        if not 1 <= self.job_gpus <= gpus:
            faults.append(f"gpus={self.job_gpus}: expected 1 to the {gpus} in the supernodes")
        for kind, numbers in (("gpu", self.dead.gpus), ("nic", self.dead.nics)):
            for number in numbers:
                if not 0 <= number < gpus:
                    faults.append(f"dead {kind} {number}: expected 0 to {gpus - 1}")
            if len(set(numbers)) != len(numbers):
                faults.append(f"dead {kind}s {numbers}: a number is listed twice")
        if len(set(self.dead.gpus)) >= gpus:
            faults.append(f"all {gpus} GPUs are dead: expected one usable GPU at least")
        faults += self._network_faults()
        refuse(faults)

    def _network_faults(self) -> list[str]:
        network, boxes = self.network, len(self.supernode.sizes)
        if isinstance(network, ClosSpec) and network.rails > self.supernode.board_gpus:
            board = self.supernode.board_gpus
            return [f"network.rails={network.rails}: expected at most the {board} GPUs of a board"]
        if isinstance(network, MeshSpec):
            if prod(network.dims) != boxes:
                return [f"network.dims={network.dims}: expected a product of {boxes} supernodes"]
            links, neighbours = self.supernode.size * network.links, network.neighbours
            if links < neighbours:
                return [f"network.links: {links} links reach {neighbours} neighbours: too few"]
        if isinstance(network, TorusSpec):
            if self.supernode.kind != "torus" or self.supernode.wraps:
                return ["network torus: expected supernodes that are open boxes of a torus"]
            if prod(network.dims) != boxes or len(network.dims) != len(self.supernode.dims):
                axes = len(self.supernode.dims)
                wanted = f"{axes} axes whose product is the {boxes} supernodes"
                return [f"network.dims={network.dims}: expected {wanted}"]
        return []
