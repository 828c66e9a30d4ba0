"""A cluster's links, ready to be routed over, with the rate that collectives reach on each."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.network.attached import Attached, attached_of
from planner.network.meshes import is_full_mesh, relays_never_pay
from planner.network.reach import (
    MOST_RELAYED,
    Links,
    Reach,
    links_of_graph,
    reach,
    unrelayed,
    vertices_of,
)

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from planner.fabric import Fabric

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

MOST_GPUS = 4_096
"""GPUs between which a step's flows are routed at most, each for itself: a second and 0.3 GB for
each seating, 7 s and 1.2 GB for 16,384; 1024 take a tenth of a second."""
MOST_ATTACHED_GPUS = 32_768
"""The same where flows between GPUs alike are routed as one: 1 s for 16,384, 14 s and 0.8 GB for
32,768 in a seating by chance."""
SCALE_UP_COST = 1
"""Cost of a scale-up link in ``routes.py``; every other link costs more."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Wiring:
    """A cluster's links, ready to be routed over.

    Args:
        links: directed, with nominal capacities.
        reached_bytes_per_s: what collectives reach of them; array [links] [bytes/s].
        vertices: vertex of each GPU; array [gpus].
        homes: supernode of each GPU; array [gpus].
        known: least costs to every GPU; None where they are too many to be known together: more
            than ``MOST_RELAYED`` that may pass traffic on, ``MOST_ATTACHED_GPUS`` that are
            attached, or ``MOST_GPUS`` of which each may need a column of its own.
        gpu_links: a x gpus + b of every link from GPU a straight to GPU b, ascending; array.
        attached: how GPUs hang on the network; None where flows must be routed each for itself.
        routed: of one graph, what was routed over it before, whatever its links reach: see
            ``loads.loads_of``, which fills it.
    """

    links: Links
    reached_bytes_per_s: Floats
    vertices: Ints
    homes: Ints
    known: Reach | None
    gpu_links: Ints
    attached: Attached | None
    routed: dict[Hashable, tuple[Floats, Floats]] = field(default_factory=dict)


def wiring_of(fabric: Fabric, *, inner_share: float = 1.0, outer_share: float = 1.0) -> Wiring:
    """Return the links of *fabric*.

    Args:
        fabric: the cluster.
        inner_share: of a scale-up link's rate, what large collectives reach [1].
        outer_share: of any other link's rate, the same [1].

    A GPU's link to its NIC carries no more than the NIC's transactions in flight allow.
    """
    routed = _routed(fabric.graph, fabric.gpus)
    links, nic = routed.links, fabric.nic
    in_flight = nic.in_flight * nic.transaction_bytes / nic.turnaround_s
    own = (links.is_gpu[links.tails] & links.is_nic[links.heads]) | (
        links.is_nic[links.tails] & links.is_gpu[links.heads]
    )
    capacity = links.capacity_bytes_per_s
    limited = np.where(own, np.minimum(capacity, in_flight), capacity)
    share = np.where(links.cost == SCALE_UP_COST, inner_share, outer_share)
    return Wiring(
        links=links,
        reached_bytes_per_s=limited * share,
        vertices=routed.vertices,
        homes=fabric.domain_index("supernode"),
        known=routed.known,
        gpu_links=routed.gpu_links,
        attached=routed.attached,
        routed=routed.routed,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Routed:
    """What of a wiring does not depend on the rates reached."""

    links: Links
    vertices: Ints
    known: Reach | None
    gpu_links: Ints
    attached: Attached | None
    routed: dict[Hashable, tuple[Floats, Floats]] = field(default_factory=dict)


@lru_cache(maxsize=4)
def _routed(graph: Any, gpus: tuple[str, ...]) -> _Routed:
    """Return links and costs of *graph*, which is told from others by being the same object."""
    links = links_of_graph(graph)
    vertices = vertices_of(links, gpus)
    number = np.full(len(links.vertices), -1)
    number[vertices] = np.arange(len(vertices))
    tails, heads = number[links.tails], number[links.heads]
    between = (tails >= 0) & (heads >= 0)
    attached = attached_of(links, vertices)
    relays = bool(between.any())
    known = None
    if relays and attached is not None and len(vertices) <= MOST_ATTACHED_GPUS:
        if is_full_mesh(attached, int(between.sum())):
            known = unrelayed(links, np.sort(vertices))
            relays = not relays_never_pay(links, vertices, attached, known)
        attached = None if relays else attached
    unrelayed_most = MOST_GPUS if attached is None else MOST_ATTACHED_GPUS
    most = MOST_RELAYED if relays else unrelayed_most
    if known is None or relays:
        known = reach(links, vertices) if len(vertices) <= most else None
    return _Routed(
        links=links,
        vertices=vertices,
        known=known,
        gpu_links=np.sort(tails[between] * len(vertices) + heads[between]),
        attached=attached,
    )
