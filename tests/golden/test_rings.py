"""The book's three walks of one reduction (§7.6): 16 ranks on 2 nodes, 192 MiB.

NIC 50 GB/s a GPU, scale-up 450 GB/s, no start-up; compute 20 ms, update 2 ms. Keys E-S23-073/074.
"""

from __future__ import annotations

import pytest

from planner.collectives.cost import CollectiveTime, cheapest
from planner.collectives.links import LinkNumbers, Spread, in_flight_bytes_per_s, two_tiers
from planner.units import GB, MIB, MS, US

VECTOR_BYTES = 192 * MIB
SIXTEEN_ON_TWO = Spread.of(16, 8)


def _links(nic_bytes_per_s: float = 50 * GB, **kwargs: float) -> LinkNumbers:
    return two_tiers(
        inside_bytes_per_s=450 * GB,
        nic_bytes_per_s=nic_bytes_per_s,
        shared_bytes_per_s=kwargs.get("shared_bytes_per_s"),
    )


def _all_reduce(algorithm: str, links: LinkNumbers) -> CollectiveTime:
    return cheapest("all_reduce", VECTOR_BYTES, SIXTEEN_ON_TWO, links, available=[algorithm])


def test_the_contiguous_ring_takes_7_55_ms_and_a_step_of_29_6() -> None:
    ring = _all_reduce("contiguous_ring", _links())

    assert float(ring.time_s) / MS == pytest.approx(7.55, abs=0.005)
    # the book rounds 7.55 up to 7.6 before it adds 20 and 2
    assert 20 + float(ring.time_s) / MS + 2 == pytest.approx(29.6, abs=0.051)


def test_hierarchical_reduction_takes_0_783_inside_and_0_503_across() -> None:
    walk = _all_reduce("hierarchical", _links())

    assert float(walk.inside_s) / MS == pytest.approx(0.783, abs=0.0005)
    assert float(walk.across_s) / MS == pytest.approx(0.503, abs=0.0005)
    assert float(walk.time_s) / MS == pytest.approx(1.286, abs=0.0005)
    assert 20 + float(walk.time_s) / MS + 2 == pytest.approx(23.3, abs=0.05)


def test_83_per_cent_less_communication_is_21_per_cent_less_step() -> None:
    ring_s = float(_all_reduce("contiguous_ring", _links()).time_s)
    walk_s = float(_all_reduce("hierarchical", _links()).time_s)

    steps = [20 * MS + t + 2 * MS for t in (ring_s, walk_s)]

    assert 1 - walk_s / ring_s == pytest.approx(0.83, abs=0.005)
    assert 1 - steps[1] / steps[0] == pytest.approx(0.21, abs=0.005)
    assert steps[0] / steps[1] == pytest.approx(1.27, abs=0.005)


def test_128_transactions_in_flight_stretch_24_mib_to_1_5_ms_and_the_step_to_24_3() -> None:
    rate = float(in_flight_bytes_per_s(50 * GB, 128, 256, 2 * US))
    walk = _all_reduce("hierarchical", _links(rate))

    assert rate / GB == pytest.approx(16.4, abs=0.05)
    assert float(walk.across_s) / MS == pytest.approx(1.5, abs=0.05)
    assert float(walk.time_s) / MS == pytest.approx(2.3, abs=0.05)
    assert 20 + float(walk.time_s) / MS + 2 == pytest.approx(24.3, abs=0.05)


def test_391_transactions_restore_the_step_of_23_3_ms() -> None:
    rate = float(in_flight_bytes_per_s(50 * GB, 391, 256, 2 * US))

    walk = _all_reduce("hierarchical", _links(rate))

    assert 20 + float(walk.time_s) / MS + 2 == pytest.approx(23.3, abs=0.05)


def test_an_interleaved_ring_ties_alone_and_loses_8_times_on_a_shared_cut() -> None:
    """Each of 16 hops crosses on its own NIC: 2 x 15/16 V / 50 GB/s, if nobody else is there.

    A cut of 8 GPUs oversubscribed 8:1 gives 6.25 GB/s to each of the 8 interleaved flows, while
    the contiguous ring's one flow may still use the whole 50 GB/s.
    """
    alone = _all_reduce("interleaved_ring", _links())
    shared = _links(shared_bytes_per_s=6.25 * GB)

    assert float(alone.time_s) / MS == pytest.approx(7.55, abs=0.005)
    assert float(_all_reduce("contiguous_ring", shared).time_s) / MS == pytest.approx(
        7.55, abs=0.005
    )
    assert float(_all_reduce("interleaved_ring", shared).time_s) / MS == pytest.approx(
        8 * 7.55, abs=0.05
    )


def test_eight_rails_make_the_flat_ring_eight_times_quicker() -> None:
    ring = _all_reduce("all_rail_ring", _links())

    assert float(ring.time_s) / MS == pytest.approx(7.5497 / 8, abs=0.001)
