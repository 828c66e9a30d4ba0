"""``planner net schedule``: a collective move by move, proved, counted over the cut, its slots."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.net_inputs import Given, number_option, put_out, text_option
from cli.planner_options import Json, Out, writable

if TYPE_CHECKING:
    from planner.collectives.schedule import Schedule


def add_to(app: typer.Typer) -> None:
    """Add the command of this module to *app*."""
    app.command("schedule")(schedule)


def schedule(
    collective: Annotated[
        Literal["all_reduce", "reduce_scatter", "all_gather", "all_to_all", "domain_gather",
                "ring", "chain", "broadcast"],
        typer.Option("--collective", help="What runs."),
    ] = "all_reduce",
    algorithm: Annotated[
        str | None,
        typer.Option("--algorithm", metavar="NAME", show_default="all there are", help="How."),
    ] = None,
    members: Annotated[
        str,
        typer.Option("--members", metavar="N,N,…", help="Ranks of the group in each supernode."),
    ] = "8,8",
    size: Annotated[
        str, text_option("--size", "The vector; what a rank sends; one hop of ring or chain.")
    ] = "192MiB",
    slots: Annotated[
        str, number_option("--slots", "Slots of each channel that messages land in, in turn.")
    ] = "8",
    moves: Annotated[
        Path | None,
        typer.Option(
            "--moves", callback=writable, metavar="FILE", show_default=False,
            help="With --algorithm: write its moves as CSV.",
        ),
    ] = None,
    as_json: Json = False,
    out: Out = None,
) -> None:  # fmt: skip
    """Prove a collective's schedule move by move; count its bytes and slots.

    Every rank must end with every contribution it should have, once each. Slots: as many as keep
    a message from being overwritten unread where nobody acknowledges.
    """
    from cli.net_schedule_report import moves_csv, schedule_text
    from cli.planner_output import note, write_file
    from planner.collectives.landing import SOURCE, premises
    from planner.collectives.proof import proved, races_of
    from planner.errors import InputError
    from planner.units import parse_bytes

    given = Given()
    given.word("collective", "--collective", collective)
    given.values["algorithm"] = None
    if algorithm is not None:
        given.word("algorithm", "--algorithm", algorithm)
    given.counts("members", "--members", members, most=128)
    given.quantity("size_bytes", "--size", size, parse_bytes, least=1e-20, most=1e20)
    given.count("slots", "--slots", slots)
    inputs = given.values
    if moves is not None and algorithm is None:
        raise InputError("--moves: needs an --algorithm whose moves to write")
    with given.finish():
        schedules = _schedules(inputs)
    rows = [proved(made, inputs["size_bytes"], inputs["slots"]) for made in schedules]
    if moves is not None:
        write_file(moves, moves_csv(schedules[0]))
        note(f"wrote {moves}")
    body = {"schedules": rows, "premises": premises(races_of(rows)), "source": SOURCE}
    text = schedule_text(inputs, rows)
    put_out("schedule", inputs, body, text, as_json=as_json, out=out)


def _schedules(inputs: dict[str, Any]) -> list[Schedule]:
    """Return the schedule of the algorithm that is named, or of each there is."""
    from planner.collectives.schedule import Seating
    from planner.collectives.schedules import SCHEDULES, schedule_of

    collective, seating = inputs["collective"], Seating.of_counts(inputs["members"])
    named = inputs["algorithm"]
    names = tuple(SCHEDULES[collective]) if named is None else (named,)
    return [schedule_of(collective, name, seating) for name in names]
