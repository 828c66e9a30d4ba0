"""A plan: a layout seated on a cluster, checked, timed and weighed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cli.planner_inputs import Inputs
from planner.network.incast import IncastGate, fabric_gates
from planner.network.wiring import Wiring
from planner.place import place
from planner.place.answer import Placement
from planner.search.placed import placed_spreads
from planner.steptime.memory import Memory
from planner.steptime.shared_links import Seating, seated_step_time, seated_wiring
from planner.steptime.step import Step, layout_memory
from planner.traffic import Family, step_families

DEFAULT_TIME_LIMIT_S = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A layout on a cluster.

    Args:
        inputs: what it was made from.
        families: the traffic of one step.
        placement: who sits where, what crosses, and the proof.
        step: the step of that seating.
        memory: of the fullest stage.
        baseline_steps_s: name of a baseline to its step [s].
        incast: of every tier, whether its ports stand what this seating sends at once.
    """

    inputs: Inputs
    families: tuple[Family, ...]
    placement: Placement
    step: Step
    memory: Memory
    baseline_steps_s: Mapping[str, float]
    incast: tuple[IncastGate, ...] = ()


def make_plan(
    inputs: Inputs,
    *,
    tier: str = "supernode",
    objective: str = "total",
    tiers: str = "lexicographic",
    rules: Sequence[str] = (),
    seed: int = 0,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
) -> Plan:
    """Return the plan of *inputs*; the arguments are those of ``planner.place.place``."""
    families = step_families(inputs.model, inputs.layout)
    placement = place(
        inputs.layout, families, inputs.fabric, tier=tier, objective=objective, tiers=tiers,
        rules=rules, seed=seed, time_limit_s=time_limit_s,
    )  # fmt: skip
    wiring = seated_wiring(inputs.fabric, inputs.layout, inputs.efficiency)
    return Plan(
        inputs=inputs,
        families=families,
        placement=placement,
        step=seated_step(inputs, placement.rank_to_gpu, wiring),
        memory=layout_memory(inputs.model, inputs.layout, inputs.fabric.accelerator),
        baseline_steps_s={
            baseline.name: float(seated_step(inputs, baseline.rank_to_gpu, wiring).total_s)
            for baseline in placement.baselines
        },
        incast=fabric_gates(
            inputs.fabric,
            [
                (family.name, family.collective, family.members(inputs.layout))
                for family in families
            ],
            placement.rank_to_gpu,
        ),
    )


def seated_step(inputs: Inputs, rank_to_gpu: Sequence[int], wiring: Wiring | None = None) -> Step:
    """Return the step of the layout when rank r is on GPU ``rank_to_gpu[r]``, links shared."""
    seating = Seating(
        fabric=inputs.fabric,
        families=step_families(inputs.model, inputs.layout),
        rank_to_gpu=rank_to_gpu,
        spreads=placed_spreads(inputs.layout, rank_to_gpu, inputs.fabric),
        wiring=wiring,
    )
    return seated_step_time(inputs.model, inputs.layout, seating, inputs.efficiency)
