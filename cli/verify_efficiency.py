"""Whose efficiency the seconds of ``planner verify`` are of, and whether the plan's were."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from cli.planner_output import plain

if TYPE_CHECKING:
    from cli.planner_inputs import Inputs

SHIPPED = "the shipped numbers"


def timed_with(plan: Mapping[str, Any], inputs: Inputs) -> str:
    """Return what every seating is timed with, in words.

    A plan with a fit of its own carries the numbers. One without is timed with what ships today,
    which may be other than what shipped when it was made.

    Args:
        plan: the document of the plan.
        inputs: as read back from it.
    """
    if inputs.own_fits is not None:
        return str(inputs.assumed["efficiency"])
    now = None if inputs.efficiency is None else plain(asdict(inputs.efficiency))
    if plan["inputs"].get("efficiency", now) == now:
        return SHIPPED if now is not None else "what is assumed of any accelerator"
    filed = plan["step"]["total_s"] if isinstance(plan.get("step"), Mapping) else None
    shown = f" (a step of {filed:.4g} s)" if isinstance(filed, float) else ""
    return (
        f"the numbers that ship now, others than the plan was made with by planner "
        f"{plan.get('version')}{shown}"
    )
