"""``planner net collectives``: what a library takes for a collective, and how far that is off."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from cli.net_inputs import Given, number_option, put_out, text_option
from cli.planner_options import Json, Out, writable

_LEAST, _MOST = 1e-20, 1e20
"""Bytes and rates that are answered: above 0, and their ratio no floating-point overflow."""


def add_to(app: typer.Typer) -> None:
    """Add the command of this module to *app*."""
    app.command("collectives")(collectives)


def collectives(
    collective: Annotated[
        Literal["all_reduce", "all_gather", "reduce_scatter", "all_to_all"],
        typer.Option("--collective", help="What runs."),
    ] = "all_reduce",
    size: Annotated[
        str, text_option("--size", "As nccl-tests counts it: the vector, or what a rank sends.")
    ] = "192MiB",
    ranks: Annotated[str, number_option("--ranks", "Members of the group.")] = "16",
    supernode: Annotated[str, number_option("--supernode", "GPUs of a scale-up domain.")] = "8",
    gpu: Annotated[
        str, typer.Option("--gpu", help="Its name, and EFA where that is the network.")
    ] = "H100",
    nic: Annotated[str, text_option("--nic", "Nominal rate of a GPU's NIC.")] = "50GB/s",
    scale_up: Annotated[
        str | None,
        typer.Option(
            "--scale-up", metavar="QUANTITY", show_default="the GPU's",
            help="Nominal rate inside a supernode, per GPU.",
        ),
    ] = None,
    table: Annotated[
        Path | None,
        typer.Option(
            "--table", metavar="FILE", show_default=False,
            help="A CSV table of measured collectives: predict each row, and report the error.",
        ),
    ] = None,
    predictions: Annotated[
        Path | None,
        typer.Option(
            "--predictions", callback=writable, metavar="FILE", show_default=False,
            help="With --table: write the predictions of its rows as CSV.",
        ),
    ] = None,
    as_json: Json = False,
    out: Out = None,
) -> None:  # fmt: skip
    """Predict a collective as a stock library runs it, or a whole table of them.

    The library's numbers were fitted on public tables; the error that each system had while its
    own table was left out is shown beside.
    """
    from cli.net_collectives_report import question_body, question_text, table_body, table_text_of
    from cli.planner_output import note, write_file
    from planner.errors import InputError
    from planner.units import parse_bytes, parse_rate

    if table is not None:
        from topologies.collective_table import predictions_text, read_collectives

        rows = read_collectives(table)
        body, seconds = table_body(rows)
        if predictions is not None:
            write_file(predictions, predictions_text(rows, seconds))
            note(f"wrote {predictions}")
        inputs = {"table": str(table), "rows": len(rows)}
        put_out("collectives", inputs, body, table_text_of(inputs, body), as_json=as_json, out=out)
        return
    if predictions is not None:
        raise InputError("--predictions: needs a --table to predict")
    given = Given()
    given.values["collective"] = collective
    bounds = {"least": _LEAST, "most": _MOST}
    given.quantity("size_bytes", "--size", size, parse_bytes, **bounds)
    given.count("ranks", "--ranks", ranks, least=2, most=10**7)
    given.count("supernode", "--supernode", supernode, most=10**7)
    given.values["gpu"] = gpu
    given.quantity("nic_bytes_per_s", "--nic", nic, parse_rate, **bounds)
    given.quantity("scale_up_bytes_per_s", "--scale-up", scale_up, parse_rate, **bounds)
    with given.finish():
        body = question_body(**given.values)
    text = question_text(given.values, body)
    put_out("collectives", given.values, body, text, as_json=as_json, out=out)
