"""A plan as a page for a person: the verdict first, then what it rests on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich import box
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from cli.chosen_words import chosen_words, given_words
from cli.page_tables import labelled, memory_table, path_table
from cli.part_used_words import used_part_words
from cli.place_extras import explain_lines, idle_line, missing_others, other_rows, rule_lines
from cli.report_text_map import map_lines
from cli.report_text_network import incast_lines, sharing_lines
from cli.report_text_objective import objective_proof
from cli.report_text_parts import (
    CrossedBytes,
    border_sentences,
    crossed_bytes,
    faster_seating,
    limiting_sentence,
    proof_sentence,
    seat_lines,
    verdict,
    where_it_sits,
)
from cli.report_text_terms import terms_line
from cli.report_text_tiers import tier_table, tiers_sentence
from cli.report_words import close_words, passed_over_words
from cli.unfilled_words import unfilled_words
from planner.place.answer import Proof
from planner.search.given import spelled_layout
from planner.steptime.critical_path import critical_path
from planner.steptime.document import interval_s
from planner.steptime.memory import STAGES
from planner.units import format_bytes, format_rate, format_time
from planner.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from cli.place_extras import Extras
    from cli.planner_inputs import Inputs
    from cli.planner_plan import Plan
    from planner.fabric import Fabric

_AT_ONCE_SHARE, _SHOWN_SHARE = 0.01, 5e-4
"""Of the step, what a faster seating saves to be named first of all, and to be named at all [1]:
less than the one no choice between seatings rests on, less than the other no table shows."""
_DOMAINS_SHOWN = 8
_WIDE = 100  # columns from which every baseline has one of its own
_NARROW_SEATINGS = 4  # the plan, rank order, greedy and random
_ASSUMED_SHOWN = 5
_MOST_ODD = 6  # supernodes of other sizes than most that are written out
_ALWAYS_SHOWN = ("all", "step")
_OVER = 1.005  # to 1: less would be told as 1:1
_LEAST_NAME = 14  # columns for the name of a second answer


def print_page(console: Console, plan: Plan, sha256: str, more: Extras | None = None) -> None:
    """Print the page of *plan*.

    Args:
        console: where to; 80 to 160 columns.
        plan: a seated layout.
        sha256: hash of its inputs.
        more: rules, reasons, second answers, idle GPUs.
    """
    proved = plan.placement.proof is not Proof.INCUMBENT
    console.print(Text(verdict(plan), style="bold green" if proved else "bold yellow"))
    if not plan.memory.fits:
        console.print(Text(_overfull(plan), style="bold red"))
    at_once = faster_seating(plan, _AT_ONCE_SHARE)
    _print_lines(console, (at_once, *_faster_words(plan, more)), style="yellow")
    _heading(console, "Asked")
    console.print(labelled(_asked_lines(plan)))
    _heading(console, "What crosses, in bytes of one step")
    crossed = crossed_bytes(plan)
    shown = _NARROW_SEATINGS if console.width < _WIDE else len(crossed.seatings)
    console.print(_crossing_table(plan, crossed, shown))
    if also := _also_tried(plan, crossed, shown):
        console.print(Text(also))
    if terms := terms_line(list(crossed.by_digit), crossed.seatings, plan.placement.method):
        console.print(Text(terms, style="dim"))
    by_bytes = plan.placement.objective == "total"
    console.print(Text(proof_sentence(plan.placement) if by_bytes else objective_proof(plan)))
    if len(plan.placement.tier_order) > 1:
        console.print(tier_table(plan.placement))
        console.print(Text(tiers_sentence(plan.placement)))
    later = "" if at_once else faster_seating(plan, _SHOWN_SHARE)
    _print_lines(console, (*border_sentences(plan), later), style="")
    if more is not None:
        _print_more(console, plan, more)
    _heading(console, f"Where the ranks sit, by {plan.placement.tier}")
    for map_line in map_lines(plan, console.width):
        console.print(map_line, no_wrap=True, crop=False)
    console.print(labelled(seat_lines(plan, _DOMAINS_SHOWN)))
    if more is not None and (idle := idle_line(plan, more)):
        console.print(Text(f"  {idle}"))
    _print_step(console, plan)
    _heading(console, "Links and ports")
    console.print(labelled([*sharing_lines(plan.step), *incast_lines(plan.incast)]))
    _heading(console, f"Memory of the fullest GPU ({STAGES[int(plan.memory.stage)]} stage)")
    console.print(memory_table(plan.memory, console.width))
    used = float(plan.memory.worst_stage_bytes) + plan.memory.margin_bytes
    if close := close_words(used, plan.memory.capacity_bytes):
        console.print(Text(close))
    _heading(console, "Assumed")
    console.print(labelled(_assumed_lines(plan)))
    console.print()
    console.print(Text(f"inputs sha256 {sha256}, seed {plan.placement.seed}", style="dim"))


def _print_lines(console: Console, lines: Iterable[str], style: str) -> None:
    for line in lines:
        if line:
            console.print(Text(line, style=style))


def _faster_words(plan: Plan, more: Extras | None) -> tuple[str, str]:
    """Return what faster layout was passed over, and what a part of each supernode would bring."""
    part = None if more is None else more.part
    step_s = float(plan.step.total_s)
    return passed_over_words(plan.inputs.choice), used_part_words(part, step_s, plan.inputs.cluster)


def _print_more(console: Console, plan: Plan, more: Extras) -> None:
    """Print the rules and their price, why each degree crosses, and second answers."""
    if plan.placement.rule_price is not None:
        _heading(console, "Rules")
        console.print(labelled(rule_lines(plan)))
    if more.explanation is not None:
        _heading(console, "Why it crosses")
        console.print(labelled(explain_lines(plan, more.explanation)))
    if more.others_asked:
        _heading(console, "The best others tried that cross something else")
        if more.others:
            console.print(_others_table(plan, more, console.width))
        if why := missing_others(plan, more):
            console.print(Text(f"  {why}"))


def _others_table(plan: Plan, more: Extras, width: int) -> Table:
    """Return the second answers, without degrees that cross in none of them, in 80 columns."""
    titles, rows = other_rows(plan, more)
    kept = [
        i for i in range(1, len(titles))
        if titles[i] in _ALWAYS_SHOWN or any(row[i] != "none" for row in rows)
    ]  # fmt: skip
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    numbers = sum(max(len(titles[i]), *(len(row[i]) for row in rows)) + 2 for i in kept)
    table.add_column("  placement", max_width=max(width - numbers - 2, _LEAST_NAME))
    for i in kept:
        table.add_column(titles[i], justify="right", no_wrap=True)
    for row in rows:
        table.add_row(Padding(row[0], (0, 0, 0, 2)), *(row[i] for i in kept))
    return table


def _heading(console: Console, text: str) -> None:
    console.print()
    console.print(Text(text, style="bold"))


def _overfull(plan: Plan) -> str:
    memory = plan.memory
    return (
        f"It does not fit: {format_bytes(float(memory.worst_stage_bytes))} and a margin of "
        f"{format_bytes(memory.margin_bytes)} on GPUs of {format_bytes(memory.capacity_bytes)}, "
        f"{format_bytes(float(memory.missing_bytes))} too much."
    )


def _asked_lines(plan: Plan) -> list[tuple[str, str]]:
    inputs = plan.inputs
    fabric, model, layout = inputs.fabric, inputs.model, inputs.layout
    first = [tier.name for tier in fabric.tiers].index("supernode")
    rates = [
        f"{format_rate(tier.bytes_per_s)} per GPU {'inside' if i == 0 else f'over the {tier.name}'}"
        + (
            f" ({tier.oversubscription:.3g}:1 oversubscribed)"
            if tier.oversubscription >= _OVER
            else ""
        )
        for i, tier in enumerate(fabric.tiers[first:])
    ]
    spares = len(fabric.gpus) - inputs.gpus
    active = model.active_parameters()
    tokens = layout.global_batch * layout.seq
    lines = [
        (
            "cluster",
            f"{fabric.name}: {inputs.gpus:,} {fabric.accelerator.name}"
            + (f" and {spares:,} spare" if spares else "")
            + f" in supernodes of {_supernodes(fabric)}; {', '.join(rates)}",
        ),
        *_unfilled(fabric),
        (
            "model",
            f"{model.name}, {model.parameters() / 1e9:.4g} billion parameters"
            + (f", {active / 1e9:.3g} billion active" if model.experts else "")
            + _whose_model(inputs),
        ),
        (
            "batch",
            f"{counted(layout.global_batch, 'sequence')} of {layout.seq:,} tokens: "
            f"{tokens / 1e6:.3g} million tokens a step"
            + (" (assumed)" if "global_batch" in inputs.assumed else ""),
        ),
        (
            "layout",
            f"{spelled_layout(layout)}, {layout.precision}, ranks {layout.order}"
            + (f"; {given}" if (given := given_words(inputs)) else ""),
        ),
    ]
    chosen = chosen_words(inputs, plan.memory)
    return [*lines, ("chosen", chosen)] if chosen else lines


def _unfilled(fabric: Fabric) -> list[tuple[str, str]]:
    """Return lines where filed supernodes were dropped, and where GPUs do not fill all."""
    names = [domain.name for domain in fabric.tier("supernode").domains]
    sizes = fabric.capacities("supernode")
    text = (
        unfilled_words("supernode", sizes, names, fabric.full_supernode_gpus)
        if sizes == _whole_sizes(fabric) else ""
    )  # fmt: skip
    dropped = fabric.assumed.get("supernode.count", "")
    lines = {"rebuilt": dropped, "not full": text}
    return [(name, said) for name, said in lines.items() if said]


def _whole_sizes(fabric: Fabric) -> tuple[int, ...]:
    """Return what each supernode holds, with what a free list leaves out of it."""
    whole = {one.name: len(one.gpus) for one in fabric.whole.tier("supernode").domains}
    return tuple(whole[one.name] for one in fabric.tier("supernode").domains)


def _supernodes(fabric: Fabric) -> str:
    """Return the sizes of supernodes; where only a part of them is free also how much."""
    sizes, whole = fabric.capacities("supernode"), _whole_sizes(fabric)
    if sizes == whole:
        return f"{fabric.supernode_gpus} (part of one)" if fabric.supernode_gpus else _sizes(sizes)
    free = f"in each {sizes[0]}" if len(set(sizes)) == 1 else f"in them {_sizes(sizes)}"
    return f"{_sizes(whole)}, {free} free"


def _sizes(capacities: tuple[int, ...]) -> str:
    """Return 64 (16 of them), or 384+384+256 where they differ."""
    if len(set(capacities)) == 1:
        return f"{capacities[0]} ({len(capacities)} of them)"
    if len(capacities) <= 4:
        return "+".join(map(str, capacities))
    most = max(set(capacities), key=lambda c: (capacities.count(c), c))
    rest = [c for c in capacities if c != most]
    told, left = (rest, []) if len(rest) <= _MOST_ODD else (rest[:4], rest[4:])
    return f"{most} ({capacities.count(most)} of them) and {'+'.join(map(str, told))}" + (
        f" and {len(left)} supernodes more with {_span(left)}" if left else ""
    )


def _span(sizes: list[int]) -> str:
    return f"{min(sizes)} to {max(sizes)}" if min(sizes) < max(sizes) else str(sizes[0])


def _also_tried(plan: Plan, crossed: CrossedBytes, shown: int) -> str:
    """Return in words the baselines that a narrow page has no column for; empty if none."""
    names, totals = crossed.seatings[shown:], crossed.totals[shown:]
    steps = [float(plan.step.total_s), *plan.baseline_steps_s.values()][shown:]
    tried = [
        f"{_short(name)}: {_none_or_bytes(total)} in all, step {format_time(step)}"
        for name, total, step in zip(names, totals, steps, strict=True)
    ]
    return f"Also tried, {'; '.join(tried)}." if tried else ""


def _crossing_table(plan: Plan, crossed: CrossedBytes, shown: int) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column("  group", no_wrap=True)
    table.add_column("sits in", min_width=10)
    for name in crossed.seatings[:shown]:
        table.add_column(_short(name), justify="right")
    for digit, per_seating in crossed.by_digit.items():
        table.add_row(
            f"  {digit.upper()} {plan_group_size(plan, digit)}",
            where_it_sits(plan, digit),
            *(_none_or_bytes(value) for value in per_seating[:shown]),
        )
    table.add_section()
    table.add_row("  all", "", *(_none_or_bytes(total) for total in crossed.totals[:shown]))
    steps = [float(plan.step.total_s), *plan.baseline_steps_s.values()]
    table.add_row("  step", "", *(format_time(step) for step in steps[:shown]))
    return table


def plan_group_size(plan: Plan, digit: str) -> str:
    """Return a digit's groups as ``8 x 128``: members of one, and how many."""
    layout = plan.inputs.layout
    size = 1
    for i in layout.axes_of(digit):
        size *= layout.axes[i].size
    return f"{size} x {layout.gpus // size}"


def _short(name: str) -> str:
    return {"megatron-order": "rank order"}.get(name, name.replace("-", " "))


def _none_or_bytes(value: float) -> str:
    return "none" if value == 0 else format_bytes(value)


def _print_step(console: Console, plan: Plan) -> None:
    low, high = interval_s(plan.step)
    _heading(
        console,
        f"The step: {format_time(float(plan.step.total_s))} "
        f"(90 % of such estimates: {format_time(low)} to {format_time(high)})",
    )
    entries = critical_path(plan.step)
    console.print(path_table(entries, console.width))
    console.print(Text(limiting_sentence(plan, entries)))


def _whose_model(inputs: Inputs) -> str:
    """Return whose the model is where ``--model`` was left out."""
    if "model" not in inputs.assumed:
        return ""
    if inputs.launch is None or inputs.launch.model is None:
        return " (default)"
    return f" (of {inputs.launch.name})"


def _assumed_lines(plan: Plan) -> list[tuple[str, str]]:
    inputs = plan.inputs
    lines: dict[str, Any] = {**inputs.assumed, **plan.step.assumed, **inputs.model.assumed,
                             **inputs.fabric.assumed, **inputs.assumed}  # fmt: skip
    shown = [(name, str(text)) for name, text in lines.items()][:_ASSUMED_SHOWN]
    more = len(lines) - len(shown)
    return [*shown, ("…", f"{more} more, and every source, in --json")] if more else shown
