"""Schedules of reduce-scatter, all-gather and all-reduce on any spread.

**What an uneven spread reaches.** Let n_i ranks sit in domain i, Σ n_i = n, and each rank own V/n.
For the shard of rank r every other domain must emit at least one partial sum of V/n bytes, so
V (k-1) bytes must cross in a reduce-scatter, whatever the n_i. It is reached on every spread: in
domain i one member stands in for r (r itself in its own domain); the domain first reduces the
shard to that member, then the k partial sums run along the domains to r: k-1 crossings of V/n, n
shards, V (k-1) in all. All-gather is the same walked backwards, all-reduce is both: 2 V (k-1).
What unevenness costs is balance, not bytes: domain i sends V (n-n_i)/n through n_i NICs, so the
smallest domain is the slowest (5+5+2: 10/12 V over 2 NICs against 7/12 V over 5). Stand-ins are
dealt out in pieces of 1/lcm(n_1…n_k) of a shard, so that the n_i NICs carry exactly the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from math import lcm

from planner.collectives.scatters import (
    Scatter,
    direct_scatter,
    halving_scatter,
    ring_scatter,
)
from planner.collectives.schedule import Move, Schedule, Seating, after, in_order, mirrored


def _finish(
    collective: str, algorithm: str, seating: Seating, units: int, scatter: tuple[Move, ...]
) -> Schedule:
    """Return the schedule of *collective* from its reduce-scatter."""
    gather = mirrored(scatter)
    moves = {
        "reduce_scatter": scatter,
        "all_gather": gather,
        "all_reduce": after(scatter, gather),
    }[collective]
    return Schedule(
        collective=collective, algorithm=algorithm, seating=seating, units=units, moves=moves
    )


def _shards(ranks: int, pieces: int = 1) -> list[frozenset[int]]:
    return [frozenset(range(r * pieces, (r + 1) * pieces)) for r in range(ranks)]


def contiguous_order(seating: Seating) -> list[int]:
    """Return the ranks domain by domain: k of n ring edges cross."""
    return [rank for domain in seating.domains for rank in domain]


def interleaved_order(seating: Seating) -> list[int]:
    """Return the ranks taking one of each domain in turn: as many edges cross as can.

    >>> interleaved_order(Seating.of_counts([2, 2]))
    [0, 2, 1, 3]
    """
    big = max(seating.domains, key=len)
    others = [rank for domain in seating.domains for rank in domain if rank not in big]
    if len(big) <= len(others):
        return _apart(seating)
    pairs = zip_longest(big, others)
    return [rank for pair in pairs for rank in pair if rank is not None]


def _apart(seating: Seating) -> list[int]:
    """Return an order whose neighbours, also last and first, sit in different domains.

    Ranks sorted by size of their domain go to the even seats, then to the odd ones: a domain of
    at most half the ranks never gets two seats that touch.
    """
    by_size = sorted(seating.domains, key=len, reverse=True)
    line = [rank for domain in by_size for rank in domain]
    seats = [*range(0, len(line), 2), *range(1, len(line), 2)]
    order = [0] * len(line)
    for seat, rank in zip(seats, line, strict=True):
        order[seat] = rank
    return order


def flat(
    collective: str,
    seating: Seating,
    order: Sequence[int],
    scatter: Scatter = ring_scatter,
    algorithm: str = "ring",
) -> Schedule:
    """Return the collective over all ranks in *order*, domains ignored."""
    shards = _shards(seating.ranks)
    moves = scatter(order, [shards[rank] for rank in order])
    return _finish(collective, algorithm, seating, seating.ranks, moves)


def contiguous_ring(collective: str, seating: Seating) -> Schedule:
    """Return the ring in domain order: V (n-1)/n k bytes cross in each pass."""
    return flat(collective, seating, contiguous_order(seating), algorithm="contiguous_ring")


def interleaved_ring(collective: str, seating: Seating) -> Schedule:
    """Return the ring in which every hop crosses, where the spread allows it."""
    return flat(collective, seating, interleaved_order(seating), algorithm="interleaved_ring")


def direct(collective: str, seating: Seating) -> Schedule:
    """Return the one-step exchange of shards (two steps for all-reduce)."""
    order = contiguous_order(seating)
    return flat(collective, seating, order, direct_scatter, algorithm="direct")


def all_rail_ring(collective: str, seating: Seating) -> Schedule:
    """Return as many contiguous rings as the smallest domain has ranks, each over its own NICs.

    Ring q starts every domain at its q-th member, so it leaves through another NIC than the rest.
    """
    rails = min(len(domain) for domain in seating.domains)
    rings: list[Move] = []
    for rail in range(rails):
        order = [
            domain[(rail + i) % len(domain)]
            for domain in seating.domains
            for i in range(len(domain))
        ]
        rings += ring_scatter(order, [frozenset({rank * rails + rail}) for rank in order])
    moves = in_order(rings)
    return _finish(collective, "all_rail_ring", seating, seating.ranks * rails, moves)


def _stand_ins(seating: Seating) -> tuple[int, list[tuple[int, ...]]]:
    """Return the pieces of a shard, and for each unit its stand-in in each domain."""
    domains = seating.domains
    pieces = lcm(*(len(domain) for domain in domains))
    seats: list[tuple[int, ...]] = []
    dealt = [0] * len(domains)
    for rank in range(seating.ranks):
        for _ in range(pieces):
            row = []
            for i, domain in enumerate(domains):
                if rank in domain:
                    row.append(rank)
                else:
                    row.append(domain[dealt[i] % len(domain)])
                    dealt[i] += 1
            seats.append(tuple(row))
    return pieces, seats


def two_level(
    collective: str, seating: Seating, inside: Scatter, across: Scatter, algorithm: str
) -> Schedule:
    """Return *inside* every domain to stand-ins, then *across* from stand-ins to owners.

    Bytes that cross: V (k-1) in each pass, on every spread (see the module's text).
    """
    domains = seating.domains
    pieces, seats = _stand_ins(seating)
    first: list[Move] = []
    for i, domain in enumerate(domains):
        targets = [
            frozenset(unit for unit, row in enumerate(seats) if row[i] == rank) for rank in domain
        ]
        first += inside(domain, targets)
    groups: dict[tuple[int, ...], list[int]] = {}
    for unit, row in enumerate(seats):
        groups.setdefault(row, []).append(unit)
    second: list[Move] = []
    for row, units in sorted(groups.items()):
        owners = [frozenset(u for u in units if u // pieces == rank) for rank in row]
        second += across(row, owners)
    moves = after(in_order(first), in_order(second))
    return _finish(collective, algorithm, seating, seating.ranks * pieces, moves)


def hierarchical(collective: str, seating: Seating) -> Schedule:
    """Return ring inside, ring across: the book's hierarchical reduction."""
    return two_level(collective, seating, ring_scatter, ring_scatter, "hierarchical")


def halving_doubling(collective: str, seating: Seating) -> Schedule:
    """Return recursive halving inside, then across; doubling back for the gather.

    Excess domains fold their shares into partners, so more than V (k-1) crosses unless k is a
    power of two.
    """
    return two_level(collective, seating, halving_scatter, halving_scatter, "halving_doubling")
