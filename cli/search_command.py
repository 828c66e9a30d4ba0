"""``planner search``: the best layouts of a model on a cluster, and what tells them apart."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.planner_options import (
    Cluster,
    Cp,
    Dp,
    DpShard,
    Ep,
    Etp,
    GlobalBatch,
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
    Prices,
    Recompute,
    Seed,
    Seq,
    Supernode,
    TimeLimit,
    Tokens,
    Tp,
    Vpp,
    Where,
    Zero,
    command_app,
    whole,
    writable,
)

if TYPE_CHECKING:
    from cli.search_sweep import Way
    from topologies.own_efficiency import OwnFits

app = command_app()

SomeGpus = Annotated[
    int | None,
    whole("--gpus", show_default="1024, or the cluster's own", help="GPUs of the cluster."),
]
Best = Annotated[int, whole("--best", maximum=50, show_default=True, help="Layouts to show.")]
Csv = Annotated[
    Path | None,
    typer.Option(
        "--csv",
        callback=writable,
        metavar="FILE",
        show_default=False,
        help="Write the Pareto front here, as CSV; its steps are estimated before seating.",
    ),
]
SweepFile = Annotated[
    Path | None,
    typer.Option(
        "--sweep", metavar="FILE", show_default=False,
        help="Lists of models, clusters, supernodes, gpus (YAML): searches every combination.",
    ),
]  # fmt: skip
Into = Annotated[
    Path | None,
    typer.Option(
        "--into", metavar="FILE", show_default=False,
        help="SQLite file that a sweep's results go to as they come.",
    ),
]  # fmt: skip
Resume = Annotated[bool, typer.Option("--resume", help="Go on with the results in --into.")]
Workers = Annotated[
    int | None,
    whole("--workers", maximum=1024, help="Sweep in so many processes here (needs Dask)."),
]
Scheduler = Annotated[
    str | None,
    typer.Option(
        "--scheduler", metavar="ADDRESS", show_default=False,
        help="Sweep on the workers of a running Dask scheduler, e.g. tcp://10.0.0.1:8786.",
    ),
]  # fmt: skip
Parquet = Annotated[
    Path | None,
    typer.Option(
        "--parquet", callback=writable, metavar="FILE", show_default=False,
        help="Also write a sweep's results as a flat table (needs PyArrow).",
    ),
]  # fmt: skip


@app.command("search")
def search(
    cluster: Cluster = None,
    supernode: Supernode = None,
    gpus: SomeGpus = None,
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
    where: Where = None,
    best: Best = 5,
    prices: Prices = None,
    tokens: Tokens = None,
    seed: Seed = 0,
    time_limit: TimeLimit = None,
    csv: Csv = None,
    sweep: SweepFile = None,
    into: Into = None,
    resume: Resume = False,
    workers: Workers = None,
    scheduler: Scheduler = None,
    parquet: Parquet = None,
    as_json: Json = False,
    out: Out = None,
    plot: Plot = None,
) -> None:
    """Find the layouts with the shortest step among all that the model and the GPUs allow.

    What is given stays as given; the rest is tried. The best are seated so that the least
    traffic leaves supernodes, and those the model cannot tell apart are said to be ties.
    """
    from cli.inputs_document import efficiency_notes
    from cli.planner_inputs import Asked
    from cli.planner_output import console, emit, json_text, note, write_file
    from cli.price_notes import price_notes
    from cli.progress_line import SeatingLine
    from cli.search_inputs import read_searched
    from cli.search_page import print_search
    from cli.search_report import make_search, search_csv, search_document, with_part_used
    from planner.procure.run import parse_tokens
    from planner.search.rules import parse_rules
    from topologies.own_efficiency import read_own_fits
    from topologies.price_list import read_price_list

    given = {
        "tp": tp, "cp": cp, "ep": ep, "etp": etp, "dp": dp, "pp": pp, "vpp": vpp,
        "zero_stage": zero, "micro_batch": micro_batch, "global_batch": global_batch, "seq": seq,
        "recompute": recompute, "precision": precision, "dp_shard": dp_shard,
    }  # fmt: skip
    rules = parse_rules(where or ())
    if sweep is not None or into is not None or resume:
        from cli.search_sweep import SEATING_LIMIT_S, Way, refuse_beside_sweep

        if sweep is None or into is None:
            raise typer.BadParameter("--sweep, --into and --resume go together: --sweep and --into")
        refuse_beside_sweep({
            "--cluster": cluster, "--supernode": supernode, "--gpus": gpus, "--model": model,
            "--layout": layout, "--csv": csv, "--prices": prices, "--tokens": tokens,
            "--plot": plot,
        })  # fmt: skip
        if workers and scheduler:
            raise typer.BadParameter("--workers starts processes here: not beside --scheduler")
        _sweep(
            sweep, into, given, where=tuple(rule.text for rule in rules),
            way=Way(resume=resume, workers=workers or 0, scheduler=scheduler),
            own_fits=read_own_fits(efficiency),
            seed=seed, time_limit_s=time_limit or SEATING_LIMIT_S, as_json=as_json, out=out,
            parquet=parquet,
        )  # fmt: skip
        return
    if workers or scheduler or parquet:
        raise typer.BadParameter("--workers, --scheduler and --parquet go with --sweep")
    if plot is not None:
        from cli.report_pictures_file import refuse_other_formats

        refuse_other_formats(plot)
    wanted_tokens = None if tokens is None else parse_tokens(tokens)
    listed = None if prices is None else read_price_list(prices)
    choosing = SeatingLine()
    asked = Asked(
        cluster=cluster, supernode=supernode, gpus=gpus, model=model, layout_file=layout,
        layout=given, order=order, where=rules, own_fits=read_own_fits(efficiency),
    )  # fmt: skip
    inputs = read_searched(asked, choosing)
    found = with_part_used(
        make_search(
            inputs, best=best, seed=seed, time_limit_s=time_limit, prices=listed,
            tokens=wanted_tokens, rules=rules, told=choosing,
        ),
        asked,
    )  # fmt: skip
    choosing.close()
    for line in (*price_notes(listed, [found.bill]), *efficiency_notes([inputs])):
        note(line)
    document = search_document(found)
    for path, text in ((out, json_text(document)), (csv, search_csv(found))):
        if path is not None:
            write_file(path, text)
            note(f"wrote {path}")
    if plot is not None:
        from cli.report_pictures_file import write_sheet
        from cli.report_pictures_plots import search_sheet

        write_sheet(search_sheet(document), plot)
        note(f"wrote {plot}")
    if as_json:
        emit(json_text(document))
    else:
        print_search(console(), found, document["inputs"]["sha256"])


def _sweep(
    sweep: Path, into: Path, given: dict[str, Any], *, where: tuple[str, ...], way: Way,
    own_fits: OwnFits | None, seed: int, time_limit_s: float, as_json: bool, out: Path | None,
    parquet: Path | None,
) -> None:  # fmt: skip
    from cli.planner_output import console, emit, json_text, note, write_file
    from cli.search_sweep import read_sweep, sweep_document
    from cli.search_sweep_page import print_sweep
    from cli.sweep_parquet import parquet_bytes, refuse_without_pyarrow

    if parquet is not None:
        refuse_without_pyarrow()
    stated = {name: value for name, value in given.items() if value is not None}
    document = sweep_document(
        read_sweep(sweep), into, stated, where=where, way=way, own_fits=own_fits, seed=seed,
        time_limit_s=time_limit_s,
    )  # fmt: skip
    if out is not None:
        write_file(out, json_text(document))
        note(f"wrote {out}")
    if parquet is not None:
        write_file(parquet, parquet_bytes(document))
        note(f"wrote {parquet}")
    if as_json:
        emit(json_text(document))
    else:
        print_sweep(console(), document["results"], document["inputs"]["sha256"])
