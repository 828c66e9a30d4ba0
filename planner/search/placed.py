"""From a seating to the spreads that the step-time model wants: the worst group of each digit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.collectives.links import Spread
from planner.layout import groups_along
from planner.steptime.columns import anywhere
from planner.steptime.spread import DIGITS, SHARDING, Spreads, digits_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.fabric import Fabric
    from planner.layout import Layout
    from planner.steptime.columns import LayoutColumns

    Homes = Sequence[NDArray[np.int64]]


def placed_spreads(layout: Layout, rank_to_gpu: Sequence[int], fabric: Fabric) -> Spreads:
    """Return how *layout*'s groups sit when rank r is on GPU ``rank_to_gpu[r]``.

    A collective is as slow as its slowest group, and ranks wait for each other all through the
    pipeline, so every digit is represented by its worst group: see ``worst_spread``; of chains
    the one that crosses most often.
    """
    seats = np.asarray(rank_to_gpu, dtype=np.int64)
    return spreads_of(layout, [index[seats] for index in tier_indices(fabric)])


def tier_indices(fabric: Fabric) -> list[NDArray[np.int64]]:
    """Return the domain of each GPU at each tier from the supernode outwards but the last."""
    names = [tier.name for tier in fabric.tiers]
    return [fabric.domain_index(name) for name in names[names.index("supernode") : -1]]


def spreads_of(layout: Layout, homes: Homes) -> Spreads:
    """Return the spreads of a layout whose rank r is in domain ``homes[tier][r]``."""
    sizes = [axis.size for axis in layout.axes]
    return Spreads(
        **{
            digit: WORST_SPREAD[digit](groups_along(sizes, layout.axes_of(digit)), homes)
            for digit in (*DIGITS, *(SHARDING if layout.dp_shard else ()))
        }
    )


def worst_spread(members: NDArray[np.int64], homes: Homes) -> Spread:
    """Return the spread of the worst of several groups: the one with fewest members somewhere.

    Where a group has fewest, there fewest NICs carry what a ring brings, and each of them most of
    an all-to-all.

    Args:
        members: ranks of each group, shape [groups, n].
        homes: domain of each rank at each tier from the supernode outwards but the last.

    >>> homes = np.array([0, 0, 0, 1, 1, 1, 1, 2])
    >>> worst_spread(np.array([[0, 1, 2, 3], [4, 5, 6, 7]]), [homes]).least_members
    1.0
    """
    counted = [_counts(np.sort(home[members], axis=1)) for home in homes]
    return _worst(members, counted, lambda inner: (inner.least, -inner.touched, inner.most))


def worst_chain_spread(members: NDArray[np.int64], homes: Homes) -> Spread:
    """Return the same of chains, members in their order: a return to a domain counts as a new one.

    So (k - 1) / (n - 1) is the share of a chain's hops that leave a supernode.

    >>> worst_chain_spread(np.array([[0, 1, 2, 3]]), [np.array([0, 1, 0, 1])]).domains
    (4.0,)
    """
    counted = [_counts(home[members]) for home in homes]
    return _worst(members, counted, lambda inner: (-inner.touched, inner.most, inner.least))


WORST_SPREAD = {
    digit: worst_chain_spread if digit == "pp" else worst_spread for digit in (*DIGITS, *SHARDING)
}
"""How the worst group of each digit is found: pipelines are chains."""


def _worst(
    members: NDArray[np.int64],
    counted: Sequence[_Counts],
    keys: Callable[[_Counts], Sequence[NDArray[np.int64]]],
) -> Spread:
    """Return the spread of the group that is first by *keys* of its supernodes."""
    groups, n = members.shape
    if not counted or n == 1:
        alone = (float(n),) * len(counted)
        return Spread(group_size=float(n), members=alone, domains=(1.0,) * len(counted),
                      least_members=float(n))  # fmt: skip
    inner = counted[0]
    worst = int(np.lexsort((np.arange(groups), *reversed(keys(inner))))[0])
    return Spread(
        group_size=float(n),
        members=tuple(float(tier.most[worst]) for tier in counted),
        domains=tuple(float(tier.touched[worst]) for tier in counted),
        least_members=float(inner.least[worst]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counts:
    """How each group sits on the domains of one tier; arrays [groups].

    Args:
        touched: domains that it touches [1].
        most, least: of its members in one of them [1].
    """

    touched: NDArray[np.int64]
    most: NDArray[np.int64]
    least: NDArray[np.int64]


def _counts(ordered: NDArray[np.int64]) -> _Counts:
    """Return how groups sit whose members are in the domains *ordered*, runs of one told as one."""
    groups, n = ordered.shape
    starts = np.ones((groups, n), dtype=bool)
    starts[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    marks = np.flatnonzero(starts.ravel())
    runs = np.diff(np.append(marks, groups * n))
    first = np.flatnonzero(marks % n == 0)
    touched = np.diff(np.append(first, len(marks)))
    return _Counts(
        touched=touched,
        most=np.maximum.reduceat(runs, first),
        least=np.minimum.reduceat(runs, first),
    )


def inside_spreads(columns: LayoutColumns) -> Spreads:
    """Return the spreads where one supernode holds all."""
    sizes = {
        "tp": columns.tp, "cp": columns.cp, "ep": columns.ep, "etp": columns.etp,
        "dp": columns.cp * columns.dp, "edp": columns.edp, "pp": columns.pp,
    }  # fmt: skip
    if anywhere(columns.shard_gpus > 0):
        sizes |= {"dp_shard": columns.shards, "edp_shard": columns.expert_shards,
                  "dp_replicate": columns.replicas}  # fmt: skip
    return Spreads(
        **{
            digit: Spread(group_size=size, members=(), domains=(), least_members=size)
            for digit, size in sizes.items()
        }
    )


def stacked(spreads: Sequence[Spreads]) -> Spreads:
    """Return many layouts' spreads, of the same digits, as one of columns, one row a layout."""
    return Spreads(
        **{
            digit: _stack([getattr(one, digit) for one in spreads])
            for digit in digits_of(spreads[0])
        }
    )


def _stack(spreads: Sequence[Spread]) -> Spread:
    tiers = range(len(spreads[0].members))
    return Spread(
        group_size=np.array([s.group_size for s in spreads]),
        members=tuple(np.array([s.members[t] for s in spreads]) for t in tiers),
        domains=tuple(np.array([s.domains[t] for s in spreads]) for t in tiers),
        least_members=np.array([s.least_members for s in spreads]),
    )
