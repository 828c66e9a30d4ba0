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

MACHINE_SPREAD = 0.18
"""How far a table's mean is off, in log, by a fit that has not seen the table [1].

Root mean square over 46 means: 0.07 of the twelve pairs of table and accelerator of which another
table that is fitted on has the accelerator, too, and 0.20 of 34 of clusters, frameworks and models
that nothing is fitted on (``tests/accuracy``). So far one machine and its software differ
from those that were fitted on; all of its layouts have it in common, so that it says nothing of
which is the faster. The 34 are those whose rows in the interval are counted: set on all tables but
the one in question, the width holds as many of their 199 rows, 89 %. With the 0.13 of the 41 means
known before, it held 6 of the 19 rows that were gathered next. Four of the 34 are GH200's, as on
an H100: that chip has a fit of its own since.
"""

LAYOUT_SPREAD = 0.12
"""What layouts of one machine are off by, in log, before a row of it is known [1].

Root mean square of the spreads of six accelerators that ship with one, each of rows whose layout
the fit had not seen (0.07 to 0.23). The seventh, GH200, came later: 0.11.
"""

LAYOUT_SPREAD_ROWS = 4.0
"""How many rows that is worth [1]: trigamma(n / 2) = 0.75, the variance of ln(spread^2) over the
six, gives 3.6."""

FEW_ROWS = 10
"""Below it more than 4 / 14 of that variance is other machines', not the rows' own [1]."""

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


def few_rows_spread(squares: float, rows: int, told: float) -> float:
    """Return the spread to take a fit of few rows of one machine to have, for its next layout [1].

    A scaled inverse chi-squared of the machine's own variance, from what other machines' are:

        s^2 = (n0 s0^2 + squares) / (n0 + rows - told),  spread = s sqrt(1 + 1 / rows) t / 1.645

    with t the 95 % point of Student's distribution of n0 + rows - told degrees of freedom, so that
    1.645 of it hold nine cases of ten. Of 2 to 12 rows drawn from published tables, the other rows
    of the same table and accelerator lay in it 89 to 95 times of 100 (``docs/steps.md``).

    Args:
        squares: sum of the squared log residuals of the rows [1].
        rows: how many there are [1].
        told: numbers of the fit that the rows themselves tell, 0 where residuals are of rows that
            it has not seen [1].

    >>> [round(few_rows_spread(0.0, n, 0.0), 3) for n in (3, 5, 12, 100)]
    [0.121, 0.098, 0.066, 0.024]
    >>> round(few_rows_spread(100 * 0.2**2, 100, 0.0), 2)
    0.2
    """
    freedom = LAYOUT_SPREAD_ROWS + max(rows - told, 0.0)
    variance = (LAYOUT_SPREAD_ROWS * LAYOUT_SPREAD**2 + squares) / freedom
    return sqrt(variance * (1.0 + 1.0 / max(rows, 1))) * _wider_tail(freedom)


def _wider_tail(freedom: float) -> float:
    """Return how much further out the 95 % point of Student's distribution is than the normal's.

    The first three terms of its expansion in 1 / *freedom* (Abramowitz and Stegun 26.7.5), right
    to 0.2 % from 4 degrees of freedom on: 2.132 there, against 1.645.

    >>> round(1.645 * _wider_tail(4.0), 2), round(1.645 * _wider_tail(10.0), 2)
    (2.13, 1.81)
    """
    z = _NINETY_PERCENT
    terms = (
        (z**2 + 1.0) / 4.0,
        (5.0 * z**4 + 16.0 * z**2 + 3.0) / 96.0,
        (3.0 * z**6 + 19.0 * z**4 + 17.0 * z**2 - 15.0) / 384.0,
    )
    return 1.0 + sum(term / freedom**power for power, term in enumerate(terms, start=1))


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
