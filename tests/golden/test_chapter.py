"""Figures as the book chapter prints them (§7.4 to §7.6; keys E-S23-071 to E-S23-074)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.network.completion import SlotCase, completion_slots
from planner.network.concurrency import Ceiling, concurrency, pcie_read_ceiling, rdma_read_ceiling
from planner.network.congestion import Congestion, congestion, drain_s, excess_bytes
from planner.network.incast import incast_gate
from planner.network.overlap import amdahl_speedup, overlap
from planner.network.walks import WalkCase, walk_table
from planner.units import GB, KIB, MIB, MS, US

SLOTS = SlotCase(
    operations=16,
    payload_bytes=8 * KIB,
    issue_interval_s=1 * US,
    service_time_s=5 * US,
    slots=16,
    poll_interval_s=20 * US,
    batch=4,
    line_bytes_per_s=50 * GB,
)
WALKS = WalkCase(
    ranks=16,
    nodes=2,
    size_bytes=192 * MIB,
    scale_up_bytes_per_s=450 * GB,
    nic_bytes_per_s=50 * GB,
    in_flight=0,
    payload_bytes=256,
    turnaround_s=2 * US,
    compute_s=20 * MS,
    update_s=2 * MS,
)


@pytest.mark.parametrize(("slots", "transfers_us", "free_us"), [(16, 20, 80), (8, 48, 80)])
def test_slots_move_the_transfers_but_not_the_release(
    slots: int, transfers_us: float, free_us: float
) -> None:
    run = completion_slots(replace(SLOTS, slots=slots))

    assert run.transfer_end_s == pytest.approx(transfers_us * US, rel=1e-12)
    assert run.release_end_s == pytest.approx(free_us * US, rel=1e-12)
    assert run.binding == "completion"


def test_four_completions_every_20_us_sustain_1_64_gb_per_s() -> None:
    run = completion_slots(SLOTS)

    assert run.sustained_operations_per_s == 200_000
    assert run.sustained_bytes_per_s / GB == pytest.approx(1.64, abs=0.005)


def test_line_rate_needs_6_1_million_completions_a_second_one_per_0_164_us() -> None:
    run = completion_slots(SLOTS)

    assert run.required_completions_per_s / 1e6 == pytest.approx(6.1, abs=0.05)
    assert run.required_interval_s / US == pytest.approx(0.164, abs=0.0005)


def test_handling_by_interrupt_is_faster() -> None:
    polled, interrupted = (
        completion_slots(SLOTS),
        completion_slots(replace(SLOTS, by_interrupt=True)),
    )

    assert interrupted.release_end_s == pytest.approx(20 * US)
    assert interrupted.sustained_bytes_per_s > polled.sustained_bytes_per_s


def _congestion(**changes: float) -> Congestion:
    case = {
        "arrival_bytes_per_s": 100 * GB,
        "service_bytes_per_s": 50 * GB,
        "buffer_bytes": 512 * KIB,
        "used_bytes": 256 * KIB,
        "feedback_s": 20 * US,
        "reduced_bytes_per_s": 40 * GB,
    }
    return congestion(**{**case, **changes})


def test_the_rest_of_the_buffer_lasts_5_2_us_and_that_is_the_deadline() -> None:
    seen = _congestion()

    assert seen.time_to_full_s == pytest.approx(5.2 * US, abs=0.05 * US)
    assert seen.deadline_s == seen.time_to_full_s
    assert not seen.in_time


def test_feedback_after_20_us_leaves_1_mb_of_excess_and_738_kb_lost() -> None:
    seen = _congestion()

    assert seen.excess_bytes == pytest.approx(1e6)
    assert seen.lost_bytes / 1e3 == pytest.approx(738, abs=0.5)


def test_feedback_after_50_us_leaves_a_backlog_of_2_5_mb() -> None:
    assert excess_bytes(100 * GB, 50 * GB, 50 * US) == pytest.approx(2.5e6)
    assert _congestion(feedback_s=50 * US).excess_bytes == pytest.approx(2.5e6)


def test_at_40_gb_per_s_the_full_buffer_drains_in_52_us_72_from_the_start() -> None:
    seen = _congestion()

    assert drain_s(512 * KIB, 50 * GB, 40 * GB) / US == pytest.approx(52, abs=0.5)
    assert seen.drain_s == pytest.approx(52 * US, abs=0.5 * US)
    assert seen.empty_at_s == pytest.approx(72 * US, abs=0.5 * US)


def test_slowing_to_the_service_rate_does_not_drain_the_queue() -> None:
    seen = _congestion(reduced_bytes_per_s=50 * GB)

    assert seen.drain_s is None
    assert seen.empty_at_s is None
    assert "dQ/dt = 0" in seen.says


def test_an_incast_of_two_senders_is_the_chapters_congestion() -> None:
    gate = incast_gate(2, 50 * GB, 50 * GB, 256 * KIB, 20 * US)

    assert not gate.passes
    assert gate.lost_bytes / 1e3 == pytest.approx(738, abs=0.5)
    assert incast_gate(2, 50 * GB, 50 * GB, 256 * KIB, 5.2 * US).passes


def test_128_transactions_of_256_bytes_carry_16_4_gb_per_s_a_third_of_the_line() -> None:
    nic = Ceiling(name="nic", in_flight=128, payload_bytes=256, turnaround_s=2 * US)

    seen = concurrency([nic], 50 * GB, 24 * MIB)

    assert seen.sustained_bytes_per_s / GB == pytest.approx(16.4, abs=0.05)
    assert seen.line_share == pytest.approx(0.33, abs=0.005)
    assert seen.transfer_s / MS == pytest.approx(1.5, abs=0.05)
    assert seen.required_in_flight == 391


def test_outstanding_reads_and_pcie_tags_have_the_published_ceilings() -> None:
    assert rdma_read_ceiling(4 * KIB, 4 * US).bytes_per_s / GB == pytest.approx(16.4, abs=0.05)
    assert pcie_read_ceiling(1 * US).bytes_per_s / GB == pytest.approx(131, abs=0.5)
    assert pcie_read_ceiling(2 * US).bytes_per_s / GB == pytest.approx(65, abs=0.6)


def test_the_better_walk_saves_83_percent_of_communication_and_21_of_the_step() -> None:
    _, ring, hierarchical = walk_table(WALKS).walks

    assert ring.communication_s / MS == pytest.approx(7.55, abs=0.005)
    assert hierarchical.inside_s / MS == pytest.approx(0.783, abs=0.0005)
    assert hierarchical.across_s / MS == pytest.approx(0.503, abs=0.0005)
    assert hierarchical.step_s / MS == pytest.approx(23.3, abs=0.05)
    assert hierarchical.saved_communication_share == pytest.approx(0.83, abs=0.005)
    assert hierarchical.saved_step_share == pytest.approx(0.21, abs=0.005)
    assert hierarchical.speedup == pytest.approx(1.27, abs=0.005)


def test_128_in_flight_make_it_a_step_of_24_3_ms_and_391_restore_23_3() -> None:
    short = walk_table(replace(WALKS, in_flight=128)).walks[-1]
    full = walk_table(replace(WALKS, in_flight=391)).walks[-1]

    assert short.communication_s / MS == pytest.approx(2.3, abs=0.05)
    assert short.step_s / MS == pytest.approx(24.3, abs=0.05)
    assert full.step_s / MS == pytest.approx(23.3, abs=0.05)


def test_amdahl_gives_1_27_for_7_6_to_1_3_ms() -> None:
    assert amdahl_speedup(22, 7.6, 7.6 / 1.3) == pytest.approx(1.27, abs=0.005)


def test_communication_ready_at_17_ms_is_free_in_a_step_of_22_ms() -> None:
    seen = overlap(20 * MS, 1.3 * MS, 2 * MS, 17 * MS)

    assert seen.overlapped_s / MS == pytest.approx(22)
    assert seen.serial_s / MS == pytest.approx(23.3)
    assert seen.free
    assert seen.exposed_s == 0


def test_it_is_free_up_to_3_ms_and_exposed_beyond() -> None:
    assert overlap(20 * MS, 3 * MS, 2 * MS, 17 * MS).free
    assert not overlap(20 * MS, 3.01 * MS, 2 * MS, 17 * MS).free
