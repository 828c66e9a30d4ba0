"""Where the winner of a comparison flips: the page's tables and what is said about them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cli.compare_report import Comparison, flip_value
from cli.page_tables import simple_table
from cli.property_words import (
    PROPERTIES,
    factor_words,
    grid_words,
    property_value,
    property_values,
    property_words,
    span_words,
)
from cli.report_words import NONE_USUAL, NOT_USUAL, saved_share
from planner.search.defaults import AS_GOOD_SHARE
from planner.search.given import spelled_layout
from planner.search.standings import NO_FIT
from planner.units import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from planner.search.compare import Entry
    from planner.search.flips import Flip

_ALIKE_SHARE = 5e-4  # of a step; less is not worth a sentence
_KINDS = {"winner": "fastest cluster", "tie": "tie", "layout": "best layout"}
_SEATED = (
    "Each is of layouts with every rank in a seat, on both sides; what is first or best now stays "
    "so until another is 0.1 % faster. Further on another may lead again. A NIC's rate is varied "
    "with its PCIe link's and with all links outside the supernodes. Every layout that its seats "
    "could make the fastest there is seated; a flip that no layout in rank order shows is not "
    "looked for."
)
CUT_SHORT = "Cut short by Ctrl-C: neither flips nor where to spend were looked for to the end."


@dataclass(frozen=True, slots=True)
class Question:
    """One question about what changes: its words, and where the answer changes."""

    words: str
    table: Table


def flip_questions(found: Comparison) -> list[Question]:
    """Return the flips by what is asked, each with what holds now in its words."""
    asked: dict[str, list[Flip]] = {}
    for one in (*found.flips, *found.unseated):
        kind = f"{one.kind} {NO_FIT}" if one.after == NO_FIT else one.kind
        asked.setdefault(kind, []).append(one)
    first = found.first.candidate.name
    words = {
        "winner": "The fastest cluster is no longer {}",
        f"winner {NO_FIT}": "No layout fits any longer on any cluster; the fastest until then: {}",
        "tie": "No longer {}",
        f"tie {NO_FIT}": "No layout fits any longer on any cluster; until then: {}",
        "layout": f"The best layout on {first} is no longer {{}}",
        f"layout {NO_FIT}": f"No layout fits any longer on {first}; the best until then: {{}}",
        "cheapest": "The cheapest cluster by tokens is no longer {}",
    }
    return [
        Question(words[kind].format(asked[kind][0].before), _table(asked[kind], found))
        for kind in words
        if kind in asked
    ]


def _table(flips: list[Flip], found: Comparison) -> Table:
    then = "then" if flips[0].after == NO_FIT else "then it is"
    # a price at which two cost the same is worked out: it holds up to there
    asked = flips[0].kind != "cheapest"
    table = simple_table(
        "  property", *(("holds to",) if asked else ()), "changes at", "x now", then, left=5
    )
    for column in table.columns[:-1]:
        column.no_wrap = True
    currency = found.prices.currency if found.prices else ""
    for one in flips:
        held_now = flip_value(replace(one, factor=one.held_factor), found)
        held, value = property_values(one.name, held_now, flip_value(one, found), currency)
        table.add_row(
            f"  {property_words(one.name)}", *((held,) if asked else ()), value,
            factor_words(one.factor), one.after,
        )  # fmt: skip
    return table


def now_sentence(found: Comparison) -> str:
    """Return what flips start from: the fastest layout of all, which also ranks clusters."""
    first = found.first.candidate.name
    step_s = found.compared.fastest[first].step_s
    if found.asked.sizes.goal.equal == "run":
        return f"They start from the fastest layout of {first}, a step of {format_time(step_s)}."
    return (
        f"They start from the fastest layout of each cluster, by which they are ranked: {first} is "
        f"first, with a step of {format_time(step_s)}."
    )


def fastest_lines(found: Comparison) -> list[str]:
    """Return where the ranking shows another layout than the fastest, and why."""
    return [*_alike(found), *_passed_over(found)]


def _taken_s(one: Entry, found: Comparison) -> float:
    """Return the step of a ranked layout in quick seats, as that of the fastest is timed [s]."""
    steps = found.compared.seats[one.candidate.name]
    return steps.quick_s(one.candidate.model, one.finalist.layout)


def _alike(found: Comparison) -> list[str]:
    """Return where the ranking has a layout as good as the fastest, and why, if anywhere."""
    others = []
    for one in found.compared.ranked:
        fastest, taken_s = found.compared.fastest[one.candidate.name], _taken_s(one, found)
        if _ALIKE_SHARE <= taken_s / fastest.step_s - 1.0 <= AS_GOOD_SHARE:
            others.append(f"{saved_share(fastest.step_s, taken_s)} on {one.candidate.name}")
    if not others:
        return []
    return [
        (
            "The layouts shown are those that planner place takes. The model can hardly tell them "
            "from the fastest, and they have fewer stages, less that must be hidden, or are run in "
            "a more usual way: the fastest take less by "
            f"{', '.join(others)}."
        )
    ]


def _passed_over(found: Comparison) -> list[str]:
    """Return which faster layouts the ranking passes over, in the words of ``planner place``."""
    said = []
    for one in found.compared.ranked:
        fastest, taken_s = found.compared.fastest[one.candidate.name], _taken_s(one, found)
        if taken_s / fastest.step_s - 1.0 > AS_GOOD_SHARE:
            said.append(
                f"A faster layout was passed over on {one.candidate.name}: "
                f"{spelled_layout(fastest.layout)}, {format_time(fastest.step_s)}, "
                f"{saved_share(fastest.step_s, taken_s)} less."
            )
    if said:
        said[-1] += f" {NOT_USUAL if len(said) == 1 else NONE_USUAL}"
    return said


def flip_lines(found: Comparison) -> list[str]:
    """Return what stands below the tables."""
    return [_flip_sentence(found), *_seated_lines(found)]


def _flip_sentence(found: Comparison) -> str:
    every = (*found.flips, *found.unseated, *found.unanswered)
    flipped = {one.name for one in every if one.kind == "winner"}
    varied = [n for n in PROPERTIES if n != "experts" or found.first.candidate.model.experts]
    still = [PROPERTIES[name] for name in varied if name not in flipped]
    if found.asked.sizes.goal.equal == "run":
        looked = (
            f"All do the run in time: of {found.first.candidate.name} alone it is looked where "
            f"another layout is best, from x 1/32 to x 32 ({span_words(varied)})."
        )
    elif still and len(found.compared.pools) > 1:
        looked = (
            f"No other cluster wins by 0.1 % within x 1/32 to x 32 ({span_words(varied)}) of: "
            f"{', '.join(still)}."
        )
    else:
        looked = "Looked at from x 1/32 to x 32."
    return f"{looked} {grid_words(_proved(found))}"


def _proved(found: Comparison) -> dict[str, bool]:
    """Return of each property that was looked at whether no change was missed."""
    names = dict.fromkeys(one.name for one in found.looked)
    return {
        name: not any(one.unproved for one in found.looked if one.name == name) for name in names
    }


def _seated_lines(found: Comparison) -> list[str]:
    """Return that the flips hold with seats, and which of rank order do not."""
    lines = [_SEATED] if any(one.kind != "cheapest" for one in found.flips) else []
    if found.unseated:
        lines.append(
            "In rank order alone, for seating all that may be the fastest takes too long: "
            f"{_asked(found.unseated)}."
        )
    if found.unanswered:
        lines.append(f"Not found, for it takes too long to seat: {_asked(found.unanswered)}.")
    currency = found.prices.currency if found.prices else ""
    for one in found.contradicted:
        value = property_value(one.flip.name, flip_value(one.flip, found), currency)
        sides = one.after if one.before == one.after else f"{one.before}, then {one.after}"
        lines.append(
            f"Not with seats: {property_words(one.flip.name)} {value}. In rank order "
            f"{one.flip.before} becomes {one.flip.after}; seated it is {sides}."
        )
    return lines


def _asked(flips: Sequence[Flip]) -> str:
    """Return what was asked: which answer changes, by which property, and which way."""
    return ", ".join(
        f"{_KINDS[one.kind]} by {property_words(one.name)} {'up' if one.factor > 1.0 else 'down'}"
        for one in flips
    )
