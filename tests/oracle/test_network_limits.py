"""In-flight limits, pause levels and short windows against things done one at a time."""

from __future__ import annotations

import random

import pytest

from planner.network.concurrency import last_completion_s, nccl_ceiling
from planner.network.loss import loss
from planner.network.overlap import overlap
from planner.network.pfc import pause_check
from planner.network.queue_parts import Phase, Queue, Source
from planner.network.queues import follow
from planner.units import GB, KIB, US

LINE = 50 * GB


def test_the_last_transaction_completes_when_slots_and_line_let_it() -> None:
    draw = random.Random(74)
    for _ in range(200):
        slots, transactions = draw.randint(1, 12), draw.randint(1, 60)
        payload, turnaround_s = draw.choice([256, 4096, 65536]), draw.choice([0.1, 1, 2, 7]) * US
        wire_s = payload / LINE
        starts: list[float] = []
        ends: list[float] = []
        for k in range(transactions):
            start = starts[-1] + wire_s if k else 0.0
            if k >= slots:
                start = max(start, ends[k - slots])
            starts.append(start)
            ends.append(start + max(turnaround_s, wire_s))

        seen = last_completion_s(transactions * payload, slots, payload, turnaround_s, LINE)

        assert seen == pytest.approx(ends[-1], rel=1e-9)


@pytest.mark.parametrize(("peers", "chunks"), [(1, 8), (2, 8), (4, 4), (16, 1), (99, 1)])
def test_peers_that_share_a_buffer_of_16_steps_have_their_part_of_it(
    peers: int, chunks: int
) -> None:
    assert nccl_ceiling(10 * US, channels=3, peers_sharing=peers).in_flight == 3 * chunks


@pytest.mark.parametrize("more_bytes", [-20e3, 20e3])
def test_a_link_idles_exactly_where_it_resumes_below_its_headroom(more_bytes: float) -> None:
    needs = pause_check(LINE, 512 * KIB, 256 * KIB, 0.0, 100, 4096).headroom_bytes
    xon = needs + more_bytes
    check = pause_check(LINE, 512 * KIB, 256 * KIB, xon, 100, 4096)
    port = Queue(
        name="port", service=(Phase(start_s=0, bytes_per_s=LINE),), buffer_bytes=512 * KIB,
        used_bytes=200 * KIB, xoff_bytes=256 * KIB, xon_bytes=xon, pause_s=check.pause_s,
    )  # fmt: skip
    sender = Source(name="gpu", phases=(Phase(start_s=0, bytes_per_s=2 * LINE),))

    run = follow([sender], [port], 100 * US)

    idle = LINE * 100 * US - run.delivered_bytes > 1.0
    assert check.keeps_busy is not idle
    assert check.keeps_busy is (more_bytes > 0)


def test_go_back_n_behind_a_short_window_sends_the_window_again() -> None:
    lost, trip, window, draw = 0.02, 100, 40, random.Random(5)
    sent = useful = 0
    while useful < 200_000:
        fine = draw.random() >= lost
        sent, useful = sent + (1 if fine else window), useful + fine

    seen = loss(lost, 4096 * 100 / US, 4096, 1 * US, 40 * 4096, 2**20, 0.0)

    assert seen.round_trip_packets == pytest.approx(trip)
    assert seen.resent_share == pytest.approx(1 - useful / sent, rel=0.02)
    by_hand = useful / sent * window / trip
    assert seen.go_back_n_bytes_per_s / (4096 * 100 / US) == pytest.approx(by_hand, rel=0.02)


def test_at_the_halving_loss_go_back_n_carries_half_the_line() -> None:
    told = loss(0.0, LINE, 4096, 10 * US, 2**20, 2**20, 0.0).halving_loss_share

    assert loss(told, LINE, 4096, 10 * US, 2**20, 2**20, 0.0).go_back_n_bytes_per_s == (
        pytest.approx(LINE / 2)
    )


def test_communication_at_half_its_rate_under_compute_hides_half_as_much() -> None:
    # 3 ms of window at half the rate hide 1.5 of 2 ms
    seen = overlap(20.0, 2.0, 2.0, 17.0, contention_share=0.5)

    assert seen.exposed_s == pytest.approx(0.5)
    assert seen.overlapped_s == pytest.approx(22.5)
    assert not seen.free
