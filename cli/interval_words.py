"""What the interval of a step is measured on, and what is to be known of the fit it is from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from planner.steptime.covered import kind_of
from topologies.own_efficiency import beyond_words, few_rows, reached_by, suspect_rows

if TYPE_CHECKING:
    from cli.planner_inputs import Inputs
    from planner.steptime.step import Step

OF_KNOWN_TABLES = (
    "The interval is set on published tables: it holds 95 % of 210 steps outside the fits. "
    "Predicted before they were looked at, 45 of the 46 gathered last were in it, of the 19 before "
    "them 6."
)
"""``docs/steps.md``, *The interval*; the tests there hold the figures against the tables."""

OF_OWN_RUNS = "The interval is of layouts like those that were run, on the machine that ran them."


def basis_words(step: Step) -> str:
    """Return what the interval of *step* is measured on: of what its nine cases of ten are."""
    return OF_KNOWN_TABLES if step.machine_spread else OF_OWN_RUNS


def fit_lines(inputs: Inputs) -> tuple[str, ...]:
    """Return what must be known of the fit of one's own that a step is timed with.

    That its rows are few, that some were suspect, and in what the step is unlike all of them.
    """
    own, layout = inputs.own_fits, inputs.layout
    if own is None:
        return ()
    lines = []
    if few := few_rows(inputs.efficiency):
        lines.append(f"Timed with {own.name}, a fit of {few}.")
    kind = kind_of(
        inputs.model, inputs.fabric.accelerator.name, layout.precision, gpus=inputs.gpus,
        domain=max(inputs.fabric.capacities("supernode")), seq=layout.seq,
    )  # fmt: skip
    reached = reached_by(inputs.fabric.accelerator, kind, own)
    if reached.beyond:
        lines.append(f"{own.name}: {beyond_words(reached)}.")
    suspects = dict.fromkeys(odd for one in own.covered.values() if (odd := suspect_rows(one)))
    return (*lines, *(f"{own.name}: {odd}." for odd in suspects))
