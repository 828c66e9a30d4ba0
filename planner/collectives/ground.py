"""What a group stands on: rates, latencies and counts that the algorithms' costs share.

Symbols: n ranks, m of them in one supernode (at most), k supernodes. Each value is worked out when
an algorithm first asks for it, once for all algorithms of a question.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from planner.collectives.links import LinkNumbers, Spread


class Ground:
    """The spread and the links of one question, with what follows from both.

    Args:
        spread: members of the group on the tiers.
        links: the tiers' numbers.
    """

    def __init__(self, spread: Spread, links: LinkNumbers) -> None:
        self.spread = spread
        self.links = links
        self.n = spread.group_size
        self.m = spread.together
        self.k = spread.supernodes
        self.least = spread.least_members
        self.inside_latency_s = links.inside.latency_s
        self.issue_s = links.issue_s

    @cached_property
    def shape(self) -> tuple[int, ...]:
        """Shape that spread and links broadcast to."""
        tiers = [
            np.shape(number)
            for tier in self.links.tiers
            for number in (tier.bytes_per_s, tier.shared_bytes_per_s, tier.latency_s,
                           tier.efficiency_share, tier.in_network_reduction)
        ]  # fmt: skip
        counts = (self.n, self.least, *self.spread.members, *self.spread.domains)
        return np.broadcast_shapes(*tiers, *map(np.shape, counts))

    @cached_property
    def split(self) -> Any:
        """Whether the group leaves its supernode."""
        return np.greater(self.k, 1)

    def launch_s(self, base_s: float) -> Any:
        """Return the launch of the collective and a protocol's base, 0 for a group of one [s]."""
        once = np.asarray(self.links.launch_s, float) + base_s
        return np.greater(self.n, 1) * once if np.any(once) else 0.0

    @cached_property
    def own_s_per_byte(self) -> Any:
        """Time of the step on a rank's own shard, for one byte of it [s/byte]."""
        share = self.links.own_step_share
        return share * np.greater(self.n, 1) / self.inside_bytes_per_s if share else 0.0

    @cached_property
    def rails(self) -> Any:
        """NICs of the smallest supernode that one collective uses."""
        return np.minimum(self.least, self.links.max_rails)

    @cached_property
    def left_share(self) -> Any:
        """(m-1)/m."""
        return (self.m - 1) / self.m

    @cached_property
    def ring_share(self) -> Any:
        """(n-1)/n."""
        return (self.n - 1) / self.n

    @cached_property
    def log2_m(self) -> Any:
        """Ceiling of log2 m."""
        return np.ceil(np.log2(self.m))

    @cached_property
    def log2_k(self) -> Any:
        """Ceiling of log2 k."""
        return np.ceil(np.log2(self.k))

    @cached_property
    def fold_m(self) -> Any:
        """1 where m is no power of two: halving then folds the excess in and out."""
        return np.not_equal(np.exp2(self.log2_m), self.m) * 1.0

    @cached_property
    def fold_k(self) -> Any:
        """1 where k is no power of two."""
        return np.not_equal(np.exp2(self.log2_k), self.k) * 1.0

    @cached_property
    def inside_bytes_per_s(self) -> Any:
        """One GPU's scale-up rate when its m members in the supernode all send [bytes/s].

        On a full mesh m members reach each other over m - 1 pair links only.
        """
        tier = self.links.inside
        crowded = tier.crowded_bytes_per_s()
        if np.all(np.isinf(tier.pair_bytes_per_s)):
            return crowded
        pairs = np.maximum(self.m - 1, 1) * np.asarray(tier.pair_bytes_per_s, float)
        return np.minimum(crowded, pairs * tier.efficiency_share)

    @cached_property
    def pair_bytes_per_s(self) -> Any:
        """Scale-up rate from one GPU to one other, alone [bytes/s]."""
        tier = self.links.inside
        pair = np.asarray(tier.pair_bytes_per_s, float) * tier.efficiency_share
        return np.minimum(tier.alone_bytes_per_s(), pair)

    def _across(self, flows: Any) -> Any:
        """Return the rate of one of *flows* flows that leave each domain on the way round.

        Each flow has its own NIC. A domain of tier t-1 that holds M members of the group has M
        shares of that tier's oversubscribed uplink: rate = min over tiers touched of
        (line, shared x M / flows). Infinite where the group stays in one supernode.
        """
        rate: Any = np.inf
        spread = self.spread
        for tier, held, touched in zip(
            self.links.outer, spread.members, spread.domains, strict=True
        ):
            share = np.minimum(tier.alone_bytes_per_s(), tier.crowded_bytes_per_s() * held / flows)
            rate = np.minimum(rate, np.where(np.greater(touched, 1), share, np.inf))
        return rate

    @cached_property
    def one_flow_bytes_per_s(self) -> Any:
        """Rate of the only flow that leaves each domain [bytes/s]."""
        return self._across(1.0)

    @cached_property
    def rail_bytes_per_s(self) -> Any:
        """Rate of each of the flows, one a rail, that leave each domain [bytes/s]."""
        return self._across(np.minimum(self.m, self.links.max_rails))

    @cached_property
    def crowd_bytes_per_s(self) -> Any:
        """One NIC's rate when every member sends over the outermost tier touched [bytes/s]."""
        rate: Any = np.inf
        for tier, touched in zip(self.links.outer, self.spread.domains, strict=True):
            crowded = tier.crowded_bytes_per_s()
            rate = np.minimum(rate, np.where(np.greater(touched, 1), crowded, np.inf))
        return rate

    @cached_property
    def across_latency_s(self) -> Any:
        """Latency of the outermost tier that the group touches, 0 inside one supernode [s]."""
        latency: Any = 0.0
        for tier, touched in zip(self.links.outer, self.spread.domains, strict=True):
            latency = np.where(np.greater(touched, 1), tier.latency_s, latency)
        return latency

    @cached_property
    def circle_s(self) -> tuple[Any, Any]:
        """Inside and across latency of one way round a contiguous ring, less its cheapest hop.

        A chunk passes n - 1 hops, so one of the n is saved: an inside hop where there is one.
        Of the hops that leave supernodes, those that leave leaves pay the outer tier.
        """
        leaving = [np.where(np.greater(d, 1), d, 0) for d in self.spread.domains] + [0.0]
        across: Any = 0.0
        for position, tier in enumerate(self.links.outer):
            across = across + (leaving[position] - leaving[position + 1]) * np.asarray(
                tier.latency_s, float
            )
        inside_hops = self.n - leaving[0]
        saved_inside = np.minimum(inside_hops, 1)
        inside = (inside_hops - saved_inside) * self.inside_latency_s
        return inside, across - (1 - saved_inside) * self.across_latency_s

    @cached_property
    def circle_across_hops(self) -> Any:
        """Hops over NICs on one way round a contiguous ring, less one where all hops are such."""
        leaving = np.where(self.split, self.k, 0.0)
        return leaving - self.split * np.equal(leaving, self.n)

    @cached_property
    def share_s_per_byte(self) -> Any:
        """Time of the smallest supernode's NICs for one pass over one byte of V [s/byte].

        A supernode that keeps n_i/n of the result sends V (1 - n_i/n) over n_i NICs in a pass,
        which is V (k-1)/k / m where all are equal.
        """
        return (self.n - self.least) / (self.n * self.rails) / self.rail_bytes_per_s

    @cached_property
    def rails_s_per_byte(self) -> Any:
        """Time of one byte that leaves a supernode over all its rails [s/byte]."""
        return 1.0 / (self.rails * self._across(self.rails))

    @cached_property
    def pair_leaving_s_per_byte(self) -> Any:
        """Longest time that any tier's uplink needs for one byte to each far rank [s/byte]."""
        busy: Any = 0.0
        for position, (tier, held) in enumerate(
            zip(self.links.outer, self.spread.members, strict=True)
        ):
            stay = self.least if position == 0 else held
            busy = np.maximum(busy, (self.n - stay) / tier.crowded_bytes_per_s())
        return busy

    @cached_property
    def switch_s_per_byte(self) -> Any:
        """All-reduce of one byte in the scale-up switch, infinite where it cannot [s/byte].

        A port sends its V once for the reduction and V/m once for the multicast: V (1 + 1/m).
        """
        tier = self.links.inside
        if not np.any(tier.in_network_reduction):
            return np.inf
        busy = (1 + 1 / self.m) / (self.inside_bytes_per_s * tier.reduction_share)
        busy = np.where(np.greater(self.m, 1), busy, 0.0)
        return np.where(tier.in_network_reduction, busy, np.inf)

    @cached_property
    def network_s_per_byte(self) -> Any:
        """Reduction of one byte of a rail's share in the outer switches, infinite if unable."""
        able: Any = True
        share: Any = 1.0
        for tier, touched in zip(self.links.outer, self.spread.domains, strict=True):
            inner = np.less_equal(touched, 1)
            able = able & (inner | np.asarray(tier.in_network_reduction, bool))
            share = np.where(inner, share, np.minimum(share, tier.reduction_share))
        if not np.any(able & self.split):
            return np.inf
        return np.where(able & self.split, 1 / (self.rail_bytes_per_s * share), np.inf)
