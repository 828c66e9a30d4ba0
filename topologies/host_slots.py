"""The number of a GPU on its machine, as drivers and launchers count: unusable ones count, too."""

from __future__ import annotations

from planner.fabric import Domain, Fabric


def slots_of(fabric: Fabric) -> tuple[int, ...]:
    """Return the number of each GPU of *fabric* on its machine, from 0.

    >>> from topologies.fabric_catalogue import generic_cluster
    >>> from topologies.free_list import only_gpus
    >>> slots_of(only_gpus(generic_cluster(16, 64), [1, 3, 12]))
    (1, 3, 4)
    """
    if fabric.host_slots:
        return fabric.host_slots
    slots = [0] * len(fabric.gpus)
    for host in machines_of(fabric):
        for slot, gpu in enumerate(host.gpus):
            slots[gpu] = slot
    return tuple(slots)


def machines_of(fabric: Fabric) -> tuple[Domain, ...]:
    """Return the machines, or the innermost domains of a cluster that says nothing of machines."""
    return fabric.hosts or fabric.tiers[0].domains
