"""``planner net pause · incast · queues · buffers · reuse``: links, queues, and buffers."""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.net_inputs import Given, number_option, parts_of, put_out, text_option
from cli.planner_options import Json, Out

if TYPE_CHECKING:
    from planner.network.queue_parts import Queue, Source


def add_to(app: typer.Typer) -> None:
    """Add the commands of this module to *app*."""
    app.command("pause")(pause)
    app.command("incast")(incast)
    app.command("queues")(queues)
    app.command("buffers")(buffers)
    app.command("reuse")(reuse)


def pause(
    line_rate: Annotated[str, text_option("--line-rate", "Rate of the link.")] = "50GB/s",
    buffer: Annotated[str, text_option("--buffer", "Buffer of the class.")] = "512KiB",
    xoff: Annotated[str, text_option("--xoff", "Level that pauses the link.")] = "256KiB",
    xon: Annotated[str, text_option("--xon", "Level that resumes it.")] = "192KiB",
    cable: Annotated[str, number_option("--cable", "Length of the cable [m].")] = "100",
    mtu: Annotated[str, text_option("--mtu", "Largest frame.")] = "9216B",
    response: Annotated[
        str | None,
        typer.Option(
            "--response",
            metavar="QUANTITY",
            show_default=False,
            help="What the sender sends while it reacts; as IEEE 802.3 allows unless given.",
        ),
    ] = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Check whether link-level pause (PFC) has its headroom."""
    from cli.net_link_reports import pause_text
    from planner.network import pfc
    from planner.units import parse_bytes, parse_rate

    given = Given()
    given.quantity("line_bytes_per_s", "--line-rate", line_rate, parse_rate)
    given.quantity("buffer_bytes", "--buffer", buffer, parse_bytes, 1e30)
    given.quantity("xoff_bytes", "--xoff", xoff, parse_bytes)
    given.quantity("xon_bytes", "--xon", xon, parse_bytes, 0.0)
    given.number("cable_m", "--cable", cable, most=1e6)
    given.quantity("mtu_bytes", "--mtu", mtu, parse_bytes)
    given.quantity("response_bytes", "--response", response, parse_bytes)
    with given.finish():
        if response is None:
            rate = given.values["line_bytes_per_s"]
            given.values["response_bytes"] = pfc.standard_response_bytes(rate)
        seen = pfc.pause_check(**given.values)
    body = {**parts_of(seen), "source": pfc.SOURCE}
    put_out("pause", given.values, body, pause_text(given.values, seen), as_json=as_json, out=out)


def incast(
    degree: Annotated[str, number_option("--degree", "Senders into one port.")] = "2",
    sender: Annotated[str, text_option("--sender", "Rate of one of them.")] = "50GB/s",
    port: Annotated[str, text_option("--port", "Rate of the port.")] = "50GB/s",
    room: Annotated[str, text_option("--room", "Free buffer in front of it.")] = "256KiB",
    feedback: Annotated[
        str, text_option("--feedback", "Until the senders have slowed down.")
    ] = "20us",
    window: Annotated[
        str | None,
        typer.Option(
            "--window", metavar="QUANTITY", show_default=False, help="Outstanding of one sender."
        ),
    ] = None,
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Check whether a port stands so many senders at once."""
    from cli.net_link_reports import incast_text
    from planner.network import incast as model
    from planner.units import parse_bytes, parse_rate, parse_time

    given = Given()
    given.count("degree", "--degree", degree, least=0)
    given.quantity("sender_bytes_per_s", "--sender", sender, parse_rate)
    given.quantity("port_bytes_per_s", "--port", port, parse_rate)
    given.quantity("room_bytes", "--room", room, parse_bytes)
    given.quantity("feedback_s", "--feedback", feedback, parse_time)
    given.quantity("window_bytes", "--window", window, parse_bytes)
    with given.finish():
        seen = model.incast_gate(**given.values)
    body = {**parts_of(seen), "source": model.SOURCE}
    put_out("incast", given.values, body, incast_text(given.values, seen), as_json=as_json, out=out)


def queues(
    row: Annotated[
        Path | None,
        typer.Option(
            "--row",
            metavar="FILE",
            show_default=False,
            help="A YAML file with the queues and their sources; left out, an example.",
        ),
    ] = None,
    until: Annotated[str, text_option("--until", "How long to follow them.")] = "200us",
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Follow queues in a row: phases, feedback, link-level pause."""
    from cli.net_link_reports import queues_text
    from cli.net_queue_file import example, read_row
    from planner.network import queues as model
    from planner.units import parse_time

    given = Given()
    given.quantity("until_s", "--until", until, parse_time)
    found: tuple[tuple[Source, ...], tuple[Queue, ...]] = example()
    with given.finish():
        if row is not None:
            found = read_row(row)
        run = model.follow(*found, given.values["until_s"])
    inputs = {**given.values, "sources": list(found[0]), "queues": list(found[1])}
    body = {**parts_of(run), "premises": model.premises(), "source": model.SOURCE}
    put_out("queues", inputs, body, queues_text(inputs, run), as_json=as_json, out=out)


def buffers(
    interval: Annotated[str, text_option("--interval", "Between two contents.")] = "10us",
    hold: Annotated[
        str, text_option("--hold", "From the first byte written to the last byte read.")
    ] = "25us",
    number: Annotated[str, number_option("--buffers", "Buffers used in turn.")] = "2",
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Check that no buffer is written before its last reader is done."""
    from cli.net_link_reports import buffers_text
    from planner.network import hazards
    from planner.units import parse_time

    given = Given()
    given.quantity("interval_s", "--interval", interval, parse_time)
    given.quantity("hold_s", "--hold", hold, parse_time)
    given.count("buffers", "--buffers", number)
    with given.finish():
        seen = hazards.buffer_check(**given.values)
    body = {**parts_of(seen), "source": hazards.SOURCE}
    put_out(
        "buffers", given.values, body, buffers_text(given.values, seen), as_json=as_json, out=out
    )


def reuse(
    schedule: Annotated[
        Path | None,
        typer.Option(
            "--schedule", metavar="FILE", show_default=False,
            help="A YAML file with contents or operations; left out, an example.",
        ),
    ] = None,
    as_json: Json = False,
    out: Out = None,
) -> None:  # fmt: skip
    """Find what a schedule overwrites too early, and its fewest buffers."""
    from cli.net_link_reports import reuse_text
    from cli.net_reuse_file import example, read_schedule
    from planner.network import reuse as model

    given = example() if schedule is None else read_schedule(schedule)
    seen = model.reuse(given.contents, given.operations)
    inputs = {"contents": list(given.contents), "operations": list(given.operations)}
    body = {**parts_of(seen), "source": model.SOURCE}
    put_out("reuse", inputs, body, reuse_text(inputs, seen), as_json=as_json, out=out)
