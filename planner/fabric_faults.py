"""What no figure of a fabric may be, said the same way everywhere."""

from __future__ import annotations

import re
from math import isfinite

from planner.errors import SpecError

_SAFE_NAME = re.compile(r"[A-Za-z0-9_.:+/-]{1,128}\Z")


def must_be_positive(owner: str, **values: float) -> list[str]:
    """Return one fault for each value that is not a finite number above 0."""
    return [
        f"{owner}: {name}={value!r}: expected a finite number above 0"
        for name, value in values.items()
        if not (isfinite(value) and value > 0)
    ]


def must_be_share(owner: str, **values: float) -> list[str]:
    """Return one fault for each value outside 0 < share <= 1."""
    return [
        f"{owner}: {name}={value!r}: expected a share above 0, at most 1"
        for name, value in values.items()
        if not 0 < value <= 1
    ]


def must_be_safe_name(owner: str, name: str) -> list[str]:
    """Return a fault if *name* could not be printed safely in a terminal, HTML or CSV."""
    if _SAFE_NAME.match(name):
        return []
    return [f"{owner}: name {name[:140]!r}: expected 1 to 128 of A-Z a-z 0-9 _ . : + / -"]


def refuse(faults: list[str]) -> None:
    """Raise one SpecError with all *faults*, if there are any."""
    if faults:
        raise SpecError(*faults)
