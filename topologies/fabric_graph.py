"""FabricSpec to planner.fabric.Fabric: tiers at once, the graph when it is first asked for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import SpecError
from planner.fabric import Domain, Fabric, Tier
from topologies.fabric_degraded import (
    measured_tiers,
    refuse_islands,
    without_dead,
    working_gpus,
)
from topologies.fabric_direct import MeshPlan, TorusPlan
from topologies.fabric_dragonfly import dragonfly_plan
from topologies.fabric_fat_tree import FatTreePlan
from topologies.fabric_levels import (
    NetworkPlan,
    TierPlan,
    chosen_levels,
    domains_of,
    outer_tiers,
    usable_index,
)
from topologies.fabric_network_spec import ClosSpec, DragonflySpec, MeshSpec
from topologies.fabric_scale_up import add_supernodes, scale_up_tiers
from topologies.fabric_seats import Seats, seats_of
from topologies.fabric_spec import FabricSpec

if TYPE_CHECKING:
    from collections.abc import Callable


def network_plan(spec: FabricSpec, seats: Seats) -> NetworkPlan:
    """Return the plan of the scale-out network that *spec* describes."""
    network = spec.network
    if isinstance(network, ClosSpec):
        return FatTreePlan(spec=spec, network=network, seats=seats)
    if isinstance(network, DragonflySpec):
        return dragonfly_plan(spec, network, seats)
    if isinstance(network, MeshSpec):
        return MeshPlan(spec=spec, network=network, seats=seats)
    return TorusPlan(spec=spec, network=network, seats=seats)


def build_graph(spec: FabricSpec) -> Any:
    """Return the NetworkX graph of *spec*, without what is dead.

    Vertices carry ``kind`` (gpu, nic, scale_up_switch, leaf, spine, core), GPUs also ``supernode``,
    ``board`` and ``place``, switches ``units`` (how many alike one vertex stands for) and
    ``radix``. Edges carry ``capacity_bytes_per_s`` (all parallel links, one direction),
    ``latency_s``, ``links``, ``tier`` and, where known, ``buffer_bytes``.
    """
    import networkx as nx  # noqa: PLC0415 - 100 ms that tiers alone need not pay

    seats = seats_of(spec)
    plan = network_plan(spec, seats)
    chosen = chosen_levels(seats, plan.levels, spec.levels)
    graph = nx.Graph(name=spec.name)
    add_supernodes(graph, spec.supernode, seats, "supernode")
    plan.add_to(graph, chosen.tier_of)
    without_dead(graph, spec, seats)
    frozen: Any = nx.freeze(graph)
    return frozen


def build_fabric(spec: FabricSpec) -> Fabric:
    """Return the Fabric of *spec*; its graph is built on first use.

    The tiers follow from the wiring alone unless something is dead that may part the network; then
    they are measured on the graph that is left.
    """
    seats = seats_of(spec)
    plan = network_plan(spec, seats)
    chosen = chosen_levels(seats, plan.levels, spec.levels)
    graph: Callable[[], Any] | Any = partial(build_graph, spec)
    if _follows_from_wiring(spec):
        tiers = _tiers(spec, seats, plan, chosen)
    else:
        graph = graph()
        refuse_islands(graph, spec, seats)
        tiers = measured_tiers(graph, spec, seats, _tiers(spec, seats, plan, chosen))
    usable = int(seats.usable.sum())
    return Fabric(
        name=spec.name,
        graph=graph,
        gpus=tuple(working_gpus(seats)),
        tiers=tuple(tiers),
        accelerator=spec.accelerator,
        nic=spec.nic,
        assumed=spec.assumed,
        sources=spec.sources,
        job_gpus=min(spec.job_gpus, usable),
        hosts=_hosts(seats),
        host_slots=_host_slots(seats, spec.supernode.board_gpus),
        supernode_gpus=spec.supernode.size if spec.supernode.is_part_of_one else 0,
    )


def _follows_from_wiring(spec: FabricSpec) -> bool:
    """Return whether nothing is dead, or only GPUs where all rails share their spines."""
    railed = isinstance(spec.network, ClosSpec) and spec.network.spine_scope != "shared"
    return spec.dead.only_gpus and not (railed and spec.dead.gpus)


def usable_gpus(spec: FabricSpec) -> tuple[str, ...]:
    """Return the vertex name of each usable GPU, in order."""
    return tuple(working_gpus(seats_of(spec)))


def whole_tiers(spec: FabricSpec) -> tuple[Tier, ...]:
    """Return the tiers of *spec*, or none where what is dead leaves no working cluster.

    For a report on a cluster that cannot be planned on as it is.
    """
    try:
        return build_fabric(spec).tiers
    except SpecError:
        return ()


def _tiers(spec: FabricSpec, seats: Seats, plan: NetworkPlan, chosen: TierPlan) -> list[Tier]:
    """Return the tiers that follow from the wiring, innermost first."""
    count = len(seats.supernode_names)
    alone = len(np.unique(seats.supernode[seats.usable])) == 1
    uplinks = np.zeros(count) if alone else plan.uplinks(seats.supernode, count)
    boards = len(seats.board_names)
    board_uplinks = plan.uplinks(seats.board, boards) if spec.supernode.has_boards else uplinks
    inner = scale_up_tiers(spec.supernode, seats, uplinks, board_uplinks)
    return inner + outer_tiers(spec, seats, plan, chosen, inner[-1].domains)


def _hosts(seats: Seats) -> tuple[Domain, ...]:
    """Return the boards as hosts; their uplink is told by the tiers, not here."""
    none = np.zeros(len(seats.board_names))
    return domains_of(seats.board_names, seats.board, seats, none, usable_index(seats))


def _host_slots(seats: Seats, board_gpus: int) -> tuple[int, ...]:
    """Return the number of each usable GPU on its board, none where all GPUs are usable."""
    if seats.usable.all():
        return ()
    return tuple((seats.place[seats.usable] % board_gpus).tolist())
