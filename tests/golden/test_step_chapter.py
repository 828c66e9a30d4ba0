"""The chapter's critical path, figures as printed there (E-S23-073, E-S23-074)."""

from __future__ import annotations

import pytest

from planner.network.overlap import amdahl_speedup, overlap
from planner.units import MS


def test_a_contiguous_ring_makes_the_step_29_6_ms() -> None:
    assert overlap(20 * MS, 7.6 * MS, 2 * MS, 20 * MS).serial_s == pytest.approx(29.6 * MS)


def test_hierarchical_reduction_makes_the_step_23_3_ms() -> None:
    assert overlap(20 * MS, 1.3 * MS, 2 * MS, 20 * MS).serial_s == pytest.approx(23.3 * MS)


def test_communication_83_percent_faster_trains_only_21_percent_faster() -> None:
    ring = overlap(20 * MS, 7.6 * MS, 2 * MS, 20 * MS)
    walk = overlap(20 * MS, 1.3 * MS, 2 * MS, 20 * MS)

    assert round(1 - 1.3 / 7.6, 2) == 0.83
    assert round(1 - walk.serial_s / ring.serial_s, 2) == 0.21
    assert round(amdahl_speedup(22 * MS, 7.6 * MS, 7.6 / 1.3), 2) == 1.27


def test_too_few_transactions_in_flight_make_the_step_24_3_ms() -> None:
    assert overlap(20 * MS, 2.3 * MS, 2 * MS, 20 * MS).serial_s == pytest.approx(24.3 * MS)


def test_communication_that_ends_before_the_compute_is_free() -> None:
    found = overlap(20 * MS, 1.3 * MS, 2 * MS, 17 * MS)

    assert found.overlapped_s == pytest.approx(22 * MS)
    assert found.exposed_s == 0
    assert found.free


def test_communication_that_starts_a_little_later_is_not() -> None:
    found = overlap(20 * MS, 1.3 * MS, 2 * MS, 18.8 * MS)

    assert found.exposed_s == pytest.approx(0.1 * MS)
    assert not found.free
