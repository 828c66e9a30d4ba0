"""The three walks where nodes are uneven, and what their table says of the NIC: worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from planner.errors import InputError
from planner.network.walks import WalkCase, walk_table
from planner.units import GB, MIB, MS, US

V = 192 * MIB
UNEVEN = WalkCase(
    ranks=12,
    nodes=5,
    size_bytes=V,
    scale_up_bytes_per_s=450 * GB,
    nic_bytes_per_s=50 * GB,
    in_flight=0,
    payload_bytes=256,
    turnaround_s=2 * US,
    compute_s=20 * MS,
    update_s=2 * MS,
)


def test_twelve_ranks_on_five_nodes_are_3_3_2_2_2() -> None:
    """A node of 2 keeps 2/12 of the result and sends the rest over 2 NICs, there and back; a node
    of 3 hands on 2/3 of V inside, twice."""
    interleaved, ring, hierarchical = walk_table(UNEVEN).walks

    assert hierarchical.across_s == pytest.approx(2 * 10 / 12 * V / 2 / (50 * GB))
    assert hierarchical.inside_s == pytest.approx(2 * 2 / 3 * V / (450 * GB))
    assert ring.across_s == interleaved.across_s == pytest.approx(2 * 11 / 12 * V / (50 * GB))
    assert interleaved.inside_s == 0


def test_a_walk_that_is_slower_than_the_ring_saves_less_than_nothing() -> None:
    """With scale-up as slow as a tenth of the NIC the parts inside cost more than the ring's."""
    slow = replace(UNEVEN, ranks=16, nodes=2, scale_up_bytes_per_s=5 * GB, nic_bytes_per_s=50 * GB)

    interleaved, ring, hierarchical = walk_table(slow).walks

    assert ring.communication_s == pytest.approx(2 * 15 / 16 * V / (5 * GB))
    assert interleaved.saved_communication_share == pytest.approx(0.9)
    assert interleaved.speedup == pytest.approx(ring.step_s / interleaved.step_s)
    assert hierarchical.saved_communication_share == pytest.approx(
        1 - hierarchical.communication_s / ring.communication_s
    )


def test_the_in_flight_limit_slows_the_nic_but_not_what_would_fill_it() -> None:
    """128 x 256 B / 2 us = 16.384 GB/s; 50 GB/s x 2 us / 256 B = 390.6."""
    table = walk_table(replace(UNEVEN, in_flight=128))

    assert table.nic_bytes_per_s == pytest.approx(16.384 * GB)
    assert table.required_in_flight == 391


def test_more_nodes_than_ranks_are_refused() -> None:
    with pytest.raises(InputError, match="nodes=13: expected at most ranks=12"):
        replace(UNEVEN, nodes=13)
