"""What a collective needs to know of the network: the tiers' numbers and the group's spread.

``LinkNumbers`` are the tiers from the supernode outwards, ``Spread`` is how many members of the
group sit together at each of them. Everything is a float or a NumPy array and broadcasts, so one
group and a million run the same lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from planner.errors import InputError
from planner.fabric import Fabric


def in_flight_bytes_per_s(
    line_bytes_per_s: ArrayLike,
    in_flight: ArrayLike,
    transaction_bytes: ArrayLike,
    turnaround_s: ArrayLike,
) -> Any:
    """Return the rate a NIC sustains: min(line, in_flight x payload / turnaround) [bytes/s].

    Little's law; source: the in-flight case of the book (E-S23-074). Holds while every
    transaction has the same payload and turnaround.

    >>> round(float(in_flight_bytes_per_s(50e9, 128, 256, 2e-6)) / 1e9, 3)
    16.384
    """
    asked = np.asarray(in_flight, float) * np.asarray(transaction_bytes, float) / turnaround_s
    return np.minimum(np.asarray(line_bytes_per_s, float), asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class TierNumbers:
    """One tier's links as one GPU sees them, one direction.

    Args:
        name: ``supernode``, ``leaf``, ``cluster`` …
        bytes_per_s: what one GPU can send to GPUs that share this tier's domain but no inner
            one, when nothing else is on the links [bytes/s].
        shared_bytes_per_s: the same when every GPU sends at once [bytes/s].
        latency_s: start-up of one message between two such GPUs [s].
        efficiency_share: part of both rates that a collective's payload gets, 0 to 1.
        in_network_reduction: the tier's switches reduce (NVLS inside, SHARP outside); may be an
            array of booleans.
        reduction_share: part of the tier's rate that such a reduction reaches, 0 to 1.
        reduction_chunk_bytes: of such a reduction, each member's part of the first chunk, which
            fills the pipeline [bytes].
        pair_bytes_per_s: rate between one pair of GPUs where that is less than *bytes_per_s*
            (full mesh without a switch); infinite where a switch joins them.
        has_switch_links: as of ``planner.fabric.Tier``: whether it can be oversubscribed.
    """

    name: str
    bytes_per_s: ArrayLike
    shared_bytes_per_s: ArrayLike
    latency_s: ArrayLike
    efficiency_share: ArrayLike = 1.0
    in_network_reduction: ArrayLike = False
    reduction_share: ArrayLike = 1.0
    reduction_chunk_bytes: ArrayLike = 0.0
    pair_bytes_per_s: ArrayLike = float("inf")
    has_switch_links: bool = True

    def alone_bytes_per_s(self) -> Any:
        """Return the rate of one GPU alone, after efficiency [bytes/s]."""
        return np.asarray(self.bytes_per_s, float) * self.efficiency_share

    def crowded_bytes_per_s(self) -> Any:
        """Return the rate of one GPU when all send at once, after efficiency [bytes/s]."""
        crowded = np.minimum(self.bytes_per_s, self.shared_bytes_per_s)
        return np.asarray(crowded, float) * self.efficiency_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Protocol:
    """How the library moves a chunk: a small message buys latency with bandwidth.

    Args:
        name: ``simple``, ``ll128``, ``ll``.
        base_s: paid once by each collective, to fill the chunk pipeline [s].
        inside_latency_factor: times the supernode tier's latency [1].
        across_extra_s: of each message over a NIC, beside the network's latency [s].
        rate_share: part of the scale-up rate that remains, 0 to 1.
        across_rate_share: part of the outer tiers' rates that remains, 0 to 1.
        whole_chunks: it hands on whole chunks behind a fence, so that switches can reduce under it
            and any network carries it; the others need stores that arrive in order.
        exchange_share: both shares of an all-to-all, which moves pair by pair; 0 where an
            all-to-all cannot use the protocol.
        exchange_base_s: *base_s* of an all-to-all [s].
        fill_bytes: largest chunk of one rail: a tree hands it on hop by hop until its pipeline
            is full, and what is smaller than it is not pipelined at all [bytes].
    """

    name: str
    base_s: float = 0.0
    inside_latency_factor: float = 1.0
    across_extra_s: float = 0.0
    rate_share: float = 1.0
    across_rate_share: float = 1.0
    whole_chunks: bool = True
    exchange_share: float = 1.0
    exchange_base_s: float = 0.0
    fill_bytes: float = 0.0


SIMPLE = Protocol(name="simple")


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkNumbers:
    """The tiers from the supernode outwards, and what every collective pays once.

    Args:
        tiers: supernode first; the last holds everything. Of the outer tiers ``bytes_per_s``
            is already the NIC's rate after its in-flight limit.
        launch_s: paid once by each collective, whatever its size [s].
        issue_s: between two messages that one GPU starts towards different peers [s].
        protocols: ways to move a chunk; the cheapest is taken.
        whole_chunk_factor: times the supernode tier's latency, for protocols that hand on whole
            chunks [1].
        ordered_across: the network keeps the order of stores, so that every protocol may leave
            supernodes; may be an array of booleans.
        tree_chunk_factor: times the chunk of a switch reduction, where trees join supernodes and
            the network's plugin asks for larger ones [1].
        max_rails: NICs of one supernode that one collective uses at most [1].
        own_step_share: time a rank spends on its own shard, which no wire carries, as a part of
            a hop of a ring or of one pair of an all-to-all [1]. 0 counts wires only.
    """

    tiers: tuple[TierNumbers, ...]
    launch_s: ArrayLike = 0.0
    issue_s: ArrayLike = 0.0
    protocols: tuple[Protocol, ...] = (SIMPLE,)
    own_step_share: float = 0.0
    whole_chunk_factor: ArrayLike = 1.0
    ordered_across: ArrayLike = True
    tree_chunk_factor: ArrayLike = 1.0
    max_rails: ArrayLike = float("inf")

    def __post_init__(self) -> None:
        if not self.tiers:
            raise InputError("LinkNumbers: no tiers; give at least the supernode tier")

    @property
    def inside(self) -> TierNumbers:
        """The supernode tier."""
        return self.tiers[0]

    @property
    def outer(self) -> tuple[TierNumbers, ...]:
        """The tiers that are reached through the NIC, innermost first."""
        return self.tiers[1:]


def two_tiers(
    *,
    inside_bytes_per_s: ArrayLike,
    nic_bytes_per_s: ArrayLike,
    inside_latency_s: ArrayLike = 0.0,
    nic_latency_s: ArrayLike = 0.0,
    shared_bytes_per_s: ArrayLike | None = None,
    inside_reduction: ArrayLike = False,
    across_reduction: ArrayLike = False,
) -> LinkNumbers:
    """Return the numbers of supernodes under one network: a scale-up tier and a NIC.

    >>> two_tiers(inside_bytes_per_s=450e9, nic_bytes_per_s=50e9).outer[0].name
    'cluster'
    """
    inside = TierNumbers(
        name="supernode",
        bytes_per_s=inside_bytes_per_s,
        shared_bytes_per_s=inside_bytes_per_s,
        latency_s=inside_latency_s,
        in_network_reduction=inside_reduction,
    )
    across = TierNumbers(
        name="cluster",
        bytes_per_s=nic_bytes_per_s,
        shared_bytes_per_s=nic_bytes_per_s if shared_bytes_per_s is None else shared_bytes_per_s,
        latency_s=nic_latency_s,
        in_network_reduction=across_reduction,
    )
    return LinkNumbers(tiers=(inside, across))


def links_of(
    fabric: Fabric,
    *,
    inside_efficiency_share: float = 1.0,
    nic_efficiency_share: float = 1.0,
    launch_s: float = 0.0,
    issue_s: float = 0.0,
    protocols: tuple[Protocol, ...] = (SIMPLE,),
) -> LinkNumbers:
    """Return the link numbers of *fabric*, supernode tier first.

    Tiers inside the supernode (boards) are left out: the supernode's own rate stands for them.
    The outer tiers get min(tier rate, line, in_flight x payload / turnaround) of the NIC.
    """
    names = [tier.name for tier in fabric.tiers]
    first = names.index("supernode")
    limit = float(
        in_flight_bytes_per_s(
            fabric.nic.line_bytes_per_s,
            fabric.nic.in_flight,
            fabric.nic.transaction_bytes,
            fabric.nic.turnaround_s,
        )
    )
    tiers = []
    for position, tier in enumerate(fabric.tiers[first:]):
        alone = tier.bytes_per_s if position == 0 else min(tier.bytes_per_s, limit)
        tiers.append(
            TierNumbers(
                name=tier.name,
                bytes_per_s=alone,
                shared_bytes_per_s=min(tier.shared_bytes_per_s, alone),
                latency_s=tier.latency_s,
                efficiency_share=inside_efficiency_share if position == 0 else nic_efficiency_share,
                in_network_reduction=tier.in_network_reduction,
                pair_bytes_per_s=tier.pair_bytes_per_s or float("inf"),
                has_switch_links=tier.has_switch_links,
            )
        )
    return LinkNumbers(tiers=tuple(tiers), launch_s=launch_s, issue_s=issue_s, protocols=protocols)


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How the ranks of a group sit on the tiers of ``LinkNumbers``.

    Args:
        group_size: members n [1].
        members: for each tier but the last, the most members in one of its domains [1].
        domains: for each tier but the last, how many domains the group touches [1].
        least_members: fewest members in a supernode that it touches [1].
    """

    group_size: Any
    members: tuple[Any, ...]
    domains: tuple[Any, ...]
    least_members: Any

    @classmethod
    def of_one(cls, tiers: int) -> Spread:
        """Return how a group of one rank sits, which has nobody to send to.

        Args:
            tiers: of the links but for the last, as many as *members* of other groups has [1].

        >>> Spread.of_one(1)
        Spread(group_size=1.0, members=(1.0,), domains=(1.0,), least_members=1.0)
        """
        ones = (1.0,) * tiers
        return cls(group_size=1.0, members=ones, domains=ones, least_members=1.0)

    @classmethod
    def of(
        cls,
        group_size: ArrayLike,
        *members: ArrayLike,
        domains: Sequence[ArrayLike] | None = None,
        least_members: ArrayLike | None = None,
    ) -> Spread:
        """Return the spread of *group_size* ranks, *members* of them in one domain of each tier.

        ``domains`` left out means as few as hold the group; ``least_members`` left out means that
        all domains but one hold *members* and the last the rest (5+5+2).

        >>> Spread.of(12, 5).domains, Spread.of(12, 5).least_members
        ((3.0,), 2.0)
        """
        size = _number(group_size)
        held = tuple(_number(np.minimum(m, size)) for m in members)
        if domains is None:
            touched = tuple(_number(np.ceil(size / m)) for m in held)
        else:
            touched = tuple(_number(d) for d in domains)
        if least_members is not None:
            least = _number(least_members)
        elif held:
            least = _number(np.clip(size - held[0] * (touched[0] - 1), 1, held[0]))
        else:
            least = size
        return cls(group_size=size, members=held, domains=touched, least_members=least)

    @classmethod
    def of_counts(cls, *counts: Sequence[int]) -> Spread:
        """Return the spread of one group from its member counts at each tier but the last.

        >>> s = Spread.of_counts([5, 5, 2], [10, 2])
        >>> s.group_size, s.members, s.domains, s.least_members
        (12.0, (5.0, 10.0), (3.0, 2.0), 2.0)
        """
        held = [[c for c in tier if c > 0] for tier in counts]
        sizes = {sum(tier) for tier in held}
        if len(sizes) != 1:
            raise InputError(f"counts of one group add up to {sorted(sizes)}; they must agree")
        return cls(
            group_size=float(sizes.pop()),
            members=tuple(float(max(tier)) for tier in held),
            domains=tuple(float(len(tier)) for tier in held),
            least_members=float(min(held[0])),
        )

    @property
    def together(self) -> Any:
        """Most members in one supernode, m."""
        return self.members[0] if self.members else self.group_size

    @property
    def supernodes(self) -> Any:
        """Supernodes touched, k."""
        return self.domains[0] if self.domains else np.ones_like(self.group_size)


def _number(value: ArrayLike) -> Any:
    """Return *value* as floats: a scalar stays a scalar."""
    return np.asarray(value, float)[()] if np.ndim(value) else float(np.asarray(value))
