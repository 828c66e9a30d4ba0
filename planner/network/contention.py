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
from typing import TYPE_CHECKING

import numpy as np

from planner.network.loads import Active, Load, loads_of
from planner.network.pressure import FamilyPressure, LinkPressure, PhasePressure
from planner.network.wiring import SCALE_UP_COST

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.network.wiring import Wiring


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


def _phase(
    wiring: Wiring, phase: str, present: Sequence[tuple[Active, Load]], phase_s: float | None
) -> PhasePressure:
    busy_s = [one.family.times_per_step * load.alone_s for one, load in present]
    lasts_s = phase_s or sum(busy_s)
    together_s = _together_s(wiring, present)
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
                slowdown_ratio=_slowed(i, present, busy_s, lasts_s, together_s),
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
    index: int,
    present: Sequence[tuple[Active, Load]],
    busy_s: Sequence[float],
    lasts_s: float,
    together_s: Mapping[tuple[int, int], float],
) -> float:
    """Return how many times as long family *index* takes beside those of other streams."""
    others = [other for one, other in together_s if one == index]
    return slowdown(
        [min(1.0, busy_s[other] / lasts_s) for other in others],
        [together_s[other, index] / present[other][1].alone_s for other in others],
        [together_s[index, other] / present[index][1].alone_s for other in others],
    )


def _together_s(
    wiring: Wiring, present: Sequence[tuple[Active, Load]]
) -> dict[tuple[int, int], float]:
    """Return one execution of each while one of another stream is active all the time [s]."""
    used = [load.load_bytes > 0 for _, load in present]
    found = {}
    for i, (one, load) in enumerate(present):
        for j, (other, met) in enumerate(present):
            if one.stream != other.stream:
                shared = np.flatnonzero(used[i] & used[j])
                found[i, j] = _beside_s(wiring, load, met, shared)
    return found


def _beside_s(wiring: Wiring, load: Load, other: Load, shared: NDArray[np.int64]) -> float:
    """Return one execution of *load* while *other* is active all the time [s].

    On links of its own it takes no longer than alone, and on none that is *shared* less.
    """
    reached, flows = wiring.reached_bytes_per_s[shared], load.flows[shared]
    part = flows / (flows + other.flows[shared])
    unused = reached - other.load_bytes[shared] / other.alone_s
    beside_s = load.load_bytes[shared] / np.maximum(reached * part, unused)
    return float(beside_s.max(initial=load.alone_s))


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
