"""From the home of every rank to its GPU: ranks ascending over a domain's GPUs.

A domain's GPUs are taken inner domain by inner domain (board by board), those with the most usable
GPUs first, so that ranks that follow each other share boards and a board with a dead GPU does not
shift the ranks of the others. Spare seats are the last ones and stay idle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.errors import InfeasibleError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Fabric


def seats(home: NDArray[np.int64], fabric: Fabric, tier: str) -> tuple[int, ...]:
    """Return the GPU of each rank, an index into ``fabric.gpus``.

    Args:
        home: domain of *tier* of each rank, shape [ranks].
        fabric: the cluster.
        tier: the tier whose domains *home* numbers.

    Raises:
        InfeasibleError: a domain holds more ranks than usable GPUs.
    """
    gpus = seat_order(fabric, tier)
    capacities = np.array(fabric.capacities(tier))
    held = np.bincount(home, minlength=len(capacities))
    faults = [
        f"domain {fabric.tier(tier).domains[s].name} holds {held[s]} ranks, "
        f"{held[s] - capacities[s]} more than its {capacities[s]} usable GPUs"
        for s in np.flatnonzero(held > capacities).tolist()
    ]
    if faults:
        raise InfeasibleError(*faults)
    first_seat = np.cumsum(capacities) - capacities
    first_rank = np.cumsum(held) - held
    by_home = np.argsort(home, kind="stable")
    behind = np.arange(len(home)) - np.repeat(first_rank, held)
    seat_of = np.empty(len(home), np.int64)
    seat_of[by_home] = gpus[np.repeat(first_seat, held) + behind]
    return tuple(seat_of.tolist())


def seat_order(fabric: Fabric, tier: str) -> NDArray[np.int64]:
    """Return all GPUs in the order in which seats are given out, domain after domain of *tier*.

    Inside a domain: by inner domain, from the coarsest tier to the finest, the fullest first.
    """
    keys: list[NDArray[np.int64]] = []
    for inner in fabric.tiers:
        index = fabric.domain_index(inner.name)
        if inner.name == tier:
            keys.append(index)
            break
        usable = np.array(fabric.capacities(inner.name))
        keys += [index, -usable[index]]
    return np.lexsort([np.arange(len(fabric.gpus)), *keys])
