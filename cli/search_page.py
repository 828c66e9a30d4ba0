"""The page of ``planner search``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text

from cli.page_tables import simple_table
from cli.pareto_plot import Point, scatter
from cli.part_used_words import used_part_words
from cli.report_pictures_plane import Axis
from cli.report_words import (
    LONG_DAYS,
    boxes_words,
    not_proved_words,
    passed_over_words,
    power_words,
    shorter_run_words,
)
from cli.search_report import Search, front_rows, short_layout, told_layout, used_bytes
from cli.unfilled_words import part_of_one_words
from planner.procure.bill import Bill
from planner.procure.run import Run
from planner.search.defaults import AS_GOOD_SHARE
from planner.search.finalist import differences, is_tie
from planner.search.given import spelled_layout
from planner.steptime.document import interval_s
from planner.units import format_bytes, format_power, format_share, format_time
from planner.words import counted

if TYPE_CHECKING:
    from rich.console import Console

_PARETO_SHOWN = 12
_SLOWEST_SHOWN_RATIO = 3.0
_SHORT = {
    "zero_stage": "ZeRO", "micro_batch": "micro-batch", "recompute": "recomputation",
    "sequence_parallel": "sequence parallel", "cp_kind": "CP by", "ep_copies": "EP copy per",
}  # fmt: skip


def print_search(console: Console, found: Search, sha256: str) -> None:
    """Print the page: the verdict, the best, what tells them apart, what was thrown out."""
    inputs, first, swept = found.inputs, found.best[0], found.swept
    low, high = interval_s(first.step)
    ties = sum(is_tie(first, one) for one in found.best[1:])
    console.print(Text(
        f"Best of {counted(swept.space.considered, 'layout')}: {spelled_layout(first.layout)}; a "
        f"step takes {format_time(first.step_s)} (90 % of such estimates: {format_time(low)} to "
        f"{format_time(high)}).",
        style="bold green",
    ))  # fmt: skip
    console.print(Text(
        f"{inputs.model.name} on {inputs.gpus:,} {inputs.fabric.accelerator.name} of "
        f"{inputs.fabric.name}, {first.layout.global_batch:,} sequences of {first.layout.seq:,} "
        f"tokens a step. {counted(len(swept.evaluated.rows), 'layout')} can run and fit; "
        f"{found.wall_s:.1f} s.{_usual_words(found)}"
    ))  # fmt: skip
    for line in (*_led_lines(found), part_of_one_words(inputs.fabric),
                 used_part_words(found.part, first.step_s, inputs.cluster)):  # fmt: skip
        if line:
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
    console.print(Text("The best, seated: every rank in its seat, links shared", style="bold"))
    console.print(_best_table(found))
    for line in _notes(found):
        console.print(Text(line))
    console.print()
    console.print(Text("What tells them apart from the first", style="bold"))
    console.print(_apart_table(found))
    console.print()
    console.print(Text("Less memory for more time (Pareto, estimated before seating)",
                       style="bold"))  # fmt: skip
    console.print(_front_table(found))
    console.print(Text(
        "These steps are estimates in closed form, before ranks get seats and links are shared: "
        f"the first of the best is {format_time(first.estimated_s)} by them and "
        f"{format_time(first.step_s)} as seated."
    ))  # fmt: skip
    for line in plotted(found):
        console.print(Text(line))
    console.print()
    console.print(Text("Out", style="bold"))
    console.print(_rejected_table(swept.rejected))
    console.print()
    print_run(console, found.bill, found.runs[0])
    console.print(Text(f"inputs sha256 {sha256}, seed {found.seed}", style="dim"))


def _usual_words(found: Search) -> str:
    """Return how many of the layouts planner place looks at first, where it is not all."""
    choice, every = found.inputs.choice, found.swept.space.considered
    if choice.ways == "all" or choice.considered >= every:
        return ""
    return (
        f" The usual ways to run are {choice.considered:,} of the {every:,}: planner place takes "
        "one of these, unless another is surely faster."
    )


def _led_lines(found: Search) -> list[str]:
    """Return why the first leads, where another has a shorter step."""
    first = found.best[0]
    rank, fastest = min(enumerate(found.best, 1), key=lambda one: one[1].step_s)
    gain = 1.0 - fastest.step_s / first.step_s
    if gain <= 1e-9:
        return [passed_over_words(found.inputs.choice)]
    text = (
        f"The first is what planner place takes. Number {rank} is {format_share(gain)} faster by "
        "its number, "
    )
    if not is_tie(first, fastest):
        return [text + "which the model tells apart: planner place --take fastest takes it."]
    if gain <= AS_GOOD_SHARE:
        return [
            text + "a tie to the model; of those within 2 % of the fastest the one with the fewest "
            "stages leads."
        ]
    return [
        text + "a tie to the model, and not run in one of the usual ways, which go first: planner "
        "place --take fastest takes it."
    ]


def _best_table(found: Search) -> Table:
    table = simple_table("  layout", "step", "MFU", "memory", "cut", "tie")
    first = found.best[0]
    for rank, one in enumerate(found.best, 1):
        table.add_row(
            f"{rank} {short_layout(one.layout)}", format_time(one.step_s),
            format_share(float(one.step.mfu)), format_bytes(used_bytes(one.memory)),
            format_bytes(one.seated_bytes) if one.seated_bytes else "none",
            "" if one is first else "yes" if is_tie(first, one) else "no",
        )  # fmt: skip
    return table


def _notes(found: Search) -> list[str]:
    """Return in which seats the layouts are, and whose cut is not proved the least."""
    odd = [str(i) for i, one in enumerate(found.best, 1) if one.seating == "rank-order"]
    lines = []
    if odd:
        lines.append(
            f"{', '.join(odd)}: seated in rank order, which is faster there than the least cut."
        )
    if len(odd) == len(found.best):
        return lines
    the = "The others sit" if odd else "Each sits"
    sat = [
        (str(i), one.placement)
        for i, one in enumerate(found.best, 1) if one.seating != "rank-order"
    ]  # fmt: skip
    said = not_proved_words(sat, found.time_limit_s)
    if not said:
        return [*lines, f"{the} where the least bytes leave their supernodes, which is proved."]
    return [*lines, f"{the} in the least cut that was found. {said}"]


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
    table = simple_table("  layout", "estimate", "memory", "head-room", "")
    rows = front_rows(found)
    least = rows[0]["step_s"]
    rows = [row for row in rows if row["step_s"] <= _SLOWEST_SHOWN_RATIO * least]
    most = max(rows[-1]["step_s"] / least - 1.0, 1e-9)
    step = max(1, -(-len(rows) // _PARETO_SHOWN))
    for row in rows[::step]:
        table.add_row(
            f"  {short_layout(told_layout(row['layout']))}", format_time(float(row["step_s"])),
            format_bytes(float(row["memory_bytes"])), format_bytes(float(row["head_room_bytes"])),
            "█" * round(1 + 5 * (row["step_s"] / least - 1.0) / most),
        )  # fmt: skip
    return table


def plotted(found: Search) -> list[str]:
    """Return the front as a plot, the finalists on it by their number."""
    rows = front_rows(found)
    least = rows[0]["step_s"]
    points = [
        Point(x=float(row["step_s"]), y=float(row["head_room_bytes"]), mark="*")
        for row in rows
        if row["step_s"] <= _SLOWEST_SHOWN_RATIO * least
    ]
    capacity = found.inputs.fabric.accelerator.memory_bytes
    points += [
        Point(x=one.step_s, y=capacity - used_bytes(one.memory), mark=str(rank))
        for rank, one in reversed(list(enumerate(found.best[:9], 1)))
    ]
    return scatter(
        points, Axis(name="step (* estimated, 1 2 3 as seated)", text=format_time),
        Axis(name="head-room", text=lambda v: format_bytes(v) if v else "none"),
    )  # fmt: skip


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
        hint = f"; {shorter_run_words(run.tokens)}" if run.days > LONG_DAYS else ""
        lines.append(f"{run.tokens / 1e12:.4g} trillion tokens in {run.days:,.4g} days{hint}")
    if run.power_w:
        lacking = ", ".join((*bill.without_power, *bill.boxes_without_power))
        scope = power_words(run.power_w / bill.known_power_w)
        lines.append(
            f"{format_power(run.power_w)}, {scope}" + (f", without {lacking}" if lacking else "")
        )
    if run.cost is not None:
        lines.append(f"{run.cost:,.0f} {bill.currency} for the run")
    elif run.cost_per_token is not None:
        lines.append(f"{run.cost_per_token * 1e6:,.4g} {bill.currency} a million tokens")
    if run.cost_per_token is None:
        lines.append(f"no money: {run.why_no_cost}")
    if bill.total is not None:
        lines += boxes_words(bill.boxes_without_price)
    for line in lines:
        console.print(Text(f"  {line}"))
