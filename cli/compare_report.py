"""The answer of ``planner compare``: as a document, as CSV and as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from cli.compare_inputs import Compare
from cli.planner_output import document
from cli.search_inputs import searched_inputs
from cli.search_report import (
    FINALIST_LIMIT_S,
    finalist_document,
    layout_document,
    short_layout,
    simple_table,
)
from planner.procure.bill import Bill, bill_of_materials
from planner.procure.run import Run, run_of
from planner.search.compare import Compared, Entry, compare, compare_layouts
from planner.search.flips import Flip, Gain, flips, gains
from planner.search.given import spelled_layout
from planner.search.pareto import pareto_front
from planner.search.search import is_tie
from planner.steptime.document import interval_s
from planner.units import format_bytes, format_power, format_rate, format_share, format_time

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from planner.procure.prices import PriceList

_DIGITS = ("tp", "cp", "ep", "etp", "dp", "edp", "pp")
_NOTHING_SHARE = 0.001
PROPERTY_WORDS = {
    "nic_rate": "NIC rate", "nic_latency": "NIC latency", "in_flight": "in-flight limit",
    "oversubscription": "oversubscription", "seq": "sequence length",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """A comparison and what follows from it.

    Args:
        asked: the clusters and layouts.
        compared: ranked.
        flips: where the winner changes.
        gains: cluster to what better parts bring.
        bills: cluster to its parts.
        runs: what a run takes, in the order of ``compared.ranked``.
        seed, time_limit_s, prices, tokens: as asked.
    """

    asked: Compare
    compared: Compared
    flips: tuple[Flip, ...]
    gains: Mapping[str, tuple[Gain, ...]]
    bills: Mapping[str, Bill]
    runs: tuple[Run, ...]
    seed: int
    time_limit_s: float
    prices: PriceList | None
    tokens: float | None

    @property
    def first(self) -> Entry:
        """The winner."""
        return self.compared.ranked[0]


def make_comparison(
    asked: Compare,
    *,
    seed: int = 0,
    time_limit_s: float | None = None,
    prices: PriceList | None = None,
    tokens: float | None = None,
) -> Comparison:
    """Return the comparison of *asked*; ``time_limit_s`` is for seating each layout [s]."""
    limit_s = FINALIST_LIMIT_S if time_limit_s is None else time_limit_s
    if asked.layouts:
        found = compare_layouts(asked.candidates, asked.layouts, seed=seed, time_limit_s=limit_s)
    else:
        found = compare(asked.candidates, seed=seed, time_limit_s=limit_s)
    bills = {one.name: bill_of_materials(one.fabric, prices) for one in asked.candidates}
    return Comparison(
        asked=asked,
        compared=found,
        flips=tuple(flips(found.pools, found.ranked[0].finalist.step.spread))
        if found.pools else (),
        gains={pool.name: tuple(gains(pool)) for pool in found.pools},
        bills=bills,
        runs=tuple(
            run_of(float(one.finalist.step.tokens_per_s), one.candidate.gpus,
                   bills[one.candidate.name], prices, tokens)
            for one in found.ranked
        ),
        seed=seed, time_limit_s=limit_s, prices=prices, tokens=tokens,
    )  # fmt: skip


def compare_document(found: Comparison) -> dict[str, Any]:
    """Return the document of ``planner compare --json``."""
    asked = {
        "clusters": [searched_inputs(one) for one in found.asked.inputs],
        "layouts": {name: layout_document(one) for name, one in found.asked.layouts.items()},
        "seed": found.seed, "time_limit_s": found.time_limit_s, "tokens": found.tokens,
        "prices": found.prices,
    }  # fmt: skip
    return document("compare", asked, {
        "ranked": [
            {**_entry(one, found), "run": run}
            for one, run in zip(found.compared.ranked, found.runs, strict=True)
        ],
        "moved": [_entry(one, found) for one in found.compared.moved],
        "flips": [{**_flip(one), "value": flip_value(one, found)} for one in found.flips],
        "gains": found.gains,
        "bills": {
            name: {"lines": bill.lines, "currency": bill.currency, "total": bill.total,
                   "unpriced": bill.unpriced}
            for name, bill in found.bills.items()
        },
        "pareto": pareto_names(found),
    })  # fmt: skip


def _entry(one: Entry, found: Comparison) -> dict[str, Any]:
    return {
        "cluster": one.candidate.name,
        "supernode": max(one.candidate.fabric.capacities("supernode")),
        "label": one.label,
        **finalist_document(one.finalist, found.first.finalist),
    }


def _flip(one: Flip) -> dict[str, Any]:
    return {"property": one.name, "kind": one.kind, "factor": one.factor, "before": one.before,
            "after": one.after}  # fmt: skip


def flip_value(one: Flip, found: Comparison) -> float:
    """Return the property's value on the winner at the flip: bytes/s, s, 1 or tokens."""
    fabric = found.first.candidate.fabric
    now = {
        "nic_rate": fabric.nic.line_bytes_per_s,
        "nic_latency": float(fabric.tiers[-1].latency_s),
        "in_flight": float(fabric.nic.in_flight),
        "oversubscription": float(fabric.tiers[-1].oversubscription),
        "seq": float(found.first.finalist.layout.seq),
    }
    return now[one.name] * one.factor


def pareto_names(found: Comparison) -> list[str]:
    """Return the clusters that none beats in step, head-room, power, switches and money."""
    rows = []
    for one, run in zip(found.compared.ranked, found.runs, strict=True):
        bill = found.bills[one.candidate.name]
        switches = sum(li.count for li in bill.lines if li.item in ("leaf", "spine", "core"))
        memory = one.finalist.memory
        rows.append([
            one.finalist.step_s, float(memory.worst_stage_bytes) - memory.capacity_bytes,
            run.power_w, float(switches), run.cost_per_token or 0.0,
        ])  # fmt: skip
    ranked = found.compared.ranked
    return [ranked[i].candidate.name for i in pareto_front(rows)]


def print_comparison(console: Console, found: Comparison, sha256: str) -> None:
    """Print the page: the verdict, the ranking, the cuts, the flips, what to buy."""
    console.print(Text(_verdict(found), style="bold green"))
    first = found.first
    console.print(Text(
        f"{first.candidate.model.name} on {first.candidate.gpus:,} GPUs, "
        f"{first.finalist.layout.global_batch:,} sequences of {first.finalist.layout.seq:,} tokens "
        "a step."
        + ("" if found.asked.layouts else " Each cluster has the best layout found for it.")
    ))  # fmt: skip
    _section(console, "Ranked", _ranked_table(found))
    _section(console, "What falls on the cut between supernodes, in bytes of one step",
             _cut_table(found))  # fmt: skip
    for line in _cut_sentences(found):
        console.print(Text(line))
    if found.compared.pools:
        _section(console, "Where the winner flips, all else equal", _flip_table(found))
        console.print(Text(_flip_sentence(found)))
        _section(console, "Where to spend: tokens a second won, layouts chosen anew",
                 _gain_table(found))  # fmt: skip
        console.print(Text(
            "Tokens per money rise as long as the part makes the cluster dearer by less than that."
        ))  # fmt: skip
    for line in _price_lines(found):
        console.print(Text(line))
    _section(console, "What it is made of, and what it takes", _bill_table(found))
    for line in _money_lines(found):
        console.print(Text(line))
    console.print()
    console.print(Text(f"inputs sha256 {sha256}, seed {found.seed}", style="dim"))


def _section(console: Console, title: str, table: Table) -> None:
    console.print()
    console.print(Text(title, style="bold"))
    console.print(table)


def _name(one: Entry, found: Comparison) -> str:
    return f"{one.candidate.name} {one.label}" if found.asked.layouts else one.candidate.name


def _verdict(found: Comparison) -> str:
    first = found.first.finalist
    low, high = interval_s(first.step)
    text = (
        f"{_name(found.first, found)} is first: a step takes {format_time(first.step_s)} "
        f"({format_time(low)} to {format_time(high)}) with {spelled_layout(first.layout)}."
    )
    rest = found.compared.ranked[1:]
    ties = [_name(one, found) for one in rest if is_tie(first, one.finalist)]
    if ties:
        return f"{text} A tie with {', '.join(ties)}: the model cannot tell them apart at 90 %."
    return f"{text} The model tells it from all others at 90 %." if rest else text


def _ranked_table(found: Comparison) -> Table:
    table = simple_table("  cluster", "layout", "step", "slower", "tie", "MFU", "memory", left=2)
    first = found.first.finalist
    for one in found.compared.ranked:
        f = one.finalist
        slower = f.step_s / first.step_s - 1.0
        table.add_row(
            f"  {_name(one, found)}", short_layout(f.layout), format_time(f.step_s),
            "" if f is first else format_share(slower) if slower > 5e-6 else "0 %",
            "" if f is first else "yes" if is_tie(first, f) else "no",
            format_share(float(f.step.mfu)),
            format_bytes(float(f.memory.worst_stage_bytes))
            + ("" if bool(f.memory.fits) else " !"),
        )  # fmt: skip
    return table


def _cut_table(found: Comparison) -> Table:
    entries = [*_by_size(found.compared.ranked), *_by_size(found.compared.moved)]
    used = [d for d in _DIGITS if any(d in one.finalist.crossed for one in entries)]
    table = simple_table("  cluster", *(d.upper() for d in used), "all")
    moved = False
    for one in entries:
        if one.label.startswith("best of") and not moved:
            table.add_section()
            moved = True
        crossed = one.finalist.crossed
        table.add_row(
            f"  {_name(one, found)}{' *' if moved else ''}",
            *("" if d not in crossed else format_bytes(crossed[d]) if crossed[d] else "inside"
              for d in used),
            format_bytes(one.finalist.seated_bytes) if one.finalist.seated_bytes else "none",
        )  # fmt: skip
    return table


def _by_size(entries: Sequence[Entry]) -> list[Entry]:
    return sorted(
        entries, key=lambda e: (max(e.candidate.fabric.capacities("supernode")), e.candidate.name)
    )


def _cut_sentences(found: Comparison) -> list[str]:
    lines = []
    for one in (*_by_size(found.compared.ranked), *_by_size(found.compared.moved)):
        crossed = one.finalist.crossed
        total = sum(crossed.values())
        out = sorted((d for d in crossed if crossed[d]), key=lambda d: -crossed[d])
        inside = [d.upper() for d in crossed if not crossed[d]]
        shares = ", ".join(f"{d.upper()} {format_share(crossed[d] / total)}" for d in out)
        whose = f" * (with the {one.label})" if one in found.compared.moved else ""
        text = f"{_name(one, found)}{whose}: " + (f"crosses {shares}" if out else "nothing crosses")
        text += f"; stays in {', '.join(inside)}" if inside else ""
        if one in found.compared.moved:
            text += f"; a step of {format_time(one.finalist.step_s)}"
        if not one.finalist.memory.fits:
            text += "; does not fit in memory"
        lines.append(text + ".")
    return lines


def _flip_table(found: Comparison) -> Table:
    table = simple_table("  property", "changes at", "from", "to", left=4)
    table.columns[0].no_wrap = table.columns[1].no_wrap = True
    for one in found.flips:
        value = flip_value(one, found)
        table.add_row(
            f"  {PROPERTY_WORDS[one.name]}",
            f"{_shown(one.name, value)} (x {one.factor:.3g})", one.before, one.after,
        )  # fmt: skip
    return table


def _shown(name: str, value: float) -> str:
    if name == "nic_rate":
        return format_rate(value)
    if name == "nic_latency":
        return format_time(value)
    return f"{value:,.0f}" if name == "seq" else f"{value:.3g}"


def _flip_sentence(found: Comparison) -> str:
    flipped = {one.name for one in found.flips if one.kind == "winner"}
    still = [words for name, words in PROPERTY_WORDS.items() if name not in flipped]
    return (
        f"No other cluster wins by 0.1 % within x 1/32 to x 32 of: {', '.join(still)}."
        if still and len(found.compared.pools) > 1
        else "Looked at from x 1/32 to x 32."
    )


def _gain_table(found: Comparison) -> Table:
    names = [one.candidate.name for one in _by_size(found.compared.ranked)]
    table = simple_table("  with", *names)
    for what in [gain.name for gain in found.gains[names[0]]]:
        cells = []
        for name in names:
            share = next(g.gain_share for g in found.gains[name] if g.name == what)
            cells.append(f"+{format_share(share)}" if share >= _NOTHING_SHARE else "nothing")
        table.add_row(f"  {what}", *cells)
    return table


def _price_lines(found: Comparison) -> list[str]:
    """Return at which price the others would win by tokens per money, at the same GPUs."""
    first = found.first
    others = [
        f"{_name(one, found)} below {format_share(first.finalist.step_s / one.finalist.step_s)}"
        for one in found.compared.ranked[1:]
        if one.candidate.name != first.candidate.name
        and one.finalist.step_s > first.finalist.step_s * (1.0 + 1e-9)
    ]
    if not others:
        return []
    text = (
        "By tokens per money another wins where a GPU costs less than this share of one of "
        f"{first.candidate.name}: {', '.join(others)}."
    )
    return [text]


def _bill_table(found: Comparison) -> Table:
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
    table.add_row("  known power", *(format_power(r.power_w) if r.power_w else "" for r in runs))
    table.add_row("  tokens a day", *(f"{r.tokens_per_day / 1e9:,.4g} G" for r in runs))
    if found.tokens is not None:
        table.add_row("  days", *("" if r.days is None else f"{r.days:,.4g}" for r in runs))
    if any(r.cost_per_token is not None for r in runs):
        currency = found.prices.currency if found.prices else ""
        table.add_row(
            f"  {currency} a million tokens",
            *("" if r.cost_per_token is None else f"{r.cost_per_token * 1e6:,.4g}" for r in runs),
        )
        if found.tokens is not None:
            table.add_row(
                f"  {currency} for the run",
                *("" if r.cost is None else f"{r.cost:,.0f}" for r in runs),
            )
    return table


def _money_lines(found: Comparison) -> list[str]:
    lines = []
    missing = sorted({item for bill in found.bills.values() for item in bill.without_power})
    if missing:
        lines.append(f"Power is without: {', '.join(missing).replace('_', ' ')}; nobody gave it.")
    why = dict.fromkeys(
        run.why_no_cost for run in found.runs if run.cost_per_token is None and run.why_no_cost
    )
    return lines + [f"No money: {reason}." for reason in why]
