"""The linear programme of shapes and partitions, solved again and again as columns come.

Each solve starts from the last one's basis: a column more or other prices to stay near to are a few
steps of the simplex method, not a programme of their own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.place.quiet import quiet_stdout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.part_choice import Choices
    from planner.place.part_flow import Stock


class Programme:
    """min of what shapes cost, with as many parts of every size in shapes as in partitions.

    A part too many or too few costs what its price may be above or below the last best one: the
    duals, which are the prices, stay within reach of those.

    Args:
        widths: sizes of parts of each family with prices [1].
        groups: of each of these families [1].
        stock: the domains.
        scale_bytes: what is 1 to the solver [bytes].
    """

    def __init__(
        self, widths: Sequence[int], groups: Sequence[int], stock: Stock, scale_bytes: float
    ) -> None:
        import highspy  # noqa: PLC0415 - 0.3 s that most placements never need

        self.starts: list[int] = np.cumsum([0, *widths]).tolist()
        self.width, self.families = self.starts[-1], len(groups)
        self.stock, self.scale_bytes = stock, scale_bytes
        self.shapes: list[int] = []
        self.partitions = 0
        self.optimal = highspy.HighsModelStatus.kOptimal
        sides = stock.equations(()).sides, stock.limits(()).sides
        with quiet_stdout():
            self.solver = highspy.Highs()
            for option, value in (("output_flag", False), ("threads", 1), ("presolve", "off")):
                self.solver.setOptionValue(option, value)
        upper = np.concatenate([np.zeros(self.width), np.array(groups, dtype=float), *sides])
        lower = upper.copy()
        lower[len(upper) - len(sides[1]) :] = -highspy.kHighsInf
        none = np.zeros(0, dtype=np.int32)
        starts = np.zeros(len(upper), dtype=np.int32)
        self.solver.addRows(len(upper), lower, upper, 0, starts, none, np.zeros(0))
        self.highest = highspy.kHighsInf
        self.slack = np.arange(2 * self.width, dtype=np.int32)
        rows = self.slack % self.width
        self._add(
            np.zeros(len(rows)),
            [[int(row)] for row in rows],
            [[1.0]] * self.width + [[-1.0]] * self.width,
        )

    def _add(
        self,
        costs: NDArray[np.float64],
        rows: Sequence[Sequence[int]],
        factors: Sequence[Sequence[float]],
    ) -> None:
        """Add columns that may be 0 or more."""
        lengths = [len(column) for column in rows]
        self.solver.addCols(
            len(lengths),
            costs,
            np.zeros(len(lengths)),
            np.full(len(lengths), self.highest),
            sum(lengths),
            np.cumsum([0, *lengths[:-1]]).astype(np.int32),
            np.concatenate([np.array(column, dtype=np.int32) for column in rows]),
            np.concatenate([np.array(column, dtype=float) for column in factors]),
        )

    def take(self, choices: Choices) -> None:
        """Take up the shapes and partitions that are new."""
        rows, factors, costs = [], [], []
        columns = self.solver.getNumCol()
        new = choices.helds[len(self.shapes) :]
        if new:
            beside = np.vstack([self.stock.equations(new).rows, self.stock.limits(new).rows])
            for k, parts in enumerate(choices.parts[len(self.shapes) :]):
                column = np.concatenate([parts, np.zeros(self.families), beside[:, k]])
                rows.append(np.flatnonzero(column).tolist())
                factors.append(column[rows[-1]].tolist())
            costs = [c / self.scale_bytes for c in choices.cost_bytes[len(self.shapes) :]]
            self.shapes += range(columns, columns + len(new))
        for family, counts in zip(
            choices.families[self.partitions :], choices.partitions[self.partitions :], strict=True
        ):
            held = np.flatnonzero(counts)
            rows.append([*(held + self.starts[family]).tolist(), self.width + family])
            factors.append([*(-counts[held]).tolist(), 1.0])
            costs.append(0.0)
        self.partitions = len(choices.partitions)
        if rows:
            self._add(np.array(costs), rows, factors)

    def solve(
        self, centre_bytes: NDArray[np.float64], reach_bytes: NDArray[np.float64]
    ) -> NDArray[np.float64] | None:
        """Return the prices of parts, None if there is no choice [bytes].

        Args:
            centre_bytes: the best prices so far, shape [width].
            reach_bytes: how far from them the next may be, shape [width].
        """
        costs = np.concatenate([reach_bytes + centre_bytes, reach_bytes - centre_bytes])
        self.solver.changeColsCost(len(self.slack), self.slack, costs / self.scale_bytes)
        with quiet_stdout():
            self.solver.run()
        if self.solver.getModelStatus() != self.optimal:
            return None
        return np.array(self.solver.getSolution().row_dual[: self.width]) * self.scale_bytes

    @property
    def value_bytes(self) -> float:
        """What the last choice costs, with what parts too many and too few do [bytes]."""
        return float(self.solver.getObjectiveValue()) * self.scale_bytes

    def surplus(self) -> NDArray[np.float64]:
        """Return by how much each shape is dearer than the last prices say [*scale_bytes*].

        Shape [shapes].
        """
        duals = np.array(self.solver.getSolution().col_dual)
        surplus: NDArray[np.float64] = duals[self.shapes]
        return surplus
