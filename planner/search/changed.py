"""A cluster's network under a change: the tiers' numbers, the fabric, the links that are routed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from planner.collectives.links import LinkNumbers, TierNumbers, in_flight_bytes_per_s, links_of
from planner.network.wiring import SCALE_UP_COST, Wiring

if TYPE_CHECKING:
    from planner.fabric import Fabric, Nic


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What is different from the machine as it is, as factors.

    Args:
        nic_rate: of the NICs' line rate and all links outside the supernode [1].
        nic_latency: of every start-up outside the supernode [1].
        in_flight: of the transactions a NIC may have outstanding [1].
        crowding: of the oversubscription of links between switches, outside the supernode [1].
        scale_up_rate: of the rates inside the supernode [1].
        seq: of the sequence length [1].
    """

    nic_rate: float = 1.0
    nic_latency: float = 1.0
    in_flight: float = 1.0
    crowding: float = 1.0
    scale_up_rate: float = 1.0
    seq: float = 1.0


AS_IT_IS = Change()


def outer_bytes_per_s(fabric: Fabric) -> tuple[float, ...]:
    """Return what the links of each outer tier carry for a GPU, whatever its NIC can [bytes/s]."""
    names = [tier.name for tier in fabric.tiers]
    outer = fabric.tiers[names.index("supernode") + 1 :]
    return tuple(float(tier.bytes_per_s) for tier in outer)


def changed_links(
    links: LinkNumbers, raw_bytes_per_s: Sequence[float], nic: Nic, change: Change
) -> LinkNumbers:
    """Return *links* under *change*; the in-flight limit is applied anew.

    Args:
        links: of the cluster as it is.
        raw_bytes_per_s: of its outer tiers, as of ``outer_bytes_per_s`` [bytes/s].
        nic: whose in-flight limit bounds them.
        change: what is different.
    """
    limit = float(
        in_flight_bytes_per_s(
            nic.line_bytes_per_s * change.nic_rate, nic.in_flight * change.in_flight,
            nic.transaction_bytes, nic.turnaround_s,
        )
    )  # fmt: skip
    inside = links.inside
    tiers: list[TierNumbers] = [
        replace(
            inside,
            bytes_per_s=np.multiply(inside.bytes_per_s, change.scale_up_rate),
            shared_bytes_per_s=np.multiply(inside.shared_bytes_per_s, change.scale_up_rate),
            pair_bytes_per_s=np.multiply(inside.pair_bytes_per_s, change.scale_up_rate),
        )
    ]
    for raw, tier in zip(raw_bytes_per_s, links.outer, strict=True):
        alone = min(raw * change.nic_rate, limit)
        crowded = float(np.asarray(tier.shared_bytes_per_s)) * change.nic_rate
        # A tier that nothing crowds takes all that its GPUs send, however much that becomes.
        free = float(np.asarray(tier.shared_bytes_per_s)) >= float(np.asarray(tier.bytes_per_s))
        shared = alone if free else min(crowded, alone)
        if tier.has_switch_links:
            shared /= change.crowding
        tiers.append(
            replace(
                tier, bytes_per_s=alone, shared_bytes_per_s=min(shared, alone),
                latency_s=np.multiply(tier.latency_s, change.nic_latency),
                pair_bytes_per_s=np.multiply(tier.pair_bytes_per_s, change.nic_rate),
            )
        )  # fmt: skip
    return replace(links, tiers=tuple(tiers))


def changed_fabric(fabric: Fabric, change: Change) -> Fabric:
    """Return *fabric* with the tiers' rates and start-ups under *change*; its graph stays.

    The links that are routed change by ``changed_wiring``.
    """
    if change == AS_IT_IS:
        return fabric
    links = changed_links(links_of(fabric), outer_bytes_per_s(fabric), fabric.nic, change)
    inner = len(fabric.tiers) - len(links.tiers)
    tiers = [
        replace(
            tier, bytes_per_s=float(np.asarray(one.bytes_per_s)),
            shared_bytes_per_s=float(np.asarray(one.shared_bytes_per_s)),
            latency_s=float(np.asarray(one.latency_s)),
            pair_bytes_per_s=float(np.asarray(one.pair_bytes_per_s)),
        )
        for tier, one in zip(fabric.tiers[inner:], links.tiers, strict=True)
    ]  # fmt: skip
    nic = replace(
        fabric.nic, line_bytes_per_s=fabric.nic.line_bytes_per_s * change.nic_rate,
        in_flight=max(1, round(fabric.nic.in_flight * change.in_flight)),
    )  # fmt: skip
    return replace(
        fabric, tiers=(*fabric.tiers[:inner], *tiers), nic=nic, graph=lambda: fabric.graph
    )


def changed_wiring(wiring: Wiring, nic: Nic, change: Change) -> Wiring:
    """Return *wiring* with what its links reach under *change*.

    Oversubscription is of the links between switches: what joins a GPU or a NIC to them stays.

    Args:
        wiring: the cluster's links as they are.
        nic: as it is; its transactions in flight bound the link to it.
        change: what is different.
    """
    if change == AS_IT_IS:
        return wiring
    links = wiring.links
    at_gpu = links.is_gpu[links.tails] | links.is_gpu[links.heads]
    at_nic = links.is_nic[links.tails] | links.is_nic[links.heads]
    inside = links.cost == SCALE_UP_COST
    between = ~(inside | at_gpu | at_nic)
    factor = np.where(inside, change.scale_up_rate, change.nic_rate)
    factor = np.where(between, factor / change.crowding, factor)
    in_flight = nic.in_flight * nic.transaction_bytes / nic.turnaround_s
    capacity, own = links.capacity_bytes_per_s, at_gpu & at_nic
    before = np.where(own, np.minimum(capacity, in_flight), capacity)
    after = np.where(
        own, np.minimum(capacity * factor, in_flight * change.in_flight), capacity * factor
    )
    return replace(wiring, reached_bytes_per_s=wiring.reached_bytes_per_s * (after / before))
