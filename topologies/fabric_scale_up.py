"""Inside a supernode: rates of its tiers, its vertices and its links."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from planner.fabric import Tier
from topologies.fabric_direct import grid_links, link_load, mean_axis_hops
from topologies.fabric_levels import domains_of, usable_index
from topologies.fabric_links import link
from topologies.fabric_seats import Seats, sums
from topologies.fabric_spec import SupernodeSpec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Links = Iterator[tuple[str, str, dict[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpRates:
    """Rates of one tier inside supernodes; the fields are those of ``Tier``."""

    bytes_per_s: float
    shared_bytes_per_s: float
    pair_bytes_per_s: float
    latency_s: float


def supernode_rates(spec: SupernodeSpec) -> ScaleUpRates:
    """Return what a GPU has towards its supernode, beyond its board where that is a domain.

    Switched: every pair at full rate. Full mesh: a pair has one link of total / (size - 1). 2D
    mesh: the links across boards, and for a GPU at another place of another board one hop more on
    the board. Torus: see ``fabric_direct``. Rates are a full supernode's.
    """
    total = spec.bytes_per_s
    if spec.kind == "full_mesh":
        return ScaleUpRates(
            bytes_per_s=total,
            shared_bytes_per_s=total,
            pair_bytes_per_s=spec.pair_bytes_per_s,
            latency_s=spec.latency_s,
        )
    if spec.kind == "mesh_2d":
        board = spec.board_gpus
        hops = (board - 1) / board
        return ScaleUpRates(
            bytes_per_s=total,
            shared_bytes_per_s=min(total, spec.board_bytes_per_s / hops) if hops else total,
            pair_bytes_per_s=min(spec.across_pair_bytes_per_s, spec.board_pair_bytes_per_s),
            latency_s=spec.latency_s + hops * spec.board_latency_s,
        )
    if spec.kind == "torus":
        return _torus_rates(spec)
    slowest = min(total, spec.board_bytes_per_s) if spec.has_boards else total
    return ScaleUpRates(
        bytes_per_s=slowest,
        shared_bytes_per_s=slowest,
        pair_bytes_per_s=slowest,
        latency_s=spec.latency_s,
    )


def _torus_rates(spec: SupernodeSpec) -> ScaleUpRates:
    axis, gpus = spec.axis_bytes_per_s, prod(spec.dims)
    load = max(link_load(n, spec.wraps) for n in spec.dims) * gpus / max(1, gpus - 1)
    alone = axis * sum(min(2, n - 1) for n in spec.dims) or axis
    hops = sum(mean_axis_hops(n, spec.wraps and n > 2) for n in spec.dims)
    return ScaleUpRates(
        bytes_per_s=alone,
        shared_bytes_per_s=min(alone, axis / load) if load else alone,
        pair_bytes_per_s=axis,
        latency_s=max(1.0, hops * gpus / max(1, gpus - 1)) * spec.latency_s,
    )


def board_rates(spec: SupernodeSpec) -> ScaleUpRates:
    """Return what a GPU has towards its own board, where that is a domain."""
    mesh = spec.kind == "mesh_2d"
    return ScaleUpRates(
        bytes_per_s=spec.board_bytes_per_s,
        shared_bytes_per_s=spec.board_bytes_per_s,
        pair_bytes_per_s=spec.board_pair_bytes_per_s if mesh else spec.board_bytes_per_s,
        latency_s=spec.board_latency_s,
    )


def scale_up_tiers(
    spec: SupernodeSpec, seats: Seats, uplinks: Floats, board_uplinks: Floats
) -> list[Tier]:
    """Return the supernode tier, and the board tier inside it where boards are domains.

    Args:
        spec: the scale-up domains.
        seats: where each GPU sits.
        uplinks: capacity that leaves each supernode; shape (supernodes,) [bytes/s].
        board_uplinks: what the network alone carries out of each board; shape (boards,) [bytes/s].
    """
    index = usable_index(seats)
    rates = supernode_rates(spec)
    supernodes = Tier(
        name="supernode",
        domains=domains_of(seats.supernode_names, seats.supernode, seats, uplinks, index),
        bytes_per_s=rates.bytes_per_s,
        shared_bytes_per_s=rates.shared_bytes_per_s,
        latency_s=rates.latency_s,
        in_network_reduction=spec.in_network_reduction,
        pair_bytes_per_s=rates.pair_bytes_per_s,
    )
    if not spec.has_boards:
        return [supernodes]
    inside = board_rates(spec)
    out = board_uplinks + _across_boards_bytes_per_s(spec, seats)
    domains = domains_of(seats.board_names, seats.board, seats, out, index)
    boards = Tier(
        name="board",
        domains=domains,
        bytes_per_s=inside.bytes_per_s,
        shared_bytes_per_s=inside.shared_bytes_per_s,
        latency_s=inside.latency_s,
        in_network_reduction=spec.in_network_reduction,
        pair_bytes_per_s=inside.pair_bytes_per_s,
    )
    return [boards, supernodes]


def _across_boards_bytes_per_s(spec: SupernodeSpec, seats: Seats) -> Floats:
    """Return what the scale-up links from each board to the rest of its supernode carry."""
    count, supernodes = len(seats.board_names), len(seats.supernode_names)
    if spec.kind == "switched":
        of_board = np.zeros(count, np.int64)
        of_board[seats.board] = seats.supernode
        working = sums(seats.board, seats.usable, count) > 0
        boards = sums(of_board, working, supernodes)
        rate = min(spec.bytes_per_s, spec.board_bytes_per_s)
        across = np.where(boards[seats.supernode] > 1, rate, 0.0)
    else:
        column = seats.supernode * spec.board_gpus + seats.place % spec.board_gpus
        peers = sums(column, seats.usable, supernodes * spec.board_gpus)[column] - seats.usable
        across = peers * spec.across_pair_bytes_per_s
    return sums(seats.board, seats.usable * across, count)


def add_supernodes(graph: Any, spec: SupernodeSpec, seats: Seats, scale_up_tier: str) -> None:
    """Add the usable GPUs, the scale-up switches and the links between them."""
    names, numbers = seats.names("gpu"), seats.numbers
    supernode, board, place = (x.tolist() for x in (seats.supernode, seats.board, seats.place))
    graph.add_nodes_from(
        (
            names[g],
            {"kind": "gpu", "supernode": supernode[g], "board": board[g], "place": place[g]},
        )
        for g in numbers.tolist()
    )
    of_supernode = _members(seats.supernode[numbers].tolist(), numbers.tolist())
    if spec.kind == "switched":
        _add_switched(graph, spec, seats, names, of_supernode)
    elif spec.kind == "full_mesh":
        one = link(spec.pair_bytes_per_s, spec.latency_s, scale_up_tier, _links_each(spec))
        for members in of_supernode.values():
            pairs = combinations([names[g] for g in members], 2)
            graph.add_edges_from((a, b, one) for a, b in pairs)
    elif spec.kind == "mesh_2d":
        _add_mesh_2d(graph, spec, seats, names)
    else:
        _add_torus(graph, spec, seats, names, scale_up_tier)


def _members(owners: list[int], numbers: list[int]) -> dict[int, list[int]]:
    groups: dict[int, list[int]] = {}
    for owner, number in zip(owners, numbers, strict=True):
        groups.setdefault(owner, []).append(number)
    return groups


def _links_each(spec: SupernodeSpec) -> int:
    return max(1, spec.links // max(1, spec.size - 1))


def _add_switched(
    graph: Any,
    spec: SupernodeSpec,
    seats: Seats,
    names: list[str],
    of_supernode: dict[int, list[int]],
) -> None:
    """Add one vertex for the parallel switches of each supernode, and of each board if any.

    Every GPU is wired alike to all switches of a level, so that one vertex with ``units`` of them
    carries the same load as each of them with its share.
    """
    graph.add_nodes_from(
        (f"{seats.supernode_names[s]}.switch", _scale_up_switch(s, spec.switches))
        for s in of_supernode
    )
    if not spec.has_boards:
        half = link(spec.bytes_per_s, spec.latency_s / 2, "supernode", spec.links)
        graph.add_edges_from(
            (names[g], f"{seats.supernode_names[s]}.switch", half)
            for s, members in of_supernode.items()
            for g in members
        )
        return
    numbers = seats.numbers
    owner = seats.supernode.tolist()
    half = link(spec.board_bytes_per_s, spec.board_latency_s / 2, "board", spec.links)
    rest_s = (spec.latency_s - spec.board_latency_s) / 2
    for b, members in _members(seats.board[numbers].tolist(), numbers.tolist()).items():
        hub, s = f"{seats.board_names[b]}.switch", owner[members[0]]
        graph.add_node(hub, **_scale_up_switch(s, max(1, spec.board_switches)))
        graph.add_edges_from((names[g], hub, half) for g in members)
        up = link(len(members) * spec.bytes_per_s, rest_s, "supernode", len(members) * spec.links)
        graph.add_edge(hub, f"{seats.supernode_names[s]}.switch", **up)


def _scale_up_switch(supernode: int, units: int) -> dict[str, Any]:
    return {"kind": "scale_up_switch", "supernode": supernode, "units": units}


def _add_mesh_2d(graph: Any, spec: SupernodeSpec, seats: Seats, names: list[str]) -> None:
    """Add a link for every pair of a board, and for every pair of equal places across boards."""
    numbers = seats.numbers.tolist()
    inner = "board" if spec.has_boards else "supernode"
    on_board = link(spec.board_pair_bytes_per_s, spec.board_latency_s, inner, 1)
    across = link(spec.across_pair_bytes_per_s, spec.latency_s, "supernode", 1)
    column = seats.supernode * spec.board_gpus + seats.place % spec.board_gpus
    for owner, one in ((seats.board, on_board), (column, across)):
        for members in _members(owner[seats.numbers].tolist(), numbers).values():
            pairs = combinations([names[g] for g in members], 2)
            graph.add_edges_from((a, b, one) for a, b in pairs)


def _add_torus(graph: Any, spec: SupernodeSpec, seats: Seats, names: list[str], tier: str) -> None:
    """Add the neighbour links of each box."""
    one = link(spec.axis_bytes_per_s, spec.latency_s, tier, 1)
    a, b = grid_links(spec.dims, [spec.wraps] * len(spec.dims))
    for s in range(len(seats.supernode_names)):
        base = s * spec.size
        both = seats.usable[base + a] & seats.usable[base + b]
        graph.add_edges_from(
            (names[base + i], names[base + j], one)
            for i, j in zip(a[both].tolist(), b[both].tolist(), strict=True)
        )
