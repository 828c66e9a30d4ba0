"""Words that the page in a browser and the page in a terminal share, so that both say the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from cli.compare_tried import tokens_words
from cli.planner_options import DEFAULT_TIME_LIMIT_S
from planner.place.answer import Proof
from planner.search.given import spelled_layout
from planner.units import format_bytes, format_power, format_share, format_time

if TYPE_CHECKING:
    from planner.layout import Layout
    from planner.place.answer import Placement
    from planner.search.defaults import Choice

_PARTS: Mapping[str, str] = {
    "gemm": "matrix products", "memory": "memory-bound work", "host": "kernel launches",
    "recompute": "recomputation", "bubble": "pipeline bubble", "update": "optimizer",
    "fixed": "data and logging", "straggling": "slowest GPU's lag",
}  # fmt: skip
_RUN = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")  # and their full-width forms
LONG_DAYS = 365.0
"""A run that takes longer is none that anybody starts: chips are replaced before it ends [days]."""
_CLOSE_SHARE = 0.95  # of the memory: more is in reach of an allocator's fragments


def close_words(used_bytes: float, capacity_bytes: float) -> str:
    """Return a warning where something fits in memory, but only just; else nothing.

    Args:
        used_bytes: of the fullest GPU, with its margin [bytes].
        capacity_bytes: of a GPU [bytes].

    >>> close_words(99.6, 100.0)
    'It fits only just: 99.6 % of the memory, margin included, by an estimate.'
    >>> close_words(50.0, 100.0), close_words(101.0, 100.0)
    ('', '')
    """
    share = used_bytes / capacity_bytes
    if not _CLOSE_SHARE <= share <= 1:
        return ""
    return (
        f"It fits only just: {format_share(share)} of the memory, margin included, by an estimate."
    )


def of_which_peak(layout: Layout) -> str:
    """Return which peak an MFU is of, where that is not the one of the layout's products.

    >>> from planner.layout import Layout
    >>> of_which_peak(Layout(precision="fp8")), of_which_peak(Layout(precision="bf16"))
    (' of the 16-bit peak', '')
    """
    return " of the 16-bit peak" if layout.precision == "fp8" else ""


def shorter_words(step_s: float, rivals: Mapping[str, float], least_share: float = 5e-4) -> str:
    """Return what to say when another seating takes less time than the one with fewest bytes.

    Args:
        step_s: of the plan [s].
        rivals: what other seatings are called, the plainest first, and their steps [s].
        least_share: of the step; less is not worth a sentence.

    >>> shorter_words(2.0, {"rank order": 1.5, "greedy": 1.5})[:76]
    'Fewest bytes is not the shortest step here: rank order takes 1.5 s, 25 % les'
    >>> shorter_words(2.0, {"rank order": 2.0}), shorter_words(2.0, {})
    ('', '')
    """
    name, least_s = min(rivals.items(), key=lambda item: item[1], default=("", step_s))
    saved = 1 - least_s / step_s if step_s > 0 else 0.0
    if saved < least_share:
        return ""
    return (
        f"Fewest bytes is not the shortest step here: {name} takes {format_time(least_s)}, "
        f"{format_share(saved)} less, for more of what it crosses is hidden or in fewer messages."
    )


_GO_FIRST = "which go first where the model cannot tell at 90 % which is faster."
NOT_USUAL = f"It is not run in one of the usual ways, {_GO_FIRST}"
"""Why a faster layout is passed over."""
NONE_USUAL = f"None of these is run in one of the usual ways, {_GO_FIRST}"
"""The same of several."""


def passed_over_words(choice: Choice) -> str:
    """Return which faster layout was not taken, why not, and how to take it; often nothing."""
    if choice.passed_over is None:
        return ""
    return (
        f"A faster layout was passed over: {spelled_layout(choice.passed_over)}, "
        f"{format_time(choice.passed_over_s)}, {passed_over_share(choice)} less. {NOT_USUAL} "
        "planner place --take fastest takes it."
    )


def passed_over_share(choice: Choice) -> str:
    """Return by how much the layout that was passed over is faster, in quick seats as both are."""
    return saved_share(choice.passed_over_s, choice.seated_s)


def saved_share(faster_s: float, taken_s: float) -> str:
    """Return by how much a step is shorter than that of what is taken.

    >>> saved_share(0.968, 1.0)
    '3.2 %'
    """
    return format_share(1.0 - faster_s / taken_s)


def not_proved_words(found: Iterable[tuple[str, Placement]], limit_s: float) -> str:
    """Return whose least cut is not proved the least, by how much, and why; often nothing.

    Args:
        found: what each is called, and its placement.
        limit_s: seconds that each was looked for [s].
    """
    said = [
        f"{name} (up to {format_share(placement.gap)} less, at least "
        f"{format_bytes(placement.lower_bound_bytes)} in any seats)"
        for name, placement in found
        if placement.proof is Proof.INCUMBENT
    ]
    if not said:
        return ""
    shows = "less" if limit_s < DEFAULT_TIME_LIMIT_S else "another"
    return (
        f"Not proved the least: {', '.join(said)}. Seats are searched for {format_time(limit_s)} a "
        f"layout here, for {DEFAULT_TIME_LIMIT_S:g} s by planner place, which may so show {shows}; "
        "--time-limit sets it in both."
    )


def part_words(kind: str, name: str) -> str:
    """Return what a part of the step is called.

    Args:
        kind: of an entry of the critical path; ``communication`` is a family's traffic.
        name: of the entry.

    >>> part_words("compute", "gemm"), part_words("communication", "ep")
    ('matrix products', 'EP traffic')
    """
    return f"{name.upper()} traffic" if kind == "communication" else _PARTS.get(name, name)


def plain_cell(text: str) -> str:
    """Return *text* for a cell of a table; what a spreadsheet would run gets an apostrophe first.

    >>> plain_cell("=1+1"), plain_cell(" @x"), plain_cell("a-b")
    ("'=1+1", "' @x", 'a-b')
    """
    return (
        f"'{text}" if text.strip().startswith(_RUN) or text.startswith(("\t", "\r", "\n")) else text
    )


def boxes_words(boxes: Iterable[str]) -> list[str]:
    """Return the sentence that says which boxes a purchase leaves out; none where it has all.

    Args:
        boxes: without a price, of every bill.

    >>> boxes_words(["supernode", "server", "server"])
    ['Not in the purchase, for want of a price in the list: server, supernode.']
    """
    named = ", ".join(sorted(set(boxes)))
    return [f"Not in the purchase, for want of a price in the list: {named}."] if named else []


def power_words(overhead_ratio: float) -> str:
    """Return what a power of known parts is called: with what cools them it is at the meter.

    >>> power_words(1.25), power_words(1.0)
    ('power at the meter', 'power of the parts')
    """
    return "power of the parts" if overhead_ratio == 1.0 else "power at the meter"


def shorter_run_words(tokens: float) -> str:
    """Return how to ask for the GPUs that train *tokens* in a season.

    >>> shorter_run_words(15e12)
    'planner compare --tokens 15T --days 90 says how many GPUs do it in 90'
    """
    return (
        f"planner compare --tokens {tokens_words(tokens)} --days 90 says how many GPUs do it in 90"
    )


def energy_words(energy_j: float) -> str:
    """Return an energy as a meter counts it [Wh].

    >>> energy_words(54.574e12), energy_words(3.6e9)
    ('15.2 GWh', '1 MWh')
    """
    return f"{format_power(energy_j / 3600.0)}h"


def price_in_time(ruled_s: float, free_s: float) -> str:
    """Return what rules cost of a step's time.

    >>> price_in_time(102.0, 100.0), price_in_time(100.0, 100.0)
    ('2 s of a step (2 %): 102 s with the rules, 100 s without', 'a step is as long without them')
    """
    apart = ruled_s / free_s - 1
    if abs(apart) < 5e-4:
        return "a step is as long without them"
    longer = "" if apart > 0 else ", which is shorter with them"
    return (
        f"{format_time(abs(ruled_s - free_s))} of a step ({format_share(abs(apart), digits=2)})"
        f"{longer}: {format_time(ruled_s)} with the rules, {format_time(free_s)} without"
    )
