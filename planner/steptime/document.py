"""A step and its memory as plain values for ``--json``, with the keys that users rely on."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from planner.steptime.critical_path import critical_path
from planner.steptime.memory import STAGES, Memory
from planner.steptime.step import Step
from planner.steptime.uncertainty import interval_s as step_interval_s


def interval_s(step: Step) -> tuple[float, float]:
    """Return the 90 % interval of the step, from no less than the GPUs' peak allows [s]."""
    total_s = float(step.total_s)
    low_s, high_s = step_interval_s(total_s, step.spread, step.machine_spread)
    return min(total_s, max(low_s, float(step.least_s))), high_s


def step_document(step: Step) -> dict[str, Any]:
    """Return one layout's step as plain values [s, 1, 1/s]."""
    return {
        "total_s": float(step.total_s),
        "interval_s": list(interval_s(step)),
        "serial_s": float(step.serial_s),
        "compute_s": float(step.compute_s),
        "compute_parts_s": {n: float(v) for n, v in step.compute_parts_s.items()},
        "communication_s": {n: float(v) for n, v in step.communication_s.items()},
        "exposed_s": {n: float(v) for n, v in step.exposed_s.items()},
        "bubble_s": float(step.bubble_s),
        "update_s": float(step.update_s),
        "straggling_s": float(step.straggling_s),
        "fixed_s": float(step.fixed_s),
        "mfu": float(step.mfu),
        "tokens_per_s": float(step.tokens_per_s),
        "critical_path": [asdict(entry) for entry in critical_path(step)],
        "slowdown_ratio": {digit: float(factor) for digit, factor in step.slowdown.items()},
        "phases": [asdict(phase) for phase in step.phases],
        "assumed": dict(step.assumed),
    }


def memory_document(memory: Memory) -> dict[str, Any]:
    """Return one layout's memory as plain values [bytes]."""
    return {
        "worst_stage_bytes": float(memory.worst_stage_bytes),
        "capacity_bytes": float(memory.capacity_bytes),
        "margin_bytes": float(memory.margin_bytes),
        "missing_bytes": float(memory.missing_bytes),
        "fits": bool(memory.fits),
        "parts": {n: float(v) for n, v in memory.parts.items()},
        "stage": STAGES[int(memory.stage)],
    }
