"""What ``search`` and ``compare`` ask of a cluster: the inputs, and the fields that are given."""

from __future__ import annotations

from dataclasses import replace

from cli.planner_inputs import Asked, Inputs, read_inputs
from planner.errors import InfeasibleError
from planner.search.seated_rows import Told, untold


def read_searched(asked: Asked, told: Told = untold) -> Inputs:
    """Return the inputs of a search; refusals name only what a search can do about them."""
    try:
        return read_inputs(asked, told)
    except InfeasibleError as error:
        raise InfeasibleError(
            *(fault.replace(", or --ignore-memory to seat it anyway", "") for fault in error.faults)
        ) from None


def read_even_if_overfull(asked: Asked) -> Inputs:
    """Return the inputs with a layout that fits, or where none does, one that does not."""
    try:
        return read_searched(asked)
    except InfeasibleError:
        return read_searched(replace(asked, ignore_memory=True))
