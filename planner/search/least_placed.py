"""What no placement's step is shorter than: each digit as well as it can sit beside the others.

A placement is told by which digits it keeps whole in supernodes. Those take no less than inside
one; every other digit crosses, and then takes no less than over its own NICs, as many rails of them
as its fewest supernodes allow, at their full rate. Proof and limits: ``FORMULATION.md``, *Exposed
bytes*.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from math import ceil, prod
from typing import TYPE_CHECKING

import numpy as np

from planner.collectives.links import LinkNumbers, Spread, TierNumbers, links_of
from planner.network.flows import PASSES
from planner.network.wiring import SCALE_UP_COST
from planner.steptime.columns import columns_of
from planner.steptime.spread import DIGITS, SHARDING, Spreads
from planner.steptime.step import step_columns

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.model import ModelSpec
    from planner.network.reach import Links
    from planner.network.wiring import Wiring
    from planner.steptime.rates import Efficiency
    from planner.traffic import Family

_FREE = 1e-12  # what bytes take of their time that nothing is claimed of: nothing
_SAFE = 1 - 1e-9  # relative; two orders of the same floating-point sums


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sitting:
    """Which digits lie whole in supernodes, and in how many each of the others lies at least."""

    supernodes: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What is known of routes.

    Args:
        inside: in a supernode they put on a GPU's own port what it sends.
        across: between supernodes they put on its own NIC what it sends.
        even_share: of the NIC's rate, what is left when all send [1].
    """

    inside: bool
    across: bool
    even_share: float


def least_placed_s(
    model: ModelSpec,
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    *,
    wiring: Wiring | None,
    efficiency: Efficiency | None = None,
) -> float:
    """Return seconds that the step of *layout* takes at least, wherever its ranks sit [s].

    Args:
        model: the transformer's shape.
        layout: the parallel degrees.
        families: the traffic of one step.
        fabric: the cluster.
        wiring: its links, of ``seated_wiring``; None where flows are not routed.
        efficiency: as of ``seated_step_time``, whose steps are bounded.
    """
    capacities = fabric.capacities("supernode")
    sittings = list(_sittings(layout, capacities))
    links = links_of(fabric)
    inside = links.tiers[0]
    known = _Known(
        inside=not np.any(np.less(inside.pair_bytes_per_s, inside.bytes_per_s)),
        across=wiring is None or _joined(wiring.links),
        even_share=_even_share(links.tiers[1:]),
    )
    outer = len(links.tiers) - 1
    step = step_columns(
        model,
        columns_of(layout),
        accelerator=fabric.accelerator,
        links=_unshared(links),
        spreads=_spreads(layout, sittings, outer),
        efficiency=efficiency,
        slowdown=_least_slowdown(layout, families, sittings, known),
    )
    return float(np.min(step.total_s)) * _SAFE


def _digits(layout: Layout) -> tuple[str, ...]:
    return (*DIGITS, *(SHARDING if layout.dp_shard else ()))


def _sittings(layout: Layout, capacities: Sequence[int]) -> Iterator[_Sitting]:
    """Yield every set of digits that can be whole in supernodes together, others being parted.

    With whole digits of axes A, of v ranks, a supernode of C seats holds C / v boxes along A at
    most, and all boxes must fit; a group that runs through b of them lies in b / (C / v)
    supernodes at least.
    """
    axes = {digit: frozenset(layout.axes_of(digit)) for digit in _digits(layout)}
    sizes = [axis.size for axis in layout.axes]
    live = {digit: frozenset(i for i in of if sizes[i] > 1) for digit, of in axes.items()}
    parted = [digit for digit, of in live.items() if of]
    for count in range(len(parted) + 1):
        for whole in combinations(parted, count):
            inside = frozenset[int]().union(*(live[digit] for digit in whole))
            volume = prod(sizes[i] for i in inside)
            boxes = max(capacities) // volume
            fits = sum(c // volume for c in capacities) * volume >= layout.gpus
            if not fits or any(live[d] <= inside for d in parted if d not in whole):
                continue
            touched = {
                digit: max(2, ceil(prod(sizes[i] for i in of - inside) / boxes))
                for digit, of in live.items()
                if digit in parted and digit not in whole
            }
            if max(touched.values(), default=1) <= len(capacities):
                yield _Sitting(supernodes=touched)


def _spreads(layout: Layout, sittings: Sequence[_Sitting], outer: int) -> Spreads:
    """Return the spreads of all sittings, one row each, those of parted digits better than real.

    One member together, so that nothing is taken inside; and as many rails as the fewest
    supernodes allow.
    """
    sizes = [axis.size for axis in layout.axes]
    spreads = {}
    for digit in _digits(layout):
        n = prod(sizes[i] for i in layout.axes_of(digit))
        k = np.array([float(sitting.supernodes.get(digit, 1)) for sitting in sittings])
        one = np.ones_like(k)
        spreads[digit] = Spread(
            group_size=n * one,
            members=(np.where(k > 1, 1.0, n), *(n * one,) * outer)[:outer],
            domains=(k, *(one,) * outer)[:outer],
            least_members=np.floor(n / k),
        )
    return Spreads(**spreads)


def _unshared(links: LinkNumbers) -> LinkNumbers:
    """Return *links* as if nothing were on them but one collective, the outer tiers at their best.

    A message inside a supernode starts no later than one outside.
    """
    inner, outer = links.tiers[0], links.tiers[1:]
    if not outer:
        return links
    rate = max(float(np.max(tier.alone_bytes_per_s())) for tier in outer)
    latency_s = min(float(np.min(tier.latency_s)) for tier in outer)
    return replace(
        links,
        tiers=(
            replace(
                inner,
                shared_bytes_per_s=float("inf"),
                latency_s=np.minimum(inner.latency_s, latency_s),
            ),
            *(
                replace(
                    tier,
                    bytes_per_s=rate,
                    shared_bytes_per_s=float("inf"),
                    efficiency_share=1.0,
                    latency_s=latency_s,
                )
                for tier in outer
            ),
        ),
    )


def _even_share(outer: Sequence[TierNumbers]) -> float:
    """Return what is left of the best NIC's rate where all send through the narrowest tier [1]."""
    if not outer:
        return 1.0
    best = max(float(np.max(tier.alone_bytes_per_s())) for tier in outer)
    return min(float(np.min(tier.crowded_bytes_per_s())) for tier in outer) / best


def _least_slowdown(
    layout: Layout, families: Sequence[Family], sittings: Sequence[_Sitting], known: _Known
) -> dict[str, np.ndarray]:
    """Return what each digit's bytes take at least of their time, by sitting [1].

    All of it where routes can only add to it; nothing where that is not known: inside a mesh,
    across where GPUs relay, of copies that cross, of hybrid sharding, and of digits whose families
    do not all send alike.
    """
    found = {}
    for digit in sorted({family.digit for family in families}):
        crosses = np.array([digit in sitting.supernodes for sitting in sittings])
        own = [family for family in families if family.digit == digit]
        kinds = {_kind(family) for family in own}
        across = _share_of_all_groups(own) if len(kinds) == 1 else _FREE
        if kinds == {"domain_all_to_all"} or (layout.dp_shard and digit in ("dp", "edp")):
            across = _FREE
        if kinds == {"chain"}:  # its hops inside are slowed and quickened with those across
            across *= known.even_share if known.inside else _FREE
        if not known.across:
            across = _FREE
        found[digit] = np.where(crosses, across, 1.0 if known.inside else _FREE)
    return found


def _joined(links: Links) -> bool:
    """Return whether every NIC reaches every other through switches, without a GPU that relays."""
    lead = list(range(len(links.vertices)))

    def leader(vertex: int) -> int:
        while lead[vertex] != vertex:
            lead[vertex] = lead[lead[vertex]]
            vertex = lead[vertex]
        return vertex

    through = ~(links.is_gpu[links.tails] | links.is_gpu[links.heads])
    through &= links.cost != SCALE_UP_COST
    for tail, head in zip(
        links.tails[through].tolist(), links.heads[through].tolist(), strict=True
    ):
        lead[leader(tail)] = leader(head)
    return len({leader(vertex) for vertex in np.flatnonzero(links.is_nic).tolist()}) == 1


def _kind(family: Family) -> str:
    """Return how *family* sends; families of one kind take times in proportion to their bytes."""
    return "reduction" if family.collective in PASSES else family.collective


def _share_of_all_groups(families: Sequence[Family]) -> float:
    """Return the part of the bytes that runs between all neighbours of a group, not its ends."""
    moved = [
        family.times_per_step * family.payload_bytes * PASSES.get(family.collective, 1)
        for family in families
    ]
    inner = sum(b for b, family in zip(moved, families, strict=True) if not family.ends_only)
    return max(_FREE, inner / sum(moved)) if sum(moved) > 0 else 1.0
