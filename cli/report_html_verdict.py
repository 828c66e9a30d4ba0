"""What a report says of several candidates: which to take, by how much, and the doubt."""

from __future__ import annotations

from collections.abc import Sequence
from math import log, sqrt
from typing import Any

from cli.report_html_candidates import Candidate
from cli.report_html_words import small_share
from planner.steptime.uncertainty import faster
from planner.units import format_bytes, format_share, format_time
from planner.words import plural

_COUNTS = {2: "two", 3: "three", 4: "four"}
_NINETY_PERCENT = 1.645  # standard deviations to each side that hold 90 %


def comparison(all_of_them: Sequence[Candidate], must: str = "fits in memory") -> list[str]:
    """Return the three sentences about several candidates: the best, by how much, and the doubt.

    Args:
        all_of_them: to choose from.
        must: what a candidate must do to be among them.
    """
    fitting = [one for one in all_of_them if one.fits]
    if not fitting:
        return [
            "None of the candidates fits in memory.",
            "The side-by-side table says what each needs.",
            "In doubt: memory is an estimate with a margin; a candidate close to it may fit.",
        ]
    order = _by_speed(fitting)
    first = order[0]
    if len(order) == 1:
        sentences = [
            f"Take {_called(first, all_of_them)}: {_speed(first)}.",
            f"It is the only candidate that {must}.",
            "In doubt: memory is an estimate with a margin; a candidate close to it may fit.",
        ]
    else:
        alike = _alike(order)
        sentences = _tied(order, alike) if len(alike) > 1 else _decided(order)
    if len({_work(one) for one in all_of_them}) > 1:
        sentences[-1] += (
            " The candidates do not do the same work (model, batch, sequence or GPUs differ): "
            "compare tokens a second with care."
        )
    return sentences


def picked(all_of_them: Sequence[Candidate]) -> Candidate | None:
    """Return the candidate that ``comparison`` recommends, None where none fits."""
    order = _by_speed([one for one in all_of_them if one.fits])
    return _cheapest(_alike(order)) if order else None


def _by_speed(fitting: Sequence[Candidate]) -> list[Candidate]:
    return sorted(fitting, key=lambda one: -one.tokens_per_s)


def _alike(order: Sequence[Candidate]) -> list[Candidate]:
    """Return the fastest, and those that cannot be told from it."""
    return [order[0], *(one for one in order[1:] if not _told_apart(order[0], one))]


def _cheapest(alike: Sequence[Candidate]) -> Candidate:
    """Return of some the cheapest, or where prices are not known the one that crosses least."""
    if any(one.cost is None for one in alike):
        return min(alike, key=lambda one: one.cut_bytes)
    return min(alike, key=lambda one: one.cost.amount if one.cost is not None else 0.0)


def _called(one: Candidate, all_of_them: Sequence[Candidate]) -> str:
    """Return a candidate's name, and its cluster where they differ and the name does not say it."""
    alike = all(other.cluster == one.cluster for other in all_of_them)
    return one.name if alike or one.cluster in one.name else f"{one.name} (on {one.cluster})"


def _speed(one: Candidate) -> str:
    return (
        f"{one.tokens_per_s:,.0f} tokens/s, a step of {format_time(one.step['total_s'])}, "
        f"{format_bytes(one.cut_bytes)} a step across {plural(one.tier)}"
    )


def _tied(order: Sequence[Candidate], alike: Sequence[Candidate]) -> list[str]:
    """Return what to say when the fastest cannot be told from others."""
    pick = _cheapest(alike)
    priced = all(one.cost is not None for one in alike)
    why = (
        f"the cheapest of the fastest, at {pick.cost.text} a million tokens"
        if priced and pick.cost is not None
        else f"the one that asks least of the network between its {plural(pick.tier)}"
    )
    rest = [one for one in order if one not in alike]
    behind = f"; {listed([one.name for one in rest])} {_is(rest)} surely slower" if rest else ""
    fewer = 1 - alike[-1].tokens_per_s / alike[0].tokens_per_s
    order_words = (
        f"On speed {listed([one.name for one in alike])} cannot be told apart: from first to last "
        f"{small_share(fewer)}, less than the model knows{behind}."
    )
    doubt = (
        "; another price list may turn it."
        if priced
        else ", and with it the choice: no prices were given, and price or power may well decide."
    )
    return [
        f"Take {_called(pick, order)}, {why}: {_speed(pick)}.",
        order_words,
        f"In doubt: the order of these {_COUNTS.get(len(alike), len(alike))}{doubt}",
    ]


def _decided(order: Sequence[Candidate]) -> list[str]:
    """Return what to say when the fastest is surely the fastest."""
    first, second = order[:2]
    faster_by = first.tokens_per_s / second.tokens_per_s - 1
    fewer = 1 - 1 / (1 + faster_by)
    text = (
        f"The next, {second.name}, brings {small_share(fewer)} fewer tokens a second: it wins "
        f"only where it turns out {small_share(faster_by)} faster, or costs {small_share(fewer)} "
        "less"
    )
    low_s, high_s = first.step["interval_s"]
    doubt = (
        f"In doubt: little of the order by speed, for {first.name} is the faster in nine cases "
        f"of ten by the model's own error, but its step may take {format_time(low_s)} to "
        f"{format_time(high_s)}"
    )
    if first.gap > 0:
        doubt += f", and its seating is not proved the best: gap {format_share(first.gap)}"
    priced = [(one.cost.amount, one.cost.text, one) for one in order if one.cost is not None]
    if first.cost is not None and len(priced) == len(order):
        _, text_of_cheapest, cheapest = min(priced, key=lambda bid: bid[0])
        doubt += (
            f". A million tokens cost least on it, too: {text_of_cheapest}"
            if cheapest is first
            else f". But a million tokens cost least on {cheapest.name}: {text_of_cheapest}, "
            f"against {first.cost.text} on {first.name}"
        )
    return [f"Take {_called(first, order)}: {_speed(first)}.", f"{text}.", f"{doubt}."]


def _is(many: Sequence[Candidate]) -> str:
    return "are" if len(many) > 1 else "is"


def _work(one: Candidate) -> tuple[Any, ...]:
    return one.model, one.gpus, one.layout["global_batch"], one.layout["seq"]


def _told_apart(first: Candidate, other: Candidate) -> bool:
    """Return whether the first is the faster in nine cases of ten, by the model's own error.

    Part of the error is common to plans of one model of the step, and does not count.
    """
    steps = [one.step for one in (first, other)]
    if any(step["interval_s"][0] <= 0 for step in steps):
        return False
    spreads = [
        log(high_s / low_s) / (2 * _NINETY_PERCENT)
        for low_s, high_s in (step["interval_s"] for step in steps)
    ]
    first_s, other_s = (1 / max(step["tokens_per_s"], 1e-300) for step in steps)
    return faster(first_s, other_s, sqrt((spreads[0] ** 2 + spreads[1] ** 2) / 2)).told_apart


def listed(words: Sequence[str]) -> str:
    """Return words as a list.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)
