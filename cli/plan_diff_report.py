"""Two plans side by side: as a document and as a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from cli.page_tables import simple_table
from cli.planner_output import document
from planner.documents import read_bytes
from planner.errors import InputError
from planner.search.plan_diff import EFFICIENCY, Figure, PlanDiff, plan_faults
from planner.units import format_bytes, format_power, format_share, format_time
from planner.words import counted

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from planner.procure.prices import PriceList
    from planner.search.plan_groups import GroupChange, Seated

_WHOLE = 1_000.0  # tokens a second from here on are told in whole ones


def read_plan(path: Path) -> dict[str, Any]:
    """Return the document of ``planner place`` in the file at *path*.

    Raises:
        InputError: it is none; every fault is named.
    """
    try:
        plan = json.loads(read_bytes(path), parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        where = f":{error.lineno}:{error.colno}" if isinstance(error, json.JSONDecodeError) else ""
        raise InputError(f"{path}{where}: is no JSON; expected a plan of planner place") from None
    faults = plan_faults(plan, str(path))
    if faults:
        raise InputError(*faults)
    return dict(plan)


def _no_number(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def _finite(text: str) -> float:
    return value if isfinite(value := float(text)) else _no_number(text)


def diff_document(
    diff: PlanDiff,
    paths: Sequence[Path],
    plans: Sequence[Mapping[str, Any]],
    prices: PriceList | None = None,
) -> dict[str, Any]:
    """Return the document of ``planner compare PLAN PLAN --json``."""
    asked = {
        "plans": [str(path) for path in paths],
        "plans_sha256": [plan["inputs"].get("sha256") for plan in plans],
        "prices": prices,
    }
    return document("compare-plans", asked, {
        "same": diff.is_empty,
        "changed_inputs": _pairs(diff.inputs),
        "changed_layout": _pairs(diff.layout),
        "ranks": diff.ranks,
        "new_ranks": diff.new_ranks,
        "gone_ranks": diff.gone_ranks,
        "moved_ranks": diff.moved_ranks,
        "regrouped_ranks": diff.regrouped_ranks,
        "groups": diff.groups,
        "tier": diff.tier,
        "families": [_figure(one) for one in diff.families],
        "figures": [_figure(one) for one in diff.figures],
        "money": [_figure(one) for one in diff.money],
        "why_no_money": diff.why_no_money,
    })  # fmt: skip


def _pairs(changed: Mapping[str, tuple[Any, Any]]) -> dict[str, Any]:
    return {name: {"before": a, "after": b} for name, (a, b) in changed.items()}


def _figure(one: Figure) -> dict[str, Any]:
    return {"name": one.name, "before": one.before, "after": one.after, "change": one.change}


def print_diff(console: Console, diff: PlanDiff, paths: Sequence[Path], currency: str = "") -> None:
    """Print what changed; ~ is changed, + is new, - is gone."""
    if diff.is_empty:
        console.print(Text("No change: both plans say the same.", style="bold green"))
        return
    console.print(Text(f"From {paths[0]} to {paths[1]}", style="bold"))
    for title, changed in (("Inputs", diff.inputs), ("Layout", diff.layout)):
        if changed:
            console.print(Text(f"\n{title}", style="bold"))
            for name, (a, b) in changed.items():
                sign = "+" if a is None else "-" if b is None else "~"
                console.print(Text(f"  {sign} {name}: {_words(a)} -> {_words(b)}"))
    console.print(Text("\nSeats", style="bold"))
    for line in _seat_lines(diff):
        console.print(Text(f"  {line}"))
    sections = (
        ("Bytes over the cut", diff.families), ("Figures", diff.figures),
        (f"Money ({currency})" if currency else "Money", diff.money),
    )  # fmt: skip
    for title, figures in sections:
        table = _table([one for one in figures if one.change != 0.0])
        if table.row_count:
            console.print(Text(f"\n{title}", style="bold"))
            console.print(table)
    if EFFICIENCY in diff.inputs:
        console.print(Text(
            "\nThe two are timed with different efficiencies: seconds, and money by them, differ "
            "for that too, whatever the seats do. Bytes of the same seats do not hang on it."
        ))  # fmt: skip
    for reason in diff.why_no_money:
        console.print(Text(f"No cost of {reason}."))


def _seat_lines(diff: PlanDiff) -> list[str]:
    """Return which ranks and groups sit otherwise."""
    other = "cluster" in diff.inputs
    on = "on a GPU of another number" if other else "on another GPU"
    moved = (
        f"{diff.moved_ranks:,} of {counted(diff.ranks, 'rank')} are {on}, "
        f"{diff.regrouped_ranks:,} sit with other ranks than before"
    )
    lines = [moved]
    if other:
        lines.append("the clusters differ: a GPU's number is not the same GPU in both")
    if diff.new_ranks:
        lines.append(f"+ {counted(diff.new_ranks, 'rank')}")
    if diff.gone_ranks:
        lines.append(f"- {counted(diff.gone_ranks, 'rank')}")
    return [*lines, *(_group_line(one, diff.tier) for one in diff.groups)]


def _group_line(one: GroupChange, tier: str) -> str:
    """Return how the groups of one degree sit before and after."""
    sign = "+" if one.before is None else "-" if one.after is None else "~"
    said = [_seated(each, tier) for each in (one.before, one.after) if each is not None]
    moved = ""
    if one.moved_groups is not None and one.before is not None:
        moved = f"{one.moved_groups:,} moved of "
    text = said[0] if len(set(said)) == 1 else " -> ".join(said)
    return f"{sign} {one.digit.upper()}: {moved}{text}"


def _seated(one: Seated, tier: str) -> str:
    fewest = "" if one.min_domains == one.max_domains else f"{one.min_domains:,} to "
    each = "each in" if one.groups > 1 else "in"
    return (
        f"{counted(one.groups, 'group')} of {one.group_size:,}, {each} {fewest}"
        f"{counted(one.max_domains, tier)}"
    )


def _words(value: Any) -> str:
    """Return an input or a field of the layout as people write it."""
    if value is None:
        return "none"
    return "; ".join(map(str, value)) if isinstance(value, list) else str(value)


def _table(figures: Sequence[Figure]) -> Table:
    table = simple_table("  ", "before", "after", "change", "")
    for one in figures:
        sign = "+" if one.before is None else "-" if one.after is None else "~"
        change = one.change
        ratio = ""
        if change is not None and one.before:
            ratio = f"{'+' if change > 0 else '-'}{format_share(abs(change / one.before))}"
        shown = (
            "" if change is None else ("-" if change < 0 else "+") + _shown(one.name, abs(change))
        )
        table.add_row(
            f"  {sign} {one.name}", _shown(one.name, one.before), _shown(one.name, one.after),
            shown, ratio,
        )  # fmt: skip
    return table


def _shown(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name.endswith("tokens_per_s"):
        return f"{value:,.0f}" if value >= _WHOLE else f"{value:,.4g}"
    if name == "cost_per_million_tokens":
        return f"{value:,.4g}"
    if name == "parts_cost":
        return f"{value:,.0f}"
    if name.endswith("_w"):
        return format_power(value) if value else "0"
    if name.endswith("_s") or "exposed_s" in name:
        return format_time(value) if value else "0"
    return format_bytes(value) if value else "0"
