"""What compared clusters have in common beside GPUs, for a report: a budget, power, or a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.report_choice import Cost
from cli.report_html_verdict import listed
from cli.report_words import power_words
from planner.procure.budget import format_money
from planner.units import format_number, format_power


def size_sentences(document: Mapping[str, Any]) -> list[str]:
    """Return how large each cluster became and why, and which of them keep to the budget.

    Args:
        document: of ``planner compare``.
    """
    inputs = document["inputs"]
    sizes, clusters = inputs["sizes"], inputs["clusters"]
    if sizes["equal"] == "gpus":
        return []
    return [*_sized(document), *_batches(clusters)]


def _batches(clusters: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the batches where they are not the same; nothing where they are."""
    each = {one["cluster"]: one["layout"]["global_batch"] for one in clusters}
    if len(set(each.values())) == 1:
        return []
    said = listed([f"{name} {batch:,}" for name, batch in each.items()])
    words = (
        "The batch of a step is the usual one, rounded so that replicas get whole micro-batches, "
        "of each cluster for its own GPUs"
    )
    return [f"{words}: {said} sequences."]


def _sized(document: Mapping[str, Any]) -> list[str]:
    """Return the money, power or run, and how many GPUs each cluster got."""
    inputs = document["inputs"]
    sizes, clusters = inputs["sizes"], inputs["clusters"]
    currency = next((bill["currency"] for bill in document["bills"].values()), "")
    if sizes["equal"] == "run":
        each = [f"{one['cluster']} {one['gpus']:,}" for one in clusters]
        text = (
            f"Asked: {format_number(inputs['tokens'] / 1e12, digits=4)} trillion tokens in "
            f"{sizes['days']:g} days, which takes so many GPUs, in multiples of the largest "
            f"supernode: {listed(each)}."
        )
        if not all(sizes.get("all_tried", [False])):
            text += " Not all sizes were tried: a little less may do."
        return [text, *_kept(document, sizes["budget"], currency)]

    def shown(amount: float) -> str:
        return format_power(amount) if sizes["equal"] == "power" else format_money(amount, currency)

    each = [
        f"{one['cluster']} {one['gpus']:,} GPUs for {shown(spent)}"
        for one, spent in zip(clusters, sizes["spent"], strict=True)
    ]
    ratio = float((inputs["prices"] or {}).get("overhead_ratio", 1.0))
    what = power_words(ratio) if sizes["equal"] == "power" else f"money ({sizes['basis']})"
    return [f"Asked: equal {what}, at most {shown(sizes['budget'])}: {listed(each)}."]


def _kept(document: Mapping[str, Any], most: float | None, currency: str) -> list[str]:
    """Return which clusters do the run for no more than *most*, nothing without a budget."""
    if most is None:
        return []
    costs = {one["cluster"]: one["run"]["cost"] or 0.0 for one in document["ranked"]}

    def said(names: list[str]) -> str:
        return listed([f"{name} ({format_money(costs[name], currency)})" for name in names])

    within = [name for name, cost in costs.items() if cost <= most]
    beyond = [name for name in costs if name not in within]
    text = f"Done for at most {format_money(most, currency)} by {said(within) or 'none of them'}"
    return [f"{text}; not by {said(beyond)}." if beyond else f"{text}."]


def must_of(document: Mapping[str, Any]) -> str:
    """Return what a candidate must do to be taken."""
    sizes = document["inputs"]["sizes"]
    budgeted = sizes["equal"] == "run" and sizes["budget"] is not None
    return "fits in memory" + (" and in the budget" if budgeted else "")


def budget_of(document: Mapping[str, Any]) -> Cost | None:
    """Return what a run may cost; None where nobody said."""
    sizes = document["inputs"]["sizes"]
    if sizes["equal"] != "run" or sizes["budget"] is None:
        return None
    currency = next((bill["currency"] for bill in document["bills"].values()), "")
    return Cost(sizes["budget"], format_money(sizes["budget"], currency))
