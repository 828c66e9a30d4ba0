"""Which of several candidates to take, and why: one rule, for the page and for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planner.units import format_bytes, format_time
from planner.words import plural


@dataclass(frozen=True, slots=True)
class Cost:
    """What something costs.

    Args:
        amount: in the currency of the prices.
        text: the same as people read it.
    """

    amount: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """What the choice between candidates rests on.

    Args:
        name: what it is called.
        gpus: of the job [1].
        tokens_per_s: over all GPUs [1/s].
        best_tokens_per_s: the same with the fastest layout, by which it is ranked; a plan has but
            one layout [1/s].
        step_s: predicted [s].
        tier, cut_bytes: whose borders a step crosses, with how much [bytes].
        fits: in memory.
        is_tie: it cannot be told from the fastest that fits, by the model's own error.
        million: cost of a million tokens, None where it is not known.
        run: cost of the whole run, None where it is not known or not asked.
    """

    name: str
    gpus: int
    tokens_per_s: float
    best_tokens_per_s: float
    step_s: float
    tier: str
    cut_bytes: float
    fits: bool
    is_tie: bool
    million: Cost | None
    run: Cost | None

    @property
    def best_tokens_per_gpu_s(self) -> float:
        """What a GPU trains with the fastest layout [1/s]."""
        return self.best_tokens_per_s / self.gpus


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What to take.

    Args:
        pick: the one to take.
        why: in words, empty where it is the only one or plainly the fastest.
        order: those to choose from, the best first by what they are ranked by.
        alike: the fastest and those that cannot be told from it; of a run the pick alone.
        by_need: whether each is just large enough for a run, so that speed does not rank them.
        cheaper: trains a token for less than *pick*, though it is surely slower; None where no
            other does, or where that is not known of all.
        beyond_budget: whether none does the run within its budget, *pick* by the least.
    """

    pick: Offer
    why: str
    order: tuple[Offer, ...]
    alike: tuple[Offer, ...]
    by_need: bool
    cheaper: Offer | None
    beyond_budget: bool = False

    @property
    def named(self) -> tuple[Offer, ...]:
        """Those that the sentence names: for speed, and for money where that is another."""
        return (self.pick,) if self.cheaper is None else (self.pick, self.cheaper)

    @property
    def sentence(self) -> str:
        """The recommendation, the same wherever it is read."""
        pick, cheaper = self.pick, self.cheaper
        crossed = f"{format_bytes(pick.cut_bytes)} a step" if pick.cut_bytes else "nothing"
        speed = (
            f"{pick.tokens_per_s:,.0f} tokens/s, a step of {format_time(pick.step_s)}, {crossed} "
            f"across {plural(pick.tier)}"
        )
        if self.beyond_budget:
            return (
                f"None of them does the run within the budget. The nearest is {pick.name}, "
                f"{self.why}: {speed}."
            )
        if cheaper is None or cheaper.million is None or pick.million is None:
            return f"Take {pick.name}{f', {self.why}' if self.why else ''}: {speed}."
        return (
            f"Take {pick.name} if time decides, {cheaper.name} if money does: {pick.name} is "
            f"{self.why or 'the fastest'}, {speed}; {cheaper.name} trains a million tokens for "
            f"{cheaper.million.text}, not {pick.million.text}, at {cheaper.tokens_per_s:,.0f} "
            "tokens/s."
        )


def chosen_by_speed(offers: Sequence[Offer]) -> Choice | None:
    """Return the fastest; of those that cannot be told from it the cheapest; None if none fits.

    Where prices are not known of all, it is of these the one that crosses least.
    """
    fitting = (one for one in offers if one.fits)
    order = tuple(sorted(fitting, key=lambda one: -one.best_tokens_per_s))
    if not order:
        return None
    alike = tuple(one for one in order if one is order[0] or one.is_tie)
    least = cheapest(alike)
    pick = least or min(alike, key=lambda one: one.cut_bytes)
    why = ""
    if len(alike) > 1:
        why = (
            _least_words(pick, alike)
            if least is None or least.million is None
            else f"the cheapest of the fastest, at {least.million.text} a million tokens"
        )
    cheaper = cheapest(order)
    return Choice(pick=pick, why=why, order=order, alike=alike, by_need=False,
                  cheaper=None if cheaper is pick else cheaper)  # fmt: skip


def _least_words(pick: Offer, alike: Sequence[Offer]) -> str:
    """Return that *pick* asks least of the network of those alike, or as little as others do."""
    even = [one.name for one in alike if one is not pick and one.cut_bytes <= pick.cut_bytes]
    if not even:
        return f"the one that asks least of the network between its {plural(pick.tier)}"
    return (
        f"which asks no more of the network between its {plural(pick.tier)} than "
        f"{', '.join(even)}, as good a choice"
    )


def chosen_by_need(offers: Sequence[Offer], budget: float | None) -> Choice | None:
    """Return which of clusters just large enough for a run does it for least; None if none fits.

    Least is money; where that is not known of all, it is GPUs.

    Args:
        offers: the clusters.
        budget: what the run may cost, in the currency of the prices; None where nobody said. Those
            beyond it are not chosen from, unless all are.
    """
    fitting = [one for one in offers if one.fits]
    if not fitting:
        return None
    costs = [one.run.amount for one in fitting if one.run is not None]
    priced = len(costs) == len(fitting)
    most = float("inf") if budget is None or not priced else max(budget, min(costs))

    def need(one: Offer) -> tuple[float, float]:
        least = one.run.amount if priced and one.run is not None else float(one.gpus)
        return least, -one.tokens_per_s

    kept = [one for one in fitting if one.run is None or one.run.amount <= most]
    order = tuple(sorted(kept, key=need))
    pick = order[0]
    why = f"which does the run with the fewest GPUs, {pick.gpus:,}"
    if priced and pick.run is not None:
        why = f"which does the run for the least money, {pick.run.text} with {pick.gpus:,} GPUs"
    beyond = budget is not None and most > budget
    return Choice(pick=pick, why=why, order=order, alike=(pick,), by_need=True, cheaper=None,
                  beyond_budget=beyond)  # fmt: skip


def cheapest(offers: Sequence[Offer]) -> Offer | None:
    """Return which trains a token for least, None where that is not known of all."""
    known = [(one.million.amount, one) for one in offers if one.million is not None]
    if len(known) < len(offers):
        return None
    return min(known, key=lambda bid: bid[0])[1]


def entry_names(clusters: Sequence[str], labels: Sequence[str]) -> list[str]:
    """Return what compared entries are called: by cluster, by layout where all share one, or both.

    >>> entry_names(["a", "b"], ["own best", "own best"]), entry_names(["a", "a"], ["wide", "deep"])
    (['a', 'b'], ['wide', 'deep'])
    >>> entry_names(["a", "a", "b"], ["wide", "deep", "wide"])
    ['a: wide', 'a: deep', 'b']
    """
    if len(set(clusters)) == 1 and len(clusters) > 1:
        return list(labels)
    return [
        cluster if clusters.count(cluster) == 1 else f"{cluster}: {label}"
        for cluster, label in zip(clusters, labels, strict=True)
    ]


def entry_name(one: Mapping[str, Any], all_of_them: Sequence[Mapping[str, Any]]) -> str:
    """Return an entry's cluster, its label where all share one, both where some do."""
    names = entry_names(
        [str(other["cluster"]) for other in all_of_them], [str(o["label"]) for o in all_of_them]
    )
    return names[all_of_them.index(one)]


@dataclass(frozen=True, slots=True)
class BestStep:
    """The step of the fastest layout of a cluster [s], and the tokens of it [1]."""

    step_s: float
    tokens: int


def best_step(one: Mapping[str, Any]) -> BestStep:
    """Return by what an entry of a comparison's document is ranked: its own where none is told."""
    fastest = one.get("fastest")
    layout = fastest["layout"] if fastest else one["layout"]
    step_s = fastest["step_s"] if fastest else one["step"]["total_s"]
    return BestStep(float(step_s), layout["global_batch"] * layout["seq"])
