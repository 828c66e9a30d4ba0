"""A layout's groups seated on a cluster, as the network models want them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cli.step_inputs import read_seated
from planner.layout import layout_values
from planner.network.endpoints import Connects, LayoutState, layout_state
from planner.network.flows import PASSES, Flows, group_flows, in_passing_order
from planner.network.incast import IncastGate, fabric_gates
from planner.network.loads import meshed_flows
from planner.network.wiring import Wiring, wiring_of
from planner.traffic import Family, step_families

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cli.planner_inputs import Asked, Inputs
    from planner.fabric import Fabric

_SOLVER_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeatedJob:
    """A layout on a cluster.

    Args:
        fabric: the cluster.
        rank_to_gpu: index of each rank's GPU.
        groups: each family of the step with its groups of ranks.
        supernode_of_rank: array [ranks].
        node_of_rank: machine of each rank, array [ranks].
        supernode_in_order, node_in_order: the same with rank r on GPU r, arrays [gpus].
        given: what was read: cluster, model, what of the layout was fixed.
        inputs: what it came from, for the document.
    """

    fabric: Fabric
    rank_to_gpu: tuple[int, ...]
    groups: tuple[tuple[Family, NDArray[np.int64]], ...]
    supernode_of_rank: NDArray[np.int64]
    node_of_rank: NDArray[np.int64]
    supernode_in_order: NDArray[np.int64]
    node_in_order: NDArray[np.int64]
    given: Inputs
    inputs: dict[str, Any]


def seated_job(asked: Asked, placement: str) -> SeatedJob:
    """Return the layout that *asked* names or leaves to be chosen, on its seats."""
    seated = read_seated(asked, placement, seed=0, time_limit_s=_SOLVER_S)
    given = seated.inputs
    fabric, layout = given.fabric, given.layout
    seats = np.asarray(seated.rank_to_gpu, np.int64)
    supernode = fabric.domain_index("supernode")
    node = np.empty(len(fabric.gpus), np.int64)
    for number, host in enumerate(fabric.hosts):
        node[list(host.gpus)] = number
    if not fabric.hosts:
        node = supernode
    return SeatedJob(
        fabric=fabric,
        rank_to_gpu=seated.rank_to_gpu,
        groups=tuple(
            (family, family.members(layout)) for family in step_families(given.model, layout)
        ),
        supernode_of_rank=supernode[seats],
        node_of_rank=node[seats],
        supernode_in_order=supernode[: given.gpus],
        node_in_order=node[: given.gpus],
        given=given,
        inputs={
            "cluster": given.cluster,
            "supernode": fabric.full_supernode_gpus,
            "gpus": given.gpus,
            "model": given.model.name,
            "layout": layout_values(layout),
            "placement": seated.source,
            "assumed": dict(given.assumed),
        },
    )


def job_flows(job: SeatedJob, phase: str) -> dict[str, Flows]:
    """Return the flows of the families of *phase* (``all`` for every one), one execution each."""
    seats = np.asarray(job.rank_to_gpu, np.int64)
    wiring = wiring_of(job.fabric)
    return {
        family.name: _family_flows(wiring, family, seats[members])
        for family, members in job.groups
        if phase in {"all", family.phase}
    }


def _family_flows(wiring: Wiring, family: Family, groups: NDArray[np.int64]) -> Flows:
    """Return the flows of one execution of *family* by its *groups* of GPUs."""
    if family.collective in PASSES:
        meshed = meshed_flows(wiring, groups)
        if meshed is not None:
            moved_bytes = family.payload_bytes * PASSES[family.collective]
            return replace(meshed, sizes_bytes=meshed.sizes_bytes * moved_bytes)
    return group_flows(
        family.collective,
        family.payload_bytes,
        in_passing_order(family, groups),
        wiring.homes,
        experts=family.experts,
        top_k=family.top_k,
    )


def incast_gates(job: SeatedJob, feedback_s: float, room_bytes: float) -> tuple[IncastGate, ...]:
    """Return the incast gate of every tier but the outermost; see ``incast.fabric_gates``."""
    return fabric_gates(
        job.fabric,
        [(family.name, family.collective, members) for family, members in job.groups],
        job.rank_to_gpu,
        feedback_s=feedback_s,
        room_bytes=room_bytes,
    )


def states_of_the_best(
    job: SeatedJob, most: int, connects: Connects, options: Mapping[str, Any]
) -> tuple[LayoutState, ...]:
    """Return the *most* fastest layouts of a search, with the state each makes in rank order."""
    if not most:
        return ()
    from planner.search.search import machine_of, sweep  # noqa: PLC0415 - only --best searches
    from planner.search.space import USUAL  # noqa: PLC0415

    given = job.given
    machine = machine_of(given.fabric, given.gpus, given.efficiency)
    swept = sweep(given.model, machine, given.gpus, given.fixed, USUAL)
    return tuple(
        layout_state(
            given.model,
            swept.layout(int(entry)),
            float(swept.evaluated.total_s[entry]),
            job.supernode_in_order,
            job.node_in_order,
            connects=connects,
            **options,
        )
        for entry in swept.best[:most]
    )
