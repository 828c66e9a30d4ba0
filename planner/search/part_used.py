"""Using a part of every supernode: often faster than filling all but the last one.

1,024 GPUs fill 14 supernodes of 72 and 16 seats of another: groups of 64 straddle their borders. In
64 seats of each of 16 none does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from planner.errors import InfeasibleError, LayoutError, SpecError
from planner.search.defaults import AS_GOOD_SHARE, best_layout
from planner.search.seated_steps import SeatedSteps
from planner.search.space import divisors

if TYPE_CHECKING:
    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.search.defaults import Job

_LEAST_SHARE = 0.75
"""Of a supernode, what must be used of it for the part to be told [1]: who would leave more than a
quarter of a cluster idle buys smaller supernodes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartUsed:
    """A faster step with as many GPUs of more supernodes.

    Args:
        of_each: GPUs that are used of each supernode [1].
        supernode: GPUs that each has [1].
        supernodes: that are needed [1].
        layout: the fastest usual one there, before seating.
        step_s: its step in quick seats [s].
    """

    of_each: int
    supernode: int
    supernodes: int
    layout: Layout
    step_s: float

    @property
    def gpus(self) -> int:
        """GPUs of the whole cluster [1]."""
        return self.supernode * self.supernodes


def even_part(capacities: tuple[int, ...], gpus: int) -> int:
    """Return the most GPUs of each supernode that *gpus* can be spread over evenly; 0 for none.

    None where the supernodes are full or have seats to spare, or where less than three quarters of
    each would be used.

    >>> even_part((72,) * 14 + (16,), 1024), even_part((64,) * 16, 1024)
    (64, 0)
    >>> even_part((384, 384, 256), 1024), even_part((72,) * 16, 1024)
    (0, 0)
    """
    most = max(capacities)
    if len(set(capacities)) == 1 or sum(capacities) != gpus:
        return 0
    return max((n for n in divisors(gpus) if _LEAST_SHARE * most <= n < most), default=0)


def faster_part(
    job: Job, step_s: float, cluster_of: Callable[[int, int], Fabric]
) -> PartUsed | None:
    """Return what using a part of each supernode would bring, where it is shorter than *step_s*.

    By more than layouts are taken for alike. The layout is chosen anew. None where there is no such
    cluster: parts of it are dead, a file of another tool has no more, its network joins no more.

    Args:
        job: what is trained, on a cluster whose supernodes are not all full.
        step_s: its step there [s].
        cluster_of: from how many supernodes, and how many GPUs of each are used, to that cluster.
    """
    capacities = job.fabric.capacities("supernode")
    part = even_part(capacities, job.gpus)
    if not part:
        return None
    supernodes = job.gpus // part
    try:
        fabric = cluster_of(supernodes, part)
        if fabric.capacities("supernode") != (part,) * supernodes:
            return None
        choice = best_layout(replace(job, fabric=fabric))
    except (SpecError, LayoutError, InfeasibleError):
        return None
    if choice.step_s * (1.0 + AS_GOOD_SHARE) >= step_s:
        return None
    seated_s = SeatedSteps(fabric, job.efficiency).quick_s(job.model, choice.layout)
    if seated_s * (1.0 + AS_GOOD_SHARE) >= step_s:
        return None
    return PartUsed(of_each=part, supernode=max(capacities), supernodes=supernodes,
                    layout=choice.layout, step_s=seated_s)  # fmt: skip
