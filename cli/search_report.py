"""The answer of ``planner search``: as a document, as CSV and as a page."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from rich import box
from rich.table import Table
from rich.text import Text

from cli.planner_inputs import Inputs
from cli.planner_output import document
from cli.search_inputs import fixed_fields, searched_inputs
from planner.layout import Layout
from planner.procure.bill import Bill, bill_of_materials
from planner.procure.run import Run, run_of
from planner.search.given import spelled_layout
from planner.search.pareto import pareto_front
from planner.search.search import (
    Finalist,
    Swept,
    differences,
    finalists,
    is_tie,
    machine_of,
    sweep,
)
from planner.steptime.document import interval_s, memory_document, step_document
from planner.units import format_bytes, format_power, format_share, format_time

if TYPE_CHECKING:
    from rich.console import Console

    from planner.procure.prices import PriceList

FINALIST_LIMIT_S = 1.0
_PARETO_SHOWN = 12
_SLOWEST_SHOWN_RATIO = 3.0
_SHORT = {
    "zero_stage": "ZeRO", "micro_batch": "micro-batch", "recompute": "recomputation",
    "sequence_parallel": "sequence parallel", "cp_kind": "CP by", "ep_copies": "EP copy per",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Search:
    """A searched cluster.

    Args:
        inputs: what was asked.
        swept: the whole space.
        best: the finalists, fastest first.
        front: entries of the space that nothing beats in step and memory, fastest first.
        bill: the cluster's parts.
        runs: what a run takes with each finalist.
        wall_s: it took [s].
        seed, time_limit_s, prices, tokens: as asked.
    """

    inputs: Inputs
    swept: Swept
    best: tuple[Finalist, ...]
    front: tuple[int, ...]
    bill: Bill
    runs: tuple[Run, ...]
    wall_s: float
    seed: int
    time_limit_s: float
    prices: PriceList | None
    tokens: float | None


def make_search(
    inputs: Inputs,
    *,
    best: int,
    seed: int = 0,
    time_limit_s: float | None = None,
    prices: PriceList | None = None,
    tokens: float | None = None,
) -> Search:
    """Return the search of *inputs*; ``time_limit_s`` is for seating each finalist [s]."""
    started = time.perf_counter()
    limit_s = FINALIST_LIMIT_S if time_limit_s is None else time_limit_s
    machine = machine_of(inputs.fabric, inputs.gpus, inputs.efficiency)
    swept = sweep(inputs.model, machine, inputs.gpus, fixed_fields(inputs))
    found = finalists(
        inputs.model, inputs.fabric, swept, most=best, first=inputs.layout, seed=seed,
        time_limit_s=limit_s,
    )  # fmt: skip
    some = swept.evaluated
    front = pareto_front(np.stack([some.total_s, some.worst_bytes], axis=1))
    bill = bill_of_materials(inputs.fabric, prices)
    runs = [
        run_of(float(one.step.tokens_per_s), inputs.gpus, bill, prices, tokens) for one in found
    ]
    return Search(
        inputs=inputs, swept=swept, best=found, front=tuple(int(i) for i in front), bill=bill,
        runs=tuple(runs), wall_s=time.perf_counter() - started, seed=seed, time_limit_s=limit_s,
        prices=prices, tokens=tokens,
    )  # fmt: skip


def layout_document(layout: Layout) -> dict[str, Any]:
    """Return a layout's fields, and what follows from them."""
    return {
        **asdict(layout), "zero": layout.zero_stage, "edp": layout.edp,
        "micro_batches": layout.micro_batches,
    }  # fmt: skip


def finalist_document(one: Finalist, first: Finalist) -> dict[str, Any]:
    """Return a seated layout, and how it stands to the *first*."""
    placement = one.placement
    return {
        "layout": layout_document(one.layout),
        "step": step_document(one.step),
        "memory": memory_document(one.memory),
        "cut": {
            "tier": placement.tier,
            "objective_bytes": placement.objective_bytes,
            "lower_bound_bytes": placement.lower_bound_bytes,
            "gap": placement.gap,
            "proof": placement.proof,
            "checked_bytes": placement.checked_bytes,
            "by_family": placement.by_family,
        },
        "seating": one.seating,
        "seated_bytes": one.seated_bytes,
        "crossed_bytes": one.crossed,
        "estimated_step_s": one.estimated_s,
        "twins": one.twins,
        "tie_with_first": is_tie(first, one),
        "break_even_price_share": first.token_s / one.token_s,
        "differs_from_first": {
            name: pair[1] for name, pair in differences(first.layout, one.layout).items()
        },
    }


def search_document(found: Search) -> dict[str, Any]:
    """Return the document of ``planner search --json``."""
    first = found.best[0]
    asked = searched_inputs(
        found.inputs, seed=found.seed, time_limit_s=found.time_limit_s, best=len(found.best),
        tokens=found.tokens, prices=found.prices,
    )  # fmt: skip
    swept = found.swept
    return document("search", asked, {
        "layouts_considered": swept.space.considered,
        "layouts_runnable": swept.space.size,
        "layouts_feasible": len(swept.evaluated.rows),
        "layouts_rejected": swept.rejected,
        "wall_s": found.wall_s,
        "best": [
            {**finalist_document(one, first), "run": run}
            for one, run in zip(found.best, found.runs, strict=True)
        ],
        "pareto": _front_rows(found),
        "bill": {"lines": found.bill.lines, "currency": found.bill.currency,
                 "total": found.bill.total, "unpriced": found.bill.unpriced},
    })  # fmt: skip


def _front_rows(found: Search) -> list[dict[str, Any]]:
    """Return the layouts that nothing beats in step time and memory, timed in rank order."""
    capacity = found.inputs.fabric.accelerator.memory_bytes
    some = found.swept.evaluated
    return [
        {
            "layout": layout_document(found.swept.layout(entry)),
            "step_s": some.total_s[entry],
            "memory_bytes": some.worst_bytes[entry],
            "head_room_bytes": capacity - some.worst_bytes[entry],
            "tokens_per_s": _tokens(found) / some.total_s[entry],
            "power_w": found.runs[0].power_w or None,
            "cost_per_million_tokens": _cost(found, float(some.total_s[entry])),
        }
        for entry in found.front
    ]


def _tokens(found: Search) -> int:
    layout = found.best[0].layout
    return layout.global_batch * layout.seq


def _cost(found: Search, step_s: float) -> float | None:
    per_token = found.runs[0].cost_per_token
    return None if per_token is None else per_token * 1e6 * step_s / found.best[0].step_s


def search_csv(found: Search) -> str:
    """Return the Pareto front as CSV; what is not known stays empty."""
    degrees = ("tp", "cp", "ep", "etp", "dp", "pp", "vpp", "zero_stage", "micro_batch",
               "recompute", "sequence_parallel", "cp_kind", "ep_copies")  # fmt: skip
    figures = ("step_s", "memory_bytes", "head_room_bytes", "tokens_per_s", "power_w",
               "cost_per_million_tokens")  # fmt: skip
    lines = [",".join((*degrees, *figures))]
    for row in _front_rows(found):
        cells = [row["layout"][name] for name in degrees] + [row[name] for name in figures]
        lines.append(",".join("" if cell is None else str(cell) for cell in cells))
    return "\n".join(lines) + "\n"


def print_search(console: Console, found: Search, sha256: str) -> None:
    """Print the page: the verdict, the best, what tells them apart, what was thrown out."""
    inputs, first, swept = found.inputs, found.best[0], found.swept
    low, high = interval_s(first.step)
    ties = sum(is_tie(first, one) for one in found.best[1:])
    console.print(Text(
        f"Best of {swept.space.considered:,} layouts: {spelled_layout(first.layout)}; a step takes "
        f"{format_time(first.step_s)} (90 % of such estimates: {format_time(low)} to "
        f"{format_time(high)}).",
        style="bold green",
    ))  # fmt: skip
    console.print(Text(
        f"{inputs.model.name} on {inputs.gpus:,} {inputs.fabric.accelerator.name} of "
        f"{inputs.fabric.name}, {first.layout.global_batch:,} sequences of {first.layout.seq:,} "
        f"tokens a step. {len(swept.evaluated.rows):,} layouts can run and fit; "
        f"{found.wall_s:.1f} s."
    ))  # fmt: skip
    for line in _led_lines(found):
        console.print(Text(line))
    if first.twins:
        console.print(Text(
            f"{first.twins} more layouts have the same step and memory to the model; this one was "
            "considered first."
        ))  # fmt: skip
    if ties:
        word = "is a tie" if ties == 1 else "are ties"
        console.print(Text(
            f"{ties} of the other {len(found.best) - 1} {word} with it: closer than the model can "
            "tell apart at 90 %."
        ))  # fmt: skip
    console.print()
    console.print(Text("The best, seated", style="bold"))
    console.print(_best_table(found))
    for line in _notes(found):
        console.print(Text(line))
    console.print()
    console.print(Text("What tells them apart from the first", style="bold"))
    console.print(_apart_table(found))
    console.print()
    console.print(Text("Less memory for more time (Pareto, in rank order)", style="bold"))
    console.print(_front_table(found))
    console.print()
    console.print(Text("Out", style="bold"))
    console.print(_rejected_table(swept.rejected))
    console.print()
    print_run(console, found.bill, found.runs[0])
    console.print(Text(f"inputs sha256 {sha256}, seed {found.seed}", style="dim"))


def _led_lines(found: Search) -> list[str]:
    """Return why the first leads, where another has a shorter step."""
    first = found.best[0]
    rank, fastest = min(enumerate(found.best, 1), key=lambda one: one[1].step_s)
    gain = first.step_s / fastest.step_s - 1.0
    if gain <= 1e-9:
        return []
    text = (
        f"The first is what planner place takes. Number {rank} is {format_share(gain)} faster by "
        "its number, "
    )
    return [
        text + "a tie to the model; of ties that with whole weights and few stages leads."
        if is_tie(first, fastest)
        else text + "which the model tells apart: its options given to place seat it."
    ]


def simple_table(*columns: str, left: int = 1) -> Table:
    """Return an unframed table, its first *left* columns to the left."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1), show_edge=False)
    for position, column in enumerate(columns):
        table.add_column(column, justify="left" if position < left else "right",
                         no_wrap=position >= left, overflow="fold")  # fmt: skip
    return table


def short_layout(layout: Layout) -> str:
    """Return the degrees above 1, as ``tp8 cp2 dp64 zero3 mb2``."""
    names = ("tp", "cp", "ep", "etp", "dp", "pp", "vpp")
    degrees = [f"{n}{getattr(layout, n)}" for n in names if getattr(layout, n) > 1]
    again = {"full": ["rec"], "none": ["no-rec"]}.get(layout.recompute, [])
    return " ".join([*degrees, f"zero{layout.zero_stage}", f"mb{layout.micro_batch}", *again])


def _best_table(found: Search) -> Table:
    table = simple_table("  layout", "step", "MFU", "memory", "cut", "tie")
    first = found.best[0]
    for rank, one in enumerate(found.best, 1):
        table.add_row(
            f"{rank} {short_layout(one.layout)}", format_time(one.step_s),
            format_share(float(one.step.mfu)), format_bytes(float(one.memory.worst_stage_bytes)),
            format_bytes(one.seated_bytes) if one.seated_bytes else "none",
            "" if one is first else "yes" if is_tie(first, one) else "no",
        )  # fmt: skip
    return table


def _notes(found: Search) -> list[str]:
    odd = [str(i) for i, one in enumerate(found.best, 1) if one.seating == "rank-order"]
    if not odd:
        return ["Each sits where the least bytes leave its supernodes."]
    text = (
        f"{', '.join(odd)}: seated in rank order, which is faster there than the least cut; the "
        "others where the least bytes leave their supernodes."
    )
    return [text]


def _apart_table(found: Search) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(ratio=1)
    first = found.best[0]
    for rank, one in enumerate(found.best[1:], 2):
        parts = [
            f"{_SHORT.get(name, name)} {_word(there)} for {_word(here)}"
            for name, (here, there) in differences(first.layout, one.layout).items()
        ]
        slower = one.step_s / first.step_s - 1.0
        speed = (
            "as fast" if abs(slower) < 5e-6
            else f"{format_share(abs(slower))} {'slower' if slower > 0 else 'faster'}"
        )  # fmt: skip
        room = float(one.memory.worst_stage_bytes - first.memory.worst_stage_bytes)
        cut = one.seated_bytes - first.seated_bytes
        if room:
            parts.append(f"{format_bytes(abs(room))} {'more' if room > 0 else 'less'} memory")
        if cut:
            parts.append(f"{format_bytes(abs(cut))} {'more' if cut > 0 else 'less'} over the cut")
        like = f"; {one.twins} more are the same to the model" if one.twins else ""
        table.add_row(f"{rank}", f"{speed}; {', '.join(parts)}{like}")
    return table


def _word(value: Any) -> str:
    return (
        {True: "on", False: "off"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    )


def _front_table(found: Search) -> Table:
    table = simple_table("  layout", "step", "memory", "head-room", "")
    rows = _front_rows(found)
    least = rows[0]["step_s"]
    rows = [row for row in rows if row["step_s"] <= _SLOWEST_SHOWN_RATIO * least]
    most = max(rows[-1]["step_s"] / least - 1.0, 1e-9)
    step = max(1, -(-len(rows) // _PARETO_SHOWN))
    for row in rows[::step]:
        layout = {k: v for k, v in row["layout"].items() if k in Layout.__dataclass_fields__}
        table.add_row(
            f"  {short_layout(Layout(**layout))}", format_time(float(row["step_s"])),
            format_bytes(float(row["memory_bytes"])), format_bytes(float(row["head_room_bytes"])),
            "█" * round(1 + 9 * (row["step_s"] / least - 1.0) / most),
        )  # fmt: skip
    return table


def _rejected_table(rejected: Mapping[str, int]) -> Table:
    table = Table.grid(padding=(0, 2, 0, 0))
    table.add_column(justify="right", no_wrap=True)
    table.add_column(ratio=1)
    for reason, count in sorted(rejected.items(), key=lambda item: (-item[1], item[0])):
        table.add_row(f"  {count:,}", reason)
    return table


def print_run(console: Console, bill: Bill, run: Run) -> None:
    """Print what a run with the best layout takes."""
    console.print(Text("What it takes", style="bold"))
    lines = [f"{run.tokens_per_day / 1e9:,.4g} billion tokens a day, nothing lost to faults"]
    if run.days is not None and run.tokens is not None:
        lines.append(f"{run.tokens / 1e12:.4g} trillion tokens in {run.days:,.4g} days")
    if run.power_w:
        missing = f", without {', '.join(bill.without_power)}" if bill.without_power else ""
        lines.append(f"{format_power(run.power_w)}{missing}")
    if run.cost is not None:
        lines.append(f"{run.cost:,.0f} {bill.currency} for the run")
    elif run.cost_per_token is not None:
        lines.append(f"{run.cost_per_token * 1e6:,.4g} {bill.currency} a million tokens")
    if run.cost_per_token is None:
        lines.append(f"no money: {run.why_no_cost}")
    for line in lines:
        console.print(Text(f"  {line}"))
