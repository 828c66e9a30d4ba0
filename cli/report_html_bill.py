"""What is bought, what it draws and, with the reader's prices, what it costs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cli.report_choice import Cost
from cli.report_html_parts import Num, Part, filled_table
from cli.report_html_read import PlanFile
from cli.report_pictures import safe
from cli.report_pictures_bars import Bar, bars
from cli.report_words import boxes_words, energy_words
from cli.unfilled_words import unused_ports_words
from planner.fabric_parts import SwitchPorts
from planner.procure.bill import SERVER, Bill, BillLine, priced_bill
from planner.procure.budget import format_money
from planner.procure.prices import PriceList
from planner.procure.run import Run, run_of
from planner.units import format_number, format_power, format_rate

NAMES = {
    "server": "server or tray", "supernode": "supernode of several servers", "nic": "NIC",
    "scale_up_switch": "scale-up switch", "leaf": "leaf switch", "spine": "spine switch",
    "core": "core switch",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """What one plan's cluster is made of, and what running it takes.

    Args:
        bill: its parts.
        run: power, days and, where prices are known, money.
        overhead_ratio: power at the meter over power of the parts, 1 without a price list [1].
        ranked_gpus, ranked_servers: of them, how many hold a rank; 0 where its file does not say.
    """

    bill: Bill
    run: Run
    overhead_ratio: float
    ranked_gpus: int
    ranked_servers: int


def accounts(
    plans: Sequence[PlanFile], prices: PriceList | None, tokens: float | None
) -> list[Account | None]:
    """Return the account of each plan, None of one whose file lists no parts.

    Args:
        plans: at least one plan.
        prices: the reader's price list, if any.
        tokens: of the whole training run, if asked [1].
    """
    found: list[Account | None] = []
    for plan in plans:
        if "bill" not in plan.document:
            found.append(None)
            continue
        bill = bill_of_file(plan.document, prices)
        rate, gpus = plan.document["step"]["tokens_per_s"], plan.document["inputs"]["gpus"]
        ranked = plan.document["bill"].get("with_ranks", {})
        found.append(
            Account(bill=bill, overhead_ratio=prices.overhead_ratio if prices else 1.0,
                    ranked_gpus=ranked.get("gpus", 0),
                    ranked_servers=ranked.get("servers", 0),
                    run=run_of(max(rate, 1e-9), gpus, bill, prices, tokens))
        )  # fmt: skip
    return found


def costs_of(found: Sequence[Account | None]) -> list[Cost]:
    """Return what a million tokens cost on each plan; nothing where that is not known of one."""
    costs = [
        Cost(million, format_money(million, one.bill.currency))
        for one in found
        if one is not None and (million := _million(one)) is not None
    ]
    return costs if len(costs) == len(found) else []


def bill_part(
    found: Sequence[Account | None], names: Sequence[str], prices: PriceList | None,
    tokens: float | None,
) -> Part:  # fmt: skip
    """Return the part about parts, power and money.

    Args:
        found: the account of each plan.
        names: what each plan is called.
        prices, tokens: as asked.
    """
    known = [(name, one) for name, one in zip(names, found, strict=True) if one is not None]
    body = _whole(known, prices, tokens) if known else ""
    for name, one in zip(names, found, strict=True):
        if one is None:
            body += (
                f"<p>{safe(name)}: its file lists no parts. Make it again with <code>planner place "
                "--json</code>.</p>"
            )
    body += "".join(f"<p>{safe(said)}</p>" for name, one in known if (said := _idle(name, one)))
    for name, one in known:
        if words := unused_ports_words(one.bill.ports):
            body += f"<p>{safe(f'{name}: {words}')}</p>"
    alike: dict[tuple[BillLine, ...], list[str]] = {}
    for name, one in known:
        alike.setdefault(one.bill.lines, []).append(name)
    for lines, theirs in alike.items():
        of = f" of {', '.join(theirs)}" if len(names) > 1 else ""
        body += filled_table(f"Bill of materials{of}", *_lines(lines, prices))
    body += (
        "<p>Links inside a supernode come with it; one that is not full counts with the parts that "
        "it holds. A link's line stands for its cables and optics. "
        "Power is that of the parts whose power is known; cooling counts where the price list says "
        "how much.</p>"
    )
    return Part(anchor="bill", title="Bill of materials, power and money", body=body)


def _idle(name: str, one: Account) -> str:
    """Return what counts and what of it holds a rank, where that is not the same; or nothing."""
    counts = {line.item: line.count for line in one.bill.lines}
    gpus, servers = counts.get(one.bill.accelerator, 0), counts.get(SERVER, 0)
    if one.ranked_gpus in {0, gpus}:
        return ""
    counted = f"{gpus:,} GPUs" + (f" and {servers:,} servers" if servers else "")
    ranked = f"{one.ranked_gpus:,} GPUs" + (
        f" and {one.ranked_servers:,} servers" if one.ranked_servers else ""
    )
    return f"{name}: the whole cluster counts, {counted}, of which {ranked} hold a rank."


def bill_of_file(document: Mapping[str, Any], prices: PriceList | None) -> Bill:
    """Return the parts that a plan's file lists, with the prices of the list."""
    parts = [
        BillLine(item=line["item"], count=line["count"], power_w=line["power_w"],
                 link_bytes_per_s=line["link_bytes_per_s"], price=None, source="")
        for line in document["bill"]["lines"]
    ]  # fmt: skip
    inputs = document["inputs"]
    bill = priced_bill(
        parts, inputs["fabric"]["accelerator"]["name"], prices, cluster=inputs["cluster"]
    )
    return replace(bill, ports=ports_of(document["bill"]))


def ports_of(bill: Mapping[str, Any]) -> tuple[SwitchPorts, ...]:
    """Return the ports of a file's bill; none where it was made before they were counted."""
    return tuple(
        SwitchPorts(item=one["item"], ports=one["ports"], used=one["used"])
        for one in bill.get("ports", ())
    )


def _whole(
    known: Sequence[tuple[str, Account]], prices: PriceList | None, tokens: float | None
) -> str:
    """Return the sentences on what is missing, and the plans side by side."""
    rows: list[list[str | Num]] = [
        [name, _price(one.bill.total, one.bill.currency),
         Num(one.run.power_w, format_power(one.run.power_w) if one.run.power_w else ""),
         Num(one.run.tokens_per_day, _billions(one.run.tokens_per_day)),
         _days(one.run), _energy(one.run), _money(one.run.cost, one.bill.currency),
         _money(_million(one), one.bill.currency)]
        for name, one in known
    ]  # fmt: skip
    heads = ["Plan", "Purchase", "Power", "Tokens a day", "Days", "Energy", "Cost of the run",
             "Cost of a million tokens"]  # fmt: skip
    said = _missing([one for _, one in known], prices, tokens)
    text = "".join(f"<p>{safe(why)}</p>" for why in said)
    text += filled_table("What it takes to run", heads, rows)
    if len(known) > 1 and all(_million(one) is not None for _, one in known):
        text += "<h3>Cost of a million tokens</h3>" + bars(
            "Cost of a million tokens by candidate",
            [Bar(label=name, value=_million(one) or 0.0,
                 text=format_money(_million(one) or 0.0, one.bill.currency))
             for name, one in known],
        )  # fmt: skip
    return text


def _million(one: Account) -> float | None:
    cost = one.run.cost_per_token
    return None if cost is None else cost * 1e6


def _missing(known: Sequence[Account], prices: PriceList | None, tokens: float | None) -> list[str]:
    said = []
    if prices is not None:
        whys = {one.run.why_no_cost for one in known if one.run.cost_per_token is None}
        said += [f"No cost of a token: {why}." for why in sorted(whys) if why]
        unpriced = sorted({item for one in known for item in one.bill.unpriced})
        if unpriced:
            said.append(f"No sum of the purchase: the list has no price for {', '.join(unpriced)}.")
        said += _boxes(known, prices)
    else:
        said.append(
            "No money is shown: no price list was given. With a file of your own prices, each with "
            "its source and date, it is: planner report … --prices prices.yaml."
        )
    said += silent_words(
        item for one in known for item in (*one.bill.without_power, *one.bill.boxes_without_power)
    )
    if tokens is None:
        said.append("No days and no energy of a run are shown: --tokens, e.g. 15T, was not given.")
    return said


def _boxes(known: Sequence[Account], prices: PriceList) -> list[str]:
    """Return which boxes the purchase leaves out; nothing where all is rented."""
    bought = [one.bill for one in known if prices.rent(one.bill.accelerator) is None]
    said = boxes_words(box for bill in bought for box in bill.boxes_without_price)
    if SERVER in prices.items and not all(bill.has_servers for bill in bought):
        said.append(
            "The price of a server is not used where a plan's file counts none: make it again with "
            "planner place --json."
        )
    return said


def silent_words(items: Iterable[str]) -> list[str]:
    """Return the sentence that says of which parts no power is known; none where all is known.

    >>> silent_words(["nic", "leaf", "nic"])
    ['The power lacks leaf switch, NIC: nobody said what they draw.']
    """
    silent = ", ".join(NAMES.get(item, item) for item in sorted(set(items)))
    return [f"The power lacks {silent}: nobody said what they draw."] if silent else []


def _lines(
    lines: Sequence[BillLine], prices: PriceList | None
) -> tuple[list[str], list[list[str | Num]]]:
    currency = "" if prices is None else prices.currency
    heads = ["Part", "Pieces", "Rate of one", "Power of one", "Power", "Price of one", "Price",
             "Source of the price"]  # fmt: skip
    rows: list[list[str | Num]] = [
        [NAMES.get(line.item, line.item), Num(line.count, f"{line.count:,}"),
         Num(line.link_bytes_per_s, format_rate(line.link_bytes_per_s))
         if line.link_bytes_per_s else Num(0, ""),
         Num(0.0, "not stated") if line.power_w is None and not line.link_bytes_per_s
         else _power(line.power_w, 1),
         _power(line.power_w, line.count),
         _price(line.price, currency),
         _price(None if line.price is None else line.price * line.count, currency),
         line.source or ("" if prices is None else "no price")]
        for line in lines
    ]  # fmt: skip
    return heads, rows


def _power(power_w: float | None, count: int) -> Num:
    """Return what *count* parts draw; nothing where nobody said it."""
    drawn_w = (power_w or 0.0) * count
    return Num(drawn_w, "" if power_w is None else format_power(drawn_w))


def _money(value: float | None, currency: str) -> Num:
    return Num(value or 0.0, "" if value is None else format_money(value, currency))


def _price(value: float | None, currency: str) -> Num:
    return Num(value or 0.0, "" if value is None else amount(value, currency))


def amount(value: float, currency: str) -> str:
    """Return an amount that a reader may add up: in whole units where it is large.

    >>> amount(1234567.8, "USD"), amount(0.4567, "EUR")
    ('1,234,568 USD', '0.4567 EUR')
    """
    return f"{value:,.0f} {currency}" if value >= 1000 else format_money(value, currency)


def _billions(tokens: float) -> str:
    return f"{format_number(tokens / 1e9, digits=4)} billion"


def _days(run: Run) -> Num:
    return Num(run.days or 0.0, "" if run.days is None else format_number(run.days, digits=4))


def _energy(run: Run) -> Num:
    return Num(run.energy_j or 0.0, "" if run.energy_j is None else energy_words(run.energy_j))
