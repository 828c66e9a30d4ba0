"""From the homes of ranks to GPUs when rules keep groups in inner domains, too."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.expand import seat_order, seats
from planner.place.rules_bound import boxes_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.place.rules_bound import BoundRules, KeptBoxes


def ruled_seats(
    home: NDArray[np.int64], rules: BoundRules, layout: Layout, fabric: Fabric, tier: str
) -> tuple[int, ...]:
    """Return the GPU of each rank, an index into ``fabric.gpus``.

    A box of an outer tier is made of whole boxes of the inner ones, so they are given out from the
    outside in: each domain hands its boxes in the order of their ranks to its inner domains, as
    many as each can hold.

    Args:
        home: domain of *tier* of each rank, keeping *rules*, shape [ranks].
        rules: what is kept.
        layout: whose ranks are seated.
        fabric: the cluster.
        tier: the placed tier.
    """
    if not rules.boxes or rules.boxes[0].tier == tier:
        return seats(home, fabric, tier)
    sizes = [axis.size for axis in layout.axes]
    order = seat_order(fabric, tier)
    outer = fabric.domain_index(tier)
    homes = home
    for number in range(len(rules.boxes) - 1, -1, -1):
        boxes = rules.boxes[number]
        if boxes.tier == tier:
            continue
        homes = _handed_in(homes, boxes, sizes, outer, order)
        outer = boxes.index
    return _seated(homes, outer, order)


def _handed_in(
    homes: NDArray[np.int64],
    boxes: KeptBoxes,
    sizes: list[int],
    outer: NDArray[np.int64],
    order: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Return the inner domain of each rank: boxes in order of their least rank, as they fit."""
    members = boxes_of(sizes, boxes.axes)
    _, first = np.unique(boxes.index[order], return_index=True)
    inner = boxes.index[order[np.sort(first)]]  # inner domains in the order their seats are given
    owner = np.empty(len(boxes.held), np.int64)
    owner[boxes.index] = outer
    box_home = homes[members[:, 0]]
    inside = np.empty(len(members), np.int64)
    for domain in np.unique(box_home).tolist():
        mine = np.flatnonzero(box_home == domain)
        offered = inner[owner[inner] == domain]
        inside[mine] = np.repeat(offered, boxes.held[offered])[: len(mine)]
    found = np.empty(prod(sizes), np.int64)
    found[members] = inside[:, None]
    return found


def _seated(
    homes: NDArray[np.int64], index: NDArray[np.int64], order: NDArray[np.int64]
) -> tuple[int, ...]:
    """Return the GPUs when each domain of *index* seats its ranks in ascending order."""
    gpus = order[np.argsort(index[order], kind="stable")]
    capacities = np.bincount(index)
    held = np.bincount(homes, minlength=len(capacities))
    behind = np.arange(len(homes)) - np.repeat(np.cumsum(held) - held, held)
    by_home = np.argsort(homes, kind="stable")
    seat_of = np.empty(len(homes), np.int64)
    seat_of[by_home] = gpus[np.repeat(np.cumsum(capacities) - capacities, held) + behind]
    return tuple(seat_of.tolist())
