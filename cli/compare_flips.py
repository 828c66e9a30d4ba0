"""Where the winner of a comparison flips: the page's table and what is said about it."""

from __future__ import annotations

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

if TYPE_CHECKING:
    from rich.table import Table


_WORDS_WIDTH = 11  # each side gets so much at least, beside prices and in 80 columns
_SEATED = (
    "Each is of layouts with every rank in a seat, on both sides; what is first or best now stays "
    "so until another is 0.1 % faster."
)


def flip_table(found: Comparison) -> Table:
    """Return the flips as a table."""
    table = simple_table("  property", "changes at", "from", "to", left=4)
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    table.columns[2].min_width = table.columns[3].min_width = _WORDS_WIDTH
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
    currency = found.prices.currency if found.prices else ""
    for one in found.contradicted:
        value = property_value(one.flip.name, flip_value(one.flip, found), currency)
        sides = one.after if one.before == one.after else f"{one.before}, then {one.after}"
        lines.append(
            f"Not with seats: {property_words(one.flip.name)} {value}. In rank order "
            f"{one.flip.before} becomes {one.flip.after}; seated it is {sides}."
        )
    return lines
