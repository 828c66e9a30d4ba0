"""The slot model against a simulator that does one thing at a time."""

from __future__ import annotations

import random

import pytest

from planner.network.completion import SlotCase, completion_slots
from planner.network.slot_events import Ticks, ends, ticks_per_operation
from planner.units import GB, KIB, US


def slow_ends(case: Ticks, operations: int) -> tuple[int, int]:
    """Return transfer end and release end by moving a clock one tick at a time."""
    waiting = list(range(operations))
    issued: dict[int, int] = {}
    wire_queue: list[int] = []
    done_at: dict[int, int] = {}
    released: dict[int, int] = {}
    line_free = next_issue = handler_free = clock = 0
    while len(released) < operations:
        # software first: a completion or a release at this tick counts at this tick
        if case.poll and clock and clock % case.poll == 0:
            finished = [k for k in sorted(done_at) if k not in released and done_at[k] <= clock]
            for k in finished[: case.batch]:
                released[k] = clock
        while not case.poll:
            finished = [k for k in sorted(done_at) if k not in released and done_at[k] <= clock]
            if not finished or clock < max(handler_free, done_at[finished[0]]):
                break
            # the handler works on one at a time; its slot is free when the work is done
            start = max(done_at[finished[0]], handler_free)
            if start + case.handling > clock:
                break
            released[finished[0]] = start + case.handling
            handler_free = start + case.handling
        busy = len(issued) - sum(1 for at in released.values() if at <= clock)
        while waiting and clock >= next_issue and busy < case.slots:
            k = waiting.pop(0)
            issued[k] = clock
            wire_queue.append(k)
            busy += 1
            next_issue = clock + case.issue
        while wire_queue and line_free <= clock:
            k = wire_queue.pop(0)
            line_free = clock + case.wire
            done_at[k] = clock + case.done
        clock += 1
    return max(done_at.values()), max(released.values())


def random_case(draw: random.Random) -> tuple[Ticks, int]:
    wire = draw.randint(1, 8)
    case = Ticks(
        issue=draw.randint(0, 8),
        wire=wire,
        done=wire + draw.randint(0, 25),
        poll=draw.choice([0, draw.randint(1, 30)]),
        handling=draw.randint(1, 6),
        slots=draw.randint(1, 10),
        batch=draw.randint(1, 6),
    )
    return case, draw.randint(1, 40)


def test_a_thousand_random_runs_end_at_the_very_tick_of_the_simulator() -> None:
    draw = random.Random(71)

    for _ in range(1200):
        case, operations = random_case(draw)

        assert ends(case, operations) == slow_ends(case, operations), (case, operations)


def recurrence_ends(case: Ticks, operations: int) -> tuple[int, int]:
    """Return both ends from the recurrences of the module, without periods or closed forms."""
    starts: list[int] = []
    released: list[int] = []
    issue = 0
    for k in range(operations):
        issue = issue + case.issue if k else 0
        if k >= case.slots:
            issue = max(issue, released[k - case.slots])
        starts.append(max(issue, starts[-1] + case.wire) if k else issue)
        done = starts[-1] + case.done
        if case.poll:
            poll = -(-done // case.poll)
            if k:
                poll = max(poll, released[-1] // case.poll)
            if k >= case.batch:
                poll = max(poll, released[k - case.batch] // case.poll + 1)
            released.append(poll * case.poll)
        else:
            released.append(max(done, released[-1] if k else 0) + case.handling)
    return starts[-1] + case.done, released[-1]


def test_long_runs_that_jump_whole_periods_end_where_the_recurrence_does() -> None:
    draw = random.Random(72)

    for _ in range(250):
        case, _ = random_case(draw)
        operations = draw.randint(500, 3000)

        assert ends(case, operations) == recurrence_ends(case, operations), (case, operations)


def test_the_sustained_rate_is_the_slope_of_long_runs() -> None:
    draw = random.Random(73)

    for _ in range(200):
        case, _ = random_case(draw)
        slowest, _ = ticks_per_operation(case).slowest

        # a common multiple of the periods of small cases: the slope is exact over it
        window = 2**4 * 3**2 * 5 * 7 * 11 * 13 * slowest.denominator
        later, sooner = ends(case, 40_000 + window)[1], ends(case, 40_000)[1]

        assert abs((later - sooner) - slowest * window) <= 2 * max(case.poll, 1), case


def test_what_is_said_to_be_needed_for_line_rate_gives_line_rate() -> None:
    draw = random.Random(74)

    for _ in range(100):
        payload = draw.choice([1, 4, 8, 64]) * KIB
        case = SlotCase(
            operations=10,
            payload_bytes=payload,
            issue_interval_s=1 * US,
            service_time_s=draw.randint(1, 20) * US,
            slots=4,
            poll_interval_s=draw.randint(1, 40) * US,
            batch=1,
            line_bytes_per_s=50 * GB,
        )
        needs = completion_slots(case)

        met = completion_slots(
            SlotCase(
                operations=10,
                payload_bytes=payload,
                issue_interval_s=0.0,
                service_time_s=case.service_time_s,
                slots=needs.required_slots,
                poll_interval_s=case.poll_interval_s,
                batch=needs.required_batch or 1,
                line_bytes_per_s=50 * GB,
            )
        )

        assert met.binding == "link"
        assert met.line_share == pytest.approx(1.0)


def test_a_transfer_takes_its_time_on_the_wire_even_where_service_is_shorter() -> None:
    # 50 kB at 50 GB/s: 1 us each, one behind the other
    case = SlotCase(
        operations=10, payload_bytes=50e3, issue_interval_s=0.0, service_time_s=0.2 * US,
        slots=16, poll_interval_s=20 * US, batch=16, line_bytes_per_s=50 * GB,
    )  # fmt: skip

    run = completion_slots(case)

    assert run.transfer_end_s == pytest.approx(10 * US)
    assert run.release_end_s == pytest.approx(20 * US)
