"""A step as a trace that Perfetto and chrome://tracing open: a stage's passes, traffic under them.

Trace Event Format (JSON object form): complete events ``ph: "X"`` with ``ts`` and ``dur`` in
microseconds, metadata ``ph: "M"`` for names and order. A stage is a process; its threads are the
passes and, below, the communication of each. A pass's own exposed traffic is drawn at its end,
a hop from another stage where its stage waits for it. What the step has beyond the passes that are
drawn stands behind them, so that the last event ends at ``step_s``.
Both viewers count whole nanoseconds and want the events of a thread apart or nested: starts and
ends are rounded to them, never start and length. Process 0 is the idle one to Perfetto, which also
takes thread 0 for the one that bears its process's number: processes are numbered from 1, threads
from the number of stages + 1, each once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.steptime.columns import SCHEDULES, LayoutColumns
from planner.steptime.dag import StageWork, Timeline, step_graph, timeline
from planner.steptime.orders import Pass
from planner.steptime.schedule import StageSeconds
from planner.steptime.step import Step

MOST_PASSES = 50_000
ALIKE = "each is timed with the slowest group of every degree, on whatever stage that group is"
"""What a stage's times are of: a step knows one spread of each degree, not one for each stage."""
_NANO = 1e9
_ROWS = ("passes", "communication")
_WORDS = {"F": "forward", "B": "backward", "I": "backward", "W": "weight gradients"}
_COLOURS = {
    "F": "thread_state_running", "B": "thread_state_iowait", "I": "thread_state_iowait",
    "W": "thread_state_runnable",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Traced:
    """A trace and the timeline it was made from.

    Args:
        document: the JSON object of the trace.
        timeline: when every pass runs.
        micro_batches: of them, how many are drawn [1].
    """

    document: Mapping[str, Any]
    timeline: Timeline
    micro_batches: int


def stage_values(seconds: StageSeconds, stages: int) -> list[float]:
    """Return a quantity stage by stage; middle stages carry their mean [s]."""
    if stages == 1:
        return [float(seconds.first)]
    between = [float(seconds.middle_mean)] * (stages - 2)
    return [float(seconds.first), *between, float(seconds.last)]


def traced(step: Step, columns: LayoutColumns, hop_s: float) -> Traced:
    """Return the trace of one layout's step.

    Long runs are cut to whole rounds of the pipeline that stay within 50,000 passes; one round
    alone has another order where stages are interleaved, and none in DualPipe.

    Args:
        step: the predicted step of one layout.
        columns: that layout, scalars.
        hop_s: one hop between stages [s].

    Raises:
        LayoutError: the micro-batches do not go with the schedule.
    """
    stages, chunks = int(columns.pp), int(columns.vpp)
    total = int(columns.micro_batches)
    schedule = SCHEDULES[int(columns.schedule)] if stages > 1 else "1f1b"
    rounds = max(_least_rounds(schedule, chunks), MOST_PASSES // (2 * stages * chunks * stages))
    drawn = min(total, rounds * stages) if stages > 1 else min(total, MOST_PASSES // 2)
    costs = step.stages
    forward, backward = stage_values(costs.forward, stages), stage_values(costs.backward, stages)
    weights = stage_values(costs.weights, stages)
    work = [
        StageWork(forward_s=f, backward_s=b, weights_s=w)
        for f, b, w in zip(forward, backward, weights, strict=True)
    ]
    line = timeline(step_graph(schedule, work, chunks, drawn, hop_s))
    events = _metadata(stages)
    shown = {name: stage_values(part, stages) for name, part in costs.exposed.items()}
    for one in sorted(line.start_s, key=lambda p: (line.start_s[p], p)):
        events += _pass_events(one, line, shown, forward, backward, chunks)
    events += _hop_events(line)
    events += _end_events(step, stages, line.total_s, total - drawn)
    document = {
        "displayTimeUnit": "ms",
        "otherData": {
            "micro_batches": total,
            "micro_batches_drawn": drawn,
            "schedule": schedule,
            "stages": ALIKE,
            "step_s": float(step.total_s),
        },
        "traceEvents": [_numbered(event, stages) for event in events],
    }
    return Traced(document=document, timeline=line, micro_batches=drawn)


def _least_rounds(schedule: str, chunks: int) -> int:
    return 2 if chunks > 1 or schedule == "dualpipe" else 1


def _metadata(stages: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = []
    for stage in range(stages):
        events.append(_meta("process_name", stage, {"name": f"stage {stage}"}))
        events.append(_meta("process_sort_index", stage, {"sort_index": stage}))
        for row, name in enumerate(_ROWS):
            events.append({**_meta("thread_name", stage, {"name": name}), "tid": row})
            events.append({**_meta("thread_sort_index", stage, {"sort_index": row}),
                           "tid": row})  # fmt: skip
    return events


def _numbered(event: dict[str, Any], stages: int) -> dict[str, Any]:
    """Return *event* with its stage and that stage's row under numbers of their own."""
    stage, row = event["pid"], event["tid"]
    return {**event, "pid": stage + 1, "tid": stages + 1 + stage * len(_ROWS) + row}


def _meta(name: str, stage: int, arguments: dict[str, Any]) -> dict[str, Any]:
    return {"ph": "M", "name": name, "pid": stage, "tid": 0, "ts": 0, "args": arguments}


def _complete(
    name: str, stage: int, row: int, start_s: float, duration_s: float, **more: Any
) -> dict[str, Any]:
    start, end = round(start_s * _NANO), round((start_s + duration_s) * _NANO)
    return {
        "ph": "X", "name": name, "cat": "step", "pid": stage, "tid": row,
        "ts": start / 1000, "dur": (end - start) / 1000, **more,
    }  # fmt: skip


def _pass_events(
    one: Pass,
    line: Timeline,
    shown: Mapping[str, Sequence[float]],
    forward: Sequence[float],
    backward: Sequence[float],
    chunks: int,
) -> list[dict[str, Any]]:
    start, end = line.start_s[one], line.end_s[one]
    label = f"{_WORDS[one.kind]} {one.micro_batch}" + (f".{one.chunk}" if chunks > 1 else "")
    events = [
        _complete(
            label, one.stage, 0, start, end - start, cname=_COLOURS[one.kind],
            args={"micro_batch": one.micro_batch, "chunk": one.chunk},
        )
    ]  # fmt: skip
    if one.kind == "W":
        return events
    both = forward[one.stage] + backward[one.stage]
    part = (forward if one.kind == "F" else backward)[one.stage] / both if both else 0.0
    at = end
    for family, seconds in shown.items():
        length = min(seconds[one.stage] * part / chunks, at - start)
        if length * _NANO < 1.0:
            continue
        at -= length
        events.append(_complete(family.upper(), one.stage, 1, at, length, args={"of": label}))
    return events


def _hop_events(line: Timeline) -> list[dict[str, Any]]:
    """Return the hops that a stage waits for with nothing else to do: up to the pass they hold."""
    events, busy_s = [], dict.fromkeys({one.stage for one in line.start_s}, 0.0)
    for one in sorted(line.start_s, key=lambda p: (line.start_s[p], p)):
        start = line.start_s[one]
        wait = min(line.hop_s[one], start - busy_s[one.stage])
        if wait * _NANO >= 1.0:
            events.append(_complete("PP", one.stage, 1, start - wait, wait))
        busy_s[one.stage] = max(busy_s[one.stage], line.end_s[one])
    return events


def _end_events(step: Step, stages: int, after_s: float, left_out: int) -> list[dict[str, Any]]:
    """Return what follows the passes on every stage: the trace ends where the step does.

    The pipeline's own time is a closed form, which may be longer than the passes that are drawn,
    each as early as may be: where stages are interleaved, split weight gradients off or run both
    ways, and by the micro-batches of a long run that are not drawn.
    """
    exposed = float(step.exposed_s["dp"])
    rest = float(step.pipeline.total_s) - after_s
    undrawn = f"{left_out:,} more micro-batches" if left_out else "pipeline beyond its passes"
    parts = (
        (undrawn, 0, rest if rest * _NANO >= 1.0 else 0.0),
        ("DP gradients and parameters", 1, exposed),
        ("update", 0, float(step.update_s)),
        ("waiting for the slowest GPU", 0, float(step.straggling_s)),
        ("data and logging", 0, float(step.fixed_s)),
    )
    events = []
    for stage in range(stages):
        at = after_s
        for name, row, length in parts:
            if length > 0:
                events.append(_complete(name, stage, row, at, length))
            at += length
    return events
