"""The sentences and sums of the page: verdict, proof, what limits the step, who sits where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cli.report_text_objective import objective_verdict
from cli.report_text_tiers import keeping
from cli.report_words import of_which_peak, shorter_words
from planner.layout import PART_OF, groups_along
from planner.place.answer import Baseline, Placement, Proof
from planner.place.borders import tier_cuts
from planner.place.check import CheckedEntry, judged
from planner.search.placed import worst_spread
from planner.steptime.document import interval_s
from planner.steptime.spread import DIGITS
from planner.units import (
    format_bytes,
    format_bytes_apart,
    format_rate,
    format_share,
    format_time,
)
from planner.words import counted, format_times, plural

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cli.planner_plan import Plan
    from planner.layout import Layout
    from planner.steptime.critical_path import PathEntry

_LONGEST_RANGES = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossedBytes:
    """Bytes over the cut by digit, in the plan and in every baseline.

    Args:
        seatings: ``this plan``, then the baselines' names.
        by_digit: digit to the bytes in each seating [bytes].
        totals: of each seating [bytes].
    """

    seatings: tuple[str, ...]
    by_digit: Mapping[str, tuple[float, ...]]
    totals: tuple[float, ...]


def crossed_bytes(plan: Plan) -> CrossedBytes:
    """Return what crosses in *plan* and its baselines, counted by the independent judge."""
    placement, layout = plan.placement, plan.inputs.layout
    home = plan.inputs.fabric.domain_index(placement.tier)
    traffic = [
        CheckedEntry(
            collective=family.collective,
            payload_bytes=family.payload_bytes,
            times_per_step=family.times_per_step,
            members=family.members(layout),
            experts=family.experts,
            top_k=family.top_k,
        )
        for family in plan.families
    ]
    seatings = {"this plan": placement.rank_to_gpu}
    seatings |= {baseline.name: baseline.rank_to_gpu for baseline in placement.baselines}
    cuts = [judged(home, seats, traffic) for seats in seatings.values()]
    digits = (*DIGITS, *PART_OF)
    used = [digit for digit in digits if any(family.part == digit for family in plan.families)]
    return CrossedBytes(
        seatings=tuple(seatings),
        by_digit={
            digit: tuple(
                sum(
                    value
                    for family, value in zip(plan.families, cut.by_entry, strict=True)
                    if family.part == digit
                )
                for cut in cuts
            )
            for digit in used
        },
        totals=tuple(cut.total_bytes for cut in cuts),
    )


def verdict(plan: Plan) -> str:
    """Return the plan in one sentence."""
    placement, step = plan.placement, plan.step
    crossing = format_bytes(placement.objective_bytes)
    if placement.objective != "total" and placement.objective_bytes > 0:
        cut = objective_verdict(plan)
    elif placement.objective_bytes == 0:
        cut = f"Nothing leaves a {placement.tier}, which no placement can better"
    elif placement.proof is Proof.INCUMBENT:
        cut = (
            f"{crossing} leave the {plural(placement.tier)} in a step, of which another placement"
            f"{keeping(placement)} could save at most {format_share(placement.gap)}"
        )
    else:
        ruled = "" if placement.rule_price is None else " under the rules"
        cut = (
            f"{crossing} leave the {plural(placement.tier)} in a step, proved the least possible"
            f"{ruled}"
        )
    low, high = interval_s(step)
    return (
        f"{cut}{_against_rank_order(plan)}; the step takes {format_time(float(step.total_s))} "
        f"({format_time(low)} to {format_time(high)}), MFU {format_share(float(step.mfu))}"
        f"{of_which_peak(plan.inputs.layout)}, "
        f"{float(step.tokens_per_s):,.0f} tokens/s."
    )


def _against_rank_order(plan: Plan) -> str:
    """Return how what was made least compares with rank order: bytes, a border's time, a step."""
    found = [b for b in plan.placement.baselines if b.name == "megatron-order"]
    theirs = _made_least(plan, found[0]) if found else 0.0
    if theirs == 0:
        return ""
    saved = 1 - _made_least(plan, plan.placement) / theirs
    if saved < -1:
        return f" ({format_times(1 - saved)} rank order)"
    if saved < -5e-4:
        return f" ({format_share(-saved)} more than in rank order)"
    if saved < 5e-4:
        return " (rank order does as well)"
    return f" ({format_share(saved)} less than in rank order)"


def _made_least(plan: Plan, seating: Placement | Baseline) -> float:
    """Return what the plan's objective counts of one seating [bytes], or [s]."""
    placement, inputs = plan.placement, plan.inputs
    if placement.objective == "total":
        return seating.objective_bytes if isinstance(seating, Placement) else seating.cut_bytes
    if placement.objective == "time":
        if isinstance(seating, Placement):
            return float(plan.step.total_s)
        return plan.baseline_steps_s[seating.name]
    cuts = tier_cuts(inputs.layout, plan.families, inputs.fabric, seating.rank_to_gpu)
    return next(cut.cut_time_s for cut in cuts if cut.tier == placement.tier)


def proof_sentence(placement: Placement) -> str:
    """Return how the cut is known to be as low as it is said to be, and who checked it."""
    cut, bound = format_bytes_apart(placement.objective_bytes, placement.lower_bound_bytes)
    if placement.proof is not Proof.INCUMBENT:
        bound = format_bytes(placement.lower_bound_bytes)
    least = "nothing less can cross" if placement.lower_bound_bytes == 0 else (
        f"every placement crosses at least {bound}"
    )  # fmt: skip
    if placement.rule_price is not None and placement.lower_bound_bytes > 0:
        least = f"every placement that keeps the rules crosses at least {bound}"
    why = (
        "the search was interrupted" if placement.interrupted else "more --time-limit may close it"
    )
    how = {
        Proof.BOUND: f"Proved: {least}, and this one crosses no more; gap 0 %",
        Proof.SOLVER: f"Proved by the solver: {least}; gap {format_share(placement.gap)}",
        Proof.INCUMBENT: (
            f"Not proved: {least}, this one {cut}; gap {format_share(placement.gap)} ({why})"
        ),
    }[placement.proof]
    return (
        f"{how}. Found as {placement.method}. Counted again from the cluster's graph: "
        f"{format_bytes(placement.checked_bytes)}."
    )


def border_sentences(plan: Plan) -> list[str]:
    """Return, for every tier that bytes cross, how long its busiest border takes for them."""
    total = float(plan.step.total_s)
    return [
        f"Busiest border of the {plural(cut.tier)}: {cut.bottleneck_link}, whose part of "
        f"{format_bytes(cut.cut_bytes)} keeps it busy for {format_time(cut.cut_time_s)}, "
        f"{format_share(cut.cut_time_s / total)} of the step."
        for cut in plan.placement.tiers
        if cut.cut_bytes > 0 and cut.bottleneck_link
    ]


def faster_seating(plan: Plan, least_share: float) -> str:
    """Return what to say when a baseline takes less time than the plan, and how to get it.

    Of a plan that keeps rules nothing: a baseline need not keep them. Of one that is placed by
    time nothing: no baseline is faster.

    Args:
        plan: a seated layout.
        least_share: of the step; less is not worth the sentence [1].
    """
    if plan.placement.rule_price is not None or plan.placement.objective == "time":
        return ""
    rivals = {
        "rank order" if baseline.name == "megatron-order" else baseline.name.replace("-", " "):
        plan.baseline_steps_s[baseline.name]
        for baseline in plan.placement.baselines
    }  # fmt: skip
    said = shorter_words(float(plan.step.total_s), rivals, least_share)
    if not said:
        return ""
    besides = ", without --tiers," if plan.placement.ways == "weighted" else ""
    return f"{said} --objective time{besides} seats for the shortest step."


def where_it_sits(plan: Plan, digit: str) -> str:
    """Return where the groups of a digit sit, e.g. ``4 supernodes, 16 in each``, or ``1 to 4``."""
    layout, tier = plan.inputs.layout, plan.placement.tier
    sizes = [axis.size for axis in layout.axes]
    home = plan.inputs.fabric.domain_index(tier)[np.asarray(plan.placement.rank_to_gpu)]
    groups = groups_along(sizes, layout.axes_of(digit))
    spread = worst_spread(groups, [home])
    touched, most, least = spread.supernodes, spread.together, spread.least_members
    if touched == 1:
        return f"one {tier}"
    ordered = np.sort(home[groups], axis=1)
    fewest = 1 + int(np.count_nonzero(np.diff(ordered, axis=1), axis=1).min())
    if fewest < touched:
        return f"{fewest} to {touched:.0f} {plural(tier)}"
    shares = f"{most:.0f} in each" if most == least else f"{least:.0f} to {most:.0f} in each"
    return f"{touched:.0f} {plural(tier)}, {shares}"


def seat_lines(plan: Plan, shown: int) -> list[tuple[str, str]]:
    """Return (domain, which part of each degree it holds), the first *shown* of them."""
    layout, placement = plan.inputs.layout, plan.placement
    held = {digit: _coordinate(layout, digit) for digit in ("pp", "dp", "cp", "tp")}
    words = {"pp": "stage", "dp": "replica", "cp": "cp", "tp": "tp"}
    lines = []
    occupied = [domain for domain in placement.domains if domain.ranks]
    for domain in occupied[:shown]:
        ranks = np.asarray(domain.ranks)
        parts = _held_parts(ranks, {words[digit]: values for digit, values in held.items()})
        free = domain.capacity - len(domain.ranks)
        lines.append(
            (domain.name, "; ".join(filter(None, (parts, counted(len(ranks), "rank")))) + (
                f", {free} of {domain.capacity} GPUs idle" if free else ""
            ))
        )  # fmt: skip
    if len(occupied) > shown:
        lines.append(("…", f"{len(occupied) - shown} more, in --json"))
    idle = len(placement.domains) - len(occupied)
    return (
        [
            *lines,
            ("idle", f"{counted(idle, placement.tier)} {'holds' if idle == 1 else 'hold'} no rank"),
        ]
        if idle
        else lines
    )


def _held_parts(ranks: NDArray[np.int64], held: Mapping[str, NDArray[np.int64]]) -> str:
    """Return what *ranks* hold of each degree; stage by stage where that is no full box."""
    varied = {word: values for word, values in held.items() if values.max() > 0}
    box = int(np.prod([len(np.unique(values[ranks])) for values in varied.values()]))
    if box == len(ranks) or not varied:
        return ", ".join(
            _named(word, np.unique(values[ranks]), int(values.max()) + 1)
            for word, values in varied.items()
        )
    word, values = next(iter(varied.items()))
    rest = {other: v for other, v in varied.items() if other != word}
    by_text: dict[str, list[int]] = {}
    for value in np.unique(values[ranks]):
        part = ranks[values[ranks] == value]
        text = _held_parts(part, rest) if rest else counted(len(part), "rank")
        by_text.setdefault(text, []).append(int(value))
    return " + ".join(
        f"{_named(word, np.array(which), int(values.max()) + 1)} ({text})"
        for text, which in by_text.items()
    )


def _coordinate(layout: Layout, digit: str) -> NDArray[np.int64]:
    """Return the index of every rank along a dense degree."""
    ranks = np.arange(layout.gpus)
    value, reach = np.zeros(layout.gpus, dtype=np.int64), 1
    for axis in layout.axes:
        if axis.dense == digit:
            value += ranks // axis.stride % axis.size * reach
            reach *= axis.size
    return value


def _named(word: str, values: NDArray[np.int64], of: int) -> str:
    """Return a degree and which of its indices: ``stage 0``, ``stages 0-3``, ``tp all``."""
    many = len(values) > 1 and word in ("stage", "replica")
    return f"{plural(word) if many else word} {_ranges(values, of)}"


def _ranges(values: NDArray[np.int64], of: int) -> str:
    """Return indices as ranges: ``0-3, 8``, ``all``, or how many where that is long."""
    if len(values) == of:
        return "all"
    ends = np.flatnonzero(np.diff(values) != 1)
    firsts, lasts = values[np.append(0, ends + 1)], values[np.append(ends, len(values) - 1)]
    text = ", ".join(
        f"{first}" if first == last else f"{first}-{last}"
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True)
    )
    return text if len(text) <= _LONGEST_RANGES else f"{len(values)} of {of}"


def limiting_sentence(plan: Plan, entries: Sequence[PathEntry]) -> str:
    """Return what limits the step, and what the network could give back at most."""
    total = float(plan.step.total_s)
    by_kind: dict[str, float] = {}
    for entry in entries:
        by_kind[entry.kind] = by_kind.get(entry.kind, 0.0) + entry.seconds
    kind = max(by_kind, key=lambda name: by_kind[name])
    share = format_share(by_kind[kind] / total)
    what = {
        "compute": f"Compute limits the step: {share} of it",
        "communication": f"Communication limits the step: {share} of it is traffic that shows",
        "bubble": f"The pipeline bubble limits the step: {share} of it",
        "update": f"The optimizer limits the step: {share} of it",
        "fixed": f"What no layout changes limits the step: {share} of it",
    }[kind]
    traffic = [entry for entry in entries if entry.kind == "communication" and entry.seconds > 0]
    if not traffic or traffic[0].share < 5e-4:
        return f"{what}. No communication shows: a faster network would not shorten it."
    most = traffic[0]
    where = where_it_sits(plan, most.name)
    return (
        f"{what}. Of the traffic, {most.name.upper()} shows most; free, it would save "
        f"{format_time(most.gain_if_free_s)} ({format_share(most.gain_if_free_s / total)}). Its "
        f"groups sit in {where}{_its_rate(plan, where)}."
    )


def _its_rate(plan: Plan, where: str) -> str:
    tiers = plan.inputs.fabric.tiers
    names = [tier.name for tier in tiers]
    if plan.placement.tier != "supernode" or len(tiers) <= names.index("supernode") + 1:
        return ""
    at = names.index("supernode") + (0 if where.startswith("one ") else 1)
    return f", where a GPU gets {format_rate(tiers[at].bytes_per_s)}"
