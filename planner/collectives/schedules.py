"""Every explicit schedule by collective and algorithm, and what each must send over the cut.

The payload is the vector V of reductions, gathers and broadcasts, what one rank sends in all of an
all-to-all, what a rank sends to each domain of a one-copy exchange, and one hop of ring and chain.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import partial
from itertools import pairwise
from types import MappingProxyType

from planner.collectives import broadcasts, exchanges, reductions, trees
from planner.collectives.count import crossing_payloads, flat_ring_payloads, one_copy_payloads
from planner.collectives.schedule import Schedule, Seating
from planner.errors import InputError

_SHARDED = MappingProxyType(
    {
        "contiguous_ring": reductions.contiguous_ring,
        "interleaved_ring": reductions.interleaved_ring,
        "all_rail_ring": reductions.all_rail_ring,
        "hierarchical": reductions.hierarchical,
        "halving_doubling": reductions.halving_doubling,
        "direct": reductions.direct,
    }
)


def _sharded(collective: str) -> dict[str, Callable[[Seating], Schedule]]:
    return {name: partial(make, collective) for name, make in _SHARDED.items()}


SCHEDULES: Mapping[str, Mapping[str, Callable[[Seating], Schedule]]] = MappingProxyType(
    {
        "all_reduce": {
            **_sharded("all_reduce"),
            "double_tree": trees.double_tree,
            "one_shot": trees.one_shot,
            "switch_tree": trees.switch_tree,
            "network_reduction": trees.network_reduction,
        },
        "reduce_scatter": _sharded("reduce_scatter"),
        "all_gather": _sharded("all_gather"),
        "all_to_all": {
            "direct": exchanges.direct_all_to_all,
            "hierarchical": exchanges.hierarchical_all_to_all,
        },
        "domain_gather": {"one_copy": exchanges.one_copy_all_to_all},
        "ring": {"ring": exchanges.ring_exchange},
        "chain": {"send": exchanges.chain},
        "broadcast": {
            "tree": broadcasts.broadcast_tree,
            "chain": broadcasts.broadcast_chain,
            "hierarchical": broadcasts.broadcast_hierarchical,
        },
    }
)
"""Collective to algorithm to what makes its schedule."""

_MOST_RANKS = 128
"""Ranks of a group whose moves are written out: a ring of 128 has 32,512."""


def schedule_of(collective: str, algorithm: str, seating: Seating) -> Schedule:
    """Return the moves of *collective* by *algorithm*.

    >>> schedule_of("all_reduce", "contiguous_ring", Seating.of_counts([8, 8])).steps
    30
    """
    if collective not in SCHEDULES:
        raise InputError(f"collective={collective!r}: expected one of {', '.join(SCHEDULES)}")
    known = SCHEDULES[collective]
    if algorithm not in known:
        raise InputError(
            f"algorithm={algorithm!r}: {collective} has {', '.join(known)}: expected one of these"
        )
    if seating.ranks > _MOST_RANKS:
        raise InputError(
            f"{seating.ranks} ranks: expected at most {_MOST_RANKS}, whose moves are written out"
        )
    return known[algorithm](seating)


def units_per_payload(schedule: Schedule) -> Fraction:
    """Return how many of the schedule's units one payload is cut into."""
    match schedule.collective:
        case "all_to_all":
            return Fraction(schedule.seating.ranks)
        case "domain_gather" | "ring" | "chain":
            return Fraction(1)
        case _:
            return Fraction(schedule.units)


def must_cross(schedule: Schedule) -> Fraction | None:
    """Return the payloads that must leave domains, in closed form; None where there is none.

    There is none for halving and doubling on a spread that is no power of two: ranks that fold
    into others send more.

    >>> from planner.collectives.trees import double_tree
    >>> must_cross(double_tree(Seating.of_counts([5, 5, 2])))
    Fraction(4, 1)
    """
    collective, seating = schedule.collective, schedule.seating
    counts = [len(domain) for domain in seating.domains]
    n, k = seating.ranks, len(counts)
    passes = 2 if collective == "all_reduce" else 1
    pairs = sum(count * (n - count) for count in counts)
    match collective, schedule.algorithm:
        case "all_to_all", _:
            return crossing_payloads("all_to_all", counts) / n
        case "domain_gather", _:
            return one_copy_payloads(counts)
        case "ring", _:
            return (n - 1) * crossing_payloads("ring", counts)
        case "chain", _:
            homes = seating.domain_of
            return Fraction(sum(a != b for a, b in pairwise(homes)))
        case "broadcast", _:
            return Fraction(k - 1)
        case _, "contiguous_ring" | "all_rail_ring":
            return flat_ring_payloads(collective, counts)
        case _, "interleaved_ring":
            edges = n if 2 * max(counts) <= n else 2 * (n - max(counts))
            return Fraction(passes * (n - 1) * edges, n) if n > 1 else Fraction(0)
        case _, "direct":
            return Fraction(passes * pairs, n)
        case _, "one_shot":
            return Fraction(pairs)
        case _, "network_reduction":
            return Fraction(k)  # up to the switch that sums, even from one domain
        case _, "halving_doubling" if not _all_powers_of_two(counts):
            return None
        case _:
            return crossing_payloads(collective, counts)


def _all_powers_of_two(counts: list[int]) -> bool:
    return len(set(counts)) == 1 and all(
        size & (size - 1) == 0 for size in (counts[0], len(counts))
    )
