"""``planner step`` as a document, a trace, and a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from rich.text import Text

from cli.chosen_words import chosen_words, given_words, taken_words
from cli.inputs_document import inputs_document
from cli.interval_words import basis_words, fit_lines
from cli.page_tables import labelled, memory_table, path_table, simple_table
from cli.part_used_words import (
    part_document,
    part_used,
    used_part_words,
)
from cli.planner_output import document
from cli.planner_plan import seated_step
from cli.report_text_network import sharing_lines
from cli.report_words import of_which_peak, part_words, passed_over_words
from cli.straddling_words import straddling_words
from cli.unfilled_words import part_of_one_words
from planner.collectives.links import links_of
from planner.procure.run import DAY_S
from planner.search.placed import placed_spreads
from planner.steptime.columns import LayoutColumns, columns_of
from planner.steptime.communication import pipeline_hop_s
from planner.steptime.critical_path import critical_path
from planner.steptime.document import interval_s, memory_document, step_document
from planner.steptime.memory import STAGES, Memory, step_memory
from planner.steptime.rates import rates_of
from planner.steptime.remedies import Remedy, remedies
from planner.steptime.sensitivity import Case, Sensitivity, sensitivities
from planner.steptime.step import Step
from planner.steptime.trace import traced
from planner.steptime.wires import wires_of
from planner.units import format_bytes, format_share, format_time

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from cli.step_inputs import Seated
    from planner.fabric import Fabric
    from planner.search.part_used import PartUsed

_REMEDIES_SHOWN = 3
_PREMISES_SHOWN = 4
_LONGEST_STEP_DAYS = 1.0
"""A run has a thousand steps at the least: steps of a day would take it years [days]."""
_ELASTICITY = "Elasticity: what 1 % more of it adds to the step [%]; 0 where that is hidden."
_SEATED = {"order": "seated in rank order", "optimal": "seated where the least crosses"}


@dataclass(frozen=True, slots=True, kw_only=True)
class StepBody:
    """A predicted step with what explains it.

    Args:
        seated: inputs and seats.
        case: what it was predicted from.
        step, memory: the prediction.
        sensitivities: how it answers to the machine.
        remedies: what would make it fit, where it does not.
        part: what using a part of each supernode would bring; None where it brings nothing.
        document: all of it for ``--json``.
    """

    seated: Seated
    case: Case
    step: Step
    memory: Memory
    sensitivities: tuple[Sensitivity, ...]
    remedies: tuple[Remedy, ...]
    part: PartUsed | None
    document: Mapping[str, Any]

    @property
    def columns(self) -> LayoutColumns:
        """The layout as columns."""
        return self.case.columns


def step_body(seated: Seated, *, seed: int) -> StepBody:
    """Return the predicted step of *seated* and its document."""
    inputs = seated.inputs
    fabric, layout, model = inputs.fabric, inputs.layout, inputs.model
    columns = columns_of(layout)
    nic = fabric.nic
    spreads = placed_spreads(layout, seated.rank_to_gpu, fabric)
    step = seated_step(inputs, seated.rank_to_gpu)
    case = Case(
        model=model,
        columns=columns,
        accelerator=fabric.accelerator,
        links=links_of(fabric),
        spreads=spreads,
        efficiency=inputs.efficiency,
        in_flight_binds=nic.in_flight * nic.transaction_bytes / nic.turnaround_s
        < nic.line_bytes_per_s,
        slowdown=step.slowdown,
    )
    memory = step_memory(model, columns, fabric.accelerator.memory_bytes)
    answers = sensitivities(case)
    helps: tuple[Remedy, ...] = ()
    if not memory.fits:
        helps = remedies(
            model, layout, accelerator=fabric.accelerator, links=case.links,
            domains=_domains(fabric), efficiency=inputs.efficiency,
        )  # fmt: skip
    body = {
        "placement": {"source": seated.source},
        "step": step_document(step),
        "memory": memory_document(memory),
        "sensitivity": [asdict(one) for one in answers],
        "remedies": [
            {
                "change": one.change,
                "step_s": one.step_s,
                "extra_s": one.extra_s,
                "worst_stage_bytes": one.worst_stage_bytes,
            }
            for one in helps
        ],
    }
    part = part_used(seated.asked, inputs, float(step.total_s))
    body |= part_document(part)
    told = inputs_document(inputs, seed=seed, placement=seated.source)
    return StepBody(
        seated=seated, case=case, step=step, memory=memory, sensitivities=answers,
        remedies=helps, part=part, document=document("step", told, body),
    )  # fmt: skip


def _domains(fabric: Fabric) -> list[float]:
    names = [tier.name for tier in fabric.tiers]
    inner = names[names.index("supernode") : -1]
    return [float(max(fabric.capacities(name))) for name in inner]


def trace_text(body: StepBody) -> str:
    """Return the step as JSON of the Trace Event Format."""
    case = body.case
    rates = rates_of(case.accelerator, case.columns, case.efficiency)
    wires = wires_of(case.spreads, case.links, rates.inner_share, rates.outer_share, case.slowdown)
    hop = float(pipeline_hop_s(case.model, case.columns, wires))
    told = traced(body.step, case.columns, hop).document
    return json.dumps(told, sort_keys=True, separators=(",", ":")) + "\n"


def print_step(console: Console, body: StepBody, layout: str) -> None:
    """Print the page: the verdict, the critical path, memory, what would help, what is assumed."""
    step, inputs = body.step, body.seated.inputs
    if not body.memory.fits:
        console.print(Text(_overfull(body), style="bold red"))
    console.print(Text(_verdict(body), style="bold"))
    console.print(Text(basis_words(step), style="dim"))
    for line in _warnings(body):
        console.print(Text(line, style="yellow"))
    source = body.seated.source
    console.print(
        Text(
            f"{inputs.model.name} on {inputs.gpus:,} {inputs.fabric.accelerator.name} of "
            f"{inputs.fabric.name}, {layout}; {_SEATED.get(source, f'seats of {source}')}"
        )
    )
    console.print(labelled(_choice_lines(body)))
    _section(console, "Critical path")
    console.print(path_table(critical_path(step), console.width))
    console.print(Text(f"Without overlap a step would take {format_time(float(step.serial_s))}."))
    _section(console, "It holds while")
    console.print(labelled(_premises(body)))
    _section(console, "Links")
    console.print(labelled(sharing_lines(step)))
    _section(console, f"Memory of the fullest GPU ({STAGES[int(body.memory.stage)]} stage)")
    console.print(memory_table(body.memory, console.width))
    for remedy in body.remedies[:_REMEDIES_SHOWN]:
        console.print(
            Text(
                f"fits with {remedy.change}: {format_bytes(remedy.worst_stage_bytes)}, step "
                f"{format_time(remedy.step_s)} ({'+' if remedy.extra_s >= 0 else '-'}"
                f"{format_time(abs(remedy.extra_s))})"
            )
        )
    if not body.memory.fits and not body.remedies:
        console.print(Text("no single change makes it fit"))
    _section(console, "What would change it")
    console.print(_sensitivity_table(body.sensitivities))
    console.print(Text(_ELASTICITY))
    _section(console, "Assumed")
    console.print(labelled(sorted({**inputs.assumed, **step.assumed}.items())))
    console.print()
    console.print(Text(f"inputs sha256 {body.document['inputs']['sha256']}", style="dim"))


def _section(console: Console, title: str) -> None:
    console.print()
    console.print(Text(title, style="bold"))


def _verdict(body: StepBody) -> str:
    step = body.step
    low, high = interval_s(step)
    were = "" if body.memory.fits else "Were there room: "
    return (
        f"{were}{format_time(float(step.total_s))} a step ({format_time(low)} to "
        f"{format_time(high)} in 9 cases of 10), MFU {format_share(float(step.mfu))}"
        f"{of_which_peak(body.seated.inputs.layout)}, {float(step.tokens_per_s):,.0f} tokens/s"
    )


def _warnings(body: StepBody) -> list[str]:
    """Return what a reader must know before the numbers; often nothing."""
    inputs, step_s = body.seated.inputs, float(body.step.total_s)
    found = (
        _too_long(body),
        *fit_lines(inputs),
        passed_over_words(inputs.choice),
        used_part_words(body.part, step_s, inputs.cluster),
    )
    return [text for text in found if text]


def _too_long(body: StepBody) -> str:
    """Return that nobody trains so: sequences beyond the model's, or a step of days."""
    inputs, days = body.seated.inputs, float(body.step.total_s) / DAY_S
    most, seq = inputs.model.max_positions, inputs.layout.seq
    told = []
    if most and seq > most:
        told.append(f"Sequences of {seq:,} tokens: {inputs.model.name} is made for {most:,}.")
    if days > _LONGEST_STEP_DAYS:
        told.append(f"A step of {days:,.3g} days: a run has thousands of steps.")
    return " ".join(told)


def _choice_lines(body: StepBody) -> list[tuple[str, str]]:
    """Return how the layout was chosen, what of it nobody gave, and which groups straddle."""
    seated = body.seated
    inputs, own = seated.inputs, seated.inputs.own_fits
    timed = ""
    if own is not None:
        timed = f"; timed with {own.name}: by what ships another may be the fastest"
    chosen, given = chosen_words(inputs, body.memory), given_words(inputs)
    from_here = seated.source in _SEATED
    lines = {
        "layout": given if from_here else "",
        "taken": taken_words(inputs),
        "not full": part_of_one_words(inputs.fabric),
        "chosen": f"{chosen}{timed}" if chosen and from_here else "",
        "straddling": straddling_words(inputs.layout, seated.rank_to_gpu, inputs.fabric),
    }
    return [(name, text) for name, text in lines.items() if text]


def _overfull(body: StepBody) -> str:
    memory = body.memory
    return (
        f"It does not fit: {format_bytes(float(memory.worst_stage_bytes))} and a margin of "
        f"{format_bytes(memory.margin_bytes)} on GPUs of {format_bytes(memory.capacity_bytes)}, "
        f"{format_bytes(float(memory.missing_bytes))} too much."
    )


def _premises(body: StepBody) -> list[tuple[str, str]]:
    """Return on what the largest parts rest: each premise once, beside the largest part of it."""
    entries = body.document["step"]["critical_path"][:_PREMISES_SHOWN]
    parts: dict[str, str] = {}
    for entry in entries:
        parts.setdefault(entry["premise"], part_words(entry["kind"], entry["name"]))
    return [(part, premise) for premise, part in parts.items()]


_SPELLED = {"nic_bandwidth": "NIC bandwidth", "nic_latency": "NIC latency",
            "scale_up_bandwidth": "scale-up bandwidth",
            "scale_up_latency": "scale-up latency"}  # fmt: skip


def _sensitivity_table(answers: tuple[Sensitivity, ...]) -> Table:
    table = simple_table("  property", "elasticity", "step if doubled", "twice as good saves")
    for one in answers:
        table.add_row(
            f"  {_SPELLED.get(one.name, one.name.replace('_', ' '))}",
            f"{one.elasticity_ratio:+.3f}",
            format_time(one.doubled_s),
            format_time(one.gain_s) if one.gain_s else "nothing",
        )
    return table
