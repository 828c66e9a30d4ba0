"""How long one-forward-one-backward takes on stages that differ: its longest path, in closed form.

A path through the passes is a walk over the p stages: down with forwards, up with backwards. It
may turn back at a stage i and again at a stage q below it, as often as it likes; such a bounce over
n = q - i + 1 stages costs their passes and 2 (n - 1) hops, and advances n micro-batches, because a
stage keeps as many in flight as there are stages behind it. Before its first backward a stage may
also run forwards alone, and after its last forward backwards alone, p - i - 1 of them at the most.
So of m micro-batches one runs down and up the whole pipe, and the others go where they cost most:

- all at the last stage;
- all at the stage before it, where the first way down and the last way up may spare the last stage
  for one more forward, or backward, at the stage that has the longest;
- all at the first, where there are more micro-batches than stages: what it waits for on the first
  way down and the last way up is then paid twice;
- with hops, in bounces over the whole pipe, or without the ends that cost less than they advance.

The longest of these is the step. Without hops it is that of the explicit graph, with any ends as
long as no pass of the first stage takes more than both of a middle one; with hops of up to a tenth
of a stage's passes it was at most 2.1 % shorter than the graph, never longer (12,000 at random, 2
to 9 stages, ends of 0.5 to 1.6 middles). The stages between the ends are taken as alike: the
fullest is the one that waits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.steptime.columns import Values, larger, select, smaller


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Seconds of one micro-batch's passes on the first, the fullest middle and the last stage.

    Args:
        first_forward_s, middle_forward_s: forward [s].
        first_backward_s, middle_backward_s: backward [s].
        last_s: both on the last stage [s].
        all_s: both on all stages [s].
        stages: in the pipeline, two at least; with two the middle's are the first's [1].
        micro_batches: of one replica [1].
    """

    first_forward_s: Values
    middle_forward_s: Values
    first_backward_s: Values
    middle_backward_s: Values
    last_s: Values
    all_s: Values
    stages: Values
    micro_batches: Values


def longest_1f1b_s(work: Passes, hop_s: Values) -> Values:
    """Return the seconds from the first forward to the last backward.

    Two stages of 1 + 2 s and 2 + 4 s, three micro-batches: 3 s of the first once, 6 s of the last
    three times.

    >>> longest_1f1b_s(Passes(first_forward_s=1.0, middle_forward_s=1.0, first_backward_s=2.0,
    ...     middle_backward_s=2.0, last_s=6.0, all_s=9.0, stages=2.0, micro_batches=3.0), 0.0)
    21.0
    """
    p, m = work.stages, work.micro_batches
    middle = work.middle_forward_s + work.middle_backward_s
    once = work.all_s + 2.0 * (p - 1.0) * hop_s
    last = work.last_s + 2.0 * hop_s
    forward = larger(work.first_forward_s, work.middle_forward_s)
    backward = larger(work.first_backward_s, work.middle_backward_s)
    at_last = once + (m - 1.0) * work.last_s
    several = larger(forward, last) + larger(backward, last) + (m - 2.0) * middle - last
    two = larger(larger(forward, backward), forward + backward - last)
    before_it = once + select(m > 2, several, select(m > 1, two, 0.0))
    longest = larger(larger(at_last, before_it), _at_first_s(work, once, last))
    return larger(longest, _bouncing_s(work, once, last, hop_s)) if np.any(hop_s) else longest


def _at_first_s(work: Passes, once: Values, last: Values) -> Values:
    """Return the path that stays at the first stage: 0 where there are too few micro-batches.

    Before its first backward it runs p forwards, or one and waits for what is below it; and the
    same behind its last forward.
    """
    p, m = work.stages, work.micro_batches
    first = work.first_forward_s + work.first_backward_s
    between = once - first - last
    forward = larger(work.first_forward_s, work.middle_forward_s)
    backward = larger(work.first_backward_s, work.middle_backward_s)
    down = larger((p - 1.0) * work.first_forward_s, between + larger(forward, last))
    up = larger((p - 1.0) * work.first_backward_s, between + larger(backward, last))
    return select(m > p, (m - p + 1.0) * first + down + up, 0.0)


def _bouncing_s(work: Passes, once: Values, last: Values, hop_s: Values) -> Values:
    """Return the path that bounces between the stages.

    An end is left out where a bounce takes longer for each micro-batch without it; what no whole
    bounce advances is a shorter one. Without the last stage, one bounce more ends there.
    """
    p, m = work.stages, work.micro_batches
    first = work.first_forward_s + work.first_backward_s
    middle = work.middle_forward_s + work.middle_backward_s
    around = 2.0 * hop_s
    low, high = smaller(first, work.last_s), larger(first, work.last_s)
    no_low = (p * (low + around) < once) * 1.0
    no_high = no_low * ((p - 1.0) * (high + around) < once - low - around)
    no_first = select(first <= work.last_s, no_low, no_high)
    no_last = select(first <= work.last_s, no_high, no_low) * (m > p + 1.0)
    each = p - no_first - no_last
    bounce_s = once - no_first * (first + around) - no_last * last
    rest = m - 1.0 - no_last * (each + 1.0)  # each is p at most
    bounces = rest // each
    left = rest - bounces * each
    shorter = left * middle + larger(0.0, left - 1.0) * around
    shorter = shorter + (1.0 - no_last) * (left > 0) * (work.last_s - middle)
    return once + bounces * bounce_s + no_last * (bounce_s + last) + shorter
