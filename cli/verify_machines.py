"""Which machines an allocation has in place of those of the plan, and which ranks on the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SHOWN = 8
_RANKS_SHOWN = 4  # machines whose ranks are told; all are in the document
_RUNS_SHOWN = 3  # runs of ranks of one of them


def machine_changes(planned: Sequence[str], given: Sequence[str]) -> dict[str, Any]:
    """Return the machines that stand in for others, and those that only have other ranks.

    Where the two have no machine in common, their names are of two worlds, and nothing is said.

    Args:
        planned: the machine of each rank by the plan.
        given: and by the allocation.

    >>> machine_changes(["n1", "n1", "n2", "n2"], ["n1", "n1", "n7", "n7"])
    {'swapped': [{'planned': 'n2', 'allocated': 'n7'}], 'reordered': 0, 'other_ranks': []}
    >>> machine_changes(["n1", "n1", "n2", "n2"], ["n2", "n2", "n1", "n1"])
    {'swapped': [], 'reordered': 2, 'other_ranks': [{'machine': 'n1', 'planned': [0, 1],
     'allocated': [2, 3]}, {'machine': 'n2', 'planned': [2, 3], 'allocated': [0, 1]}]}
    """
    before, now = dict.fromkeys(planned), dict.fromkeys(given)
    if not before.keys() & now.keys():
        return {"swapped": [], "reordered": 0, "other_ranks": []}
    new = [name for name in now if name not in before]
    gone = [name for name in before if name not in now]
    ranks_before, ranks_now = _ranks(planned), _ranks(given)
    swapped: list[dict[str, str | None]] = [
        {"planned": old, "allocated": name} for old, name in zip(gone, new, strict=False)
    ]
    swapped += [{"planned": None, "allocated": name} for name in new[len(gone) :]]
    swapped += [{"planned": old, "allocated": None} for old in gone[len(new) :]]
    kept = [name for name in before if name in now]
    moved = [
        {
            "machine": name,
            "planned": sorted(ranks_before[name] - ranks_now[name]),
            "allocated": sorted(ranks_now[name] - ranks_before[name]),
        }
        for name in kept
        if ranks_before[name] != ranks_now[name]
    ]
    return {"swapped": swapped, "reordered": len(moved), "other_ranks": moved}


def _ranks(machines: Sequence[str]) -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for rank, name in enumerate(machines):
        found.setdefault(name, set()).add(rank)
    return found


def machine_sentences(changes: Mapping[str, Any]) -> list[str]:
    """Return the changes in words.

    >>> moved = {"machine": "n1", "planned": [0, 1, 5], "allocated": [8]}
    >>> machine_sentences({"swapped": [{"planned": "n2", "allocated": "n7"}], "reordered": 1,
    ...                    "other_ranks": [moved]})
    ['Not as planned: n7 in place of n2.', 'Other ranks than planned: 8 for 0-1,5 on n1.']
    """
    swapped, moved = changes["swapped"], changes["other_ranks"]
    said = []
    if swapped:
        shown = [_words(one["planned"], one["allocated"]) for one in swapped[:_SHOWN]]
        said.append(f"Not as planned: {', '.join(shown)}{_and_more(swapped, _SHOWN)}.")
    if moved:
        told = [_other_ranks(one) for one in moved[:_RANKS_SHOWN]]
        said.append(f"Other ranks than planned: {', '.join(told)}{_and_more(moved, _RANKS_SHOWN)}.")
    return said


def _and_more(all_of_them: Sequence[Any], shown: int) -> str:
    return f", and {len(all_of_them) - shown} more" if len(all_of_them) > shown else ""


def _other_ranks(one: Mapping[str, Any]) -> str:
    """Return which ranks a machine has, and for which."""
    planned, allocated = _runs(one["planned"]), _runs(one["allocated"])
    return f"{allocated or 'none'} for {planned or 'none'} on {one['machine']}"


def _runs(ranks: Sequence[int]) -> str:
    """Return ascending *ranks* as runs, some of many.

    >>> _runs([0, 1, 2, 5, 7]), _runs([0, 2, 4, 6])
    ('0-2,5,7', '0,2,4,…')
    """
    runs: list[list[int]] = []
    for rank in ranks:
        if runs and rank == runs[-1][-1] + 1:
            runs[-1][1:] = [rank]
        else:
            runs.append([rank])
    shown = ["-".join(map(str, run)) for run in runs[:_RUNS_SHOWN]]
    return ",".join([*shown, *(["…"] if len(runs) > _RUNS_SHOWN else [])])


def _words(planned: str | None, allocated: str | None) -> str:
    if planned is None:
        return f"{allocated} beside them"
    if allocated is None:
        return f"{planned} left out"
    return f"{allocated} in place of {planned}"
