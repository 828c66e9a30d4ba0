"""The page of ``planner search --sweep``: a line a combination."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.text import Text

from cli.page_tables import simple_table
from cli.search_report import short_layout, told_layout
from planner.units import format_bytes
from topologies.price_list import read_price_list

if TYPE_CHECKING:
    from rich.console import Console

_NAMES = {"model", "cluster"}  # of the columns; the others are numbers


def print_sweep(console: Console, results: list[dict[str, Any]], sha256: str) -> None:
    """Print a line for each combination; what all have in common stands above."""
    asked = [_asked_words(one) for one in results]
    told = [name for name in asked[0] if len({one[name] for one in asked}) > 1]
    common = [
        f"{asked[0][name]}{'' if name in _NAMES else f' {name}'}"
        for name in asked[0]
        if name not in told and asked[0][name]
    ]
    told = told or ["model"]
    lists = list(dict.fromkeys(one["prices"] for one in results if one["prices"] is not None))
    currencies = {path: read_price_list(path).currency for path in lists}
    texts = sum(name in _NAMES for name in told)
    table = simple_table(*told, "layout", "tokens/s", "a million" if lists else "cut", left=texts)
    table.columns[0].header = f"  {table.columns[0].header}"
    layouts = table.columns[len(told)]
    layouts.justify, layouts.no_wrap = "left", False
    for words, one in zip(asked, results, strict=True):
        best, cells = one["best"], [words[name] for name in told]
        cells[0] = f"  {cells[0]}"
        if best is None:
            table.add_row(*cells, f"none: {one['refused'][0]}", "", "")
            continue
        cut = format_bytes(best["seated_bytes"]) if best["seated_bytes"] else "none"
        table.add_row(
            *cells, short_layout(told_layout(best["layout"])),
            f"{best['step']['tokens_per_s']:,.0f}", _money(one, currencies) if lists else cut,
        )  # fmt: skip
    if len(results) > 1 and common:
        console.print(Text(f"All: {', '.join(common)}."))
    console.print(table)
    if lists:
        console.print(Text(f"Money is of a million tokens, by {', '.join(lists)}."))
    for line in _without_money(results):
        console.print(Text(line))
    console.print(Text(f"inputs sha256 {sha256}", style="dim"))


def _asked_words(one: Mapping[str, Any]) -> dict[str, str]:
    """Return what was asked of a combination, by what it is called."""
    return {
        "model": str(one["model"] or ""),
        "cluster": str(one["cluster"] or f"supernode {one['supernode']}"),
        "GPUs": f"{one['gpus']:,}" if one["gpus"] else "",
        "tokens": f"{one['seq']:,}" if one["seq"] else "",
    }


def _money(one: Mapping[str, Any], currencies: Mapping[str, str]) -> str:
    """Return what a million tokens cost, by which list where there are several.

    ``none`` where nobody knows.

    Args:
        one: a result.
        currencies: price list to its currency.
    """
    if one["prices"] is None:
        return ""
    cost, currency = one["run"]["cost_per_token"], currencies[one["prices"]]
    money = "none" if cost is None else f"{cost * 1e6:,.4g} {currency}"
    return f"{Path(one['prices']).stem}: {money}" if len(currencies) > 1 else money


def _without_money(results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return why combinations with a price list have no money, each reason once."""
    why = [
        f"No money by {one['prices']}: {one['run']['why_no_cost']}."
        for one in results
        if one["prices"] is not None and one["run"] and one["run"]["cost_per_token"] is None
    ]
    return list(dict.fromkeys(why))
