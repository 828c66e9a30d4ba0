"""``planner compare``: layouts by clusters, ranked; what crosses; where the winner flips."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.planner_options import (
    Cp,
    Dp,
    DpShard,
    Ep,
    Etp,
    GlobalBatch,
    Json,
    MicroBatch,
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
    TimeLimit,
    Tokens,
    Tp,
    Vpp,
    Where,
    Zero,
    command_app,
    counts,
    whole,
    writable,
)

if TYPE_CHECKING:
    from cli.compare_inputs import Wanted
    from cli.compare_report import Comparison

app = command_app()

Plans = Annotated[
    list[Path] | None,
    typer.Argument(
        metavar="[PLAN PLAN]", show_default=False,
        help="Two documents of planner place --out: says what changed, and nothing else.",
    ),
]  # fmt: skip
Clusters = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster", metavar="NAME|FILE", show_default=False,
        help="A cluster of the catalogue, or a file; may be given several times.",
    ),
]  # fmt: skip
Supernodes = Annotated[
    list[str] | None,
    typer.Option(
        "--supernode", metavar="N,N,…", show_default=False,
        help="Supernode sizes to compare, e.g. 8,64,384; may be given several times.",
    ),
]  # fmt: skip
LayoutFiles = Annotated[
    list[Path] | None,
    typer.Option(
        "--layout", metavar="FILE", show_default=False,
        help="A YAML file with a layout; several are compared with each other.",
    ),
]  # fmt: skip
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model", metavar="NAME|FILE", show_default=False,
        help="A model of the catalogue, a config.json, or a YAML file; several, given one by one, "
        "are compared one after the other, with a verdict for all.",
    ),
]  # fmt: skip
SomeGpus = Annotated[
    int | None, whole("--gpus", show_default="1024", help="GPUs of the job, the same everywhere.")
]
Equal = Annotated[
    Literal["gpus", "money", "power"],
    typer.Option("--equal", help="What the clusters have in common: GPUs, money or power."),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "--budget", metavar="AMOUNT", show_default="what the first cluster costs",
        help="For --equal money, e.g. 120M in the currency of --prices; for power, e.g. '10 MW'; "
        "with --days what the run may cost.",
    ),
]  # fmt: skip
Days = Annotated[
    float | None,
    typer.Option(
        "--days", metavar="DAYS", show_default=False,
        help="With --tokens: each cluster gets as many GPUs as train them in so many days.",
    ),
]  # fmt: skip
Goodput = Annotated[
    float,
    typer.Option(
        "--goodput",
        metavar="SHARE",
        show_default="1",
        help="Share of the time that trains; the rest is lost to faults and restarts.",
    ),
]
Csv = Annotated[
    Path | None,
    typer.Option(
        "--csv",
        callback=writable,
        metavar="FILE",
        show_default=False,
        help="Write the ranking as CSV.",
    ),
]


@app.command("compare")
def compare(
    context: typer.Context,
    plans: Plans = None,
    cluster: Clusters = None,
    supernode: Supernodes = None,
    gpus: SomeGpus = None,
    model: Models = None,
    layout: LayoutFiles = None,
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
    prices: Prices = None,
    tokens: Tokens = None,
    days: Days = None,
    goodput: Goodput = 1.0,
    equal: Equal = "gpus",
    budget: Budget = None,
    seed: Seed = 0,
    time_limit: TimeLimit = None,
    csv: Csv = None,
    as_json: Json = False,
    out: Out = None,
    plot: Plot = None,
) -> None:
    """Rank clusters, each with the best layout found for it.

    All have the same number of GPUs, cost the same money or power, or do a run in the same time.
    Shows what falls on each cut, at which rates and lengths the winner changes, and what a better
    part would bring. With --layout the given layouts are compared; with two plans, what changed.
    """
    from cli.compare_csv import compare_csv
    from cli.compare_inputs import Wanted
    from cli.compare_models import models_document, print_models
    from cli.compare_report import compare_document
    from cli.compare_sizes import Goal
    from cli.inputs_document import efficiency_notes
    from cli.planner_output import console, emit, json_text, note, write_file
    from cli.price_notes import price_notes
    from planner.procure.run import parse_tokens
    from planner.search.rules import parse_rules
    from topologies.own_efficiency import read_own_fits
    from topologies.price_list import read_price_list

    if plans:
        _refuse_beside_plans(context)
        _compare_plans(plans, prices=prices, as_json=as_json, out=out)
        return
    given = {
        "tp": tp, "cp": cp, "ep": ep, "etp": etp, "dp": dp, "pp": pp, "vpp": vpp,
        "zero_stage": zero, "micro_batch": micro_batch, "global_batch": global_batch, "seq": seq,
        "recompute": recompute, "precision": precision, "dp_shard": dp_shard,
    }  # fmt: skip
    if plot is not None:
        from cli.report_pictures_file import refuse_other_formats

        refuse_other_formats(plot)
    models = tuple(dict.fromkeys(model or ()))
    if len(models) > 1 and (csv is not None or plot is not None or layout):
        raise typer.BadParameter("--csv, --plot and --layout are for one --model")
    if not 0 < goodput <= 1:
        raise typer.BadParameter(f"--goodput: expected a share above 0, at most 1, got {goodput}")
    wanted_tokens = None if tokens is None else parse_tokens(tokens)
    listed = None if prices is None else read_price_list(prices)
    wanted = Wanted(
        clusters=tuple(cluster or ()),
        supernodes=tuple(
            size for text in supernode or () for size in counts(text, option="--supernode")
        ),
        gpus=gpus, model=None, layout_files=tuple(layout or ()), layout=given, order=order,
        where=parse_rules(where or ()),
        own_fits=read_own_fits(efficiency, elsewhere="shipped"),
        goal=Goal(
            equal=_equal(equal, budget, days, gpus, wanted_tokens), budget=budget,
            tokens=wanted_tokens, days=days, prices=listed, goodput_share=goodput,
        ),
    )  # fmt: skip
    each = _compared(
        [replace(wanted, model=one) for one in models or (None,)], seed=seed, time_limit=time_limit
    )
    found = each[0]
    asked = [question for one in each for question in one.asked.inputs]
    for line in (
        *price_notes(listed, found.bills.values()),
        *efficiency_notes(asked),
    ):  # fmt: skip
        note(line)
    documents = [compare_document(one) for one in each]
    document = documents[0] if len(documents) == 1 else models_document(documents)
    for path, text in ((out, json_text(document)), (csv, compare_csv(found))):
        if path is not None:
            write_file(path, text)
            note(f"wrote {path}")
    if plot is not None:
        _draw(document, plot)
    if as_json:
        emit(json_text(document))
    else:
        print_models(console(), each, documents)
    _end(each[-1])


def _compared(wanted: list[Wanted], *, seed: int, time_limit: float | None) -> list[Comparison]:
    """Return the comparison of each, up to one that the user ends after its ranking."""
    from cli.compare_inputs import read_candidates
    from cli.compare_report import make_comparison
    from cli.progress_line import StageLine

    each: list[Comparison] = []
    for one in wanted:
        stage = StageLine()
        try:
            each.append(make_comparison(
                read_candidates(one, stage), seed=seed, time_limit_s=time_limit,
                prices=one.goal.prices, tokens=one.goal.tokens, tell=stage,
            ))  # fmt: skip
        finally:
            stage.close()
        if each[-1].interrupted:
            break
    return each


def _end(last: Comparison) -> None:
    """Leave with 130 where the user ended the *last* comparison, and say what of it stands."""
    from cli.planner_errors import INTERRUPTED
    from cli.planner_output import note

    if last.interrupted:
        note("interrupted: the ranking stands; flips were not looked for to the end")
        raise typer.Exit(INTERRUPTED)


def _draw(document: dict[str, Any], plot: Path) -> None:
    """Write the picture of a comparison."""
    from cli.planner_output import note
    from cli.report_pictures_file import write_sheet
    from cli.report_pictures_plots import compare_sheet

    write_sheet(compare_sheet(document), plot)
    note(f"wrote {plot}")


def _refuse_beside_plans(context: typer.Context) -> None:
    """Refuse what two plans leave nothing to do for, rather than pass over it."""
    taken = {"plans", "prices", "as_json", "out"}
    idle = [
        option.opts[0]
        for option in context.command.params
        if option.name not in taken
        and getattr(context.get_parameter_source(option.name or ""), "name", "") == "COMMANDLINE"
    ]
    if idle:
        raise typer.BadParameter(
            f"{', '.join(idle)}: two plans are compared as they are, only with --prices, --out and "
            "--json"
        )


def _equal(
    equal: str, budget: str | None, days: float | None, gpus: int | None, tokens: float | None
) -> str:
    """Return what the clusters have in common, or say which options do not go together."""
    if days is not None:
        if not (math.isfinite(days) and days > 0):
            raise typer.BadParameter(f"--days: expected a number above 0, got {days}")
        if tokens is None:
            raise typer.BadParameter("--days needs --tokens, the tokens of the whole run")
        if equal != "gpus" or gpus is not None:
            raise typer.BadParameter("--days sets the GPUs: without --gpus and --equal")
        return "run"
    if budget is not None and equal == "gpus":
        raise typer.BadParameter(
            "--budget needs what it is for: --equal money, --equal power, or --tokens and --days "
            "for what a run may cost"
        )
    if budget is not None and gpus is not None:
        raise typer.BadParameter("--budget sets the GPUs: without --gpus")
    return equal


def _compare_plans(
    plans: list[Path], *, prices: Path | None, as_json: bool, out: Path | None
) -> None:
    from cli.plan_diff_report import diff_document, print_diff, read_plan
    from cli.planner_output import console, emit, json_text, note, write_file
    from planner.errors import InputError
    from planner.search.plan_diff import plan_diff
    from topologies.price_list import read_price_list

    if len(plans) != 2:
        raise typer.BadParameter(f"expected two plans, got {len(plans)}")
    read: list[dict[str, Any]] = []
    faults: list[str] = []
    for path in plans:
        try:
            read.append(read_plan(path))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    listed = None if prices is None else read_price_list(prices)
    diff = plan_diff(read[0], read[1], listed)
    document = diff_document(diff, plans, read, listed)
    if out is not None:
        write_file(out, json_text(document))
        note(f"wrote {out}")
    if as_json:
        emit(json_text(document))
    else:
        print_diff(console(), diff, plans, listed.currency if listed else "")
