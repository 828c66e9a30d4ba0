"""What the page's own words mean, those that stand on it only."""

from __future__ import annotations

from collections.abc import Sequence

_TERMS = {
    "DP+CP": "DP sums gradients over the context parallel ranks, too",
    "EDP": "EDP is data parallelism of experts",
    "greedy": "greedy seats rank after rank where it adds least",
    "pack-first": "pack first fills the largest domains first, in rank order",
    "whole-pipelines": "whole pipelines seats pipelines one after the other",
    "boxes within boxes": "boxes within boxes fills what one box of ranks leaves free of a domain "
    "with smaller ones",
}


def terms_line(digits: Sequence[str], seatings: Sequence[str], method: str) -> str:
    """Return the meaning of the words that a page uses, or nothing.

    Args:
        digits: degrees in the table, ``tp`` … ``pp``.
        seatings: the plan and its baselines by name.
        method: how the plan was found.

    >>> terms_line(["tp", "edp"], ["this plan", "greedy"], "equal tiles 2x4")
    'EDP is data parallelism of experts; greedy seats rank after rank where it adds least.'
    """
    used = {*(digit.upper() for digit in digits), *seatings}
    if {"DP", "CP"} <= used:
        used.add("DP+CP")
    said = [text for word, text in _TERMS.items() if word in used or word in method]
    return f"{'; '.join(said)}." if said else ""
