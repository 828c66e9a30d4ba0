"""A trace follows the rules of the Trace Event Format and tells the step's time."""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise

import pytest

from planner.collectives.links import two_tiers
from planner.layout import Layout
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


def test_there_is_one_row_a_stage_and_traffic_under_it() -> None:
    document = told(LAYOUTS["1f1b"])[0].document

    names = [e["args"]["name"] for e in document["traceEvents"] if e["name"] == "process_name"]
    rows = {(e["pid"], e["tid"]): e["args"]["name"] for e in document["traceEvents"]
            if e["name"] == "thread_name"}  # fmt: skip
    under = {
        e["name"] for e in document["traceEvents"]
        if e["ph"] == "X" and rows[e["pid"], e["tid"]] == "communication"
    }  # fmt: skip
    assert names == [f"stage {i}" for i in range(4)]
    assert under == {"TP", "DP gradients and parameters"}


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


def test_a_long_run_is_cut_to_whole_rounds() -> None:
    layout = Layout(tp=8, pp=16, vpp=5, dp=1, global_batch=16384, seq=512)

    trace, _ = told(layout)

    assert trace.micro_batches < 16384
    assert trace.micro_batches % 16 == 0
    assert len(trace.timeline.start_s) <= 50_000


@pytest.mark.parametrize("name", sorted(LAYOUTS))
def test_the_trace_ends_where_the_step_does(name: str) -> None:
    document = told(LAYOUTS[name])[0].document
    ends = [event["ts"] + event["dur"] for event in document["traceEvents"] if event["ph"] == "X"]

    assert max(ends) / 1e6 == pytest.approx(document["otherData"]["step_s"], rel=0.03)
