"""What a cluster file says of its scale-out network, in SI."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite

from planner.fabric_faults import refuse


def must_be_above_0(owner: str, **values: float) -> list[str]:
    """Return one fault for each value that is not a finite number above 0."""
    return [
        f"{owner}.{name}={value!r}: expected a finite number above 0"
        for name, value in values.items()
        if not (isfinite(value) and value > 0)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class SwitchTierSpec:
    """One level of scale-out switches.

    Args:
        radix: ports of one switch, counted at this tier's port rate [1].
        hop_latency_s: what one link below this tier adds to a message's start-up: the wire, and
            half of the switch at each end that is one [s].
        holds: NIC ports below one leaf switch, or GPUs below one pod of spines; 0 for "as many
            as the radix allows" [1].
        switches: spines of one pod (and rail and plane); 0 for as many as the links fill [1].
        uplinks: links of one switch to the tier above; 0 where there is none [1].
        uplink_bytes_per_s: rate of one such link [bytes/s].
        buffer_bytes: packet buffer of one switch, 0 where unknown; its links are given equal
            shares of it [bytes].
    """

    radix: int
    hop_latency_s: float
    holds: int = 0
    switches: int = 0
    uplinks: int = 0
    uplink_bytes_per_s: float = 0.0
    buffer_bytes: float = 0.0

    @property
    def port_buffer_bytes(self) -> float:
        """Return one port's share of the packet buffer, 0 where unknown [bytes]."""
        return self.buffer_bytes / self.radix

    def faults(self, owner: str) -> list[str]:
        """Return what cannot be about this tier, called *owner* in the file."""
        faults = must_be_above_0(owner, radix=self.radix, hop_latency_s=self.hop_latency_s)
        if min(self.uplinks, self.holds, self.switches, self.buffer_bytes) < 0:
            faults.append(f"{owner}: uplinks, holds, switches and buffer must be 0 or more")
        return faults


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosSpec:
    """A fat tree of one, two or three tiers of switches.

    Args:
        rails: leaf switches that the GPUs of one board are dealt over; 1 puts neighbours on the
            same leaf, the board's size makes the network rail-optimised.
        planes: separate networks that share a NIC's ports (dual-plane: 2).
        spine_scope: ``shared`` (a spine reaches all rails), ``rail`` (a spine per rail:
            multi-plane) or ``none`` (rail-only: another rail is reached through scale-up).
        leaf, spine, core: the tiers; no core in two tiers, no spine in one.
    """

    rails: int
    planes: int
    spine_scope: str
    leaf: SwitchTierSpec
    spine: SwitchTierSpec | None = None
    core: SwitchTierSpec | None = None

    def __post_init__(self) -> None:
        faults = must_be_above_0("network", rails=self.rails, planes=self.planes)
        if self.spine_scope not in {"shared", "rail", "none"}:
            faults.append(f"network.spine_scope={self.spine_scope!r}: expected shared, rail, none")
        faults += self.leaf.faults("network.leaf")
        faults += must_be_above_0("network.leaf", holds=self.leaf.holds)
        if self.leaf.holds + self.leaf.uplinks > self.leaf.radix:
            faults.append(
                f"network.leaf: {self.leaf.holds} NIC ports + {self.leaf.uplinks} uplinks "
                f"exceed radix {self.leaf.radix}"
            )
        if (self.spine is None) != (self.spine_scope == "none"):
            faults.append("network: a spine is described exactly when spine_scope is not 'none'")
        if self.spine is not None:
            faults += self.spine.faults("network.spine")
            faults += must_be_above_0(
                "network.leaf",
                uplinks=self.leaf.uplinks,
                uplink_bytes_per_s=self.leaf.uplink_bytes_per_s,
            )
        if self.core is not None:
            faults += self.core.faults("network.core")
            if self.spine is None:
                faults.append("network.core: expected a spine below the core")
            else:
                rate = self.spine.uplink_bytes_per_s
                faults += must_be_above_0("network.spine", uplink_bytes_per_s=rate)
        refuse(faults)


@dataclass(frozen=True, slots=True, kw_only=True)
class MeshSpec:
    """Supernodes joined directly, each to every other along each axis (UB-Mesh racks).

    Args:
        dims: supernodes along each axis; their product is the number of supernodes.
        hop_latency_s: start-up added by one link between supernodes [s].
        links: physical links of one GPU that lead out of its supernode [1].
        switches: low-radix switches of a supernode [1].
        radix: ports of one of them [1].
    """

    dims: tuple[int, ...]
    hop_latency_s: float
    links: int
    switches: int
    radix: int

    def __post_init__(self) -> None:
        faults = must_be_above_0(
            "network",
            hop_latency_s=self.hop_latency_s,
            links=self.links,
            switches=self.switches,
            radix=self.radix,
        )
        if not self.dims or min(self.dims) < 1:
            faults.append(f"network.dims={self.dims}: expected axes of 1 or more supernodes")
        refuse(faults)

    @property
    def neighbours(self) -> int:
        """Return how many supernodes one is joined to directly [1]."""
        return sum(n - 1 for n in self.dims)


@dataclass(frozen=True, slots=True, kw_only=True)
class TorusSpec:
    """One torus of GPUs over the whole cluster, cut into boxes that are the supernodes.

    Args:
        dims: supernodes along each axis; a GPU axis is this times the box's.
    """

    dims: tuple[int, ...]

    def __post_init__(self) -> None:
        if not self.dims or min(self.dims) < 1:
            refuse([f"network.dims={self.dims}: expected axes of 1 or more supernodes"])


@dataclass(frozen=True, slots=True, kw_only=True)
class DragonflySpec:
    """Dragonfly+: groups of leaf and spine switches, every two groups joined by global links.

    Args:
        leaf: NIC ports and uplinks of a leaf; its uplinks go to the spines of its group.
        spine: ``holds`` GPUs in one group; ``uplinks`` are a spine's global links.
    """

    leaf: SwitchTierSpec
    spine: SwitchTierSpec

    def __post_init__(self) -> None:
        faults = self.leaf.faults("network.leaf") + self.spine.faults("network.spine")
        for owner, tier in (("network.leaf", self.leaf), ("network.spine", self.spine)):
            faults += must_be_above_0(
                owner,
                holds=tier.holds,
                uplinks=tier.uplinks,
                uplink_bytes_per_s=tier.uplink_bytes_per_s,
            )
        if self.leaf.holds + self.leaf.uplinks > self.leaf.radix:
            faults.append(
                f"network.leaf: {self.leaf.holds} NIC ports + {self.leaf.uplinks} uplinks "
                f"exceed radix {self.leaf.radix}"
            )
        refuse(faults)


Network = ClosSpec | MeshSpec | TorusSpec | DragonflySpec
