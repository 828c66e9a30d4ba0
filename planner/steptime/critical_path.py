"""What is on a step's critical path, what each part gains if free, and on what premise.

Amdahl: a part that lengthens the step by x of T limits any speed-up of it to T / (T - x). A part
that is hidden gains nothing; its slack says how much it may grow before it shows.
"""

from __future__ import annotations

from dataclasses import dataclass

from planner.steptime.step import Step

_PREMISES = {
    "compute": "the kernels reach the shares of peak they were fitted to",
    "recompute": "memory leaves no room to keep the activations",
    "bubble": "every stage takes as long as predicted: a straggler widens the bubble",
    "tp": "TP traffic has the scale-up links to itself",
    "cp": "ring hops run under the attention of the block before",
    "ep": "routing is balanced: a crowded expert stretches dispatch, GEMM and combine",
    "etp": "an expert is cut by ETP",
    "dp": "gradient reduction and pipeline traffic do not fight for the same NIC",
    "pp": "pipeline hops have the NIC to themselves",
    "update": "the optimizer is bound by memory bandwidth",
    "straggling": "the slowest GPU is as far behind as on the clusters that were measured",
    "fixed": "data loading and logging keep up",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PathEntry:
    """One part of the step's critical path.

    Args:
        name: part.
        kind: ``compute``, ``communication``, ``bubble``, ``update`` or ``fixed``.
        seconds: what it adds to the step [s].
        share: of the step [1].
        gain_if_free_s: how much shorter the step would be without it [s].
        speedup_limit: step over (step - gain): Amdahl's limit [1].
        own_s: its own duration, hidden part included [s].
        premise: what must hold for this to be so.
    """

    name: str
    kind: str
    seconds: float
    share: float
    gain_if_free_s: float
    speedup_limit: float
    own_s: float
    premise: str


def _premise(step: Step, name: str) -> str:
    """Return what must hold, for a family with the sharing of its links that was reckoned with."""
    if name in step.slowdown:
        ratio = float(step.slowdown[name])
        return f"{name.upper()} shares its links as reckoned: {ratio:.3g} x its tier's time"
    return _PREMISES.get(name, _PREMISES["compute"])


def critical_path(step: Step) -> tuple[PathEntry, ...]:
    """Return the parts of one layout's step that add up to it, the longest first.

    Parts that are wholly hidden follow with 0 seconds. A part of the busiest stage's micro-batch
    also fills the bubble; its gain counts both.
    """
    total = float(step.total_s)
    work = sum(float(v) for v in step.compute_parts_s.values())
    shown = {n: float(v) for n, v in step.exposed_s.items()}
    in_stage = {n: v for n, v in shown.items() if n not in ("dp", "pp")}
    busy = work + sum(in_stage.values())
    bubble = float(step.bubble_s)
    stretch = 1.0 + (bubble / busy if busy else 0.0)
    entries = []

    def add(name: str, kind: str, seconds: float, gain: float, own: float) -> None:
        premise = _premise(step, name)
        entries.append(
            PathEntry(
                name=name, kind=kind, seconds=seconds, share=seconds / total,
                gain_if_free_s=gain, speedup_limit=total / max(total - gain, 1e-12), own_s=own,
                premise=premise,
            )
        )  # fmt: skip

    for name, value in step.compute_parts_s.items():
        seconds = float(value)
        if seconds:
            add(name, "compute", seconds, seconds * stretch, seconds)
    for name, seconds in shown.items():
        own = float(step.communication_s[name])
        if own or seconds:
            add(name, "communication", seconds,
                seconds * (stretch if name in in_stage else 1.0), own)  # fmt: skip
    add("bubble", "bubble", bubble, bubble, bubble)
    add("update", "update", float(step.update_s), float(step.update_s), float(step.update_s))
    waiting = float(step.straggling_s)
    add("straggling", "bubble", waiting, waiting, waiting)
    add("fixed", "fixed", float(step.fixed_s), float(step.fixed_s), float(step.fixed_s))
    return tuple(sorted(entries, key=lambda entry: (-entry.seconds, entry.name)))
