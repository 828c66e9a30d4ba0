"""``planner net deadlock``: circles of links that wait for each other, of given routes."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.net_inputs import parts_of, put_out
from cli.planner_options import Json, Out

if TYPE_CHECKING:
    from cli.net_routes_file import RoutesInUse
    from planner.network.deadlock import Cycle, DeadlockCheck

_MOST_CYCLES = 3
_MOST_BREAKS = 4


def add_to(app: typer.Typer) -> None:
    """Add the command of this module to *app*."""
    app.command("deadlock")(deadlock)


def deadlock(
    routes: Annotated[
        Path | None,
        typer.Option(
            "--routes", metavar="FILE", show_default=False,
            help="A YAML file with the routes in use and their classes; left out, an example.",
        ),
    ] = None,
    as_json: Json = False,
    out: Out = None,
) -> None:  # fmt: skip
    """Find the circles of links that routes in use could lock up.

    For the least-cost routes of a whole cluster: planner topology check.
    """
    from cli.net_routes_file import example, read_routes
    from planner.network.deadlock import SOURCE, check_routes

    given = example() if routes is None else read_routes(routes)
    seen = check_routes(given.routes, ends_at=frozenset(given.ends_at))
    inputs = {
        "routes": [
            {"name": one.name, "path": list(one.vertices), "classes": list(one.priorities)}
            for one in given.routes
        ],
        "ends_at": list(given.ends_at),
    }
    body = {**parts_of(seen), "source": SOURCE}
    put_out("deadlock", inputs, body, _text(given, seen), as_json=as_json, out=out)


def _text(given: RoutesInUse, seen: DeadlockCheck) -> str:
    """Return the text of the command."""
    from cli.net_text import Row, net_text
    from planner.network.deadlock import SOURCE

    classes = {channel.priority for route in given.routes for channel in route.channels()}
    case = (
        f"{len(given.routes)} routes over {seen.channels} links, by class of buffers "
        f"({len(classes)} in use); {seen.dependencies} turns from one to the next"
    )
    rows = [Row("verdict", "free of deadlock" if seen.free else "CAN LOCK UP")]
    rows += [
        Row(f"circle {number}", f"{len(cycle.links)} links", "; ".join(cycle.links))
        for number, cycle in enumerate(seen.cycles[:_MOST_CYCLES], 1)
    ]
    says = [_closed(number, cycle) for number, cycle in enumerate(seen.cycles[:_MOST_CYCLES], 1)]
    if len(seen.cycles) > _MOST_CYCLES:
        says.append(f"{len(seen.cycles)} circles that share no link, in all.")
    if len(seen.breaks) > 1 or len(seen.cycles) > 1:  # of one circle its own advice is enough
        says.append(_given_up(seen.breaks))
    return net_text("Deadlock", case, rows, says, seen.premises, SOURCE)


def _closed(number: int, cycle: Cycle) -> str:
    names = sorted({name for names in cycle.closing_routes for name in names})
    return f"Circle {number} is closed by {', '.join(names)}: {cycle.advice}."


def _given_up(breaks: Sequence[tuple[str, str]]) -> str:
    named = ", ".join(f"{first} to {second}" for first, second in breaks[:_MOST_BREAKS])
    more = f" and {len(breaks) - _MOST_BREAKS} more" if len(breaks) > _MOST_BREAKS else ""
    turns = "1 turn" if len(breaks) == 1 else f"{len(breaks)} turns"
    return f"Giving up {turns} leaves no circle: {named}{more}."
