"""What compared clusters have in common beside GPUs, in words: money, power, or a run."""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING

from cli.compare_tried import tokens_words
from cli.report_words import LONG_DAYS, power_words, shorter_run_words
from planner.procure.budget import format_money
from planner.search.training import usual_batch
from planner.units import format_power, format_share

if TYPE_CHECKING:
    from cli.compare_report import Comparison

_UNSPENT_SHOWN_SHARE = 0.001  # of a budget; less is rounding


def lost_time(found: Comparison) -> str:
    """Return how much of the time trains nothing."""
    share = found.asked.sizes.goal.goodput_share
    if share == 1.0:
        return "nothing lost to faults"
    return f"{format_share(1.0 - share)} of the time lost to faults"


def batch_line(found: Comparison) -> str:
    """Return which clusters' batch is not the usual one, and why; often nothing."""
    asked = dict(zip((one.name for one in found.asked.candidates), found.asked.inputs, strict=True))
    open_batches = {name: one for name, one in asked.items() if "global_batch" not in one.given}
    rounded = {
        name: usual_batch(one.model, one.gpus, {n: one.fixed[n] for n in one.given})
        for name, one in open_batches.items()
    }
    changed = {
        name: f"{batch.global_batch:,} for {batch.rounded_from:,}"
        for name, batch in rounded.items()
        if batch.rounded_from
    }
    if not changed:
        return ""
    kinds = set(changed.values())
    alike = len(kinds) == 1 and len(changed) == len(asked)
    said = (
        f"{kinds.pop()} sequences" if alike
        else f"{', '.join(f'{name} {text}' for name, text in changed.items())} sequences"
    )  # fmt: skip
    return (
        "The batch of a step is the model's usual one, rounded so that replicas get whole "
        f"micro-batches{'' if alike else ', of each cluster for its own GPUs'}: {said}; "
        f"--global-batch sets one{'' if alike else ' for all'}."
    )


def long_run_line(found: Comparison) -> str:
    """Return how to ask for the GPUs of a run that takes longer than any does; else nothing."""
    days = [
        run.days * min(1.0, found.best_token_s(one) / one.finalist.token_s)
        for one, run in zip(found.compared.ranked, found.runs, strict=True)
        if run.days is not None
    ]
    goal = found.asked.sizes.goal
    if goal.equal != "gpus" or found.tokens is None or min(days, default=0.0) <= LONG_DAYS:
        return ""
    return (
        f"{tokens_words(found.tokens)} tokens take {floor(min(days)):,} days or more on "
        f"these: {shorter_run_words(found.tokens)}."
    )


def size_lines(found: Comparison) -> list[str]:
    """Return what the clusters have in common where it is not the number of GPUs."""
    sizes = found.asked.sizes
    goal = sizes.goal
    if goal.equal == "gpus":
        return [line for line in (batch_line(found), long_run_line(found)) if line]
    return [*_sized_lines(found), *([batch_line(found)] if batch_line(found) else [])]


def _sized_lines(found: Comparison) -> list[str]:
    """Return the money, power or run, and how many GPUs each cluster got."""
    sizes = found.asked.sizes
    goal = sizes.goal
    names = [one.name for one in found.asked.candidates]
    if goal.equal == "run":
        each = ", ".join(f"{n} {s.gpus:,}" for n, s in zip(names, sizes.each, strict=True))
        text = (
            f"GPUs that train {(goal.tokens or 0.0) / 1e12:,.4g} trillion tokens in "
            f"{goal.days:g} days, {lost_time(found)}, in {_units(found)}: {each}."
        )
        if some := [n for n, s in zip(names, sizes.each, strict=True) if not s.all_tried]:
            of = "" if len(some) == len(names) else f" of {', '.join(some)}"
            text += f" The fewest{of} of the sizes tried: others may do with a little less."
        return [text, *_run_budget_lines(found)]
    currency = found.prices.currency if found.prices else ""

    def shown(amount: float) -> str:
        return format_power(amount) if goal.equal == "power" else format_money(amount, currency)

    budget = sizes.budget or 0.0
    ratio = 1.0 if found.prices is None else found.prices.overhead_ratio
    what = power_words(ratio) if goal.equal == "power" else f"money ({sizes.basis})"
    lines = [f"At equal {what}, at most {shown(budget)}; ranked by tokens a second:"]
    for name, one in zip(names, sizes.each, strict=True):
        spent = one.spent or 0.0
        left = budget - spent
        text = f"  {name}: {one.gpus:,} GPUs for {shown(spent)}"
        if left > _UNSPENT_SHOWN_SHARE * budget:
            text += f"; {shown(left)} ({format_share(left / budget)}) unspent: {one.why_unspent}"
        lines.append(f"{text}.")
    if found.cheapest and found.cheapest != found.first.candidate.name:
        lines.append(
            f"{found.first.candidate.name} trains most within the budget; for each {currency} "
            f"spent {found.cheapest} trains more."
        )
    if goal.equal == "power":
        lines += _joule_lines(found)
    return lines


def _units(found: Comparison) -> str:
    """Return what a cluster grows by; supernodes that dead GPUs left unlike are not all whole."""
    sizes = [one.fabric.capacities("supernode") for one in found.asked.candidates]
    if all(len(set(one)) == 1 for one in sizes):
        return "whole supernodes"
    return "multiples of the GPUs of the largest supernode"


def _run_budget_lines(found: Comparison) -> list[str]:
    """Return which clusters do the run for no more than it may cost, where that was said."""
    most = found.asked.sizes.budget
    if most is None:
        return []
    currency = found.prices.currency if found.prices else ""
    costs = {
        one.candidate.name: run.cost or 0.0
        for one, run in zip(found.compared.ranked, found.runs, strict=True)
    }

    def said(names: list[str]) -> str:
        return ", ".join(f"{name} ({format_money(costs[name], currency)})" for name in names)

    within = [name for name, cost in costs.items() if cost <= most]
    beyond = [name for name in costs if name not in within]
    does = f"by {said(within)}" if within else "by none of them"
    text = f"Done for at most {format_money(most, currency)} {does}"
    return [f"{text}; not by {said(beyond)}." if within and beyond else
            f"{text}: {said(beyond)}." if beyond else f"{text}."]  # fmt: skip


def _joule_lines(found: Comparison) -> list[str]:
    """Return who trains most for each joule: no budget is spent to the last watt."""
    each = {
        one.candidate.name: run.tokens_per_j
        for one, run in zip(found.compared.ranked, found.runs, strict=True)
        if run.tokens_per_j is not None
    }
    said = ", ".join(f"{name} {per_j:,.4g}" for name, per_j in each.items())
    most, first = max(each, key=lambda name: each[name]), found.first.candidate.name
    also = "also trains most" if most == first else f"trains most within the budget, but {most}"
    return [f"{first} {also} for each joule: tokens a joule {said}."]
