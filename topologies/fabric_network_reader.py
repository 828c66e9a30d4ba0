"""``network:`` of a cluster file to the scale-out network it describes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from math import ceil, isclose
from typing import Protocol

from planner.nodes import Node
from topologies.fabric_figures import ABOUT_FIGURES, Figures, figure, figure_if_there
from topologies.fabric_network_spec import (
    ClosSpec,
    DragonflySpec,
    MeshSpec,
    Network,
    SwitchTierSpec,
    TorusSpec,
)
from topologies.fabric_spec import MOST_GPUS

NETWORK_KINDS = (
    "fat_tree",
    "rail_optimised",
    "rail_only",
    "multi_plane",
    "mesh",
    "torus",
    "dragonfly_plus",
)
_CLOS = {
    "fat_tree": "shared",
    "rail_optimised": "shared",
    "rail_only": "none",
    "multi_plane": "rail",
}
_UP = ("uplinks", "oversubscription", "uplink_rate")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tier:
    """One tier of switches as read."""

    radix: int = 1
    latency_s: float = 1.0
    holds: int = 0
    switches: int = 0
    uplinks: int = 0
    uplink_bytes_per_s: float = 0.0
    buffer_bytes: float = 0.0

    def built(self) -> SwitchTierSpec:
        return SwitchTierSpec(
            radix=self.radix,
            hop_latency_s=self.latency_s,
            holds=self.holds,
            switches=self.switches,
            uplinks=self.uplinks,
            uplink_bytes_per_s=self.uplink_bytes_per_s,
            buffer_bytes=self.buffer_bytes,
        )


class NetworkDraft(Protocol):
    """A network as read; build it once the document has no faults."""

    def built(self) -> Network:
        """Return the network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClosDraft:
    scope: str
    rails: int
    planes: int
    leaf: _Tier
    spine: _Tier | None
    core: _Tier | None

    def built(self) -> Network:
        return ClosSpec(
            rails=self.rails,
            planes=self.planes,
            spine_scope=self.scope,
            leaf=self.leaf.built(),
            spine=self.spine.built() if self.spine else None,
            core=self.core.built() if self.core else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _DragonflyDraft:
    leaf: _Tier
    spine: _Tier

    def built(self) -> Network:
        return DragonflySpec(leaf=self.leaf.built(), spine=self.spine.built())


@dataclass(frozen=True, slots=True, kw_only=True)
class _MeshDraft:
    dims: tuple[int, ...]
    latency_s: float
    links: int
    switches: int
    radix: int

    def built(self) -> Network:
        return MeshSpec(
            dims=self.dims,
            hop_latency_s=self.latency_s,
            links=self.links,
            switches=self.switches,
            radix=self.radix,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _TorusDraft:
    dims: tuple[int, ...]

    def built(self) -> Network:
        return TorusSpec(dims=self.dims)


@dataclass(kw_only=True)
class NetworkReader:
    """Reads ``network:``.

    Args:
        node: the mapping.
        figures: where sources and assumptions are noted.
        whole: source that covers the file, or None.
    """

    node: Node
    figures: Figures
    whole: str | None
    kind: str = field(init=False)
    domains: tuple[str, ...] = field(init=False)
    in_network_reduction: bool = field(init=False)

    def __post_init__(self) -> None:
        node = self.node
        self.kind = node.text("kind", choices=NETWORK_KINDS)
        listed = node.list("domains", default=()) if node.has("domains") else None
        known = ("leaf", "pod", "cluster")
        self.domains = known if listed is None else tuple(n.as_text(choices=known) for n in listed)
        self.in_network_reduction = node.flag("in_network_reduction", default=False)

    def read(self, nic_bytes_per_s: float, supernode_size: int) -> NetworkDraft:
        """Return the network.

        Args:
            nic_bytes_per_s: line rate of one GPU, which an oversubscription counts from [bytes/s].
            supernode_size: GPUs of a full supernode [1].
        """
        if self.kind in _CLOS:
            return self._clos(nic_bytes_per_s, supernode_size)
        if self.kind == "dragonfly_plus":
            covering = self._note("leaf", "spine")
            leaf = self._leaf(covering, nic_bytes_per_s)
            return _DragonflyDraft(leaf=leaf, spine=self._spine(covering, goes_up=True))
        figures = ("latency", "links", "switches", "radix") if self.kind == "mesh" else ()
        self._note("dims", figures=figures)
        dims = tuple(n.as_count() for n in self.node.list("dims"))
        if self.kind == "torus":
            return _TorusDraft(dims=dims)
        return _MeshDraft(
            dims=dims,
            latency_s=figure(self.node, "latency", self.node.time),
            links=figure(self.node, "links", self.node.count),
            switches=figure(self.node, "switches", self.node.count),
            radix=figure(self.node, "radix", self.node.count),
        )

    def _note(self, *keys: str, figures: tuple[str, ...] = ()) -> str | None:
        """Refuse unknown keys, note the sources of *figures*, return what covers the tiers."""
        common = ("kind", "domains", "in_network_reduction")
        self.node.only(*common, *keys, *figures, *ABOUT_FIGURES)
        return self.figures.note(
            self.node, "network", (*figures, "in_network_reduction"), self.whole
        )

    def _clos(self, nic_bytes_per_s: float, supernode_size: int) -> NetworkDraft:
        node = self.node
        railed = self.kind != "fat_tree"
        spined = self.kind != "rail_only"
        keys = ("leaf", "spine", "core") if spined else ("leaf",)
        covering = self._note(*keys, figures=("planes", "rails") if railed else ("planes",))
        planes = figure(node, "planes", partial(node.count, default=1))
        rails = node.count("rails", maximum=max(1, supernode_size)) if railed else 1
        port = nic_bytes_per_s / planes
        cored = spined and node.has("core")
        return _ClosDraft(
            scope=_CLOS[self.kind],
            rails=rails,
            planes=planes,
            leaf=self._leaf(covering, port) if spined else self._last_leaf(covering),
            spine=self._spine(covering, goes_up=cored) if spined else None,
            core=self._plain("core", covering, ()) if cored else None,
        )

    def _plain(self, key: str, covering: str | None, more: tuple[str, ...]) -> _Tier:
        """Return what every tier of switches has, and refuse what is neither that nor *more*."""
        node = self.node.map(key)
        figures = (*more, "radix", "latency", "buffer")
        node.only(*figures, *ABOUT_FIGURES)
        self.figures.note(node, f"network.{key}", figures, covering)
        return _Tier(
            radix=figure(node, "radix", node.count),
            latency_s=figure(node, "latency", node.time),
            buffer_bytes=figure_if_there(node, "buffer", node.bytes),
        )

    def _last_leaf(self, covering: str | None) -> _Tier:
        """Return a leaf with nothing above it."""
        plain = self._plain("leaf", covering, ("gpus",))
        return replace(plain, holds=self.node.map("leaf").count("gpus", maximum=MOST_GPUS))

    def _leaf(self, covering: str | None, port_bytes_per_s: float) -> _Tier:
        """Return the leaf tier; *port_bytes_per_s* is the rate of one NIC port."""
        plain = self._plain("leaf", covering, ("gpus", *_UP))
        node = self.node.map("leaf")
        holds = node.count("gpus", maximum=MOST_GPUS)
        rate = figure(node, "uplink_rate", node.rate)
        asked = self._asked(node)
        if asked is None:
            return replace(
                plain,
                holds=holds,
                uplinks=figure(node, "uplinks", node.count),
                uplink_bytes_per_s=rate,
            )
        down = holds * port_bytes_per_s
        links = max(1, ceil(down / (asked * rate) - 1e-9)) if rate else 1
        self._tell("leaf", links, down / (links * rate) if rate else asked, asked)
        return replace(plain, holds=holds, uplinks=links, uplink_bytes_per_s=rate)

    def _spine(self, covering: str | None, *, goes_up: bool) -> _Tier:
        """Return the spine tier; its ports are shared out between leaves and core."""
        up = _UP if goes_up else ()
        plain = self._plain("spine", covering, ("pod_gpus", "switches", *up))
        node = self.node.map("spine")
        held = replace(
            plain,
            holds=node.count("pod_gpus", default=0, maximum=MOST_GPUS),
            switches=figure(node, "switches", partial(node.count, default=0)),
        )
        if not goes_up:
            return held
        rate = figure(node, "uplink_rate", node.rate)
        asked = self._asked(node)
        if asked is None:
            uplinks = figure(node, "uplinks", partial(node.count, default=0))
            return replace(held, uplinks=uplinks, uplink_bytes_per_s=rate)
        links = max(1, ceil(plain.radix / (1 + asked) - 1e-9))
        self._tell("spine", links, (plain.radix - links) / links, asked)
        return replace(held, uplinks=links, uplink_bytes_per_s=rate)

    def _asked(self, node: Node) -> float | None:
        """Return the oversubscription asked for, or None where links are counted."""
        if not node.has("oversubscription"):
            return None
        if node.has("uplinks"):
            node.fault("expected either uplinks or oversubscription, not both", key="uplinks")
        return max(1.0, figure(node, "oversubscription", partial(node.number, minimum=1.0)))

    def _tell(self, key: str, links: int, given: float, asked: float) -> None:
        """Note that whole links do not give exactly the oversubscription asked for."""
        if not isclose(given, asked, rel_tol=1e-6):
            self.figures.assumed[f"network.{key}.uplinks"] = (
                f"{links} whole links give {given:.3g}:1 for the {asked:g}:1 asked"
            )
