"""The time of a collective on the group's real spread: the cheapest walk, named, with its parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.collectives.links import LinkNumbers, Protocol, Spread
from planner.collectives.walks import WALKS, Walk
from planner.errors import InputError

LIBRARY: dict[str, tuple[str, ...]] = {
    "all_reduce": ("all_rail_ring", "double_tree", "switch_reduction", "switch_tree",
                   "network_reduction"),
    "reduce_scatter": ("all_rail_ring",),
    "all_gather": ("all_rail_ring",),
    "all_to_all": ("direct",),
}  # fmt: skip
"""What a stock library (NCCL 2.2x) can choose from; pass as ``available`` to predict it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectiveTime:
    """The time of one collective; arrays of one shape (0-d for scalars).

    time = launch + start-ups + inside + across - hidden.

    Args:
        time_s: from the first byte to the last rank's end [s].
        startup_s: launch, latencies and issuing [s].
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
    best: CollectiveTime | None = None
    for index, name in enumerate(names):
        if collective == "all_to_all" and name == "hierarchical":
            from planner.collectives.walks import hierarchical_all_to_all

            walk = hierarchical_all_to_all(payload, spread, links, across_share)
        else:
            walk = walks[name](payload, spread, links)
        priced = _priced(walk, spread, links)
        best = _take(best, priced, index, names)
    assert best is not None  # names is not empty
    return best


def _priced(walk: Walk, spread: Spread, links: LinkNumbers) -> tuple[Any, Any, Any, Any, Any]:
    """Return time, start-up, inside, across and hidden under the walk's cheapest protocol."""
    best: tuple[Any, Any, Any, Any, Any] | None = None
    for protocol in links.protocols:
        if walk.reduces_in_switch and not protocol.reductions:
            continue
        parts = _under(walk, protocol, spread, links)
        if best is None:
            best = parts
        else:
            better = parts[0] < best[0]
            best = tuple(np.where(better, new, old) for new, old in zip(parts, best, strict=True))
    if best is None:
        return (np.inf, np.inf, 0.0, 0.0, 0.0)
    return best


def _under(
    walk: Walk, protocol: Protocol, spread: Spread, links: LinkNumbers
) -> tuple[Any, Any, Any, Any, Any]:
    """Return time, start-up, inside, across and hidden of *walk* under one protocol."""
    launch = np.where(np.greater(spread.group_size, 1), links.launch_s, 0.0)
    startup = (
        launch
        + walk.issue_s
        + walk.inside_start_s * protocol.inside_latency_factor
        + walk.across_start_s * protocol.across_latency_factor
    )
    inside = walk.inside_s / protocol.rate_share
    across = walk.across_s / protocol.rate_share
    if walk.pipelined:
        busy, hidden = np.maximum(inside, across), np.minimum(inside, across)
    else:
        busy, hidden = inside + across, 0.0
    return startup + busy, startup, inside, across, hidden


def _take(
    best: CollectiveTime | None,
    parts: tuple[Any, Any, Any, Any, Any],
    index: int,
    names: tuple[str, ...],
) -> CollectiveTime:
    """Return *best* with the elements where *parts* are quicker replaced."""
    time, startup, inside, across, hidden = np.broadcast_arrays(*map(np.asarray, parts))
    if best is None:
        return CollectiveTime(
            time_s=time, startup_s=startup, inside_s=inside, across_s=across, hidden_s=hidden,
            algorithm=np.full(time.shape, index), names=names,
        )  # fmt: skip
    better = time < best.time_s
    return CollectiveTime(
        time_s=np.where(better, time, best.time_s),
        startup_s=np.where(better, startup, best.startup_s),
        inside_s=np.where(better, inside, best.inside_s),
        across_s=np.where(better, across, best.across_s),
        hidden_s=np.where(better, hidden, best.hidden_s),
        algorithm=np.where(better, index, best.algorithm),
        names=names,
    )
