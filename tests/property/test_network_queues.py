"""Laws of queues, slots and lines."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.network.completion import SlotCase, completion_slots
from planner.network.concurrency import required_in_flight, sustained_bytes_per_s
from planner.network.congestion import congestion
from planner.network.loss import go_back_n_share, selective_repeat_share
from planner.network.overlap import overlap
from planner.network.queue_parts import Phase, Queue, Source
from planner.network.queues import follow

rates = st.integers(0, 100).map(float)
phases = st.lists(
    st.tuples(st.integers(1, 50), rates), max_size=3, unique_by=lambda p: p[0]
).flatmap(
    lambda later: rates.map(
        lambda first: tuple(
            Phase(start_s=float(at), bytes_per_s=rate) for at, rate in [(0, first), *sorted(later)]
        )
    )
)


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[Source], list[Queue]]:
    queues = []
    for i in range(draw(st.integers(1, 3))):
        buffer = draw(st.integers(10, 1000))
        xoff = draw(st.none() | st.integers(5, buffer))
        queues.append(
            Queue(
                name=f"q{i}",
                service=draw(phases),
                buffer_bytes=float(buffer),
                used_bytes=float(draw(st.integers(0, buffer))),
                mark_bytes=draw(st.none() | st.integers(0, buffer).map(float)),
                xoff_bytes=None if xoff is None else float(xoff),
                xon_bytes=0.0 if xoff is None else float(draw(st.integers(0, xoff - 1))),
                pause_s=draw(st.integers(1, 50)) / 10,
            )
        )
    sources = [
        Source(
            name=f"s{j}",
            phases=draw(phases),
            enters=draw(st.integers(0, len(queues) - 1)),
            feedback_s=draw(st.none() | st.integers(0, 500).map(lambda t: t / 10)),
            reduced_bytes_per_s=draw(rates),
        )
        for j in range(draw(st.integers(0, 3)))
    ]
    return sources, queues


@given(rows())
def test_every_byte_is_delivered_lost_or_still_queued(
    row: tuple[list[Source], list[Queue]],
) -> None:
    sources, queues = row
    run = follow(sources, queues, 60.0)

    before = sum(queue.used_bytes for queue in queues) + run.sent_bytes
    after = run.delivered_bytes + sum(queue.lost_bytes + queue.end_bytes for queue in run.queues)
    assert after == pytest.approx(before, abs=1e-3)
    for told, queue in zip(run.queues, queues, strict=True):
        assert 0 <= told.end_bytes <= told.peak_bytes <= queue.buffer_bytes


@given(st.integers(1, 60), st.integers(1, 30), st.integers(0, 9), st.integers(0, 30), st.booleans())
def test_more_slots_never_delay_a_transfer_or_lower_the_rate(
    operations: int, slots: int, issue: int, service: int, interrupt: bool
) -> None:
    case = SlotCase(
        operations=operations,
        payload_bytes=8192,
        issue_interval_s=issue * 1e-6,
        service_time_s=service * 1e-6,
        slots=slots,
        poll_interval_s=7e-6,
        batch=3,
        line_bytes_per_s=50e9,
        by_interrupt=interrupt,
        handling_s=1e-6,
    )

    few, more = completion_slots(case), completion_slots(replace(case, slots=slots + 1))

    assert more.transfer_end_s <= few.transfer_end_s
    assert more.release_end_s <= few.release_end_s
    assert more.sustained_bytes_per_s >= few.sustained_bytes_per_s
    assert few.transfer_end_s <= few.release_end_s
    assert few.line_share <= 1


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(1e-7, 1e-3), st.floats(1e6, 1e12))
def test_little_s_law_reads_the_same_both_ways(
    in_flight: int, payload: int, turnaround_s: float, line: float
) -> None:
    needed = required_in_flight(line, payload, turnaround_s)

    assert sustained_bytes_per_s(needed, payload, turnaround_s, line) == pytest.approx(line)
    if needed > 1:
        assert sustained_bytes_per_s(needed - 1, payload, turnaround_s, line) < line * (1 + 1e-9)
    assert sustained_bytes_per_s(in_flight, payload, turnaround_s, line) <= line


@given(st.floats(0, 1), st.floats(0, 5), st.floats(0, 1), st.floats(0, 1), st.floats(0, 0.9))
def test_an_overlapped_step_lies_between_compute_and_the_serial_step(
    compute: float, communication: float, update: float, ready_part: float, contention: float
) -> None:
    compute_s = compute + 0.1

    seen = overlap(
        compute_s, communication, update, ready_part * compute_s, contention_share=contention
    )

    assert compute_s + update - 1e-12 <= seen.overlapped_s <= seen.serial_s + 1e-12
    assert seen.free == (seen.exposed_s == 0)


@given(st.floats(0, 0.99), st.floats(1, 1e4), st.floats(1, 1e4))
def test_selective_repeat_is_never_worse_than_go_back_n(
    lost: float, trip: float, window: float
) -> None:
    assert go_back_n_share(lost, trip, window) <= selective_repeat_share(lost, trip, window) + 1e-12


def test_model_functions_take_arrays_as_they_take_numbers() -> None:
    lines = np.array([10e9, 50e9, 100e9])

    many = sustained_bytes_per_s(128, 256, 2e-6, lines)

    assert many.tolist() == [sustained_bytes_per_s(128, 256, 2e-6, line) for line in lines]


@given(st.floats(0, 100), st.floats(1, 100), st.floats(1, 1000), st.floats(0, 1), st.floats(0, 50))
def test_a_longer_feedback_never_loses_less(
    arrival: float, service: float, buffer: float, used_part: float, feedback: float
) -> None:
    def lost(feedback_s: float) -> float:
        return congestion(
            arrival, service, buffer, used_part * buffer, feedback_s, service / 2
        ).lost_bytes

    assert lost(feedback) <= lost(feedback + 1)
