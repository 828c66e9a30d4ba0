"""The texts of ``planner net pause · incast · queues · buffers · reuse``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.net_reports import or_never
from cli.net_text import Row, net_text, table_text
from planner.network import hazards, pfc, reuse
from planner.network import incast as gate
from planner.network import queues as row
from planner.units import (
    format_binary_bytes,
    format_bytes,
    format_rate,
    format_share,
    format_time,
)

_MOST_SHOWN = 8


def pause_text(inputs: Mapping[str, Any], seen: pfc.PauseCheck) -> str:
    """Return the text of ``planner net pause``."""
    case = (
        f"{format_rate(inputs['line_bytes_per_s'])} over {inputs['cable_m']:g} m, frames up to "
        f"{format_bytes(inputs['mtu_bytes'])}; buffer "
        f"{format_binary_bytes(inputs['buffer_bytes'])}, pause at "
        f"{format_binary_bytes(inputs['xoff_bytes'])}, resume at "
        f"{format_binary_bytes(inputs['xon_bytes'])}"
    )
    rows = [
        Row("headroom needed", format_binary_bytes(seen.headroom_bytes)),
        Row(
            "of it to react",
            format_binary_bytes(inputs["response_bytes"]),
            "as IEEE 802.3 allows at this rate, unless --response is given",
        ),
        Row("room above xoff", format_binary_bytes(seen.room_bytes)),
        Row("lossless", "yes" if seen.lossless else "NO", _margin(seen.margin_bytes)),
        Row("stops after", format_time(seen.pause_s), "at the latest"),
        Row(
            "link stays busy",
            "yes" if seen.keeps_busy else "NO",
            f"xon of {format_binary_bytes(seen.min_xon_bytes)} or more",
        ),
        Row(
            "longest cable",
            f"{seen.longest_cable_m:.0f} m" if seen.longest_cable_m > 0 else "none",
            "" if seen.longest_cable_m > 0 else "the room is less than the reaction takes",
        ),
    ]
    says = [
        (
            "Pause works one hop back and fast: it prevents local overflow. End-to-end control "
            "works over the whole path and slowly: it sets the source's rate. A fabric needs both."
        ),
    ]
    return net_text("Link-level pause (PFC)", case, rows, says, seen.premises, pfc.SOURCE)


def _margin(margin_bytes: float) -> str:
    if margin_bytes >= 0:
        return f"{format_binary_bytes(margin_bytes)} to spare"
    return f"{format_binary_bytes(-margin_bytes)} too little"


def incast_text(inputs: Mapping[str, Any], seen: gate.IncastGate) -> str:
    """Return the text of ``planner net incast``."""
    window = inputs["window_bytes"]
    bound = "no limit" if window is None else f"{format_binary_bytes(window)} each"
    case = (
        f"{seen.degree} senders of {format_rate(inputs['sender_bytes_per_s'])} into one port of "
        f"{format_rate(inputs['port_bytes_per_s'])}; {format_binary_bytes(seen.room_bytes)} free; "
        f"feedback after {format_time(seen.feedback_s)}; outstanding: {bound}"
    )
    margin = "" if seen.margin_share is None else f"margin {format_share(seen.margin_share)}"
    rows = [
        Row("verdict", "pass" if seen.passes else "FAIL", seen.why),
        Row("piles up", format_bytes(seen.peak_bytes), margin),
        Row("lost", format_bytes(seen.lost_bytes)),
        Row("deadline of feedback", or_never(seen.deadline_s)),
        Row(
            "passes up to",
            "any number" if seen.safe_degree is None else f"{seen.safe_degree} at once",
        ),
    ]
    says = [
        (
            "What bounds an incast is feedback before the buffer is full, or windows small enough "
            "that all of them fit it."
        ),
    ]
    return net_text("Incast at one port", case, rows, says, seen.premises, gate.SOURCE)


def queues_text(inputs: Mapping[str, Any], run: row.Run) -> str:
    """Return the text of ``planner net queues``."""
    case = (
        f"{len(inputs['sources'])} sources, {len(inputs['queues'])} queues in a row, followed for "
        f"{format_time(inputs['until_s'])} through {run.events} events"
    )
    table = table_text(
        ("queue", "full at", "lost", "peak", "at the end", "pauses", "paused"),
        [
            (
                queue.name,
                or_never(queue.full_at_s),
                format_bytes(queue.lost_bytes),
                format_binary_bytes(queue.peak_bytes),
                format_binary_bytes(queue.end_bytes),
                str(queue.pauses),
                format_time(queue.paused_s),
            )
            for queue in run.queues
        ],
    )
    queued_bytes = sum(queue.used_bytes for queue in inputs["queues"])
    rows = [
        Row("queued at the start", format_bytes(queued_bytes)),
        Row("sent", format_bytes(run.sent_bytes)),
        Row("delivered", format_bytes(run.delivered_bytes)),
        *(
            Row(f"{source.name} slowed at", or_never(at))
            for source, at in zip(inputs["sources"], run.reduced_at_s, strict=True)
        ),
    ]
    paused = [queue.name for queue in run.queues if queue.paused_s]
    says = [
        f"What feeds {' and '.join(paused)} stood still for a while: pause keeps a buffer from "
        "overflowing by moving the queue one hop back, to flows that never met the bottleneck."
        if paused
        else "Nothing was paused.",
    ]
    text = net_text("Queues in a row", case, rows, says, row.premises(), row.SOURCE)
    head, rest = text.split("\n\n", 2)[:2], text.split("\n\n", 2)[2]
    return "\n\n".join([*head, table, rest])


def buffers_text(inputs: Mapping[str, Any], seen: hazards.BufferCheck) -> str:
    """Return the text of ``planner net buffers``."""
    case = (
        f"one content every {format_time(inputs['interval_s'])}, held for "
        f"{format_time(inputs['hold_s'])}; {inputs['buffers']} buffers in turn"
    )
    rows = [
        Row("verdict", "safe" if seen.safe else "OVERWRITES"),
        Row("least buffers", str(seen.least_buffers)),
        Row("written too early by", format_time(seen.early_s)),
        Row("safe interval", format_time(seen.safe_interval_s), "with the buffers there are"),
    ]
    says = [
        (
            "A buffer may be reused only after the receiver is done with it; overwriting makes "
            "it read newer data."
        ),
    ]
    return net_text("Buffer reuse", case, rows, says, seen.premises, hazards.SOURCE)


def reuse_text(inputs: Mapping[str, Any], seen: reuse.Reuse) -> str:
    """Return the text of ``planner net reuse``."""
    contents, operations = len(inputs["contents"]), len(inputs["operations"])
    rows = [
        Row("verdict", "safe" if seen.safe else "OVERWRITES"),
        Row("least buffers", str(seen.least_buffers), "for the contents and their times"),
        *(
            Row(
                f"{early.buffer} too early",
                format_time(early.early_s),
                f"{early.written} is written while {early.lost} still has a reader",
            )
            for early in seen.overwritten[:_MOST_SHOWN]
        ),
        *(
            Row("not in order", "", f"nothing holds back {race.write} until {race.read} is over")
            for race in seen.unordered[:_MOST_SHOWN]
        ),
    ]
    left_out = sum(max(0, len(found) - _MOST_SHOWN) for found in (seen.overwritten, seen.unordered))
    if left_out:
        rows.append(Row("and more", str(left_out), "in the document of --json"))
    return net_text(
        "Buffers of a schedule",
        f"{contents} contents with times, {operations} operations with an order",
        rows,
        ["Fewest buffers: as many as contents are alive at one time."],
        seen.premises,
        reuse.SOURCE,
    )
