"""The step of a seated layout whose families share links: routes, what binds, who slows whom.

    wire time = tier rates' time x (graph's time alone / tier rates' time) x slowdown by others

The middle factor puts the routes of this seating in the place of the tier's even share, so that
oversubscription is counted once; it is 1 where every GPU of a domain sends alike. The last one is
``planner.network.contention``'s, and more where a link would still carry more than it can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt
from types import MappingProxyType

from planner.collectives.links import links_of
from planner.fabric import Fabric
from planner.layout import Layout
from planner.model import ModelSpec
from planner.network.contention import phase_pressures
from planner.network.flows import PASSES
from planner.network.loads import Active
from planner.network.pressure import PhasePressure
from planner.network.routes import NoRouteError
from planner.network.wiring import MOST_ATTACHED_GPUS, MOST_GPUS, Wiring, wiring_of
from planner.steptime.columns import LayoutColumns, columns_of
from planner.steptime.rates import Efficiency, rates_of
from planner.steptime.spread import Spreads
from planner.steptime.step import Step, step_time
from planner.steptime.wires import Wire, Wires, all_to_all_s, gather_s, hop_s, wires_of
from planner.traffic import Family

_PHASES = ("forward", "backward", "end")
_CLOSE_SHARE = 1e-3
"""How close to the least enough a raised slowdown comes [1]: below any error of a step."""
_MOST_TIMES = 1e6
"""Where the search for it starts [1]: a phase that is still too short does not depend on it."""
_LINES = 8
"""Straight lines that are drawn to find it at most [1]; of steps in closed form four mostly do."""
NOT_ROUTED = "too many GPUs to route every flow: each family at its tier's even share"
ROUTED = (
    "shortest routes, spread evenly over equal ones; who meets whom in phases as long as alone; "
    "links shared by flow"
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Seating:
    """Where a layout sits, and on what.

    Args:
        fabric: the cluster.
        families: the traffic of one step.
        rank_to_gpu: index of each rank's GPU.
        spreads: how the groups sit on the tiers.
        wiring: of ``seated_wiring``, where several seatings are timed; None to work it out.
    """

    fabric: Fabric
    families: Sequence[Family]
    rank_to_gpu: Sequence[int]
    spreads: Spreads
    wiring: Wiring | None = None


def seated_step_time(
    model: ModelSpec, layout: Layout, seating: Seating, efficiency: Efficiency | None = None
) -> Step:
    """Return the step of *layout* on its seats, links shared by what is active together.

    The step is timed once at the tiers' rates for how long its phases last, and again with every
    digit's wire slowed; more, where a link is still busy longer than its phase, until it is not.
    Limit: a digit has one factor, the mean over its families.
    """
    fabric = seating.fabric
    links, columns = links_of(fabric), columns_of(layout)
    alone = step_time(
        model, layout, accelerator=fabric.accelerator, links=links, spreads=seating.spreads,
        efficiency=efficiency,
    )  # fmt: skip
    wiring = seating.wiring or seated_wiring(fabric, layout, efficiency)
    if wiring is None:
        return _told(alone, NOT_ROUTED)
    rates = rates_of(fabric.accelerator, columns, efficiency)
    active = active_families(layout, seating.families, columns)
    try:
        phases = phase_pressures(wiring, active, seating.rank_to_gpu, _phase_s(alone, columns))
    except NoRouteError as error:  # a GPU that no route leads to: the tiers' rates stand
        return _told(alone, f"each family at its tier's even share: {error}")
    wires = wires_of(seating.spreads, links, rates.inner_share, rates.outer_share)

    known: dict[tuple[float, ...], Step] = {}

    def slowed(slowdown: Mapping[str, float]) -> Step:
        times = tuple(slowdown.values())  # the digits are the same in all
        if times not in known:
            known[times] = step_time(
                model, layout, accelerator=fabric.accelerator, links=links,
                spreads=seating.spreads, efficiency=efficiency, slowdown=slowdown,
            )  # fmt: skip
        return known[times]

    slowdown = _slowdowns(active, phases, wires)
    for phase in phases:
        slowdown = _until_it_fits(slowdown, phase, lambda tried: _phase_s(slowed(tried), columns))
    step = slowed(slowdown)
    lasts_s = _phase_s(step, columns)
    return replace(_told(step, ROUTED), phases=tuple(_lasting(one, lasts_s) for one in phases))


def _until_it_fits(
    slowdown: Mapping[str, float],
    phase: PhasePressure,
    lasts_s: Callable[[Mapping[str, float]], Mapping[str, float]],
) -> Mapping[str, float]:
    """Return *slowdown*, raised for who is on the busiest link until *phase* lasts as long as it.

    All of them are slowed alike, by the least that is enough, to ``_CLOSE_SHARE`` of it.

    Args:
        slowdown: digit to how many times as long its bytes take [1].
        phase: what binds in it.
        lasts_s: slowdown to how long the phases last, longer with more of it [s].
    """
    if phase.phase_s is None:
        return slowdown
    digits = {one.name: one.digit for one in phase.families}
    busiest = phase.links[0]
    on_it = {digits[name] for name in busiest.by_family_bytes}

    def raised(times: float) -> Mapping[str, float]:
        return {d: by * times if d in on_it else by for d, by in slowdown.items()}

    def spare_s(times: float) -> float:
        return lasts_s(raised(times))[phase.phase] - busiest.busy_s

    if spare_s(1.0) >= 0.0 or spare_s(_MOST_TIMES) < 0.0:
        return slowdown
    return raised(_least_that_fits(spare_s))


def _least_that_fits(spare_s: Callable[[float], float]) -> float:
    """Return the least factor from 1 to ``_MOST_TIMES`` whose phase is long enough, and a hair.

    Halving tells it. What the halves are asked is mostly known from where a straight line between
    two factors, one on either side, has nothing to spare: few steps are timed.

    Args:
        spare_s: factor to how much longer its phase is than the link is busy; grows with it [s].

    >>> asked = []
    >>> least = _least_that_fits(lambda times: asked.append(times) or max(1.0, times / 2.0) - 3.0)
    >>> 6.0 <= least <= 6.0 * (1 + _CLOSE_SHARE), len(asked) < 14  # halves alone: 14
    (True, True)
    """
    short, long = (_Tried(times=one, spare_s=spare_s(one)) for one in (1.0, _MOST_TIMES))
    for _ in range(_LINES):
        if long.times <= short.times * (1.0 + _CLOSE_SHARE / _LINES):
            break
        share = short.spare_s / (short.spare_s - long.spare_s)
        times = short.times + share * (long.times - short.times)
        if not short.times < times < long.times:
            break
        found = _Tried(times=times, spare_s=spare_s(times))
        # the end that stays is told at half its distance: else one of them might stay for ever
        if found.spare_s >= 0.0:
            short, long = replace(short, spare_s=0.5 * short.spare_s), found
        else:
            short, long = found, replace(long, spare_s=0.5 * long.spare_s)
    little, enough = 1.0, _MOST_TIMES
    while enough > little * (1.0 + _CLOSE_SHARE):
        middle = sqrt(little * enough)
        known = middle <= short.times or middle >= long.times
        fits = middle >= long.times if known else spare_s(middle) >= 0.0
        little, enough = (little, middle) if fits else (middle, enough)
    return enough


@dataclass(frozen=True, slots=True, kw_only=True)
class _Tried:
    """A factor, and how much longer than the link is busy its phase is [s]."""

    times: float
    spare_s: float


def _lasting(phase: PhasePressure, lasts_s: Mapping[str, float]) -> PhasePressure:
    """Return *phase* at its length in the step that was slowed."""
    if phase.phase not in lasts_s:
        return phase
    phase_s = lasts_s[phase.phase]
    links = tuple(replace(one, busy_share=one.busy_s / phase_s) for one in phase.links)
    return replace(phase, phase_s=phase_s, links=links)


def _told(step: Step, reason: str) -> Step:
    return replace(step, assumed=MappingProxyType({**step.assumed, "shared_links": reason}))


def seated_wiring(
    fabric: Fabric, layout: Layout, efficiency: Efficiency | None = None
) -> Wiring | None:
    """Return the links of *fabric* at the shares that ``seated_step_time`` takes.

    None where it has too many GPUs to route every flow.
    """
    if len(fabric.gpus) > MOST_ATTACHED_GPUS:
        return None
    rates = rates_of(fabric.accelerator, columns_of(layout), efficiency)
    wiring = wiring_of(fabric, inner_share=rates.inner_share, outer_share=rates.outer_share)
    each_for_itself = wiring.attached is None and len(fabric.gpus) > MOST_GPUS
    return None if each_for_itself else wiring


def active_families(
    layout: Layout, families: Sequence[Family], columns: LayoutColumns
) -> tuple[Active, ...]:
    """Return *families* with when they run and what they take turns with.

    A layer's own collectives follow one another; dispatch and combine leave them where they run
    under another micro-batch. Pipeline hops run beside them unless a stage waits for them, and so
    do gradients (under the backward) and gathered parameters (under the forward) unless nothing
    overlaps them. What full recomputation repeats of a forward family is one more entry, in the
    backward.
    """
    found = []
    for family in families:
        phase, stream = family.phase, "layer"
        if family.digit in {"dp", "edp"}:
            stream = "data"
            if family.phase == "end" and columns.overlap_parameters:
                phase = "forward"
            if family.phase == "backward" and not columns.overlap_gradients:
                phase = "end"
        elif family.digit == "pp" and columns.overlap_hops:
            stream = "pipeline"
        elif family.digit in {"ep", "etp"} and columns.overlap_experts:
            stream = "experts"
        members, again = family.members(layout), family.repeats_per_step
        parts = [(family.times_per_step - again, phase), (again, "backward")]
        found += [
            Active(
                family=replace(family, times_per_step=times),
                members=members,
                phase=when,
                stream=stream,
            )
            for times, when in parts
            if times > 0
        ]
    return tuple(sorted(found, key=lambda one: _PHASES.index(one.phase)))


def _phase_s(step: Step, columns: LayoutColumns) -> Mapping[str, float]:
    """Return how long the passes last: their layers, and what shows of hops and data parallelism.

    Of the hops half are on the way forward.
    """
    micro = float(columns.micro_batches)
    gathers_s = float(step.exposed_gather_s)
    reduces_s = float(step.exposed_s["dp"]) - gathers_s
    gathered = columns.overlap_parameters or columns.zero_stage == 3
    hops_s = 0.5 * float(step.exposed_s["pp"])
    return {
        "forward": micro * float(step.stages.forward.most(columns.pp))
        + hops_s
        + gathered * gathers_s,
        "backward": micro * float(step.stages.backward.most(columns.pp))
        + hops_s
        + columns.overlap_gradients * reduces_s,
    }


def _slowdowns(
    active: Sequence[Active], phases: Sequence[PhasePressure], wires: Wires
) -> Mapping[str, float]:
    """Return each digit's factor: the mean over its families, by their time."""
    named = {(one.phase, one.family.name): one.family for one in active}
    before: dict[str, float] = {}
    after: dict[str, float] = {}
    for phase in phases:
        for one in phase.families:
            family = named[phase.phase, one.name]
            tier_s = family.times_per_step * tier_time_s(family, getattr(wires, family.part))
            before[one.digit] = before.get(one.digit, 0.0) + tier_s
            after[one.digit] = after.get(one.digit, 0.0) + one.busy_s * one.slowdown_ratio
    return {digit: after[digit] / total for digit, total in before.items() if total > 0}


def tier_time_s(family: Family, wire: Wire) -> float:
    """Return one execution of *family* at its tier's rates, start-ups left out [s]."""
    bare = replace(wire, inside_latency_s=0.0, across_latency_s=0.0, launch_s=0.0)
    if family.collective in PASSES:
        return float(PASSES[family.collective] * gather_s(family.payload_bytes, bare))
    if family.collective == "all_to_all":
        return float(all_to_all_s(family.payload_bytes, bare))
    if family.collective == "domain_all_to_all":
        return _copies_s(family, bare)
    return float(hop_s(family.payload_bytes, bare))


def _copies_s(family: Family, wire: Wire) -> float:
    """One copy to each other domain with an expert of the token, or inside it, what takes longer.

    As the flows of ``planner.network.flows``: a router's own limit of domains is left out.
    """
    members, domains = float(wire.m), float(wire.k)
    across, inside = (
        1.0
        - prod(
            max(0.0, family.experts * (1.0 - share) - i) / (family.experts - i)
            for i in range(family.top_k)
        )
        for share in (members / family.group_size, 1.0 / family.group_size)
    )
    return family.payload_bytes * max(
        (domains - 1.0) * across / float(wire.rail_bytes_per_s),
        (members - 1.0) * inside / float(wire.inside_bytes_per_s),
    )
