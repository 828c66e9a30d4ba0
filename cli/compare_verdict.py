"""What ``planner compare`` says first: what to take, as its report says it, and how surely."""

from __future__ import annotations

from cli.compare_cuts import row_name
from cli.compare_report import Comparison
from cli.report_choice import (
    Choice,
    Cost,
    Offer,
    chosen_by_need,
    chosen_by_speed,
    entry_names,
)
from cli.report_words import close_words
from cli.search_report import used_bytes
from planner.place.answer import Proof
from planner.procure.budget import format_money
from planner.procure.run import Run
from planner.search.compare import Entry
from planner.search.finalist import is_tie
from planner.search.given import spelled_layout
from planner.steptime.document import interval_s
from planner.units import format_number, format_share, format_time


def verdict_lines(found: Comparison) -> list[str]:
    """Return what to take, with which layout, and whether it is told from the others."""
    choice, ranked = choice_of(found), found.compared.ranked
    if choice is None:
        return ["None of them fits in memory.", _told(found.first, found)]
    names = _names(found)
    pick = ranked[names.index(choice.pick.name)]
    taken = [choice.sentence] if len(ranked) > 1 else []
    return [*taken, _told(pick, found), *_just_fitting(choice, found)]


def _names(found: Comparison) -> list[str]:
    """Return what each entry is called where one is chosen from them."""
    ranked = found.compared.ranked
    return entry_names([one.candidate.name for one in ranked], [one.label for one in ranked])


def _just_fitting(choice: Choice, found: Comparison) -> list[str]:
    """Return which of those that are taken, or tie with it, fit in memory only just."""
    close = {
        row_name(one, found): close_words(
            used_bytes(one.finalist.memory), one.finalist.memory.capacity_bytes
        )
        for name, one in zip(_names(found), found.compared.ranked, strict=True)
        if name in {offer.name for offer in (*choice.alike, *choice.named)}
    }
    return [f"{name}: {words}" for name, words in close.items() if words]


def choice_of(found: Comparison) -> Choice | None:
    """Return which to take; None where none fits in memory."""
    offers = [
        _offer(name, one, run, found)
        for name, one, run in zip(_names(found), found.compared.ranked, found.runs, strict=True)
    ]
    if found.asked.sizes.goal.equal == "run":
        return chosen_by_need(offers, found.asked.sizes.budget)
    return chosen_by_speed(offers)


def _offer(name: str, one: Entry, run: Run, found: Comparison) -> Offer:
    first, final = found.first.finalist, one.finalist
    currency = found.prices.currency if found.prices else ""

    def cost(amount: float | None) -> Cost | None:
        return None if amount is None else Cost(amount, format_money(amount, currency))

    per_token = run.cost_per_token
    return Offer(
        name=name, gpus=one.candidate.gpus, tokens_per_s=float(final.step.tokens_per_s),
        best_tokens_per_s=1.0 / found.best_token_s(one), step_s=final.step_s,
        tier=final.placement.tier, cut_bytes=final.seated_bytes, fits=bool(final.memory.fits),
        is_tie=is_tie(first, final), run=cost(run.cost),
        million=cost(None if per_token is None else per_token * 1e6),
    )  # fmt: skip


def _told(pick: Entry, found: Comparison) -> str:
    """Return the step and layout of what is taken, and which the model cannot tell from it."""
    final = pick.finalist
    low, high = interval_s(final.step)
    text = (
        f"{row_name(pick, found)}: a step takes {format_time(final.step_s)} ({format_time(low)} to "
        f"{format_time(high)}) with {spelled_layout(final.layout)}."
    )
    if final.seating == "least-cut" and final.placement.proof is Proof.INCUMBENT:
        text += (
            f" Its cut is not proved the least: up to {format_share(final.placement.gap)} of it "
            "may be saved in other seats, see below."
        )
    others = [one for one in found.compared.ranked if one is not pick]
    if found.asked.sizes.goal.equal == "run" or not others:
        return text
    ties = [
        f"{row_name(one, found)} ({_speed(one, found)})"
        for one in others if is_tie(final, one.finalist)
    ]  # fmt: skip
    if ties:
        return f"{text} A tie with {', '.join(ties)}: the model cannot tell them apart at 90 %."
    return f"{text} The model tells it from all others at 90 %."


def _speed(one: Entry, found: Comparison) -> str:
    """Return an entry's step, or tokens a second where steps do not compare."""
    if same_work(found):
        return format_time(one.finalist.step_s)
    return f"{tokens_words(float(one.finalist.step.tokens_per_s))} tokens/s"


def same_work(found: Comparison) -> bool:
    """Return whether all rows train the same batch on as many GPUs, so that steps compare."""
    jobs = {
        (one.candidate.gpus, one.finalist.layout.global_batch, one.finalist.layout.seq)
        for one in found.compared.ranked
    }
    return len(jobs) == 1


def tokens_words(per_s: float) -> str:
    """Return tokens a second with a prefix, four digits where rounded.

    >>> tokens_words(3_117_053.0), tokens_words(498_388.0)
    ('3.117 M', '498.4 k')
    """
    if per_s >= 1e6:
        return f"{format_number(per_s / 1e6, digits=4)} M"
    return f"{format_number(per_s / 1e3, digits=4)} k"
