"""A plan: a layout seated on a cluster, checked, timed and weighed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import inf
from time import monotonic

from cli.planner_inputs import Inputs
from cli.planner_options import DEFAULT_TIME_LIMIT_S
from planner.errors import InfeasibleError, InputError
from planner.network.incast import IncastGate, fabric_gates
from planner.network.wiring import Wiring
from planner.place import place
from planner.place.answer import Placement, Progress
from planner.place.interrupts import held_back
from planner.place.rings import laid
from planner.search.exposed import Exposed, place_exposed
from planner.search.least_placed import least_placed_s
from planner.search.placed import placed_spreads
from planner.steptime.memory import Memory
from planner.steptime.shared_links import Seating, seated_step_time, seated_wiring
from planner.steptime.step import Step, layout_memory
from planner.traffic import Family, step_families

_LEAST_S = 0.5  # seconds for seats though choosing the layout took all the time
_TIMED_ROUNDS = 4  # placements that share the time limit of the objective time


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
        exposed: how the objective ``time`` was pursued; None of another objective.
        reductions: how reductions are laid when their cut is counted.
        free_step_s: step in the seats without rules, where there are rules [s].
    """

    inputs: Inputs
    families: tuple[Family, ...]
    placement: Placement
    step: Step
    memory: Memory
    baseline_steps_s: Mapping[str, float]
    incast: tuple[IncastGate, ...] = ()
    exposed: Exposed | None = None
    reductions: str = "hierarchical"
    free_step_s: float | None = None


def make_plan(
    inputs: Inputs,
    *,
    tier: str = "supernode",
    objective: str = "total",
    tiers: str = "lexicographic",
    rules: Sequence[str] = (),
    reductions: str = "hierarchical",
    seed: int = 0,
    time_limit_s: float = DEFAULT_TIME_LIMIT_S,
    ends_s: float = inf,
    progress: Callable[[Progress], None] | None = None,
) -> Plan:
    """Return the plan of *inputs*; the arguments are those of ``planner.place.place``.

    *objective* may also be ``time``; *reductions* is one of ``planner.place.rings.REDUCTIONS``.
    """
    families = laid(step_families(inputs.model, inputs.layout), reductions)
    wiring = seated_wiring(inputs.fabric, inputs.layout, inputs.efficiency)

    ends_s = max(ends_s, monotonic() + _LEAST_S)

    def seat(moved: Sequence[Family], objective: str, limit_s: float) -> Placement:
        return place(
            inputs.layout, moved, inputs.fabric, tier=tier, objective=objective, tiers=tiers,
            rules=rules, seed=seed, time_limit_s=limit_s, ends_s=ends_s, progress=progress,
        )  # fmt: skip

    @cache  # greedy often seats as rank order does, and routes take most of a step's time
    def step_of(seats: tuple[int, ...]) -> Step:
        return seated_step(inputs, seats, wiring)

    exposed = None
    if objective == "time":
        _refuse_with_time(rules, tiers)
        exposed = place_exposed(
            inputs.layout,
            families,
            inputs.fabric,
            seat=lambda moved: seat(moved, "total", time_limit_s / _TIMED_ROUNDS),
            ends_s=ends_s,
            step_of=lambda seats: step_of(tuple(seats)),
            least_s=least_placed_s(
                inputs.model, inputs.layout, step_families(inputs.model, inputs.layout),
                inputs.fabric, wiring=wiring, efficiency=inputs.efficiency,
            ),
        )  # fmt: skip
        placement = exposed.placement
    else:
        placement = _told_what_was_chosen(
            inputs, rules, lambda: seat(families, objective, time_limit_s)
        )
    with held_back() as held:
        price = placement.rule_price
        plan = Plan(
            inputs=inputs,
            families=families,
            placement=placement,
            step=step_of(tuple(placement.rank_to_gpu)),
            memory=layout_memory(inputs.model, inputs.layout, inputs.fabric.accelerator),
            baseline_steps_s={
                baseline.name: float(step_of(tuple(baseline.rank_to_gpu)).total_s)
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
            exposed=exposed,
            reductions=reductions,
            free_step_s=None
            if price is None
            else float(step_of(tuple(price.free_rank_to_gpu)).total_s),
        )
    if held.interrupted:
        return replace(plan, placement=replace(placement, interrupted=True))
    return plan


def _told_what_was_chosen(
    inputs: Inputs, rules: Sequence[str], seat: Callable[[], Placement]
) -> Placement:
    """Return the placement; where rules cannot be kept, say which degrees nobody asked for."""
    try:
        return seat()
    except InfeasibleError as error:
        open_degrees = [name for name in ("tp", "cp", "ep", "dp", "pp") if name not in inputs.given]
        if not rules or not open_degrees or inputs.choice.considered == 1:
            raise
        chosen = ", ".join(f"{name} {getattr(inputs.layout, name)}" for name in open_degrees)
        options = ", ".join(f"--{name}" for name in open_degrees)
        raise InfeasibleError(
            *error.faults,
            f"{chosen} were chosen for the shortest step, without the rules: other degrees may "
            f"keep them, give {options}",
        ) from error


def _refuse_with_time(rules: Sequence[str], tiers: str) -> None:
    if rules or tiers != "lexicographic":
        raise InputError(
            "objective 'time' weighs the bytes of one tier and knows no rules: expected tiers "
            f"'lexicographic' and no rules, got {tiers!r} and {len(rules)} rules"
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
