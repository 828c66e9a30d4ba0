"""Which machines an allocation has in place of those that the plan was made for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SHOWN = 8


def machine_changes(planned: Sequence[str], given: Sequence[str]) -> dict[str, Any]:
    """Return the machines that stand in for others, and how many only have other ranks.

    Where the two have no machine in common, their names are of two worlds, and nothing is said.

    Args:
        planned: the machine of each rank by the plan.
        given: and by the allocation.

    >>> machine_changes(["n1", "n1", "n2", "n2"], ["n1", "n1", "n7", "n7"])
    {'swapped': [{'planned': 'n2', 'allocated': 'n7'}], 'reordered': 0}
    >>> machine_changes(["n1", "n1", "n2", "n2"], ["n2", "n2", "n1", "n1"])
    {'swapped': [], 'reordered': 2}
    """
    before, now = dict.fromkeys(planned), dict.fromkeys(given)
    if not before.keys() & now.keys():
        return {"swapped": [], "reordered": 0}
    new = [name for name in now if name not in before]
    gone = [name for name in before if name not in now]
    ranks_before, ranks_now = _ranks(planned), _ranks(given)
    swapped: list[dict[str, str | None]] = [
        {"planned": old, "allocated": name} for old, name in zip(gone, new, strict=False)
    ]
    swapped += [{"planned": None, "allocated": name} for name in new[len(gone) :]]
    swapped += [{"planned": old, "allocated": None} for old in gone[len(new) :]]
    kept = [name for name in before if name in now]
    moved = sum(ranks_before[name] != ranks_now[name] for name in kept)
    return {"swapped": swapped, "reordered": moved}


def _ranks(machines: Sequence[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for rank, name in enumerate(machines):
        found.setdefault(name, []).append(rank)
    return found


def machine_sentences(changes: Mapping[str, Any]) -> list[str]:
    """Return the changes in words.

    >>> machine_sentences({"swapped": [{"planned": "n2", "allocated": "n7"}], "reordered": 1})
    ['Not as planned: n7 in place of n2.', '1 machine of the plan has other ranks than planned.']
    """
    swapped, moved = changes["swapped"], changes["reordered"]
    said = []
    if swapped:
        shown = [_words(one["planned"], one["allocated"]) for one in swapped[:_SHOWN]]
        more = f", and {len(swapped) - _SHOWN} more" if len(swapped) > _SHOWN else ""
        said.append(f"Not as planned: {', '.join(shown)}{more}.")
    if moved:
        many = "1 machine of the plan has" if moved == 1 else f"{moved} machines of the plan have"
        said.append(f"{many} other ranks than planned.")
    return said


def _words(planned: str | None, allocated: str | None) -> str:
    if planned is None:
        return f"{allocated} beside them"
    if allocated is None:
        return f"{planned} left out"
    return f"{allocated} in place of {planned}"
