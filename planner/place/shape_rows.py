"""Shapes of one size of domain, and the rules that the shapes of all domains keep together.

A *shape* is the vector of touches of one domain, for some families or all. Proofs: FORMULATION.md.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from planner.place.spread import tables
from planner.place.together import beyond_bytes
from planner.place.touch_search import least_cost, vectors_below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.question import Question
    from planner.place.spread import Share, Tables

_PIECES_MOST = 24  # part sizes of a rule, for each family


@dataclass(frozen=True, slots=True, kw_only=True)
class Shapes:
    """Shapes of domains that hold as many cells.

    Args:
        tables: of the families that the shapes tell.
        families: indices of these families among all.
        touches: t of each, shape [shapes, families].
        cost_bytes: what a domain of each shape pays at least, for all families, [shapes] [bytes].
    """

    tables: Tables
    families: tuple[int, ...]
    touches: NDArray[np.int64]
    cost_bytes: NDArray[np.float64]

    @property
    def held(self) -> int:
        """Cells of the domain [1]."""
        return self.tables.held

    def telling(self, families: Sequence[int]) -> Shapes:
        """Return the shapes with the touches of *families* only; those must be told."""
        columns = [self.families.index(i) for i in families]
        return Shapes(
            tables=self.tables.of(columns),
            families=tuple(families),
            touches=self.touches[:, columns],
            cost_bytes=self.cost_bytes,
        )


def shapes_below(question: Question, held: int, shares: Sequence[Share], limit: float) -> Shapes:
    """Return every shape whose price, with the prices of *shares*, may be *limit* or less.

    Its ``cost_bytes`` are without these prices.
    """
    priced = tables(question, held, None, shares)
    found = vectors_below(
        question.sizes,
        tuple(term.axes for term in priced.terms),
        priced.cost_bytes,
        held,
        priced.totals if priced.coupled else None,
        partial(beyond_bytes, priced),
        limit,
    )
    plain = tables(question, held)
    axes = [term.axes for term in plain.terms]
    told = [i for i in found.families if priced.terms[i].axes in axes]
    columns = [found.families.index(i) for i in told]
    families = [axes.index(priced.terms[i].axes) for i in told]
    touches = found.touches[:, columns]
    known = plain.of(families)
    cost_bytes = known.totals(touches, range(len(families)))
    cost_bytes = cost_bytes + beyond_bytes(plain, touches, families)
    rest = [i for i in range(len(axes)) if i not in families]
    cost_bytes = cost_bytes + least_cost(
        question.sizes,
        tuple(axes[i] for i in rest),
        [plain.cost_bytes[i] for i in rest],
        held,
    )
    there = np.isfinite(cost_bytes)  # prices may have told fewer to be impossible
    return Shapes(
        tables=known,
        families=tuple(families),
        touches=touches[there],
        cost_bytes=cost_bytes[there],
    )


def told_alike(blocks: Sequence[Shapes]) -> list[Shapes]:
    """Return the blocks with the families only that all of them tell."""
    families = sorted(set.intersection(*(set(block.families) for block in blocks)))
    return [block.telling(families) for block in blocks]


@dataclass(slots=True, kw_only=True)
class Rows:
    """Rules sum coefficient x shape >= needs and <= room, one after the other.

    Args:
        at_least: coefficients of the rules on pieces, each [shapes].
        needs: their right-hand sides.
        at_most: coefficients of the rules on full pieces and others, each [shapes].
        room: their right-hand sides.
    """

    at_least: list[NDArray[np.float64]] = field(default_factory=list)
    needs: list[float] = field(default_factory=list)
    at_most: list[NDArray[np.float64]] = field(default_factory=list)
    room: list[float] = field(default_factory=list)


def part_rules(blocks: Sequence[Shapes]) -> Rows:
    """Return the rules on the parts of groups, families told by all *blocks* being the same.

    * sum_s ceil(n_s / m) >= ceil(n / m) for every group and m;
    * sum_s floor(n_s / m) <= floor(n / m).
    """
    rows = Rows()
    terms = blocks[0].tables.terms
    for i, term in enumerate(terms):
        for most in _part_sizes(term.size):
            pieces = [block.tables.most_pieces(i, block.touches, most) for block in blocks]
            rows.at_least.append(np.concatenate(pieces).astype(float))
            rows.needs.append(float(term.groups * -(-term.size // most)))
    for i, term in enumerate(terms):
        for full in sorted({*_part_sizes(term.size), term.size}):
            if full == 1:
                continue
            counts = [block.tables.fewest_full(i, block.touches, full) for block in blocks]
            row = np.concatenate(counts).astype(float)
            if row.any():
                rows.at_most.append(row)
                rows.room.append(float(term.groups * (term.size // full)))
    return rows


def add_whole_rules(rows: Rows, blocks: Sequence[Shapes], domains: Sequence[int]) -> None:
    """Add that a group held whole by one domain is touched by no other.

    A domain touches at most G less what the others hold whole; added up over the domains of a
    block, of which there are *domains*.
    """
    for i, term in enumerate(blocks[0].tables.terms):
        whole = [block.tables.fewest_full(i, block.touches, term.size) for block in blocks]
        flat = np.concatenate(whole).astype(float)
        start = 0
        for block, mine, times in zip(blocks, whole, domains, strict=True):
            row = times * flat
            row[start : start + len(mine)] += block.touches[:, i] - mine
            rows.at_most.append(row)
            rows.room.append(float(times * term.groups))
            start += len(mine)


def _part_sizes(n: int) -> list[int]:
    """Return the m worth a rule: for each number of pieces the largest m that needs so many."""
    sizes = {n}
    for pieces in range(2, n + 1):
        sizes.add(-(-n // (pieces - 1)) - 1)
        if len(sizes) >= _PIECES_MOST:
            break
    return sorted(m for m in sizes if m >= 1)
