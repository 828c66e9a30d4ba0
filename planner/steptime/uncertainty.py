"""How sure a predicted step is, and when two layouts cannot be told apart.

log(measured / predicted) is taken as normal with the fit's spread. Two layouts of one model on
one machine share most of their error: only the part that differs decides their order.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erf, exp, hypot, log, sqrt

SHARED_SHARE = 0.33
"""Part of the error's variance that layouts of one model on one cluster have in common [1].

Measured on the published steps, each predicted by a fit that had not seen its layout.
"""

MACHINE_SPREAD = 0.13
"""How far a table's mean is off, in log, by a fit that has not seen the table [1].

Root mean square over 37 means: 0.07 of the twelve pairs of table and accelerator of which another
table that is fitted on has the accelerator, too, and 0.15 of 25 tables of clusters, frameworks and
models that nothing is fitted on (``tests/accuracy``). So far one machine and its software differ
from those that were fitted on; all of its layouts have it in common, so that it says nothing of
which is the faster. The 25 are those whose rows in the interval are counted: set on all tables but
the one in question, the width holds 86 % of their 180 rows instead of 88 %.
"""

_NINETY_PERCENT = 1.645


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether the first of two layouts is the faster.

    Args:
        speedup_ratio: second step over first [1].
        faster_share: probability that the first is faster [1].
        told_apart: that probability, or its opposite, is at least 0.9.
    """

    speedup_ratio: float
    faster_share: float
    told_apart: bool


def interval_s(step_s: float, spread: float, machine_spread: float) -> tuple[float, float]:
    """Return the 90 % interval of a predicted step [s].

    step x exp(± 1.645 (spread^2 + machine_spread^2)^1/2).

    Args:
        step_s: the predicted step [s].
        spread: of the fit, between layouts of machines that it has seen, in log [1].
        machine_spread: between machines; 0 for the very one that was fitted on [1].

    >>> [round(v, 3) for v in interval_s(10.0, 0.1, 0.0)]
    [8.483, 11.788]
    """
    factor = exp(_NINETY_PERCENT * hypot(spread, machine_spread))
    return step_s / factor, step_s * factor


def faster(
    first_s: float, second_s: float, spread: float, shared_share: float = SHARED_SHARE
) -> Verdict:
    """Return whether the layout of *first_s* beats that of *second_s*, and how surely.

    z = ln(second / first) / (spread x sqrt(2 (1 - shared))).

    Args:
        first_s: predicted step of the first [s].
        second_s: of the second [s].
        spread: of the fit, in log [1].
        shared_share: part of the error's variance both have in common, 0 to 1 [1].

    >>> faster(10.0, 10.2, 0.1).told_apart, faster(10.0, 13.0, 0.1).told_apart
    (False, True)
    """
    width = spread * sqrt(2.0 * (1.0 - shared_share))
    z = log(second_s / first_s) / width if width > 0 else float("inf")
    share = 0.5 * (1.0 + erf(z / sqrt(2.0)))
    return Verdict(
        speedup_ratio=second_s / first_s,
        faster_share=share,
        told_apart=max(share, 1.0 - share) >= 0.9,
    )
