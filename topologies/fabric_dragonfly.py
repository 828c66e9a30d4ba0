"""Dragonfly+: groups that are fat trees of two tiers, every two of them joined directly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import SpecError
from topologies.fabric_clos import Bundles
from topologies.fabric_fat_tree import FatTreePlan
from topologies.fabric_levels import Level
from topologies.fabric_links import add_bundles
from topologies.fabric_network_spec import ClosSpec, DragonflySpec, SwitchTierSpec
from topologies.fabric_seats import Seats, sums
from topologies.fabric_spec import FabricSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class DragonflyPlan(FatTreePlan):
    """Dragonfly+: the pods of a two-tier fat tree, every two of them joined by global links."""

    @cached_property
    def _global(self) -> Bundles:
        """Return spine-to-spine links: each pair of groups gets an equal share of the ports.

        ⌊spines · uplinks / (groups - 1)⌋ for a pair; the lesser of the two groups decides.
        """
        w = self.wiring
        spines = [np.flatnonzero(w.spine_pod == p).tolist() for p in range(int(w.pod[-1]) + 1)]
        ports = [len(s) * w.spine_uplinks // max(1, len(spines) - 1) for s in spines]
        if len(spines) > 1 and min(ports) == 0:
            raise SpecError(
                f"network.spine: {len(spines)} groups, but the spines of one have only "
                f"{min(map(len, spines)) * w.spine_uplinks} global links: expected "
                f"{len(spines) - 1} or more"
            )
        next_port = [0] * len(spines)
        links: dict[tuple[int, int], int] = {}
        for p in range(len(spines)):
            for q in range(p + 1, len(spines)):
                for _ in range(min(ports[p], ports[q])):
                    a = spines[p][next_port[p] % len(spines[p])]
                    b = spines[q][next_port[q] % len(spines[q])]
                    next_port[p] += 1
                    next_port[q] += 1
                    links[a, b] = links.get((a, b), 0) + 1
        ends = np.array(sorted(links), np.int64).reshape(-1, 2)
        counts = np.array([links[a, b] for a, b in ends.tolist()], np.int64)
        return Bundles(lower=ends[:, 0], upper=ends[:, 1], links=counts)

    @cached_property
    def _spine_out(self) -> Floats:
        """Return what each spine lets out of its group: min(links below, global links)."""
        w, found = self.wiring, self._global
        if w.pod[-1] == 0:
            return np.full(len(w.spine_pod), np.inf)
        ends = np.concatenate([found.lower, found.upper])
        out = sums(ends, np.concatenate([found.links, found.links]), len(w.spine_pod))
        below = sums(w.up.upper, w.up.links, len(w.spine_pod))
        return np.minimum(
            below * self.network.leaf.uplink_bytes_per_s, out * self._spine.uplink_bytes_per_s
        )

    @property
    def mixing_bytes_per_s(self) -> float:
        """Return the even all-to-all rate over direct links: x · n_p · n_q / (N - n_p) = c_pq."""
        w = self.wiring
        gpus = sums(w.pod, self.seats.usable, int(w.pod[-1]) + 1)
        found, pods = self._global, len(gpus)
        if pods == 1:
            return np.inf
        pair = np.zeros((pods, pods))
        np.add.at(pair, (w.spine_pod[found.lower], w.spine_pod[found.upper]), found.links)
        pair = (pair + pair.T) * self._spine.uplink_bytes_per_s
        rate = pair * (gpus.sum() - gpus)[:, None] / np.maximum(1, gpus[:, None] * gpus[None, :])
        return float(rate[~np.eye(pods, dtype=bool)].min())

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """Return leaves, groups and the cluster: one global link more than inside a group."""
        leaf, pod, cluster = super().levels
        if self.wiring.pod[-1] == 0 or self.network.core is None:
            return leaf, pod, cluster
        latency_s = pod.latency_s + self.network.core.hop_latency_s
        return leaf, pod, replace(cluster, latency_s=latency_s)

    def _add_cores(  # a group's spines are joined to other groups' instead
        self,
        graph: Any,
        prefix: str,  # noqa: ARG002 - as in a fat tree
        plane: int,  # noqa: ARG002 - as in a fat tree
        spines: list[str],
        tier: str,
    ) -> None:
        if self.network.core is not None:
            rate = self._spine.uplink_bytes_per_s
            add_bundles(graph, spines, spines, self._global, rate, self.network.core, tier)


def dragonfly_plan(spec: FabricSpec, network: DragonflySpec, seats: Seats) -> DragonflyPlan:
    """Return the plan of a Dragonfly+ network; a global link costs one spine hop of start-up."""
    no_core = SwitchTierSpec(radix=10**9, hop_latency_s=network.spine.hop_latency_s)
    pods = ClosSpec(
        rails=1,
        planes=1,
        spine_scope="shared",
        leaf=network.leaf,
        spine=network.spine,
        core=no_core,
    )
    return DragonflyPlan(spec=spec, network=pods, seats=seats)
