"""Shapes and partitions, chosen in fractions so that both have as many parts of every size."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.place.part_programme import Programme

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
        programme: what these are the columns of, as far as they were taken up.
        value_bytes: what the cheapest choice costs, counting prices out of reach, by the last
            prices that were asked for; -inf if there was none [bytes].
    """

    part_bytes: tuple[NDArray[np.float64], ...]
    groups: tuple[int, ...]
    stock: Stock
    helds: list[int] = field(default_factory=list)
    cost_bytes: list[float] = field(default_factory=list)
    parts: list[NDArray[np.float64]] = field(default_factory=list)
    families: list[int] = field(default_factory=list)
    partitions: list[NDArray[np.float64]] = field(default_factory=list)
    programme: Programme | None = None
    value_bytes: float = -inf

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
        dearest = np.concatenate(self.part_bytes)
        if self.programme is None:
            # of fillings that all cost nothing, what parts cost is the measure
            scale = max(*self.cost_bytes, _COSTLESS * float(dearest.max()), 1e-300)
            self.programme = Programme(
                tuple(map(len, self.part_bytes)), self.groups, self.stock, scale
            )
        programme = self.programme
        programme.take(self)
        tip = programme.solve(
            centre_bytes, reach_factor * np.maximum(dearest, dearest.max() * 1e-3)
        )
        if tip is None:
            self.value_bytes = -inf
            return centre_bytes
        self.value_bytes = programme.value_bytes
        if len(self.helds) > 2 * _KEPT:
            self._keep(np.argsort(programme.surplus(), kind="stable")[:_KEPT])
        return tip

    def _keep(self, chosen: NDArray[np.int64]) -> None:
        """Forget all shapes but these."""
        rows = np.sort(chosen).tolist()
        self.helds = [self.helds[row] for row in rows]
        self.cost_bytes = [self.cost_bytes[row] for row in rows]
        self.parts = [self.parts[row] for row in rows]
        self.programme = None
