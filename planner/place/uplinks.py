"""Domains that can hold as much may change places: where the links differ, the busy get the best.

The bytes that cross stay the same, so the proof does too; a domain whose NIC is dead is left idle
if another can be, and else holds what sends least.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.place.borders import sent_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.place.question import Question


def on_best_uplinks(
    question: Question, home: NDArray[np.int64], uplink_bytes_per_s: Sequence[float]
) -> NDArray[np.int64]:
    """Return *home* with domains of equal capacity exchanged, shape [cells].

    After it no domain sends more over a slower link than another of its capacity over a faster one.

    Args:
        question: the grid, its charges, the domains' capacities.
        home: domain of each cell, shape [cells].
        uplink_bytes_per_s: of every domain over its border [bytes/s].
    """
    rates = np.array(uplink_bytes_per_s)
    holds = np.arange(len(rates))  # whose cells each domain takes
    sent = sent_bytes(question, home)
    used = np.bincount(home, minlength=len(rates)) > 0
    capacities = np.array(question.capacities)
    for capacity in np.unique(capacities):
        alike = np.flatnonzero(capacities == capacity)
        if np.ptp(rates[alike]) == 0:
            continue
        for slow in alike[np.lexsort([-sent[alike], rates[alike]])].tolist():
            faster = alike[rates[alike] > rates[slow]]
            if not len(faster):
                break
            load = list(zip(used[holds].tolist(), sent[holds].tolist(), strict=True))
            fast = min(faster.tolist(), key=lambda s: (load[s], s))
            if load[fast] < load[slow]:
                holds[[slow, fast]] = holds[[fast, slow]]
    moved_to = np.argsort(holds, kind="stable")
    return moved_to[home]
