"""A plan as the document of ``planner place --json``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from cli.inputs_document import inputs_document
from cli.place_extras import Extras, extra_inputs, extras_document
from cli.plan_answers import answers_document
from cli.plan_stages import bill_document, stage_memory_document, stages_document
from cli.planner_output import document
from cli.planner_plan import Plan
from planner.collectives.cost import LIBRARY, cheapest
from planner.collectives.links import links_of
from planner.layout import layout_values
from planner.search.defaults import Choice
from planner.search.given import spelled_layout
from planner.search.placed import placed_spreads
from planner.steptime.document import memory_document, step_document
from planner.steptime.spread import Spreads
from planner.traffic import Family


def place_document(
    plan: Plan, *, time_limit_s: float, with_groups: bool = False, more: Extras | None = None
) -> dict[str, Any]:
    """Return the document of *plan*.

    Args:
        plan: a seated layout.
        time_limit_s: what the solver was given [s].
        with_groups: also list the ranks of every group.
        more: rules, reasons, second answers, a free list.
    """
    placement, layout = plan.placement, plan.inputs.layout
    inputs = inputs_document(
        plan.inputs,
        seed=placement.seed,
        tier=placement.tier,
        objective=placement.objective,
        tiers=placement.ways,
        time_limit_s=time_limit_s,
        reductions=plan.reductions,
        **({} if more is None else extra_inputs(plan, more)),
    )
    axes = [{"name": a.name, "size": a.size, "stride": a.stride} for a in layout.axes]
    spreads = placed_spreads(layout, placement.rank_to_gpu, plan.inputs.fabric)
    body = {
        "axes": axes,
        "choice": choice_document(plan.inputs.choice, plan.inputs.given),
        "traffic": [
            _traffic(plan, family, spreads, with_groups=with_groups) for family in plan.families
        ],
        "placement": {
            "rank_to_gpu": placement.rank_to_gpu,
            "gpus": [plan.inputs.fabric.gpus[gpu] for gpu in placement.rank_to_gpu],
            "domains": placement.domains,
        },
        "cut": {
            "tier": placement.tier,
            "objective": placement.objective,
            "objective_bytes": placement.objective_bytes,
            "lower_bound_bytes": placement.lower_bound_bytes,
            "gap": placement.gap,
            "proof": placement.proof,
            **({"interrupted": True} if placement.interrupted else {}),
            "method": placement.method,
            "by_family": placement.by_family,
            "checked_bytes": placement.checked_bytes,
            **_objective_document(plan),
        },
        "tiers": [{**asdict(cut), "gap": cut.gap} for cut in placement.tiers],
        "tier_order": {
            "tiers": placement.ways,
            "order": placement.tier_order,
            "proved": placement.tiers_proved,
            "weighted_s": placement.weighted_s,
            "weighted_bound_s": placement.weighted_bound_s,
        },
        "baselines": [
            {
                "name": baseline.name,
                "cut_bytes": baseline.cut_bytes,
                "step_s": plan.baseline_steps_s[baseline.name],
            }
            for baseline in placement.baselines
        ],
        "incast": plan.incast,
        "step": step_document(plan.step),
        "stages": stages_document(layout, plan.step),
        "answers": answers_document(plan.inputs, spreads, plan.step),
        "memory": {
            **memory_document(plan.memory),
            "by_stage": stage_memory_document(plan.inputs),
        },
        "bill": bill_document(plan.inputs.fabric, placement.rank_to_gpu),
        **({} if more is None else extras_document(plan, more)),
    }
    return document("place", inputs, body)


def _objective_document(plan: Plan) -> Mapping[str, Any]:
    """Return what the cut says besides bytes, of the objectives ``bottleneck`` and ``time``."""
    placement, exposed = plan.placement, plan.exposed
    if placement.objective == "total":
        return {}
    if exposed is None:
        return {
            "objective_s": placement.objective_s,
            "lower_bound_s": placement.lower_bound_s,
        }
    return {
        "objective_s": placement.objective_s,
        "lower_bound_s": exposed.least_s,
        "exposed_bytes": placement.exposed_bytes,
        "exposed_bound_bytes": placement.exposed_bound_bytes,
        "exposed_share": exposed.shares,
        "fixed_point": exposed.fixed_point,
        "kept_round": exposed.kept,
        "rounds": [
            {
                "origin": one.origin,
                "share": one.shares,
                "step_s": one.step_s,
                "cut_bytes": one.cut_bytes,
            }
            for one in exposed.rounds
        ],
    }


def choice_document(choice: Choice, given: tuple[str, ...]) -> Mapping[str, Any]:
    """Return how the layout was chosen."""
    return {
        "given": given,
        "layouts_considered": choice.considered,
        "layouts_feasible": choice.feasible,
        "rejected": choice.rejected,
        "estimated_step_s": choice.step_s,
        "seated_step_s": choice.seated_s or None,
        "layouts_seated": choice.seated,
        "runner_up": None if choice.runner_up is None else spelled_layout(choice.runner_up),
        "runner_up_step_s": choice.runner_up_step_s or None,
        "take": choice.take,
        "passed_over": None if choice.passed_over is None else layout_values(choice.passed_over),
        "passed_over_step_s": choice.passed_over_s or None,
    }


def _walk(plan: Plan, family: Family, spreads: Spreads) -> str:
    """Return the cheapest walk of a family's worst group, of those a stock library takes.

    By ``planner.collectives`` at nominal rates.
    """
    collective = family.collective
    if collective == "domain_all_to_all":
        return "one copy to each domain, forwarded inside"
    found = cheapest(
        collective,
        family.payload_bytes,
        getattr(spreads, family.part),
        links_of(plan.inputs.fabric),
        available=LIBRARY.get(collective),
    )
    return str(found.name)


def _traffic(
    plan: Plan, family: Family, spreads: Spreads, *, with_groups: bool
) -> Mapping[str, Any]:
    layout = plan.inputs.layout
    entry: dict[str, Any] = {
        "family": family.name,
        "digit": family.digit,
        "axes": [layout.axes[i].name for i in family.axes],
        "group_size": family.group_size,
        "groups": family.groups,
        "collective": family.collective,
        "payload_bytes": family.payload_bytes,
        "times_per_step": family.times_per_step,
        "phase": family.phase,
        "ends_only": family.ends_only,
        "walk": _walk(plan, family, spreads),
    }
    if family.along:
        entry["part"] = family.along
    if family.experts:
        entry |= {"experts": family.experts, "top_k": family.top_k}
    if with_groups:
        entry["members"] = family.members(layout)
    return entry
