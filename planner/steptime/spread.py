"""How the members of each kind of group sit on the tiers, digit by digit.

A placement says it exactly; without one, Megatron's rank order on consecutive GPUs does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from planner.collectives.links import Spread
from planner.layout import PART_OF
from planner.steptime.columns import LayoutColumns, Values, anywhere, larger, smaller, whole


@dataclass(frozen=True, slots=True, kw_only=True)
class Spreads:
    """The spread of every digit; ``dp`` is the dense gradient group (cp x dp).

    ``pp`` is a chain: the share of its hops that leave a supernode is (k - 1) / (n - 1). The last
    three are of hybrid sharding, as ``Layout.axes_of`` names them; None where no layout has it.
    """

    tp: Spread
    cp: Spread
    ep: Spread
    etp: Spread
    dp: Spread
    edp: Spread
    pp: Spread
    dp_shard: Spread | None = None
    edp_shard: Spread | None = None
    dp_replicate: Spread | None = None


DIGITS = ("tp", "cp", "ep", "etp", "dp", "edp", "pp")
SHARDING = tuple(PART_OF)
"""What hybrid sharding splits ``dp`` and ``edp`` into; the replicas of both are the same ranks."""


def digits_of(spreads: Spreads) -> tuple[str, ...]:
    """Return the names of the spreads that there are."""
    return DIGITS if spreads.dp_shard is None else (*DIGITS, *SHARDING)


def strided_spread(size: Values, stride: Values, domains: Sequence[float]) -> Spread:
    """Return the spread of *size* members *stride* ranks apart on consecutive GPUs.

    Args:
        size: members of the group [1].
        stride: ranks between two neighbours [1].
        domains: GPUs of one domain of each tier but the last, supernode first [1].

    >>> strided_spread(16.0, 1.0, [8]).members, strided_spread(16.0, 1.0, [8]).domains
    ((8.0,), (2.0,))
    >>> strided_spread(4.0, 8.0, [8]).members
    (1.0,)
    """
    held, touched = [], []
    for gpus in domains:
        inside = smaller(size, larger(1.0, gpus / stride // 1.0))
        held.append(inside)
        touched.append(whole(size / inside))
    least = size - held[0] * (touched[0] - 1.0) if held else size
    return Spread(group_size=size, members=tuple(held), domains=tuple(touched), least_members=least)


def contiguous_spread(
    columns: LayoutColumns, domains: float | Sequence[float], order: str = "tp-cp-ep-dp-pp"
) -> Spreads:
    """Return the spreads of Megatron's rank order, rank r on GPU r.

    Args:
        columns: the layouts.
        domains: GPUs of a supernode, or of one domain of each tier but the last [1].
        order: ``tp-cp-ep-dp-pp`` or ``tp-cp-ep-pp-dp``.
    """
    sizes = list(domains) if isinstance(domains, Sequence) else [float(domains)]
    t, c = columns.tp, columns.cp
    if order.endswith("pp-dp"):
        dense = _nested(
            strided_spread(c, t, sizes), strided_spread(columns.dp, t * c * columns.pp, sizes)
        )
        pipe = strided_spread(columns.pp, t * c, sizes)
        expert = strided_spread(columns.edp, columns.etp * columns.ep * columns.pp, sizes)
    else:
        dense = strided_spread(c * columns.dp, t, sizes)
        pipe = strided_spread(columns.pp, t * c * columns.dp, sizes)
        expert = strided_spread(columns.edp, columns.etp * columns.ep, sizes)
    hybrid = anywhere(columns.shard_gpus > 0)
    return Spreads(
        tp=strided_spread(t, 1.0, sizes),
        cp=strided_spread(c, t, sizes),
        ep=strided_spread(columns.ep, columns.etp, sizes),
        etp=strided_spread(columns.etp, 1.0, sizes),
        dp=dense,
        edp=expert,
        pp=pipe,
        **(_sharding(columns, sizes, order) if hybrid else {}),
    )


def _sharding(columns: LayoutColumns, sizes: Sequence[float], order: str) -> dict[str, Spread]:
    """Return the spreads of shard groups and of replicas, ranks in order.

    The replicas are the outermost part of dp, whatever the order.
    """
    t, c, shards = columns.tp, columns.cp, columns.shards
    inside = columns.etp * columns.ep
    if order.endswith("pp-dp"):
        dense = _nested(
            strided_spread(c, t, sizes), strided_spread(shards / c, t * c * columns.pp, sizes)
        )
        expert = strided_spread(columns.expert_shards, inside * columns.pp, sizes)
        apart = t * shards * columns.pp
    else:
        dense = strided_spread(shards, t, sizes)
        expert = strided_spread(columns.expert_shards, inside, sizes)
        apart = t * shards
    return {
        "dp_shard": dense,
        "edp_shard": expert,
        "dp_replicate": strided_spread(columns.replicas, apart, sizes),
    }


def _nested(inner: Spread, outer: Spread) -> Spread:
    return Spread(
        group_size=inner.group_size * outer.group_size,
        members=tuple(a * b for a, b in zip(inner.members, outer.members, strict=True)),
        domains=tuple(a * b for a, b in zip(inner.domains, outer.domains, strict=True)),
        least_members=inner.least_members * outer.least_members,
    )
