"""``planner step``: the step time of a layout on a placement, and what its critical path is."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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
    Seed,
    Seq,
    Supernode,
    TimeLimit,
    Tp,
    Vpp,
    Zero,
    command_app,
    writable,
)

app = command_app()

Seats = Annotated[
    str,
    typer.Option(
        "--placement",
        metavar="order|optimal|FILE",
        help="Where the ranks sit: on consecutive GPUs, at the least cut, or as a plan says.",
    ),
]
Trace = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        callback=writable,
        metavar="FILE",
        show_default=False,
        help="Write the step as a trace for Perfetto (ui.perfetto.dev): two rows a stage, its "
        "passes and the traffic that shows.",
    ),
]


@app.command("step")
def step(
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
    placement: Seats = "order",
    trace: Trace = None,
    seed: Seed = 0,
    time_limit: TimeLimit = None,
    as_json: Json = False,
    out: Out = None,
    plot: Plot = None,
) -> None:
    """Predict a layout's step: its critical path, what hides, what would help, whether it fits.

    A layout that does not fit in memory is timed too, with the cheapest change that makes it fit.
    """
    from cli.planner_inputs import Asked
    from cli.planner_output import console, emit, json_text, note, write_file
    from cli.step_inputs import read_seated
    from cli.step_report import print_step, step_body, trace_text
    from planner.search.given import spelled_layout
    from topologies.own_efficiency import read_own_fits

    if plot is not None:
        from cli.report_pictures_file import refuse_other_formats

        refuse_other_formats(plot)
    given = {
        "tp": tp, "cp": cp, "ep": ep, "etp": etp, "dp": dp, "pp": pp, "vpp": vpp,
        "zero_stage": zero, "micro_batch": micro_batch, "global_batch": global_batch, "seq": seq,
        "recompute": recompute, "precision": precision, "dp_shard": dp_shard,
    }  # fmt: skip
    seated = read_seated(
        Asked(
            cluster=cluster, supernode=supernode, gpus=gpus, model=model, layout_file=layout,
            layout=given, order=order, own_fits=read_own_fits(efficiency),
        ),
        placement,
        seed=seed,
        time_limit_s=time_limit or DEFAULT_TIME_LIMIT_S,
    )  # fmt: skip
    body = step_body(seated, seed=seed)
    if trace is not None:
        write_file(trace, trace_text(body))
        note(f"wrote {trace}; open it at ui.perfetto.dev")
    if out is not None:
        write_file(out, json_text(body.document))
        note(f"wrote {out}")
    if plot is not None:
        from cli.plan_stages import stages_document
        from cli.report_pictures_file import write_sheet
        from cli.report_pictures_plots import step_sheet

        stages = stages_document(seated.inputs.layout, body.step)
        write_sheet(step_sheet(body.document, stages), plot)
        note(f"wrote {plot}")
    if as_json:
        emit(json_text(body.document))
        return
    print_step(console(), body, spelled_layout(seated.inputs.layout))
