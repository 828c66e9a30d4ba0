"""The passes of a step in time, from what a plan says of its stages; long runs are shortened.

A pipeline is the same round again and again between filling and draining: of a long run the first
and the last micro-batches are kept, and the time of those between is the busiest stage's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any

from planner.steptime.dag import StageWork, step_graph, timeline

_WANTED_PASSES = 220  # of one stage: about four pixels each
MOST_ROWS = 16
MOST_PASSES = 80_000  # beyond it the graph of passes alone takes longer than the rest of a report
KINDS = {"F": "forward", "B": "backward", "I": "backward", "W": "weight gradients"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """One pass on one stage.

    Args:
        stage: its stage.
        kind: ``F`` forward, ``B`` backward, ``W`` weight gradients.
        start_s, end_s: when it runs, in the shortened step [s].
        micro_batch: which, counted over the whole step.
        chunk: which virtual stage, or DualPipe's direction.
        shown_s: communication at its end that lengthens it [s].
        hidden_s: communication that runs under it [s].
    """

    stage: int
    kind: str
    start_s: float
    end_s: float
    micro_batch: int
    chunk: int
    shown_s: float
    hidden_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepLine:
    """A step in time, shortened where it repeats itself.

    Args:
        stages: pipeline stages [1].
        rows: those that are shown.
        spans: the passes of the shown stages, by start.
        path: passes of one longest chain.
        end_s: end of the last pass, in the shortened step [s].
        cut_s: where what repeats is left out, in the shortened step [s].
        left_out: micro-batches that are left out [1].
        left_out_s: how long they take [s].
        idle_s: of the pipeline's time, what each of *rows* does not work [s].
        busy_share: of the pipeline's time, what the stages work on average [1].
    """

    stages: int
    rows: tuple[int, ...]
    spans: tuple[Span, ...]
    path: tuple[Span, ...]
    end_s: float
    cut_s: float
    left_out: int
    left_out_s: float
    idle_s: tuple[float, ...]
    busy_share: float

    @property
    def pipeline_s(self) -> float:
        """The whole pipeline, what is left out included [s]."""
        return self.end_s + self.left_out_s

    def when_s(self, time_s: float) -> float:
        """Return the time in the whole step of a time in the shortened one [s]."""
        return time_s + (self.left_out_s if time_s >= self.cut_s else 0.0)


def step_line(stages: Mapping[str, Any]) -> StepLine:
    """Return the passes of a step.

    Args:
        stages: the entry ``stages`` of a plan.
    """
    forward, backward = stages["forward_s"], stages["backward_s"]
    count, chunks, total = len(forward), stages["chunks"], stages["micro_batches"]
    schedule = stages["schedule"]
    drawn = micro_batches_drawn(schedule, count, chunks, total)
    if count == 1:
        schedule = "1f1b"  # of one stage all are alike, and DualPipe needs two
    work = [
        StageWork(forward_s=f, backward_s=b, weights_s=w)
        for f, b, w in zip(forward, backward, stages["weights_s"], strict=True)
    ]
    line = timeline(step_graph(schedule, work, chunks, drawn, stages["hop_s"]))
    cut_s = line.total_s / 2
    step_of = 1 if count <= MOST_ROWS else ceil(count / MOST_ROWS)
    rows = tuple(sorted({*range(0, count, step_of), count - 1}))
    shown, hidden = _shares(stages)
    spans = {
        one: Span(
            stage=one.stage,
            kind="B" if one.kind == "I" else one.kind,
            start_s=start,
            end_s=line.end_s[one],
            micro_batch=one.micro_batch + (total - drawn if start >= cut_s else 0),
            chunk=one.chunk,
            shown_s=shown[one.stage] * (line.end_s[one] - start) if one.kind != "W" else 0.0,
            hidden_s=hidden[one.stage] * (line.end_s[one] - start) if one.kind != "W" else 0.0,
        )
        for one, start in line.start_s.items()
    }
    both = [f + b for f, b in zip(forward, backward, strict=True)]
    left_out_s = (total - drawn) * max(both)
    pipeline_s = line.total_s + left_out_s
    ordered = sorted(spans, key=lambda one: (spans[one].start_s, one))
    return StepLine(
        stages=count,
        rows=rows,
        spans=tuple(spans[one] for one in ordered if one.stage in set(rows)),
        path=tuple(spans[one] for one in line.path),
        end_s=line.total_s,
        cut_s=cut_s,
        left_out=total - drawn,
        left_out_s=left_out_s,
        idle_s=tuple(max(pipeline_s - total * both[stage], 0.0) for stage in rows),
        busy_share=total * sum(both) / count / pipeline_s if pipeline_s else 1.0,
    )


def micro_batches_drawn(schedule: str, stages: int, chunks: int, total: int) -> int:
    """Return how many micro-batches are drawn: whole rounds of the pipeline, few enough to see.

    >>> micro_batches_drawn("1f1b", 4, 8, 128), micro_batches_drawn("1f1b", 64, 1, 1000)
    (12, 64)
    >>> micro_batches_drawn("1f1b", 1, 1, 16), micro_batches_drawn("dualpipe", 8, 1, 160)
    (8, 104)
    """
    if stages == 1:
        return min(total, 8)
    least = 2 if chunks > 1 or schedule == "dualpipe" else 1  # one round alone has another order
    rounds = max(least, _WANTED_PASSES // (2 * chunks * stages))
    return min(total, rounds * stages)


def passes_drawn(stages: Mapping[str, Any]) -> int:
    """Return how many passes a plan's step is drawn with [1]."""
    count, chunks = len(stages["forward_s"]), int(stages["chunks"])
    total = stages["micro_batches"]
    drawn = micro_batches_drawn(stages["schedule"], count, chunks, total)
    return 2 * count * chunks * drawn


def _shares(stages: Mapping[str, Any]) -> tuple[list[float], list[float]]:
    """Return, for each stage, the shares of a pass with traffic that shows, and that is hidden."""
    shown, hidden = [], []
    for i, both in enumerate(map(sum, zip(stages["forward_s"], stages["backward_s"], strict=True))):
        exposed = sum(values[i] for values in stages["exposed_s"].values())
        traffic = sum(values[i] for values in stages["traffic_s"].values())
        shown.append(min(exposed / both, 1.0) if both else 0.0)
        hidden.append(min(max(traffic - exposed, 0.0) / both, 1.0) if both else 0.0)
    return shown, hidden
