"""What a file of one machine, or of machines alone, lacks: how many there are, and their GPUs."""

from __future__ import annotations

from dataclasses import replace

from planner.errors import SpecError
from topologies.imported_fabric import MOST_VERTICES, ImportedFabric, ImportedHost, ImportedLink

_NETWORK = "network"


def repeated(found: ImportedFabric, machines: int) -> ImportedFabric:
    """Return *machines* machines like the one of *found*, below a switch that does not block.

    Raises:
        SpecError: the file has several machines, or too many are asked for.
    """
    if len(found.hosts) != 1 or found.links:
        raise SpecError(
            f"{found.provenance}: has {len(found.hosts)} machines: only a file of one machine "
            "can be taken --machines times"
        )
    if machines >= MOST_VERTICES:
        raise SpecError(f"--machines {machines}: expected fewer than {MOST_VERTICES:,}")
    one, width = found.hosts[0], len(str(machines))
    names = [f"{one.name}{i:0{width}d}" for i in range(1, machines + 1)]
    why = f"{machines} like the one of the file, below one switch that does not block: as given"
    return replace(
        found,
        hosts=tuple(ImportedHost(name=n, gpus=one.gpus, supernode=n) for n in names),
        switches=(_NETWORK,),
        links=tuple(ImportedLink(a=n, b=_NETWORK, links=one.gpus or 1) for n in names),
        assumed={**found.assumed, "machines": why},
    )


def with_gpus(found: ImportedFabric, gpus: int, why: str) -> ImportedFabric:
    """Return *found* with *gpus* GPUs in each machine of which the file does not say it.

    Args:
        found: what the file says.
        gpus: of one machine [1].
        why: where that number comes from.
    """
    if all(host.gpus is not None for host in found.hosts):
        return found
    return replace(
        found,
        hosts=tuple(h if h.gpus is not None else replace(h, gpus=gpus) for h in found.hosts),
        assumed={**found.assumed, "gpus_per_node": f"{gpus}: not in the file: {why}"},
    )
