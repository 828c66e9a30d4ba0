"""Where a number of GPUs comes from, in words for a fault."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cli.planner_inputs import Asked
    from planner.fabric import Fabric


def whose_gpus(asked: Asked, fabric: Fabric | None) -> str:
    """Return where the number of GPUs comes from, to be read after "the 1,056 GPUs"."""
    if asked.gpus is not None or fabric is None:
        return "asked for"
    if asked.free is not None:
        return f"that {asked.free} leaves free; --gpus N takes another number"
    if asked.cluster is not None:
        return f"of {fabric.name}; --gpus N takes another number"
    return "taken where --gpus does not say; --gpus N takes another number"
