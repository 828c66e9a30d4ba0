"""What ``search`` and ``compare`` ask of a cluster: the inputs, and the fields that are given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.planner_inputs import Asked, Inputs, inputs_document, read_inputs
from planner.errors import InfeasibleError


def read_searched(asked: Asked) -> Inputs:
    """Return the inputs of a search; refusals name only what a search can do about them."""
    try:
        return read_inputs(asked)
    except InfeasibleError as error:
        raise InfeasibleError(
            *(fault.replace(", or --ignore-memory to seat it anyway", "") for fault in error.faults)
        ) from None


def fixed_fields(inputs: Inputs) -> dict[str, Any]:
    """Return the fields of ``Layout`` that every layout shares: those given, and the batch."""
    names = dict.fromkeys((*inputs.given, "seq", "global_batch", "precision"))
    return {name: getattr(inputs.layout, name) for name in names}


def searched_inputs(inputs: Inputs, **more: Any) -> dict[str, Any]:
    """Return everything the answer depends on; ``layout`` holds only what is fixed."""
    document = inputs_document(inputs, **more)
    fixed: Mapping[str, Any] = fixed_fields(inputs)
    return {**document, "layout": fixed}
