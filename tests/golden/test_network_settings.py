"""Published figures of NCCL, PFC and NIC time-outs."""

from __future__ import annotations

import pytest

from planner.errors import InputError
from planner.network.concurrency import nccl_ceiling
from planner.network.loss import timeout_s
from planner.network.pfc import headroom_bytes, standard_response_bytes
from planner.units import GB, KIB, US


def test_one_channel_of_eight_512_kib_slots_covers_84_us_at_50_gb_per_s() -> None:
    # NCCL 2.30: NCCL_STEPS 8, NCCL_BUFFSIZE 4 MiB
    assert nccl_ceiling(83.8 * US).bytes_per_s >= 50 * GB
    assert nccl_ceiling(85 * US).bytes_per_s < 50 * GB


def test_eight_chunks_of_128_kib_cover_21_us() -> None:
    # NCCL_P2P_NET_CHUNKSIZE 128 KiB
    assert nccl_ceiling(20.9 * US, chunk_bytes=128 * KIB).bytes_per_s >= 50 * GB
    assert nccl_ceiling(21.1 * US, chunk_bytes=128 * KIB).bytes_per_s < 50 * GB


def test_nccl_ib_timeout_20_is_4_3_seconds() -> None:
    assert timeout_s(20) == pytest.approx(4.3, abs=0.01)


def test_a_sender_may_take_as_many_pause_quanta_to_react_as_the_standard_allows() -> None:
    # IEEE 802.3 31B.3.7, as published tables of switches give it in bit times
    bit_times = {10: 30_720, 25: 40_960, 40: 60_416, 100: 201_728, 400: 463_360}
    for gbit_per_s, bits in bit_times.items():
        assert standard_response_bytes(gbit_per_s * 1e9 / 8) == bits / 8
    assert standard_response_bytes(300e9 / 8) == 463_360 / 8  # as the next standard rate
    assert headroom_bytes(50e9, 0, 4096) == 2 * 4096 + 463_360 / 8
    with pytest.raises(InputError, match=r"known up to 800 Gb/s .* --response"):
        standard_response_bytes(100.1e9)


def test_headroom_grows_by_125_bytes_a_metre_of_100g_cable() -> None:
    # pure round trip of the cable: 2 x 5 ns x 12.5 GB/s
    slope = (headroom_bytes(12.5e9, 300, 9216) - headroom_bytes(12.5e9, 100, 9216)) / 200

    assert slope == pytest.approx(125)


def test_a_switch_vendors_100g_tables_leave_more_than_the_headroom_formula() -> None:
    # published xoff bytes by cable length; small cells waste up to 2.8 times the cable's part
    for metres, xoff in ((5, 165568), (40, 177632), (300, 268736)):
        assert headroom_bytes(12.5e9, metres, 9216) < xoff
