"""Contention in a step: what the families of one phase do to each other on the links they share.

Every family's flows are routed over the cluster's graph. A link's *busy time* is the bytes that a
step puts on it over what it reaches; the link with the longest busy time binds its phase: the
phase cannot be shorter. One execution alone takes the busy time of its own fullest link. Nothing
stands for oversubscription: it is what an uplink's busy time comes to.

Families of one *stream* take turns (TP, CP and EP of one layer), families of different streams
run at the same time (pipeline hops, gradients). While f and g are both active, f gets on a link
the larger of its part by flows and of what g leaves unused. With a_g and b_g the times that g and
f then take longer, and u_g the share of the phase in which g is active:

    slowdown of f = (1 - Σu + Σ u_g a_g) / (1 - Σu + Σ u_g a_g / b_g)

which is what fair sharing comes to when g comes in bursts that are short against f: with equal
parts 1 + u, against a crowd of flows 1 / (1 - u).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from planner.network.flows import PASSES, Flows, group_flows, in_passing_order, mesh_flows
from planner.network.pressure import FamilyPressure, LinkPressure, PhasePressure
from planner.network.routes import needs_relays, route
from planner.network.sharing import link_load
from planner.network.wiring import SCALE_UP_COST, Wiring

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.network.attached import Attached
    from planner.traffic import Family

    Ints = NDArray[np.int64]
    Floats = NDArray[np.float64]

_ROUTED_AT_ONCE = 32_768
"""Pairs of switches routed together: the paths of each fan out over the spines, 0.1 GB in all."""


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


def phase_pressures(
    wiring: Wiring,
    active: Sequence[Active],
    rank_to_gpu: Sequence[int],
    phase_s: Mapping[str, float],
) -> tuple[PhasePressure, ...]:
    """Return what binds in each phase of *active*, and how far its families slow each other.

    Args:
        wiring: the cluster's links.
        active: families with their phase and stream.
        rank_to_gpu: index of each rank's GPU.
        phase_s: phase to how long it lasts in a step; one that is missing is taken to last as
            long as its families need one after another [s].

    Source: fluid processor sharing; the oracle test plays the bursts one by one.
    Holds for flows that are long against a round trip, spread evenly over equal-cost paths.
    """
    loads = loads_of(wiring, active, np.asarray(rank_to_gpu, np.int64))
    phases: dict[str, list[tuple[Active, Load]]] = {}
    for one, load in zip(active, loads, strict=True):
        if load.alone_s > 0:
            phases.setdefault(one.phase, []).append((one, load))
    return tuple(
        _phase(wiring, phase, present, phase_s.get(phase)) for phase, present in phases.items()
    )


def loads_of(wiring: Wiring, active: Sequence[Active], seats: Ints) -> list[Load]:
    """Return each family's load; families that send the same way are routed once.

    Args:
        wiring: the cluster's links.
        active: families with their phase and stream.
        seats: index of each rank's GPU; array [ranks].
    """
    ways: dict[tuple[str, str, str, bool], Flows] = {}
    keys = []
    for one in active:
        family = one.family
        sharded = family.collective in PASSES
        collective = "all_gather" if sharded else family.collective
        phase = family.phase if collective == "chain" else ""
        key = (family.digit, collective, phase, family.ends_only)
        keys.append(key)
        if key not in ways:
            meshed = meshed_flows(wiring, seats[one.members]) if sharded else None
            ways[key] = meshed or group_flows(
                collective, 1.0, seats[in_passing_order(family, one.members)], wiring.homes,
                experts=family.experts, top_k=family.top_k,
            )  # fmt: skip
    unit = {key: unit_load(wiring, flows) for key, flows in ways.items()}
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

    Flows that join the same two switches are routed as one where GPUs have one way into the
    network; see ``attached.py``.
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
    far_load, far_flows = _between_switches(wiring, attached, _some(flows, far))
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


def _between_switches(wiring: Wiring, attached: Attached, flows: Flows) -> tuple[Floats, Floats]:
    """Return what *flows* that all leave their island put on each link.

    One flow between two switches stands for all of them; the links at its ends, which it has to
    itself, are added up for every flow in its own place.
    """
    vertices = len(wiring.links.vertices)
    key = attached.leaves[flows.sources] * vertices + attached.enters[flows.targets]
    _, one, pair = np.unique(key, return_index=True, return_inverse=True)
    sources, targets = flows.sources[one], flows.targets[one]
    # one GPU for each switch that is entered, but of another island: routes to it merge on the way
    _, first, entered = np.unique(attached.enters[targets], return_index=True, return_inverse=True)
    shared = targets[first][entered]
    targets = np.where(attached.island[shared] == attached.island[sources], targets, shared)
    load_bytes, counts = np.zeros((2, len(wiring.links.tails)))
    pair_bytes: Floats = np.bincount(pair, flows.sizes_bytes, len(one)).astype(np.float64)
    pair_flows: Floats = np.bincount(pair, minlength=len(one)).astype(np.float64)
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
    ends = np.concatenate([attached.outward.ravel(), attached.inward.ravel()])
    load_bytes[ends] = counts[ends] = 0.0
    taken = np.concatenate(
        [attached.outward[flows.sources], attached.inward[flows.targets]], axis=1
    )
    each_bytes = np.repeat(flows.sizes_bytes, taken.shape[1])
    load_bytes += np.bincount(taken.ravel(), each_bytes, len(load_bytes))
    counts += np.bincount(taken.ravel(), minlength=len(counts))
    return load_bytes, counts


def _phase(
    wiring: Wiring, phase: str, present: Sequence[tuple[Active, Load]], phase_s: float | None
) -> PhasePressure:
    busy_s = [one.family.times_per_step * load.alone_s for one, load in present]
    lasts_s = phase_s or sum(busy_s)
    return PhasePressure(
        phase=phase,
        phase_s=phase_s,
        links=_busiest(wiring, present, phase_s),
        families=tuple(
            FamilyPressure(
                name=one.family.name,
                digit=one.family.digit,
                stream=one.stream,
                alone_s=load.alone_s,
                busy_s=busy_s[i],
                slowdown_ratio=_slowed(wiring, i, present, busy_s, lasts_s),
                link=wiring.links.name(load.link),
            )
            for i, (one, load) in enumerate(present)
        ),
    )


def _busiest(
    wiring: Wiring, present: Sequence[tuple[Active, Load]], phase_s: float | None
) -> tuple[LinkPressure, ...]:
    """Return the busiest link of each kind, busiest first."""
    load_bytes = np.zeros(len(wiring.links.tails))
    for one, load in present:
        load_bytes += one.family.times_per_step * load.load_bytes
    busy = load_bytes / wiring.reached_bytes_per_s
    inside = wiring.links.cost == SCALE_UP_COST
    found = []
    for kind, of_kind in (("scale-up", inside), ("network", ~inside)):
        link = int(np.argmax(np.where(of_kind, busy, -1.0)))
        if not of_kind[link] or busy[link] <= 0:
            continue
        parts = {
            one.family.name: one.family.times_per_step * float(load.load_bytes[link])
            for one, load in present
            if load.load_bytes[link] > 0
        }
        found.append(
            LinkPressure(
                link=wiring.links.name(link),
                kind=kind,
                capacity_bytes_per_s=float(wiring.links.capacity_bytes_per_s[link]),
                reached_bytes_per_s=float(wiring.reached_bytes_per_s[link]),
                load_bytes=float(load_bytes[link]),
                busy_s=float(busy[link]),
                busy_share=float(busy[link] / phase_s) if phase_s else None,
                by_family_bytes=dict(sorted(parts.items(), key=lambda item: (-item[1], item[0]))),
            )
        )
    return tuple(sorted(found, key=lambda one: -one.busy_s))


def _slowed(
    wiring: Wiring,
    index: int,
    present: Sequence[tuple[Active, Load]],
    busy_s: Sequence[float],
    lasts_s: float,
) -> float:
    """Return how many times as long family *index* takes beside those of other streams."""
    one, load = present[index]
    shares, theirs, ours = [], [], []
    for other, (met, met_load) in enumerate(present):
        if met.stream == one.stream:
            continue
        shares.append(min(1.0, busy_s[other] / lasts_s))
        theirs.append(_together_s(wiring, met_load, load) / met_load.alone_s)
        ours.append(_together_s(wiring, load, met_load) / load.alone_s)
    return slowdown(shares, theirs, ours)


def _together_s(wiring: Wiring, load: Load, other: Load) -> float:
    """Return one execution of *load* while *other* is active all the time [s]."""
    used = load.load_bytes > 0
    reached = wiring.reached_bytes_per_s[used]
    part = load.flows[used] / (load.flows[used] + other.flows[used])
    unused = reached - other.load_bytes[used] / other.alone_s
    return float((load.load_bytes[used] / np.maximum(reached * part, unused)).max())


def slowdown(
    active_share: Sequence[float], other_ratio: Sequence[float], own_ratio: Sequence[float]
) -> float:
    """Return how many times as long a family takes beside families that come and go.

    Args:
        active_share: of the phase in which each of the others is active, alone, 0 to 1.
        other_ratio: times as long it takes while both are active [1].
        own_ratio: times as long this family takes then [1].

    Shares that add up to more than 1 are cut down alike: something is active always.

    >>> slowdown([0.25], [2.0], [2.0])  # an equal, active for a quarter of the time
    1.25
    >>> round(slowdown([0.25], [64 / 63], [64.0]), 3)  # one flow among 63 others
    1.332
    """
    whole = max(1.0, sum(active_share))
    active = [share / whole for share in active_share]
    idle = 1.0 - sum(active)
    lasts = idle + sum(u * a for u, a in zip(active, other_ratio, strict=True))
    served = idle + sum(u * a / b for u, a, b in zip(active, other_ratio, own_ratio, strict=True))
    return lasts / served
