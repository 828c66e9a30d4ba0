"""The page of ``planner validate``: scores by source, groups of layouts, rows that are far off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich import box
from rich.table import Table
from rich.text import Text

from cli.steps_table_notes import print_overfull, print_table_notes, unread_steps
from cli.validate_groups import (
    SMOOTH_LEGEND,
    group_table,
    percent,
    regret_lines,
    smooth_lines,
)
from planner.units import format_time

if TYPE_CHECKING:
    from rich.console import Console

    from cli.validate_report import FarRow, Report
    from planner.steptime.validate import Score

_GROUPS_SHOWN = 8
_LEGEND = (
    "MAPE, med(ian), p90, bias: of predicted / measured - 1. =MFU: error of one constant "
    "MFU an accelerator, set on these very rows. other: error of predictions published "
    "for these rows. pairs: of two layouts of one model on one cluster that differ by "
    "2 %, the faster one is predicted faster. regret: how much slower than the fastest "
    "measured layout the one predicted fastest is, worst group."
)


def print_report(console: Console, report: Report) -> None:
    """Print the page."""
    rows = len(report.table.rows)
    console.print(
        Text(f"{report.path}: {rows:,} rows, {len(report.table.runs):,} predicted", style="bold")
    )
    console.print(Text(_told(report)))
    console.print()
    if why := unread_steps(report.table):
        console.print(Text(f"Nothing to score{why}."))
    if report.scores:
        console.print(_score_table(report.scores))
        _print_inside(console, report, "sources")
    if report.unseen:
        console.print()
        console.print(
            Text("The test: the same rows, each predicted by a fit that has not seen its layout")
        )
        console.print(_score_table(report.unseen))
        _print_inside(console, report, "unseen")
    if report.left_out:
        console.print()
        console.print(
            Text("The harder test: the same rows, each by a fit on all sources but its own")
        )
        console.print(_score_table(report.left_out))
        _print_inside(console, report, "left_out")
    if report.scores:
        console.print()
        console.print(Text(_LEGEND, style="dim"))
    largest = sorted(report.groups, key=lambda group: (-group.pairs, group.name))
    if largest:
        console.print()
        console.print(group_table(tuple(largest[:_GROUPS_SHOWN]), report.ceilings))
    picks = regret_lines(report.groups)
    if picks:
        console.print(Text("Worst pick of each source, where it is more than 1 % slower:"))
    for line in picks:
        console.print(Text(line))
    if report.ceilings:
        console.print(Text(SMOOTH_LEGEND, style="dim"))
        for line in smooth_lines(report.ceilings):
            console.print(Text(line))
    _print_far(console, report.far)
    print_overfull(console, report.overfull)
    print_table_notes(console, report.table, report.assumed)


def _print_far(console: Console, rows: tuple[FarRow, ...]) -> None:
    """Print the rows furthest off, each with what may explain it."""
    if rows:
        console.print()
        console.print(Text("Furthest off", style="bold"))
    for row in rows:
        console.print(
            Text(
                f"  {row.name}: measured {format_time(row.measured_s)}, predicted "
                f"{format_time(row.predicted_s)} ({100 * row.error_share:+.0f} %): "
                f"{row.explanation}"
            )
        )


def _print_inside(console: Console, report: Report, which: str) -> None:
    """Print how many rows the interval of a step holds, which promises nine of ten."""
    one = report.inside.get(which)
    if one is not None:
        console.print(
            Text(
                f"The interval printed with a step holds {one.held:,} of the {one.rows:,} rows "
                f"({100 * one.held / one.rows:.0f} %); {100 * one.mean_share:.0f} %, mean over "
                "sources."
            )
        )


def _told(report: Report) -> str:
    """Return what the predictions rest on, and of which sources they are no test."""
    if not report.seen:
        return f"Predicted: {report.basis}."
    return (
        f"Predicted with {report.basis}, which were fitted on these sources, each with the pace "
        f"of its own software: {', '.join(report.seen)}. Their rows are no test of it."
    )


def _score_table(found: tuple[Score, ...]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 0))
    table.add_column("source, errors in %", no_wrap=True)
    for name in ("rows", "MAPE", "med", "p90", "bias", "=MFU", "other", "pairs", "regret"):
        table.add_column(name, justify="right", no_wrap=True)
    for score in found:
        table.add_row(
            Text(score.source),
            Text(f"{score.rows:,}"),
            Text(percent(score.mape_share)),
            Text(percent(score.median_share)),
            Text(percent(score.p90_share)),
            Text(f"{100 * score.bias_share:+.1f}"),
            Text(percent(score.constant_mfu_share)),
            Text(percent(score.published_share)),
            Text(percent(score.pairs_right_share)),
            Text(percent(score.regret_share)),
        )
    return table
