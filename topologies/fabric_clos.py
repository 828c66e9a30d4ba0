"""The wiring of a fat tree: which NIC on which leaf, which leaf on which spine, and so on up.

All of it is for one plane; a dual-plane network has the same wiring twice.

*Rows.* A board deals its GPUs over the rails, so one row of a board takes one port of each leaf of
its leaf group. What is to be kept whole is: one that fits in a leaf group is never split over two,
one that does not fit has leaf groups of its own; the same for pods. Leaves are else
filled in order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.errors import SpecError
from topologies.fabric_network_spec import ClosSpec, SwitchTierSpec
from topologies.fabric_seats import Seats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundles:
    """Bundles of parallel links from a lower switch to an upper one; arrays of one length."""

    lower: Ints
    upper: Ints
    links: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosWiring:
    """One plane of a fat tree.

    Args:
        group: leaf group of each GPU; shape (gpus,), never decreasing.
        pod: pod of each GPU; shape (gpus,), never decreasing.
        leaf: leaf switch of each GPU's NIC; shape (gpus,).
        leaf_group, leaf_rail: of each leaf switch.
        spine_pod, spine_rail, spine_slot: of each spine switch; rail is 0 when spines are shared.
        up: leaf to spine.
        spine_uplinks: links of one spine to the core, 0 with one pod [1].
        core_up: spine to core.
        cores: number of core switches [1].
    """

    group: Ints
    pod: Ints
    leaf: Ints
    leaf_group: Ints
    leaf_rail: Ints
    spine_pod: Ints
    spine_rail: Ints
    spine_slot: Ints
    up: Bundles
    spine_uplinks: int
    core_up: Bundles
    cores: int


_NONE = np.zeros(0, np.int64)
_NO_LINKS = Bundles(lower=_NONE, upper=_NONE, links=_NONE)


def clos_wiring(network: ClosSpec, seats: Seats, board_gpus: int, kept: Ints) -> ClosWiring:
    """Return the wiring of one plane of *network*.

    Args:
        network: its tiers.
        seats: of the GPUs.
        board_gpus: GPUs of a board [1].
        kept: number of what each GPU's leaf group keeps whole; shape (gpus,), never decreasing.

    Raises:
        SpecError: more GPUs than the radix of its switches can join.
    """
    rails = network.rails
    rows_of_board = -(-board_gpus // rails)
    row = seats.place // board_gpus * rows_of_board + seats.place % board_gpus // rails
    rail = seats.place % board_gpus % rails
    group, owner = _leaf_groups(_rows_in(kept, row, seats.supernode), kept, network.leaf.holds)
    key = group * rails + rail
    leaf_key, leaf = np.unique(key, return_inverse=True)
    leaf_group, leaf_rail = leaf_key // rails, leaf_key % rails
    pods = _Pods.of(network, owner, len(leaf_key))
    spines = _spines(network, pods, leaf_group, leaf_rail)
    core_up, cores = _cores(network, pods, spines)
    return ClosWiring(
        group=group,
        pod=pods.of_group[group],
        leaf=leaf.astype(np.int64),
        leaf_group=leaf_group,
        leaf_rail=leaf_rail,
        spine_pod=spines.pod,
        spine_rail=spines.rail,
        spine_slot=spines.slot,
        up=spines.up,
        spine_uplinks=pods.spine_uplinks,
        core_up=core_up,
        cores=cores,
    )


def _rows_in(kept: Ints, row: Ints, supernode: Ints) -> Ints:
    """Return each GPU's row, counted on through the supernodes of what is kept whole.

    >>> one, two = np.zeros(4, np.int64), np.array([0, 0, 1, 1])
    >>> _rows_in(two, np.array([0, 1, 0, 1]), two).tolist()
    [0, 1, 0, 1]
    >>> _rows_in(one, np.array([0, 1, 0, 1]), two).tolist()
    [0, 1, 2, 3]
    """
    last = np.flatnonzero(np.append(np.diff(supernode) > 0, True))
    before = np.concatenate([[0], np.cumsum(row[last] + 1)[:-1]])
    first = np.searchsorted(kept[last], kept[last])
    counted: Ints = row + (before - before[first])[supernode]
    return counted


def _leaf_groups(row: Ints, kept: Ints, holds: int) -> tuple[Ints, list[int]]:
    """Return the leaf group of each GPU, and for each group the first of what it keeps whole."""
    last = np.flatnonzero(np.append(np.diff(kept) > 0, True))
    rows = row[last] + 1
    base = np.empty(len(rows), np.int64)
    owner: list[int] = []
    free = 0
    for s, need in enumerate(rows.tolist()):
        if need > free:
            owner += [s] * -(-need // holds)
            free = holds if need <= holds else 0
            base[s] = len(owner) - -(-need // holds)
        else:
            base[s] = len(owner) - 1
        free = max(0, free - need)
    return base[kept] + np.where(rows[kept] > holds, row // holds, 0), owner


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pods:
    """How leaf groups form pods, and what a spine then has below and above it."""

    of_group: Ints
    count: int
    spine_down: int
    spine_uplinks: int

    @classmethod
    def of(cls, network: ClosSpec, owner: list[int], leaves: int) -> _Pods:
        """Return the pods; one when the spines' radix or the file says so."""
        spine, groups = network.spine, len(owner)
        if spine is None:
            if groups > 1:
                raise SpecError(
                    f"network: {groups} leaf groups and no spine: one leaf group of "
                    f"{network.leaf.holds} boards is all that a network without spine joins"
                )
            return cls(of_group=np.zeros(groups, np.int64), count=1, spine_down=0, spine_uplinks=0)
        scopes = network.rails if network.spine_scope == "rail" else 1
        leaves_per_group = max(1, -(-leaves // groups) // scopes)
        if spine.holds:
            per_pod = max(1, spine.holds // (network.leaf.holds * network.rails))
        elif groups * leaves_per_group <= spine.radix:
            per_pod = groups
        else:
            per_pod = max(1, spine.radix // 2 // leaves_per_group)
        of_group = _fill(owner, per_pod)
        count = int(of_group[-1]) + 1
        uplinks = 0 if count == 1 else spine.uplinks or spine.radix // 2
        if count > 1 and network.core is None:
            raise SpecError(
                f"network: {count} pods of {per_pod} leaf groups and no core: two tiers of radix "
                f"{spine.radix} join {per_pod * leaves_per_group} leaves per spine group at most"
            )
        if max(uplinks, spine.uplinks) >= spine.radix:
            raise SpecError(
                f"network.spine: {spine.uplinks} uplinks leave no port for leaves of radix "
                f"{spine.radix}: expected fewer uplinks"
            )
        reserved = max(uplinks, spine.uplinks)
        return cls(
            of_group=of_group,
            count=count,
            spine_down=spine.radix - reserved,
            spine_uplinks=uplinks,
        )


def _fill(owner: list[int], per_pod: int) -> Ints:
    """Return the pod of each leaf group, one owner's groups kept together if they fit."""
    pod, room = 0, per_pod
    result: list[int] = []
    start = 0
    while start < len(owner):
        stop = start + 1
        while stop < len(owner) and owner[stop] == owner[start]:
            stop += 1
        need = stop - start
        if need > room and room < per_pod:
            pod, room = pod + 1, per_pod
        for _ in range(need):
            if room == 0:
                pod, room = pod + 1, per_pod
            result.append(pod)
            room -= 1
        start = stop
    return np.array(result, np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Spines:
    pod: Ints
    rail: Ints
    slot: Ints
    up: Bundles


def deal(lowers: Ints, uppers: Ints, uplinks: int) -> Bundles:
    """Return *uplinks* links of each lower switch, dealt evenly over the upper ones.

    Each lower switch goes on where the one before it stopped, so that no upper switch gets more
    than ⌈lowers · uplinks / uppers⌉.

    >>> deal(np.array([0, 1]), np.array([0, 1, 2]), 4).links.tolist()
    [2, 1, 1, 1, 2, 1]
    """
    base, rest = divmod(uplinks, len(uppers))
    turn = np.arange(len(uppers))[None, :] - np.arange(len(lowers))[:, None] * rest
    links = base + (turn % len(uppers) < rest).astype(np.int64)
    lower, upper = np.nonzero(links)
    return Bundles(lower=lowers[lower], upper=uppers[upper], links=links[lower, upper])


def joined(parts: list[Bundles]) -> Bundles:
    """Return the bundles of all *parts* in order."""
    if not parts:
        return _NO_LINKS
    return Bundles(
        lower=np.concatenate([p.lower for p in parts]),
        upper=np.concatenate([p.upper for p in parts]),
        links=np.concatenate([p.links for p in parts]),
    )


def _spines(network: ClosSpec, pods: _Pods, leaf_group: Ints, leaf_rail: Ints) -> _Spines:
    """Return as many spines per pod (and rail) as its leaves' uplinks fill, and their links."""
    if network.spine is None or len(leaf_group) == 1:
        return _Spines(pod=_NONE, rail=_NONE, slot=_NONE, up=_NO_LINKS)
    leaf_pod = pods.of_group[leaf_group]
    scope = leaf_rail if network.spine_scope == "rail" else np.zeros_like(leaf_rail)
    pod: list[int] = []
    rail: list[int] = []
    slot: list[int] = []
    parts: list[Bundles] = []
    for p in range(pods.count):
        for r in range(int(scope.max()) + 1):
            lowers = np.flatnonzero((leaf_pod == p) & (scope == r))
            if not lowers.size:
                continue
            count = _upper_count(
                network.leaf, len(lowers), pods.spine_down, "spine", network.spine.switches
            )
            parts.append(deal(lowers, np.arange(len(pod), len(pod) + count), network.leaf.uplinks))
            pod += [p] * count
            rail += [r] * count
            slot += range(count)
    return _Spines(pod=np.array(pod), rail=np.array(rail), slot=np.array(slot), up=joined(parts))


def _upper_count(lower: SwitchTierSpec, lowers: int, down: int, name: str, stated: int = 0) -> int:
    """Return ⌈lowers · uplinks / down⌉ upper switches, if each lower one reaches them all.

    More than that where the file states how many there are.
    """
    count = -(-lowers * lower.uplinks // down)
    if 0 < stated < count:
        raise SpecError(
            f"network.{name}: {stated} switches of {down} ports cannot take {lowers} x "
            f"{lower.uplinks} links: expected {count} or more"
        )
    count = max(count, stated)
    if count > lower.uplinks:
        raise SpecError(
            f"network: {lowers} switches with {lower.uplinks} uplinks each need {count} {name} "
            f"switches of {down} ports, but each can reach only {lower.uplinks}: "
            f"expected at most {down} switches below one group of {name} switches"
        )
    return count


def _cores(network: ClosSpec, pods: _Pods, spines: _Spines) -> tuple[Bundles, int]:
    """Return the links from spines to cores; equal slots of all pods share their cores."""
    if network.core is None or pods.count == 1:
        return _NO_LINKS, 0
    parts: list[Bundles] = []
    cores = 0
    lower = SwitchTierSpec(radix=network.core.radix, hop_latency_s=1.0, uplinks=pods.spine_uplinks)
    for r in range(int(spines.rail.max()) + 1):
        for j in range(int(spines.slot.max()) + 1):
            lowers = np.flatnonzero((spines.rail == r) & (spines.slot == j))
            if not lowers.size:
                continue
            count = _upper_count(lower, len(lowers), network.core.radix, "core")
            parts.append(deal(lowers, np.arange(cores, cores + count), pods.spine_uplinks))
            cores += count
    return joined(parts), cores
