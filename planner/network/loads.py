"""What the families of a step put on each link when their flows are routed over the graph.

Families that send the same way are routed once, for a payload of one byte, and scaled. Flows
between GPUs that hang on the network alike are routed as one; see ``attached.py``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.network.flows import PASSES, Flows, group_flows, in_passing_order, mesh_flows
from planner.network.routes import Routes, needs_relays, route
from planner.network.sharing import link_load

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from planner.network.attached import Attached
    from planner.network.wiring import Wiring
    from planner.traffic import Family

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

_ROUTED_AT_ONCE = 32_768
"""Pairs of attachments routed together: each fans out over the spines, 0.1 GB in all."""

_REMEMBERED_NUMBERS = 4_000_000
"""Of loads that are kept for a step on the same seats: 32 MB, 14 layouts on 1,024 GPUs."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Active:
    """A family in one phase.

    Args:
        family: what runs.
        members: ranks of each group, array [groups, members].
        phase: when it runs.
        stream: families of one stream take turns, those of different streams run together.
    """

    family: Family
    members: Ints
    phase: str
    stream: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Load:
    """What one execution of a family puts on each link.

    Args:
        load_bytes: array [links] [bytes].
        flows: that share each link; array [links] [1].
        alone_s: busy time of the fullest link [s].
        link: that one.
    """

    load_bytes: Floats
    flows: Floats
    alone_s: float
    link: int


def loads_of(wiring: Wiring, active: Sequence[Active], seats: Ints) -> list[Load]:
    """Return each family's load; families that send the same way are routed once.

    Args:
        wiring: the cluster's links.
        active: families with their phase and stream.
        seats: index of each rank's GPU; array [ranks].
    """
    unit: dict[tuple[str, str, str, bool], tuple[Floats, Floats]] = {}
    keys = []
    for one in active:
        family = one.family
        sharded = family.collective in PASSES
        collective = "all_gather" if sharded else family.collective
        phase = family.phase if collective == "chain" else ""
        key = (family.part, collective, phase, family.ends_only)
        keys.append(key)
        if key not in unit:
            unit[key] = _once(wiring, one, collective, key, seats)
    found = []
    for one, key in zip(active, keys, strict=True):
        load, flows_on = unit[key]
        scaled = load * one.family.payload_bytes * PASSES.get(one.family.collective, 1)
        busy = scaled / wiring.reached_bytes_per_s
        worst = int(np.argmax(busy))
        found.append(
            Load(load_bytes=scaled, flows=flows_on, alone_s=float(busy[worst]), link=worst)
        )
    return found


def _once(
    wiring: Wiring, one: Active, collective: str, way: Hashable, seats: Ints
) -> tuple[Floats, Floats]:
    """Return what a family's flows of one byte put on each link, routed once for its seats.

    Routes do not depend on what links reach: a step on the same seats under another network, or
    with other payloads, asks for the same.
    """
    family = one.family
    members = (one.members.shape, one.members.tobytes())
    key = (way, family.experts, family.top_k, members, seats.tobytes())
    if key not in wiring.routed:
        sharded = collective == "all_gather"
        meshed = meshed_flows(wiring, seats[one.members]) if sharded else None
        flows = meshed or group_flows(
            collective, 1.0, seats[in_passing_order(family, one.members)], wiring.homes,
            experts=family.experts, top_k=family.top_k,
        )  # fmt: skip
        while len(wiring.routed) * 2 * len(wiring.links.tails) > _REMEMBERED_NUMBERS:
            del wiring.routed[next(iter(wiring.routed))]
        wiring.routed[key] = unit_load(wiring, flows)
    return wiring.routed[key]


def meshed_flows(wiring: Wiring, groups: Ints) -> Flows | None:
    """Return the flows of one pass over one byte by groups whose GPUs are linked directly.

    None where they are not: then rings lead through switches, as in ``flows.group_flows``.

    Args:
        wiring: the cluster's links.
        groups: GPUs of each group, array [groups, members].
    """
    if not len(wiring.gpu_links) or groups.shape[1] < 2:
        return None
    return mesh_flows(1.0, groups, wiring.homes, wiring.gpu_links)


def unit_load(wiring: Wiring, flows: Flows) -> tuple[Floats, Floats]:
    """Return what *flows* put on each link, in bytes and in flows; arrays [links].

    Flows between GPUs that hang on the network alike are routed as one; see ``attached.py``.
    """
    none = np.zeros(len(wiring.links.tails))
    if not len(flows):
        return none, none
    known, attached = wiring.known, wiring.attached
    sources, targets = wiring.vertices[flows.sources], wiring.vertices[flows.targets]
    if attached is None or known is None or needs_relays(wiring.links, known, sources, targets):
        return _routed_load(wiring, flows)
    far = attached.island[flows.sources] != attached.island[flows.targets]
    near_load, near_flows = (
        _routed_load(wiring, _some(flows, ~far)) if not far.all() else (none,) * 2
    )
    if not far.any():
        return near_load, near_flows
    far_load, far_flows = _between_islands(wiring, attached, _some(flows, far))
    return near_load + far_load, near_flows + far_flows


def _some(flows: Flows, which: NDArray[np.bool_]) -> Flows:
    return Flows(
        sources=flows.sources[which],
        targets=flows.targets[which],
        sizes_bytes=flows.sizes_bytes[which],
    )


def _routed_load(wiring: Wiring, flows: Flows) -> tuple[Floats, Floats]:
    """Return what *flows* put on each link, each routed for itself."""
    routes = route(
        wiring.links,
        wiring.vertices[flows.sources],
        wiring.vertices[flows.targets],
        known=wiring.known,
    )
    load = link_load(routes, flows.sizes_bytes)
    size = flows.sizes_bytes[0]
    if (flows.sizes_bytes == size).all():
        return load, load / size
    return load, link_load(routes, np.ones(len(flows)))


def _between_islands(wiring: Wiring, attached: Attached, flows: Flows) -> tuple[Floats, Floats]:
    """Return what *flows* that all leave their island put on each link.

    One flow stands for all between GPUs that hang on the network like its own two; the links at
    both ends are added up for every flow in its own place.
    """
    # by what hears, then by what sends: flows of one part that go the same way merge early
    key = attached.hears_like[flows.targets] * len(attached.island)
    key += attached.sends_like[flows.sources]
    _, one, pair = np.unique(key, return_index=True, return_inverse=True)
    sources, targets = flows.sources[one], flows.targets[one]
    # one GPU for all that hear alike, but of another island: routes to it merge on the way
    _, first, entered = np.unique(
        attached.hears_like[targets], return_index=True, return_inverse=True
    )
    shared = targets[first][entered]
    targets = np.where(attached.island[shared] == attached.island[sources], targets, shared)
    load_bytes, counts = np.zeros((2, len(wiring.links.tails)))
    pair_bytes: Floats = np.bincount(pair, flows.sizes_bytes, len(one)).astype(np.float64)
    pair_flows: Floats = np.bincount(pair, minlength=len(one)).astype(np.float64)
    places = attached.outward.shape[1] + attached.inward.shape[1]
    shares = np.empty((len(one), places))
    for start in range(0, len(one), _ROUTED_AT_ONCE):
        part = slice(start, start + _ROUTED_AT_ONCE)
        routes = route(
            wiring.links,
            wiring.vertices[sources[part]],
            wiring.vertices[targets[part]],
            known=wiring.known,
        )
        load_bytes += link_load(routes, pair_bytes[part])
        counts += link_load(routes, pair_flows[part])
        shares[part] = _place_shares(routes, attached.place, places)
    ends = attached.place >= 0
    load_bytes[ends] = counts[ends] = 0.0
    for place in range(places):
        left = place - attached.outward.shape[1]
        links = (
            attached.outward[flows.sources, place]
            if left < 0
            else attached.inward[flows.targets, left]
        )
        share = shares[pair, place]
        taken = (links >= 0) & (share > 0)
        share, links = share[taken], links[taken]
        load_bytes += np.bincount(links, share * flows.sizes_bytes[taken], len(load_bytes))
        counts += np.bincount(links, share, len(counts))
    return load_bytes, counts


def _place_shares(routes: Routes, place: Ints, places: int) -> Floats:
    """Return the part of each flow that takes a link of each place; array [flows, places].

    Args:
        routes: of flows that all leave their vertex.
        place: of each link, -1 where it has none; array [links].
        places: there are [1].
    """
    ahead = np.zeros((0, places))
    for hop in reversed(routes.hops):
        taken = np.zeros((len(hop.link), places))
        on = hop.onward >= 0
        if on.any():
            taken[on] = ahead[hop.onward[on]]
        placed = np.flatnonzero(place[hop.link] >= 0)
        taken[placed, place[hop.link[placed]]] += 1.0
        taken *= hop.share[:, None]
        order = np.argsort(hop.origin, kind="stable")
        ahead = np.add.reduceat(taken[order], np.searchsorted(hop.origin[order], range(hop.states)))
    return ahead[routes.flow_state]
