"""Range checks of the network models: every fault is named, none is repaired."""

from __future__ import annotations

from math import isfinite
from typing import Any

import numpy as np

from planner.errors import InputError

_MOST = 1e30


def _numbers(value: Any) -> np.ndarray[Any, np.dtype[np.float64]] | None:
    """Return *value* as an array of floats, or None if it is no number."""
    if isinstance(value, bool | str | bytes) or value is None:
        return None
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        return None


def not_above_zero(**values: Any) -> list[str]:
    """Return one fault for each value that is not above 0.

    >>> not_above_zero(line_bytes_per_s=0.0)
    ['line_bytes_per_s=0.0: expected above 0, at most 1e30']
    """
    return [
        f"{name}={value!r}: expected above 0, at most 1e30"
        for name, value in values.items()
        if (seen := _numbers(value)) is None
        or not bool(np.all((seen >= 1 / _MOST) & (seen <= _MOST)))
    ]


def below_zero(**values: Any) -> list[str]:
    """Return one fault for each value that is below 0 or no number."""
    return [
        f"{name}={value!r}: expected 0 to 1e30"
        for name, value in values.items()
        if (seen := _numbers(value)) is None or not bool(np.all((seen >= 0) & (seen <= _MOST)))
    ]


def not_counts(least: int = 1, most: float = 1e15, **values: Any) -> list[str]:
    """Return one fault for each value that is no whole number between *least* and *most*."""
    faults = []
    for name, value in values.items():
        seen = _numbers(value)
        if seen is None or not bool(
            np.all(np.isfinite(seen) & (seen >= least) & (seen <= most) & (seen == np.floor(seen)))
        ):
            faults.append(f"{name}={value!r}: expected a whole number from {least} to {most:g}")
    return faults


def not_shares(*, one_allowed: bool = True, **values: Any) -> list[str]:
    """Return one fault for each value outside 0 <= share <= 1 (or < 1)."""
    faults = []
    for name, value in values.items():
        seen = _numbers(value)
        fits = seen is not None and bool(
            np.all((seen >= 0) & ((seen <= 1) if one_allowed else (seen < 1)))
        )
        if not fits:
            faults.append(
                f"{name}={value!r}: expected 0 to 1" + ("" if one_allowed else ", below 1")
            )
    return faults


def refuse(*faults: list[str]) -> None:
    """Raise one InputError that names every fault, if there is any."""
    if found := [fault for group in faults for fault in group]:
        raise InputError(*found)


def plain(value: Any) -> Any:
    """Return a result without dimensions as a Python number, an array as it is."""
    return value.item() if isinstance(value, np.generic | np.ndarray) and value.ndim == 0 else value


def or_none(value: float) -> float | None:
    """Return *value*, or None where it is infinite: a document has no infinity.

    >>> or_none(float("inf")) is None
    True
    """
    return value if isfinite(value) else None
