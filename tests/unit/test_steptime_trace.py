"""A trace follows the rules of the Trace Event Format and tells the step's time."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import pytest

from planner.collectives.links import two_tiers
from planner.errors import LayoutError
from planner.layout import Layout
from planner.steptime import trace as trace_module
from planner.steptime.columns import columns_of
from planner.steptime.communication import pipeline_hop_s
from planner.steptime.rates import rates_of
from planner.steptime.spread import contiguous_spread
from planner.steptime.step import step_columns
from planner.steptime.trace import Traced, traced
from planner.steptime.wires import wires_of
from tests.unit.test_steptime_step import DENSE, H100

LINKS = two_tiers(inside_bytes_per_s=450e9, nic_bytes_per_s=50e9)
LAYOUTS = {
    "1f1b": Layout(tp=8, pp=4, dp=2, global_batch=16, seq=4096),
    "interleaved": Layout(tp=8, pp=4, vpp=5, dp=2, global_batch=16, seq=4096),
    "gpipe": Layout(tp=8, pp=4, dp=2, global_batch=16, seq=4096, schedule="gpipe"),
    "zb-h1": Layout(tp=8, pp=4, dp=2, global_batch=16, seq=4096, schedule="zb-h1"),
    "dualpipe": Layout(tp=8, pp=4, dp=2, global_batch=16, seq=4096, schedule="dualpipe"),
    "one stage": Layout(tp=8, dp=2, global_batch=16, seq=4096),
}


def told(layout: Layout) -> tuple[Traced, float]:
    columns = columns_of(layout)
    spreads = contiguous_spread(columns, 8.0)
    step = step_columns(DENSE, columns, accelerator=H100, links=LINKS, spreads=spreads)
    rates = rates_of(H100, columns)
    wires = wires_of(spreads, LINKS, rates.inner_share, rates.outer_share)
    hop = float(pipeline_hop_s(DENSE, columns, wires))
    return traced(step, columns, hop), float(step.pipeline.total_s)


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_events_have_what_the_format_asks_for(name: str) -> None:
    document = json.loads(json.dumps(told(LAYOUTS[name])[0].document))

    assert document["displayTimeUnit"] in {"ms", "ns"}
    for event in document["traceEvents"]:
        assert {"ph", "name", "pid", "tid", "ts"} <= set(event)
        assert event["ph"] in {"X", "M"}
        if event["ph"] == "X":
            assert event["dur"] > 0
            assert event["ts"] >= 0


@pytest.mark.parametrize("global_batch", [8, 12, 18])
def test_dualpipe_is_not_drawn_as_another_schedule(global_batch: int) -> None:
    """Four stages: eight micro-batches a replica at least, and an even number of them."""
    few = replace(LAYOUTS["dualpipe"], global_batch=global_batch)

    with pytest.raises(LayoutError, match="DualPipe needs pp and the micro-batches even"):
        told(few)


def test_a_long_pipeline_is_cut_to_two_rounds_of_dualpipe() -> None:
    layout = Layout(tp=1, pp=128, global_batch=512, seq=4096, schedule="dualpipe")
    document = told(layout)[0].document["otherData"]

    assert (document["schedule"], document["micro_batches_drawn"]) == ("dualpipe", 256)


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_events_of_a_row_do_not_overlap(name: str) -> None:
    rows = defaultdict(list)
    for event in told(LAYOUTS[name])[0].document["traceEvents"]:
        if event["ph"] == "X":
            start = round(event["ts"] * 1000)
            rows[event["pid"], event["tid"]].append((start, start + round(event["dur"] * 1000)))

    for spans in rows.values():
        spans.sort()
        for (_, end), (start, _) in pairwise(spans):
            assert start >= end  # whole nanoseconds, as viewers count them


@pytest.mark.parametrize("name", ["1f1b", "interleaved", "gpipe", "zb-h1", "one stage"])
def test_the_passes_end_when_the_pipeline_of_the_closed_form_does(name: str) -> None:
    trace, total_s = told(LAYOUTS[name])

    # middle stages are drawn with their mean; hops of the interleaved form are within a few %
    assert trace.timeline.total_s == pytest.approx(total_s, rel=0.03)


def test_a_stage_has_a_row_of_passes_and_traffic_under_it() -> None:
    document = told(LAYOUTS["1f1b"])[0].document

    names = [e["args"]["name"] for e in document["traceEvents"] if e["name"] == "process_name"]
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in document["traceEvents"]
            if e["name"] == "thread_name"}  # fmt: skip
    under = {
        e["name"] for e in document["traceEvents"]
        if e["ph"] == "X" and rows[e["pid"], e["tid"]] == "communication"
    }  # fmt: skip
    assert names == [f"stage {i}" for i in range(4)]
    assert under == {"TP", "PP", "DP gradients and parameters"}


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_perfetto_keeps_every_row_apart(name: str) -> None:
    """Its importer merges thread 0 with the one numbered as its process, and knows a thread by
    its number alone where two processes share one.
    """
    events = told(LAYOUTS[name])[0].document["traceEvents"]

    owner = {event["tid"]: event["pid"] for event in events}
    assert all(owner[event["tid"]] == event["pid"] for event in events)
    assert not set(owner) & {0, *owner.values()}
    stages = len(set(owner.values()))
    assert len(owner) == 2 * stages


def test_a_long_run_is_cut_to_whole_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "MOST_PASSES", 5000)
    layout = Layout(tp=8, pp=16, vpp=5, dp=1, global_batch=16384, seq=512)

    trace, _ = told(layout)

    assert trace.micro_batches == 32  # two rounds of 16 stages: one alone has another order
    assert len(trace.timeline.start_s) == 5120


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_the_last_event_ends_where_the_step_does(name: str) -> None:
    document = told(LAYOUTS[name])[0].document
    ends = [event["ts"] + event["dur"] for event in document["traceEvents"] if event["ph"] == "X"]

    assert max(ends) / 1e6 == pytest.approx(document["otherData"]["step_s"], rel=1e-7)


def test_micro_batches_that_are_not_drawn_are_one_event_of_their_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(trace_module, "MOST_PASSES", 256)  # 8 rounds of 4 stages, 32 micro-batches
    trace, pipeline_s = told(Layout(tp=8, pp=4, dp=1, global_batch=64, seq=4096))
    events = [e for e in trace.document["traceEvents"] if e["ph"] == "X"]

    (undrawn,) = [e for e in events if e["pid"] == 1 and e["name"] == "32 more micro-batches"]
    assert undrawn["dur"] / 1e6 == pytest.approx(pipeline_s - trace.timeline.total_s)
    assert undrawn["dur"] / 1e6 == pytest.approx(trace.timeline.total_s * 32 / 35, rel=0.03)
    ends = max(event["ts"] + event["dur"] for event in events)
    assert ends / 1e6 == pytest.approx(trace.document["otherData"]["step_s"], rel=1e-7)


def test_the_second_stage_waits_one_hop_for_the_first_forward() -> None:
    trace, _ = told(LAYOUTS["1f1b"])
    events = [e for e in trace.document["traceEvents"] if e["ph"] == "X"]

    first = next(e for e in events if e["pid"] == 1 and e["name"] == "forward 0")
    then = next(e for e in events if e["pid"] == 2 and e["name"] == "forward 0")
    hop = min((e for e in events if e["pid"] == 2 and e["name"] == "PP"), key=lambda e: e["ts"])
    assert hop["ts"] == pytest.approx(first["ts"] + first["dur"])
    assert hop["ts"] + hop["dur"] == pytest.approx(then["ts"])


def test_processes_are_numbered_from_1_and_stages_said_to_be_alike() -> None:
    """Process 0 is the kernel's idle one to Perfetto (google/perfetto#394)."""
    document = told(LAYOUTS["1f1b"])[0].document

    assert {event["pid"] for event in document["traceEvents"]} == {1, 2, 3, 4}
    assert "slowest group of every degree" in document["otherData"]["stages"]
