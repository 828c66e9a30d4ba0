"""A layout's groups seated on a cluster, as the network models want them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cli.step_inputs import read_seated
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


@dataclass(frozen=True, slots=True, kw_only=True)
class PartOfKind:
    """A part that may fail, for all of its kind.

    Args:
        kind: ``gpu``, ``leaf``, ``nic - leaf`` for a link, ``supernode`` …
        part: a vertex, the two ends of a link, or a domain.
        parts: how many of its kind there are [1].
    """

    kind: str
    part: str | tuple[str, str]
    parts: int


def worst_of_each_kind(job: SeatedJob) -> tuple[PartOfKind, ...]:
    """Return one part of each kind: vertices and links by what they are, and a supernode.

    Of each kind the one whose GPUs share groups with most ranks, those taken that hang on it; the
    first where they are alike.
    """
    graph = job.fabric.graph
    kind_of = dict(graph.nodes(data="kind"))
    hanging = _hanging(job, kind_of)
    kinds: dict[str, dict[str | tuple[str, str], frozenset[int]]] = {}
    for name, kind in kind_of.items():
        kinds.setdefault(kind, {})[name] = hanging.get(name, frozenset())
    for a, b in graph.edges:
        ends = sorted((a, b), key=lambda name: _OUTWARDS.get(kind_of[name], len(_OUTWARDS)))
        label = " - ".join(kind_of[name] for name in ends)
        kinds.setdefault(label, {})[a, b] = hanging.get(ends[0], frozenset())
    rank_of = {job.fabric.gpus[gpu]: rank for rank, gpu in enumerate(job.rank_to_gpu)}
    for domain in job.fabric.tier("supernode").domains:
        names = (job.fabric.gpus[gpu] for gpu in domain.gpus)
        ranks = frozenset(rank_of[name] for name in names if name in rank_of)
        kinds.setdefault("supernode", {})[domain.name] = ranks
    return tuple(
        PartOfKind(kind=kind, part=_worst(job, parts), parts=len(parts))
        for kind, parts in kinds.items()
    )


_OUTWARDS = {"gpu": 0, "nic": 1}
"""Kinds that come before switches in the name of a link."""


def _hanging(job: SeatedJob, kind_of: dict[str, Any]) -> dict[str, frozenset[int]]:
    """Return the ranks of each GPU, of each NIC, and of each switch that joins GPUs or NICs."""
    graph = job.fabric.graph
    ranks: dict[str, set[int]] = {}
    for rank, gpu in enumerate(job.rank_to_gpu):
        name = job.fabric.gpus[gpu]
        nics = [near for near in graph[name] if kind_of[near] == "nic"]
        beyond = [far for nic in nics for far in graph[nic] if far != name]
        inside = [near for near in graph[name] if kind_of[near] not in _OUTWARDS]
        for part in {name, *nics, *beyond, *inside}:
            ranks.setdefault(part, set()).add(rank)
    return {name: frozenset(found) for name, found in ranks.items()}


def _worst(
    job: SeatedJob, parts: dict[str | tuple[str, str], frozenset[int]]
) -> str | tuple[str, str]:
    """Return the part whose ranks share groups with most ranks."""
    counts: dict[frozenset[int], int] = {}
    for ranks in parts.values():
        if ranks not in counts:
            counts[ranks] = _touched(job, ranks)
    return max(parts, key=lambda part: counts[parts[part]])


def _touched(job: SeatedJob, ranks: frozenset[int]) -> int:
    """Return how many ranks are in a group with one of *ranks* [1]."""
    lost = np.zeros(len(job.rank_to_gpu), bool)
    lost[list(ranks)] = True
    touched = lost.copy()
    for _, members in job.groups:
        if members.shape[1] > 1:
            touched[members[lost[members].any(axis=1)]] = True
    return int(touched.sum())
