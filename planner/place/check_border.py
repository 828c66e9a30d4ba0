"""The independent judge of borders: who sends how much out of each domain, and how long that takes.

As ``check.py`` it shares no code with what decides: domains are walked, members are read from the
lists given, and every group's messages are counted domain by domain.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.place.check import CheckedEntry, CheckError, walked_domains

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_PASSES = {"all_reduce": 2.0, "reduce_scatter": 1.0, "all_gather": 1.0}


def checked_border_s(
    graph: Any,
    gpu_names: Sequence[str],
    rank_to_gpu: Sequence[int],
    traffic: Sequence[CheckedEntry],
    *,
    tier: str,
    tiers: Sequence[str],
    uplink_bytes_per_s: Sequence[float],
) -> float:
    """Return how long the busiest border of *tier* takes for what its domain sends [s].

    Args:
        graph: as of ``check.checked_cut_bytes``, and so the next five.
        gpu_names: vertex of each usable GPU.
        rank_to_gpu: index into *gpu_names* of each rank.
        traffic: what the groups exchange.
        tier: the tier whose borders are judged.
        tiers: names of all tiers, innermost first.
        uplink_bytes_per_s: of the domain of each GPU [bytes/s].

    Raises:
        CheckError: as ``check.checked_cut_bytes``, or a domain that sends has no uplink.
    """
    home = walked_domains(graph, gpu_names, tier=tier, tiers=tiers)
    seats = np.asarray(rank_to_gpu)
    domains = int(home.max()) + 1
    sent = sum((_sent(entry, home[seats], domains) for entry in traffic), np.zeros(domains))
    rates = np.zeros(domains)
    rates[home] = uplink_bytes_per_s
    dead = np.flatnonzero((rates <= 0) & (sent > 0))
    if dead.size:
        raise CheckError(f"domain {dead[0]} sends {sent[dead[0]]:.0f} bytes and has no uplink")
    return float((sent[rates > 0] / rates[rates > 0]).max(initial=0.0))


def _sent(entry: CheckedEntry, home: NDArray[np.int64], domains: int) -> NDArray[np.float64]:
    total = np.zeros(domains)
    for group in entry.members:
        where, here = np.unique(home[np.asarray(group)], return_counts=True)
        if len(where) > 1:
            total += _units(entry, home[np.asarray(group)], where, here, domains)
    return total * entry.payload_bytes * entry.times_per_step


def _units(
    entry: CheckedEntry,
    walk: NDArray[np.int64],
    where: NDArray[np.int64],
    here: NDArray[np.int64],
    domains: int,
) -> NDArray[np.float64]:
    """Return the units that one group sends from each domain; *where* it is, *here* so many."""
    sent = np.zeros(domains)
    n, k = len(walk), len(where)
    if entry.collective in _PASSES:  # the domains pass V (k - 1) / k on, each as much
        sent[where] = _PASSES[entry.collective] * (k - 1) / k
    elif entry.collective == "ring":
        sent[where] = 1.0
    elif entry.collective == "all_to_all":
        sent[where] = here * (n - here)
    elif entry.collective == "chain":  # one way forward, the other way back
        for left, right in pairwise(walk):
            if left != right:
                sent[left] += 0.5
                sent[right] += 0.5
    else:
        missed = np.ones(k)
        for drawn in range(entry.top_k):
            there = entry.experts // n * here
            missed *= np.maximum(entry.experts - there - drawn, 0) / (entry.experts - drawn)
        copies = np.outer(here, 1.0 - missed)  # from each domain to each other
        np.fill_diagonal(copies, 0.0)
        sent[where] = (copies.sum(axis=1) + copies.sum(axis=0)) / 2.0
    return sent
