"""Quick seats: the least cut by boxes within boxes, found in milliseconds, without a bound.

Layouts that are run otherwise on the same degrees have the same grid, and mostly the same boxes in
it. What a seating of a grid costs in units of each charge is therefore counted once, and only the
weights are new: a cut is Σ weight x units.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

from planner.layout import groups_along
from planner.place.expand import seats
from planner.place.fill import ways_to_fill
from planner.place.nested_fill import nested_fillings
from planner.place.question import ask, spread_units

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.place.question import Kind, Question
    from planner.traffic import Family

    Home = NDArray[np.int64]
    Way = tuple[tuple[int, ...], Kind, tuple[float, ...]]

_DIGEST_BYTES = 16  # by which a seating is known again: two of 2^64 are alike by chance


class QuickSeats:
    """Quick seats on one cluster, and the units that were counted so far.

    Args:
        fabric: the cluster.
    """

    def __init__(self, fabric: Fabric) -> None:
        self._fabric = fabric
        self._known: dict[tuple[tuple[int, ...], bytes], dict[Way, float]] = {}

    def of(self, layout: Layout, families: Sequence[Family]) -> tuple[tuple[int, ...], ...]:
        """Return a GPU for each rank: in the least cut by boxes within boxes, and in rank order.

        One where both are the same. The first is the least cut of all wherever equal supernodes
        hold whole boxes.
        """
        question = ask(layout, families, self._fabric.capacities("supernode"))
        homes = [
            home
            for held in ways_to_fill(question)
            for home in nested_fillings(question, held, self._cut_bytes)
        ]
        least = min(homes, key=lambda home: self._cut_bytes(question, home))
        found = (seats(least, self._fabric, "supernode"), tuple(range(layout.gpus)))
        return tuple(dict.fromkeys(found))

    def _cut_bytes(self, question: Question, home: Home) -> float:
        """Return what ``planner.place.question.cut_bytes`` does, each unit counted once [bytes]."""
        digest = blake2b(home.tobytes(), digest_size=_DIGEST_BYTES).digest()
        known = self._known.setdefault((question.sizes, digest), {})
        total_bytes = 0.0
        for charge in question.charges:
            way = (charge.axes, charge.kind, charge.units)
            if way not in known:
                groups = groups_along(question.sizes, charge.axes)
                known[way] = spread_units(charge.kind, home[groups], charge.units)
            total_bytes += charge.weight_bytes * known[way]
        return total_bytes
