"""Layouts of one model on one cluster as ``planner validate`` orders them, as a table."""

from __future__ import annotations

import math

from rich import box
from rich.table import Table
from rich.text import Text

from planner.steptime.ranking import LEAST_PICKED, Group

_TOLD_REGRET_SHARE = 0.01
"""A pick that is less slower is as good: one layout moves by as much from run to run."""

SMOOTH_LEGEND = (
    "smooth %: pairs in order if each layout were corrected by what the others of its own group "
    "are off by, smoothly in its degrees and micro-batch. It has seen them, so it is no "
    "prediction: what it, too, orders wrongly is scatter from one layout to the next."
)


def percent(value: float) -> str:
    """Return *value* as a bare number of per cent, the column says so."""
    if math.isnan(value):
        return "-"
    percent = 100.0 * value
    return f"{percent:.1f}" if abs(percent) < 99.95 else f"{percent:.0f}"


def group_table(groups: tuple[Group, ...], smooth: tuple[Group, ...]) -> Table:
    """Return the table of *groups*, with what *smooth* makes of those it has."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 0, 0, 0))
    table.add_column("layouts of one model on one cluster", overflow="fold")
    for name in ("layouts", "pairs", "right %", "smooth %", "regret %"):
        table.add_column(name, justify="right", no_wrap=True)
    smooth_share = {group.name: _right_share(group) for group in smooth}
    for group in groups:
        table.add_row(
            Text(group.name),
            Text(str(group.layouts)),
            Text(f"{group.pairs:,}"),
            Text(percent(_right_share(group))),
            Text(percent(smooth_share.get(group.name, math.nan))),
            Text(percent(_regret_share(group))),
        )
    return table


def _regret_share(group: Group) -> float:
    """Return the regret, not a number where no two layouts are far enough apart to regret one."""
    return group.regret_share if group.pairs else math.nan


def _right_share(group: Group) -> float:
    return group.right / group.pairs if group.pairs else math.nan


def regret_lines(groups: tuple[Group, ...]) -> tuple[str, ...]:
    """Return for each source its worst pick, where one is more than 1 % slower."""
    lines = []
    for source in dict.fromkeys(group.source for group in groups):
        mine = [one for one in groups if one.source == source and one.layouts >= LEAST_PICKED]
        worst = max(mine, key=lambda one: one.regret_share, default=None)
        if worst is not None and worst.regret_share > _TOLD_REGRET_SHARE:
            lines.append(
                f"  {worst.name}: {worst.picked} is predicted fastest, and took "
                f"{percent(worst.regret_share)} % longer than {worst.fastest}"
            )
    return tuple(lines)


def smooth_lines(smooth: tuple[Group, ...]) -> tuple[str, ...]:
    """Return one line for each source of groups that have a ceiling."""
    lines = []
    for source in dict.fromkeys(group.source for group in smooth):
        mine = [group for group in smooth if group.source == source]
        pairs, right = sum(one.pairs for one in mine), sum(one.right for one in mine)
        share = percent(right / pairs if pairs else math.nan)
        regret = percent(max(one.regret_share for one in mine))
        lines.append(f"  {source}: smooth {share} % of {pairs:,} pairs, regret {regret} %")
    return tuple(lines)
