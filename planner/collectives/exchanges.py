"""Schedules of all-to-all, of the ring exchange and of the chain."""

from __future__ import annotations

from planner.collectives.reductions import contiguous_order
from planner.collectives.schedule import Move, Schedule, Seating, after, in_order


def direct_all_to_all(seating: Seating) -> Schedule:
    """Return n - 1 steps; in step t rank i sends rank i + t + 1 what it has for it.

    Unit i n + j is what rank i has for rank j.
    """
    n = seating.ranks
    moves = in_order(
        Move(
            step=shift - 1,
            source=rank,
            target=(rank + shift) % n,
            units=frozenset({rank * n + (rank + shift) % n}),
            reduces=False,
        )
        for shift in range(1, n)
        for rank in range(n)
    )
    return Schedule(
        collective="all_to_all", algorithm="direct", seating=seating, units=n * n, moves=moves
    )


def hierarchical_all_to_all(seating: Seating) -> Schedule:
    """Return the all-to-all that first swaps inside to the member on the target's rail.

    Then one message for each (rail, target) crosses, with what all members of the domain have for
    it. The bytes that cross are the direct ones, v Σ n_i (n - n_i), in fewer messages.
    """
    n, domains = seating.ranks, seating.domains
    inside: dict[tuple[int, int], set[int]] = {}
    across: dict[tuple[int, int], set[int]] = {}
    for home in domains:
        for away in domains:
            for seat, target in enumerate(away):
                rail = target if home is away else home[seat % len(home)]
                for source in home:
                    unit = source * n + target
                    if source != rail:
                        inside.setdefault((source, rail), set()).add(unit)
                    if home is not away:
                        across.setdefault((rail, target), set()).add(unit)
    return Schedule(
        collective="all_to_all",
        algorithm="hierarchical",
        seating=seating,
        units=n * n,
        moves=after(_one_step(inside), _one_step(across)),
    )


def one_copy_all_to_all(seating: Seating) -> Schedule:
    """Return the exchange that sends one copy of a rank's data to each domain, forwarded there.

    Unit i k + d is what rank i has for any rank of the d-th domain; all of them shall get it. The
    bytes that cross are n (k-1) copies, however many ranks need each.
    """
    domains = seating.domains
    k = len(domains)
    across: dict[tuple[int, int], set[int]] = {}
    inside: dict[tuple[int, int], set[int]] = {}
    for home in domains:
        for seat, source in enumerate(home):
            for d, away in enumerate(domains):
                unit = source * k + d
                landing = source if home is away else away[seat % len(away)]
                if landing != source:
                    across.setdefault((source, landing), set()).add(unit)
                for rank in away:
                    if rank != landing:
                        inside.setdefault((landing, rank), set()).add(unit)
    return Schedule(
        collective="domain_gather",
        algorithm="one_copy",
        seating=seating,
        units=seating.ranks * k,
        moves=after(_one_step(across), _one_step(inside)),
    )


def _one_step(messages: dict[tuple[int, int], set[int]]) -> tuple[Move, ...]:
    return in_order(
        Move(step=0, source=a, target=b, units=frozenset(units), reduces=False)
        for (a, b), units in messages.items()
    )


def ring_exchange(seating: Seating) -> Schedule:
    """Return the n - 1 hops in which every rank's block (K and V) visits every other rank.

    The ring is laid in domain order, so k hops of each step cross where k > 1.
    """
    order = contiguous_order(seating)
    n = len(order)
    moves = in_order(
        Move(
            step=hop,
            source=order[i],
            target=order[(i + 1) % n],
            units=frozenset({order[(i - hop) % n]}),
            reduces=False,
        )
        for hop in range(n - 1)
        for i in range(n)
    )
    return Schedule(collective="ring", algorithm="ring", seating=seating, units=n, moves=moves)


def chain(seating: Seating) -> Schedule:
    """Return one hop from each rank to the next in rank order: pipeline send and receive.

    Unit i is what stage i sends to stage i + 1.
    """
    n = seating.ranks
    moves = tuple(
        Move(step=0, source=i, target=i + 1, units=frozenset({i}), reduces=False)
        for i in range(n - 1)
    )
    return Schedule(collective="chain", algorithm="send", seating=seating, units=n, moves=moves)
