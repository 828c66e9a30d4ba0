"""Rings from one pipeline stage to the next: who can complete one, and at whose cost.

A domain that holds r of a ring's n members, keeps them and holds the ring whole in the next stage
takes the other n - r cells from domains that leave them. Patterns alone do not say so: two domains
may each hold half of the same ring and both be whole one stage on. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import domain_bound
from planner.place.question import Kind, Question

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.stages import Staged

_SAME = 1e-9  # relative


@dataclass(frozen=True, slots=True, kw_only=True)
class RingRules:
    """Further unknowns y ≥ 0 of the choice of patterns x, and of_patterns x + of_others y <= 0.

    Args:
        cost_bytes: of each y [bytes].
        whole: whether each y is a whole number.
        of_patterns: shape [rules, patterns].
        of_others: shape [rules, unknowns].
    """

    cost_bytes: NDArray[np.float64]
    whole: NDArray[np.bool_]
    of_patterns: NDArray[np.float64]
    of_others: NDArray[np.float64]


def ring_rules(of: Staged, rows: NDArray[np.int64]) -> RingRules | None:
    """Return what rings ask of a choice of patterns; None where there is nothing to ask.

    Args:
        of: the question cut along its pipeline.
        rows: the patterns, shape [patterns, stages].
    """
    ring = ring_of(of)
    if ring is None or of.stages < 2:
        return None
    n, part_bytes = ring
    build = _Build(of, rows, n)
    for j in range(of.stages - 1):
        build.boundary(j, rows[:, j], rows[:, j + 1])
        build.boundary(j, rows[:, j + 1], rows[:, j])
    if not build.rules:
        return None
    return build.done(part_bytes)


def ring_of(of: Staged) -> tuple[int, float] | None:
    """Return (members, bytes of a part) of a stage's rings; None if the rest depends on them.

    It does not if a domain with one part more than its cells need pays a part's bytes more.
    """
    rings = [c for c in of.sheet.charges if c.kind is Kind.RING]
    if len(rings) != 1:
        return None
    n = of.sheet.group_size(rings[0].axes)
    rest = Question(
        sizes=of.sheet.sizes,
        charges=tuple(c for c in of.sheet.charges if c is not rings[0]),
        capacities=of.sheet.capacities,
    )
    for c, pays in enumerate(of.pays_bytes[1:].tolist(), start=1):
        beside = domain_bound(rest, c) + rings[0].weight_bytes * (c % n > 0)
        if pays > beside * (1 + _SAME):
            return None
    return n, rings[0].weight_bytes


class _Build:
    """The rules, one boundary between two stages after the other.

    Unknowns: for every boundary the cells that leave their domain though it could keep them; for
    every stage the domains with more parts of rings than needed; those that give up what they hold
    of a ring, by boundary, direction, r and what they lose.
    """

    def __init__(self, of: Staged, rows: NDArray[np.int64], n: int) -> None:
        self.of, self.rows, self.n = of, rows, n
        self.most = len(of.pays_bytes) - 1
        self.fixed = 2 * of.stages - 1
        self.given_up = 0
        self.rules: list[NDArray[np.float64]] = []
        self.others: list[dict[int, float]] = []

    def boundary(self, j: int, here: NDArray[np.int64], there: NDArray[np.int64]) -> None:
        """Add the rules of boundary *j* for domains that complete rings from *here* to *there*."""
        n, stages = self.n, self.of.stages
        rest = here % n
        lost = rest - there % n
        completes = (rest > 0) & (there >= n * -(-here // n)) & (lost > 0)
        if not completes.any():
            return
        needs = np.where(completes, n - rest, 0) - np.minimum(np.maximum(here - there, 0), rest)
        slack = n - 1 + self.most
        rule = {j: -1.0, stages - 1 + j: -float(slack), stages + j: -float(slack)}
        losses: dict[int, float] = {j: -1.0}
        for r, c in np.unique(np.column_stack([rest, lost])[completes], axis=0).tolist():
            unknown = self.fixed + self.given_up
            self.given_up += 1
            rule[unknown] = -float(n - r)
            losses[unknown] = float(c)
            self._add(-(completes & (rest == r) & (lost == c)).astype(float), {unknown: 1.0})
        self._add(needs.astype(float), rule)
        self._add(np.zeros(len(here)), losses)

    def _add(self, of_patterns: NDArray[np.float64], of_others: dict[int, float]) -> None:
        self.rules.append(of_patterns)
        self.others.append(of_others)

    def done(self, part_bytes: float) -> RingRules:
        """Return the rules."""
        stages, unknowns = self.of.stages, self.fixed + self.given_up
        others = np.zeros((len(self.rules), unknowns))
        for row, entries in enumerate(self.others):
            for unknown, factor in entries.items():
                others[row, unknown] = factor
        cost = np.zeros(unknowns)
        cost[: stages - 1] = self.of.hop_bytes
        cost[stages - 1 : self.fixed] = part_bytes
        whole = np.ones(unknowns, dtype=bool)
        whole[: stages - 1] = False
        return RingRules(
            cost_bytes=cost, whole=whole, of_patterns=np.array(self.rules), of_others=others
        )
