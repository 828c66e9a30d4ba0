"""The time of a collective on the group's real spread: the cheapest walk, named, with its parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.collectives.ground import Ground
from planner.collectives.links import LinkNumbers, Protocol, Spread
from planner.collectives.walk import Walk
from planner.collectives.walks import WALKS, hierarchical_all_to_all
from planner.errors import InputError

LIBRARY: Mapping[str, tuple[str, ...]] = MappingProxyType({
    "all_reduce": ("all_rail_ring", "double_tree", "switch_reduction", "switch_tree",
                   "network_reduction"),
    "reduce_scatter": ("all_rail_ring",),
    "all_gather": ("all_rail_ring",),
    "all_to_all": ("direct",),
})  # fmt: skip
"""What a stock library (NCCL 2.2x) can choose from; pass as ``available`` to predict it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTime:
    """The time of one collective; arrays of one shape (0-d for scalars).

    time = launch + start-ups + inside + across - hidden.

    Args:
        time_s: from the first byte to the last rank's end [s].
        startup_s: launch, latencies, issuing, and filling a tree's pipeline [s].
        inside_s: busiest scale-up port [s].
        across_s: busiest NIC or cut share [s].
        hidden_s: part of inside and across that a pipeline overlaps [s].
        algorithm: index into *names* [1].
        names: algorithms that were compared.
    """

    time_s: NDArray[np.float64]
    startup_s: NDArray[np.float64]
    inside_s: NDArray[np.float64]
    across_s: NDArray[np.float64]
    hidden_s: NDArray[np.float64]
    algorithm: NDArray[np.intp]
    names: tuple[str, ...]

    @property
    def name(self) -> str:
        """Algorithm of a scalar question."""
        return self.names[int(self.algorithm)]


def cheapest(
    collective: str,
    payload_bytes: ArrayLike,
    spread: Spread,
    links: LinkNumbers,
    *,
    available: Sequence[str] | None = None,
    across_share: ArrayLike = 1.0,
) -> CollectiveTime:
    """Return the time of the cheapest available algorithm, element by element.

    Args:
        collective: ``all_reduce``, ``reduce_scatter``, ``all_gather``, ``all_to_all``, ``ring``,
            ``chain``, ``broadcast``.
        payload_bytes: full vector V; v per ordered pair of all_to_all; bytes that one hop of ring
            or chain sends [bytes].
        spread: members of the group on the tiers.
        links: the tiers' numbers.
        available: names to choose from; None means every algorithm of the collective. In-network
            reduction is left out by itself where the tiers do not offer it.
        across_share: for the hierarchical all_to_all, part of the direct bytes that crosses when
            one copy per domain is sent, 0 to 1.

    Source: alpha-beta model; the three walks of the book's §7.6 (E-S23-073).
    Holds for one group, or for equal groups on all GPUs at once through the shared rates.

    >>> from planner.collectives.links import Spread, two_tiers
    >>> links = two_tiers(inside_bytes_per_s=450e9, nic_bytes_per_s=50e9)
    >>> V, sixteen = 192 * 2**20, Spread.of(16, 8)
    >>> ring = cheapest("all_reduce", V, sixteen, links, available=["contiguous_ring"])
    >>> round(float(ring.time_s) * 1e3, 2)
    7.55
    >>> walk = cheapest("all_reduce", V, sixteen, links, available=["hierarchical"])
    >>> [round(float(t) * 1e3, 3) for t in (walk.inside_s, walk.across_s, walk.time_s)]
    [0.783, 0.503, 1.286]
    """
    if collective not in WALKS:
        raise InputError(f"unknown collective {collective!r}; there are {sorted(WALKS)}")
    walks = WALKS[collective]
    names = tuple(walks) if available is None else tuple(available)
    unknown = [name for name in names if name not in walks]
    if unknown or not names:
        raise InputError(f"no algorithm {unknown} for {collective}; there are {list(walks)}")
    if len(spread.members) != len(links.outer):
        raise InputError(
            f"the spread has members for {len(spread.members)} tiers, the links have "
            f"{len(links.outer)} outer tiers; give one count for every tier but the last"
        )
    payload = np.asarray(payload_bytes, float)
    at = Ground(spread, links)
    ways = _ways(links, at, exchange=collective == "all_to_all")
    priced = []
    for name in names:
        if walks[name] is hierarchical_all_to_all:
            walk = hierarchical_all_to_all(payload, at, across_share)
        else:
            walk = walks[name](payload, at)
        priced.append(_priced(walk, ways))
    return _least(priced, names, np.broadcast_shapes(payload.shape, at.shape))


class _Parts(NamedTuple):
    time_s: Any
    startup_s: Any
    inside_s: Any
    across_s: Any
    hidden_s: Any


_IMPOSSIBLE = _Parts(np.inf, 0.0, 0.0, 0.0, 0.0)


class _Way(NamedTuple):
    protocol: Protocol
    launch_s: Any
    inside_share: float
    across_share: float
    inside_latency_factor: Any
    possible: Any


def _ways(links: LinkNumbers, at: Ground, *, exchange: bool) -> list[_Way]:
    """Return the protocols that can carry the collective, with launch and rate of its kind."""
    ways = []
    for protocol in links.protocols:
        inside, across = protocol.rate_share, protocol.across_rate_share
        if exchange:
            inside = across = protocol.exchange_share
        if min(inside, across) <= 0:
            continue
        factor: Any = protocol.inside_latency_factor
        possible: Any = True
        if protocol.whole_chunks:
            factor = factor * np.asarray(links.whole_chunk_factor, float)
        elif not np.all(links.ordered_across):
            possible = ~at.split | np.asarray(links.ordered_across, bool)
        base_s = protocol.exchange_base_s if exchange else protocol.base_s
        ways.append(_Way(protocol, at.launch_s(base_s), inside, across, factor, possible))
    return ways


def _priced(walk: Walk, ways: Sequence[_Way]) -> _Parts:
    """Return the parts of *walk* under its cheapest protocol, infinite where it is impossible."""
    if not np.any(walk.possible):
        return _IMPOSSIBLE
    parts = [
        _under(walk, way) for way in ways if way.protocol.whole_chunks or not walk.reduces_in_switch
    ]
    if not parts:
        return _IMPOSSIBLE
    best = parts[0]
    for other in parts[1:]:
        better = other.time_s < best.time_s
        best = _Parts(*(np.where(better, a, b) for a, b in zip(other, best, strict=True)))
    if np.all(walk.possible):
        return best
    return best._replace(time_s=np.where(walk.possible, best.time_s, np.inf))


def _under(walk: Walk, way: _Way) -> _Parts:
    """Return the parts of *walk* under one protocol."""
    protocol = way.protocol
    startup = (
        (way.launch_s + walk.issue_s)
        + walk.inside_start_s * way.inside_latency_factor
        + (walk.across_start_s + walk.across_hops * protocol.across_extra_s)
    )
    if protocol.fill_bytes:
        chunk_bytes = np.minimum(walk.rail_bytes, protocol.fill_bytes)
        filled_s_per_byte = (
            walk.fill_inside_s_per_byte / way.inside_share
            + walk.fill_across_s_per_byte / way.across_share
        )
        startup = startup + chunk_bytes * filled_s_per_byte
    if not np.all(way.possible):
        startup = np.where(way.possible, startup, np.inf)
    inside = walk.inside_s if way.inside_share == 1 else walk.inside_s / way.inside_share
    across = walk.across_s if way.across_share == 1 else walk.across_s / way.across_share
    if not walk.pipelined:
        return _Parts(startup + inside + across, startup, inside, across, 0.0)
    time = startup + np.maximum(inside, across)
    return _Parts(time, startup, inside, across, np.minimum(inside, across))


def _least(
    priced: Sequence[_Parts], names: tuple[str, ...], asked: tuple[int, ...]
) -> CollectiveTime:
    """Return the quickest of *priced*, element by element, at least of the shape *asked*."""
    shapes = (np.shape(part) for parts in priced for part in parts)
    shape = np.broadcast_shapes(asked, *shapes)
    time = np.array(np.broadcast_to(priced[0].time_s, shape), float)
    algorithm = np.zeros(shape, np.intp)
    for index, parts in enumerate(priced[1:], start=1):
        if parts is not _IMPOSSIBLE:
            algorithm[np.broadcast_to(parts.time_s, shape) < time] = index
            np.minimum(time, parts.time_s, out=time)
    startup, inside, across, hidden = (np.zeros(shape) for _ in range(4))
    for index, parts in enumerate(priced):
        chosen = np.flatnonzero(algorithm == index)
        for out, part in zip((startup, inside, across, hidden), parts[1:], strict=True):
            out.reshape(-1)[chosen] = _flat(part, shape, chosen)
    return CollectiveTime(
        time_s=time,
        startup_s=startup,
        inside_s=inside,
        across_s=across,
        hidden_s=hidden,
        algorithm=algorithm,
        names=names,
    )


def _flat(part: Any, shape: tuple[int, ...], chosen: NDArray[np.intp]) -> Any:
    """Return the *chosen* elements of *part* as if it had *shape* and were flat."""
    if np.ndim(part) == 0:
        return part
    return np.broadcast_to(part, shape).reshape(-1)[chosen]
