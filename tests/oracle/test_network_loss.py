"""Loss and reordering formulas against packets drawn one at a time."""

from __future__ import annotations

import random

import pytest

from planner.network.loss import (
    go_back_n_share,
    late_shares,
    loss,
    reordering,
    selective_repeat_share,
)


def go_back_n_by_packet(lost: float, trip: int, useful: int, draw: random.Random) -> float:
    """Return useful packets per slot: a lost packet costs its whole round trip of slots."""
    slots = sent = 0
    while sent < useful:
        if draw.random() < lost:
            slots += trip  # known one round trip later; everything sent meanwhile is discarded
        else:
            slots += 1
            sent += 1
    return sent / slots


def selective_by_packet(lost: float, useful: int, draw: random.Random) -> float:
    slots = sent = 0
    while sent < useful:
        slots += 1
        sent += draw.random() >= lost
    return sent / slots


@pytest.mark.parametrize(("lost", "trip"), [(0.001, 100), (0.01, 20), (0.05, 50), (0.3, 5)])
def test_goodput_is_what_packets_drawn_one_by_one_carry(lost: float, trip: int) -> None:
    draw = random.Random(1)

    assert go_back_n_share(lost, trip, trip) == pytest.approx(
        go_back_n_by_packet(lost, trip, 60_000, draw), rel=0.04
    )
    assert selective_repeat_share(lost, trip, trip) == pytest.approx(
        selective_by_packet(lost, 60_000, draw), rel=0.01
    )


def late_by_packet(
    delays: list[float], gap: float, packets: int, draw: random.Random
) -> list[float]:
    """Return the share of late packets on each path, from arrival times alone."""
    paths = [draw.randrange(len(delays)) for _ in range(packets)]
    arrivals = [i * gap + delays[path] for i, path in enumerate(paths)]
    late = [0] * len(delays)
    earliest_later = float("inf")
    for i in reversed(range(packets)):
        late[paths[i]] += earliest_later < arrivals[i]
        earliest_later = min(earliest_later, arrivals[i])
    return [late[path] / max(1, paths.count(path)) for path in range(len(delays))]


@pytest.mark.parametrize(
    "delays", [[0.0, 2.5], [0.0, 0.3, 1.7], [1.0, 1.0], [0.0, 5.2, 5.7, 9.1], [3.0]]
)
def test_late_packets_are_as_many_as_arrive_behind_a_later_one(delays: list[float]) -> None:
    drawn = late_by_packet(delays, 1.0, 60_000, random.Random(2))

    assert late_shares(delays, 1.0).tolist() == pytest.approx(drawn, abs=0.012)


def test_the_reorder_buffer_is_the_most_packets_that_ever_wait() -> None:
    draw = random.Random(3)
    for _ in range(50):
        delays = [draw.randint(0, 60) / 4 for _ in range(draw.randint(1, 4))]
        most = 0
        # the worst case: one packet on the slowest path, all behind it on the fastest
        slow, fast = max(delays), min(delays)
        waiting = sum(1 for behind in range(1, 200) if behind + fast < slow)
        most = max(most, waiting)

        seen = reordering(delays, 1.0, 1.0, 100.0)

        assert seen.reorder_packets == most


def test_a_message_waits_for_the_time_out_of_its_last_packet() -> None:
    draw = random.Random(4)
    timeout, packets, lost = 500.0, 200, 0.05
    total = 0.0
    for _ in range(4000):
        while draw.random() < lost:
            total += timeout
    waited = total / 4000

    run = loss(lost, 1.0, 1.0, 10.0, 10.0, float(packets), timeout, "selective-repeat")

    assert run.tail_timeout_s == pytest.approx(waited, rel=0.15)
    assert run.message_s == pytest.approx(packets / (1 - lost) + run.tail_timeout_s)


def test_a_packet_that_arrives_at_the_same_time_as_a_later_one_is_not_late() -> None:
    assert late_shares([0.0, 1.0], 1.0).tolist() == [0.0, 0.0]
    assert late_shares([0.0, 1.0 + 1e-9], 1.0)[1] == 0.5
