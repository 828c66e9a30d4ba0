"""What must be known of a table of steps: rows skipped, what was assumed, columns not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from rich.text import Text

from topologies.steps_cells import COLUMNS
from topologies.steps_table import StepsTable

if TYPE_CHECKING:
    from rich.console import Console

_NAMES_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """What some rows do not say, or nobody measured on their accelerator.

    Args:
        name: what was assumed.
        because: its value and where that is from.
        rows: how many [1].
    """

    name: str
    because: str
    rows: int


def assumptions(of_rows: Iterable[Mapping[str, str]]) -> tuple[Assumption, ...]:
    """Return what was assumed of some rows, each a name to its reason, that of most first."""
    found = Counter(pair for row in of_rows for pair in row.items())
    ordered = sorted(found.items(), key=lambda one: (-one[1], one[0]))
    return tuple(
        Assumption(name=name, because=because, rows=rows) for (name, because), rows in ordered
    )


def print_table_notes(console: Console, table: StepsTable, assumed: Iterable[Assumption]) -> None:
    """Print why rows are skipped, what was assumed of others, and which columns are not read."""
    skipped = skipped_lines(table)
    guesses = [
        f"{one.name}, {one.rows:,} row{'s' if one.rows > 1 else ''}: {one.because}"
        for one in assumed
    ]
    unknown = [_told(column) for column in table.unknown]
    for title, lines in (
        ("Skipped", skipped),
        ("Assumed", guesses),
        ("Columns that are not read", unknown),
    ):
        if lines:
            console.print()
            console.print(Text(title, style="bold"))
        for line in lines:
            console.print(Text(f"  {line}"))


def skipped_lines(table: StepsTable) -> list[str]:
    """Return each reason that rows are skipped for, behind the names of its first rows."""
    reasons: dict[str, list[str]] = {}
    for row in table.skipped:
        reasons.setdefault(row.because, []).append(row.name)
    lines = []
    for because, names in reasons.items():
        more = f" and {len(names) - _NAMES_SHOWN:,} more" if len(names) > _NAMES_SHOWN else ""
        lines.append(f"{', '.join(names[:_NAMES_SHOWN])}{more}: {because}")
    return lines


def _told(column: str) -> str:
    near = get_close_matches(column.lower(), COLUMNS, n=1)
    return f"{column}: {near[0]} is read" if near else column
