"""Which part of each kind takes most of a job with it when it fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Fabric

_OUTWARDS = {"gpu": 0, "nic": 1}
"""Kinds that come before switches in the name of a link."""


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


def worst_of_each_kind(
    fabric: Fabric, groups: Mapping[str, Any], rank_to_gpu: Sequence[int]
) -> tuple[PartOfKind, ...]:
    """Return one part of each kind: vertices and links by what they are, and a supernode.

    Of each kind the one whose ranks share groups with most ranks, those taken that hang on it; the
    first where they are alike.

    Args:
        fabric: the cluster.
        groups: family to groups of ranks, array [groups, members].
        rank_to_gpu: GPU index of each rank.
    """
    graph = fabric.graph
    kind_of = dict(graph.nodes(data="kind"))
    rank_of = {fabric.gpus[gpu]: rank for rank, gpu in enumerate(rank_to_gpu)}
    hanging = _hanging(graph, rank_of, kind_of)
    kinds: dict[str, dict[str | tuple[str, str], frozenset[int]]] = {}
    for name, kind in kind_of.items():
        kinds.setdefault(kind, {})[name] = hanging.get(name, frozenset())
    for a, b in graph.edges:
        ends = sorted((a, b), key=lambda name: _OUTWARDS.get(kind_of[name], len(_OUTWARDS)))
        label = " - ".join(kind_of[name] for name in ends)
        kinds.setdefault(label, {})[a, b] = hanging.get(ends[0], frozenset())
    for domain in fabric.tier("supernode").domains:
        names = (fabric.gpus[gpu] for gpu in domain.gpus)
        ranks = frozenset(rank_of[name] for name in names if name in rank_of)
        kinds.setdefault("supernode", {})[domain.name] = ranks
    arrays = [np.atleast_2d(np.asarray(members, np.int64)) for members in groups.values()]
    return tuple(
        PartOfKind(kind=kind, part=_worst(parts, arrays, len(rank_to_gpu)), parts=len(parts))
        for kind, parts in kinds.items()
    )


def _hanging(
    graph: Any, rank_of: Mapping[str, int], kind_of: Mapping[str, Any]
) -> dict[str, frozenset[int]]:
    """Return the ranks of each GPU, of each NIC, and of each switch that joins GPUs or NICs."""
    ranks: dict[str, set[int]] = {}
    for name, rank in rank_of.items():
        nics = [near for near in graph[name] if kind_of[near] == "nic"]
        beyond = [far for nic in nics for far in graph[nic] if far != name]
        inside = [near for near in graph[name] if kind_of[near] not in _OUTWARDS]
        for part in {name, *nics, *beyond, *inside}:
            ranks.setdefault(part, set()).add(rank)
    return {name: frozenset(found) for name, found in ranks.items()}


def _worst(
    parts: Mapping[str | tuple[str, str], frozenset[int]],
    groups: Sequence[NDArray[np.int64]],
    ranks: int,
) -> str | tuple[str, str]:
    """Return the part whose ranks share groups with most ranks."""
    counts: dict[frozenset[int], int] = {}
    for lost in parts.values():
        if lost not in counts:
            counts[lost] = _touched(lost, groups, ranks)
    return max(parts, key=lambda part: counts[parts[part]])


def _touched(lost: frozenset[int], groups: Sequence[NDArray[np.int64]], ranks: int) -> int:
    """Return how many of *ranks* ranks are in a group with one of *lost* [1]."""
    hit = np.zeros(ranks, bool)
    hit[list(lost)] = True
    touched = hit.copy()
    for members in groups:
        if members.shape[1] > 1:
            touched[members[hit[members].any(axis=1)]] = True
    return int(touched.sum())
