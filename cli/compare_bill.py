"""The parts, power and money of compared clusters, on the page of ``planner compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.compare_budget_words import lost_time
from cli.page_tables import simple_table
from cli.report_words import boxes_words, energy_words, power_words
from cli.unfilled_words import unused_ports_words
from planner.units import format_number, format_power

if TYPE_CHECKING:
    from rich.table import Table

    from cli.compare_report import Comparison
    from planner.procure.run import Run


def bill_table(found: Comparison) -> Table:
    """Return what each cluster is made of, and what it takes."""
    seen: dict[str, Run] = {}
    for one, run in zip(found.compared.ranked, found.runs, strict=True):
        seen.setdefault(one.candidate.name, run)
    table = simple_table("  part", *seen)
    items = dict.fromkeys(line.item for name in seen for line in found.bills[name].lines)
    for item in items:
        counts = [
            sum(line.count for line in found.bills[name].lines if line.item == item)
            for name in seen
        ]
        table.add_row(f"  {item.replace('_', ' ')}", *(f"{c:,}" if c else "" for c in counts))
    table.add_section()
    runs = list(seen.values())
    table.add_row(
        f"  {power_words(_overhead_ratio(found))}",
        *(format_power(r.power_w) if r.power_w else "" for r in runs),
    )
    table.add_row("  tokens a day", *(f"{four_digits(r.tokens_per_day / 1e9)} G" for r in runs))
    if any(r.tokens_per_j is not None for r in runs):
        table.add_row(
            "  tokens a joule",
            *("" if r.tokens_per_j is None else four_digits(r.tokens_per_j) for r in runs),
        )
    if found.tokens is not None:
        table.add_row("  days", *("" if r.days is None else four_digits(r.days) for r in runs))
        table.add_row(
            "  energy",
            *("" if not r.energy_j else energy_words(r.energy_j) for r in runs),
        )
    if any(r.cost_per_token is not None for r in runs):
        currency = found.prices.currency if found.prices else ""
        table.add_row(
            f"  {currency} a million tokens",
            *(
                "" if r.cost_per_token is None else four_digits(r.cost_per_token * 1e6)
                for r in runs
            ),
        )
        if found.tokens is not None:
            table.add_row(
                f"  {currency} for the run",
                *("" if r.cost is None else f"{r.cost:,.0f}" for r in runs),
            )
    return table


def purchase_table(found: Comparison) -> Table | None:
    """Return what each part of the clusters that are bought costs, and all of them; else None."""
    prices = found.prices
    names = dict.fromkeys(one.candidate.name for one in found.compared.ranked)
    bills = {
        name: found.bills[name] for name in names
        if prices is not None and prices.rent(found.bills[name].accelerator) is None
    }  # fmt: skip
    lines = {name: [one for one in bill.lines if one.price is not None]
             for name, bill in bills.items()}  # fmt: skip
    if prices is None or not any(lines.values()):
        return None
    table = simple_table(f"  {prices.currency}", "of one", *bills)
    for item in dict.fromkeys(line.item for some in lines.values() for line in some):
        each = {line.price for some in lines.values() for line in some if line.item == item}
        sums = [
            sum(line.count * (line.price or 0.0) for line in lines[name] if line.item == item)
            for name in bills
        ]
        table.add_row(
            f"  {item.replace('_', ' ')}",
            f"{each.pop() or 0.0:,.0f}" if len(each) == 1 else "several",
            *(f"{cost:,.0f}" if cost else "" for cost in sums),
        )
    table.add_section()
    table.add_row("  in all", "", *("" if bill.total is None else f"{bill.total:,.0f}"
                                    for bill in bills.values()))  # fmt: skip
    return table


def _overhead_ratio(found: Comparison) -> float:
    return 1.0 if found.prices is None else found.prices.overhead_ratio


def idle_lines(found: Comparison) -> list[str]:
    """Return which clusters have more GPUs than the job, all of which the bill counts."""
    return [
        f"{one.name} is counted whole, with {len(one.fabric.gpus):,} GPUs, of which the job takes "
        f"{one.gpus:,}: its graph is fixed."
        for one in found.asked.candidates
        if len(one.fabric.gpus) != one.gpus
    ]


def unused_lines(found: Comparison) -> list[str]:
    """Return which clusters count more switches than their GPUs need."""
    said = {name: unused_ports_words(bill.ports) for name, bill in found.bills.items()}
    return [f"{name}: {words}" for name, words in said.items() if words]


def money_lines(found: Comparison) -> list[str]:
    """Return what the figures of power and money hold, and what they lack."""
    lines = [
        f"Tokens a day, days, energy and money with the layouts shown, {lost_time(found)}."
    ]  # fmt: skip
    bills = found.bills.values()
    missing = sorted(
        {item for bill in bills for item in (*bill.without_power, *bill.boxes_without_power)}
    )
    ratio = _overhead_ratio(found)
    if ratio != 1.0:
        lines.append(f"Power at the meter is that of the parts times the list's {ratio:g}.")
    if missing:
        lines.append(f"Power is without: {', '.join(missing).replace('_', ' ')}; nobody gave it.")
    why = dict.fromkeys(
        run.why_no_cost for run in found.runs if run.cost_per_token is None and run.why_no_cost
    )
    if found.prices is not None:
        bought = [bill for bill in bills if found.prices.rent(bill.accelerator) is None]
        lines += boxes_words(box for bill in bought for box in bill.boxes_without_price)
    return lines + [f"No money: {reason}." for reason in why]


def four_digits(value: float) -> str:
    """Return a number in four digits."""
    return format_number(value, digits=4)
