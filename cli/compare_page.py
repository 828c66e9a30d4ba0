"""The page of ``planner compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from cli.compare_budget_words import lost_time, size_lines
from cli.compare_cuts import by_size, cut_sentences, cut_table, row_name, seating_sentence
from cli.compare_flips import ALIKE_SHARE, flip_lines, flip_questions, now_sentence
from cli.compare_report import Comparison, pareto_rows, worth_per_gpu
from cli.compare_verdict import choice_of, same_work, tokens_words, verdict_lines
from cli.page_tables import simple_table
from cli.pareto_plot import Point, scatter
from cli.part_used_words import part_words
from cli.report_pictures_plane import Axis
from cli.report_words import boxes_words, energy_words, unfilled_words
from cli.search_report import short_layout, used_bytes
from planner.procure.budget import format_money, money_of
from planner.procure.run import DAY_S, Run
from planner.search.finalist import is_tie
from planner.units import format_bytes, format_number, format_power, format_share, format_time

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_NOTHING_SHARE = 0.001


def print_comparison(console: Console, found: Comparison, sha256: str) -> None:
    """Print the page: what to take, the ranking, the cuts, the flips, what to buy."""
    for line in verdict_lines(found):
        console.print(Text(line, style="bold green"))
    first = found.first
    console.print(Text(
        f"{first.candidate.model.name} on {_job(found)}."
        + ("" if found.asked.layouts else " Each cluster has the layout that place takes there.")
    ))  # fmt: skip
    for line in [*size_lines(found), *_unfilled_lines(found)]:
        console.print(Text(line))
    _section(console, "Ranked", _ranked_table(found))
    console.print(Text(_layout_words(found)))
    _section(console, "What falls on the cut between supernodes, in bytes of one step",
             cut_table(found))  # fmt: skip
    console.print(Text(seating_sentence(found)))
    for line in cut_sentences(found):
        console.print(Text(line))
    if found.compared.pools:
        console.print()
        console.print(Text("Where the winner flips, all else equal", style="bold"))
        console.print(Text(now_sentence(found)))
        for question in flip_questions(found):
            console.print(Text(question.words, style="italic"))
            console.print(question.table)
        for line in flip_lines(found):
            console.print(Text(line))
        _section(console, "Where to spend: tokens a second won, layouts chosen anew",
                 _gain_table(found))  # fmt: skip
        for line in _gain_lines(found):
            console.print(Text(line))
    for line in _price_lines(found):
        console.print(Text(line))
    if len(found.compared.ranked) > 1:
        console.print()
        console.print(Text(_front_title(found), style="bold"))
        for line in plotted(found):
            console.print(Text(line))
    _section(console, "What it is made of, and what it takes", _bill_table(found))
    for line in (*_idle_lines(found), *_money_lines(found)):
        console.print(Text(line))
    console.print()
    console.print(Text(f"inputs sha256 {sha256}, seed {found.seed}", style="dim"))


_WORDS = {
    "vpp": "vpp: virtual stages of a pipeline",
    "shard": "shard: ranks of dp that share one copy of what ZeRO shards",
    "zero": "zero: ZeRO stage",
    "mb": "mb: sequences of a micro-batch",
    "no-rec": "no-rec: nothing is computed again",
    "rec": "rec: activations are computed again in full, else selectively",
}
"""What a word of a layout's short form means, by its letters; degrees are what they are called."""


def _layout_words(found: Comparison) -> str:
    """Return what the words of the ranking's layouts mean."""
    used = {
        word.rstrip("0123456789")
        for one in found.compared.ranked
        for word in short_layout(one.finalist.layout).split()
    }
    return f"{'; '.join(text for word, text in _WORDS.items() if word in used)}."


def _unfilled_lines(found: Comparison) -> list[str]:
    """Return which clusters' supernodes the GPUs do not fill, and what a part of each brings."""
    steps_s = {one.candidate.name: one.finalist.step_s for one in found.compared.ranked}
    lines = []
    for one in found.asked.candidates:
        names = [domain.name for domain in one.fabric.tier("supernode").domains]
        said = unfilled_words("supernode", one.fabric.capacities("supernode"), names)
        if said:
            part = part_words(found.parts_used.get(one.name), steps_s.get(one.name, 0.0), "generic")
            lines.append(f"{one.name}: {said} {part}".rstrip())
    return lines


def _idle_lines(found: Comparison) -> list[str]:
    """Return which clusters have more GPUs than the job, all of which the bill counts."""
    return [
        f"{one.name} is counted whole, with {len(one.fabric.gpus):,} GPUs, of which the job takes "
        f"{one.gpus:,}: its graph is fixed."
        for one in found.asked.candidates
        if len(one.fabric.gpus) != one.gpus
    ]


def _section(console: Console, title: str, table: Table) -> None:
    console.print()
    console.print(Text(title, style="bold"))
    console.print(table)


def _job(found: Comparison) -> str:
    """Return the GPUs and the batch, each as a range where the rows differ."""

    def among(values: list[int]) -> str:
        low, high = min(values), max(values)
        return f"{low:,}" if low == high else f"{low:,} to {high:,}"

    layouts = [one.finalist.layout for one in found.compared.ranked]
    return (
        f"{among([one.candidate.gpus for one in found.compared.ranked])} GPUs, "
        f"{among([one.global_batch for one in layouts])} sequences of "
        f"{among([one.seq for one in layouts])} tokens a step"
    )


def _ranked_table(found: Comparison) -> Table:
    alike = same_work(found)
    table = simple_table(
        "  cluster", "layout", *(() if alike else ("GPUs", "batch")), "step",
        *(("slower", "tie", "MFU") if alike else ("tokens/s", "fewer")), "memory", left=2,
    )  # fmt: skip
    table.columns[1].min_width = 11 if alike else 9  # in less, it takes many lines
    table.columns[0].no_wrap = True
    first = found.first.finalist
    for one in found.compared.ranked:
        f = one.finalist
        slower = f.token_s / first.token_s - 1.0 if alike else 1.0 - first.token_s / f.token_s
        table.add_row(
            f"  {row_name(one, found)}", short_layout(f.layout),
            *(() if alike else (f"{one.candidate.gpus:,}", f"{f.layout.global_batch:,}")),
            format_time(f.step_s),
            *(() if alike else (tokens_words(float(f.step.tokens_per_s)),)),
            "" if f is first else _more(slower),
            *(
                ("" if f is first else "yes" if is_tie(first, f) else "no",
                 format_share(float(f.step.mfu)))
                if alike else ()
            ),
            format_bytes(used_bytes(f.memory))
            + ("" if bool(f.memory.fits) else " !"),
        )  # fmt: skip
    return table


def _more(share: float) -> str:
    if abs(share) < 5e-6:
        return "0 %"
    return format_share(share) if share > 0 else f"-{format_share(-share)}"


def _front_title(found: Comparison) -> str:
    rows = list(enumerate(pareto_rows(found), 1))
    front = [f"{rank} {row['cluster']}" for rank, row in rows if row["on_front"]]
    beaten = [f"{rank} {row['cluster']}" for rank, row in rows if not row["on_front"]]
    text = f"Not beaten in everything (tokens, head-room, parts): {', '.join(front)}"
    return text + (f"; beaten: {', '.join(beaten)}" if beaten else "")


def plotted(found: Comparison) -> list[str]:
    """Return the clusters as a plot of tokens a day over money, power or switches."""
    rows = pareto_rows(found)
    over = Axis(name="switches", text=lambda v: f"{v:,.0f}")
    name = "switches"
    if all(row["power_w"] is not None for row in rows):
        name, over = "power_w", Axis(name="power", text=format_power)
    if all(row["cost_per_million_tokens"] is not None for row in rows):
        currency = found.prices.currency if found.prices else ""
        name = "cost_per_million_tokens"
        over = Axis(name=f"{currency} a million tokens", text=_four)
    marks = [str(rank) if rank < 10 else "o" for rank in range(1, len(rows) + 1)]
    points = [
        Point(x=float(row[name]), y=row["tokens_per_s"] * DAY_S, mark=mark)
        for row, mark in reversed(list(zip(rows, marks, strict=True)))
    ]
    days = Axis(name="tokens/day", text=lambda v: f"{_four(v / 1e9)} G")
    return scatter(points, over, days)


def _gain_table(found: Comparison) -> Table:
    names = [one.candidate.name for one in by_size(found.compared.ranked)]
    table = simple_table("  with", *names)
    for what in dict.fromkeys(gain.name for name in names for gain in found.gains[name]):
        cells = []
        for name in names:
            share = next((g.gain_share for g in found.gains[name] if g.name == what), None)
            cells.append(
                "" if share is None
                else f"+{format_share(share)}" if share >= _NOTHING_SHARE else "nothing"
            )  # fmt: skip
        table.add_row(f"  {what}", *cells)
    return table


def _gain_lines(found: Comparison) -> list[str]:
    """Return what nothing is worth, and what the best part may cost."""
    every = [gain for some in found.gains.values() for gain in some]
    least = dict.fromkeys(gain.name for gain in every)
    nothing = [
        name for name in least
        if all(g.gain_share < _NOTHING_SHARE for g in every if g.name == name)
    ]  # fmt: skip
    lines = [f"Nothing is won, on any of them, by: {', '.join(nothing)}."] if nothing else []
    currency = found.prices.currency if found.prices else ""
    for name, some in found.gains.items():
        best = some[0]
        amount = worth_per_gpu(best, name, found)
        if amount is not None and best.gain_share >= _NOTHING_SHARE:
            lines.append(
                f"{name}: {best.name} may cost up to {format_money(amount, currency)} a GPU "
                f"({_basis(found, name)}) before tokens per money fall."
            )
    if found.prices is None:
        lines.append(
            "Tokens per money rise as long as the part makes the cluster dearer by less than that."
        )
    return lines


def _basis(found: Comparison, name: str) -> str:
    one = next(c for c in found.asked.candidates if c.name == name)
    return money_of(one.gpus, found.bills[name], found.prices).basis if found.prices else ""


def _price_lines(found: Comparison) -> list[str]:
    """Return at which price the others would win by tokens per money, at the same GPUs."""
    choice = choice_of(found)
    others = [] if choice is None else [
        f"{one.name} below {format_share(one.tokens_per_s / choice.pick.tokens_per_s)}"
        for one in choice.order
        if one.gpus == choice.pick.gpus
        and one.tokens_per_s * (1.0 + ALIKE_SHARE) < choice.pick.tokens_per_s
    ]  # fmt: skip
    if found.cheapest:
        lines = [f"By tokens per money spent {found.cheapest} is first, at the prices given."]
        if not any(one.kind == "cheapest" for one in found.flips) and len(found.runs) > 1:
            lines.append("No single price between x 1/32 and x 32 of what it is changes that.")
        return lines
    if choice is None or not others or found.asked.sizes.goal.equal != "gpus":
        return []
    text = (
        "By tokens per money another wins where a GPU costs less than this share of one of "
        f"{choice.pick.name}: {', '.join(others)}."
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
    table.add_row("  tokens a day", *(f"{_four(r.tokens_per_day / 1e9)} G" for r in runs))
    if any(r.tokens_per_j is not None for r in runs):
        table.add_row(
            "  tokens a joule",
            *("" if r.tokens_per_j is None else _four(r.tokens_per_j) for r in runs),
        )
    if found.tokens is not None:
        table.add_row("  days", *("" if r.days is None else _four(r.days) for r in runs))
        table.add_row(
            "  known energy",
            *("" if not r.energy_j else energy_words(r.energy_j) for r in runs),
        )
    if any(r.cost_per_token is not None for r in runs):
        currency = found.prices.currency if found.prices else ""
        table.add_row(
            f"  {currency} a million tokens",
            *("" if r.cost_per_token is None else _four(r.cost_per_token * 1e6) for r in runs),
        )
        if found.tokens is not None:
            table.add_row(
                f"  {currency} for the run",
                *("" if r.cost is None else f"{r.cost:,.0f}" for r in runs),
            )
    return table


def _four(value: float) -> str:
    return format_number(value, digits=4)


def _money_lines(found: Comparison) -> list[str]:
    lines = [f"Tokens a day, days, energy and money with {lost_time(found)}."]
    bills = found.bills.values()
    missing = sorted(
        {item for bill in bills for item in (*bill.without_power, *bill.boxes_without_power)}
    )
    if missing:
        lines.append(f"Power is without: {', '.join(missing).replace('_', ' ')}; nobody gave it.")
    why = dict.fromkeys(
        run.why_no_cost for run in found.runs if run.cost_per_token is None and run.why_no_cost
    )
    if found.prices is not None:
        bought = [bill for bill in bills if found.prices.rent(bill.accelerator) is None]
        lines += boxes_words(box for bill in bought for box in bill.boxes_without_price)
    return lines + [f"No money: {reason}." for reason in why]
