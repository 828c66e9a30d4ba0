"""From a network's levels to the tiers of a Fabric, without building the graph.

A *level* is a way the network groups GPUs: below one leaf group, in one pod, in the whole cluster.
A level becomes a tier only where it is a domain of its own: a union of whole supernodes, strictly
between the tier inside it and the cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from planner.fabric import Domain, Tier
from topologies.fabric_seats import Seats
from topologies.fabric_spec import FabricSpec

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """One grouping of GPUs by the network.

    Args:
        name: ``leaf``, ``pod`` or ``cluster``.
        of_gpu: group of each GPU; shape (gpus,), never decreasing.
        latency_s: start-up between GPUs that meet at this level [s].
        has_switch_links: whether they meet over links between switches.
    """

    name: str
    of_gpu: Ints
    latency_s: float
    has_switch_links: bool


class NetworkPlan(Protocol):
    """What each kind of scale-out network knows of itself."""

    @property
    def levels(self) -> tuple[Level, ...]:
        """Return the levels, innermost first; the last is ``cluster``."""

    @property
    def alone_bytes_per_s(self) -> float:
        """Return what one GPU may send into the network when nothing else does [bytes/s]."""

    @property
    def pair_bytes_per_s(self) -> float:
        """Return the rate between two given GPUs of different supernodes [bytes/s]."""

    @property
    def mixing_bytes_per_s(self) -> float:
        """Return what the middle of the network leaves each GPU when all send to all [bytes/s]."""

    def uplinks(self, domain: Ints, domains: int) -> Floats:
        """Return the capacity that leaves each domain; *domain* is of each GPU, dead too."""

    def add_to(self, graph: Any, tier_of: dict[str, str]) -> None:
        """Add the network's vertices and links; *tier_of* gives a level's edges their tier."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TierPlan:
    """The tiers chosen outside supernodes, and which tier each level's links belong to."""

    levels: tuple[Level, ...]
    tier_of: dict[str, str]


def chosen_levels(seats: Seats, levels: Sequence[Level], listed: Sequence[str]) -> TierPlan:
    """Return the levels that are tiers, and for each level the tier its links run in.

    *listed* are the levels that the file wants to count as domains; ``cluster`` always does.

    The links of a level that is no tier belong to the next tier outside it, so that the domains
    of a tier are what stays connected by the links of that tier and of the tiers inside it.
    """
    usable = seats.numbers
    supernode = seats.supernode[usable]
    first = np.flatnonzero(np.append(True, np.diff(supernode) > 0))
    last = np.append(first[1:], len(usable)) - 1
    inner_count = len(first)
    chosen: list[Level] = []
    for level in levels:
        of_usable = level.of_gpu[usable]
        whole = bool((of_usable[first] == of_usable[last]).all())
        count = 1 + int((np.diff(of_usable) > 0).sum())
        asked = level.name in listed and count > 1
        if whole and count < inner_count and (asked or level is levels[-1]):
            chosen.append(level)
            inner_count = count
    tier_of: dict[str, str] = {}
    for i, level in enumerate(levels):
        outer = [x.name for x in chosen if any(x is y for y in levels[i:])]
        same = [x.name for x in chosen if _same(x, level, seats)]
        tier_of[level.name] = (same or outer or [chosen[-1].name if chosen else "supernode"])[0]
    return TierPlan(levels=tuple(chosen), tier_of=tier_of)


def _same(a: Level, b: Level, seats: Seats) -> bool:
    """Return whether two levels group the usable GPUs alike."""
    changes_a, changes_b = np.diff(a.of_gpu[seats.usable]), np.diff(b.of_gpu[seats.usable])
    return bool(((changes_a > 0) == (changes_b > 0)).all())


def domains_of(
    names: Sequence[str], of_gpu: Ints, seats: Seats, uplinks: Floats, index: Ints
) -> tuple[Domain, ...]:
    """Return the domains that hold usable GPUs; *index* is GPU number to usable index."""
    numbers = seats.numbers
    groups, first = np.unique(of_gpu[numbers], return_index=True)
    members = index[numbers].tolist()
    stops = [*first[1:].tolist(), len(members)]
    return tuple(
        Domain(name=names[g], gpus=tuple(members[a:b]), uplink_bytes_per_s=float(uplinks[g]))
        for g, a, b in zip(groups.tolist(), first.tolist(), stops, strict=True)
    )


def usable_index(seats: Seats) -> Ints:
    """Return the usable index of each GPU number; -1 for a dead one."""
    index = np.full(len(seats.usable), -1, np.int64)
    index[seats.usable] = np.arange(int(seats.usable.sum()))
    return index


def outer_tiers(
    spec: FabricSpec,
    seats: Seats,
    plan: NetworkPlan,
    chosen: TierPlan,
    supernodes: tuple[Domain, ...],
) -> list[Tier]:
    """Return the tiers outside supernodes.

    What one GPU gets when all send is the least of what the groups inside this domain let out,
    uplink / GPUs, be they domains or not, and of what the middle of the network carries.
    """
    index = usable_index(seats)
    tiers: list[Tier] = []
    shared = min(plan.alone_bytes_per_s, *(d.uplink_bytes_per_s / len(d.gpus) for d in supernodes))
    passed: list[Level] = []
    for level in chosen.levels:
        last = level is chosen.levels[-1]
        for inside in plan.levels[: [x is level for x in plan.levels].index(True)]:
            if not any(inside is x for x in passed) and not _same(inside, level, seats):
                shared = min(shared, _least_share(plan, inside, seats))
                passed.append(inside)
        count = int(level.of_gpu[-1]) + 1
        ups = np.zeros(count) if last else plan.uplinks(level.of_gpu, count)
        digits = len(str(count - 1))
        names = (
            [level.name] if count == 1 else [f"{level.name}{i:0{digits}d}" for i in range(count)]
        )
        domains = domains_of(names, level.of_gpu, seats, ups, index)
        tiers.append(
            Tier(
                name=level.name,
                domains=domains,
                bytes_per_s=plan.alone_bytes_per_s,
                shared_bytes_per_s=min(shared, plan.mixing_bytes_per_s if last else shared),
                latency_s=level.latency_s,
                in_network_reduction=spec.in_network_reduction,
                pair_bytes_per_s=plan.pair_bytes_per_s,
                has_switch_links=level.has_switch_links,
            )
        )
    return tiers


def _least_share(plan: NetworkPlan, level: Level, seats: Seats) -> float:
    """Return the least uplink / usable GPUs over the groups of *level* [bytes/s]."""
    count = int(level.of_gpu[-1]) + 1
    if count == 1:
        return np.inf
    usable = np.bincount(level.of_gpu, seats.usable, count)
    filled = usable > 0
    return float((plan.uplinks(level.of_gpu, count)[filled] / usable[filled]).min())
