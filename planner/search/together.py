"""Several machines, or one under several changes, timed at once.

What is alike in all of them (compute, most of all) is worked out once; what differs gets an axis
before those of the seatings and the rows, one entry a machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from planner.collectives.links import LinkNumbers, Spread, TierNumbers
from planner.steptime.spread import Spreads, digits_of

if TYPE_CHECKING:
    from collections.abc import Hashable

Machine = TypeVar("Machine")


def shape_of(links: LinkNumbers) -> Hashable:
    """Return what links must have in common to be stacked: the same lines then hold for all."""
    inside = links.inside
    return (
        len(links.tiers),
        links.protocols,
        links.own_step_share,
        bool(np.any(inside.in_network_reduction)),
        bool(np.all(np.isfinite(inside.pair_bytes_per_s))),
    )


def grouped(
    machines: Sequence[Machine], key: Callable[[Machine], Hashable]
) -> list[tuple[int, ...]]:
    """Return the positions of the machines of each key, in the order in which keys first occur.

    >>> grouped(["a", "b", "aa"], key=lambda word: word[0])
    [(0, 2), (1,)]
    """
    found: dict[Hashable, list[int]] = {}
    for position, machine in enumerate(machines):
        found.setdefault(key(machine), []).append(position)
    return [tuple(positions) for positions in found.values()]


def stacked_links(links: Sequence[LinkNumbers]) -> LinkNumbers:
    """Return links of one ``shape_of`` as arrays of shape [machines, 1, 1], where they differ."""
    tiers = tuple(
        TierNumbers(
            **{f.name: _stacked([getattr(tier, f.name) for tier in each])
               for f in fields(TierNumbers)}
        )
        for each in zip(*(one.tiers for one in links), strict=True)
    )  # fmt: skip
    return replace(
        links[0], tiers=tiers,
        **{name: _stacked([getattr(one, name) for one in links])
           for name in ("launch_s", "issue_s", "max_rails")},
    )  # fmt: skip


def _stacked(values: Sequence[Any]) -> Any:
    first = values[0]
    if isinstance(first, str) or all(np.array_equal(value, first) for value in values[1:]):
        return first
    return np.reshape(np.asarray(values), (-1, 1, 1))


def stacked_spreads(spreads: Sequence[Spreads]) -> Spreads:
    """Return spreads of the same rows as arrays of shape [machines, seatings, rows]."""
    if len(spreads) == 1:
        return spreads[0]
    return Spreads(
        **{
            name: _stacked_spread([getattr(one, name) for one in spreads])
            for name in digits_of(spreads[0])
        }
    )


def _stacked_spread(spreads: Sequence[Spread]) -> Spread:
    tiers = range(len(spreads[0].members))

    def all_of(values: Sequence[Any]) -> Any:
        if all(np.array_equal(value, values[0]) for value in values[1:]):
            return values[0]
        return np.stack(np.broadcast_arrays(*(np.atleast_2d(value) for value in values)))

    return Spread(
        group_size=spreads[0].group_size,
        members=tuple(all_of([s.members[tier] for s in spreads]) for tier in tiers),
        domains=tuple(all_of([s.domains[tier] for s in spreads]) for tier in tiers),
        least_members=all_of([s.least_members for s in spreads]),
    )
