"""Schedules of broadcast: chain, tree, and scatter-chain-gather on every rail."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from planner.collectives.reductions import contiguous_order
from planner.collectives.schedule import Move, Schedule, Seating, after, in_order


def broadcast_chain(seating: Seating) -> Schedule:
    """Return the broadcast from rank 0's place along the ranks in domain order."""
    order = contiguous_order(seating)
    moves = tuple(
        Move(step=i, source=a, target=b, units=frozenset({0}), reduces=False)
        for i, (a, b) in enumerate(pairwise(order))
    )
    return Schedule(
        collective="broadcast", algorithm="chain", seating=seating, units=1, moves=moves
    )


def _binomial(members: Sequence[int]) -> list[Move]:
    moves: list[Move] = []
    step, reached = 0, 1
    while reached < len(members):
        moves += [
            Move(step=step, source=a, target=b, units=frozenset({0}), reduces=False)
            for a, b in zip(members[:reached], members[reached:], strict=False)
        ]
        step, reached = step + 1, reached * 2
    return moves


def broadcast_tree(seating: Seating) -> Schedule:
    """Return a binomial tree over the domains' first ranks, then one inside each domain."""
    across = _binomial([domain[0] for domain in seating.domains])
    inside = [move for domain in seating.domains for move in _binomial(domain)]
    return Schedule(
        collective="broadcast",
        algorithm="tree",
        seating=seating,
        units=1,
        moves=after(in_order(across), in_order(inside)),
    )


def broadcast_hierarchical(seating: Seating) -> Schedule:
    """Return scatter inside the root's domain, a chain across on each rail, gather inside."""
    domains = seating.domains
    rails = min(len(domain) for domain in domains)
    units = [frozenset({rail}) for rail in range(rails)]
    root = domains[0]
    scatter = [
        Move(step=0, source=root[0], target=root[rail], units=units[rail], reduces=False)
        for rail in range(1, rails)
    ]
    chains = [
        Move(step=i, source=a[rail], target=b[rail], units=units[rail], reduces=False)
        for i, (a, b) in enumerate(pairwise(domains))
        for rail in range(rails)
    ]
    gather = [
        Move(step=0, source=domain[rail], target=rank, units=units[rail], reduces=False)
        for domain in domains
        for rail in range(rails)
        for rank in domain
        if rank != domain[rail] and rank != root[0]
    ]
    moves = after(after(in_order(scatter), in_order(chains)), in_order(gather))
    return Schedule(
        collective="broadcast",
        algorithm="hierarchical",
        seating=seating,
        units=rails,
        moves=moves,
    )
