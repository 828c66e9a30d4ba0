"""Flat rings instead of hierarchical reductions, where a library would lay them.

A family's reductions, gathers and scatters become rings of their own: one hop of V (n - 1) / n
bytes for a gather or a scatter, twice that for an all-reduce. Laid domain after domain a ring
leaves every domain it touches once; laid in the order of the ranks it crosses wherever two
neighbours sit apart, up to n times.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from planner.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from planner.traffic import Family

REDUCTIONS = ("hierarchical", "flat", "flat-in-rank-order")
_PASSES = {"all_reduce": 2.0, "reduce_scatter": 1.0, "all_gather": 1.0}


def laid(families: Sequence[Family], reductions: str) -> tuple[Family, ...]:
    """Return *families* with their reductions, gathers and scatters laid as *reductions* says.

    Hierarchical: V (k - 1) a pass, as they are. Flat: a ring through the domains one after the
    other, V (n - 1) / n k a pass if k > 1. Flat in rank order: a closed chain of the members in
    group order, V (n - 1) / n for each of its n hops that crosses; the hop from the last member to
    the first is a family of its own, whose name ends in ``_closing``.

    Two members exchange V a pass either way, so families of two ends stay as they are.

    Args:
        families: as ``planner.traffic.step_families`` returns them.
        reductions: one of ``REDUCTIONS``.

    Raises:
        InputError: a way to reduce that there is not.

    >>> from planner.traffic import Family
    >>> reduce = Family(name="dp_reduce", digit="dp", axes=(0,), group_size=4, groups=1,
    ...                 collective="all_reduce", payload_bytes=8.0, times_per_step=1.0, phase="end")
    >>> [(f.name, f.collective, f.payload_bytes) for f in laid([reduce], "flat")]
    [('dp_reduce', 'ring', 12.0)]
    >>> [(f.name, f.collective, f.ends_only) for f in laid([reduce], "flat-in-rank-order")]
    [('dp_reduce', 'chain', False), ('dp_reduce_closing', 'chain', True)]
    """
    if reductions not in REDUCTIONS:
        raise InputError(f"reductions {reductions!r} are unknown: one of {', '.join(REDUCTIONS)}")
    if reductions == "hierarchical":
        return tuple(families)
    found: list[Family] = []
    for family in families:
        passes, n = _PASSES.get(family.collective, 0.0), family.group_size
        if not passes or family.ends_only:
            found.append(family)
            continue
        hop_bytes = passes * family.payload_bytes * (n - 1) / n
        if reductions == "flat":
            found.append(replace(family, collective="ring", payload_bytes=hop_bytes))
            continue
        found += [
            replace(family, collective="chain", payload_bytes=hop_bytes),
            replace(
                family,
                name=f"{family.name}_closing",
                collective="chain",
                payload_bytes=hop_bytes,
                group_size=2,
                ends_only=True,
            ),
        ]
    return tuple(found)
