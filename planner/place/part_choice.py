"""Shapes and partitions, chosen in fractions so that both have as many parts of every size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.part_flow import Stock

_COSTLESS = 1e-9  # of what the dearest part costs, which is nought beside it
_KEPT = 1500  # shapes that the linear programme keeps once it has twice as many


@dataclass(slots=True, kw_only=True)
class Choices:
    """The shapes and the partitions that a linear programme chooses from.

    Args:
        part_bytes: what a part of k = 1 … n pays, by family with prices [bytes].
        groups: groups of each of these families [1].
        stock: the domains.
        helds: cells of each shape [1].
        cost_bytes: what a domain of each shape pays [bytes].
        parts: how many parts of each size it holds, of all families one after the other.
        families: of which family each partition is.
        partitions: how many parts of each size it has, k = 1 … n.
    """

    part_bytes: tuple[NDArray[np.float64], ...]
    groups: tuple[int, ...]
    stock: Stock
    helds: list[int] = field(default_factory=list)
    cost_bytes: list[float] = field(default_factory=list)
    parts: list[NDArray[np.float64]] = field(default_factory=list)
    families: list[int] = field(default_factory=list)
    partitions: list[NDArray[np.float64]] = field(default_factory=list)

    def add_shape(self, held: int, cost_bytes: float, parts: NDArray[np.float64]) -> None:
        """Add a shape."""
        self.helds.append(held)
        self.cost_bytes.append(cost_bytes)
        self.parts.append(parts)

    def add_partition(self, family: int, counts: NDArray[np.float64]) -> None:
        """Add a partition of a group."""
        self.families.append(family)
        self.partitions.append(counts)

    def prices(self, centre_bytes: NDArray[np.float64], reach_factor: float) -> NDArray[np.float64]:
        """Return the prices of parts that the cheapest choice suggests [bytes].

        Args:
            centre_bytes: the best prices so far.
            reach_factor: how far from them the next may be, times what a part costs.
        """
        from scipy.optimize import linprog  # noqa: PLC0415 - most placements never need it

        costs = np.array(self.cost_bytes)
        dearest = np.concatenate(self.part_bytes)
        # of fillings that all cost nothing, what parts cost is the measure
        scale = max(float(costs.max()), _COSTLESS * float(dearest.max()), 1e-300)
        starts = np.cumsum([0, *map(len, self.part_bytes)]).tolist()
        width, shapes, partitions = starts[-1], len(costs), len(self.partitions)
        box = reach_factor * np.maximum(dearest, dearest.max() * 1e-3) / scale
        link = np.zeros((width, shapes + partitions))
        link[:, :shapes] = np.array(self.parts).T
        for j, (a, counts) in enumerate(
            zip(self.families, self.partitions, strict=True), start=shapes
        ):
            link[starts[a] : starts[a + 1], j] = -counts
        groups = np.zeros((len(self.groups), shapes + partitions))
        groups[self.families, np.arange(shapes, shapes + partitions)] = 1.0
        domains, limits = self.stock.equations(self.helds), self.stock.limits(self.helds)
        beside = np.zeros((len(limits.rows), partitions + 2 * width))
        slack = np.eye(width)
        equal = np.vstack(
            [
                np.hstack([link, slack, -slack]),
                np.hstack([groups, np.zeros((len(groups), 2 * width))]),
                np.hstack([domains.rows, np.zeros((len(domains.rows), partitions + 2 * width))]),
            ]
        )
        solved = linprog(
            np.concatenate(
                [
                    costs / scale,
                    np.zeros(partitions),
                    box + centre_bytes / scale,
                    box - centre_bytes / scale,
                ]
            ),
            A_eq=equal,
            b_eq=np.concatenate([np.zeros(width), self.groups, domains.sides]),
            A_ub=np.hstack([limits.rows, beside]),
            b_ub=limits.sides,
            method="highs",
        )
        if solved.status != 0:
            return centre_bytes
        tip: NDArray[np.float64] = solved.eqlin.marginals[:width] * scale
        if shapes > 2 * _KEPT:
            duals = solved.eqlin.marginals @ equal[:, :shapes]
            duals = duals + solved.ineqlin.marginals @ limits.rows
            self._keep(np.argsort(costs / scale - duals, kind="stable")[:_KEPT])
        return tip

    def _keep(self, chosen: NDArray[np.int64]) -> None:
        """Forget all shapes but these."""
        rows = np.sort(chosen).tolist()
        self.helds = [self.helds[row] for row in rows]
        self.cost_bytes = [self.cost_bytes[row] for row in rows]
        self.parts = [self.parts[row] for row in rows]
