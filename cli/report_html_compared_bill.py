"""What compared clusters are made of, what running them takes, and by which prices."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from cli.report_choice import entry_name
from cli.report_html_bill import NAMES, ports_of, silent_words
from cli.report_html_compared_read import ranked_names
from cli.report_html_parts import Num, filled_table, table
from cli.report_pictures import safe
from cli.report_words import boxes_words, power_words
from cli.unfilled_words import unused_ports_words
from planner.procure.bill import BOXES, OF_CLUSTER
from planner.procure.budget import format_money
from planner.units import format_number, format_power
from planner.words import counted

_AN_HOUR = "an hour of a"


def compared_bill(document: Mapping[str, Any]) -> str:
    """Return what each cluster is made of, and what running it takes."""
    bills = document["bills"]
    currency = next((bill["currency"] for bill in bills.values()), "")
    names = [name for name in dict.fromkeys(one["cluster"] for one in document["ranked"])
             if name in bills]  # fmt: skip
    counts = {
        (name, line["item"]): line["count"] for name in names for line in bills[name]["lines"]
    }
    pieces: list[list[str | Num]] = [
        [NAMES.get(item, item),
         *(Num(count, f"{count:,}" if count else "none")
           for name in names for count in [counts.get((name, item), 0)])]
        for item in dict.fromkeys(item for _, item in counts)
    ]  # fmt: skip
    runs = [one["run"] for one in document["ranked"]]
    columns = {
        power_words(overhead_ratio(document)).capitalize(): [
            Num(run["power_w"] or 0.0, _power(run["power_w"])) for run in runs
        ],
        "Tokens a day": [
            Num(
                run["tokens_per_day"],
                f"{format_number(run['tokens_per_day'] / 1e9, digits=4)} billion",
            )
            for run in runs
        ],
        "Days": [_maybe(run["days"], "") for run in runs],
        "A million tokens": [
            _maybe(None if run["cost_per_token"] is None else run["cost_per_token"] * 1e6, currency)
            for run in runs
        ],
        "The run": [_maybe(run["cost"], currency) for run in runs],
    }
    rows: list[list[str | Num]] = [
        [entry_name(one, document["ranked"]), *(cells[i] for cells in columns.values())]
        for i, one in enumerate(document["ranked"])
    ]
    whys = sorted(
        {
            f"{'No money' if run['cost_per_token'] is None else 'No cost of the run'}: "
            f"{run['why_no_cost']}."
            for run in runs if run.get("why_no_cost")
        }
    )  # fmt: skip
    whys += silent_words(
        line["item"] for name in names for line in bills[name]["lines"]
        if line["power_w"] is None and not line["link_bytes_per_s"]
    )  # fmt: skip
    whys += boxes_words(
        line["item"] for name in names if not _is_rented(document, name)
        for line in bills[name]["lines"] if line["item"] in BOXES and line["price"] is None
    )  # fmt: skip
    whys += [
        f"{name}: {words}" for name in names
        if (words := unused_ports_words(ports_of(bills[name])))
    ]  # fmt: skip
    return (
        "".join(f"<p>{safe(why)}</p>" for why in whys)
        + filled_table("What it takes to run", ["Candidate", *columns], rows)
        + table("Pieces", ["Part", *names], pieces)
        + _purchase(document, names, currency)
        + _price_list(document["inputs"]["prices"], _priced(bills))
    )


def _purchase(document: Mapping[str, Any], names: Sequence[str], currency: str) -> str:
    """Return what each part of the clusters that are bought costs, and all of them; or nothing."""
    lines = {
        name: [one for one in document["bills"][name]["lines"] if one["price"] is not None]
        for name in names if not _is_rented(document, name)
    }  # fmt: skip
    if not any(lines.values()):
        return ""
    rows: list[list[str | Num]] = []
    for item in dict.fromkeys(one["item"] for some in lines.values() for one in some):
        cells: list[str | Num] = []
        for some in lines.values():
            mine = [one for one in some if one["item"] == item]
            said = "; ".join(f"{one['count']:,} x {one['price']:,.10g}" for one in mine)
            cost = sum(one["count"] * one["price"] for one in mine)
            cells.append(Num(cost, f"{said} = {cost:,.0f}" if mine else "none"))
        rows.append([NAMES.get(item, item), *cells])
    sums = [sum(one["count"] * one["price"] for one in some) for some in lines.values()]
    rows.append(["All that has a price", *(Num(cost, f"{cost:,.0f}") for cost in sums)])
    return table(f"What it costs to buy, in {currency}", ["Part", *lines], rows)


def overhead_ratio(document: Mapping[str, Any]) -> float:
    """Return power at the meter over power of the parts by a comparison's price list [1]."""
    prices = document["inputs"]["prices"]
    return float(prices.get("overhead_ratio", 1.0)) if prices else 1.0


def _priced(bills: Mapping[str, Any]) -> set[str]:
    """Return what the bills have, as the table of the price list names it."""
    lines = [line for bill in bills.values() for line in bill["lines"]]
    rented = {f"{_AN_HOUR} {line['item']}" for line in lines}
    return rented | {
        f"{line['item']}{OF_CLUSTER}{line['only_in']}" if line.get("only_in") else line["item"]
        for line in lines
    }


def _price_list(prices: Mapping[str, Any] | None, parts: Collection[str]) -> str:
    """Return the prices that money is counted with, each with its source and date.

    Args:
        prices: the list.
        parts: of these clusters; prices of others are counted only.
    """
    if not prices:
        return ""
    stated = {
        "an hour of a GPU": prices["gpu_hour"],
        **{f"{_AN_HOUR} {kind}": one for kind, one in prices["gpu_hours"].items()},
        "a kilowatt-hour": prices["kwh"],
        **prices["items"],
        **{
            f"{item}{OF_CLUSTER}{cluster}": one
            for cluster, items in prices.get("clusters", {}).items()
            for item, one in items.items()
        },
    }
    always = ("an hour of a GPU", "a kilowatt-hour")
    used = {
        name: one for name, one in stated.items()
        if one and (name in always or name in parts)
    }  # fmt: skip
    currency = prices["currency"]
    rows: list[list[str | Num]] = [
        [name, _maybe(one["price"], currency), one["source"], one["date"]]
        for name, one in used.items()
    ]
    others = sum(1 for one in stated.values() if one) - len(used)
    more = f"<p>{counted(others, 'more price')}: of parts that no cluster here has.</p>"
    listed = table("Price list", ["Of", "Price", "Source", "Date"], rows)
    return listed + (more if others else "")


def _is_rented(document: Mapping[str, Any], cluster: str) -> bool:
    """Return whether no box of a cluster is bought: it is rented, or there are no prices."""
    prices = document["inputs"]["prices"]
    if not prices:
        return True
    asked = dict(zip(ranked_names(document["inputs"]["clusters"]),
                     document["inputs"]["clusters"], strict=True))  # fmt: skip
    kind = asked[cluster]["fabric"].get("accelerator", {}).get("name")
    return bool(prices.get("gpu_hour") or prices.get("gpu_hours", {}).get(kind))


def _power(value: float | None) -> str:
    return format_power(value) if value else ""


def _maybe(value: float | None, currency: str) -> Num:
    return Num(value or 0.0, "" if value is None else format_money(value, currency))
