"""Outward: which contents of inner domains share an outer domain.

The contents of a tier are given; whole contents are dealt out anew among the outer domains, tier
after tier, so that nothing changes at the tiers done before. Domains of one kind are told apart
only at the end, from the outermost tier inwards.
"""

from __future__ import annotations

from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from planner.place.exchange import exchanged
from planner.place.nets import nets_of, weave
from planner.place.question import coarsen
from planner.place.tree import kinds_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from planner.place.labour import Labour
    from planner.place.question import Question
    from planner.place.tree import Tree

_CONTENTS_MOST = 2048  # contents past which they are not dealt out anew
_ORDERS_TRIED = 24
_STARTS = 2  # orders that exchanges start from


def risen(
    question: Question,
    tree: Tree,
    tier: int,
    home: NDArray[np.int64],
    *,
    tile: Sequence[int] | None,
    settled: int,
    labour: Labour,
) -> NDArray[np.int64]:
    """Return the home at *tier* with whole contents dealt out so that outer tiers cut less.

    Args:
        question: the grid and its charges; its capacities are not used.
        tree: the domains.
        tier: where *home* is given.
        home: domain of each cell there.
        tile: sides of the box that every domain of tier *settled* holds, if they all hold one.
        settled: outermost tier up to which the outer domains are as good as they get already.
        labour: what the search may still do.
    """
    kinds = kinds_of(tree, tier)
    # contents are numbered as the domains that they are in at first
    held_in = [np.array(parents) for parents in tree.parents[tier:]]
    for outer in range(settled + 1, len(tree.names) - 1):
        inner = outer - 1
        contents = len(tree.capacities[inner])
        content = home
        for step in held_in[: inner - tier]:
            content = step[content]
        if contents > _CONTENTS_MOST or labour.over:
            break
        held_in[inner - tier] = _dealt(
            question,
            content,
            held_in[inner - tier],
            kinds[inner - tier],
            tile if inner == settled else None,
            labour,
        )
    return _named(tree, tier, kinds, held_in)[home]


def _dealt(
    question: Question,
    content: NDArray[np.int64],
    parents: NDArray[np.int64],
    kinds: NDArray[np.int64],
    tile: Sequence[int] | None,
    labour: Labour,
) -> NDArray[np.int64]:
    """Return the outer domain of each content; every outer domain keeps its mix of kinds."""
    nets = nets_of(weave(question), np.arange(question.cells), content, len(parents))
    if nets is None:
        return parents
    starts = [parents]
    if tile is not None and len(set(kinds.tolist())) == 1:
        starts += _by_question(question, content, parents, tile, labour)
    starts += list(_in_orders(question, content, parents, kinds))
    costs = [nets.cost_bytes(start) for start in starts]
    best = [starts[i] for i in np.argsort(costs, kind="stable")[:_STARTS]]
    found = [exchanged(nets, start, kinds, labour) for start in best]
    return min(found, key=nets.cost_bytes)


def _by_question(
    question: Question,
    content: NDArray[np.int64],
    parents: NDArray[np.int64],
    tile: Sequence[int],
    labour: Labour,
) -> list[NDArray[np.int64]]:
    """Return the best seating of equal boxes in outer domains: a coarser question of its own.

    None, where no more questions may be asked.
    """
    counts = np.bincount(parents)
    coarse = coarsen(question, tile, counts.tolist())
    answer = labour.quick(coarse)
    if answer is None:
        return []
    grid = content.reshape(tuple(reversed(question.sizes)))
    of_box = grid[tuple(slice(None, None, side) for side in reversed(tile))].ravel()
    dealt = np.full(len(parents), -1)
    dealt[of_box] = answer.home
    spare = counts - np.bincount(answer.home, minlength=len(counts))
    dealt[dealt < 0] = np.repeat(np.arange(len(counts)), spare)
    return [dealt]


def _in_orders(
    question: Question,
    content: NDArray[np.int64],
    parents: NDArray[np.int64],
    kinds: NDArray[np.int64],
) -> Iterator[NDArray[np.int64]]:
    """Yield deals in which contents fill the outer domains along the axes, in several orders."""
    held = np.bincount(content, minlength=len(parents))
    digits, left = [], np.arange(question.cells)
    for size in question.sizes:
        summed = np.bincount(content, weights=left % size, minlength=len(parents))
        digits.append(np.where(held > 0, summed / np.maximum(held, 1), np.inf))
        left = left // size
    live = [i for i, size in enumerate(question.sizes) if size > 1]
    slots = np.lexsort([parents, kinds])
    for count, order in enumerate(permutations(live)):
        if count == _ORDERS_TRIED:
            return
        dealt = np.empty_like(parents)
        dealt[np.lexsort([*(digits[i] for i in order), kinds])] = parents[slots]
        yield dealt


def _named(
    tree: Tree, tier: int, kinds: Sequence[NDArray[np.int64]], held_in: Sequence[NDArray[np.int64]]
) -> NDArray[np.int64]:
    """Return the domain of *tier* that each content gets, from the outermost tier inwards."""
    name = np.arange(len(tree.capacities[-1]))
    for inner in range(len(tree.names) - 2, tier - 1, -1):
        kind, held = kinds[inner - tier], name[held_in[inner - tier]]
        outer_name = np.empty(len(kind), np.int64)
        outer_name[np.lexsort([kind, held])] = np.lexsort([kind, tree.parents[inner]])
        name = outer_name
    return name
