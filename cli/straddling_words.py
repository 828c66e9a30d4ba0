"""Which groups of a seating lie across supernodes while others of the same degree do not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.words import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.fabric import Fabric
    from planner.layout import Layout

_DEGREES = ("tp", "cp", "ep", "etp", "dp")
"""Pipelines are left out: they are meant to cross, and by stages, not by groups."""


def straddling_words(layout: Layout, rank_to_gpu: Sequence[int], fabric: Fabric) -> str:
    """Return how many groups of a degree straddle supernodes, of degrees where only some do.

    A step takes the slowest group of each degree for all of them, so a few are enough.

    >>> from planner.layout import Layout
    >>> from topologies.fabric_catalogue import generic_cluster
    >>> straddling_words(Layout(tp=4, dp=6, global_batch=6), range(24), generic_cluster(6, 24))[:46]
    '2 of 6 TP groups over up to 2 supernodes; each'
    """
    homes = fabric.domain_index("supernode")[np.asarray(rank_to_gpu, dtype=np.int64)]
    sizes = [axis.size for axis in layout.axes]
    told = []
    for digit in _DEGREES:
        members = np.sort(homes[groups_along(sizes, layout.axes_of(digit))], axis=1)
        touched = 1 + np.count_nonzero(np.diff(members, axis=1), axis=1)
        split = int(np.count_nonzero(touched > 1))
        if 0 < split < len(touched):
            told.append(
                f"{split} of {counted(len(touched), f'{digit.upper()} group')} over up to "
                f"{int(touched.max())} supernodes"
            )
    if not told:
        return ""
    return f"{'; '.join(told)}; each stage is timed with the slowest group of every degree"
