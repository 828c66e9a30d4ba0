"""What is proved of a candidate's cut, in the few words that stand beside its figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from planner.units import format_bytes, format_share

if TYPE_CHECKING:
    from cli.report_html_candidates import Candidate

_ALIKE_SHARE = 5e-4  # of bytes: less would be told as 0 %


def cut_note(one: Candidate) -> str:
    """Return what a reader may conclude of the bytes that cross: how few they could be, and why.

    A seating that crosses more than the least is taken where its step is shorter; that is no doubt.
    Else a gap is what the search left open: no seating can save more than that.
    """
    if not one.cut_bytes:
        return "a step, which no seating can better"
    least = one.least_bytes
    if one.cut_bytes > least * (1 + _ALIKE_SHARE):
        known = "the least" if one.open_share == 0 else "the least found"
        return (
            f"a step, in rank order, which takes less time; {known} is "
            f"{format_bytes(least) if least else 'none'}"
        )
    if one.open_share == 0:
        return f"a step, proved the least{one.proved_of}"
    return (
        f"a step; open: that another seating saves up to {format_share(one.open_share)}"
        f"{one.proved_of} was not ruled out in the time given"
    )


def least_words(one: Candidate) -> str:
    """Return whether what crosses is proved the least, what is open of it, or that others are."""
    if one.cut_bytes > one.least_bytes * (1 + _ALIKE_SHARE):
        return format_bytes(one.least_bytes) if one.least_bytes else "none"
    return "proved" if one.open_share == 0 else f"{format_share(one.open_share)} open"


def least_terms(all_of_them: Sequence[Candidate]) -> str:
    """Return what the words of ``least_words`` mean, of those that some candidate has."""
    said = "Least: whether what crosses is proved the least of all seatings"
    if any(one.open_share > 0 for one in all_of_them):
        said += "; a share that is open could still be saved, by the bound"
    if any(one.cut_bytes > one.least_bytes * (1 + _ALIKE_SHARE) for one in all_of_them):
        said += "; bytes are of other seats, whose step is longer"
    return f"{said}."


def cut_doubt(one: Candidate) -> str:
    """Return the same as the end of a sentence of doubt, empty where nothing is open."""
    if one.open_share == 0 or one.cut_bytes > one.least_bytes * (1 + _ALIKE_SHARE):
        return ""
    return (
        f", and that another seating saves up to {format_share(one.open_share)} of what crosses "
        "was not ruled out in the time given"
    )
