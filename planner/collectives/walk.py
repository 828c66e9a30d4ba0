"""The parts of one algorithm's time, as ``walks.py`` and ``one_way.py`` fill them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Walk:
    """The parts of one algorithm's time; each broadcasts.

    Args:
        inside_start_s: sum of scale-up latencies on the critical chain [s].
        across_start_s: sum of NIC latencies on the critical chain [s].
        across_hops: messages over NICs on the critical chain, one after another [1].
        issue_s: starting messages one after another [s].
        inside_s: the busiest GPU's scale-up port is busy [s].
        across_s: the busiest NIC, or the busiest share of a cut, is busy [s].
        pipelined: the two busy times overlap.
        reduces_in_switch: needs a protocol that lets switches reduce.
        possible: the fabric and the spread allow it; time is infinite elsewhere.
        rail_bytes: what one rail carries in all: a chunk is no larger [bytes].
        fill_inside_s_per_byte: a tree's first chunk through the scale-up hops, for one byte of
            one rail's chunk [s/byte].
        fill_across_s_per_byte: the same through the NICs [s/byte].
    """

    inside_start_s: Any
    across_start_s: Any
    inside_s: Any
    across_s: Any
    across_hops: Any = 0.0
    issue_s: Any = 0.0
    pipelined: bool = False
    reduces_in_switch: bool = False
    possible: Any = True
    rail_bytes: Any = 0.0
    fill_inside_s_per_byte: Any = 0.0
    fill_across_s_per_byte: Any = 0.0
