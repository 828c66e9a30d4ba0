"""The answer of ``planner search``: as a document, as CSV and as a page."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from cli.inputs_document import question_document
from cli.part_used_words import part_document, part_used
from cli.planner_inputs import Inputs, job_of
from cli.planner_output import document
from planner.layout import Layout, layout_values
from planner.procure.bill import Bill, bill_of_materials
from planner.procure.run import Run, run_of
from planner.search.chosen import Chooser
from planner.search.finalist import Finalist, differences, finalists, is_tie
from planner.search.pareto import pareto_front
from planner.search.search import Swept, machine_of, sweep
from planner.search.seated_rows import Told, untold
from planner.search.whole import Whole
from planner.steptime.document import memory_document, step_document

if TYPE_CHECKING:
    from cli.planner_inputs import Asked
    from planner.procure.prices import PriceList
    from planner.search.part_used import PartUsed
    from planner.search.rules import Rule
    from planner.steptime.memory import Memory

FINALIST_LIMIT_S = 1.0
_UNSEATED = "before seating"


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
        seed, time_limit_s, prices, tokens, rules: as asked.
        part: what using a part of each supernode would bring; None where it brings nothing.
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
    rules: tuple[str, ...] = ()
    part: PartUsed | None = None


def make_search(
    inputs: Inputs,
    *,
    best: int,
    seed: int = 0,
    time_limit_s: float | None = None,
    prices: PriceList | None = None,
    tokens: float | None = None,
    rules: Sequence[Rule] = (),
    told: Told = untold,
) -> Search:
    """Return the search of *inputs*; ``time_limit_s`` is for seating each finalist [s]."""
    started = time.perf_counter()
    limit_s = FINALIST_LIMIT_S if time_limit_s is None else time_limit_s
    machine = machine_of(inputs.fabric, inputs.gpus, inputs.efficiency)
    swept = sweep(inputs.model, machine, inputs.gpus, inputs.fixed, rules=rules)
    whole = Whole.of(inputs.model, swept.space, inputs.fixed, machine)
    chooser = Chooser(job_of(inputs, tuple(rules)), inputs.steps, whole=whole, told=told)
    found = finalists(
        chooser, swept, inputs.layout, most=best, seed=seed, time_limit_s=limit_s
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
        prices=prices, tokens=tokens, rules=tuple(rule.text for rule in rules),
    )  # fmt: skip


def with_part_used(found: Search, asked: Asked) -> Search:
    """Return *found* with what using a part of each supernode would bring."""
    return replace(found, part=part_used(asked, found.inputs, found.best[0].step_s))


def used_bytes(memory: Memory) -> float:
    """Return what must be free on a GPU: the fullest stage and the margin, as place shows it."""
    return float(memory.worst_stage_bytes) + memory.margin_bytes


def layout_document(layout: Layout) -> dict[str, Any]:
    """Return a layout's fields, and what follows from them."""
    return {
        **layout_values(layout), "zero": layout.zero_stage, "edp": layout.edp,
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
        "timed": "seated",
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
    asked = question_document(
        found.inputs, seed=found.seed, time_limit_s=found.time_limit_s, best=len(found.best),
        tokens=found.tokens, prices=found.prices, where=found.rules,
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
        "pareto": front_rows(found),
        "bill": {"lines": found.bill.lines, "currency": found.bill.currency,
                 "total": found.bill.total, "unpriced": found.bill.unpriced},
        **part_document(found.part),
    })  # fmt: skip


def front_rows(found: Search) -> list[dict[str, Any]]:
    """Return the layouts that nothing beats in step time and memory, timed before seating.

    Memory has the margin in it.
    """
    capacity = found.inputs.fabric.accelerator.memory_bytes
    margin = found.best[0].memory.margin_bytes
    some = found.swept.evaluated
    return [
        {
            "layout": layout_document(found.swept.layout(entry)),
            "step_s": some.total_s[entry],
            "timed": _UNSEATED,
            "memory_bytes": some.worst_bytes[entry] + margin,
            "head_room_bytes": capacity - margin - some.worst_bytes[entry],
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
    """Return the Pareto front as CSV; what is not known stays empty.

    Its steps are estimated before seating, as the column ``timed`` says. ``dp_shard`` is the ranks
    of data parallelism that share one copy of what ZeRO shards, all of ``dp`` where none is fewer.
    """
    degrees = ("tp", "cp", "ep", "etp", "dp", "pp", "vpp", "zero_stage", "micro_batch",
               "recompute", "sequence_parallel", "cp_kind", "ep_copies")  # fmt: skip
    figures = ("step_s", "memory_bytes", "head_room_bytes", "tokens_per_s", "power_w",
               "cost_per_million_tokens")  # fmt: skip
    lines = [",".join((*degrees, *figures, "timed", "dp_shard"))]
    for row in front_rows(found):
        cells = [row["layout"][name] for name in degrees] + [row[name] for name in figures]
        text = ["" if cell is None else str(cell) for cell in cells]
        shard = str(shard_ranks(row["layout"]))
        lines.append(",".join([*text, "before seating", shard]))
    return "\n".join(lines) + "\n"


def told_layout(told: Mapping[str, Any]) -> Layout:
    """Return the layout that a document of one tells of, without what follows from it.

    >>> told_layout(layout_document(Layout(tp=8, dp=4, global_batch=4))).gpus
    32
    """
    return Layout(**{name: told[name] for name in Layout.__dataclass_fields__ if name in told})


def shard_ranks(layout: Mapping[str, Any]) -> int:
    """Return the ranks of dp that share one copy, of the document of a layout [1].

    >>> shard_ranks({"dp": 8}), shard_ranks({"dp": 8, "dp_shard": 2})
    (8, 2)
    """
    return int(layout.get("dp_shard", layout["dp"]))


def short_layout(layout: Layout) -> str:
    """Return the degrees above 1, as ``tp8 cp2 dp64 zero3 mb2``."""
    names = ("tp", "cp", "ep", "etp", "dp", "pp", "vpp")
    degrees = [f"{n}{getattr(layout, n)}" for n in names if getattr(layout, n) > 1]
    if layout.dp_shard:
        degrees.append(f"shard{layout.dp_shard}")
    again = {"full": ["rec"], "none": ["no-rec"]}.get(layout.recompute, [])
    return " ".join([*degrees, f"zero{layout.zero_stage}", f"mb{layout.micro_batch}", *again])
