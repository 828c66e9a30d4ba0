"""What ``planner place`` says besides: rules and their price, why families cross, second answers.

And which GPUs stay idle, written as a free list, so that the next job can be given it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from time import monotonic
from typing import TYPE_CHECKING, Any

from cli.part_used_words import part_document
from cli.planner_plan import seated_step
from cli.report_words import price_in_time
from planner.place.clock import TimeUp, ending
from planner.units import format_bytes, format_bytes_apart
from planner.words import plural
from topologies.free_list import spelled_gpus

if TYPE_CHECKING:
    from cli.planner_plan import Plan
    from planner.place.alternatives import Alternative
    from planner.place.answer import Placement, RulePrice
    from planner.place.explain import Explanation, KeptWhole, Reason
    from planner.search.part_used import PartUsed

_LONGEST_IDLE = 300

Lines = list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extras:
    """What was asked for besides the plan.

    Args:
        explanation: why each degree crosses; None unless asked.
        others: second answers.
        others_asked: how many of them were asked for [1].
        other_steps_s: the step of each [s].
        idle: GPUs that hold no rank, as a free list; empty where there are none.
        idle_gpus: how many they are [1].
        free_file: the free list the cluster was cut down to; empty for none.
        cluster_gpus: GPUs of the whole cluster where the generic family was cut down; else None.
        cluster_supernode: supernodes of the whole cluster, where they were asked for; else None.
        interrupted: the user ended the search for what was asked for besides.
        cut_short: that search was not finished, by the user or because the time was up.
        part: what using a part of each supernode would bring; None where it brings nothing.
    """

    explanation: Explanation | None
    others: tuple[Alternative, ...]
    other_steps_s: tuple[float, ...]
    idle: str
    idle_gpus: int
    free_file: str
    cluster_gpus: int | None = None
    cluster_supernode: int | None = None
    others_asked: int = 0
    interrupted: bool = False
    cut_short: bool = False
    part: PartUsed | None = None


def extras(
    plan: Plan,
    *,
    explained: bool,
    alternatives: int,
    time_limit_s: float,
    ends_s: float = inf,
    free_file: str = "",
    cluster_gpus: int | None = None,
    cluster_supernode: int | None = None,
    part: PartUsed | None = None,
) -> Extras:
    """Return what was asked for besides *plan*.

    Ctrl-C or the end of the run ends the search for it: the plan stands, and what was finished
    besides.

    Args:
        plan: a seated layout.
        explained: say why each degree crosses.
        alternatives: how many second answers [1].
        time_limit_s: seconds for the solvers of each of both [s].
        ends_s: ``time.monotonic()`` when the run is to end [s].
        free_file: the free list the cluster was cut down to.
        cluster_gpus: of the whole cluster, where the generic family was cut down [1].
        cluster_supernode: of the whole cluster, where supernodes were asked for [1].
        part: what using a part of each supernode would bring.
    """
    placement, inputs = plan.placement, plan.inputs
    explanation: Explanation | None = None
    others: tuple[Alternative, ...] = ()
    interrupted = cut_short = False
    asked_for = int(explained) + bool(alternatives)
    try:
        if explained:
            from planner.place.explain import explain  # noqa: PLC0415 - few runs need it

            with ending(monotonic() + (ends_s - monotonic()) / asked_for):
                explanation = explain(
                    placement, inputs.layout, plan.families, inputs.fabric,
                    time_limit_s=time_limit_s,
                )  # fmt: skip
        if alternatives:
            from planner.place.alternatives import alternatives as best  # noqa: PLC0415 - the same

            with ending(ends_s):
                others = best(
                    placement, inputs.layout, plan.families, inputs.fabric, count=alternatives,
                    time_limit_s=time_limit_s,
                )  # fmt: skip
    except (KeyboardInterrupt, TimeUp) as ended:
        interrupted = isinstance(ended, KeyboardInterrupt)
        cut_short, alternatives = True, 0
    used = set(placement.rank_to_gpu)
    idle = [gpu for gpu in range(len(inputs.fabric.gpus)) if gpu not in used]
    return Extras(
        explanation=explanation,
        others=others,
        other_steps_s=tuple(
            float(seated_step(inputs, other.rank_to_gpu).total_s) for other in others
        ),
        idle=spelled_gpus(inputs.fabric, idle),
        idle_gpus=len(idle),
        free_file=free_file,
        cluster_gpus=cluster_gpus,
        cluster_supernode=cluster_supernode,
        others_asked=alternatives,
        interrupted=interrupted,
        cut_short=cut_short,
        part=part,
    )


def extras_document(plan: Plan, more: Extras) -> dict[str, Any]:
    """Return the parts of the document that *more* brings; only those asked for."""
    body: dict[str, Any] = {"idle": {"gpus": more.idle_gpus, "hosts": more.idle}}
    body |= part_document(more.part)
    price = plan.placement.rule_price
    if price is not None:
        body["rules"] = {
            "rules": price.rules,
            "cut_bytes": plan.placement.objective_bytes,
            "free_cut_bytes": price.free_bytes,
            "free_lower_bound_bytes": price.free_bound_bytes,
            "free_proof": price.free_proof,
            "price_least_bytes": price.least_bytes,
            "price_most_bytes": price.most_bytes,
            "step_s": float(plan.step.total_s),
            "free_step_s": plan.free_step_s,
        }
    if more.explanation is not None:
        body["explain"] = _explain_document(more.explanation)
    if more.others_asked:
        body["alternatives"] = [
            {
                "method": other.method,
                "cut_bytes": other.cut_bytes,
                "by_family": other.by_family,
                "step_s": step_s,
                "rank_to_gpu": other.rank_to_gpu,
            }
            for other, step_s in zip(more.others, more.other_steps_s, strict=True)
        ]
    return body


def extra_inputs(plan: Plan, more: Extras) -> dict[str, Any]:
    """Return what the answer also depends on: rules and the free list, where there are any."""
    price = plan.placement.rule_price
    found: dict[str, Any] = {} if price is None else {"rules": price.rules}
    if more.free_file:
        used = plan.inputs.fabric
        found["free"] = {
            "file": more.free_file,
            "hosts": spelled_gpus(used, range(len(used.gpus))),
            "cluster_gpus": more.cluster_gpus,
            "cluster_supernode": more.cluster_supernode,
        }
    return found


def _explain_document(explanation: Explanation) -> dict[str, Any]:
    return {
        "tile": explanation.tile,
        "domains": [{"capacity": size, "count": count} for size, count in explanation.sizes],
        "reasons": [
            {
                "digit": reason.digit,
                "group_size": reason.group_size,
                "groups": reason.groups,
                "split_groups": reason.split_groups,
                "cut_bytes": reason.cut_bytes,
                "impossible": reason.impossible or None,
                "kept_whole": None if reason.kept_whole is None else _kept_document(
                    reason.kept_whole
                ),
            }
            for reason in explanation.reasons
        ],
    }  # fmt: skip


def _kept_document(kept: KeptWhole) -> dict[str, Any]:
    return {
        "cut_bytes": kept.cut_bytes,
        "lower_bound_bytes": kept.lower_bound_bytes,
        "proof": kept.proof,
        "price_least_bytes": kept.least_bytes,
        "price_most_bytes": kept.most_bytes,
        "more_by_digit_bytes": kept.more_by_digit_bytes,
        "tile": kept.tile,
    }


def rule_lines(plan: Plan) -> Lines:
    """Return the rules that were kept and what they cost in bytes and in time; often nothing."""
    price, free_s = plan.placement.rule_price, plan.free_step_s
    if price is None or free_s is None:
        return []
    return [
        ("kept", "; ".join(price.rules)),
        ("price", _price(plan.placement, price)),
        ("in time", f"{price_in_time(float(plan.step.total_s), free_s)}."),
    ]


def _price(placement: Placement, price: RulePrice) -> str:
    ruled, free = format_bytes(placement.objective_bytes), format_bytes(price.free_bytes)
    if price.most_bytes == 0:
        return "nothing: the best placement without rules is no better"
    if price.is_exact:
        return (
            f"exactly {format_bytes(price.most_bytes)} a step: {ruled} cross with the rules, "
            f"{free} without, both proved the least"
        )
    least = f"at least {format_bytes(price.least_bytes)} and " if price.least_bytes > 0 else ""
    ruled, of_ruled = format_bytes_apart(placement.objective_bytes, placement.lower_bound_bytes)
    free, of_free = format_bytes_apart(price.free_bytes, price.free_bound_bytes)
    return (
        f"{least}at most {format_bytes(price.most_bytes)} a step: {ruled} cross with the rules, of "
        f"at least {of_ruled}; {free} without, of at least {of_free}"
    )


def explain_lines(plan: Plan, explanation: Explanation) -> Lines:
    """Return why each degree crosses, in words."""
    tier = plan.placement.tier
    sizes = " and ".join(f"{count} of {size}" for size, count in explanation.sizes[:3])
    if len(explanation.sizes) > 3:
        sizes += f" and {sum(c for _, c in explanation.sizes[3:])} smaller"
    tile = f"; one holds {_tile(explanation.tile)}" if explanation.tile else (
        "; the fullest holds no box of the layout"
    )  # fmt: skip
    return [
        (plural(tier), f"{sizes} GPUs{tile}"),
        *(
            (
                f"{reason.digit.upper()} {reason.group_size}",
                _reason(reason, explanation, tier, ruled=plan.placement.rule_price is not None),
            )
            for reason in explanation.reasons
        ),
    ]


def _reason(reason: Reason, explanation: Explanation, tier: str, *, ruled: bool) -> str:
    if reason.split_groups == 0:
        return f"stays inside: each of its {reason.groups} groups sits in one {tier}"
    split = "all" if reason.split_groups == reason.groups else f"{reason.split_groups} of"
    crosses = f"crosses {format_bytes(reason.cut_bytes)}, {split} {reason.groups} groups split"
    kept = reason.kept_whole
    if kept is None:
        return f"{crosses}. {reason.impossible}"
    needs = _needs(kept.tile, explanation.tile, tier)
    more = [
        f"{d.upper()} cross +{format_bytes(v)}"
        for d, v in kept.more_by_digit_bytes.items()
        if v > 0
    ]
    less = [
        f"{d.upper()} {format_bytes(-v)} less" for d, v in kept.more_by_digit_bytes.items() if v < 0
    ]
    makes = f", which makes {' and '.join(more)}" if more else ""
    makes += f", {' and '.join(less)}" if less else ""
    return (
        f"{crosses}. Keeping it whole needs {needs}{makes}: {format_bytes(kept.cut_bytes)} in all, "
        f"{_more(kept, ruled=ruled)}"
    )


def _needs(tile: Mapping[str, int], here: Mapping[str, int], tier: str) -> str:
    """Return what the fullest domain holds instead of the plan's tile, or that others differ.

    >>> _needs({"tp": 8, "dp": 4}, {"tp": 8, "pp": 4}, "supernode")
    'tile tp 8 x dp 4 instead of tp 8 x pp 4'
    >>> _needs({"tp": 8}, {"tp": 8}, "supernode")
    'the same tile in the fullest supernode and another filling of the others'
    """
    if not tile:
        return "another filling"
    if tile == here:
        return f"the same tile in the fullest {tier} and another filling of the others"
    return f"tile {_tile(tile)}" + (f" instead of {_tile(here)}" if here else "")


def _more(kept: KeptWhole, *, ruled: bool) -> str:
    least_of = "the least with the rules" if ruled else "the least"
    if kept.most_bytes == 0:
        return "no more than now"
    if kept.least_bytes == kept.most_bytes:
        return f"{format_bytes(kept.most_bytes)} more than {least_of} (both proved)"
    least = f"at least {format_bytes(kept.least_bytes)}, " if kept.least_bytes > 0 else ""
    return f"{least}at most {format_bytes(kept.most_bytes)} more than {least_of}"


def _tile(tile: Mapping[str, int]) -> str:
    return " x ".join(f"{axis} {side}" for axis, side in tile.items())


def other_rows(plan: Plan, more: Extras) -> tuple[tuple[str, ...], Sequence[tuple[str, ...]]]:
    """Return the titles and the rows of the table of second answers."""
    digits = list(more.others[0].by_digit_bytes) if more.others else []
    titles = ("placement", "all", *(digit.upper() for digit in digits), "step")
    rows = [
        (
            other.method,
            format_bytes(other.cut_bytes),
            *(
                format_bytes(v) if (v := other.by_digit_bytes[digit]) else "none"
                for digit in digits
            ),
            _step(step_s, float(plan.step.total_s)),
        )
        for other, step_s in zip(more.others, more.other_steps_s, strict=True)
    ]
    return titles, rows


def missing_others(plan: Plan, more: Extras) -> str:
    """Return why there are fewer second answers than asked for, or nothing."""
    if len(more.others) >= more.others_asked:
        return ""
    found = "None" if not more.others else f"No more than {len(more.others)}"
    keeps = " keeps the rules and" if plan.placement.rule_price is not None else ""
    return (
        f"{found}: no other placement that was tried{keeps} crosses other bytes of any degree, to "
        "1 % of this plan's cut."
    )


def _step(step_s: float, plan_s: float) -> str:
    apart = step_s / plan_s - 1
    return "as long" if abs(apart) < 5e-4 else f"{100 * apart:+.1f} %"


def idle_line(plan: Plan, more: Extras) -> str:
    """Return which GPUs stay idle, or nothing."""
    if not more.idle_gpus:
        return ""
    spaced = more.idle.replace("],", "], ")
    shown = spaced if len(spaced) <= _LONGEST_IDLE else f"{spaced[:_LONGEST_IDLE]}… (all in --json)"
    return f"Idle: {more.idle_gpus} of {len(plan.inputs.fabric.gpus)} GPUs: {shown}"
