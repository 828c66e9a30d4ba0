"""Seatings that an answer must beat: rank order, greedy, random, schedulers' rules, METIS.

Each is what somebody would do without a planner. None of them is part of the proof.
"""

from __future__ import annotations

from importlib.util import find_spec
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.layout import groups_along
from planner.place.question import Kind, coarsen, cut_bytes, refine_home

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.question import Charge, Question

_RANDOM_TRIES = 32
_FEW_CELLS = 4096  # above it fewer random tries, and greedy seats boxes of ranks
_METIS_CELLS = 16_384  # METIS takes more than ten seconds beyond it
_METIS_CLIQUE = 16  # groups up to this size become cliques, larger ones rings with chords


def baselines(question: Question, seed: int) -> tuple[tuple[str, NDArray[np.int64]], ...]:
    """Return (name, home of each cell) of every baseline, in a fixed order.

    The two schedulers' rules are left out where they seat as rank order or greedy do.

    Args:
        question: the grid and its charges.
        seed: of the random seatings and METIS.

    >>> from planner.place.question import Question
    >>> [name for name, _ in baselines(Question(sizes=(2, 4), charges=(), capacities=(4, 4)), 0)
    ...  if name != "metis"]
    ['megatron-order', 'greedy', 'best-of-32-random']
    """
    tries = _RANDOM_TRIES if question.cells <= _FEW_CELLS else 4
    found = [
        ("megatron-order", in_rank_order(question)),
        ("greedy", greedy(question)),
        (f"best-of-{tries}-random", best_random(question, tries, seed)),
    ]
    told = {home.tobytes() for _, home in found}
    for name, home in (("pack-first", packed(question)), ("whole-pipelines", pipelines(question))):
        if home.tobytes() not in told:
            found.append((name, home))
            told.add(home.tobytes())
    if find_spec("pymetis") is not None and question.cells <= _METIS_CELLS:
        found.append(("metis", metis(question, seed)))
    return tuple(found)


def in_rank_order(question: Question) -> NDArray[np.int64]:
    """Return the seating of a launcher that fills host after host: rank r on the r-th seat."""
    domains = np.arange(len(question.capacities))
    return np.repeat(domains, question.capacities)[: question.cells]


def packed(question: Question) -> NDArray[np.int64]:
    """Return the seating of a scheduler that packs: ranks in order, the largest domains first."""
    capacities = np.array(question.capacities)
    largest_first = np.argsort(-capacities, kind="stable")
    return np.repeat(largest_first, capacities[largest_first])[: question.cells]


def pipelines(question: Question) -> NDArray[np.int64]:
    """Return the seating that keeps pipelines whole: innermost axis, then outermost, then the rest.

    The rule of thumb *one replica to a supernode*: only data parallelism leaves it.
    """
    if not question.sizes:
        return in_rank_order(question)
    last = len(question.sizes) - 1
    order = list(dict.fromkeys([0, last, *range(1, last)]))
    walk = np.arange(question.cells).reshape(tuple(reversed(question.sizes)))
    walk = walk.transpose([last - axis for axis in reversed(order)]).ravel()
    home = np.empty(question.cells, dtype=np.int64)
    home[walk] = in_rank_order(question)
    return home


def best_random(question: Question, tries: int, seed: int) -> NDArray[np.int64]:
    """Return the cheapest of *tries* seatings drawn evenly from all of them."""
    random = np.random.default_rng(seed)
    all_seats = np.repeat(np.arange(len(question.capacities)), question.capacities)
    drawn = [random.permutation(all_seats)[: question.cells] for _ in range(tries)]
    costs = [cut_bytes(question, home) for home in drawn]
    return drawn[int(np.argmin(costs))]


def greedy(question: Question) -> NDArray[np.int64]:
    """Return the seating that takes rank after rank to where its groups already sit.

    Ranks are taken in rank order; each goes to the domain with a free seat that adds the fewest
    bytes given who sits already, the first such domain where several tie. In grids of more than
    4096 ranks, the innermost ranks that fit every domain's size move as one.
    """
    tile = _unit(question)
    if prod(tile) == 1:
        return _greedy(question)
    capacities = [capacity // prod(tile) for capacity in question.capacities]
    return refine_home(question, tile, _greedy(coarsen(question, tile, capacities)))


def _unit(question: Question) -> tuple[int, ...]:
    """Return the box of innermost cells that greedy moves as one."""
    tile = [1] * len(question.sizes)
    for axis, size in enumerate(question.sizes):
        for factor in (f for f in range(2, size + 1) if size % f == 0):
            if question.cells // prod(tile) <= _FEW_CELLS:
                return tuple(tile)
            wider = [*tile]
            wider[axis] = factor
            seated = sum(capacity // prod(wider) for capacity in question.capacities)
            if seated < question.cells // prod(wider):
                return tuple(tile)
            tile = wider
    return tuple(tile)


def _greedy(question: Question) -> NDArray[np.int64]:
    """Seat cell after cell where the saving, against sharing no group, is greatest."""
    links = [_links(question, charge) for charge in question.charges]
    weights = [
        charge.weight_bytes * (2.0 if charge.kind is Kind.PAIRS else 1.0)
        for charge in question.charges
    ]
    counted = [charge.kind is Kind.PAIRS for charge in question.charges]
    seated: list[list[dict[int, int]]] = [
        [{} for _ in range(1 + max(map(max, filter(None, link)), default=0))] for link in links
    ]
    free, first_free = list(question.capacities), 0
    home = np.empty(question.cells, dtype=np.int64)
    for cell in range(question.cells):
        saved: dict[int, float] = {}
        for link, weight, by_count, groups in zip(links, weights, counted, seated, strict=True):
            for group in link[cell]:
                for domain, members in groups[group].items():
                    more = weight * members if by_count else weight
                    saved[domain] = saved.get(domain, 0.0) + more
        while free[first_free] == 0:
            first_free += 1
        open_domains = [(-value, s) for s, value in saved.items() if free[s]]
        best = min(open_domains, default=(0.0, first_free))[1]
        home[cell] = best
        free[best] -= 1
        for link, groups in zip(links, seated, strict=True):
            for group in link[cell]:
                groups[group][best] = groups[group].get(best, 0) + 1
    return home


def _links(question: Question, charge: Charge) -> list[tuple[int, ...]]:
    """Return for each cell what it shares with others: its group, or its hops of a chain."""
    groups = groups_along(question.sizes, charge.axes)
    linked: list[list[int]] = [[] for _ in range(question.cells)]
    if charge.kind is Kind.CHAIN:
        ends = np.stack([groups[:, :-1], groups[:, 1:]], axis=2).reshape(-1, 2)
    elif charge.kind is Kind.ENDS:
        ends = groups[:, [0, -1]]
    else:
        ends = groups
    for number, members in enumerate(ends.tolist() if groups.shape[1] > 1 else []):
        for cell in members:
            linked[cell].append(number)
    return [tuple(numbers) for numbers in linked]


def metis(question: Question, seed: int) -> NDArray[np.int64]:
    """Return METIS's partition of the groups' graph, mended to the domains' sizes.

    The better of its k-way and its recursive bisection; it may leave seats spare as it likes.

    A group of n becomes a clique of weight w / (n - 1) an edge (all-to-all: 2 w), a large one a
    ring with chords, a chain its hops; METIS minimises the edges cut, not the groups split.
    Source: Karypis and Kumar, SIAM J. Sci. Comput. 20 (1998) 359; called through PyMetis.
    """
    import pymetis  # noqa: PLC0415 - an optional extra

    ends, weights = _edges(question)
    if len(ends) == 0 or len(question.capacities) == 1:
        return in_rank_order(question)
    wide = question.cells
    code, where = np.unique(ends[:, 0] * wide + ends[:, 1], return_inverse=True)
    summed = np.bincount(where, weights=weights)
    whole = np.maximum(1, np.rint(summed * (1e6 / summed.max()))).astype(np.int64)
    starts = np.searchsorted(code // wide, np.arange(question.cells + 1))
    capacities = np.array(question.capacities)
    open_domains = np.flatnonzero(capacities)
    shares = capacities[open_domains] / capacities.sum()
    spare = sum(question.capacities) / question.cells - 1
    options = pymetis.Options(seed=seed % 2**31, ufactor=max(1, int(1000 * spare)))
    listed = starts.tolist(), (code % wide).tolist()
    if hasattr(pymetis, "CSRAdjacency"):
        graph: dict[str, Any] = {"adjacency": pymetis.CSRAdjacency(*listed)}
    else:  # before PyMetis 2025
        graph = dict(zip(("xadj", "adjncy"), listed, strict=True))
    found = []
    for recursive in (False, True):
        _, parts = pymetis.part_graph(
            len(open_domains),
            **graph,
            eweights=whole.tolist(),
            tpwgts=shares.tolist(),
            options=options,
            recursive=recursive,
        )
        found.append(_mended(question, open_domains[np.asarray(parts)]))
    return min(found, key=lambda home: cut_bytes(question, home))


def _edges(question: Question) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return (both directions of every edge, its weight), equal edges not yet added up."""
    ends: list[NDArray[np.int64]] = [np.empty((0, 2), np.int64)]
    weights: list[NDArray[np.float64]] = [np.empty(0)]
    for charge in question.charges:
        groups = groups_along(question.sizes, charge.axes)
        size = groups.shape[1]
        if size < 2:
            continue
        weight = charge.weight_bytes
        if charge.kind is Kind.CHAIN:
            steps: Sequence[tuple[int, int]] = [(i, i + 1) for i in range(size - 1)]
        elif charge.kind is Kind.ENDS:
            steps = [(0, size - 1)]
        else:
            hops = range(1, size) if size <= _METIS_CLIQUE else _chords(size)
            steps = [(i, i + hop) for hop in hops for i in range(size - hop)]
            weight *= 2.0 if charge.kind is Kind.PAIRS else size / (2 * len(steps))
        first, second = (groups[:, [step[end] for step in steps]].ravel() for end in (0, 1))
        ends += [np.column_stack([first, second]), np.column_stack([second, first])]
        weights += [np.full(2 * len(first), weight)]
    return np.concatenate(ends), np.concatenate(weights)


def _chords(size: int) -> tuple[int, ...]:
    return tuple(2**i for i in range(size.bit_length()) if 2**i < size)


def _mended(question: Question, home: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return *home* with the last cells of overfull domains moved to free seats, in order."""
    held = np.bincount(home, minlength=len(question.capacities))
    by_home = np.argsort(home, kind="stable")
    behind = np.arange(question.cells) - np.repeat(np.cumsum(held) - held, held)
    capacities = np.array(question.capacities)
    too_many = by_home[behind >= capacities[home[by_home]]]
    free = np.maximum(capacities - held, 0)
    mended = home.copy()
    mended[too_many] = np.repeat(np.arange(len(capacities)), free)[: len(too_many)]
    return mended
