"""The independent judge: a rank -> GPU map, lists of groups and the graph, to cut bytes.

Nothing here is shared with what decides (no code of ``question``, ``bound``, ``tiles``, ``fill``
or ``Family.members``): domains are found by walking the graph's edges, members are read from the
lists given, and each group is priced by counting who sits where.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import PlannerError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    _Members = Sequence[Sequence[int]] | NDArray[np.int64]

_FAULTS_SHOWN = 20
_DOMAIN_COPIES = "domain_all_to_all"  # one copy of a token for each domain


class CheckError(PlannerError):
    """A placement that no cluster could run, or traffic that cannot be read (exit 4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedEntry:
    """One entry of the traffic to judge.

    Args:
        collective: ``all_reduce``, ``reduce_scatter``, ``all_gather``, ``all_to_all``,
            ``domain_all_to_all``, ``ring`` or ``chain``.
        payload_bytes: V, v per ordered pair, one member's tokens, or the bytes of one hop [bytes].
        times_per_step: executions by one group in one step [1].
        members: ranks of each group, in group order.
        experts, top_k: of ``domain_all_to_all``: routed experts, and those a token picks [1].
    """

    collective: str
    payload_bytes: float
    times_per_step: float
    members: _Members
    experts: int = 0
    top_k: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedCut:
    """What the judge found.

    Args:
        total_bytes: bytes that cross between domains in one step [bytes].
        by_entry: the same for each entry of the traffic, in its order [bytes].
        domains: domains that hold a rank [1].
    """

    total_bytes: float
    by_entry: tuple[float, ...]
    domains: int


def checked_cut_bytes(
    graph: Any,
    gpu_names: Sequence[str],
    rank_to_gpu: Sequence[int],
    traffic: Sequence[CheckedEntry],
    *,
    tier: str,
    tiers: Sequence[str],
) -> CheckedCut:
    """Return the bytes that cross the borders of *tier*'s domains in one step.

    Args:
        graph: NetworkX graph whose edges carry ``tier``.
        gpu_names: vertex of each usable GPU.
        rank_to_gpu: index into *gpu_names* of each rank.
        traffic: what the groups exchange.
        tier: the tier whose borders are counted.
        tiers: names of all tiers, innermost first.

    Raises:
        CheckError: two ranks on one GPU, seats that are not in the cluster, unknown collectives or
            members; every fault is named.
    """
    return judged(walked_domains(graph, gpu_names, tier=tier, tiers=tiers), rank_to_gpu, traffic)


def checked_cuts(
    graph: Any,
    gpu_names: Sequence[str],
    rank_to_gpu: Sequence[int],
    traffic: Sequence[CheckedEntry],
    *,
    tiers: Sequence[str],
) -> tuple[CheckedCut, ...]:
    """Return the cut of every tier, innermost first; as ``checked_cut_bytes``, in one walk."""
    return judged_tiers(walked_tiers(graph, gpu_names, tiers=tiers), rank_to_gpu, traffic)


def walked_domains(
    graph: Any, gpu_names: Sequence[str], *, tier: str, tiers: Sequence[str]
) -> NDArray[np.int64]:
    """Return the domain of each GPU: which of them reach each other without leaving *tier*.

    Two GPUs share a domain when a walk joins them over edges of that tier or an inner one.
    Domains are numbered in the order of their first GPU.

    Raises:
        CheckError: an unknown tier, or a GPU that the graph does not have.
    """
    if tier not in tiers:
        raise CheckError(f"tier {tier!r} is unknown: one of {', '.join(tiers)}")
    return walked_tiers(graph, gpu_names, tiers=tiers[: list(tiers).index(tier) + 1])[-1]


def walked_tiers(
    graph: Any, gpu_names: Sequence[str], *, tiers: Sequence[str]
) -> tuple[NDArray[np.int64], ...]:
    """Return the domain of each GPU at every tier, as ``walked_domains`` does for one.

    Raises:
        CheckError: a GPU that the graph does not have.
    """
    number = {name: i for i, name in enumerate(graph)}
    missing = [name for name in gpu_names if name not in number]
    if missing:
        raise CheckError(
            *(
                f"GPU {name!r} is not in the cluster's graph: dead, or misspelt"
                for name in missing[:_FAULTS_SHOWN]
            )
        )
    ends: dict[str, list[int]] = {tier: [] for tier in tiers}
    for name, neighbours in graph.adjacency():
        here = number[name]
        for neighbour, edge in neighbours.items():
            there = number[neighbour]
            if here < there and edge["tier"] in ends:
                ends[edge["tier"]] += (here, there)
    gpus = np.fromiter((number[name] for name in gpu_names), np.int64, len(gpu_names))
    label = np.arange(len(number))
    found = []
    for tier in tiers:
        label = _joined(label, np.array(ends[tier], np.int64).reshape(-1, 2))
        found.append(_in_order_of_first(label[gpus]))
    return tuple(found)


def _joined(label: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the least label in reach of each vertex once the edges *ends* are added.

    A label is itself a vertex of its component, labelled by itself: higher labels are hooked on
    lower ones, and every vertex follows its label's label until nothing moves.
    """
    label = label.copy()
    while True:
        low, high = np.sort(label[ends], axis=1).T
        apart = low != high
        if not apart.any():
            return label
        np.minimum.at(label, high[apart], low[apart])
        while True:
            further = label[label]
            if (further == label).all():
                break
            label = further


def _in_order_of_first(label: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return *label* renumbered 0, 1, … in the order in which labels first appear."""
    _, first, where = np.unique(label, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first, kind="stable")] = np.arange(len(first))
    return np.asarray(rank[where], dtype=np.int64)


def judged(
    domain_of_gpu: NDArray[np.int64],
    rank_to_gpu: Sequence[int],
    traffic: Sequence[CheckedEntry],
) -> CheckedCut:
    """Return the cut of a map, given the walked domain of each GPU.

    >>> two_supernodes = np.array([0, 0, 1, 1])
    >>> entry = CheckedEntry(collective="all_reduce", payload_bytes=5.0, times_per_step=1.0,
    ...                      members=[[0, 1], [2, 3]])
    >>> judged(two_supernodes, [0, 1, 2, 3], [entry]).total_bytes
    0.0
    >>> judged(two_supernodes, [0, 2, 1, 3], [entry]).total_bytes
    20.0
    """
    return judged_tiers([domain_of_gpu], rank_to_gpu, traffic)[0]


def judged_tiers(
    domains: Sequence[NDArray[np.int64]],
    rank_to_gpu: Sequence[int],
    traffic: Sequence[CheckedEntry],
) -> tuple[CheckedCut, ...]:
    """Return the cut of a map at several tiers, given the walked domain of each GPU at each."""
    seats = np.asarray(rank_to_gpu)
    _refuse_bad_seats(seats, min(len(domain_of_gpu) for domain_of_gpu in domains))
    faults = [
        f"traffic[{i}]: {fault}"
        for i, entry in enumerate(traffic)
        for fault in _entry_faults(entry, len(seats))
    ]
    if faults:
        raise CheckError(*faults[:_FAULTS_SHOWN])
    cuts = []
    for domain_of_gpu in domains:
        domain_of_rank = np.asarray(domain_of_gpu)[seats]
        held = len(np.unique(domain_of_rank))
        by_entry = tuple(
            _entry_bytes(entry, domain_of_rank) if held > 1 else 0.0 for entry in traffic
        )
        cuts.append(CheckedCut(total_bytes=float(sum(by_entry)), by_entry=by_entry, domains=held))
    return tuple(cuts)


def _refuse_bad_seats(seats: NDArray[np.int64], gpus: int) -> None:
    if seats.ndim != 1 or (seats.size and seats.dtype.kind not in "iu"):
        raise CheckError("rank_to_gpu: expected one whole GPU number for each rank")
    outside = np.flatnonzero((seats < 0) | (seats >= gpus))
    if outside.size:
        raise CheckError(
            *(
                f"rank {rank} sits on GPU {seats[rank]}: expected 0 to {gpus - 1}"
                for rank in outside[:_FAULTS_SHOWN].tolist()
            )
        )
    _, first, same = np.unique(seats, return_index=True, return_inverse=True)
    twice = np.flatnonzero(first[same] != np.arange(len(seats)))
    if twice.size:
        raise CheckError(
            *(
                f"ranks {first[same[rank]]} and {rank} both sit on GPU {seats[rank]}: expected "
                "one rank to a GPU"
                for rank in twice[:_FAULTS_SHOWN].tolist()
            )
        )


def _entry_faults(entry: CheckedEntry, ranks: int) -> list[str]:
    faults = []
    known = (*_PRICE, _DOMAIN_COPIES)
    if entry.collective not in known:
        faults.append(f"collective {entry.collective!r} is unknown: one of {', '.join(known)}")
    for name in ("payload_bytes", "times_per_step"):
        value = getattr(entry, name)
        if not (isfinite(value) and value >= 0):
            faults.append(f"{name}={value!r}: expected 0 or more")
    if entry.collective == _DOMAIN_COPIES and not 1 <= entry.top_k <= entry.experts:
        faults.append(f"top_k={entry.top_k} of experts={entry.experts}: expected 1 to all of them")
    for members in _by_size(entry.members):
        if entry.collective == _DOMAIN_COPIES and entry.experts % members.shape[1]:
            faults.append(f"{members.shape[1]} members do not divide experts={entry.experts}")
        if members.size and not (members.min() >= 0 and members.max() < ranks):
            faults.append(f"members {members.min()} to {members.max()}: expected 0 to {ranks - 1}")
        in_order = np.sort(members, axis=1)
        twice = np.flatnonzero((in_order[:, 1:] == in_order[:, :-1]).any(axis=1))
        if twice.size:
            faults.append(f"group {members[twice[0]].tolist()} names a rank twice")
    return faults


def _by_size(members: _Members) -> list[NDArray[np.int64]]:
    """Return the groups as arrays [groups, size], one array for each size of group."""
    if isinstance(members, np.ndarray):
        return [members.astype(np.int64, copy=False)] if members.size else []
    sizes = sorted({len(group) for group in members} - {0})
    return [np.array([g for g in members if len(g) == size], np.int64) for size in sizes]


def _entry_bytes(entry: CheckedEntry, domain_of_rank: NDArray[np.int64]) -> float:
    units: float = 0.0
    for members in _by_size(entry.members):
        domains = domain_of_rank[members]
        if entry.collective == _DOMAIN_COPIES:
            units += _domain_copies(domains, entry.experts, entry.top_k)
        else:
            units += _PRICE[entry.collective](domains)
    return units * entry.payload_bytes * entry.times_per_step


def _occupied(domains: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (group, members there) for every domain that some group touches."""
    span = int(domains.max()) + 1
    place = (np.arange(len(domains))[:, None] * span + domains).ravel()
    where, count = np.unique(place, return_counts=True)
    return where // span, count


def _touched(domains: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return k, the domains that each group touches."""
    group, _ = _occupied(domains)
    return np.bincount(group, minlength=len(domains))


def _tree_edges(domains: NDArray[np.int64]) -> int:
    """Σ (k - 1): what a hierarchical reduction, gather or scatter of one byte crosses."""
    return int((_touched(domains) - 1).sum())


def _all_reduce(domains: NDArray[np.int64]) -> int:
    return 2 * _tree_edges(domains)


def _all_to_all(domains: NDArray[np.int64]) -> int:
    """Σ n_i (n - n_i): ordered pairs whose ends sit apart."""
    _, here = _occupied(domains)
    return int((here * (domains.shape[1] - here)).sum())


def _domain_copies(domains: NDArray[np.int64], experts: int, top_k: int) -> float:
    """Σ (n - n_i) (1 - chance that none of top_k experts is among the E n_i / n there)."""
    _, here = _occupied(domains)
    members = domains.shape[1]
    elsewhere = experts - experts // members * here
    missed = np.ones(len(here))
    for drawn in range(top_k):
        missed *= np.maximum(elsewhere - drawn, 0) / (experts - drawn)
    return float(((members - here) * (1.0 - missed)).sum())


def _ring(domains: NDArray[np.int64]) -> int:
    touched = _touched(domains)
    return int(touched[touched > 1].sum())


def _chain(domains: NDArray[np.int64]) -> int:
    return int(
        sum(
            np.count_nonzero(domains[:, i] != domains[:, i + 1])
            for i in range(domains.shape[1] - 1)
        )
    )


_PRICE: dict[str, Callable[[NDArray[np.int64]], int]] = {
    "all_reduce": _all_reduce,
    "reduce_scatter": _tree_edges,
    "all_gather": _tree_edges,
    "all_to_all": _all_to_all,
    "ring": _ring,
    "chain": _chain,
}
