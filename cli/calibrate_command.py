"""``planner calibrate``: fits an accelerator's efficiencies on measured steps, with the error."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.planner_options import Json, OfCluster, command_app, writable

app = command_app()

Table = Annotated[
    Path,
    typer.Argument(
        metavar="FILE.csv",
        show_default=False,
        help="Measured steps: your own runs, with the columns of the published tables.",
    ),
]
Written = Annotated[
    Path | None,
    typer.Option(
        "--out",
        callback=writable,
        metavar="FILE",
        show_default=False,
        help="Write the efficiencies here: --efficiency of place, step, search, compare and "
        "validate reads them.",
    ),
]
Catalogue = Annotated[
    Path | None,
    typer.Option(
        "--catalogue",
        metavar="FOLDER",
        show_default=False,
        help="Write the three files of fitted numbers that ship with the program into this folder: "
        "fitted on every row, on each half of the layouts, and without each source. Takes minutes.",
    ),
]
All = Annotated[
    bool,
    typer.Option(
        "--all",
        help="Only fit, on every row. Otherwise each half of the layouts is also predicted by a "
        "fit on the other half, where both have 3 rows or more: the error of unseen rows.",
    ),
]

Suspects = Annotated[
    bool,
    typer.Option(
        "--keep-suspects",
        help="Fit rows, too, that are more than five times off what the others give. Otherwise "
        "they are told and left out: no run is, a slip of a unit or a batch is.",
    ),
]


@app.command("calibrate")
def calibrate(
    table: Table,
    cluster: OfCluster = None,
    out: Written = None,
    catalogue: Catalogue = None,
    every: All = False,
    keep_suspects: Suspects = False,
    as_json: Json = False,
) -> None:
    """Fit what each accelerator of a table reaches, and print how far off that is.

    Few numbers, each drawn to what other generations reach, so that a small table is enough:
    3 measured rows of an accelerator are.
    """
    from cli.calibrate_report import calibrate_document, fit_table, print_fit, write_catalogue
    from cli.planner_output import console, emit, json_text, note, write_file
    from planner.errors import InputError
    from planner.steptime.own_fit import fit_alone, fit_and_score
    from planner.steptime.suspects import everything, sifted
    from topologies.efficiency_text import efficiencies_text

    if catalogue is not None:
        if out is not None or every or keep_suspects or as_json or cluster is not None:
            raise InputError(
                "--catalogue writes files of its own, from all fits of the catalogue's "
                "accelerators: leave out --out, --all, --keep-suspects, --json, "
                "--cluster"
            )
        for written in write_catalogue(table, catalogue, say=note):
            note(f"wrote {written}")
        return
    fitted = fit_table(
        table, cluster=cluster, sift=everything if keep_suspects else sifted,
        fit_rows=fit_alone if every else fit_and_score, say=note,
    )  # fmt: skip
    if out is not None:
        text = efficiencies_text(
            {one.chip: one.efficiency for one in fitted.fits},
            {one.chip: one.assumed for one in fitted.fits},
            {one.chip: one.covered for one in fitted.fits},
        )
        write_file(out, text)
        note(f"wrote {out}")
    if as_json:
        emit(json_text(calibrate_document(fitted)))
        return
    print_fit(console(), fitted)
