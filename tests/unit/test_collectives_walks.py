"""Start-ups, messages and busy times of single walks, each worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.collectives.cost import CollectiveTime, cheapest
from planner.collectives.count import moved
from planner.collectives.links import LinkNumbers, Protocol, Spread, TierNumbers, two_tiers
from planner.collectives.schedule import Seating
from planner.collectives.schedules import schedule_of
from planner.units import GB, KIB, MIB, US

INSIDE, NIC = 450 * GB, 50 * GB
TWO_NODES = Spread.of(16, 8)
V = 192 * MIB


def _links(**more: object) -> LinkNumbers:
    links = two_tiers(
        inside_bytes_per_s=INSIDE,
        nic_bytes_per_s=NIC,
        inside_latency_s=1 * US,
        nic_latency_s=5 * US,
        **more,  # type: ignore[arg-type]
    )
    return replace(links, issue_s=0.5 * US)


def _time(
    collective: str, name: str, payload: float, spread: Spread, links: LinkNumbers | None = None
) -> CollectiveTime:
    return cheapest(collective, payload, spread, links or _links(), available=[name])


def test_ports_of_a_ring_on_all_rails_carry_what_its_schedule_moves() -> None:
    """A member is the last of its node in one ring of eight: 2 x 15/16 x 7/8 V through its port."""
    time = _time("all_reduce", "all_rail_ring", V, TWO_NODES)
    schedule = schedule_of("all_reduce", "all_rail_ring", Seating.of_counts([8, 8]))

    port = max(moved(schedule).by_port.values()) / schedule.units
    assert port == pytest.approx(2 * 15 / 16 * 7 / 8)
    assert float(time.inside_s) == pytest.approx(port * V / INSIDE)
    assert float(time.across_s) == pytest.approx(2 * 15 / 16 * V / 8 / NIC)


@pytest.mark.parametrize(("collective", "passes"), [("all_reduce", 2), ("reduce_scatter", 1)])
def test_a_direct_exchange_starts_a_message_to_every_other_rank_in_each_pass(
    collective: str, passes: int
) -> None:
    time = _time(collective, "direct", 1.0, TWO_NODES)

    assert float(time.startup_s) == pytest.approx(passes * (5 * US + 15 * 0.5 * US))


def test_one_shot_starts_seven_messages_in_a_node_of_eight_and_never_leaves_it() -> None:
    inside = _time("all_reduce", "one_shot", 10 * KIB, Spread.of(8, 8))
    across = _time("all_reduce", "one_shot", 10 * KIB, TWO_NODES)

    assert float(inside.startup_s) == pytest.approx(1 * US + 7 * 0.5 * US)
    assert float(inside.inside_s) == pytest.approx(7 * 10 * KIB / INSIDE)
    assert np.isinf(across.time_s)


def test_a_message_smaller_than_its_chunks_fills_the_trees_between_nodes_with_itself() -> None:
    """8 KiB over 8 rails: 1 KiB a rail goes up and down one hop, the switch waits for all 8 KiB."""
    links = _links(inside_reduction=True)
    inside = replace(links.inside, reduction_chunk_bytes=1 * MIB)
    links = replace(links, tiers=(inside, *links.outer))

    time = _time("all_reduce", "switch_tree", 8 * KIB, TWO_NODES, links)

    switch_s = 8 * KIB * (1 + 1 / 8) / INSIDE
    rails_s = 2 * 1 * KIB / NIC
    assert float(time.startup_s) == pytest.approx(2 * 1 * US + 2 * 5 * US + switch_s + rails_s)


@pytest.mark.parametrize(("in_switch", "hops"), [(True, 1), (False, 7)])
def test_before_and_after_the_network_reduces_a_switch_takes_one_hop_and_a_ring_seven(
    in_switch: bool, hops: int
) -> None:
    links = _links(inside_reduction=in_switch, across_reduction=True)

    time = _time("all_reduce", "network_reduction", 1 * KIB, TWO_NODES, links)

    assert float(time.startup_s) == pytest.approx(2 * hops * 1 * US + 2 * 5 * US)


def test_swapping_inside_first_sends_seven_messages_there_and_one_across() -> None:
    time = _time("all_to_all", "hierarchical", 1 * KIB, TWO_NODES)

    assert float(time.startup_s) == pytest.approx(1 * US + 5 * US + (7 + 1) * 0.5 * US)
    assert float(time.inside_s) == pytest.approx(7 * 2 * 1 * KIB / INSIDE)


@pytest.mark.parametrize(("spread", "across", "inside"), [((4, 1), 3, 0), ((8, 4), 2, 5)])
def test_a_shard_goes_all_the_way_round_a_ring_but_for_one_hop(
    spread: tuple[int, int], across: int, inside: int
) -> None:
    """Four nodes of one: 3 hops, all across. Two of four: 2 across and 5 of 6 inside."""
    extra = Protocol(name="slow", across_extra_s=2 * US)
    links = replace(_links(), protocols=(extra,))

    time = _time("reduce_scatter", "contiguous_ring", 0.0, Spread.of(*spread), links)

    assert float(time.startup_s) == pytest.approx(across * (5 + 2) * US + inside * 1 * US)


def test_the_smallest_node_sends_most_of_an_exchange_over_its_nics() -> None:
    """Of 5 + 5 + 2 ranks those two have ten far ones each, the others seven."""
    spread = Spread.of_counts([5, 5, 2])

    time = _time("all_to_all", "direct", 1 * MIB, spread)

    schedule = schedule_of("all_to_all", "direct", Seating.of_counts([5, 5, 2]))
    assert max(moved(schedule).by_nic.values()) == 10
    assert float(time.across_s) == pytest.approx(10 * MIB / NIC)


def _three_tiers(leaf: bool, core: bool) -> LinkNumbers:
    def tier(name: str, rate: float, reduces: bool, share: float) -> TierNumbers:
        return TierNumbers(
            name=name,
            bytes_per_s=rate,
            shared_bytes_per_s=rate,
            latency_s=0.0,
            in_network_reduction=reduces,
            reduction_share=share,
        )

    tiers = (
        tier("supernode", INSIDE, reduces=False, share=1.0),
        tier("leaf", NIC, reduces=leaf, share=0.5),
        tier("cluster", NIC, reduces=core, share=0.1),
    )
    return LinkNumbers(tiers=tiers)


def test_only_switches_that_the_group_meets_must_be_able_to_reduce() -> None:
    """Two nodes under one leaf: the core neither has to reduce nor sets the pace."""
    one_leaf, two_leaves = Spread.of(16, 8, 16), Spread.of(16, 8, 8)

    under_one = _time("all_reduce", "network_reduction", V, one_leaf, _three_tiers(True, False))
    under_two = _time("all_reduce", "network_reduction", V, two_leaves, _three_tiers(True, False))
    both = _time("all_reduce", "network_reduction", V, two_leaves, _three_tiers(True, True))

    assert float(under_one.across_s) == pytest.approx(V / 8 / (0.5 * NIC))
    assert np.isinf(under_two.time_s)
    assert float(both.across_s) == pytest.approx(V / 8 / (0.1 * NIC))


@pytest.mark.parametrize(("spread", "inside", "across"), [((16, 8), 14, 1), ((8, 8), 7, 0)])
def test_a_chain_has_one_hop_less_than_ranks_and_one_across_for_each_further_node(
    spread: tuple[int, int], inside: int, across: int
) -> None:
    time = _time("broadcast", "chain", 0.0, Spread.of(*spread))

    assert float(time.startup_s) == pytest.approx(inside * 1 * US + across * 5 * US)


@pytest.mark.parametrize(("spread", "across"), [((16, 8), 1), ((8, 8), 0)])
def test_a_broadcast_by_parts_sends_seven_messages_to_scatter_and_seven_to_gather(
    spread: tuple[int, int], across: int
) -> None:
    time = _time("broadcast", "hierarchical", V, Spread.of(*spread))

    assert float(time.startup_s) == pytest.approx(2 * 7 * 1 * US + across * 5 * US)
    assert float(time.inside_s) == pytest.approx(2 * 7 / 8 * V / INSIDE)


def test_switches_reduce_under_protocols_of_whole_chunks_only() -> None:
    links = _links(inside_reduction=True)
    whole, lines = Protocol(name="whole"), Protocol(name="lines", whole_chunks=False)

    def reduces(*protocols: Protocol) -> bool:
        some = replace(links, protocols=protocols)
        return bool(
            np.isfinite(_time("all_reduce", "switch_reduction", V, Spread.of(8, 8), some).time_s)
        )

    assert reduces(whole)
    assert reduces(lines, whole)
    assert not reduces(lines)


def test_an_exchange_pays_what_the_protocol_takes_for_exchanges() -> None:
    """Half of every rate and 3 us, where a reduction would pay a quarter and 9 us."""
    protocol = Protocol(
        name="p",
        base_s=9 * US,
        rate_share=0.25,
        across_rate_share=0.25,
        exchange_share=0.5,
        exchange_base_s=3 * US,
    )
    links = replace(_links(), issue_s=0.0, protocols=(protocol,))

    time = _time("all_to_all", "direct", 1 * MIB, TWO_NODES, links)

    assert float(time.startup_s) == pytest.approx(3 * US + 5 * US)
    assert float(time.across_s) == pytest.approx(8 * MIB / (0.5 * NIC))
    assert float(time.inside_s) == pytest.approx(7 * MIB / (0.5 * INSIDE))


def test_no_protocol_for_exchanges_leaves_none_to_carry_one() -> None:
    links = replace(_links(), protocols=(Protocol(name="p", exchange_share=0.0),))

    assert np.isinf(_time("all_to_all", "direct", 1 * MIB, TWO_NODES, links).time_s)
