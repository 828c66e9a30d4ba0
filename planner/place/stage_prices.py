"""The bound of a pipeline's patterns: prices on the cells and pieces of every stage.

Any prices give a bound: every domain takes the pattern that pays the least at them, and every stage
is worth what its cells and pieces are worth. Patterns and prices that answer each other find good
ones. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from planner.place.stages import pattern_bytes, patterns_of, piece_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.stages import Staged

_ROUNDS = 300  # times that prices and patterns answer each other
_FAILED = 25  # prices in a row that gave no better bound, after which the best are kept
_FIRST_REACH = 0.1  # of what a cell or a part costs: how far from the best prices the next may be
_BETTER = 1e-7  # relative; less is no better
_TIES = 2000  # cheapest patterns that are equally cheap, past which none is taken
_JOINING = 20  # of them that join at a time
_ROUNDING = 1e-12  # relative; sums of a few hundred products


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What a cell, and a piece of one of ``Staged.pieces``, is worth in each stage.

    Args:
        cell_bytes: shape [stages] [bytes].
        piece_bytes: at least 0, shape [stages, sizes of pieces] [bytes].
    """

    cell_bytes: NDArray[np.float64]
    piece_bytes: NDArray[np.float64]

    def held_bytes(self, of: Staged) -> NDArray[np.float64]:
        """Return what 0, 1, … cells of each stage are worth, shape [stages, most + 1] [bytes]."""
        held = np.arange(len(of.pays_bytes))
        sizes, _ = of.pieces
        worth: NDArray[np.float64] = self.cell_bytes[:, None] * held
        worth += self.piece_bytes @ -(-held // sizes[:, None])
        return worth

    def given_bytes(self, of: Staged) -> NDArray[np.float64]:
        """Return what all cells of each stage are worth at least, shape [stages] [bytes]."""
        _, needs = of.pieces
        given: NDArray[np.float64] = self.cell_bytes * of.sheet.cells + self.piece_bytes @ needs
        return given


class Patterns:
    """All patterns of a domain and what they pay, less a price on every stage's cells.

    Args:
        of: the question cut along its pipeline.
        held_bytes: what 0, 1, … cells of each stage are worth, shape [stages, most + 1] [bytes].
        given_bytes: what all cells of each stage are worth at least, shape [stages] [bytes].
    """

    def __init__(
        self, of: Staged, held_bytes: NDArray[np.float64], given_bytes: NDArray[np.float64]
    ) -> None:
        self.of, self.given_bytes = of, given_bytes
        self.each_bytes = of.pays_bytes - held_bytes
        self.least_bytes = self._completions()
        self.first_bytes = self._first()

    @cached_property
    def bound_bytes(self) -> float:
        """What every seating cuts at least [bytes]."""
        of, given = self.of, float(self.given_bytes.sum())
        sizes, counts = of.domains
        each = zip(sizes.tolist(), counts.tolist(), strict=True)
        total = sum((n * self.least(c) for c, n in each), 0.0)
        size = abs(total) + float(np.abs(self.given_bytes).sum()) + abs(of.given_bytes)
        bound: float = total + given - of.given_bytes - _ROUNDING * size
        return bound

    def _completions(self) -> NDArray[np.float64]:
        """Return the least that stages j … can pay with a cells in stage j - 1 and u left.

        Shape [stages + 1, firsts, largest of a stage + 1, largest + 1], by the cells of the first
        stage too where a link closes the pipeline.
        """
        of, most = self.of, len(self.of.pays_bytes) - 1
        count = np.arange(most + 1)
        firsts = count[:, None] if of.closing_bytes else np.zeros((1, 1), dtype=np.int64)
        least = np.full((of.stages + 1, len(firsts), most + 1, of.largest + 1), inf)
        closed = of.closing_bytes * np.maximum(count - firsts, 0)
        least[-1, :, :, 0] = closed
        if of.spare:
            least[-1] = closed[:, :, None]
        runs = of.hop_bytes * count[:, None]
        for j in reversed(range(of.stages)):
            taken = np.full(least.shape[1:], inf)  # b cells of u in stage j
            for b in range(most + 1):
                rest = least[j + 1, :, b, : of.largest + 1 - b]
                taken[:, b, b:] = self.each_bytes[j, b] + rest
            fewer = np.minimum.accumulate(taken, axis=1)
            more = np.minimum.accumulate((taken + runs)[:, ::-1], axis=1)[:, ::-1]
            least[j] = np.minimum(fewer, more - runs)
        return least

    def _first(self) -> NDArray[np.float64]:
        """Return what a domain pays that takes b cells of the first stage and has u left after.

        Shape [largest of a stage + 1, largest + 1].
        """
        count = np.arange(len(self.of.pays_bytes))
        first = count if self.of.closing_bytes else 0 * count
        begun: NDArray[np.float64] = self.each_bytes[0] + self.of.hop_bytes * count
        paid: NDArray[np.float64] = begun[:, None] + self.least_bytes[1, first, count]
        return paid

    def least(self, capacity: int) -> float:
        """Return what a domain of *capacity* cells pays at least [bytes]."""
        seats = min(capacity, self.of.largest)
        count = np.arange(min(len(self.of.pays_bytes), seats + 1))
        return float(self.first_bytes[count, seats - count].min())

    def below(self, capacity: int, limit_bytes: float, most: int) -> NDArray[np.int64] | None:
        """Return all patterns that pay *limit_bytes* at most, [patterns, stages]; None if too many.

        Args:
            capacity: cells of the domain [1].
            limit_bytes: bytes that a pattern may pay [bytes].
            most: how many patterns are not too many [1].
        """
        of, count = self.of, np.arange(len(self.of.pays_bytes))
        rows = np.zeros((1, 0), dtype=np.int64)
        before = first = np.zeros(1, dtype=np.int64)
        left = np.array([min(capacity, of.largest)])
        paid = np.zeros(1)
        for j in range(of.stages):
            runs = of.hop_bytes * np.maximum(count - before[:, None], 0)
            next_paid = paid[:, None] + self.each_bytes[j] + runs
            next_left = left[:, None] - count
            begun = first[:, None] if j else count * (of.closing_bytes > 0)
            rest = self.least_bytes[j + 1, begun, count[None, :], np.maximum(next_left, 0)]
            row, b = np.nonzero((next_left >= 0) & (next_paid + rest <= limit_bytes))
            if len(row) > most:
                return None
            rows = np.column_stack([rows[row], b])
            first = first[row] if j else b * (of.closing_bytes > 0)
            before, left, paid = b, next_left[row, b], next_paid[row, b]
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """Prices, all patterns at these prices, and the bound that they give [bytes]."""

    prices: Prices
    patterns: Patterns
    bound_bytes: float


def priced_at(of: Staged, prices: Prices) -> Priced:
    """Return the bound that some prices give, whatever they are."""
    patterns = Patterns(of, prices.held_bytes(of), prices.given_bytes(of))
    return Priced(prices=prices, patterns=patterns, bound_bytes=patterns.bound_bytes)


def stage_prices(of: Staged, home: NDArray[np.int64], ends_s: float) -> Priced:
    """Return good prices, by patterns and prices that answer each other.

    Args:
        of: the question cut along its pipeline.
        home: a seating, shape [cells]; its patterns are the first.
        ends_s: stop when ``time.monotonic()`` is past this [s].
    """
    sizes, _ = of.domains
    columns = Columns(of)
    columns.add(np.searchsorted(sizes, of.question.capacities), patterns_of(of, home))
    none = Prices(
        cell_bytes=np.zeros(of.stages), piece_bytes=np.zeros((of.stages, len(of.pieces[0])))
    )
    best = trial = priced_at(of, none)
    reach, failed = _FIRST_REACH, 0
    for _ in range(_ROUNDS):
        for k, c in enumerate(sizes.tolist()):
            columns.add_cheapest(trial.patterns, k, c)
        suggested = columns.prices(best.prices, reach)
        if suggested is None or failed > _FAILED or monotonic() > ends_s:
            break
        trial = priced_at(of, suggested.prices)
        if trial.bound_bytes > best.bound_bytes + _BETTER * abs(best.bound_bytes):
            best, reach, failed = trial, 2 * reach, 0
            continue
        reach, failed = reach / 2, failed + 1
        if suggested.hoped_bytes <= best.bound_bytes + _BETTER * abs(best.bound_bytes):
            break  # the best of all prices near it, so of all prices: the bound is concave
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggested:
    """The prices that a choice of patterns suggests, and what it cuts [bytes]."""

    prices: Prices
    hoped_bytes: float


class Columns:
    """Patterns that a linear programme chooses from."""

    def __init__(self, of: Staged) -> None:
        self.of = of
        self.rows = np.zeros((0, of.stages), dtype=np.int64)
        self.classes = np.zeros(0, dtype=np.int64)

    def add(self, classes: NDArray[np.int64], rows: NDArray[np.int64]) -> bool:
        """Add patterns; return whether any was new."""
        before = len(self.rows)
        joined = np.column_stack(
            [np.concatenate([self.classes, classes]), np.vstack([self.rows, rows])]
        )
        both = np.unique(joined, axis=0)
        self.classes, self.rows = both[:, 0], both[:, 1:]
        return len(self.rows) > before

    def add_cheapest(self, patterns: Patterns, of_class: int, capacity: int) -> bool:
        """Add the cheapest patterns of one size of domain; return whether any was new."""
        least = patterns.least(capacity)
        window = _ROUNDING * float(np.abs(patterns.each_bytes).max()) * self.of.stages
        found = patterns.below(capacity, least + window, _TIES)
        if found is None:
            return False
        return self.add(np.full(len(found[:_JOINING]), of_class), found[:_JOINING])

    def prices(self, centre: Prices, reach_factor: float) -> Suggested | None:
        """Return the prices that the cheapest choice suggests, near the best so far.

        Args:
            centre: the best prices so far.
            reach_factor: how far from them the next may be, in what a cell, or a part, costs.
        """
        from scipy.optimize import linprog  # noqa: PLC0415 - most placements never need it

        of, width = self.of, self.of.stages
        _, counts = of.domains
        costs = pattern_bytes(of, self.rows)
        scale = max(float(costs.max()), 1e-300)
        of_class = (self.classes == np.arange(len(counts))[:, None]).astype(float)
        pieces, needs = piece_rows(of, self.rows)
        rows = np.vstack([self.rows.T, pieces])
        near = np.concatenate([centre.cell_bytes, centre.piece_bytes.ravel()]) / scale
        a_cell, a_part = float(costs.max()) / of.largest, float(of.pays_bytes.max()) + of.hop_bytes
        far = reach_factor * np.repeat([a_cell, a_part], [width, len(pieces)]) / scale
        unit = np.eye(len(rows))
        joined = np.hstack([rows, unit, -unit])
        equal, least = joined[:width], -joined[width:]
        cells, most = np.full(width, of.sheet.cells), -needs
        domains = np.hstack([of_class, np.zeros((len(counts), 2 * len(rows)))])
        if of.spare:
            least, most = np.vstack([least, domains]), np.concatenate([most, counts])
        else:
            equal, cells = np.vstack([equal, domains]), np.concatenate([cells, counts])
        solved = linprog(
            np.concatenate([costs / scale, near + far, far - near]),
            A_eq=equal,
            b_eq=cells.astype(float),
            A_ub=least,
            b_ub=most.astype(float),
            method="highs",
        )
        if solved.status != 0:
            return None
        worth = np.maximum(-solved.ineqlin.marginals[: len(pieces)], 0.0) * scale
        return Suggested(
            prices=Prices(
                cell_bytes=solved.eqlin.marginals[:width] * scale,
                piece_bytes=worth.reshape(width, -1),
            ),
            hoped_bytes=float(solved.fun) * scale - of.given_bytes,
        )
