"""What must be known of a table of steps: rows skipped, what was assumed, columns not read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from textwrap import fill
from typing import TYPE_CHECKING

from rich.text import Text

from planner.units import format_bytes
from topologies.steps_cells import COLUMNS
from topologies.steps_table import StepsTable

if TYPE_CHECKING:
    from rich.console import Console

    from planner.steptime.suspects import Overfull

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
            print_hanging(console, line)


def print_hanging(console: Console, line: str) -> None:
    """Print *line* two columns in, all of its lines."""
    inset = "  "
    console.print(
        Text(
            fill(
                line, console.width, initial_indent=inset, subsequent_indent=inset,
                break_on_hyphens=False,
            )
        )
    )  # fmt: skip


def print_overfull(console: Console, rows: Sequence[Overfull]) -> None:
    """Print the runs that ran, and are predicted to need far more memory than a GPU has."""
    if rows:
        console.print()
        console.print(Text("Ran, but are predicted not to fit by far", style="bold"))
    for row in rows:
        print_hanging(
            console,
            f"{row.name}: {format_bytes(row.needed_bytes)} of the GPU's "
            f"{format_bytes(row.capacity_bytes)}: check TP, PP, ZeRO, recomputation and batch",
        )


def unread_steps(table: StepsTable) -> str:
    """Return why rows that can be read have no measured step: none, or a column not read."""
    if not table.runs or any(run.measured_s > 0 for run in table.runs):
        return ""
    unread = ", ".join(table.unknown)
    named = f"; columns that are not read: {unread}" if unread else ""
    return f": the column measured_step_s, in seconds, has none{named}"


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
