"""Schedules of all-reduce by trees, by switches and in one shot."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from planner.collectives.schedule import Move, Schedule, Seating, after, in_order, mirrored


def in_order_tree(nodes: int) -> tuple[int, ...]:
    """Return each node's parent in a binary tree over 0…nodes-1 whose root is 0, -1 for the root.

    Node 0 stands above a tree in which a node divisible by 2^j and no higher has children at
    distance 2^(j-1): odd nodes are leaves.

    >>> in_order_tree(6)
    (-1, 2, 4, 2, 0, 4)
    """
    parents = [-1]
    for node in range(1, nodes):
        low = node & -node
        parent = (node ^ low) | (low << 1)
        if parent >= nodes:
            parent = node ^ low
        parents.append(parent)
    return tuple(parents)


def double_tree_parents(nodes: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the parents in two trees such that a node is inner in at most one of them.

    The second tree is the first mirrored (even count) or moved on by one (odd count).
    """
    first = in_order_tree(nodes)
    if nodes % 2 == 0:
        back = [nodes - 1 - node for node in range(nodes)]
    else:
        back = [(node + 1) % nodes for node in range(nodes)]
    second = [-1] * nodes
    for node, parent in enumerate(first):
        second[back[node]] = -1 if parent < 0 else back[parent]
    return first, tuple(second)


def _depths(parents: Sequence[int]) -> list[int]:
    depths = []
    for node in range(len(parents)):
        depth, at = 0, node
        while parents[at] >= 0:
            at, depth = parents[at], depth + 1
        depths.append(depth)
    return depths


def _climb(heads: Sequence[int], parents: Sequence[int], units: frozenset[int]) -> list[Move]:
    """Return the moves that sum *units* from all *heads* into the root's."""
    depths = _depths(parents)
    return [
        Move(
            step=max(depths) - depths[node],
            source=heads[node],
            target=heads[parent],
            units=units,
            reduces=True,
        )
        for node, parent in enumerate(parents)
        if parent >= 0
    ]


def double_tree(seating: Seating) -> Schedule:
    """Return an all-reduce by two trees over the domains, each rail its own chain inside.

    Half of every rail's part goes through each tree: 2 V (k-1) bytes cross.
    """
    domains = seating.domains
    rails = min(len(domain) for domain in domains)
    chains: list[Move] = []
    climbs: list[Move] = []
    for half, parents in enumerate(double_tree_parents(len(domains))):
        for rail in range(rails):
            units = frozenset({rail * 2 + half})
            heads = []
            for domain in domains:
                line = [domain[(rail + 1 + i) % len(domain)] for i in range(len(domain))]
                chains += [
                    Move(step=step, source=a, target=b, units=units, reduces=True)
                    for step, (a, b) in enumerate(pairwise(line))
                ]
                heads.append(line[-1])
            climbs += _climb(heads, parents, units)
    up = after(in_order(chains), in_order(climbs))
    return Schedule(
        collective="all_reduce",
        algorithm="double_tree",
        seating=seating,
        units=2 * rails,
        moves=after(up, mirrored(up)),
    )


def one_shot(seating: Seating) -> Schedule:
    """Return the all-reduce in which every rank sends its whole vector to every other."""
    ranks = range(seating.ranks)
    moves = in_order(
        Move(step=0, source=a, target=b, units=frozenset({0}), reduces=True)
        for a in ranks
        for b in ranks
        if a != b
    )
    return Schedule(
        collective="all_reduce", algorithm="one_shot", seating=seating, units=1, moves=moves
    )


def _through_switches(seating: Seating, rails: int) -> list[Move]:
    """Return the moves that sum each domain's units in its switch and hand unit q to member q."""
    moves: list[Move] = []
    for i, domain in enumerate(seating.domains):
        switch = seating.ranks + i
        everything = frozenset(range(rails))
        moves += [
            Move(step=0, source=rank, target=switch, units=everything, reduces=True)
            for rank in domain
        ]
        moves += [
            Move(
                step=1,
                source=switch,
                target=domain[rail % len(domain)],
                units=frozenset({rail}),
                reduces=False,
            )
            for rail in range(rails)
        ]
    return moves


def _multicast(seating: Seating, rails: int) -> list[Move]:
    """Return the moves that send unit q from member q through the switch to the whole domain."""
    moves: list[Move] = []
    for i, domain in enumerate(seating.domains):
        switch = seating.ranks + i
        for rail in range(rails):
            unit, keeper = frozenset({rail}), domain[rail % len(domain)]
            moves.append(Move(step=0, source=keeper, target=switch, units=unit, reduces=False))
            moves += [
                Move(step=1, source=switch, target=rank, units=unit, reduces=False)
                for rank in domain
            ]
    return moves


def switch_tree(seating: Seating) -> Schedule:
    """Return an all-reduce in the scale-up switches, with a double tree across on every rail.

    Inside one domain this is NVLS; with more it is NVLSTree: 2 V (k-1) bytes cross.
    """
    domains = seating.domains
    rails = 2 * min(len(domain) for domain in domains)
    trees = double_tree_parents(len(domains))
    climbs: list[Move] = []
    for unit in range(rails):
        heads = [domain[unit % len(domain)] for domain in domains]
        climbs += _climb(heads, trees[unit % 2], frozenset({unit}))
    up = in_order(climbs)
    across = after(up, mirrored(up))
    moves = after(
        after(in_order(_through_switches(seating, rails)), across),
        in_order(_multicast(seating, rails)),
    )
    return Schedule(
        collective="all_reduce",
        algorithm="switch_reduction" if len(domains) == 1 else "switch_tree",
        seating=seating,
        units=rails,
        moves=moves,
        switch_of=tuple(seating.domain_of[domain[0]] for domain in domains),
    )


def network_reduction(seating: Seating) -> Schedule:
    """Return an all-reduce whose across part is summed in the network's switch (SHARP).

    Each domain sends V up and gets V back: k V bytes leave domains instead of 2 V (k-1).
    """
    domains = seating.domains
    rails = min(len(domain) for domain in domains)
    core = seating.ranks + len(domains)
    heads = [(domain[rail], frozenset({rail})) for rail in range(rails) for domain in domains]
    up = [Move(step=0, source=r, target=core, units=u, reduces=True) for r, u in heads]
    down = [Move(step=1, source=core, target=r, units=u, reduces=False) for r, u in heads]
    moves = after(
        after(in_order(_through_switches(seating, rails)), in_order(up + down)),
        in_order(_multicast(seating, rails)),
    )
    return Schedule(
        collective="all_reduce",
        algorithm="network_reduction",
        seating=seating,
        units=rails,
        moves=moves,
        switch_of=(*(seating.domain_of[domain[0]] for domain in domains), -1),
    )
