"""How a step answers to the machine: its elasticity, and what a doubling would gain.

The elasticity of T to a rate x is d ln T / d ln x: -0.3 says that 1 % more of x makes the step
0.3 % shorter. It is taken by a central difference of 1 % on the model itself, so that a hidden
collective has an elasticity of 0 until its slack is used up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import log

import numpy as np

from planner.collectives.links import LinkNumbers, TierNumbers
from planner.fabric import Accelerator
from planner.model import ModelSpec
from planner.steptime.columns import LayoutColumns, Values
from planner.steptime.rates import Efficiency, default_efficiency
from planner.steptime.spread import Spreads
from planner.steptime.step import Step, step_columns

NUDGE_SHARE = 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One layout on one machine: all that a step is predicted from.

    Args:
        model, columns, accelerator, links, spreads, efficiency: as of ``step_columns``.
        in_flight_binds: the NIC's rate is set by its transactions in flight, not by its line.
        slowdown: as of ``step_columns``; it stays when the machine changes.
    """

    model: ModelSpec
    columns: LayoutColumns
    accelerator: Accelerator
    links: LinkNumbers
    spreads: Spreads
    efficiency: Efficiency | None = None
    in_flight_binds: bool = False
    slowdown: Mapping[str, Values] | None = None

    def step(self) -> Step:
        """Return the predicted step."""
        return step_columns(
            self.model, self.columns, accelerator=self.accelerator, links=self.links,
            spreads=self.spreads, efficiency=self.efficiency, slowdown=self.slowdown,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """How the step answers to one property of the machine.

    Args:
        name: ``flop_rate``, ``memory_bandwidth``, ``scale_up_bandwidth``, ``scale_up_latency``,
            ``nic_bandwidth``, ``nic_latency``, ``in_flight``, ``oversubscription``,
            ``launch_time``.
        elasticity_ratio: d ln step / d ln property [1].
        doubled_s: the step with twice as much of it [s].
        gain_s: what the better direction (twice a rate, half a time) saves [s].
    """

    name: str
    elasticity_ratio: float
    doubled_s: float
    gain_s: float


Change = Callable[[Case, float], Case]
TierChange = Callable[[TierNumbers, float], TierNumbers]


def _flop_rate(case: Case, factor: float) -> Case:
    peaks = {p: v * factor for p, v in case.accelerator.peak_flops_per_s.items()}
    return replace(case, accelerator=replace(case.accelerator, peak_flops_per_s=peaks))


def _memory_bandwidth(case: Case, factor: float) -> Case:
    rate = case.accelerator.memory_bytes_per_s * factor
    return replace(case, accelerator=replace(case.accelerator, memory_bytes_per_s=rate))


def _launch_time(case: Case, factor: float) -> Case:
    usual = default_efficiency(case.accelerator)
    base = case.efficiency or usual
    hosts = {stack: v * factor for stack, v in {**usual.host_s, **base.host_s}.items()}
    return replace(case, efficiency=replace(base, host_s=hosts))


def _inside(case: Case, tier: TierNumbers) -> Case:
    return replace(case, links=replace(case.links, tiers=(tier, *case.links.outer)))


def _outside(case: Case, tiers: Iterable[TierNumbers]) -> Case:
    return replace(case, links=replace(case.links, tiers=(case.links.inside, *tiers)))


def _wider(tier: TierNumbers, factor: float) -> TierNumbers:
    return replace(
        tier,
        bytes_per_s=np.multiply(tier.bytes_per_s, factor),
        shared_bytes_per_s=np.multiply(tier.shared_bytes_per_s, factor),
        pair_bytes_per_s=np.multiply(tier.pair_bytes_per_s, factor),
    )


def _later(tier: TierNumbers, factor: float) -> TierNumbers:
    return replace(tier, latency_s=np.multiply(tier.latency_s, factor))


def _more_crowded(tier: TierNumbers, factor: float) -> TierNumbers:
    if not tier.has_switch_links:
        return tier
    return replace(tier, shared_bytes_per_s=np.divide(tier.shared_bytes_per_s, factor))


def _each(change: TierChange) -> Change:
    """Return the change of all tiers outside the supernode."""
    return lambda case, factor: _outside(case, (change(t, factor) for t in case.links.outer))


def _first(change: TierChange) -> Change:
    """Return the change of the supernode's own links."""
    return lambda case, factor: _inside(case, change(case.links.inside, factor))


def _in_flight(case: Case, factor: float) -> Case:
    return _each(_wider)(case, factor) if case.in_flight_binds else case


CHANGES: dict[str, Change] = {
    "flop_rate": _flop_rate,
    "memory_bandwidth": _memory_bandwidth,
    "scale_up_bandwidth": _first(_wider),
    "scale_up_latency": _first(_later),
    "nic_bandwidth": _each(_wider),
    "nic_latency": _each(_later),
    "in_flight": _in_flight,
    "oversubscription": _each(_more_crowded),
    "launch_time": _launch_time,
}
_TIMES = ("scale_up_latency", "nic_latency", "oversubscription", "launch_time")


def sensitivities(case: Case) -> tuple[Sensitivity, ...]:
    """Return how the step of one layout answers to each property.

    First what saves or, doubled, costs most; what saves nothing comes last.
    """
    base = float(case.step().total_s)
    found = []
    for name, change in CHANGES.items():
        up = float(change(case, 1.0 + NUDGE_SHARE).step().total_s)
        # no network is undersubscribed: there is only one side
        below = 1.0 if name == "oversubscription" else 1.0 - NUDGE_SHARE
        down = float(change(case, below).step().total_s)
        better = change(case, 0.5 if name in _TIMES else 2.0).step()
        found.append(
            Sensitivity(
                name=name,
                elasticity_ratio=log(up / down) / log((1.0 + NUDGE_SHARE) / below),
                doubled_s=float(change(case, 2.0).step().total_s),
                gain_s=max(0.0, base - float(better.total_s)),
            )
        )

    def weight(one: Sensitivity) -> tuple[bool, float, str]:
        return not one.gain_s, -max(one.gain_s, abs(one.doubled_s - base)), one.name

    return tuple(sorted(found, key=weight))
