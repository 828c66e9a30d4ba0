"""Tables that the pages in a terminal share: of one look, and the same truth in each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from cli.report_words import part_words
from planner.units import format_bytes, format_share, format_time

if TYPE_CHECKING:
    from planner.steptime.critical_path import PathEntry
    from planner.steptime.memory import Memory

_LEAST_SHOWN_SHARE = 0.0005  # of the step: what shows and hides less is left out
_PATH_COLUMNS = 73  # characters of a line beside the bars of the critical path
_MEMORY_COLUMNS = 40  # and beside those of the memory


def simple_table(*columns: str, left: int = 1) -> Table:
    """Return an unframed table, its first *left* columns to the left."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position < left else "right",
                         no_wrap=position >= left, overflow="fold")  # fmt: skip
    return table


def labelled(lines: Iterable[tuple[str, str]]) -> Table:
    """Return label and text in two columns, the text wrapped beside the label."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    for label, text in lines:
        table.add_row(Text(f"  {label}"), Text(text))
    return table


def path_table(entries: Sequence[PathEntry], width: int) -> Table:
    """Return the parts of a step, the largest first, with a bar for each on a line of *width*."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("  part", no_wrap=True)
    for title in ("in the step", "share", "hidden", "gain if free"):
        table.add_column(title, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for entry in entries:
        hidden = max(0.0, entry.own_s - entry.seconds)
        if entry.share < _LEAST_SHOWN_SHARE and hidden < _LEAST_SHOWN_SHARE * entries[0].seconds:
            continue
        table.add_row(
            f"  {part_words(entry.kind, entry.name)}",
            format_time(entry.seconds),
            format_share(entry.share, digits=2 if entry.share < 0.1 else 3),
            format_time(hidden) if hidden > 1e-9 else "",
            format_time(entry.gain_if_free_s),
            "█" * round(entry.share * (width - _PATH_COLUMNS)),
        )
    return table


def memory_table(memory: Memory, width: int) -> Table:
    """Return the parts of the fullest GPU's memory, with a bar for each on a line of *width*."""
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(no_wrap=True)
    used = float(memory.worst_stage_bytes) + memory.margin_bytes
    scale = max(used, memory.capacity_bytes)
    parts = sorted(memory.parts.items(), key=lambda item: -float(item[1]))
    rows: list[tuple[str, float]] = [(name, float(value)) for name, value in parts if value > 0]
    for name, value in [*rows, ("margin", memory.margin_bytes)]:
        bar = "█" * round(value / scale * (width - _MEMORY_COLUMNS))
        table.add_row(f"  {name}", format_bytes(value), bar)
    table.add_row(
        "  all", format_bytes(used),
        f"of {format_bytes(memory.capacity_bytes)}, {format_share(used / memory.capacity_bytes)}",
    )  # fmt: skip
    return table
