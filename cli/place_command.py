"""``planner place``: seats a layout's groups and says what crosses, how well, and what it takes."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from math import inf
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from cli.planner_options import (
    DEFAULT_TIME_LIMIT_S,
    Cluster,
    Cp,
    Dp,
    DpShard,
    Ep,
    Etp,
    GlobalBatch,
    GpusOrFiled,
    Json,
    LayoutFile,
    MicroBatch,
    Model,
    Order,
    Out,
    OwnEfficiency,
    Plot,
    Pp,
    Precision,
    Recompute,
    RunLimit,
    Seed,
    Seq,
    Supernode,
    Tp,
    Vpp,
    Zero,
    command_app,
)

if TYPE_CHECKING:
    from cli.place_extras import Extras
    from cli.planner_plan import Plan

app = command_app()

TierName = Annotated[
    str, typer.Option("--tier", metavar="TIER", help="The tier whose cut is made least.")
]
Objective = Annotated[
    Literal["total", "bottleneck", "time"],
    typer.Option(
        "--objective",
        help="Made least: the bytes over all that tier's borders, the time of the busiest border, "
        "or the step, by the bytes it does not hide.",
    ),
]
Reductions = Annotated[
    Literal["hierarchical", "flat", "flat-in-rank-order"],
    typer.Option(
        "--reductions",
        help="How reductions and gathers are laid when the cut is counted: inside each domain "
        "first, or as flat rings.",
    ),
]
Tiers = Annotated[
    Literal["lexicographic", "weighted"],
    typer.Option(
        "--tiers",
        help="The other tiers: each as low as those before it allow, or the least sum of "
        "cut / rate over all.",
    ),
]
WithGroups = Annotated[
    bool, typer.Option("--with-groups", help="List the ranks of every group in the document.")
]
Rules = Annotated[
    list[str] | None,
    typer.Option(
        "--rule",
        metavar="RULE",
        help="A hard rule, as often as needed: 'ep within supernode', 'pp at most 2 supernodes', "
        "'stage 0 on sn00,sn01'. Its price is shown.",
    ),
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Say why each group crosses, and what else would.")
]
Alternatives = Annotated[
    int,
    typer.Option(
        "--alternatives", min=0, max=20, metavar="K",
        help="Also the K best of the other placements tried that differ in what crosses.",
    ),
]  # fmt: skip
Free = Annotated[
    Path | None,
    typer.Option(
        "--free",
        metavar="FILE",
        help="Use only the GPUs of a free list: host lists such as node[001-128], node001:0-3, "
        "node001*4. --gpus is then the job's with --cluster, else the whole cluster's.",
    ),
]
IgnoreMemory = Annotated[
    bool, typer.Option("--ignore-memory", help="Seat a layout that does not fit in memory, too.")
]
Taken = Annotated[
    Literal["usual", "fastest"],
    typer.Option(
        "--take",
        help="The layout where it is left open: of the usual ways to run, unless another is surely "
        "faster; or the shortest step of all.",
    ),
]


@app.command("place")
def place(
    cluster: Cluster = None,
    supernode: Supernode = None,
    gpus: GpusOrFiled = None,
    model: Model = None,
    layout: LayoutFile = None,
    tp: Tp = None,
    cp: Cp = None,
    ep: Ep = None,
    etp: Etp = None,
    dp: Dp = None,
    pp: Pp = None,
    vpp: Vpp = None,
    dp_shard: DpShard = None,
    zero: Zero = None,
    micro_batch: MicroBatch = None,
    global_batch: GlobalBatch = None,
    seq: Seq = None,
    recompute: Recompute = None,
    precision: Precision = None,
    efficiency: OwnEfficiency = None,
    order: Order = "tp-cp-ep-dp-pp",
    tier: TierName = "supernode",
    objective: Objective = "total",
    tiers: Tiers = "lexicographic",
    reductions: Reductions = "hierarchical",
    rule: Rules = None,
    explain: Explain = False,
    alternatives: Alternatives = 0,
    free: Free = None,
    seed: Seed = 0,
    time_limit: RunLimit = None,
    ignore_memory: IgnoreMemory = False,
    take: Taken = "usual",
    with_groups: WithGroups = False,
    as_json: Json = False,
    out: Out = None,
    plot: Plot = None,
) -> None:
    """Seat a layout's groups so that the least traffic leaves supernodes, with a proof.

    What is left out is chosen: the model for the number of GPUs, the layout with the shortest
    step that fits. The answer says so.
    """
    starts_s = monotonic()
    from cli.part_used_words import part_of_plan
    from cli.place_extras import extras
    from cli.planner_inputs import DEFAULT_GPUS, DEFAULT_SUPERNODE, Asked, read_inputs
    from cli.planner_output import console, emit, json_text, note, write_file
    from cli.planner_plan import make_plan
    from cli.progress_line import ProgressLine, SeatingLine
    from cli.report_json import place_document
    from topologies.own_efficiency import read_own_fits

    if plot is not None:
        from cli.report_pictures_file import refuse_other_formats

        refuse_other_formats(plot)
    given = {
        "tp": tp, "cp": cp, "ep": ep, "etp": etp, "dp": dp, "pp": pp, "vpp": vpp,
        "zero_stage": zero, "micro_batch": micro_batch, "global_batch": global_batch, "seq": seq,
        "recompute": recompute, "precision": precision, "dp_shard": dp_shard,
    }  # fmt: skip
    choosing = SeatingLine()
    asked = Asked(
        cluster=cluster, supernode=supernode, gpus=gpus, model=model, layout_file=layout,
        layout=given, order=order, ignore_memory=ignore_memory, free=free,
        own_fits=read_own_fits(efficiency), take=take,
    )  # fmt: skip
    inputs = read_inputs(asked, choosing)
    choosing.close()
    limit_s = time_limit or DEFAULT_TIME_LIMIT_S
    ends_s = inf if time_limit is None else starts_s + time_limit
    told = ProgressLine(limit_s)
    try:
        plan = make_plan(
            inputs, tier=tier, objective=objective, tiers=tiers, rules=rule or (),
            reductions=reductions, seed=seed, time_limit_s=limit_s, ends_s=ends_s, progress=told,
        )  # fmt: skip
    finally:
        told.close()
    if plan.placement.interrupted:
        explain, alternatives = False, 0
    more = extras(
        plan, explained=explain, alternatives=alternatives, time_limit_s=limit_s, ends_s=ends_s,
        free_file=str(free or ""), cluster_gpus=(gpus or DEFAULT_GPUS) if cluster is None else None,
        cluster_supernode=supernode
        or (min(DEFAULT_SUPERNODE, gpus or DEFAULT_GPUS) if cluster is None else None),
        part=None if monotonic() > ends_s else part_of_plan(asked, plan),
    )  # fmt: skip
    document = place_document(plan, time_limit_s=limit_s, with_groups=with_groups, more=more)
    if out is not None or as_json:
        from cli.plan_wiring import wiring_document

        # With a free list the cluster stays whole, and where dead parts are of its other end.
        of_job = None if free or inputs.fabric.job_gpus != gpus else gpus
        document["wiring"] = wiring_document(inputs.fabric, cluster, supernode, of_job)
    if out is not None:
        write_file(out, json_text(document))
        note(f"wrote {out}")
    if plot is not None:
        from cli.report_pictures_file import write_plan_picture

        write_plan_picture(document, plot)
        note(f"wrote {plot}")
    if as_json:
        emit(json_text(document))
    else:
        from cli.report_text import print_page

        print_page(console(), plan, document["inputs"]["sha256"], more)
    _tell_of_the_end(plan, more)


def _tell_of_the_end(plan: Plan, more: Extras) -> None:
    """Say whether the run was cut short.

    Raises:
        Exit: by the user.
    """
    from cli.planner_errors import INTERRUPTED
    from cli.planner_output import note

    besides = "the placement stands; what was asked for besides was not finished"
    if plan.placement.interrupted:
        note("interrupted: this is the best placement so far, with its gap")
    elif more.cut_short:
        note(f"{'interrupted' if more.interrupted else 'the time was up'}: {besides}")
    if plan.placement.interrupted or more.interrupted:
        raise typer.Exit(INTERRUPTED)
