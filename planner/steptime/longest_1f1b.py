"""How long 1F1B takes on stages that differ, interleaved or not: its longest path, in closed form.

A path through the passes is a walk over the p stages: down with forwards, up with backwards. It
may turn back at a stage i and again at a stage q below it, as often as it likes. Such a bounce over
n = q - i + 1 stages costs their passes and 2 (n - 1) hops, and advances n micro-batches, because a
stage runs one forward more ahead than the next (interleaved two, so that it advances 2 n - 1
passes). Before its first backward a stage runs nothing but forwards, and after its last forward
nothing but backwards: w of them on the last stage, 0 or interleaved (v - 1) p, one or two more on
each stage before it. So one way leads down and up the whole pipe, the passes alone are run where
they are longest, and all others where they cost most:

- at the last stage;
- at the stage before it, where the way down and the way up may spare the last stage for one or two
  more passes alone;
- at the first, where there are enough micro-batches: what it waits for on the first way down and
  the last way up is then paid twice;
- with hops, in bounces over the whole pipe, or without the ends that cost less than they advance.

The longest of these is the step; interleaved with as many micro-batches as stages, all forwards
come before all backwards. It is never longer than that of the explicit graph. Without hops 1F1B is
the graph's, with any ends as long as no pass of the first stage takes more than both of a middle
one; interleaved it is, too, where the first stage is no busier than a middle one and backwards are
to forwards alike on all stages, else up to 3 % shorter (first stages of up to 1.45 middles). With
hops of up to a tenth of a stage's passes 1F1B was at most 2.1 % shorter (12,000 at random, 2 to 9
stages, ends of 0.5 to 1.6 middles). The stages between the ends are taken as alike: the fullest is
the one that waits.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.steptime.columns import Values, anywhere, larger, select


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Seconds of one micro-batch's passes, all chunks of a stage together.

    Args:
        first_forward_s, first_backward_s: on the first stage [s].
        middle_forward_s, middle_backward_s: on the fullest between the ends; with two stages on
            the first [s].
        last_forward_s, last_backward_s: on the last stage [s].
        all_s: both on all stages [s].
        stages: in the pipeline, two at least [1].
        chunks: of a stage; more than one are interleaved [1].
        micro_batches: of one replica; interleaved a multiple of the stages [1].
    """

    first_forward_s: Values
    first_backward_s: Values
    middle_forward_s: Values
    middle_backward_s: Values
    last_forward_s: Values
    last_backward_s: Values
    all_s: Values
    stages: Values
    chunks: Values
    micro_batches: Values

    @property
    def first_s(self) -> Values:
        """Both passes on the first stage [s]."""
        return self.first_forward_s + self.first_backward_s

    @property
    def middle_s(self) -> Values:
        """Both passes on the fullest middle stage [s]."""
        return self.middle_forward_s + self.middle_backward_s

    @property
    def last_s(self) -> Values:
        """Both passes on the last stage [s]."""
        return self.last_forward_s + self.last_backward_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Longest:
    """Seconds from the first forward to the last backward, if hops took no time and as they do."""

    alone_s: Values
    total_s: Values


def longest_1f1b(work: Passes, hop_s: Values) -> Longest:
    """Return the longest path.

    Args:
        work: the passes.
        hop_s: from one stage to the next; not read where chunks are interleaved [s].

    Two stages of 1 + 2 s and 2 + 4 s, three micro-batches: 3 s of the first once, 6 s of the last
    three times; a hop there and back.

    >>> found = longest_1f1b(Passes(first_forward_s=1.0, first_backward_s=2.0,
    ...     middle_forward_s=1.0, middle_backward_s=2.0, last_forward_s=2.0, last_backward_s=4.0,
    ...     all_s=9.0, stages=2.0, chunks=1.0, micro_batches=3.0), 0.5)
    >>> found.alone_s, found.total_s
    (21.0, 22.0)
    """
    p, m, interleaved = work.stages, work.micro_batches, work.chunks > 1
    passes = m * work.chunks
    more = select(interleaved, 2.0, 1.0)
    alone = (work.chunks - 1.0) * p
    forward = larger(work.first_forward_s, work.middle_forward_s)
    backward = larger(work.first_backward_s, work.middle_backward_s)
    any_forward = larger(forward, work.last_forward_s)
    any_backward = larger(backward, work.last_backward_s)
    at_last = (passes - 1.0 - alone) * work.last_s + alone * (any_forward + any_backward)
    before_it = (passes - 1.0 - alone - more) * work.middle_s
    ahead = alone + more * (p - 1.0)
    at_first = (passes - ahead) * work.first_s

    def path_s(hop_s: Values) -> Values:
        once = work.all_s + 2.0 * (p - 1.0) * hop_s
        last = work.last_s + 2.0 * hop_s
        down = larger((alone + more) * forward, alone * any_forward + last)
        up = larger((alone + more) * backward, alone * any_backward + last)
        # two micro-batches cannot turn back before the last stage; one has nothing to wait for
        two = larger(larger(forward, backward), forward + backward - last)
        turned = select(passes > 2, before_it + down + up - last, select(passes > 1, two, 0.0))
        between = once - work.first_s - last
        waited = larger(ahead * work.first_forward_s, between + down)
        waited = waited + larger(ahead * work.first_backward_s, between + up)
        first = select(passes > ahead + 1.0, at_first + waited, 0.0)
        return larger(once + larger(at_last, turned), first)

    apart = work.all_s + (passes - 1.0) * (any_forward + any_backward)
    alone_s = select(interleaved * (m <= p), apart, path_s(0.0)) / work.chunks
    if not anywhere(hop_s):
        return Longest(alone_s=alone_s, total_s=alone_s)
    hopped = larger(path_s(hop_s), _bouncing_s(work, hop_s))
    return Longest(alone_s=alone_s, total_s=select(interleaved, alone_s, hopped))


def _bouncing_s(work: Passes, hop_s: Values) -> Values:
    """Return the longest path of one chunk a stage that bounces between the stages.

    Over the whole pipe, or without an end: where that takes longer for each micro-batch. Only where
    there are more micro-batches than stages and one may the last be left out, for one bounce more
    ends there; only one of two stages can.
    """
    p, m = work.stages, work.micro_batches
    around = 2.0 * hop_s
    once = work.all_s + (p - 1.0) * around
    last = work.last_s + around

    def path_s(no_first: Values, no_last: Values) -> Values:
        each = p - no_first - no_last
        bounce_s = once - no_first * (work.first_s + around) - no_last * last
        rest = m - 1.0 - no_last * (each + 1.0)  # each is p at most
        bounces = rest // each
        left = rest - bounces * each
        shorter = left * work.middle_s + larger(0.0, left - 1.0) * around
        shorter = shorter + (1.0 - no_last) * (left > 0) * (work.last_s - work.middle_s)
        return once + bounces * bounce_s + no_last * (bounce_s + last) + shorter

    no_first, no_last = (p > 1) * 1.0, (p > 1) * (m > p + 1.0) * 1.0
    one = larger(path_s(no_first, 0.0), path_s(0.0, no_last))
    return larger(larger(path_s(0.0, 0.0), one), path_s((p > 2) * 1.0, no_last))
