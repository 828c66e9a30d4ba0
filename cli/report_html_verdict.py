"""What a report says of several candidates: which to take, by how much, and the doubt."""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, log, sqrt
from typing import Any

from cli.report_choice import Choice, Cost, Offer
from cli.report_html_candidates import Candidate
from cli.report_html_cut import cut_doubt
from cli.report_html_memory import used_bytes
from cli.report_html_words import small_share
from cli.report_words import close_words
from planner.steptime.uncertainty import faster
from planner.units import format_time

_NINETY_PERCENT = 1.645  # standard deviations to each side that hold 90 %
_COUNTS = {2: "two", 3: "three", 4: "four"}
_CLOSE = "In doubt: memory is an estimate with a margin; a candidate close to it may fit."


def offers_of(all_of_them: Sequence[Candidate]) -> list[Offer]:
    """Return what the choice between candidates rests on, in their order."""
    fastest = max((one for one in all_of_them if one.fits), key=lambda one: one.best_tokens_per_s,
                  default=None)  # fmt: skip
    return [
        Offer(
            name=_called(one, all_of_them), gpus=one.gpus, tokens_per_s=one.tokens_per_s,
            best_tokens_per_s=one.best_tokens_per_s, step_s=one.step["total_s"], tier=one.tier,
            cut_bytes=one.cut_bytes, fits=one.fits,
            is_tie=_is_tie(fastest, one) if one.ties is None else one.ties,
            million=one.cost, run=one.run,
        )
        for one in all_of_them
    ]  # fmt: skip


def _is_tie(first: Candidate | None, other: Candidate) -> bool:
    """Return whether the first is not the faster in nine cases of ten, by the model's own error.

    Part of the error is common to plans of one model of the step, and does not count.
    """
    if first is None or min(one.step["interval_s"][0] for one in (first, other)) <= 0:
        return True
    spreads = [
        log(high_s / low_s) / (2 * _NINETY_PERCENT)
        for low_s, high_s in (one.step["interval_s"] for one in (first, other))
    ]
    first_s, other_s = (1 / max(one.tokens_per_s, 1e-300) for one in (first, other))
    return not faster(first_s, other_s, hypot(*spreads) / sqrt(2)).told_apart


def taken(choice: Choice | None, all_of_them: Sequence[Candidate]) -> list[Candidate]:
    """Return the candidates that a choice names, the one to take first; none without a choice."""
    if choice is None:
        return []
    offers = offers_of(all_of_them)
    return [all_of_them[offers.index(one)] for one in choice.named]


def comparison(
    choice: Choice | None, all_of_them: Sequence[Candidate], must: str, budget: Cost | None = None
) -> list[str]:
    """Return the sentences about several candidates: what to take, by how much, and the doubt.

    Args:
        choice: among them, None where none fits.
        all_of_them: what was chosen from.
        must: what a candidate must do to be taken.
        budget: what a run may cost, where that was said.
    """
    if choice is None:
        return [
            "None of the candidates fits in memory.",
            "The side-by-side table says what each needs.",
            _CLOSE,
        ]
    just = _just_fitting(choice, all_of_them)
    first = taken(choice, all_of_them)[0]
    if len(choice.order) == 1:
        only = (
            "It is the cheapest of those that fit in memory" if choice.beyond_budget
            else f"It is the only candidate that {must}"
        )  # fmt: skip
        return [choice.sentence, *_only(only, choice, all_of_them, budget), *just]
    if choice.by_need:
        return [choice.sentence, *_needed(choice, first), *just]
    said = _tied(choice) if len(choice.alike) > 1 else _decided(choice, first)
    if len({_work(one) for one in all_of_them}) > 1:
        said[-1] += (
            " The candidates do not do the same work (model, batch, sequence or GPUs differ): "
            "compare tokens a second with care."
        )
    return [choice.sentence, *said, *just]


def _just_fitting(choice: Choice, all_of_them: Sequence[Candidate]) -> list[str]:
    """Return which of those that are taken, or tie with it, fit in memory only just."""
    offers = offers_of(all_of_them)
    close = {
        offer.name: close_words(used_bytes(one.memory), one.memory["capacity_bytes"])
        for offer, one in zip(offers, all_of_them, strict=True)
        if offer in choice.alike or offer in choice.named
    }
    return [f"{name}: {words}" for name, words in close.items() if words]


def _only(
    only: str, choice: Choice, all_of_them: Sequence[Candidate], budget: Cost | None
) -> list[str]:
    """Return that one candidate is left, what rules out the others, and whether that is close."""
    too_large = [one.name for one in all_of_them if not one.fits]
    offers = offers_of(all_of_them)
    dear = [
        one for one, offer in zip(all_of_them, offers, strict=True)
        if one.fits and offer not in choice.order
    ]  # fmt: skip
    ruled = [f"memory rules out {listed(too_large)}"] if too_large else []
    doubt = [_CLOSE] if too_large else []
    if dear and budget is not None:
        said = listed([_beyond(one, budget) for one in dear])
        ruled.append(f"the budget of {budget.text} rules out {said}")
        close = [one.name for one in dear if _may_be_within(one, budget)]
        doubt.append(
            "In doubt: a run costs as much as its predicted step is long; "
            + (f"with the shortest that such an estimate stands for, {listed(close)} may be within "
               "the budget." if close else
               "even with the shortest that such an estimate stands for, none of these is within "
               "the budget.")
        )  # fmt: skip
    return [f"{only}{': ' if ruled else ''}{'; '.join(ruled)}.", *doubt]


def _beyond(one: Candidate, budget: Cost) -> str:
    if one.run is None:
        return one.name
    return f"{one.name} ({one.run.text}, {small_share(one.run.amount / budget.amount - 1)} more)"


def _may_be_within(one: Candidate, budget: Cost) -> bool:
    """Return whether a run is within a budget with the shortest step of the range of 90 %."""
    shortest = one.step["interval_s"][0] / one.step["total_s"]
    return one.run is not None and one.run.amount * shortest <= budget.amount


def _called(one: Candidate, all_of_them: Sequence[Candidate]) -> str:
    """Return a candidate's name, and its cluster where they differ and the name does not say it."""
    alike = all(other.cluster == one.cluster for other in all_of_them)
    return one.name if alike or one.cluster in one.name else f"{one.name} (on {one.cluster})"


def _tied(choice: Choice) -> list[str]:
    """Return what to say when the fastest cannot be told from others."""
    alike = choice.alike
    rest = [one for one in choice.order if one not in alike]
    behind = f"; {listed([one.name for one in rest])} {_is(rest)} surely slower" if rest else ""
    first, last = alike[0], alike[-1]
    fewer = 1 - last.best_tokens_per_s / first.best_tokens_per_s
    apart = (
        "they train as many tokens a second to 0.1 %" if fewer < 1e-3
        else f"{last.name} trains {small_share(fewer)} fewer tokens a second than {first.name}"
    )  # fmt: skip
    priced = all(one.million is not None for one in alike)
    doubt = (
        "; another price list may turn it."
        if priced
        else ", and with it the choice: no prices were given, and price or power may well decide."
    )
    order = (
        f"On speed {listed([one.name for one in alike])} cannot be told apart: {apart}"
        f"{_by_fastest(alike)}, closer than the model can tell{behind}."
    )
    return [order, f"In doubt: the order of these {_COUNTS.get(len(alike), len(alike))}{doubt}"]


def _by_fastest(offers: Sequence[Offer]) -> str:
    """Return that a share is of the fastest layouts, where those are not the ones shown."""
    other = any(one.best_tokens_per_s > one.tokens_per_s for one in offers)
    return " with the fastest layouts" if other else ""


def _decided(choice: Choice, first: Candidate) -> list[str]:
    """Return what to say when the fastest is surely the fastest."""
    pick, second = choice.order[:2]
    faster_by = pick.best_tokens_per_s / second.best_tokens_per_s - 1
    fewer = small_share(1 - 1 / (1 + faster_by))
    low_s, high_s = first.step["interval_s"]
    doubt = (
        f"In doubt: little of the order by speed, for {pick.name} is the faster in nine cases "
        f"of ten by the model's own error, but its step may take {format_time(low_s)} to "
        f"{format_time(high_s)}{cut_doubt(first)}."
    )
    if choice.cheaper is None and pick.million is not None and _all_priced(choice):
        doubt += f" A million tokens cost least on it, too: {pick.million.text}."
    by = _by_fastest((pick, second))
    behind = f"The next by speed, {second.name}, trains {fewer} fewer tokens a second{by}"
    if choice.cheaper is None:
        behind += (
            f": it wins only where it turns out {small_share(faster_by)} faster, or costs {fewer} "
            "less"
        )
    return [f"{behind}.", doubt]


def _needed(choice: Choice, first: Candidate) -> list[str]:
    """Return what to say of clusters that are each just large enough for a run."""
    pick, second = choice.order[:2]
    low_s, high_s = first.step["interval_s"]
    if pick.run is not None and second.run is not None:
        more = small_share(second.run.amount / pick.run.amount - 1) if pick.run.amount else "far"
        behind = f"The next, {second.name}, takes {second.run.text}, {more} more"
    else:
        behind = f"The next, {second.name}, needs {second.gpus:,} GPUs"
    doubt = (
        f"In doubt: each is as large as its predicted step asks for; a step of {pick.name} may "
        f"take {format_time(low_s)} to {format_time(high_s)}, and days, GPUs and money go with it"
        f"{cut_doubt(first)}."
    )
    return [f"{behind}.", doubt]


def _all_priced(choice: Choice) -> bool:
    return all(one.million is not None for one in choice.order)


def _is(many: Sequence[Offer]) -> str:
    return "are" if len(many) > 1 else "is"


def _work(one: Candidate) -> tuple[Any, ...]:
    return one.model, one.gpus, one.layout["global_batch"], one.layout["seq"]


def listed(words: Sequence[str]) -> str:
    """Return words as a list.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
