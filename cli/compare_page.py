"""The page of ``planner compare``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from cli.compare_bill import (
    bill_table,
    four_digits,
    idle_lines,
    money_lines,
    purchase_table,
    unused_lines,
)
from cli.compare_budget_words import size_lines
from cli.compare_cuts import by_size, cut_sentences, cut_table, row_name, seating_sentence
from cli.compare_flips import (
    CUT_SHORT,
    fastest_lines,
    flip_lines,
    flip_questions,
    now_sentence,
)
from cli.compare_front import front_figures, pareto_rows
from cli.compare_report import Comparison, worth_per_gpu
from cli.compare_verdict import choice_of, same_work, tokens_words, verdict_lines
from cli.inputs_document import efficiency_notes
from cli.page_tables import simple_table
from cli.pareto_plot import Point, scatter
from cli.part_used_words import used_part_words
from cli.report_pictures_plane import Axis
from cli.search_report import short_layout, used_bytes
from cli.unfilled_words import unfilled_words
from planner.procure.budget import format_money, money_of
from planner.procure.run import DAY_S
from planner.search.finalist import is_tie
from planner.units import format_bytes, format_power, format_share, format_time
from planner.words import counted, plural

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from planner.search.compare import Entry

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
    for line in [
        *size_lines(found),
        *_unfilled_lines(found),
        *efficiency_notes(found.asked.inputs),
    ]:
        console.print(Text(line))
    _section(console, "Ranked", _ranked_table(found))
    for line in (_layout_words(found), *_ranked_lines(found)):
        console.print(Text(line))
    _section(console, "What falls on the cut between supernodes, in bytes of one step",
             cut_table(found))  # fmt: skip
    console.print(Text(seating_sentence(found)))
    for line in cut_sentences(found):
        console.print(Text(line))
    if found.compared.pools:
        _print_flips(console, found)
    for line in _price_lines(found):
        console.print(Text(line))
    if len(found.compared.ranked) > 1:
        console.print()
        console.print(Text(_front_title(found), style="bold"))
        for line in (*plotted(found), *_numbers_lines(found)):
            console.print(Text(line))
    _section(console, "What it is made of, and what it takes", bill_table(found))
    for line in (*idle_lines(found), *unused_lines(found), *money_lines(found)):
        console.print(Text(line))
    if (bought := purchase_table(found)) is not None:
        _section(console, "What it costs to buy: the count above times the price of one", bought)
    console.print()
    console.print(Text(f"inputs sha256 {sha256}, seed {found.seed}", style="dim"))


def _print_flips(console: Console, found: Comparison) -> None:
    """Print where the winner flips, and what better parts bring."""
    console.print()
    console.print(Text("Where the winner flips, all else equal", style="bold"))
    if found.interrupted:
        console.print(Text(CUT_SHORT))
        return
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
    """Return what the words of the ranking mean: of its layouts, and 'fewer'."""
    used = {
        word.rstrip("0123456789")
        for one in found.compared.ranked
        for word in short_layout(one.finalist.layout).split()
    }
    words = [text for word, text in _WORDS.items() if word in used]
    if not all(one.finalist.memory.fits for one in found.compared.ranked):
        words.append("!: beyond the memory of a GPU")
    if len(found.compared.ranked) > 1:
        words.append(_against_words(found))
    return f"{'; '.join(words)}."


def _against_words(found: Comparison) -> str:
    """Return the order of the rows and what their share of tokens a second is of."""
    if found.asked.sizes.goal.equal != "run":
        beyond = not all(one.finalist.memory.fits for one in found.compared.ranked)
        more = "; +: how many more, of one that does not fit" if beyond else ""
        return f"fewer: how many fewer tokens a second than the first{more}"
    paid = all(run.cost is not None for run in found.runs)
    order = "least money of the run" if paid else "fewest GPUs"
    return (
        f"rows: {order} first; vs first: tokens a second more (+) or fewer (-) than the first "
        "row's, of the layouts shown"
    )


def _unfilled_lines(found: Comparison) -> list[str]:
    """Return which clusters' supernodes are not full, what part is left out, what a part brings."""
    steps_s = {one.candidate.name: one.finalist.step_s for one in found.compared.ranked}
    lines = []
    for one, asked in zip(found.asked.candidates, found.asked.inputs, strict=True):
        names = [domain.name for domain in one.fabric.tier("supernode").domains]
        said = unfilled_words(
            "supernode", one.fabric.capacities("supernode"), names, one.fabric.full_supernode_gpus
        )
        if said:
            part = used_part_words(
                found.parts_used.get(one.name), steps_s.get(one.name, 0.0), asked.cluster
            )
            lines.append(f"{one.name}: {said} {part}".rstrip())
        if (left_out := one.fabric.assumed.get("supernode.count")) is not None:
            lines.append(f"{one.name}: rebuilt with {left_out}.")
    return lines


def _section(console: Console, title: str, table: Table) -> None:
    console.print()
    console.print(Text(title, style="bold"))
    console.print(table)


def _job(found: Comparison) -> str:
    """Return the GPUs and the batch, each as a range where the rows differ."""

    def among(values: list[int], noun: str) -> str:
        low, high = min(values), max(values)
        return counted(low, noun) if low == high else f"{low:,} to {high:,} {plural(noun)}"

    layouts = [one.finalist.layout for one in found.compared.ranked]
    return (
        f"{among([one.candidate.gpus for one in found.compared.ranked], 'GPU')}, "
        f"{among([one.global_batch for one in layouts], 'sequence')} of "
        f"{among([one.seq for one in layouts], 'token')} a step"
    )


def _ranked_lines(found: Comparison) -> list[str]:
    """Return what the ranking goes by, and why it shows other layouts than the fastest."""
    if not found.compared.fastest or found.asked.sizes.goal.equal == "run":
        return []
    by = (
        "'fastest', the step of the fastest layout found on each cluster" if same_work(found)
        else "the tokens a second of the fastest layout found on each cluster"
    )  # fmt: skip
    said = (
        f"Ranked by {by}. 'fewer' is of these, as every share between clusters below; the rest is "
        "of the layout shown."
    )
    return [said, *fastest_lines(found)]


def _ranked_table(found: Comparison) -> Table:
    alike = same_work(found)
    with_fastest = alike and found.compared.fastest
    by_need = found.asked.sizes.goal.equal == "run"
    against = "vs first" if by_need else "fewer"
    table = simple_table(
        "  cluster", "layout", *(() if alike else ("GPUs", "batch")), "step",
        *(("fastest",) if with_fastest else ()),
        *((against, "tie", "MFU") if alike else ("tokens/s", against)), "memory", left=2,
    )  # fmt: skip
    table.columns[1].min_width = 11 if alike else 9  # in less, it takes many lines
    table.columns[0].no_wrap = True
    first, first_s = found.first.finalist, _ranked_by_s(found.first, found)
    for one in found.compared.ranked:
        f, token_s = one.finalist, _ranked_by_s(one, found)
        table.add_row(
            f"  {row_name(one, found)}", short_layout(f.layout),
            *(() if alike else (f"{one.candidate.gpus:,}", f"{f.layout.global_batch:,}")),
            format_time(f.step_s),
            *((format_time(_fastest_s(one, found)),) if with_fastest else ()),
            *(() if alike else (tokens_words(float(f.step.tokens_per_s)),)),
            "" if f is first else _against(first_s / token_s - 1.0, signed=by_need),
            *(
                ("" if f is first else "yes" if is_tie(first, f) else "no",
                 format_share(float(f.step.mfu)))
                if alike else ()
            ),
            format_bytes(used_bytes(f.memory))
            + ("" if bool(f.memory.fits) else " !"),
        )  # fmt: skip
    return table


def _fastest_s(one: Entry, found: Comparison) -> float:
    """Return the shortest step known: that of the layout shown where better seats beat it [s]."""
    return min(found.compared.fastest[one.candidate.name].step_s, one.finalist.step_s)


def _ranked_by_s(one: Entry, found: Comparison) -> float:
    """Return a token of what tells an entry's speed: as ranked, of a run its own layout [s]."""
    if found.asked.sizes.goal.equal == "run":
        return one.finalist.token_s
    return found.best_token_s(one)


def _against(more_share: float, *, signed: bool) -> str:
    """Return how many more tokens a second than the first; fewer without a sign but *signed*."""
    if abs(more_share) < 5e-6:
        return "0 %"
    if more_share > 0:
        return f"+{format_share(more_share)}"
    return f"{'-' if signed else ''}{format_share(-more_share)}"


def _front_title(found: Comparison) -> str:
    rows = pareto_rows(found)
    names = [f"{i} {row_name(one, found)}" for i, one in enumerate(found.compared.ranked, 1)]
    front = [name for name, row in zip(names, rows, strict=True) if row["on_front"]]
    beaten = [name for name in names if name not in front]
    told = ", ".join(front_figures(rows))
    text = f"Not beaten in everything ({told}): {', '.join(front)}"
    return text + (f"; beaten: {', '.join(beaten)}" if beaten else "")


def _numbers_lines(found: Comparison) -> list[str]:
    """Return why a higher number trains more in the picture, where one does."""
    shown = [row["tokens_per_s"] for row in pareto_rows(found)]
    if shown == sorted(shown, reverse=True) or found.asked.sizes.goal.equal == "run":
        return []
    return ["Numbers are ranks by the fastest layout; the picture shows the layouts of the table."]


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
        over = Axis(name=f"{currency} a million tokens", text=four_digits)
    marks = [str(rank) if rank < 10 else "o" for rank in range(1, len(rows) + 1)]
    points = [
        Point(x=float(row[name]), y=row["tokens_per_s"] * DAY_S, mark=mark)
        for row, mark in reversed(list(zip(rows, marks, strict=True)))
    ]
    days = Axis(name="tokens/day", text=lambda v: f"{four_digits(v / 1e9)} G")
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
        if any(cell not in ("", "nothing") for cell in cells):  # the others are named below
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
    for name, some in found.gains.items():
        if unseated := [one.name for one in some if not one.seated]:
            lines.append(
                f"{name}: in rank order, for it takes long to seat: {', '.join(unseated)}."
            )
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
    shares = {} if choice is None else {
        one.name: one.best_tokens_per_gpu_s / choice.pick.best_tokens_per_gpu_s
        for one in choice.order
        if one is not choice.pick
    }  # fmt: skip
    others = [f"{name} below {format_share(share)}" for name, share in shares.items()]
    if found.cheapest:
        lines = [f"By tokens per money spent {found.cheapest} is first, at the prices given."]
        if not any(one.kind == "cheapest" for one in found.flips) and len(found.runs) > 1:
            lines.append("No single price between x 1/32 and x 32 of what it is changes that.")
        return lines
    if choice is None or not others or found.asked.sizes.goal.equal != "gpus":
        return []
    text = (
        "By tokens per money another wins where its GPU, with all that it needs, costs less than "
        f"this share of one of {choice.pick.name}: {', '.join(others)}."
    )
    return [text]
