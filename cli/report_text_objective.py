"""The sentences of a page whose placement was made for a border's time, or for the step's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.report_text_tiers import keeping
from planner.place.answer import Placement, Proof
from planner.units import format_bytes, format_share, format_time
from planner.words import plural

if TYPE_CHECKING:
    from cli.planner_plan import Plan
    from planner.search.exposed import Exposed

_HIDDEN_SHARE = 0.002  # what is shown as nearly hidden
_ROUNDS_SHOWN = 4


def objective_verdict(plan: Plan) -> str:
    """Return what was made least, in the words that begin a page."""
    placement = plan.placement
    crossing = format_bytes(placement.objective_bytes)
    tier = placement.tier
    if placement.objective == "time":
        tried = 1 if plan.exposed is None else plan.exposed.seatings
        timed = "one placement timed" if tried == 1 else f"{tried} different placements timed"
        return (
            f"{crossing} leave the {plural(tier)} in a step, placed for the shortest "
            f"step of {timed}"
        )
    took = format_time(placement.objective_s)
    if placement.proof is Proof.INCUMBENT:
        return (
            f"The busiest border of a {tier} takes {took} of a step for its part of {crossing}, of "
            f"which another placement{keeping(placement)} could save at most "
            f"{format_share(placement.gap)}"
        )
    return (
        f"The busiest border of a {tier} takes {took} of a step for its part of {crossing}, proved "
        "the least possible"
    )


def objective_proof(plan: Plan) -> str:
    """Return how far the placement is proved, and who checked it."""
    placement = plan.placement
    if placement.objective == "time" and plan.exposed is not None:
        how = _time_proof(placement, plan.exposed)
    else:
        how = _border_proof(placement)
    return (
        f"{how} Found as {placement.method}. Counted again from the cluster's graph: "
        f"{format_bytes(placement.checked_bytes)}, at least {format_bytes(_least(placement))} of "
        "which cross in every placement."
    )


def _least(placement: Placement) -> float:
    return min(placement.lower_bound_bytes, placement.objective_bytes)


def _border_proof(placement: Placement) -> str:
    if placement.objective_s == 0:
        return "Proved: nothing crosses a border, and nothing less can."
    least = f"in every placement some border takes at least {format_time(placement.lower_bound_s)}"
    if placement.proof is Proof.BOUND:
        return f"Proved: {least}, and here none takes longer; gap 0 %."
    if placement.proof is Proof.SOLVER:
        return f"Proved by the solver: {least}; gap {format_share(placement.gap)}."
    return (
        f"Not proved: {least}, here {format_time(placement.objective_s)}; gap "
        f"{format_share(placement.gap)}."
    )


def _time_proof(placement: Placement, exposed: Exposed) -> str:
    shares = ", ".join(
        f"{digit.upper()} {'nearly none' if share < _HIDDEN_SHARE else format_share(share)}"
        for digit, share in exposed.shares.items()
    )
    if placement.proof is Proof.INCUMBENT:
        least = (
            f"at these shares another placement could cross up to {format_share(placement.gap)} "
            "fewer exposed bytes, which need not make a shorter step"
        )
    else:
        least = "at these shares no placement crosses fewer exposed bytes, which is proved"
    fixed = (
        "a fixed point: placed by these shares, it exposes them again"
        if exposed.fixed_point
        else "no fixed point: placed by these shares, others come back"
    )
    return (
        f"Its step leaves exposed of each family's time: {shares}; {least}; {fixed}. "
        f"{_timed(exposed)}: {_rounds(exposed)}. {_least_step(exposed)}"
    )


def _least_step(exposed: Exposed) -> str:
    """Return how much shorter another placement's step could be at most."""
    return (
        f"No placement's step is shorter than {format_time(exposed.least_s)}: another could save "
        f"{format_share(exposed.step_gap)} at most."
    )


def _timed(exposed: Exposed) -> str:
    """Return how many answers were timed, and in how many different placements they are."""
    answers, placements = len(exposed.rounds), exposed.seatings
    if answers == placements:
        return "Timed"
    those = "one placement" if placements == 1 else f"{placements} different placements"
    return f"Timed, {answers} answers that are {those}"


def _rounds(exposed: Exposed) -> str:
    said = []
    for origin in dict.fromkeys(one.origin for one in exposed.rounds):
        steps = [one.step_s for one in exposed.rounds if one.origin == origin]
        words = {"total": "least cut", "exposed": "by exposed bytes"}.get(
            origin, "rank order" if origin == "megatron-order" else origin.replace("-", " ")
        )
        shown = ", ".join(format_time(step_s) for step_s in steps[:_ROUNDS_SHOWN])
        more = f" and {len(steps) - _ROUNDS_SHOWN} more" if len(steps) > _ROUNDS_SHOWN else ""
        said.append(f"{words} {shown}{more}")
    return "; ".join(said)
