"""Where the winner of a comparison flips: the page's table and what is said about it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from cli.compare_report import Comparison, flip_value
from cli.page_tables import simple_table
from cli.property_words import (
    PROPERTIES,
    factor_words,
    grid_words,
    property_value,
    property_words,
    span_words,
)
from planner.search.seated_flips import SEATED

if TYPE_CHECKING:
    from rich.table import Table

    from planner.search.flips import Flip

_NOT_SEATED = (
    "Flips are of layouts in rank order. --seat-flips seats both sides of those of the sequence "
    "length and the experts."
)
_SEATED = (
    "With every rank in a seat {held} of the {count} flips of the sequence length and the experts "
    "hold on both sides."
)


def flip_table(found: Comparison) -> Table:
    """Return the flips as a table."""
    table = simple_table("  property", "changes at", "from", "to", left=4)
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    currency = found.prices.currency if found.prices else ""
    for one in found.flips:
        value = flip_value(one, found)
        table.add_row(
            f"  {property_words(one.name)}",
            f"{property_value(one.name, value, currency)} (x {factor_words(one.factor)})",
            one.before, one.after,
        )  # fmt: skip
    return table


def flip_lines(found: Comparison) -> list[str]:
    """Return what stands below the table."""
    return [_flip_sentence(found), *_seated_lines(found)]


def _flip_sentence(found: Comparison) -> str:
    flipped = {one.name for one in found.flips if one.kind == "winner"}
    varied = [n for n in PROPERTIES if n != "experts" or found.first.candidate.model.experts]
    still = [PROPERTIES[name] for name in varied if name not in flipped]
    return (
        f"No other cluster wins by 0.1 % within x 1/32 to x 32 ({span_words(varied)}) of: "
        f"{', '.join(still)}."
        if still and len(found.compared.pools) > 1
        else "Looked at from x 1/32 to x 32."
    ) + f" {grid_words()}"


def _seated_lines(found: Comparison) -> list[str]:
    """Return which flips do not hold with seats, or that nobody looked."""
    able = [one for one in found.flips if one.name in SEATED]
    if not able:
        return []
    if not found.seated:
        return [_NOT_SEATED]
    currency = found.prices.currency if found.prices else ""
    lines = []
    for one in found.seated:
        if one.holds:
            continue
        sides = (
            (one.flip.held_factor, one.flip.before, one.before),
            (one.flip.factor, one.flip.after, one.after),
        )
        lines += [
            f"Does not hold with seats: {property_words(one.flip.name)} "
            f"{property_value(one.flip.name, _value(one.flip, factor, found), currency)}: "
            f"{seated}, not {said}."
            for factor, said, seated in sides
            if said != seated
        ]
    held = sum(one.holds for one in found.seated)
    return [_SEATED.format(held=held, count=len(found.seated)), *lines]


def _value(flip: Flip, factor: float, found: Comparison) -> float:
    return flip_value(replace(flip, factor=factor), found)
