"""GPUs with one way into the network and one out: flows between the same switches as one.

Where every GPU hangs on the network by one NIC with one link, and its scale-up switch leads to GPUs
only, a flow to another scale-up island takes its NIC's links and, between the two switches, what
every other flow between these two takes. So all of them are routed as one of them is, with their
sizes added up, and the links at both ends are added up apart: the same loads, exactly, from as many
routes as there are pairs of switches instead of GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.network.reach import Links

    Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attached:
    """The only way of each GPU into the network and out of it.

    Args:
        outward: link GPU to NIC, and NIC to switch; array [gpus, 2].
        inward: link switch to NIC, and NIC to GPU; array [gpus, 2].
        leaves: vertex of the switch it sends to; array [gpus].
        enters: vertex of the switch it hears from; array [gpus].
        island: GPUs joined by scale-up switches have the same number; array [gpus].
    """

    outward: Ints
    inward: Ints
    leaves: Ints
    enters: Ints
    island: Ints


def attached_of(links: Links, vertices: Ints) -> Attached | None:
    """Return how GPUs hang on the network; None where one has more ways than one, or none.

    Args:
        links: of the whole graph.
        vertices: vertex of each GPU; array [gpus].
    """
    number = np.full(len(links.vertices), -1)
    number[vertices] = np.arange(len(vertices))
    tail_gpu, head_gpu = number[links.tails], number[links.heads]
    out_nic = (tail_gpu >= 0) & links.is_nic[links.heads]
    in_nic = (head_gpu >= 0) & links.is_nic[links.tails]
    first = _only(tail_gpu[out_nic], np.flatnonzero(out_nic), len(vertices))
    last = _only(head_gpu[in_nic], np.flatnonzero(in_nic), len(vertices))
    if first is None or last is None:
        return None
    to_network = links.is_nic[links.tails] & ~links.is_gpu[links.heads]
    from_network = links.is_nic[links.heads] & ~links.is_gpu[links.tails]
    nics = len(links.vertices)
    beyond = _only(links.tails[to_network], np.flatnonzero(to_network), nics, links.heads[first])
    before = _only(links.heads[from_network], np.flatnonzero(from_network), nics, links.tails[last])
    island = _islands(links, number, len(vertices))
    if beyond is None or before is None or island is None:
        return None
    return Attached(
        outward=np.stack([first, beyond], axis=1),
        inward=np.stack([before, last], axis=1),
        leaves=links.heads[beyond],
        enters=links.tails[before],
        island=island,
    )


def _only(owner: Ints, link: Ints, owners: int, asked: Ints | None = None) -> Ints | None:
    """Return the one *link* of each owner, or of those *asked*; None where one has not just one."""
    counts = np.bincount(owner, minlength=owners)
    found = np.full(owners, -1, np.int64)
    found[owner] = link
    if asked is not None:
        counts, found = counts[asked], found[asked]
    return found if (counts == 1).all() else None


def _islands(links: Links, number: Ints, gpus: int) -> Ints | None:
    """Return the island of each GPU; None where scale-up links lead to more than GPUs.

    The least number of a GPU spreads over scale-up switches until nothing changes.
    """
    up = (number[links.tails] >= 0) & ~links.is_nic[links.heads]
    switches = np.zeros(len(links.vertices), bool)
    switches[links.heads[up]] = True
    if links.is_gpu[switches].any() or (number[links.heads[switches[links.tails]]] < 0).any():
        return None
    gpu, switch = number[links.tails[up]], links.heads[up]
    island: Ints = np.arange(gpus)
    while True:
        least = np.full(len(links.vertices), gpus)
        np.minimum.at(least, switch, island[gpu])
        spread = island.copy()
        np.minimum.at(spread, gpu, least[switch])
        if (spread == island).all():
            return island
        island = spread
