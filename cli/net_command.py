"""``planner net``: the network models alone, each with its premises.

Without options each prints the book chapter's case (§7.4 to §7.6).
"""

# ruff: noqa: PLC0415 - a command imports what it needs when it is called

from __future__ import annotations

from typing import Annotated

import typer

from cli import (
    net_cluster_command,
    net_collectives_command,
    net_deadlock_command,
    net_endpoints_command,
    net_link_command,
    net_phases_command,
    net_schedule_command,
)
from cli.net_inputs import Given, number_option, parts_of, put_out, text_option
from cli.planner_options import Json, Out, group_app

app = group_app("The network models alone, each with its premises.")

LineRate = Annotated[str, text_option("--line-rate", "What the link carries.")]
RoundTrip = Annotated[str, text_option("--round-trip", "Until a packet's fate is known.")]


@app.command("slots")
def slots(
    operations: Annotated[str, number_option("--operations", "Operations to be done.")] = "16",
    payload: Annotated[str, text_option("--payload", "Data of one operation.")] = "8KiB",
    issue_interval: Annotated[
        str, text_option("--issue-interval", "Least time between two issues.")
    ] = "1us",
    service_time: Annotated[
        str, text_option("--service-time", "From being on the wire until done.")
    ] = "5us",
    slots: Annotated[str, number_option("--slots", "Operations issued and not released.")] = "16",
    poll_interval: Annotated[
        str, text_option("--poll-interval", "Software looks for completions this often.")
    ] = "20us",
    batch: Annotated[str, number_option("--batch", "Completions handled at one poll.")] = "4",
    line_rate: LineRate = "50GB/s",
    interrupt: Annotated[
        bool, typer.Option("--interrupt", help="Handle completions as they come, not at polls.")
    ] = False,
    handling_time: Annotated[
        str, text_option("--handling-time", "Software's time for one interrupt.")
    ] = "0us",
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Show when transfers end, when slots are free, and what binds."""
    from cli.net_reports import slots_text
    from planner.network.completion import SOURCE, SlotCase, completion_slots
    from planner.units import parse_bytes, parse_rate, parse_time

    given = Given()
    given.count("operations", "--operations", operations)
    given.quantity("payload_bytes", "--payload", payload, parse_bytes)
    given.quantity("issue_interval_s", "--issue-interval", issue_interval, parse_time)
    given.quantity("service_time_s", "--service-time", service_time, parse_time)
    given.count("slots", "--slots", slots)
    given.quantity("poll_interval_s", "--poll-interval", poll_interval, parse_time)
    given.count("batch", "--batch", batch)
    given.quantity("line_bytes_per_s", "--line-rate", line_rate, parse_rate)
    given.values["by_interrupt"] = interrupt
    given.quantity("handling_s", "--handling-time", handling_time, parse_time)
    inputs = given.values
    with given.finish():
        case = SlotCase(**inputs)
        run = completion_slots(case)
    body = {**parts_of(run), "source": SOURCE}
    put_out("slots", inputs, body, slots_text(case, run), as_json=as_json, out=out)


@app.command("congestion")
def congestion(
    arrival: Annotated[str, text_option("--arrival", "Rate until feedback acts.")] = "100GB/s",
    service: Annotated[str, text_option("--service", "Rate that leaves the queue.")] = "50GB/s",
    buffer: Annotated[str, text_option("--buffer", "What the queue can hold.")] = "512KiB",
    used: Annotated[str, text_option("--used", "What it holds at the start.")] = "256KiB",
    feedback: Annotated[
        str, text_option("--feedback", "From the start until the source has slowed.")
    ] = "20us",
    reduced: Annotated[str, text_option("--reduced", "Rate from then on.")] = "40GB/s",
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Show when a buffer is full, what is lost, and when it is empty."""
    from cli.net_reports import congestion_text
    from planner.network import congestion as model
    from planner.units import parse_bytes, parse_rate, parse_time

    given = Given()
    given.quantity("arrival_bytes_per_s", "--arrival", arrival, parse_rate)
    given.quantity("service_bytes_per_s", "--service", service, parse_rate)
    given.quantity("buffer_bytes", "--buffer", buffer, parse_bytes, 1e30)
    given.quantity("used_bytes", "--used", used, parse_bytes, 0.0)
    given.quantity("feedback_s", "--feedback", feedback, parse_time)
    given.quantity("reduced_bytes_per_s", "--reduced", reduced, parse_rate)
    inputs = given.values
    with given.finish():
        seen = model.congestion(**inputs)
    body = {**parts_of(seen), "source": model.SOURCE}
    put_out("congestion", inputs, body, congestion_text(inputs, seen), as_json=as_json, out=out)


@app.command("concurrency")
def concurrency(
    in_flight: Annotated[
        str, number_option("--in-flight", "Transactions the NIC may have outstanding.")
    ] = "128",
    payload: Annotated[str, text_option("--payload", "Data of one transaction.")] = "256B",
    turnaround: Annotated[
        str, text_option("--turnaround", "From issue until the slot is free.")
    ] = "2us",
    line_rate: LineRate = "50GB/s",
    size: Annotated[str, text_option("--size", "Data to be moved.")] = "24MiB",
    channels: Annotated[
        str, number_option("--channels", "NCCL channels to the peer; 0: not NCCL.")
    ] = "0",
    chunk: Annotated[str, text_option("--chunk", "One slot of a channel's buffer.")] = "512KiB",
    steps: Annotated[str, number_option("--steps", "NCCL_STEPS, slots of a buffer.")] = "8",
    read_queue_pairs: Annotated[
        str, number_option("--read-queue-pairs", "Queue pairs that READ; 0: no READ.")
    ] = "0",
    rd_atom: Annotated[
        str, number_option("--max-qp-rd-atom", "READs outstanding on a queue pair.")
    ] = "16",
    message: Annotated[str, text_option("--message", "Data of one READ.")] = "4KiB",
    round_trip: Annotated[
        str, text_option("--round-trip", "Of a chunk or a READ over the network.")
    ] = "10us",
    pcie_tags: Annotated[
        str, number_option("--pcie-tags", "PCIe reads outstanding; 0: not counted.")
    ] = "0",
    read_request: Annotated[
        str, text_option("--read-request", "Largest PCIe read request.")
    ] = "512B",
    pcie_latency: Annotated[str, text_option("--pcie-latency", "Of one PCIe read.")] = "1us",
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Show the rate that transactions in flight keep up."""
    from cli.net_reports import concurrency_text
    from planner.network import concurrency as model
    from planner.units import parse_bytes, parse_rate, parse_time

    given = Given()
    given.count("in_flight", "--in-flight", in_flight)
    given.quantity("payload_bytes", "--payload", payload, parse_bytes)
    given.quantity("turnaround_s", "--turnaround", turnaround, parse_time)
    given.quantity("line_bytes_per_s", "--line-rate", line_rate, parse_rate)
    given.quantity("size_bytes", "--size", size, parse_bytes)
    given.count("channels", "--channels", channels, least=0)
    given.quantity("chunk_bytes", "--chunk", chunk, parse_bytes)
    given.count("steps", "--steps", steps)
    given.count("read_queue_pairs", "--read-queue-pairs", read_queue_pairs, least=0)
    given.count("max_qp_rd_atom", "--max-qp-rd-atom", rd_atom)
    given.quantity("message_bytes", "--message", message, parse_bytes)
    given.quantity("round_trip_s", "--round-trip", round_trip, parse_time)
    given.count("pcie_tags", "--pcie-tags", pcie_tags, least=0)
    given.quantity("read_request_bytes", "--read-request", read_request, parse_bytes)
    given.quantity("pcie_latency_s", "--pcie-latency", pcie_latency, parse_time)
    inputs = given.values
    with given.finish():
        ceilings = model.ceilings_of(**given.but("line_bytes_per_s", "size_bytes"))
        seen = model.concurrency(ceilings, inputs["line_bytes_per_s"], inputs["size_bytes"])
    body = {
        **parts_of(seen),
        "ceilings": [{**parts_of(c), "bytes_per_s": c.bytes_per_s} for c in ceilings],
        "source": model.SOURCE,
    }
    text = concurrency_text(inputs, ceilings, seen)
    put_out("concurrency", inputs, body, text, as_json=as_json, out=out)


@app.command("overlap")
def overlap(
    compute: Annotated[str, text_option("--compute", "Compute of the step.")] = "20ms",
    communication: Annotated[
        str, text_option("--communication", "Communication, alone on its interface.")
    ] = "1.3ms",
    update: Annotated[str, text_option("--update", "What follows both.")] = "2ms",
    ready: Annotated[str, text_option("--ready", "Until the data to send exists.")] = "17ms",
    contention: Annotated[
        str,
        number_option("--contention", "Part of its rate communication loses to compute, 0 to 1."),
    ] = "0",
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Show what overlap hides, and what free communication saves."""
    from cli.net_reports import overlap_text
    from planner.network import overlap as model
    from planner.units import parse_time

    given = Given()
    given.quantity("compute_s", "--compute", compute, parse_time, 1e20)
    given.quantity("communication_s", "--communication", communication, parse_time)
    given.quantity("update_s", "--update", update, parse_time)
    given.quantity("ready_s", "--ready", ready, parse_time, 0.0)
    given.number("contention_share", "--contention", contention, most=1.0)
    inputs = given.values
    with given.finish():
        seen = model.overlap(**inputs)
    body = {**parts_of(seen), "source": model.SOURCE}
    put_out("overlap", inputs, body, overlap_text(inputs, seen), as_json=as_json, out=out)


@app.command("loss")
def loss(
    lost: Annotated[str, number_option("--loss", "Share of packets lost, below 1.")] = "1e-4",
    line_rate: LineRate = "50GB/s",
    packet: Annotated[str, text_option("--packet", "Size of a packet.")] = "4KiB",
    round_trip: RoundTrip = "10us",
    window: Annotated[str, text_option("--window", "What may be unacknowledged.")] = "1MiB",
    message: Annotated[str, text_option("--message", "Size of one message.")] = "1MiB",
    timeout: Annotated[
        str, text_option("--timeout", "Wait before a packet is sent again unasked.")
    ] = "4.295s",
    retries: Annotated[str, number_option("--retries", "Times it is sent again.")] = "7",
    scheme: Annotated[
        str, typer.Option("--scheme", help="go-back-n or selective-repeat.")
    ] = "go-back-n",
    paths: Annotated[
        str, typer.Option("--paths", metavar="TIME,…", help="Delay of each sprayed path.")
    ] = "4us,4.5us",
    load: Annotated[str, text_option("--load", "Useful data offered to the line.")] = "40GB/s",
    buffer: Annotated[str, text_option("--buffer", "Buffer at the bottleneck.")] = "1MiB",
    as_json: Json = False,
    out: Out = None,
) -> None:
    """Show what loss, reordering and resending leave of a line."""
    from cli.net_reports import loss_text
    from planner.network import loss as model
    from planner.network.storm import storm
    from planner.units import parse_bytes, parse_rate, parse_time

    given = Given()
    given.number("loss_share", "--loss", lost, below=1.0)
    given.quantity("line_bytes_per_s", "--line-rate", line_rate, parse_rate)
    given.quantity("packet_bytes", "--packet", packet, parse_bytes)
    given.quantity("round_trip_s", "--round-trip", round_trip, parse_time)
    given.quantity("window_bytes", "--window", window, parse_bytes, 1e30)
    given.quantity("message_bytes", "--message", message, parse_bytes)
    given.quantity("retry_timeout_s", "--timeout", timeout, parse_time)
    given.word("scheme", "--scheme", scheme)
    given.times("path_delays_s", "--paths", paths)
    given.quantity("load_bytes_per_s", "--load", load, parse_rate)
    given.quantity("buffer_bytes", "--buffer", buffer, parse_bytes)
    given.count("retries", "--retries", retries, least=0, most=1000)
    inputs = given.values
    with given.finish():
        run = model.loss(
            **given.but("path_delays_s", "load_bytes_per_s", "buffer_bytes", "retries")
        )
        reordered = model.reordering(
            inputs["path_delays_s"],
            inputs["line_bytes_per_s"],
            inputs["packet_bytes"],
            inputs["round_trip_s"],
            inputs["loss_share"],
        )
        stormy = storm(
            load_bytes_per_s=inputs["load_bytes_per_s"],
            line_bytes_per_s=inputs["line_bytes_per_s"],
            loss_share=inputs["loss_share"],
            resent_packets=run.round_trip_packets if scheme == "go-back-n" else 1.0,
            round_trip_s=inputs["round_trip_s"],
            buffer_bytes=inputs["buffer_bytes"],
            retry_timeout_s=inputs["retry_timeout_s"],
            retries=inputs["retries"],
        )
    body = {**parts_of(run), "reordering": reordered, "storm": stormy, "source": model.SOURCE}
    text = loss_text(inputs, run, reordered, stormy)
    put_out("loss", inputs, body, text, as_json=as_json, out=out)


for _more in (
    net_link_command,
    net_endpoints_command,
    net_phases_command,
    net_cluster_command,
    net_collectives_command,
    net_schedule_command,
    net_deadlock_command,
):
    _more.add_to(app)
