"""``planner report``: plans as one page that opens offline and that a board can read."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from cli.planner_options import command_app, writable

app = command_app()

Plans = Annotated[
    list[Path],
    typer.Argument(
        metavar="FILE|FOLDER…",
        show_default=False,
        help="Plans of planner place --json, comparisons of planner compare --json, or folders "
        "with them.",
    ),
]
HtmlOut = Annotated[
    Path | None,
    typer.Option(
        "--out",
        callback=writable,
        metavar="FILE",
        show_default=False,
        help="Where the page goes; left out, to stdout, unless that is a terminal.",
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
    """Write one HTML file about a plan, several side by side, or comparisons.

    It opens in any browser without a network, prints on A4, and reads without JavaScript.
    """
    from cli.planner_output import emit, note, write_file
    from cli.price_notes import price_notes
    from cli.report_html import report as page_of
    from cli.report_html_bill import accounts
    from cli.report_html_inputs import read_given
    from planner.errors import InputError
    from planner.procure.run import parse_tokens
    from topologies.price_list import read_price_list

    if out is None and sys.stdout.isatty():
        raise InputError("a page is HTML, which no terminal shows: name its file with --out FILE")
    faults: list[str] = []
    listed, given = None, None
    if prices is not None:
        try:
            listed = read_price_list(prices)
        except InputError as error:
            faults += error.faults
    wanted = None if tokens is None else parse_tokens(tokens)
    try:
        given = read_given(plans)
    except InputError as error:
        faults += error.faults
    if faults or given is None:
        raise InputError(*faults)
    if not given.plans and (prices is not None or tokens is not None):
        raise InputError(
            "--prices and --tokens are for plans: a comparison has those that planner compare got"
        )
    counted = [one.bill for one in accounts(given.plans, listed, wanted) if one is not None]
    for line in price_notes(listed, counted):
        note(line)
    for name in given.skipped:
        note(f"{name}: skipped, for it is neither a plan nor a comparison")
    for name in given.changed:
        note(f"{name}: the hash is not that of its inputs; the report says so")
    text = page_of(given.plans, listed, wanted, given.comparisons)
    if out is None:
        emit(text)
        return
    write_file(out, text)
    note(f"wrote {out}")
