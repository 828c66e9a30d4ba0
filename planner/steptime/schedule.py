"""How long a pipeline of stages takes, in closed form: GPipe, 1F1B, interleaved, ZB-H1, DualPipe.

Stages may differ: the ends carry the embedding and the logits. With t_i = f_i + b_i a stage's
time for one micro-batch, m micro-batches and v > 1 chunks a stage,

    T = m t_max + (Σ t_i - t_max) / v + hops.

The first term is the busiest stage at work, the second the bubble: the pipe fills and drains.
GPipe does so once forward and once backward, T = Σ t_i + (m - 1) (f_max + b_max) + hops. What one
chunk a stage takes in 1F1B is the longest path of ``longest_1f1b``.

Source: arXiv 2104.04473 (1F1B, interleaved: bubble (p-1)/v of a micro-batch), 1811.06965 (GPipe),
2401.10241 (ZB-H1: (p-1)(f + b - 2w) with b the whole backward and w its weight gradients),
DeepSeek-V3 report arXiv 2412.19437 table 2 (DualPipe: (p/2 - 1)(fb + b - 3w)).
Holds for m a multiple of p where interleaved; hops of one size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from planner.steptime.columns import LayoutColumns, Values, larger, select, smaller
from planner.steptime.longest_1f1b import Passes, longest_1f1b_s


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
    pp, m = columns.pp, columns.micro_batches
    piped = pp > 1
    busy = m * stage_sum((forward, backward)).most(pp)
    bubble = select(piped, _bubble_s(columns, forward, backward, weights), 0.0)
    hops = select(piped, _hops_s(columns, forward, backward, weights, hop_s), 0.0)
    plain = piped * (columns.schedule == 0) * (columns.vpp <= 1)
    if np.any(plain):
        work = _passes(columns, forward, backward)
        alone = longest_1f1b_s(work, 0.0)
        bubble = select(plain, alone - busy, bubble)
        hops = select(plain, longest_1f1b_s(work, hop_s) - alone, hops)
    return Pipeline(total_s=busy + bubble + hops, busy_s=busy, bubble_s=bubble, hops_s=hops)


def _passes(columns: LayoutColumns, forward: StageSeconds, backward: StageSeconds) -> Passes:
    between = columns.pp > 2
    both = stage_sum((forward, backward))
    return Passes(
        first_forward_s=forward.first,
        middle_forward_s=select(between, forward.middle, forward.first),
        first_backward_s=backward.first,
        middle_backward_s=select(between, backward.middle, backward.first),
        last_s=both.last,
        all_s=both.total(columns.pp),
        stages=columns.pp,
        micro_batches=columns.micro_batches,
    )


def _bubble_s(
    columns: LayoutColumns, forward: StageSeconds, backward: StageSeconds, weights: StageSeconds
) -> Values:
    """Return the bubble of GPipe, interleaved, ZB-H1 and DualPipe [s]; see the module."""
    pp, m, code = columns.pp, columns.micro_batches, columns.schedule
    both = stage_sum((forward, backward))
    most, total = both.most(pp), both.total(pp)
    rest = total - most
    filled = rest / columns.vpp
    apart = rest + (m - 1.0) * (forward.most(pp) + backward.most(pp) - most)
    w = weights.total(pp)
    zero_bubble = larger(0.0, rest * (1.0 - 2.0 * w / total))
    dual = larger(0.0, (pp / 2.0 - 1.0) / pp * (total + backward.total(pp) - 3.0 * w))
    other = select(code == 2, zero_bubble, dual)
    return select(code == 0, filled, select(code == 1, apart, other))


def _hops_s(
    columns: LayoutColumns,
    forward: StageSeconds,
    backward: StageSeconds,
    weights: StageSeconds,
    hop_s: Values,
) -> Values:
    """Return what hops add, but for 1F1B [s], found by comparing with the explicit graph.

    Filling and draining pass 2 (p - 1) hops (interleaved: 2 (p v - 1); ZB-H1: 4 (p - 1)).
    Interleaved: a hop hides under the other direction's pass of a chunk, or, where the stages
    wait for each other, a chunk pays one each way. ZB-H1: under the weight gradients. GPipe:
    under the next micro-batch.
    """
    pp, v, m = columns.pp, columns.vpp, columns.micro_batches
    both = stage_sum((forward, backward))
    around = 2.0 * (pp - 1.0) * hop_s
    wait = pp * both.most(pp) - both.total(pp)
    least = smaller(forward.total(pp), backward.total(pp)) / pp / v
    shown = select(columns.overlap_hops, larger(0.0, hop_s - least), 2.0 * hop_s)
    interleaved = 2.0 * (pp * v - 1.0) * hop_s + larger(0.0, m - pp) * v * shown
    idle = larger(0.0, around - wait - weights.total(pp)) / pp
    zero_bubble = 2.0 * around + larger(0.0, m - pp) * idle
    code = columns.schedule
    return select(code == 0, interleaved, select(code == 2, zero_bubble, around))


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
