"""Queues in a row against a clock with small steps, and one queue against the closed form."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from planner.network.congestion import congestion
from planner.network.queue_parts import Phase, Queue, Source
from planner.network.queues import follow

STEP_S = 1e-3


def rate_at(phases: Sequence[Phase], now: float) -> float:
    rate = 0.0
    for phase in phases:
        if phase.start_s <= now + 1e-12:
            rate = phase.bytes_per_s
    return rate


def stepped(  # noqa: C901, PLR0912 - one loop that does everything is the point
    sources: Sequence[Source], queues: Sequence[Queue], until_s: float
) -> tuple[list[float], list[float], list[float]]:
    """Return level, loss and peak of each queue, moving everything on by a small step at a time."""
    level = [queue.used_bytes for queue in queues]
    lost = [0.0] * len(queues)
    peak = list(level)
    wants = [False] * len(queues)
    paused = [False] * len(queues)
    signals: list[tuple[float, int, bool]] = []
    told = [False] * len(queues)
    slow_at: list[float | None] = [None] * len(sources)
    for tick in range(round(until_s / STEP_S)):
        now = tick * STEP_S
        for i, queue in enumerate(queues):
            if queue.mark_bytes is not None and not told[i] and level[i] >= queue.mark_bytes:
                told[i] = True
                for j, source in enumerate(sources):
                    if source.feedback_s is not None and source.enters <= i:
                        at = now + source.feedback_s
                        slow_at[j] = at if slow_at[j] is None else min(at, slow_at[j] or at)
            if queue.xoff_bytes is not None:
                if not wants[i] and level[i] >= queue.xoff_bytes:
                    wants[i] = True
                    signals.append((now + queue.pause_s, i, True))
                elif wants[i] and level[i] <= queue.xon_bytes:
                    wants[i] = False
                    signals.append((now + queue.pause_s, i, False))
        for at, i, state in list(signals):
            if at <= now + 1e-12:
                paused[i] = state
                signals.remove((at, i, state))
        ahead = 0.0
        for i, queue in enumerate(queues):
            arriving = ahead
            for j, source in enumerate(sources):
                if source.enters == i and not paused[i]:
                    rate = rate_at(source.phases, now)
                    slow = slow_at[j]
                    if slow is not None and slow <= now + 1e-12:
                        rate = min(rate, source.reduced_bytes_per_s)
                    arriving += rate * STEP_S
            held = i + 1 < len(queues) and paused[i + 1]
            serves = 0.0 if held else rate_at(queue.service, now) * STEP_S
            ahead = min(serves, level[i] + arriving)
            level[i] += arriving - ahead
            if level[i] > queue.buffer_bytes:
                lost[i] += level[i] - queue.buffer_bytes
                level[i] = queue.buffer_bytes
            peak[i] = max(peak[i], level[i])
    return level, lost, peak


def random_phases(draw: random.Random, most: float) -> tuple[Phase, ...]:
    times = sorted(draw.sample(range(1, 20), draw.randint(0, 3)))
    return tuple(
        Phase(start_s=float(at), bytes_per_s=draw.randint(0, int(most)) * 1.0) for at in (0, *times)
    )


def random_row(draw: random.Random) -> tuple[list[Source], list[Queue]]:
    queues = []
    for i in range(draw.randint(1, 3)):
        buffer = draw.randint(20, 80)
        pausing = draw.random() < 0.5
        xoff = draw.randint(10, buffer - 5)
        queues.append(
            Queue(
                name=f"q{i}",
                service=random_phases(draw, 12),
                buffer_bytes=float(buffer),
                used_bytes=float(draw.randint(0, buffer // 2)),
                mark_bytes=draw.choice([None, float(draw.randint(1, buffer))]),
                xoff_bytes=float(xoff) if pausing else None,
                xon_bytes=float(draw.randint(0, xoff - 5)) if pausing else 0.0,
                pause_s=draw.randint(1, 20) / 10,
            )
        )
    sources = [
        Source(
            name=f"s{j}",
            phases=random_phases(draw, 10),
            enters=draw.randrange(len(queues)),
            feedback_s=draw.choice([None, draw.randint(1, 80) / 10]),
            reduced_bytes_per_s=float(draw.randint(0, 4)),
        )
        for j in range(draw.randint(1, 3))
    ]
    return sources, queues


def test_rows_of_queues_hold_and_lose_what_a_clock_with_small_steps_does() -> None:
    draw = random.Random(720)

    for _ in range(35):
        sources, queues = random_row(draw)

        run = follow(sources, queues, 15.0)
        level, lost, peak = stepped(sources, queues, 15.0)

        # a step moves at most 30 bytes/s x 1 ms, and each of a few signals may be one step late
        for told, now, gone, most in zip(run.queues, level, lost, peak, strict=True):
            assert told.end_bytes == pytest.approx(now, abs=1.5)
            assert told.lost_bytes == pytest.approx(gone, abs=1.5)
            assert told.peak_bytes == pytest.approx(most, abs=0.5)


def test_one_queue_followed_event_by_event_is_the_closed_form() -> None:
    draw = random.Random(721)

    for _ in range(300):
        service = draw.uniform(10, 100)
        case = {
            "arrival_bytes_per_s": service * draw.uniform(1.01, 3),
            "service_bytes_per_s": service,
            "buffer_bytes": draw.uniform(100, 1000),
            "used_bytes": draw.uniform(1, 99),
            "feedback_s": draw.uniform(0.1, 10),
            "reduced_bytes_per_s": service * draw.uniform(0.1, 0.95),
        }

        closed = congestion(**case)
        port = follow(
            [
                Source(
                    name="gpu",
                    phases=(Phase(start_s=0, bytes_per_s=case["arrival_bytes_per_s"]),),
                    feedback_s=case["feedback_s"],
                    reduced_bytes_per_s=case["reduced_bytes_per_s"],
                )
            ],
            [
                Queue(
                    name="port",
                    service=(Phase(start_s=0, bytes_per_s=service),),
                    buffer_bytes=case["buffer_bytes"],
                    used_bytes=case["used_bytes"],
                    mark_bytes=0.0,
                )
            ],
            (closed.empty_at_s or 0.0) * 1.1,
        ).queues[0]

        assert port.lost_bytes == pytest.approx(closed.lost_bytes, abs=1e-6)
        assert port.empty_at_s == pytest.approx(closed.empty_at_s)
        if not closed.in_time:
            assert port.full_at_s == pytest.approx(closed.time_to_full_s)
