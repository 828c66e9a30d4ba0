"""The slow and obvious: what fast code is held against.

Nothing here imports the code it judges; questions and charges are only read by attribute.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import combinations, pairwise, permutations, product
from math import comb, prod
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

# Placement


def digit_groups(sizes: Sequence[int], along: Sequence[int]) -> list[list[int]]:
    """Return the groups of cells that differ only in the digits *along*, by writing out digits."""
    by_rest: dict[tuple[int, ...], list[int]] = {}
    for cell in range(prod(sizes)):
        digits, left = [], cell
        for size in sizes:
            digits.append(left % size)
            left //= size
        rest = tuple(d for axis, d in enumerate(digits) if axis not in along)
        by_rest.setdefault(rest, []).append(cell)
    return sorted(by_rest.values())


def group_units(kind: str, homes: Sequence[int], units: Sequence[float] = ()) -> float:
    """Return what one group pays per unit of weight, member by member."""
    size = len(homes)
    if kind == "copies":
        return sum(units[list(homes).count(s)] for s in set(homes))
    if kind == "chain":
        return sum(homes[i] != homes[i + 1] for i in range(size - 1))
    if kind == "ends":
        return int(homes[0] != homes[-1])
    if kind == "pairs":
        return sum(homes[i] != homes[j] for i, j in product(range(size), repeat=2))
    touched = len(set(homes))
    if kind == "ring":
        return touched if touched > 1 else 0
    return touched - 1


def slow_cut_bytes(question: Any, home: Sequence[int]) -> float:
    """Return what a seating cuts, group by group."""
    total = 0.0
    for charge in question.charges:
        for members in digit_groups(question.sizes, charge.axes):
            units = group_units(charge.kind.value, [home[m] for m in members], charge.units)
            total += charge.weight_bytes * units
    return total


def brute_force_cut(question: Any) -> float:
    """Return the least cut over every seating there is (12 cells or so)."""
    homes = every_seating(question.cells, question.capacities)
    total = np.zeros(len(homes))
    for charge in question.charges:
        for members in digit_groups(question.sizes, charge.axes):
            total += charge.weight_bytes * units_side_by_side(charge, homes[:, members])
    return float(total.min())


def units_side_by_side(charge: Any, homes: NDArray[np.int8]) -> NDArray[Any]:
    """Return ``group_units`` of one group in many seatings, shape [seatings]."""
    kind, size = charge.kind.value, homes.shape[1]
    if kind == "chain":
        crossed = np.zeros(len(homes), np.int64)
        for i in range(size - 1):
            crossed += homes[:, i] != homes[:, i + 1]
        return crossed
    if kind == "ends":
        return np.asarray(homes[:, 0] != homes[:, -1], np.int64)
    held = np.stack([(homes == s).sum(axis=1) for s in range(int(homes.max()) + 1)])
    touched: NDArray[np.int64] = (held > 0).sum(axis=0)
    if kind == "copies":
        return np.asarray(np.array(charge.units)[held].sum(axis=0))
    units: dict[str, NDArray[np.int64]] = {
        "pairs": (held * (size - held)).sum(axis=0),
        "ring": np.where(touched > 1, touched, 0),
        "touch": touched - 1,
    }
    return units[kind]


def slow_border_bytes(question: Any, home: Sequence[int]) -> list[float]:
    """Return what each domain sends in one step, message by message.

    A reduction's domains pass its sum round a ring of k; every pair of an all-to-all, and every
    copy, leaves its sender's domain (copies half on the way there and half on the way back);
    a hop of a chain goes one way forward and the other way back.
    """
    sent = [0.0] * len(question.capacities)
    for charge in question.charges:
        for members in digit_groups(question.sizes, charge.axes):
            homes = [home[m] for m in members]
            for s, units in _messages(charge, homes):
                sent[s] += charge.weight_bytes * units
    return sent


def _messages(charge: Any, homes: list[int]) -> Iterator[tuple[int, float]]:
    """Yield (domain, units sent) of one group."""
    kind, n, there = charge.kind.value, len(homes), sorted(set(homes))
    if len(there) < 2:
        return
    if kind in ("chain", "ends"):
        hops = list(pairwise(homes)) if kind == "chain" else [(homes[0], homes[-1])]
        yield from ((s, 0.5) for hop in hops if hop[0] != hop[1] for s in hop)
    elif kind == "ring":
        yield from ((s, 1.0) for s in there)
    elif kind == "touch":
        yield from ((s, (len(there) - 1) / len(there)) for s in there)
    elif kind == "pairs":
        yield from ((one, 1.0) for one, other in product(homes, repeat=2) if one != other)
    else:
        for s, r in permutations(there, 2):
            held = homes.count(r)
            copies = homes.count(s) * charge.units[held] / (n - held)
            yield from ((s, copies / 2), (r, copies / 2))


def brute_force_border_s(question: Any, rates: Sequence[float]) -> float:
    """Return the least time of the busiest border over every seating there is (9 cells or so).

    Domains of one size may have different uplinks, so every naming of a seating is tried.
    """
    domains, cells = len(question.capacities), question.cells
    homes = np.array(list(product(range(domains), repeat=cells)), np.int8)
    held = np.stack([(homes == s).sum(axis=1) for s in range(domains)], axis=1)
    homes = homes[(held <= question.capacities).all(axis=1)]
    sent = np.zeros((len(homes), domains))
    for charge in question.charges:
        for members in digit_groups(question.sizes, charge.axes):
            spreads, which = np.unique(homes[:, members], axis=0, return_inverse=True)
            units = np.zeros((len(spreads), domains))
            for row, spread in enumerate(spreads.tolist()):
                for s, part in _messages(charge, spread):
                    units[row, s] += part
            sent += charge.weight_bytes * units[which.ravel()]
    return float((sent / np.array(rates)).max(axis=1).min())


def copies_that_cross(homes: Sequence[int], experts: int, top_k: int) -> float:
    """Return the mean copies that leave their token's domain, over every choice of experts.

    One token on each member; member i holds experts i E / n to (i + 1) E / n; a token sends one
    copy to every other domain in which one of its experts lives.
    """
    each = experts // len(homes)
    choices = list(combinations(range(experts), top_k))
    crossed = sum(
        len({homes[expert // each] for expert in chosen} - {home})
        for home in homes
        for chosen in choices
    )
    return crossed / len(choices)


@lru_cache(maxsize=64)
def every_seating(cells: int, capacities: tuple[int, ...]) -> NDArray[np.int8]:
    """Return every seating of the cells, shape [seatings, cells].

    Cell after cell goes to every domain with a free seat. Of several empty domains of one size
    only the first is entered: seatings that differ by their names alone are listed once.
    """
    homes = np.zeros((1, 0), np.int8)
    for _ in range(cells):
        held = np.stack([(homes == s).sum(axis=1) for s in range(len(capacities))], axis=1)
        longer = []
        for s, capacity in enumerate(capacities):
            twins = [r for r in range(s) if capacities[r] == capacity]
            entered = held[:, s] > 0
            first_empty = (held[:, twins] > 0).all(axis=1)
            rows = homes[(held[:, s] < capacity) & (entered | first_empty)]
            longer.append(np.column_stack([rows, np.full(len(rows), s, np.int8)]))
        homes = np.concatenate(longer)
    return homes


def seatings_with_names(cells: int, capacities: tuple[int, ...]) -> int:
    """Return how many seatings there are when domains of one size are told apart."""
    ways = [1] + [0] * cells
    for capacity in capacities:
        ways = [
            sum(ways[n - h] * comb(n, h) for h in range(min(n, capacity) + 1))
            for n in range(cells + 1)
        ]
    return ways[cells]


_GRIDS = (
    (2, 2, 3), (2, 6), (3, 4), (2, 3, 2), (12,), (2, 5), (3, 3), (2, 4), (2, 2, 2), (4, 3), (11,),
    (2, 1, 3, 2), (5, 2), (6, 2), (2, 3), (7,),
)  # fmt: skip

_SEATINGS = 60_000  # more of them are not enumerated


def random_small_shape(random: np.random.Generator) -> dict[str, Any]:
    """Return sizes, capacities and (axes, kind, weight) of a question small enough to enumerate."""
    sizes = _GRIDS[random.integers(len(_GRIDS))]
    capacities = _random_capacities(random, prod(sizes))
    while seatings_with_names(prod(sizes), capacities) > _SEATINGS:
        capacities = _random_capacities(random, prod(sizes))
    charges: dict[tuple[tuple[int, ...], str], float] = {}
    for _ in range(int(random.integers(1, 6))):
        axes = tuple(i for i in range(len(sizes)) if random.random() < 0.45)
        axes = axes or (int(random.integers(len(sizes))),)
        kind = str(random.choice(["touch", "touch", "touch", "pairs", "ring", "chain", "ends"]))
        charges[axes, kind] = _random_weight(random)
        if kind == "ends":
            charges.setdefault((axes, "chain"), _random_weight(random))
    return {
        "sizes": sizes,
        "charges": [(axes, kind, weight) for (axes, kind), weight in charges.items()],
        "capacities": capacities,
    }


def _random_weight(random: np.random.Generator) -> float:
    if random.random() < 0.5:
        return float(random.integers(1, 6))
    return float(10.0 ** random.uniform(-2, 2))


def _random_capacities(random: np.random.Generator, cells: int) -> tuple[int, ...]:
    """Return 2 to 4 capacities: equal or not, with or without spare seats."""
    domains = int(random.integers(2, 5))
    if random.random() < 0.35 and cells % domains == 0:
        return (cells // domains,) * domains
    spare = int(random.choice([0, 0, 1, 2, 4]))
    cuts = np.sort(random.integers(0, cells + spare + 1, domains - 1))
    parts = np.diff(np.concatenate([[0], cuts, [cells + spare]]))
    return tuple(int(p) for p in parts if p) if (parts > 0).sum() > 1 else (cells, spare + 1)
