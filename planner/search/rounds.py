"""How often a step takes at least the seconds of one micro-batch on all stages: with a proof.

With S the seconds of one micro-batch on all p stages, m micro-batches and v chunks a stage,

    pipeline >= m S / p + f (1 - 1 / p) S / v,    f = 1/2 for 1F1B and GPipe, else 0,

whatever the stages' shares of S. It is of the closed forms of ``steptime.schedule``, not of a
schedule: what they leave out is left out here.

*Stages.* Let a, b, c be both passes on the first stage, on the fullest and on the last. Counting
a leading dense layer as the cheaper kind of layer, the mean u of the p - 2 stages between the ends
is at most b, and S = a + c + (p - 2) u. (All below grows with a, b, c and u: counting less of
them only lowers it.) Let N = m v.

*Busiest stage.* No closed form is below m times the busiest stage, which has at least S / p: f = 0.

*GPipe.* S + (m - 1) times the longest forward and the longest backward, which are together at
least the busiest stage: m S / p + (1 - 1 / p) S.

*1F1B, v = 1, p > 2.* ``longest_1f1b`` is the largest of, among others,

    (1) S + (m - 1) c                                               at the last stage
    (2) S + (m - 2) b + c  and  S + (m - 1) b - c   for m > 2       before it; mean (m - 3/2) b
    (2') S + (m - 2) b + max(a, b) - c              for m > 2       the way down and up spared
    (3) m a  and  2 S + (m - p - 1) a               for m > p       at the first

- m > p: a p-th of (1), p - 2 of the mean of (2), and one of (3), added up, are p times the claim if
  (p - 1) S / 2 >= c + 3/2 (p - 2) u. So it is for p >= 4, and for p = 3 with a >= u / 2. Else the
  other of (3) adds 2 S - 4 a: 2 c + 3/2 u >= a is enough, and holds.
- m <= p: the claim is T - S >= k S with k = (2 m - p - 1) / (2 p) < 1/2. Nothing is to be shown for
  k <= 0; else 2 m >= p + 2 and m > 2. The mean of (2) and (2') is S + (m - 2) b + max(a, b) / 2.
  2 k of that and 1 - 2 k of (1) have k a at least, 2 k (m - 2) b >= k (p - 2) u, and
  (1 - 2 k)(m - 1) c >= k c, since 2 (2 p + 1 - 2 m)(m - 1) >= 2 (m - 1) >= 2 m - p - 1.

*1F1B, v = 1, p = 2.* Here b = a. m = 1 is S. m = 2 is S + max(c, a - c) at least; 3/4 and 1/4 of
the two are above S / 4. m > 2: (1) and the mean of (2) are together m S + c + a / 2, which is
twice the claim.

*Interleaved, m = p.* S + (N - 1) times the longest forward and backward, over v, as GPipe.

*Interleaved, m >= 2 p.* With A = (v - 1) p and x, the longest forward and backward, at least a, b
and c, v times the closed form is the largest of, among others,

    (4) S + (N - 1 - A) c + A x >= S + (N - 1) c
    (5) S + (N - 3 - A) b + A x + c >= S + (N - 3) b + c  and  S + (N - 1) b - c;  mean (N - 2) b
    (6) N a  and  2 S + (N - A - 2 p) a + A x >= 2 S + (N - 2 p) a

- p > 2: (4), p - 2 of the mean of (5) and the first of (6), added up, are p times the claim if
  (p - 1) S / 2 >= c + 2 (p - 2) u: so it is for p >= 5. With the other of (6) it is if
  (p + 3) S / 2 >= c + 2 (p - 2) u + 2 p a. For p = 4 one of the two holds: the second fails only
  where 9 a > 5 c + 6 u, and then 3 a + c >= 2 u, which is the first. For p = 3 the first is
  a >= u and the second 2 c + u >= 3 a: both fail only where a >= c, and then S + (N - 1) b - c
  in the place of the mean is enough.
- p = 2, b = a: (4) and, where c >= a, the mean of (5), else S + (N - 1) a - c, are twice the claim.

A linear programme over all shares finds the same and no counterexample: the test of this module.
It also says that 1/2 cannot be raised for all: two stages, two chunks and many micro-batches come
as close to it as one likes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.steptime.columns import SCHEDULES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

FILL_SHARE = 0.5
"""f of the module [1]."""
_THAT_FILL = [SCHEDULES.index(one) for one in ("1f1b", "gpipe")]


def least_rounds(pp: Ints, vpp: Ints, micro_batches: Ints, schedule: Ints) -> Floats:
    """Return how often a pipeline takes a micro-batch's seconds on all stages, at least [1].

    Args:
        pp: stages [1].
        vpp: chunks of a stage [1].
        micro_batches: of one replica; interleaved a multiple of the stages [1].
        schedule: codes of ``SCHEDULES``.

    >>> least_rounds(np.array([4]), np.array([1]), np.array([8]), np.array([0])).tolist()
    [2.375]
    """
    fills = np.isin(schedule, _THAT_FILL) * FILL_SHARE
    found: Floats = micro_batches / pp + fills * (1.0 - 1.0 / pp) / vpp
    return found
