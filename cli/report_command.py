"""``planner report``: plans as one page that opens offline and that a board can read."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cli.planner_options import command_app

app = command_app()

Plans = Annotated[
    list[Path],
    typer.Argument(metavar="PLAN…", help="Plan files of planner place --json.", show_default=False),
]
HtmlOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        show_default=False,
        help="Where the page goes; left out, to stdout.",
    ),
]


Prices = Annotated[
    Path | None,
    typer.Option(
        "--prices", metavar="FILE", show_default=False,
        help="Your price list (YAML); without one there is no money.",
    ),
]  # fmt: skip
Tokens = Annotated[
    str | None,
    typer.Option(
        "--tokens", metavar="N", show_default=False, help="Tokens of the whole run, e.g. 15T."
    ),
]


@app.command("report")
def report(plans: Plans, prices: Prices = None, tokens: Tokens = None, out: HtmlOut = None) -> None:
    """Write one HTML file about a plan, or about several side by side.

    It opens in any browser without a network, prints on A4, and reads without JavaScript.
    """
    from cli.planner_output import emit, note, write_file
    from cli.report_html import report as page_of
    from cli.report_html_read import read_plan
    from planner.errors import InputError
    from planner.procure.price_file import read_prices
    from planner.procure.run import parse_tokens

    read = []
    faults: list[str] = []
    listed = None
    if prices is not None:
        try:
            listed = read_prices(prices)
        except InputError as error:
            faults += error.faults
    wanted = None if tokens is None else parse_tokens(tokens)
    for path in plans:
        try:
            read.append(read_plan(path))
        except InputError as error:
            faults += error.faults
    if faults:
        raise InputError(*faults)
    for plan in read:
        if not plan.untouched:
            note(f"{plan.name}: the hash is not that of its inputs; the report says so")
    text = page_of(read, listed, wanted)
    if out is None:
        emit(text)
        return
    write_file(out, text)
    note(f"wrote {out}")
