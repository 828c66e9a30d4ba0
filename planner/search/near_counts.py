"""Which fewer GPUs hold a model that a job's number, for want of divisors, does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.errors import LayoutError
from planner.search.space import USUAL, layout_space
from planner.search.training import usual_batch
from planner.steptime.memory import step_memory

if TYPE_CHECKING:
    from planner.model import ModelSpec

_STEP_GPUS = 4  # GPUs of a half or a whole server: counts between have fewer divisors still
_MOST_TRIED = 16
_MOST_NAMED = 2
_SHARED = ("tp", "cp", "ep", "etp", "dp", "pp", "vpp", "dp_shard")


def fewer_gpus_that_fit(
    model: ModelSpec, gpus: int, fixed: Mapping[str, Any], capacity_bytes: float
) -> list[int]:
    """Return the nearest smaller multiples of 4 GPUs on which some usual layout fits in memory.

    The batch is the usual one of so many GPUs, or the given one. Nothing is looked for where
    degrees are given: they are of the number of GPUs asked for.

    Args:
        model: the transformer's shape.
        gpus: on which none fits [1].
        fixed: fields of ``Layout`` that all layouts share.
        capacity_bytes: of a GPU [bytes].
    """
    if any(name in fixed for name in _SHARED):
        return []
    own = {name: value for name, value in fixed.items() if name != "global_batch"}
    if fixed["global_batch"] != usual_batch(model, gpus, own).global_batch:
        own = dict(fixed)
    found: list[int] = []
    first = (gpus - 1) // _STEP_GPUS * _STEP_GPUS
    for count in range(first, max(0, first - _MOST_TRIED * _STEP_GPUS), -_STEP_GPUS):
        if _fits(model, count, own, capacity_bytes):
            found.append(count)
        if len(found) == _MOST_NAMED:
            break
    return found


def _fits(model: ModelSpec, gpus: int, own: Mapping[str, Any], capacity_bytes: float) -> bool:
    """Return whether some usual layout does, with the usual batch where *own* has none."""
    given = {**own, "global_batch": usual_batch(model, gpus, own).global_batch}
    try:
        space = layout_space(model, gpus, given, USUAL)
    except LayoutError:
        return False
    if not space.size:
        return False
    return bool(np.any(step_memory(model, space.columns(given), capacity_bytes).fits))


def fewer_gpus_words(gpus: int, counts: Sequence[int]) -> str:
    """Return what to say of an awkward number of GPUs; nothing where fewer do not fit either.

    >>> fewer_gpus_words(1023, [1020, 1008])
    '; 1,023 GPUs divide into few layouts: on 1,020 or 1,008 some layout fits'
    """
    if not counts:
        return ""
    named = " or ".join(f"{count:,}" for count in counts)
    return f"; {gpus:,} GPUs divide into few layouts: on {named} some layout fits"
