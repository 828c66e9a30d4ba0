"""Retransmission storms against packets followed one by one, and gates met exactly."""

from __future__ import annotations

import random

import pytest

from planner.errors import InputError
from planner.network.incast import incast_gate
from planner.network.storm import storm
from planner.units import GB, US


def copies_sent(answered_us: int, timeout_us: int, retries: int) -> int:
    """Send once, then at each time-out that passes before the answer, as long as retries last."""
    return 1 + min(retries, len(range(timeout_us, answered_us, timeout_us)))


@pytest.mark.parametrize("timeout_us", [1, 3, 7, 10, 15, 29, 30, 31])
@pytest.mark.parametrize("retries", [0, 2, 7])
def test_a_packet_is_sent_again_at_each_time_out_before_its_answer(
    timeout_us: int, retries: int
) -> None:
    # 10 us of round trip and 1 MB at 50 GB/s in front: answered after 30 us
    seen = storm(1 * GB, 50 * GB, 0.0, 1, 10 * US, 1e6, timeout_us * US, retries)

    assert seen.copies == copies_sent(30, timeout_us, retries)
    assert ("early time-outs" in seen.causes) == (seen.copies > 1)


def test_amplification_is_what_packets_drawn_one_by_one_need_for_each_useful_one() -> None:
    lost, resent, dice = 0.02, 20, random.Random(4)
    sent = useful = 0
    while useful < 200_000:
        if dice.random() < lost:
            sent += resent  # what is sent for nothing: it and those behind it
        else:
            sent, useful = sent + 1, useful + 1

    seen = storm(30 * GB, 50 * GB, lost, resent, 10 * US, 0.0, 4.3)

    assert seen.amplification == pytest.approx(sent / useful, rel=0.02)


def test_a_load_just_below_line_over_amplification_is_safe_and_just_above_is_not() -> None:
    def at(load: float) -> tuple[str, ...]:
        return storm(load, 50 * GB, 0.01, 101, 10 * US, 0.0, 4.3).causes

    limit = 50 * GB / ((0.99 + 1.01) / 0.99)

    assert at(limit * 0.999) == ()
    assert at(limit * 1.001) == ("amplification",)
    assert at(51 * GB) == ("overload",)


def test_every_fault_of_a_storm_is_named() -> None:
    with pytest.raises(InputError, match="line_bytes_per_s=0") as error:
        storm(1.0, 0.0, 1.0, 1, 1e-6, 1.0, float("nan"), -1)

    for fault in ("loss_share=1.0", "retry_timeout_s=nan", "retries=-1"):
        assert fault in str(error.value)


def test_an_incast_that_fills_its_room_to_the_byte_passes_as_its_safe_degree_says() -> None:
    # two of 50 GB/s into one: 206 kB in 4.12 us, a last digit more in floats
    gate = incast_gate(2, 50 * GB, 50 * GB, 206e3, 4.12e-6)

    assert gate.passes
    assert gate.why == "feedback in time"
    assert gate.lost_bytes == 0.0
    assert gate.safe_degree == 2
