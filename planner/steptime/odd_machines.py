"""Machines whose matrix units run at a clock of their own, among those that a chip is fitted on.

What large products reach alone is measured of each chip; in whole steps it is about as much on
every machine but for a few deviations. Where one table makes a chip look far slower, that is its
machine (power, heat), and no number for the next one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from planner.steptime.columns import PRECISIONS
from planner.steptime.rates import Efficiency, default_efficiency
from planner.steptime.runs import Run

CHIP_WIDTH = 0.08
"""Width in log of what sets a chip's matrix products in whole steps apart from its default [1].

Standard deviation of eleven fitted shares of six chips, in 16 and 8 bit.
"""

CLOCK_WIDTH = 0.25
"""Width in log of what sets an odd machine's matrix units apart from another's of its chip [1].

Large BF16 products alone reach 0.78 of a B200's peak on one machine (ML, MAMF) and 0.49 on another
(SimuMax, ``configs/system/b200_bf16_ceperm.json``): each 0.24 from their mean.
"""

_ODD_DEVIATIONS = 3.0


def odd_machines(efficiency: Efficiency, runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the sources whose machine makes a chip look other than it was measured to be.

    Of each precision whose fitted share is three deviations off what alone is measured of the
    chip, the source of most rows; none where that leaves no other source to fit the chip on.

    Args:
        efficiency: the chip's fit on *runs*.
        runs: rows of one chip.
    """
    accelerator = runs[0].accelerator
    usual = default_efficiency(accelerator).gemm_share
    found = set()
    for precision, share in efficiency.gemm_share.items():
        if precision not in usual or f"efficiency.{precision}" not in accelerator.sources:
            continue
        if abs(np.log(share / usual[precision])) > _ODD_DEVIATIONS * CHIP_WIDTH:
            rows = [r.source for r in runs if PRECISIONS[int(r.columns.precision)] == precision]
            found.add(max(sorted(set(rows)), key=rows.count))
    return tuple(sorted(found)) if len({run.source for run in runs}) > len(found) else ()
