"""What stands for the efficiencies of an accelerator that nothing but its data sheet is known of.

No guess of a user's file enters a fit: it starts from these numbers, and from what is measured of
an accelerator of the catalogue's name.
"""

from __future__ import annotations

from functools import cache
from statistics import median
from types import MappingProxyType

from planner.fabric import Accelerator
from topologies.fabric_accelerators import PRECISIONS, Efficiency, filed_efficiencies


@cache
def usual_efficiency() -> Efficiency:
    """Return the share of each peak, and of the memory bandwidth, that is usual; all assumed.

    The median of the accelerators on file that were measured in a precision, of all that have it
    where none was, and that of BF16 where none has it.

    >>> usual_efficiency().compute_share["bf16"], usual_efficiency().memory_share
    (0.785, 0.85)
    """
    compute = {precision: _middle(precision) for precision in PRECISIONS}
    memory = median(one.memory_share for one in filed_efficiencies().values())
    usual = "not stated: {:.3g}, the median of the catalogue's accelerators"
    return Efficiency(
        compute_share=MappingProxyType(compute),
        memory_share=memory,
        sources=MappingProxyType({}),
        assumed=MappingProxyType(
            {name: usual.format(share) for name, share in {**compute, "memory": memory}.items()}
        ),
    )


def _middle(precision: str) -> float:
    filed = [one for one in filed_efficiencies().values() if precision in one.compute_share]
    measured = [one for one in filed if precision in one.sources]
    if not filed:
        return _middle("bf16")
    return median(one.compute_share[precision] for one in measured or filed)


def with_usual_efficiency(accelerator: Accelerator) -> Accelerator:
    """Return *accelerator* with the efficiencies of the catalogue in place of its own.

    Those on file under its name, and what is usual where there are none.
    """
    filed = filed_efficiencies().get(accelerator.name)
    usual = usual_efficiency()
    return (filed.completed(usual) if filed else usual).of(accelerator)
