"""What a schedule moves: bytes over a cut, through each port, and the closed forms they must equal.

A byte that goes from one domain to another is counted once, on leaving. The closed forms are
those of the contract for cut bytes: sums over domains of a function of what the domain holds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from planner.collectives.schedule import Schedule
from planner.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """What a schedule moves, in units of its payload.

    Args:
        crossing: units that leave a domain, all moves summed.
        by_domain: the same by the domain they leave.
        by_nic: the same by the rank whose NIC they leave through.
        by_port: units that each rank sends to participants of its own domain.
        steps: steps of the schedule.
    """

    crossing: int
    by_domain: Mapping[int, int]
    by_nic: Mapping[int, int]
    by_port: Mapping[int, int]
    steps: int


def moved(schedule: Schedule) -> Moved:
    """Return what *schedule* moves.

    >>> from planner.collectives.reductions import hierarchical
    >>> from planner.collectives.schedule import Seating
    >>> s = hierarchical("all_reduce", Seating.of_counts([5, 5, 2]))
    >>> moved(s).crossing / s.units    # 2 V (k-1)
    4.0
    """
    by_domain: dict[int, int] = {}
    by_nic: dict[int, int] = {}
    by_port: dict[int, int] = {}
    for move in schedule.moves:
        home, away = schedule.place(move.source), schedule.place(move.target)
        size = len(move.units)
        if home == away:
            by_port[move.source] = by_port.get(move.source, 0) + size
        elif home >= 0:
            by_domain[home] = by_domain.get(home, 0) + size
            by_nic[move.source] = by_nic.get(move.source, 0) + size
    return Moved(
        crossing=sum(by_domain.values()),
        by_domain=by_domain,
        by_nic=by_nic,
        by_port=by_port,
        steps=schedule.steps,
    )


def crossing_payloads(collective: str, counts: Sequence[int]) -> Fraction:
    """Return the bytes that cross in the best known way, as a multiple of the payload.

    Args:
        collective: ``all_reduce``, ``reduce_scatter``, ``all_gather``: payload V;
            ``all_to_all``: payload v per ordered pair; ``ring``, ``chain``: payload of one hop,
            ranks in domain order.
        counts: members in each domain that the group touches [1].

    >>> [int(crossing_payloads(c, [5, 5, 2])) for c in ("all_reduce", "all_to_all", "ring")]
    [4, 90, 3]
    """
    held = [count for count in counts if count > 0]
    n, k = sum(held), len(held)
    match collective:
        case "all_reduce":
            return Fraction(2 * (k - 1))
        case "reduce_scatter" | "all_gather":
            return Fraction(k - 1)
        case "all_to_all":
            return Fraction(sum(count * (n - count) for count in held))
        case "ring":
            return Fraction(k if k > 1 else 0)
        case "chain":
            return Fraction(k - 1)
        case _:
            raise InputError(f"no closed form for {collective!r}")


def flat_ring_payloads(collective: str, counts: Sequence[int]) -> Fraction:
    """Return the bytes that cross in a contiguous flat ring: passes x (n-1)/n x k, 0 if k = 1."""
    held = [count for count in counts if count > 0]
    n, k = sum(held), len(held)
    passes = 2 if collective == "all_reduce" else 1
    return Fraction(passes * (n - 1) * k, n) if k > 1 else Fraction(0)


def one_copy_payloads(counts: Sequence[int]) -> Fraction:
    """Return the copies that cross when every rank sends one to each other domain: n (k-1).

    The payload is one copy. Each is forwarded inside to all that need it.

    >>> int(one_copy_payloads([5, 5, 2]))
    24
    """
    held = [count for count in counts if count > 0]
    return Fraction(sum(held) * (len(held) - 1)) if held else Fraction(0)
