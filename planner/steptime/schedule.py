"""How long a pipeline of stages takes, in closed form: GPipe, 1F1B, interleaved, ZB-H1, DualPipe.

Stages may differ: the ends carry the embedding and the logits. With t_i = f_i + b_i a stage's
time for one micro-batch, m micro-batches and v chunks a stage, alike stages take in 1F1B

    T = m t + (p - 1) t / v + hops:

a stage at work, and the bubble while the pipe fills and drains. Where they differ it is the longest
path of ``longest_1f1b``. GPipe runs all forwards, then all backwards, on stages of any kind:
T = Σ t_i + (m - 1) (f_max + b_max) + hops.

Source: arXiv 2104.04473 (1F1B, interleaved: bubble (p-1)/v of a micro-batch), 1811.06965 (GPipe),
2401.10241 (ZB-H1: (p-1)(f + b - 2w) with b the whole backward and w its weight gradients),
DeepSeek-V3 report arXiv 2412.19437 table 2 (DualPipe: (p/2 - 1)(fb + b - 3w)).
Holds for m a multiple of p where interleaved; hops of one size.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

from planner.steptime.columns import (
    LayoutColumns,
    Values,
    anywhere,
    larger,
    select,
    smaller,
    whole,
)
from planner.steptime.longest_1f1b import Passes, longest_1f1b


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSeconds:
    """One quantity on the first, the middle and the last stage, for one micro-batch [s].

    Args:
        first, last: the ends; equal with one stage.
        middle: the fullest of the stages between them.
        middle_mean: their mean.
    """

    first: Values
    middle: Values
    middle_mean: Values
    last: Values

    def total(self, stages: Values) -> Values:
        """Return the sum over the stages [s]."""
        between = larger(0.0, stages - 2.0) * self.middle_mean
        return self.first + select(stages > 1, self.last, 0.0) + between

    def most(self, stages: Values) -> Values:
        """Return the busiest stage's [s]."""
        ends = select(stages > 1, larger(self.first, self.last), self.first)
        return select(stages > 2, larger(ends, self.middle), ends)

    def of_stage(self, code: Values) -> Values:
        """Return the value on the stage of ``busiest``'s code [s]."""
        return select(code == 0, self.first, select(code == 1, self.middle, self.last))


def busiest(seconds: StageSeconds, stages: Values) -> Values:
    """Return which stage has most: 0 the first, 1 a middle one, 2 the last [1]."""
    last = (stages > 1) * (seconds.last > seconds.first)
    ends = select(last, seconds.last, seconds.first)
    middle = (stages > 2) * (seconds.middle > ends)
    return select(middle, 1.0, select(last, 2.0, 0.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipeline:
    """A step's pipeline.

    Args:
        total_s: from the first forward to the last backward [s].
        busy_s: the busiest stage's own work [s].
        bubble_s: filling and draining [s].
        hops_s: what hops between stages add [s].
    """

    total_s: Values
    busy_s: Values
    bubble_s: Values
    hops_s: Values

    def busy_for(self, busy_s: Values) -> Pipeline:
        """Return the same waits beside *busy_s* of the busiest stage's work [s]."""
        return replace(self, total_s=busy_s + self.bubble_s + self.hops_s, busy_s=busy_s)


def stage_sum(parts: tuple[StageSeconds, ...]) -> StageSeconds:
    """Return the sum of several quantities, stage by stage."""
    return StageSeconds(
        first=_added([p.first for p in parts]),
        middle=_added([p.middle for p in parts]),
        middle_mean=_added([p.middle_mean for p in parts]),
        last=_added([p.last for p in parts]),
    )


def _added(values: list[Values]) -> Values:
    total: Values = 0.0
    for value in values:
        total = total + value
    return total


def pipeline(
    columns: LayoutColumns,
    forward: StageSeconds,
    backward: StageSeconds,
    weights: StageSeconds,
    hop_s: Values,
) -> Pipeline:
    """Return the closed form of a step's pipeline.

    Args:
        columns: the layouts; pp, vpp, micro-batches and schedule are read.
        forward: a stage's forward of one micro-batch, its exposed communication included.
        backward: the same of the backward, weight gradients included.
        weights: the weight gradients alone.
        hop_s: one hop between neighbouring stages [s].
    """
    both = stage_sum((forward, backward))
    busy = columns.micro_batches * both.most(columns.pp)
    in_turn = columns.schedule == 0
    waits = _NONE
    if anywhere(in_turn):
        waits = _waits_in_turn(columns, forward, backward, both, hop_s)
    if anywhere(columns.schedule != 0):
        other = _waits_of_others(columns, forward, backward, weights, hop_s)
        waits = _Waits(
            bubble_s=select(in_turn, waits.bubble_s, other.bubble_s),
            hops_s=select(in_turn, waits.hops_s, other.hops_s),
        )
    piped = columns.pp > 1
    bubble, hops = select(piped, waits.bubble_s, 0.0), select(piped, waits.hops_s, 0.0)
    return Pipeline(total_s=busy + bubble + hops, busy_s=busy, bubble_s=bubble, hops_s=hops)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Waits:
    """What a pipeline adds to its busiest stage's own work [s]."""

    bubble_s: Values
    hops_s: Values


_NONE = _Waits(bubble_s=0.0, hops_s=0.0)


def _waits_in_turn(
    columns: LayoutColumns,
    forward: StageSeconds,
    backward: StageSeconds,
    both: StageSeconds,
    hop_s: Values,
) -> _Waits:
    """Return 1F1B's. Interleaved, filling and draining pass 2 (p v - 1) hops.

    Each other hides under the other direction's pass of a chunk, or, where the stages wait for
    each other, a chunk pays one each way: found by comparing with the explicit graph.
    """
    pp, v, m = columns.pp, columns.vpp, columns.micro_batches
    longest = longest_1f1b(_passes(columns, forward, backward, both.total(pp)), hop_s)
    hops = 2.0 * (pp * v - 1.0) * hop_s
    waited = hops + larger(0.0, m - pp) * v * 2.0 * hop_s
    if anywhere((v > 1) * columns.overlap_hops * (hop_s > 0)):
        hidden = hops + _beyond_passes_s(columns, forward, backward, hop_s) - longest.alone_s
        waited = select(columns.overlap_hops, hidden, waited)
    return _Waits(
        bubble_s=longest.alone_s - m * both.most(pp),
        hops_s=select(v > 1, waited, longest.total_s - longest.alone_s),
    )


def _beyond_passes_s(
    columns: LayoutColumns, forward: StageSeconds, backward: StageSeconds, hop_s: Values
) -> Values:
    """Return an interleaved pipeline's seconds where hops may be longer than what hides them.

    That of stages whose shorter pass of a chunk is no shorter than a hop, less what filling and
    draining would count twice: of alike stages all but m - p micro-batches. No pass and no hop that
    takes longer makes it shorter.
    """
    pp, v, m = columns.pp, columns.vpp, columns.micro_batches
    hops_s = v * hop_s

    def longer(stage: str) -> tuple[Values, Values]:
        f, b = getattr(forward, stage), getattr(backward, stage)
        return larger(f, hops_s), larger(b, smaller(f, hops_s))

    ways = [longer(one.name) for one in fields(StageSeconds)]
    names = [one.name for one in fields(StageSeconds)]
    there, back = (StageSeconds(**dict(zip(names, way, strict=True)))
                   for way in zip(*ways, strict=True))  # fmt: skip
    total = there.total(pp) + back.total(pp)
    alone_s = longest_1f1b(_passes(columns, there, back, total), 0.0).alone_s
    least = smaller(forward.total(pp), backward.total(pp)) / pp
    twice = (smaller(m, pp) + (pp - 1.0) / v) * larger(0.0, hops_s - least)
    return alone_s - twice


def _passes(
    columns: LayoutColumns, forward: StageSeconds, backward: StageSeconds, total_s: Values
) -> Passes:
    between = columns.pp > 2
    return Passes(
        first_forward_s=forward.first,
        first_backward_s=backward.first,
        middle_forward_s=select(between, forward.middle, forward.first),
        middle_backward_s=select(between, backward.middle, backward.first),
        last_forward_s=forward.last,
        last_backward_s=backward.last,
        all_s=total_s,
        stages=columns.pp,
        chunks=columns.vpp,
        micro_batches=columns.micro_batches,
    )


def _waits_of_others(
    columns: LayoutColumns,
    forward: StageSeconds,
    backward: StageSeconds,
    weights: StageSeconds,
    hop_s: Values,
) -> _Waits:
    """Return those of GPipe, ZB-H1 and DualPipe; see the module.

    Filling and draining pass 2 (p - 1) hops (ZB-H1: 4 (p - 1)). Others hide under the next
    micro-batch, ZB-H1's under the weight gradients. In DualPipe two passes that run as one start
    when both may, so that a stage waits for one hop with all but every p-th micro-batch: found by
    comparing with the explicit graph.
    """
    pp, m, code = columns.pp, columns.micro_batches, columns.schedule
    both = stage_sum((forward, backward))
    most, total, w = both.most(pp), both.total(pp), weights.total(pp)
    rest = total - most
    apart = rest + (m - 1.0) * (forward.most(pp) + backward.most(pp) - most)
    zero_bubble = larger(0.0, rest * (1.0 - 2.0 * w / total))
    dual = larger(0.0, (pp / 2.0 - 1.0) / pp * (total + backward.total(pp) - 3.0 * w))
    around = 2.0 * (pp - 1.0) * hop_s
    met = whole(m * (pp - 1.0) / pp) + larger(1.0, 1.5 * pp - 3.0)
    idle = larger(0.0, around - (pp * most - total) - w) / pp
    return _Waits(
        bubble_s=select(code == 1, apart, select(code == 2, zero_bubble, dual)),
        hops_s=select(
            code == 2,
            2.0 * around + larger(0.0, m - pp) * idle,
            select(code == 3, met * hop_s, around),
        ),
    )


def in_flight(columns: LayoutColumns, stage: str) -> Values:
    """Return how many micro-batches' activations of the whole stage are kept at the peak [1].

    1F1B: p on the first stage, 1 on the last; interleaved: 1 + (p-1)/(p v) times p on the first
    (arXiv 2205.05198 §4.2.3); GPipe: all m; DualPipe: p + 1 everywhere.
    """
    return in_flight_at(columns, {"first": 0.0, "middle": 1.0}.get(stage, columns.pp - 1.0))


def in_flight_at(columns: LayoutColumns, position: Values) -> Values:
    """Return the same for the stage that is the *position*-th from the first, 0 to p - 1 [1]."""
    pp, v, m = columns.pp, columns.vpp, columns.micro_batches
    plain = smaller(m, larger(1.0, pp - position))
    chunks = 2.0 * (pp - position - 1.0) + (v - 1.0) * pp + 1.0
    inter = smaller(m, chunks / v)
    kept = select(v > 1, inter, plain)
    return select(
        columns.schedule == 1, m, select(columns.schedule == 3, smaller(m, pp + 1.0), kept)
    )
