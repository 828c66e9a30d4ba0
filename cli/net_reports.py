"""The texts of ``planner net`` for single models: what binds, and what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cli.net_text import Row, net_text
from planner.network import completion, concurrency, loss, overlap
from planner.network import congestion as queue
from planner.network.storm import Storm
from planner.units import (
    format_binary_bytes,
    format_bytes,
    format_rate,
    format_share,
    format_time,
)


def count(value: float) -> str:
    """Return a count or a rate of events with a prefix, three digits.

    >>> count(6103515.625), count(200000.0), count(391)
    ('6.10 M', '200 k', '391')
    """
    return format_bytes(value).removesuffix("B").strip()


def or_never(value: float | None) -> str:
    """Return a time, or ``never``."""
    return "never" if value is None else format_time(value)


def slots_text(case: completion.SlotCase, run: completion.SlotRun) -> str:
    """Return the text of ``planner net slots``."""
    handled = (
        f"by interrupt, {format_time(case.handling_s)} each"
        if case.by_interrupt
        else f"{case.batch} every {format_time(case.poll_interval_s)}"
    )
    told = (
        f"{case.operations} operations of {format_binary_bytes(case.payload_bytes)}, one issued "
        f"every {format_time(case.issue_interval_s)}, done after "
        f"{format_time(case.service_time_s)}; {case.slots} slots; completions handled {handled}; "
        f"line {format_rate(case.line_bytes_per_s)}"
    )
    sustained = (
        f"{count(run.sustained_operations_per_s)} operations/s, "
        f"{format_share(run.line_share)} of the line"
    )
    rows = [
        Row("transfers end", format_time(run.transfer_end_s), _delay(run)),
        Row("all slots free", format_time(run.release_end_s)),
        Row("sustained", format_rate(run.sustained_bytes_per_s), sustained),
        Row("set by", run.binding),
        Row(
            "line rate needs",
            f"{count(run.required_completions_per_s)}/s",
            f"completions: one every {format_time(run.required_interval_s)}",
        ),
        Row(
            "",
            f"{run.required_slots} slots",
            f"issue every {format_time(run.required_issue_interval_s)} at most"
            + ("" if run.required_batch is None else f", {run.required_batch} a poll"),
        ),
    ]
    return net_text(
        "Completion slots",
        told,
        rows,
        [_what_slots_mean(run)],
        run.premises,
        completion.SOURCE,
    )


def _delay(run: completion.SlotRun) -> str:
    late_s = run.transfer_end_s - run.unlimited_transfer_end_s
    if late_s <= 1e-9 * run.transfer_end_s:
        return "as early as with unlimited slots"
    return f"{format_time(late_s)} later than with unlimited slots"


def _what_slots_mean(run: completion.SlotRun) -> str:
    if run.binding == "completion":
        payload = run.line_rate_payload_bytes
        bigger = "" if payload is None else f" (at {format_bytes(payload)} each the line is full)"
        return (
            "More slots move the transfers earlier, not the release: the rate is set by the "
            f"completions handled per second, or by the payload{bigger}. This is where "
            "back-pressure comes from."
        )
    return {
        "slots": "Slots bind: each waits for its transfer and for software to look. More slots "
        "help here, until completion, issue or the link binds.",
        "issue": "Issue binds: operations leave as fast as they can be issued. Larger payloads or "
        "a faster issue help; more slots do not.",
        "link": "The link binds: it is full. Nothing on the host's side helps.",
    }[run.binding]


def congestion_text(inputs: Mapping[str, Any], seen: queue.Congestion) -> str:
    """Return the text of ``planner net congestion``."""
    case = (
        f"{format_rate(inputs['arrival_bytes_per_s'])} arrive, "
        f"{format_rate(inputs['service_bytes_per_s'])} leave; buffer "
        f"{format_binary_bytes(inputs['buffer_bytes'])}, "
        f"{format_binary_bytes(inputs['used_bytes'])} used; feedback after "
        f"{format_time(inputs['feedback_s'])} slows the source to "
        f"{format_rate(inputs['reduced_bytes_per_s'])}"
    )
    late = "in time" if seen.in_time else f"feedback comes at {format_time(inputs['feedback_s'])}"
    rows = [
        Row("buffer full after", or_never(seen.time_to_full_s)),
        Row("deadline of feedback", or_never(seen.deadline_s), late),
        Row("excess by then", format_bytes(seen.excess_bytes)),
        Row("lost", format_bytes(seen.lost_bytes)),
        Row("queued at feedback", format_binary_bytes(seen.queued_bytes)),
        Row("drains in", or_never(seen.drain_s)),
        Row("empty at", or_never(seen.empty_at_s), "from the start"),
        Row("loss-free buffer", format_binary_bytes(seen.needed_buffer_bytes)),
    ]
    says = [
        (
            "Control must do two things: stop the growth (arrival = service) and leave room to "
            f"drain (arrival < service). Here: {seen.says}."
        )
    ]
    return net_text("Congestion at one queue", case, rows, says, seen.premises, queue.SOURCE)


def concurrency_text(
    inputs: Mapping[str, Any],
    ceilings: Sequence[concurrency.Ceiling],
    seen: concurrency.Concurrency,
) -> str:
    """Return the text of ``planner net concurrency``."""
    case = (
        f"{inputs['in_flight']} transactions of {format_binary_bytes(inputs['payload_bytes'])} in "
        f"flight, a slot free again after {format_time(inputs['turnaround_s'])}; line "
        f"{format_rate(inputs['line_bytes_per_s'])}"
    )
    rows = [
        Row(
            "sustained",
            format_rate(seen.sustained_bytes_per_s),
            f"{format_share(seen.line_share)} of the line",
        ),
        Row("set by", seen.binding),
        Row(
            f"{format_binary_bytes(inputs['size_bytes'])} take",
            format_time(seen.transfer_s),
            f"{format_time(seen.full_line_s)} on a full line",
        ),
        Row(
            "line rate needs",
            f"{seen.required_in_flight}",
            f"in flight, and {count(seen.required_issue_per_s)} issued per second",
        ),
    ]
    if len(ceilings) > 1:
        rows += [
            Row(f"ceiling: {c.name}", format_rate(c.bytes_per_s), f"{c.in_flight:g} in flight")
            for c in ceilings
        ]
    says = [
        "The line is full: more transactions in flight bring nothing."
        if seen.binding == "line"
        else "The algorithm gives the bytes, concurrency decides whether the line is full: here "
        f"{format_share(1 - seen.line_share)} of it stays empty whatever the algorithm."
    ]
    return net_text("In-flight limit", case, rows, says, seen.premises, concurrency.SOURCE)


def overlap_text(inputs: Mapping[str, Any], seen: overlap.Overlap) -> str:
    """Return the text of ``planner net overlap``."""
    case = (
        f"compute {format_time(inputs['compute_s'])}, communication "
        f"{format_time(inputs['communication_s'])} ready at {format_time(inputs['ready_s'])}, "
        f"update {format_time(inputs['update_s'])}"
    )
    rows = [
        Row("serial step", format_time(seen.serial_s)),
        Row("overlapped step", format_time(seen.overlapped_s)),
        Row("exposed", format_time(seen.exposed_s)),
        Row("free", "yes" if seen.free else "no", f"{_slack(seen)}"),
        Row(
            "communication's share",
            format_share(seen.communication_share),
            f"of the serial step: making it free speeds that up {seen.free_speedup:.3g} times",
        ),
    ]
    says = [
        "Communication is free exactly when T_ready + T_comm <= T_compute"
        + (", and here it is." if seen.free else "; here it is not."),
        (
            "Where communication is not the main part, making it zero saves only its own share: "
            "look at that before spending people on it."
        ),
    ]
    return net_text("Overlap", case, rows, says, seen.premises, overlap.SOURCE)


def _slack(seen: overlap.Overlap) -> str:
    if seen.free:
        return f"{format_time(max(0.0, seen.slack_s))} to spare"
    return f"{format_time(-seen.slack_s)} too long"


def loss_text(
    inputs: Mapping[str, Any],
    run: loss.LossRun,
    reordered: loss.Reordering,
    stormy: Storm,
) -> str:
    """Return the text of ``planner net loss``."""
    case = (
        f"{inputs['loss_share']:g} of packets of {format_binary_bytes(inputs['packet_bytes'])} "
        f"lost on {format_rate(inputs['line_bytes_per_s'])}, round trip "
        f"{format_time(inputs['round_trip_s'])}, window "
        f"{format_binary_bytes(inputs['window_bytes'])}, time-out "
        f"{format_time(inputs['retry_timeout_s'])}; {len(inputs['path_delays_s'])} paths that "
        f"differ by {format_time(max(inputs['path_delays_s']) - min(inputs['path_delays_s']))}"
    )
    rows = [
        Row("go-back-N", format_rate(run.go_back_n_bytes_per_s), "goodput"),
        Row("selective repeat", format_rate(run.selective_repeat_bytes_per_s), "goodput"),
        Row("one message", format_time(run.message_s), f"{inputs['scheme']}, mean"),
        Row("of it time-outs", format_time(run.tail_timeout_s), "of lost last packets"),
        Row("half the line at", f"{run.halving_loss_share:.2g}", "lost, with go-back-N"),
        Row("late by spraying", format_share(reordered.late_share), "of packets"),
        Row(
            "reorder buffer",
            format_binary_bytes(reordered.reorder_bytes),
            f"keeps {format_share(reordered.in_order_share)}; go-back-N without it "
            f"{format_share(reordered.go_back_n_share)}",
        ),
        Row(
            "storm",
            "yes" if stormy.storm else "no",
            ", ".join(stormy.causes)
            or f"safe up to {format_rate(stormy.safe_load_bytes_per_s)} of useful load",
        ),
    ]
    says = [
        f"Spraying: {reordered.says}.",
        "Retransmission feeds on itself: suppress it, repeat selectively, or slow the sources."
        if stormy.storm
        else f"Time-outs above {format_time(stormy.safe_timeout_s)} do not fire on queueing.",
    ]
    return net_text(
        "Loss, reordering, retransmission",
        case,
        rows,
        says,
        (*run.premises, *stormy.premises),
        loss.SOURCE,
    )
