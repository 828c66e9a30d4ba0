"""Steps of layouts with every rank in a seat, on one cluster, each timed once.

Quick seats take milliseconds to find and have no bound: they tell which layouts to place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.collectives.links import links_of
from planner.search.changed import AS_IT_IS, Change, changed_fabric, changed_wiring
from planner.search.placed import placed_spreads
from planner.search.quick_seats import QuickSeats
from planner.steptime.columns import columns_of
from planner.steptime.shared_links import Seating, seated_step_time, seated_wiring
from planner.steptime.step import step_seconds
from planner.traffic import step_families

if TYPE_CHECKING:
    from planner.axes import Axis
    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.model import ModelSpec
    from planner.steptime.rates import Efficiency
    from planner.steptime.spread import Spreads
    from planner.steptime.step import Step
    from planner.traffic import Family

    Seats = tuple[int, ...]


class SeatedSteps:
    """One cluster, and the steps of layouts that were seated on it so far.

    Args:
        fabric: the cluster as it is.
        efficiency: what was fitted on its accelerator, where anything was.
    """

    def __init__(self, fabric: Fabric, efficiency: Efficiency | None) -> None:
        self.fabric, self.efficiency = fabric, efficiency
        self._fabrics = {AS_IT_IS: fabric}
        self._steps: dict[tuple[ModelSpec, Layout, Seats, Change], Step] = {}
        self._quick = QuickSeats(fabric)
        self._families: dict[tuple[ModelSpec, Layout], tuple[Family, ...]] = {}
        self._seats: dict[tuple[ModelSpec, Layout], tuple[Seats, ...]] = {}
        self._spreads: dict[tuple[tuple[Axis, ...], int, Seats], Spreads] = {}
        self._of_grids: dict[tuple[ModelSpec, tuple[Axis, ...], int], Spreads] = {}

    def on(
        self, model: ModelSpec, layout: Layout, seated: Seats, change: Change = AS_IT_IS
    ) -> Step:
        """Return the step with rank r on GPU ``seated[r]``, links shared; ``seq`` is the layout's.

        Args:
            model: what is trained.
            layout: its ranks are seated.
            seated: a GPU for each.
            change: of the network.
        """
        key = (model, layout, seated, change)
        if key not in self._steps:
            wiring = seated_wiring(self.fabric, layout, self.efficiency)
            seating = Seating(
                fabric=self._under(change), families=self._families_of(model, layout),
                rank_to_gpu=seated, spreads=self._spreads_of(layout, seated),
                wiring=None if wiring is None
                else changed_wiring(wiring, self.fabric.nic, change),
            )  # fmt: skip
            self._steps[key] = seated_step_time(model, layout, seating, self.efficiency)
        return self._steps[key]

    def quick_s(self, model: ModelSpec, layout: Layout, change: Change = AS_IT_IS) -> float:
        """Return the step in quick seats: those that are faster before links are shared [s]."""
        fabric = self._under(change)
        every = self._quick_seats(model, layout)
        spreads = self.quick_spreads(model, layout)

        def alone_s(at: int) -> float:
            step = step_seconds(
                model, columns_of(layout), accelerator=fabric.accelerator, links=links_of(fabric),
                spreads=spreads[at], efficiency=self.efficiency,
            )  # fmt: skip
            return float(np.asarray(step.total_s))

        best = 0 if all(one == spreads[0] for one in spreads) else min(
            range(len(every)), key=alone_s
        )  # fmt: skip
        return float(self.on(model, layout, every[best], change).total_s)

    def quick_spreads(self, model: ModelSpec, layout: Layout) -> list[Spreads]:
        """Return how the groups sit in the layout's quick seats, the least cut first."""
        return [self._spreads_of(layout, one) for one in self._quick_seats(model, layout)]

    def knows_grid(self, model: ModelSpec, layout: Layout) -> bool:
        """Return whether the layout's grid was seated before."""
        return (model, layout.axes, layout.dp_shard) in self._of_grids

    def grid_spreads(self, model: ModelSpec, layout: Layout) -> Spreads:
        """Return how the groups of the first layout of its grid sit in the least cut."""
        grid = (model, layout.axes, layout.dp_shard)
        if grid not in self._of_grids:
            self._of_grids[grid] = self._spreads_of(layout, self._quick_seats(model, layout)[0])
        return self._of_grids[grid]

    def _quick_seats(self, model: ModelSpec, layout: Layout) -> tuple[Seats, ...]:
        if (model, layout) not in self._seats:
            self._seats[model, layout] = self._quick.of(layout, self._families_of(model, layout))
        return self._seats[model, layout]

    def _families_of(self, model: ModelSpec, layout: Layout) -> tuple[Family, ...]:
        if (model, layout) not in self._families:
            self._families[model, layout] = step_families(model, layout)
        return self._families[model, layout]

    def _spreads_of(self, layout: Layout, seated: Seats) -> Spreads:
        """Return how the groups sit, which is the same however the layout is run."""
        key = (layout.axes, layout.dp_shard, seated)
        if key not in self._spreads:
            self._spreads[key] = placed_spreads(layout, seated, self.fabric)
        return self._spreads[key]

    def _under(self, change: Change) -> Fabric:
        if change not in self._fabrics:
            self._fabrics[change] = changed_fabric(self.fabric, change)
        return self._fabrics[change]
