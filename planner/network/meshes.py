"""Supernodes whose GPUs are all linked to each other: whether traffic ever passes through a GPU.

Costs are those of ``reach.py``: a neighbour's NIC costs the link to the neighbour and its passing
on besides. Where every GPU's own NICs are cheaper than that on both ends, for every pair of
attachments, no least-cost route passes through a GPU, and routes are found without that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.network.reach import FAR, RELAY_COST, Links, Reach

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.network.attached import Attached

    Ints = NDArray[np.int64]

_LINK_COST = 1  # of a scale-up link, as in ``reach.py``


def is_full_mesh(attached: Attached, pairs: int) -> bool:
    """Return whether the GPUs of every island are all linked to each other.

    Args:
        attached: how GPUs hang on the network, with their islands.
        pairs: ordered pairs of GPUs that are linked directly [1].
    """
    sizes = np.bincount(attached.island)
    return int((sizes * (sizes - 1)).sum()) == pairs


def relays_never_pay(links: Links, vertices: Ints, attached: Attached, known: Reach) -> bool:
    """Return whether no least-cost route between islands that are full meshes passes a GPU.

    Args:
        links: of the whole graph.
        vertices: vertex of each GPU; array [gpus].
        attached: how GPUs hang on the network.
        known: costs that were found without passing through GPUs.
    """
    over = _costs_over_nics(links, vertices, attached, known)
    if over.max() >= FAR or not over.max() < 2 * over.min() + RELAY_COST:
        return False  # a third island's GPUs could be on the way
    more = _LINK_COST + RELAY_COST
    senders = _together(attached.island, attached.sends_like)
    hearers = _together(attached.island, attached.hears_like)
    return all((np.ptp(over[list(alike)], axis=0) < more).all() for alike in senders) and all(
        (np.ptp(over[:, list(alike)], axis=1) < more).all() for alike in hearers
    )


def _costs_over_nics(links: Links, vertices: Ints, attached: Attached, known: Reach) -> Ints:
    """Return the least cost from GPUs that send alike to those that hear alike, over NICs.

    Array [kinds of senders, kinds of hearers].
    """
    _, one = np.unique(attached.sends_like, return_index=True)
    _, there = np.unique(attached.hears_like, return_index=True)
    targets = np.searchsorted(known.ends, vertices[there])
    costs = np.full((len(one), len(there)), FAR, np.int64)
    for row, gpu in enumerate(one):
        for link in attached.outward[gpu]:
            if link < 0 or links.tails[link] != vertices[gpu]:
                continue  # a NIC's own link, which its cost counts already
            nic = np.full(len(there), links.heads[link])
            costs[row] = np.minimum(costs[row], links.cost[link] + known.cost(nic, targets))
    return costs


def _together(island: Ints, alike: Ints) -> set[frozenset[int]]:
    """Return the kinds of GPUs that share an island, each such set once."""
    order = np.argsort(island, kind="stable")
    bounds = np.flatnonzero(np.diff(island[order])) + 1
    return {frozenset(part.tolist()) for part in np.split(alike[order], bounds)}
