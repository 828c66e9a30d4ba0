"""The wiring of a plan's cluster as its document holds it: what a picture of it needs, no more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cli.planner_output import plain
from cli.topology_wiring import Shown, dead_parts, shown_of, wiring_of
from topologies.fabric_catalogue import is_foreign, load_spec

if TYPE_CHECKING:
    from planner.fabric import Fabric


def wiring_document(
    fabric: Fabric, cluster: str | None, supernode: int | None, gpus: int | None
) -> Mapping[str, Any]:
    """Return what a picture of *fabric* shows, as plain values.

    Args:
        fabric: the cluster.
        cluster: what it was asked for as: its file says what is dead, which the graph no longer
            has. Files of other tools and the generic family say nothing of the kind.
        supernode, gpus: as they were asked for [1].
    """
    dead: tuple[str, ...] = ()
    if cluster is not None and not is_foreign(cluster):
        dead = dead_parts(load_spec(cluster, supernode=supernode, gpus=gpus))
    found: Mapping[str, Any] = plain(shown_fabric(fabric, dead))
    return found


def shown_fabric(fabric: Fabric, dead: tuple[str, ...] = ()) -> Shown:
    """Return what a picture of *fabric* shows, its supernodes by their own names."""
    tier = next(tier for tier in fabric.tiers if tier.name == "supernode")
    owners = {fabric.gpus[gpu]: domain.name for domain in tier.domains for gpu in domain.gpus}
    return shown_of(wiring_of(fabric.graph, owners), fabric.name, dead)
