"""Blast radius: which ranks stall when one endpoint, NIC, link, switch or supernode fails.

A collective needs every member: a group with one rank that is dead or cut off stalls as a whole.
Its members then miss in their other groups, so a synchronous job stalls further, family by
family, until nothing joins the stalled ranks to the rest. Both are reported: what stalls at once
and what stalls in the end.

Source: E-S23-071 (one endpoint's fault must not take down the group).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import InputError
from planner.network.premises import Premise

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Fabric

SOURCE = "derived in the text of planner.network.blast"
_MOST_COMPARED = 10_000  # names that a wrong one is compared with: a tenth of a second


class Relayed(Enum):
    """What becomes of ranks that reach the others only through other GPUs."""

    STALL = "stall: no GPU passes traffic on"
    GO_ON = "go on more slowly"


@dataclass(frozen=True, slots=True, kw_only=True)
class FamilyStall:
    """What one family loses at once.

    Args:
        name: of the family.
        groups: groups with a lost rank [1].
        ranks: members of these [1].
        all_groups: groups there are [1].
    """

    name: str
    groups: int
    ranks: int
    all_groups: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Blast:
    """What one failure does to a job.

    Args:
        failed: the parts that failed.
        dead_ranks: ranks whose GPU is among them.
        cut_off_ranks: ranks that live but reach the others no more.
        relayed_ranks: ranks that reach them only through other GPUs.
        slowed_ranks: ranks that lost part of their own links.
        least_links_share: what the worst of these keeps of its links' capacity, 0 to 1.
        least_uplinks_share: what the worst switch left keeps of its links to switches, 0 to 1.
        families: what stalls at once, family by family; only those that lose a group.
        stalled_ranks: ranks that stall at once.
        in_the_end_ranks: ranks that stall when everyone waits for someone who waits [1].
        premises: what this takes for granted.
    """

    failed: tuple[str, ...]
    dead_ranks: tuple[int, ...]
    cut_off_ranks: tuple[int, ...]
    relayed_ranks: tuple[int, ...]
    slowed_ranks: tuple[int, ...]
    least_links_share: float
    least_uplinks_share: float
    families: tuple[FamilyStall, ...]
    stalled_ranks: tuple[int, ...]
    in_the_end_ranks: int
    premises: tuple[Premise, ...]


def blast_radius(
    fabric: Fabric,
    failed: Sequence[str | tuple[str, str]],
    groups: Mapping[str, Any],
    rank_to_gpu: Sequence[int],
    relayed_ranks: Relayed = Relayed.STALL,
) -> Blast:
    """Return what stalls when *failed* parts fail together.

    Args:
        fabric: the cluster.
        failed: vertex names, (a, b) for a link, or the name of a domain for all GPUs in it.
        groups: family to groups of ranks, array [groups, members].
        rank_to_gpu: GPU index of each rank.
        relayed_ranks: what becomes of ranks that reach the others only through other GPUs.

    Raises:
        InputError: a part that the fabric does not have.
    """
    damaged = _damaged(fabric, failed)
    graph = damaged.graph
    seats = np.asarray(rank_to_gpu, np.int64)
    names = [fabric.gpus[gpu] for gpu in seats]
    dead = np.array([name in damaged.gone for name in names])
    alive = [name for name, gone in zip(names, dead, strict=True) if not gone]
    reach = _reachable(graph, alive)
    cut = np.array([n not in reach for n in names]) & ~dead
    # where GPUs relay anyway (mesh, torus, rail-only) relaying is no loss
    relays_anyway = len(_without_relays(fabric.graph, names)) < len(set(names))
    alone = reach if relays_anyway else _without_relays(graph, alive)
    relayed = np.array([n not in alone for n in names]) & ~dead & ~cut
    kept = _kept_shares(fabric.graph, graph, names, dead)
    stalling = relayed_ranks is Relayed.STALL
    lost = dead | cut | (relayed & stalling)
    families, stalled = _stalls(groups, lost)
    slowed = ~lost & (kept < 1)
    return Blast(
        failed=damaged.failed,
        dead_ranks=_ranks(dead),
        cut_off_ranks=_ranks(cut),
        relayed_ranks=_ranks(relayed),
        slowed_ranks=_ranks(slowed),
        least_links_share=float(kept[slowed].min()) if slowed.any() else 1.0,
        least_uplinks_share=_kept_uplinks(fabric.graph, graph),
        families=families,
        stalled_ranks=_ranks(stalled),
        in_the_end_ranks=_in_the_end(groups, stalled),
        premises=(
            Premise(
                states="A collective waits for every member",
                holds=None,
                otherwise="a library that shrinks groups loses only the dead ranks' data",
            ),
            Premise(
                states="GPUs pass no traffic on for others",
                holds=stalling,
                otherwise="ranks without a network port of their own go on more slowly",
            ),
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Damaged:
    """A cluster without its failed parts.

    Args:
        graph: what is left.
        gone: vertices that are not.
        failed: what to call the failed parts.
    """

    graph: Any
    gone: frozenset[str]
    failed: tuple[str, ...]


def _damaged(fabric: Fabric, failed: Sequence[Any]) -> _Damaged:
    """Return *fabric* without the *failed* parts."""
    graph = fabric.graph.copy()
    domains = {domain.name: domain for tier in fabric.tiers for domain in tier.domains}
    gone: set[str] = set()
    label = []
    for part in failed:
        if isinstance(part, str) and part in graph:
            gone.add(part)
            label.append(part)
        elif isinstance(part, str) and part in domains:
            gone.update(fabric.gpus[gpu] for gpu in domains[part].gpus)
            label.append(part)
        elif not isinstance(part, str) and graph.has_edge(*part):
            graph.remove_edge(*part)
            label.append(" - ".join(part))
        else:
            raise InputError(_unknown(part, graph, domains))
    graph.remove_nodes_from(gone)
    return _Damaged(graph=graph, gone=frozenset(gone), failed=tuple(label))


def _unknown(part: str | tuple[str, str], graph: Any, domains: Mapping[str, Any]) -> str:
    """Return that *part* is nowhere, with the names nearest to it."""
    names = [*graph, *domains]

    def like(name: str) -> str:
        near = get_close_matches(name[:128], names[:_MOST_COMPARED], n=1)
        return f", did you mean {near[0]!r}?" if near else f"; there are {', '.join(names[:2])} ..."

    if isinstance(part, str):
        return f"failed part {part!r}: no such vertex, link or domain{like(part)}"
    missing = [f"{end!r} is no vertex{like(end)}" for end in part if end not in graph]
    why = "; ".join(missing) or "these two are not linked"
    return f"failed part {'--'.join(part)}: no such link: {why}"


def _reachable(graph: Any, alive: Sequence[str]) -> set[str]:
    """Return those GPUs of the largest set that can reach each other."""
    import networkx as nx  # noqa: PLC0415 - 100 ms that `planner --help` need not pay

    living = set(alive)
    return max((part & living for part in nx.connected_components(graph)), key=len, default=set())


def _without_relays(graph: Any, alive: Sequence[str]) -> set[str]:
    """Return the GPUs that hang on the switches that join most GPUs.

    Without the GPUs the other vertices fall into parts; each GPU hangs on some of them.
    """
    import networkx as nx  # noqa: PLC0415 - 100 ms that `planner --help` need not pay

    others = graph.subgraph([n for n, kind in graph.nodes(data="kind") if kind != "gpu"])
    part_of = {
        name: number for number, part in enumerate(nx.connected_components(others)) for name in part
    }
    hangs = {gpu: {part_of[near] for near in graph[gpu] if near in part_of} for gpu in alive}
    sizes = Counter(part for parts in hangs.values() for part in parts)
    if not sizes:
        return set()
    largest = max(sorted(sizes), key=lambda part: sizes[part])
    return {gpu for gpu, parts in hangs.items() if largest in parts}


def _kept_shares(
    before: Any, after: Any, names: Sequence[str], dead: NDArray[np.bool_]
) -> NDArray[np.float64]:
    """Return what each rank's own links, and its NICs' links, keep of their capacity."""
    shares = np.ones(len(names))
    for i, name in enumerate(names):
        if dead[i]:
            continue
        for owner in (name, *(n for n in before[name] if before.nodes[n].get("kind") == "nic")):
            had = sum(link["capacity_bytes_per_s"] for link in before[owner].values())
            has = (
                sum(link["capacity_bytes_per_s"] for link in after[owner].values())
                if owner in after
                else 0.0
            )
            shares[i] = min(shares[i], has / had)
    return shares


def _kept_uplinks(before: Any, after: Any) -> float:
    """Return what the worst surviving switch keeps of its capacity to other switches."""
    ends = {"gpu", "nic"}
    kinds = dict(before.nodes(data="kind"))

    def uplinks(graph: Any, switch: str) -> float:
        return sum(
            float(link["capacity_bytes_per_s"])
            for near, link in graph[switch].items()
            if kinds[near] not in ends
        )

    shares = [
        uplinks(after, name) / had
        for name in after
        if kinds[name] not in ends and (had := uplinks(before, name))
    ]
    return min(shares, default=1.0)


def _stalls(
    groups: Mapping[str, Any], lost: NDArray[np.bool_]
) -> tuple[tuple[FamilyStall, ...], NDArray[np.bool_]]:
    """Return what each family loses at once, and all ranks that stall with it."""
    stalled = lost.copy()
    families = []
    for name, members in groups.items():
        ranks = np.atleast_2d(np.asarray(members, np.int64))
        if ranks.shape[1] < 2:
            continue
        hit = lost[ranks].any(axis=1)
        if hit.any():
            stalled[ranks[hit]] = True
            families.append(
                FamilyStall(
                    name=name,
                    groups=int(hit.sum()),
                    ranks=len(np.unique(ranks[hit])),
                    all_groups=len(ranks),
                )
            )
    return tuple(families), stalled


def _in_the_end(groups: Mapping[str, Any], stalled: NDArray[np.bool_]) -> int:
    """Return how many ranks wait once everyone waits for someone who waits."""
    waiting = stalled.copy()
    while True:
        before = int(waiting.sum())
        for members in groups.values():
            ranks = np.atleast_2d(np.asarray(members, np.int64))
            if ranks.shape[1] > 1:
                waiting[ranks[waiting[ranks].any(axis=1)]] = True
        if int(waiting.sum()) == before:
            return before


def _ranks(chosen: NDArray[np.bool_]) -> tuple[int, ...]:
    return tuple(int(rank) for rank in np.flatnonzero(chosen))
