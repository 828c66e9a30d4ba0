"""How GPUs hang on the network: flows between GPUs that hang on it alike are routed as one.

A GPU has some NICs, and each NIC some links to switches: one, two planes, several rails. Two GPUs
whose NICs lead to the same switches at the same costs are *alike*: what one of them sends to a
scale-up island other than its own leaves its links in the parts in which the other's leaves its
own, and takes the same ways from there on; and so for what arrives. So of all flows between GPUs
alike one is routed, with the sizes of all added up, and each flow's own links at both ends are
added up apart: the same loads, exactly, from as many routes as there are pairs of attachments
instead of GPUs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from planner.network.reach import Links

    Ints = NDArray[np.int64]

    Beyond = tuple[tuple[int, int], ...]  # switches behind a NIC, with the costs to them
    Shape = tuple[tuple[int, Beyond], ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Attached:
    """The ways of each GPU into the network and out of it.

    Args:
        outward: links GPU to NIC and NIC to switch, in an order that is the same for GPUs alike,
            -1 where there are no more; array [gpus, places].
        inward: links NIC to GPU and switch to NIC, the same.
        sends_like: GPUs with the same number send alike; array [gpus].
        hears_like: GPUs with the same number hear alike; array [gpus].
        island: GPUs joined by scale-up links have the same number; array [gpus].
        place: of each link in the rows that hold it, behind those of *outward* for *inward*, -1
            where no row does; array [links].
    """

    outward: Ints
    inward: Ints
    sends_like: Ints
    hears_like: Ints
    island: Ints
    place: Ints


def attached_of(links: Links, vertices: Ints) -> Attached | None:
    """Return how GPUs hang on the network.

    None where NICs are cabled to each other, where no GPU has a NIC, where scale-up switches lead
    to more than GPUs and scale-up switches, or where GPUs that share a NIC number it differently.

    Args:
        links: of the whole graph.
        vertices: vertex of each GPU; array [gpus].
    """
    number = np.full(len(links.vertices), -1)
    number[vertices] = np.arange(len(vertices))
    if (links.is_nic[links.tails] & links.is_nic[links.heads]).any():
        return None
    island = _islands(links, number, len(vertices))
    if island is None:
        return None
    out = _ends(links, number, links.tails, links.heads, len(vertices))
    into = _ends(links, number, links.heads, links.tails, len(vertices))
    if not out.rows.shape[1]:
        return None
    place = np.full(len(links.tails), -1)
    first = 0
    for rows in (out.rows, into.rows):
        held = rows >= 0
        places = np.broadcast_to(first + np.arange(rows.shape[1]), rows.shape)
        place[rows[held]] = places[held]
        if (place[rows[held]] != places[held]).any():
            return None
        first += rows.shape[1]
    return Attached(
        outward=out.rows,
        inward=into.rows,
        sends_like=out.alike,
        hears_like=into.alike,
        island=island,
        place=place,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Ends:
    """The links between GPUs and switches in one direction: rows, and which GPUs are alike."""

    rows: Ints
    alike: Ints


def _ends(links: Links, number: Ints, near: Ints, far: Ints, gpus: int) -> _Ends:
    """Return the links over NICs, *near* their end at the GPU."""
    at_gpu = np.flatnonzero((number[near] >= 0) & links.is_nic[far])
    at_switch = np.flatnonzero(links.is_nic[near] & ~links.is_gpu[far])
    beyond: dict[int, list[tuple[int, int, int]]] = {}
    for link in at_switch.tolist():
        end = (int(far[link]), int(links.cost[link]), link)
        beyond.setdefault(int(near[link]), []).append(end)
    of_nic = {nic: sorted(ends) for nic, ends in beyond.items()}
    nics: list[list[tuple[int, Beyond, int, int]]] = [[] for _ in range(gpus)]
    for link in at_gpu.tolist():
        nic = int(far[link])
        shape = tuple((switch, cost) for switch, cost, _ in of_nic.get(nic, ()))
        nics[number[near[link]]].append((int(links.cost[link]), shape, nic, link))
    shapes: dict[Shape, int] = {}
    alike, rows = [], []
    for own in nics:
        own.sort()
        whole: Shape = tuple((cost, ends) for cost, ends, _, _ in own)
        alike.append(shapes.setdefault(whole, len(shapes)))
        row = [link for *_, link in own]
        rows.append(row + [link for *_, nic, _ in own for *_, link in of_nic.get(nic, ())])
    return _Ends(rows=_padded(rows), alike=np.array(alike, np.int64))


def _padded(rows: Sequence[Sequence[int]]) -> Ints:
    """Return *rows* as an array, -1 behind those that are shorter."""
    padded = np.full((len(rows), max(map(len, rows))), -1, np.int64)
    for i, row in enumerate(rows):
        padded[i, : len(row)] = row
    return padded


def _islands(links: Links, number: Ints, gpus: int) -> Ints | None:
    """Return the island of each GPU; None where what GPUs are linked to leads to the network.

    The least number of a GPU spreads over scale-up links until nothing changes.
    """
    inside = ~links.is_nic[links.tails] & ~links.is_nic[links.heads]
    tails, heads = links.tails[inside], links.heads[inside]
    scale_up = np.zeros(len(links.vertices), bool)
    grown = number >= 0
    while (grown != scale_up).any():
        scale_up = grown.copy()
        grown[heads[scale_up[tails]]] = True
    to_nics = links.is_nic[links.heads] & (number[links.tails] < 0)
    from_nics = links.is_nic[links.tails] & (number[links.heads] < 0)
    if scale_up[links.tails[to_nics]].any() or scale_up[links.heads[from_nics]].any():
        return None
    least = np.where(number >= 0, number, gpus)
    while True:
        spread = least.copy()
        np.minimum.at(spread, heads, least[tails])
        np.minimum.at(spread, tails, least[heads])
        if (spread == least).all():
            island: Ints = np.empty(gpus, np.int64)
            island[number[number >= 0]] = least[number >= 0]
            return island
        least = spread
