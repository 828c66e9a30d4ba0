"""What each domain of a tier sends over its border, and how long that takes at line rate."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.layout import groups_along
from planner.place.answer import TierCut
from planner.place.question import Kind, ask

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.fabric import Fabric, Tier
    from planner.layout import Layout
    from planner.place.question import Charge, Question
    from planner.traffic import Family


def sent_bytes(question: Question, home: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the bytes that each domain sends out in one step, one direction, shape [domains].

    They add up to ``cut_bytes``: a reduction's w (k - 1) is shared evenly by the k domains, an
    all-to-all sends v n_i (n - n_i), a ring one hop from each domain; a hop of a chain is shared
    by its two ends, since activations go one way and as many gradients come back. Copies go to a
    domain in the dispatch and come back from it in the combine: half of either.
    """
    sent = np.zeros(len(question.capacities))
    for charge in question.charges:
        homes = home[groups_along(question.sizes, charge.axes)]
        if homes.shape[1] < 2:
            continue
        _, domain, units = _parts(charge, homes, len(sent))
        sent += charge.weight_bytes * np.bincount(domain, weights=units, minlength=len(sent))
    return sent


def sent_by_group(charge: Charge, homes: NDArray[np.int64], domains: int) -> NDArray[np.float64]:
    """Return the units that each group sends from each domain, shape [groups, domains].

    Args:
        charge: the cost function.
        homes: domain of each member, shape [groups, group_size].
        domains: of the question [1].
    """
    group, domain, units = _parts(charge, homes, domains)
    found = np.bincount(group * domains + domain, weights=units, minlength=len(homes) * domains)
    return np.asarray(found.reshape(len(homes), domains))


def _parts(
    charge: Charge, homes: NDArray[np.int64], domains: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return (group, domain, units sent) of whatever crosses a border."""
    kind = charge.kind
    if kind in (Kind.CHAIN, Kind.ENDS):
        hops = (
            (homes[:, :-1], homes[:, 1:]) if kind is Kind.CHAIN else (homes[:, :1], homes[:, -1:])
        )
        group, hop = np.nonzero(hops[0] != hops[1])
        ends = np.concatenate([hops[0][group, hop], hops[1][group, hop]])
        return np.tile(group, 2), ends, np.full(len(ends), 0.5)
    groups, size = homes.shape
    keys = (np.arange(groups)[:, None] * domains + homes).ravel()
    pairs, members = np.unique(keys, return_counts=True)
    group, domain = pairs // domains, pairs % domains
    touched = np.bincount(group, minlength=groups)[group]
    if kind is Kind.PAIRS:
        units = (members * (size - members)).astype(float)
    elif kind is Kind.COPIES:
        reached = np.array(charge.units)[members]
        share = np.divide(reached, size - members, out=np.zeros(len(members)), where=members < size)
        elsewhere = np.bincount(group, weights=share, minlength=groups)[group] - share
        units = (reached + members * elsewhere) / 2.0
    elif kind is Kind.RING:
        units = (touched > 1).astype(float)
    else:
        units = (touched - 1) / touched
    return group, domain, np.asarray(units, dtype=np.float64)


def tier_cuts(
    layout: Layout, families: Sequence[Family], fabric: Fabric, rank_to_gpu: Sequence[int]
) -> tuple[TierCut, ...]:
    """Return what crosses between the domains of every tier, innermost first."""
    seats = np.asarray(rank_to_gpu)
    return tuple(_tier_cut(layout, families, fabric, tier, seats) for tier in fabric.tiers)


def _tier_cut(
    layout: Layout,
    families: Sequence[Family],
    fabric: Fabric,
    tier: Tier,
    seats: NDArray[np.int64],
) -> TierCut:
    home = fabric.domain_index(tier.name)[seats]
    question = ask(layout, families, [len(domain.gpus) for domain in tier.domains])
    sent = sent_bytes(question, home)
    rates = np.array([domain.uplink_bytes_per_s for domain in tier.domains])
    times = np.divide(sent, rates, out=np.zeros_like(sent), where=rates > 0)
    worst = int(np.argmax(times))
    return TierCut(
        tier=tier.name,
        cut_bytes=float(sent.sum()),
        cut_time_s=float(times[worst]),
        bottleneck_link=tier.domains[worst].name if sent.any() else "",
    )
