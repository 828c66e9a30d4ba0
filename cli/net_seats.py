"""A layout's groups seated on a cluster, as the network models want them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cli.step_inputs import read_seated
from planner.network.contention import meshed_flows
from planner.network.flows import PASSES, Flows, group_flows
from planner.network.incast import IncastGate, fabric_gates
from planner.network.wiring import Wiring, wiring_of
from planner.traffic import Family, step_families

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cli.planner_inputs import Asked
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
        inputs: what it came from, for the document.
    """

    fabric: Fabric
    rank_to_gpu: tuple[int, ...]
    groups: tuple[tuple[Family, NDArray[np.int64]], ...]
    supernode_of_rank: NDArray[np.int64]
    node_of_rank: NDArray[np.int64]
    inputs: dict[str, Any]


def seated_job(asked: Asked, placement: str) -> SeatedJob:
    """Return the layout that *asked* names or leaves to be chosen, on its seats."""
    seated = read_seated(asked, placement, seed=0, time_limit_s=_SOLVER_S)
    given = seated.inputs
    fabric, layout = given.fabric, given.layout
    seats = np.asarray(seated.rank_to_gpu, np.int64)
    supernode = fabric.domain_index("supernode")[seats]
    node = np.empty(len(fabric.gpus), np.int64)
    for number, host in enumerate(fabric.hosts):
        node[list(host.gpus)] = number
    return SeatedJob(
        fabric=fabric,
        rank_to_gpu=seated.rank_to_gpu,
        groups=tuple(
            (family, family.members(layout)) for family in step_families(given.model, layout)
        ),
        supernode_of_rank=supernode,
        node_of_rank=node[seats] if fabric.hosts else supernode,
        inputs={
            "cluster": given.cluster,
            "supernode": max(fabric.capacities("supernode")),
            "gpus": given.gpus,
            "model": given.model.name,
            "layout": asdict(layout),
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
        groups,
        wiring.homes,
        reverse=family.phase == "backward",
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


def first_of_each_kind(fabric: Fabric) -> list[list[str | tuple[str, str]]]:
    """Return one part of each kind: GPU, NIC, a NIC's link, each kind of switch, a supernode."""
    parts: list[list[str | tuple[str, str]]] = []
    seen: set[str] = set()
    for name, kind in fabric.graph.nodes(data="kind"):
        if kind not in seen:
            seen.add(kind)
            parts.append([name])
    link = next(
        (
            (a, b)
            for a, b in fabric.graph.edges
            if "gpu" not in {fabric.graph.nodes[a]["kind"], fabric.graph.nodes[b]["kind"]}
        ),
        None,
    )
    if link is not None:
        parts.append([link])
    parts.append([fabric.tier("supernode").domains[0].name])
    return parts
