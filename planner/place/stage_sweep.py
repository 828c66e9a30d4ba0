"""The cheapest choice of a pattern for every domain, stage after stage.

The sheets that are dealt out are the stages of a pipeline, in their order (``sweep.py``).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from planner.place.sweep import Dealing, told

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.sheet_cuttings import Parts
    from planner.place.stage_joins import Beyond, Pairs
    from planner.place.stage_prices import Patterns

_COSTS_MOST = 4_000_000  # of all states and counts of a stage, past which nothing is swept
_ROUNDING = 1e-12  # relative; sums of a few hundred products


def shares_of(stages: int, stage: int) -> tuple[float, float]:
    """Return how much of what the stage before a stage and it pay counts where they are joined."""
    return (1.0 if stage == 1 else 0.5, 1.0 if stage == stages - 1 else 0.5)


class StageDealing(Dealing):
    """One question at some prices.

    A domain's code is 0 if it is full (and holds nothing of the last stage, where it matters what
    two stages cost together), else what it holds of the first stage (where a link closes the
    pipeline), of the last stage dealt out, and the cells that it has left, in one number.

    Args:
        patterns: at prices of the stages' cells, good ones if much is to be left out.
        beyond: what stages cost besides, asked for those of the cheapest ways.
    """

    def __init__(self, patterns: Patterns, beyond: Beyond | None = None) -> None:
        of = patterns.of
        self.of, self.patterns, self.beyond = of, patterns, beyond
        self.steps, self.cells, self.counts = of.stages, of.sheet.cells, len(of.pays_bytes)
        self.seats = of.largest + 1
        self.given = patterns.given_bytes
        size = float(np.abs(self.given).sum()) + abs(of.given_bytes)
        self.base_bytes, self.tolerance_bytes = patterns.bound_bytes, _ROUNDING * size
        self.cut_bytes: dict[Parts, float] = {}
        self.joined_bytes: dict[tuple[tuple[float, float], Pairs], float] = {}

    @property
    def possible(self) -> bool:
        """Whether the codes are few enough."""
        firsts = self.counts if self.of.closing_bytes else 1
        return firsts * self.counts**2 * self.seats <= _COSTS_MOST

    def first_codes(self) -> NDArray[np.int64]:
        """As of ``Dealing``: what they can hold."""
        return np.minimum(np.array(self.of.question.capacities, dtype=np.int64), self.of.largest)

    def given_bytes(self, step: int) -> float:
        """As of ``Dealing``: what a stage's cells and pieces are worth [bytes]."""
        return float(self.given[step])

    def worth_bytes(self, step: int) -> NDArray[np.float64]:
        """As of ``Dealing``: the prices of cells, pieces or parts [bytes]."""
        worth: NDArray[np.float64] = self.of.pays_bytes - self.patterns.each_bytes[step]
        return worth

    def costs(
        self, step: int, codes: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """As of ``Dealing``."""
        of, patterns, count = self.of, self.patterns, np.arange(self.counts)
        first, now, left = codes // self.seats // self.counts, self._now(codes), codes % self.seats
        full = codes == 0
        begun = np.where(step == 0, count, first[:, None]) * (of.closing_bytes > 0)
        rest = left[:, None] - count
        costs = of.pays_bytes + of.hop_bytes * np.maximum(count - now[:, None], 0)
        costs = costs + patterns.least_bytes[step + 1, begun, count, np.maximum(rest, 0)]
        if step:
            before = patterns.least_bytes[step, first * (of.closing_bytes > 0), now, left]
        else:
            before = np.array([patterns.least(int(c)) for c in left])
        costs = np.where(rest >= 0, costs - before[:, None], np.inf)
        costs[full] = np.where(count == 0, 0.0, np.inf)
        after = (begun * self.counts + count) * self.seats + rest
        kept = (rest > 0) | ((rest == 0) & (count > 0) & self.joins)
        return costs, np.where(kept, after, 0)

    def more_bytes(
        self, step: int, codes: NDArray[np.int64], taken: NDArray[np.int64]
    ) -> NDArray[np.float64] | None:
        """As of ``Dealing``."""
        if not (self.joins or any(self.cut_bytes.values())):
            return None
        more = told(taken, {parts: paid for parts, paid in self.cut_bytes.items() if paid > 0})
        if step and self.joins:
            more = more + told(self._now(codes) * self.counts + taken, self._joined(step))
        return more

    @property
    def joins(self) -> bool:
        """Whether something is known of stages that follow each other."""
        return any(self.joined_bytes.values())

    def learn_soon(self, held: NDArray[np.int64]) -> None:
        """As of ``Dealing``: a solver that cuts stages takes longer."""
        if self.beyond is not None:
            self._learn(held, self.beyond, cutting=self.beyond.sheet_s <= 0)

    def learn(self, held: NDArray[np.int64]) -> bool:
        """As of ``Dealing``."""
        return self.beyond is not None and self._learn(held, self.beyond, cutting=True)

    def _learn(self, held: NDArray[np.int64], beyond: Beyond, *, cutting: bool) -> bool:
        """Return whether a way costs more than was known.

        Unless *cutting*, of stages whose cuttings are known, by what two of them cost together.
        """
        learned = False
        for column in held.T:
            parts = tuple(sorted((int(k) for k in column if k), reverse=True))
            if parts not in self.cut_bytes:
                if not cutting:
                    return False
                self.cut_bytes[parts] = beyond.cutting_bytes(parts)
                learned = learned or self.cut_bytes[parts] > 0
        if learned:
            return True
        for stage in range(1, self.of.stages):
            two = Counter(map(tuple, held[:, stage - 1 : stage + 1].tolist()))
            two.pop((0, 0), None)
            key = shares_of(self.of.stages, stage), frozenset(two.items())
            if key not in self.joined_bytes:
                self.joined_bytes[key] = beyond.joined_bytes(stage, key[1])
                learned = learned or self.joined_bytes[key] > 0
        return learned

    def _now(self, codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return what domains hold of the last stage dealt out."""
        return codes // self.seats % self.counts

    def _joined(self, stage: int) -> dict[Parts, float]:
        """Return what is known that a stage and the one before cost more, by pairs of cells.

        The pairs are numbers, of which the largest comes first [bytes].
        """
        shares = shares_of(self.of.stages, stage)
        return {
            tuple(
                sorted((a * self.counts + b for (a, b), n in pairs for _ in range(n)), reverse=True)
            ): more
            for (of_shares, pairs), more in self.joined_bytes.items()
            if of_shares == shares and more > 0
        }
