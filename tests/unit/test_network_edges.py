"""Where a network model turns from one answer to the other: at equality, and just beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.collectives.links import Spread, two_tiers
from planner.errors import InputError
from planner.network.blast import blast_radius
from planner.network.completion import SlotCase, completion_slots
from planner.network.concurrency import Ceiling, concurrency
from planner.network.congestion import congestion
from planner.network.deadlock import Route, check_routes
from planner.network.endpoints import endpoint_state
from planner.network.flows import Flows
from planner.network.incast import incast_gate, known_room_bytes
from planner.network.loads import unit_load
from planner.network.loss import loss
from planner.network.pfc import headroom_bytes, pause_check
from planner.network.phases import phase_load
from planner.network.premises import Premise
from planner.network.storm import storm
from planner.network.walks import WalkCase
from planner.network.wiring import wiring_of
from topologies.fabric_catalogue import generic_cluster, load_cluster


def holds(premises: tuple[Premise, ...], words: str) -> bool | None:
    (premise,) = [one for one in premises if words in one.states]
    return premise.holds


def test_the_worst_of_slowed_ranks_is_told() -> None:
    """Of 200 GB/s and a NIC of 63, 2 x 25 GB/s one rank loses its scale-up, one a plane."""
    fabric = load_cluster("hpn", gpus=64)
    planes = [near for near in fabric.graph["sn01.nic01"] if near.startswith("plane")]

    seen = blast_radius(
        fabric, [("sn00.gpu00", "sn00.switch"), ("sn01.nic01", planes[0])], {}, range(64)
    )

    assert seen.slowed_ranks == (0, 9)
    assert seen.least_links_share == pytest.approx(63 / (200 + 63))


def test_relaying_is_no_loss_where_gpus_relay_anyway() -> None:
    """Rail-only: a GPU reaches other rails only over a GPU of its own supernode."""
    rails = load_cluster("rail-only", gpus=16)
    nic = next(n for n in rails.graph[rails.gpus[3]] if "nic" in n)

    there = blast_radius(rails, [nic], {}, range(16))
    usual = generic_cluster(8, 16)
    here = blast_radius(
        usual, [next(n for n in usual.graph[usual.gpus[3]] if "nic" in n)], {}, range(16)
    )

    assert there.relayed_ranks == ()
    assert here.relayed_ranks == (3,)


def test_a_queue_filled_to_the_brim_loses_nothing() -> None:
    gate = incast_gate(3, 50e9, 50e9, 2_000_000, 20e-6)  # (3 - 1) x 50 GB/s x 20 us

    assert gate.passes
    assert gate.lost_bytes == 0
    assert gate.peak_bytes == pytest.approx(2e6)
    assert not incast_gate(3, 50e9, 50e9, 1_999_999, 20e-6).passes


def test_the_smallest_buffer_of_a_port_to_a_nic_is_the_room() -> None:
    fabric = generic_cluster(8, 32)
    cables = [
        (a, b) for a, b in fabric.graph.edges
        if {fabric.graph.nodes[a]["kind"], fabric.graph.nodes[b]["kind"]} == {"nic", "leaf"}
    ]  # fmt: skip
    graph = fabric.graph.copy()
    for number, (a, b) in enumerate(cables):
        graph.edges[a, b]["buffer_bytes"] = 1e6 + number
    assert known_room_bytes(replace(fabric, graph=graph)) == 1e6


def test_headroom_that_just_suffices_is_lossless_and_keeps_the_link_busy() -> None:
    needs = float(headroom_bytes(50e9, 100, 4096))

    exact = pause_check(50e9, 2 * needs + 1, needs + 1, needs, 100, 4096)
    short = pause_check(50e9, 2 * needs, needs + 1, needs - 1, 100, 4096)

    assert (exact.lossless, exact.margin_bytes, exact.keeps_busy) == (True, 0, True)
    assert (short.lossless, short.margin_bytes, short.keeps_busy) == (False, -1, False)
    with pytest.raises(InputError, match="expected xon < xoff"):
        pause_check(50e9, 2 * needs, needs, needs, 100, 4096)


def test_feedback_at_the_deadline_is_in_time_and_the_service_rate_does_not_drain() -> None:
    exact = congestion(100e9, 50e9, 2e6, 1e6, 20e-6, 40e9)  # 1 MB more in 20 us fills it
    late = congestion(100e9, 50e9, 2e6, 1e6, 21e-6, 40e9)
    level = congestion(100e9, 50e9, 2e6, 1e6, 20e-6, 50e9)

    assert exact.time_to_full_s == pytest.approx(20e-6)
    assert (exact.in_time, late.in_time) == (True, False)
    assert exact.lost_bytes == pytest.approx(0, abs=1e-6)
    assert holds(exact.premises, "Feedback arrives before") is True
    assert holds(exact.premises, "below service") is True
    assert holds(level.premises, "below service") is False
    assert level.empty_at_s is None
    assert exact.needed_buffer_bytes == pytest.approx(2e6)
    assert congestion(10e9, 50e9, 2e6, 1e6, 20e-6, 10e9).needed_buffer_bytes == 1e6


def test_a_window_of_one_round_trip_covers_it_and_a_trip_is_a_packet_at_least() -> None:
    trip_bytes = 50e9 * 10e-6

    exact = loss(1e-4, 50e9, 4000, 10e-6, trip_bytes, 2**20, 1e-3)
    short = loss(1e-4, 50e9, 4000, 10e-6, trip_bytes - 4000, 2**20, 1e-3)
    near = loss(0.1, 1e9, 4000, 1e-9, 8000, 2**20, 1e-3)

    assert holds(exact.premises, "window covers") is True
    assert holds(short.premises, "window covers") is False
    # a loss costs the packet itself, not a part of one: 1 - p
    assert near.round_trip_packets == 1
    assert near.go_back_n_bytes_per_s == pytest.approx(0.9e9)


def test_a_load_of_the_line_itself_is_amplified_and_more_is_overload() -> None:
    full, over = (storm(load, 50e9, 0.01, 122, 10e-6, 0.0, 1.0) for load in (50e9, 50.05e9))

    assert full.causes == ("amplification",)
    assert over.causes == ("overload",)


def test_a_transaction_as_long_as_its_turnaround_still_fits_it() -> None:
    exact = Ceiling(name="nic", in_flight=1, payload_bytes=100_000, turnaround_s=2e-6)
    longer = Ceiling(name="nic", in_flight=1, payload_bytes=100_001, turnaround_s=2e-6)

    seen = concurrency([exact], 50e9, 2**20)

    assert holds(seen.premises, "fits the turnaround") is True
    assert seen.binding == "line"
    assert holds(concurrency([longer], 50e9, 2**20).premises, "fits the turnaround") is False


def test_half_start_up_and_half_transfer_is_said_to_be_bandwidth() -> None:
    """One shot to a neighbour: 1 us of start-up, and 50 kB at 50 GB/s."""
    links = two_tiers(inside_bytes_per_s=50e9, nic_bytes_per_s=50e9, inside_latency_s=1e-6)
    spread = Spread.of(2, 8)
    told = {size: phase_load("decode", size, 1, spread, links) for size in (49e3, 50e3, 51e3)}

    assert [load.dominates for load in told.values()] == ["start-up", "bandwidth", "bandwidth"]
    assert told[50e3].startup_s == told[50e3].transfer_s == 1e-6


def test_the_shortest_of_two_circles_that_share_links_is_told() -> None:
    square = [("a", "b", "c"), ("b", "c", "d"), ("c", "d", "a"), ("d", "a", "b")]
    triangle = [("b", "c", "a"), ("c", "a", "b"), ("a", "b", "c")]
    routes = [Route(name=f"{i}", vertices=one) for i, one in enumerate([*square, *triangle])]

    (cycle,) = check_routes(routes).cycles

    assert cycle.links == ("a -> b", "b -> c", "c -> a")


def test_a_route_that_takes_a_link_twice_waits_for_itself_and_that_turn_is_given_up() -> None:
    """Once round a ring of two and on: the second pass waits for what the first one holds."""
    seen = check_routes([Route(name="lost", vertices=("a", "b", "a", "b"))])

    assert not seen.free
    left = {("a -> b", "b -> a"), ("b -> a", "a -> b")} - {*seen.breaks}
    assert len(left) < 2


def test_state_of_exactly_the_cache_fits() -> None:
    exact = endpoint_state(8, 1, queue_pairs=1, state_bytes=256.0, cache_bytes=8 * 256.0)
    over = endpoint_state(9, 1, queue_pairs=1, state_bytes=256.0, cache_bytes=8 * 256.0)

    assert [exact.transports[0].fits, over.transports[0].fits] == [True, False]


def test_a_gpu_with_a_nic_of_its_own_does_not_send_through_its_neighbours() -> None:
    """A mesh of 8 and rails under spines: over two leaves and a spine, six links of 2, is less."""
    fabric = load_cluster("mi300x", gpus=64)
    wiring = wiring_of(fabric)
    flows = Flows(sources=np.array([0]), targets=np.array([9]), sizes_bytes=np.array([1.0]))

    load, _ = unit_load(wiring, flows)

    taken = {wiring.links.name(int(link)) for link in np.flatnonzero(load)}
    assert "sn00.gpu00 -> sn00.nic00" in taken
    assert "sn01.nic01 -> sn01.gpu01" in taken
    assert not any(link.startswith("sn00.gpu00 -> sn00.gpu") for link in taken)


def test_transfers_are_later_than_without_slots_by_what_slots_cost_on_a_slow_wire() -> None:
    """16 of 50,000 bytes at 1 us each on the wire, issued every 0.1 us: the wire sets the pace."""
    case = SlotCase(
        operations=16, payload_bytes=50_000, issue_interval_s=1e-7, service_time_s=5e-6, slots=64,
        poll_interval_s=20e-6, batch=4, line_bytes_per_s=50e9, by_interrupt=False, handling_s=0.0,
    )  # fmt: skip

    seen = completion_slots(case)

    assert seen.transfer_end_s == pytest.approx(15e-6 + 5e-6)
    assert seen.unlimited_transfer_end_s == pytest.approx(seen.transfer_end_s)


def test_a_rank_on_every_node_can_be_and_a_node_without_one_cannot() -> None:
    full = WalkCase(
        ranks=4, nodes=4, size_bytes=2**20, scale_up_bytes_per_s=450e9, nic_bytes_per_s=50e9,
        in_flight=0, payload_bytes=256.0, turnaround_s=2e-6, compute_s=20e-3, update_s=2e-3,
    )  # fmt: skip

    assert full.nodes == full.ranks
    with pytest.raises(InputError, match="nodes=5"):
        replace(full, nodes=5)


def test_a_gpu_without_a_link_has_a_wiring_that_leads_nowhere() -> None:
    alone = load_cluster("tpu-torus", supernode=1, gpus=1)

    assert alone.graph.number_of_edges() == 0
    assert wiring_of(alone).vertices.tolist() == [0]
