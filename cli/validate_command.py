"""``planner validate``: predicts every row of a table of steps and says how far off it is."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.planner_options import Json, OfCluster, OwnEfficiency, command_app, writable

app = command_app()

Table = Annotated[
    Path,
    typer.Argument(
        metavar="FILE.csv",
        show_default=False,
        help="A table with the columns of the published steps; measured_step_s may be empty.",
    ),
]
Predictions = Annotated[
    Path | None,
    typer.Option(
        "--out",
        callback=writable,
        metavar="FILE",
        show_default=False,
        help="Write id, predicted_step_s, predicted_memory_bytes, skipped_because of every row.",
    ),
]
Refit = Annotated[
    Literal["halves", "sources"] | None,
    typer.Option(
        "--refit",
        show_default=False,
        help="Fit on this very table and score what the fit has not seen: each half of the "
        "layouts by the other, or each source by all others. Takes minutes.",
    ),
]
Worst = Annotated[
    int, typer.Option("--worst", min=0, max=1000, help="List so many of the rows furthest off.")
]


@app.command("validate")
def validate(
    table: Table,
    cluster: OfCluster = None,
    out: Predictions = None,
    efficiency: OwnEfficiency = None,
    refit: Refit = None,
    worst: Worst = 5,
    as_json: Json = False,
) -> None:
    """Predict each row, and print the error, order and regret of each source.

    Beside each source stands what a constant MFU per accelerator would score, and what other
    programs published. Rows without a measured step are predicted, too.
    """
    from cli.planner_output import console, emit, json_text, note, write_file
    from cli.validate_page import print_report
    from cli.validate_report import predictions_text, report_of, validate_document

    report = report_of(
        table, cluster=cluster, efficiency=efficiency, refit=refit, worst=worst, say=note
    )
    if out is not None:
        write_file(out, predictions_text(report))
        note(f"wrote {out}")
    if as_json:
        emit(json_text(validate_document(report)))
        return
    print_report(console(), report)
