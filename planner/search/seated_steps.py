"""Steps of layouts with every rank in a seat, on one cluster, each timed once.

Quick seats take milliseconds to find and have no bound: they tell which layouts to place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from planner.collectives.links import links_of
from planner.place.expand import seats
from planner.place.fill import ways_to_fill
from planner.place.nested_fill import nested_fillings
from planner.place.question import ask, cut_bytes
from planner.search.changed import AS_IT_IS, Change, changed_fabric, changed_wiring
from planner.search.placed import placed_spreads
from planner.steptime.columns import columns_of
from planner.steptime.shared_links import Seating, seated_step_time, seated_wiring
from planner.steptime.step import step_seconds
from planner.traffic import step_families

if TYPE_CHECKING:
    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.model import ModelSpec
    from planner.steptime.rates import Efficiency
    from planner.steptime.step import Step

    Seats = tuple[int, ...]

SEATED = 4
"""Layouts of one cluster that are seated at most before one of them is taken."""
_SAME = 1e-9  # steps so close are told as one
Named = TypeVar("Named")


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
        self._quick: dict[tuple[ModelSpec, Layout], tuple[Seats, ...]] = {}

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
                fabric=self._under(change), families=step_families(model, layout),
                rank_to_gpu=seated, spreads=placed_spreads(layout, seated, self.fabric),
                wiring=None if wiring is None
                else changed_wiring(wiring, self.fabric.nic, change),
            )  # fmt: skip
            self._steps[key] = seated_step_time(model, layout, seating, self.efficiency)
        return self._steps[key]

    def quick_s(self, model: ModelSpec, layout: Layout, change: Change = AS_IT_IS) -> float:
        """Return the step in quick seats: those that are faster before links are shared [s]."""
        fabric = self._under(change)
        every = self._quick_seats(model, layout)
        spreads = [placed_spreads(layout, seated, fabric) for seated in every]

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

    def _under(self, change: Change) -> Fabric:
        if change not in self._fabrics:
            self._fabrics[change] = changed_fabric(self.fabric, change)
        return self._fabrics[change]

    def _quick_seats(self, model: ModelSpec, layout: Layout) -> tuple[Seats, ...]:
        """Return the least cut by boxes within boxes, and rank order.

        The first is the least cut of all wherever equal supernodes hold whole boxes.
        """
        if (model, layout) not in self._quick:
            families = step_families(model, layout)
            question = ask(layout, families, self.fabric.capacities("supernode"))
            homes = [
                home for held in ways_to_fill(question) for home in nested_fillings(question, held)
            ]
            least = min(homes, key=lambda home: cut_bytes(question, home))
            found = (seats(least, self.fabric, "supernode"), tuple(range(layout.gpus)))
            self._quick[model, layout] = tuple(dict.fromkeys(found))
        return self._quick[model, layout]


def until_kept(
    promised_s: Iterable[tuple[Named, float]], seat_s: Callable[[Named], float]
) -> dict[Named, float]:
    """Return the first layouts and their seated steps, up to one that the next cannot beat [s].

    Args:
        promised_s: layouts with their steps in closed form, fastest first [s].
        seat_s: what one of them takes in its seats [s].

    >>> until_kept([("a", 1.0), ("b", 1.2), ("c", 1.3)], {"a": 1.4, "b": 1.2}.__getitem__)
    {'a': 1.4, 'b': 1.2}
    """
    found: dict[Named, float] = {}
    for one, least_s in promised_s:
        if len(found) == SEATED:
            break
        if found and min(found.values()) <= least_s * (1.0 + _SAME):
            break
        found[one] = seat_s(one)
    return found
