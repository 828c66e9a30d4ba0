"""What crosses between domains, family by family, counted again from a plan's own figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cli.report_html_read import PlanFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Crossing:
    """What the groups of one family send between domains.

    Args:
        family: entry of ``traffic``.
        cut_bytes: bytes of one step between domains [bytes].
        groups: groups of the family [1].
        crossing: of them, those in more than one domain [1].
        least_domains: domains that a group touches, at least [1].
        most_domains: and at most [1].
    """

    family: Mapping[str, Any]
    cut_bytes: float
    groups: int
    crossing: int
    least_domains: int
    most_domains: int


def crossings(plan: PlanFile) -> tuple[Crossing, ...]:
    """Return what crosses in *plan*, by family in the order of the file."""
    return tuple(
        _crossing(family, plan.home[plan.members(family)]) for family in plan.document["traffic"]
    )


def rank_order_bytes(plan: PlanFile) -> tuple[float, ...] | None:
    """Return the cut of each family when rank r sits on the r-th seat [bytes].

    None where their sum is not the plan's baseline ``megatron-order``: then the two count
    different things, and no figure is better than a wrong one.
    """
    capacities = [domain["capacity"] for domain in plan.document["placement"]["domains"]]
    home = np.repeat(np.arange(len(capacities)), capacities)[: plan.home.size]
    found = tuple(
        _crossing(family, home[plan.members(family)]).cut_bytes
        for family in plan.document["traffic"]
    )
    for baseline in plan.document["baselines"]:
        if baseline["name"] == "megatron-order" and _alike(sum(found), baseline["cut_bytes"]):
            return found
    return None


def rank_order_by_tier(plan: PlanFile) -> Mapping[str, float]:
    """Return what leaves each tier's domains when rank r sits on the r-th usable GPU [bytes]."""
    shown = {tier["tier"] for tier in plan.document["tiers"]}
    found: dict[str, float] = {}
    for tier in plan.document["inputs"]["fabric"]["tiers"]:
        if tier["tier"] in shown:
            domain = np.repeat(np.arange(len(tier["capacities"])), tier["capacities"])
            found[tier["tier"]] = total_cut_bytes(plan, domain[: plan.home.size])
    return found


def homes_in(plan: PlanFile, capacities: Sequence[int]) -> NDArray[np.int64]:
    """Return the domain of each rank where domains of *capacities* GPUs follow each other."""
    domain = np.repeat(np.arange(len(capacities)), capacities)
    homes: NDArray[np.int64] = domain[np.asarray(plan.document["placement"]["rank_to_gpu"])]
    return homes


def total_cut_bytes(plan: PlanFile, home: NDArray[np.int64]) -> float:
    """Return the bytes of one step between domains when rank r sits in ``home[r]`` [bytes]."""
    return sum(
        _crossing(family, home[plan.members(family)]).cut_bytes
        for family in plan.document["traffic"]
    )


def total_between(plan: PlanFile) -> NDArray[np.float64]:
    """Return the bytes of one step between two domains, both directions, array [domains, domains].

    Symmetric, over all families: one matrix at a time, for thousands of domains make large ones.
    """
    blocks = len(plan.document["placement"]["domains"])
    total = np.zeros((blocks, blocks))
    for family in plan.document["traffic"]:
        total += bytes_between(family, plan.home[plan.members(family)], blocks)
    return total


def _alike(a: float, b: float) -> bool:
    return bool(np.isclose(a, b, rtol=1e-9, atol=1.0))


def _crossing(family: Mapping[str, Any], homes: NDArray[np.int64]) -> Crossing:
    """Return the crossing of groups whose members sit in *homes*, array [groups, members]."""
    size_bytes = family["payload_bytes"] * family["times_per_step"]
    ordered = np.sort(homes, axis=1)
    touched = 1 + (np.diff(ordered, axis=1) != 0).sum(axis=1)
    kind = family["collective"]
    if kind == "all_to_all":
        pairs = homes.shape[1] ** 2 - _squares(ordered)
        cut = size_bytes * float(pairs.sum())
    elif kind == "domain_all_to_all":
        cut = size_bytes * sum(float(copies(family, row).sum()) for row in ordered)
    elif kind == "chain":
        cut = size_bytes * float((np.diff(homes, axis=1) != 0).sum())
    elif kind == "ring":
        cut = size_bytes * float(touched[touched > 1].sum())
    else:
        cut = (2 if kind == "all_reduce" else 1) * size_bytes * float((touched - 1).sum())
    return Crossing(
        family=family,
        cut_bytes=cut,
        groups=len(homes),
        crossing=int((touched > 1).sum()),
        least_domains=int(touched.min()),
        most_domains=int(touched.max()),
    )


def copies(family: Mapping[str, Any], row: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the copies that go from each domain of one group to each other, array [k, k].

    A token reaches a domain with E_d of E experts with chance 1 - C(E - E_d, k) / C(E, k).
    """
    held = np.unique(row, return_counts=True)[1]
    experts, drawn = family["experts"], family["top_k"]
    missed = [comb(experts - experts // len(row) * int(n), drawn) for n in held]
    found = np.outer(held, [1.0 - ways / comb(experts, drawn) for ways in missed])
    np.fill_diagonal(found, 0.0)
    return found


def _squares(ordered: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return sum_i n_i^2 of each row, whose entries are sorted."""
    groups, size = ordered.shape
    starts = np.ones((groups, size), dtype=bool)
    starts[:, 1:] = np.diff(ordered, axis=1) != 0
    at = np.flatnonzero(starts)
    runs = np.diff(np.append(at, groups * size))
    return np.bincount(at // size, weights=runs.astype(float) ** 2, minlength=groups).astype(
        np.int64
    )


def bytes_between(
    family: Mapping[str, Any], homes: NDArray[np.int64], blocks: int
) -> NDArray[np.float64]:
    """Return the bytes between two domains, both directions, array [domains, domains].

    Args:
        family: entry of ``traffic``.
        homes: domain of each member, array [groups, members].
        blocks: domains [1].

    Of a reduction only the sum over a group's domains is known, V (k - 1) each way; it is spread
    evenly over their pairs. A ring is laid through its domains in the order of its members.
    """
    found = np.zeros((blocks, blocks))
    size_bytes = family["payload_bytes"] * family["times_per_step"]
    kind = family["collective"]
    if kind == "chain":
        np.add.at(found, (homes[:, :-1].ravel(), homes[:, 1:].ravel()), size_bytes)
    elif kind == "ring":
        for row in homes:
            stops = list(dict.fromkeys(row.tolist()))
            if len(stops) > 1:
                np.add.at(found, (stops, [*stops[1:], stops[0]]), size_bytes)
    else:
        rows, counts = np.unique(np.sort(homes, axis=1), axis=0, return_counts=True)
        for row, count in zip(rows, counts, strict=True):
            touched, held = np.unique(row, return_counts=True)
            k = len(touched)
            if k > 1:
                grid = np.ix_(touched, touched)
                if kind == "all_to_all":
                    found[grid] += count * size_bytes * np.outer(held, held)
                elif kind == "domain_all_to_all":
                    found[grid] += count * size_bytes * copies(family, row)
                else:
                    each = (2 if kind == "all_reduce" else 1) * size_bytes / k
                    found[grid] += count * each
    np.fill_diagonal(found, 0.0)
    return found + found.T
