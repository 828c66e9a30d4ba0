from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from planner.collectives.cost import LIBRARY, cheapest
from planner.collectives.links import LinkNumbers, Protocol, Spread, TierNumbers, two_tiers
from planner.collectives.walks import WALKS
from planner.errors import InputError
from planner.units import GB, KIB, MIB, US

LINKS = two_tiers(
    inside_bytes_per_s=450 * GB,
    nic_bytes_per_s=50 * GB,
    inside_latency_s=1 * US,
    nic_latency_s=5 * US,
)


@pytest.mark.parametrize("collective", sorted(WALKS))
def test_a_group_of_one_costs_nothing(collective: str) -> None:
    links = LinkNumbers(tiers=LINKS.tiers, launch_s=7 * US, issue_s=1 * US)

    alone = cheapest(collective, 64 * MIB, Spread.of(1, 1), links)

    assert float(alone.time_s) == 0.0


@pytest.mark.parametrize("collective", sorted(WALKS))
def test_the_parts_add_up_to_the_time_for_every_algorithm(collective: str) -> None:
    spread = Spread.of(np.array([2.0, 16, 12, 64, 7]), np.array([2.0, 8, 5, 8, 3]))

    for name in WALKS[collective]:
        time = cheapest(collective, 3 * MIB, spread, LINKS, available=[name])
        possible = np.isfinite(time.time_s)
        parts = time.startup_s + time.inside_s + time.across_s - time.hidden_s
        np.testing.assert_allclose(parts[possible], time.time_s[possible])


def test_the_cheapest_is_never_dearer_than_any_one_algorithm() -> None:
    size = np.geomspace(1 * KIB, 1024 * MIB, 40)[:, None]
    spread = Spread.of(np.array([4.0, 16, 60, 64]), np.array([4.0, 8, 8, 8]))

    best = cheapest("all_reduce", size, spread, LINKS)

    for index, name in enumerate(best.names):
        one = cheapest("all_reduce", size, spread, LINKS, available=[name])
        assert np.all(best.time_s <= one.time_s * (1 + 1e-12))
        chosen = best.algorithm == index
        np.testing.assert_allclose(best.time_s[chosen], one.time_s[chosen])


def test_one_call_for_many_groups_gives_what_many_calls_give() -> None:
    sizes, ranks, together = [8 * KIB, 4 * MIB, 1024 * MIB], [8, 12, 96], [8, 5, 8]

    many = cheapest(
        "all_reduce", np.array(sizes), Spread.of(np.array(ranks), np.array(together)), LINKS
    )

    for i in range(3):
        one = cheapest("all_reduce", sizes[i], Spread.of(ranks[i], together[i]), LINKS)
        assert float(one.time_s) == pytest.approx(float(many.time_s[i]))
        assert one.name == many.names[many.algorithm[i]]


def test_tiny_messages_are_start_up_and_large_ones_bandwidth() -> None:
    """10 KiB of a decode step against a gradient of 192 MiB, 8 ranks in one supernode."""
    decode = cheapest(
        "all_reduce", 10 * KIB, Spread.of(8, 8), LINKS, available=LIBRARY["all_reduce"]
    )
    training = cheapest(
        "all_reduce", 192 * MIB, Spread.of(8, 8), LINKS, available=LIBRARY["all_reduce"]
    )

    assert decode.startup_s / decode.time_s > 0.99
    assert training.startup_s / training.time_s < 0.02


def test_the_switch_reduces_only_where_the_fabric_says_so() -> None:
    able = two_tiers(
        inside_bytes_per_s=450 * GB,
        nic_bytes_per_s=50 * GB,
        inside_reduction=np.array([True, False]),
    )

    both = cheapest("all_reduce", 64 * MIB, Spread.of(8, 8), able, available=["switch_reduction"])

    assert float(both.time_s[0]) == pytest.approx(64 * MIB * 9 / 8 / (450 * GB))
    assert np.isinf(both.time_s[1])


def test_in_network_reduction_sends_each_share_once() -> None:
    sharp = two_tiers(inside_bytes_per_s=450 * GB, nic_bytes_per_s=50 * GB, across_reduction=True)

    time = cheapest(
        "all_reduce", 64 * MIB, Spread.of(64, 8), sharp, available=["network_reduction"]
    )

    assert float(time.across_s) == pytest.approx(64 * MIB / 8 / (50 * GB))


def test_a_direct_all_to_all_sends_v_to_every_far_rank_over_its_own_nic() -> None:
    time = cheapest("all_to_all", 1 * MIB, Spread.of(64, 8), LINKS, available=["direct"])

    assert float(time.across_s) == pytest.approx(56 * MIB / (50 * GB))
    assert float(time.inside_s) == pytest.approx(7 * MIB / (450 * GB))


def test_one_copy_per_domain_scales_what_crosses() -> None:
    time = cheapest(
        "all_to_all",
        1 * MIB,
        Spread.of(64, 8),
        LINKS,
        available=["hierarchical"],
        across_share=0.25,
    )

    assert float(time.across_s) == pytest.approx(14 * MIB / (50 * GB))


def test_the_smallest_supernode_paces_an_uneven_hierarchical_walk() -> None:
    """5+5+2: the pair sends 10/12 V over 2 NICs in each pass, twice for all-reduce."""
    time = cheapest(
        "all_reduce", 12 * MIB, Spread.of_counts([5, 5, 2]), LINKS, available=["hierarchical"]
    )

    assert float(time.across_s) == pytest.approx(2 * 10 * MIB / 2 / (50 * GB))


def test_oversubscription_between_leaves_slows_only_groups_that_leave_their_leaf() -> None:
    leaf = TierNumbers(
        name="leaf", bytes_per_s=50 * GB, shared_bytes_per_s=50 * GB, latency_s=4 * US
    )
    core = TierNumbers(
        name="cluster", bytes_per_s=50 * GB, shared_bytes_per_s=50 * GB / 7, latency_s=10 * US
    )
    links = LinkNumbers(tiers=(LINKS.tiers[0], leaf, core))
    inside_leaf = Spread.of(32, 8, 32)
    over_leaves = Spread.of(32, 8, 16)

    near = cheapest("all_to_all", 1 * MIB, inside_leaf, links, available=["direct"])
    far = cheapest("all_to_all", 1 * MIB, over_leaves, links, available=["direct"])
    ring_near = cheapest("all_reduce", 64 * MIB, inside_leaf, links, available=["hierarchical"])
    ring_far = cheapest("all_reduce", 64 * MIB, over_leaves, links, available=["hierarchical"])

    assert float(near.across_s) == pytest.approx(24 * MIB / (50 * GB))
    assert float(far.across_s) == pytest.approx(16 * MIB * 7 / (50 * GB))
    # 8 rails leave each leaf, whose 16 members own 16 shares of the oversubscribed uplink
    assert float(ring_far.across_s / ring_near.across_s) == pytest.approx(7 / 2)


def test_a_full_mesh_gives_a_pair_only_its_own_link() -> None:
    """MI300X: 7 links of 64 GB/s; two ranks talk over one, eight over all."""
    mesh = TierNumbers(
        name="supernode",
        bytes_per_s=448 * GB,
        shared_bytes_per_s=448 * GB,
        latency_s=0.0,
        pair_bytes_per_s=64 * GB,
    )
    links = LinkNumbers(tiers=(mesh, LINKS.tiers[1]))

    two = cheapest("all_reduce", 64 * MIB, Spread.of(2, 2), links, available=["all_rail_ring"])
    eight = cheapest("all_reduce", 64 * MIB, Spread.of(8, 8), links, available=["all_rail_ring"])
    hop = cheapest("ring", 64 * MIB, Spread.of(8, 8), links)

    assert float(two.time_s) == pytest.approx(64 * MIB / (64 * GB))
    assert float(eight.time_s) == pytest.approx(2 * 7 / 8 * 64 * MIB / (448 * GB))
    assert float(hop.time_s) == pytest.approx(64 * MIB / (64 * GB))


def test_a_protocol_trades_bandwidth_for_latency() -> None:
    quick = Protocol(name="quick", inside_latency_factor=0.1, rate_share=0.5)
    links = LinkNumbers(tiers=LINKS.tiers, protocols=(quick, Protocol(name="simple")))
    ring = ["contiguous_ring"]

    small = cheapest("all_reduce", 1 * KIB, Spread.of(8, 8), links, available=ring)
    large = cheapest("all_reduce", 1024 * MIB, Spread.of(8, 8), links, available=ring)

    assert float(small.startup_s) == pytest.approx(1.4 * US)
    assert float(large.inside_s) == pytest.approx(2 * 7 / 8 * 1024 * MIB / (450 * GB))


def test_what_cannot_be_priced_is_refused_with_what_would_be_right() -> None:
    with pytest.raises(InputError, match="unknown collective 'gossip'; there are"):
        cheapest("gossip", 1.0, Spread.of(2, 2), LINKS)
    with pytest.raises(InputError, match=r"no algorithm \['nvls'\] for all_reduce"):
        cheapest("all_reduce", 1.0, Spread.of(2, 2), LINKS, available=["nvls"])
    with pytest.raises(InputError, match="give one count for every tier but the last"):
        cheapest("all_reduce", 1.0, Spread.of(2), LINKS)
    with pytest.raises(InputError, match="no tiers"):
        LinkNumbers(tiers=())
    with pytest.raises(InputError, match=r"add up to \[11, 12\]"):
        Spread.of_counts([5, 5, 2], [10, 1])


@pytest.mark.bench
def test_a_hundred_thousand_groups_are_priced_in_a_tenth_of_a_second() -> None:
    """All twelve algorithms: 40 ms on a quiet core, 70 when its neighbours are busy."""
    import time

    rng = np.random.default_rng(0)
    ranks = 2.0 ** rng.integers(0, 10, 100_000)
    spread = Spread.of(ranks, np.minimum(ranks, 8))
    size = 10 ** rng.uniform(3, 9, 100_000)
    walls = []

    for _ in range(5):
        start = time.process_time()
        cheapest("all_reduce", size, spread, LINKS)
        walls.append(time.process_time() - start)

    assert min(walls) < 0.1


def test_a_tree_fills_its_pipeline_hop_by_hop_and_no_chunk_is_larger_than_the_message() -> None:
    """16 ranks, 8 a supernode: 7 hops inside, 1 across, up and down; 8 rails of 1 MB chunks."""
    plain = two_tiers(inside_bytes_per_s=100e9, nic_bytes_per_s=10e9)
    filled = replace(plain, protocols=(Protocol(name="simple", fill_bytes=1e6),))
    spread = Spread.of(16, 8)

    def extra_s(payload: float) -> float:
        times = [
            cheapest("all_reduce", payload, spread, links, available=["double_tree"]).time_s
            for links in (filled, plain)
        ]
        return float(times[0] - times[1])

    # inside all rails' chunks pass one port: 7 x 8 MB / 100 GB/s; across one each: 1 MB / 10 GB/s
    assert extra_s(1e9) == pytest.approx(2 * (7 * 8e6 / 100e9 + 1e6 / 10e9))
    # 80 kB over 8 rails: chunks of 10 kB
    assert extra_s(80e3) == pytest.approx(2 * (7 * 80e3 / 100e9 + 10e3 / 10e9))


def test_rings_have_no_pipeline_to_fill() -> None:
    plain = two_tiers(inside_bytes_per_s=100e9, nic_bytes_per_s=10e9)
    filled = replace(plain, protocols=(Protocol(name="simple", fill_bytes=1e6),))

    for collective in ("all_gather", "all_to_all"):
        first, second = (
            cheapest(collective, 1e8, Spread.of(16, 8), links) for links in (plain, filled)
        )
        assert float(first.time_s) == float(second.time_s)


def test_a_switch_reduction_waits_for_a_chunk_of_every_member() -> None:
    """8 members with chunks of 2 MB: 16 MB at 450 GB/s / (1 + 1/8) come back before anything."""
    inside = replace(
        LINKS.inside, in_network_reduction=True, reduction_chunk_bytes=2e6, latency_s=0.0
    )
    links = LinkNumbers(tiers=(inside, *LINKS.outer))
    rate = 450e9 / (1 + 1 / 8)

    def time_s(payload: float) -> float:
        return float(
            cheapest(
                "all_reduce", payload, Spread.of(8, 8), links, available=["switch_reduction"]
            ).time_s
        )

    assert time_s(1e9) == pytest.approx((1e9 + 16e6) / rate)
    assert time_s(1e6) == pytest.approx(2e6 / rate)


def test_larger_chunks_of_a_plugin_fill_the_trees_between_supernodes_only() -> None:
    """16 ranks on two supernodes: chunks of 4 x 2 MB up and down one rail of 50 GB/s."""
    inside = replace(LINKS.inside, in_network_reduction=True, reduction_chunk_bytes=2e6)
    links = LinkNumbers(tiers=(inside, *LINKS.outer))
    larger = replace(links, tree_chunk_factor=4.0)

    def more_s(spread: Spread, name: str) -> float:
        times = [
            cheapest("all_reduce", 1e9, spread, given, available=[name]).time_s
            for given in (larger, links)
        ]
        return float(times[0] - times[1])

    more_inside_s = 8 * 6e6 * (1 + 1 / 8) / 450e9
    assert more_s(Spread.of(16, 8), "switch_tree") == pytest.approx(more_inside_s + 2 * 6e6 / 50e9)
    assert more_s(Spread.of(8, 8), "switch_reduction") == 0.0


def test_what_needs_ordered_stores_does_not_leave_a_supernode_on_an_unordered_network() -> None:
    quick = Protocol(name="quick", rate_share=0.5, across_rate_share=0.5, whole_chunks=False)
    slow = Protocol(name="simple", base_s=50 * US)
    links = LinkNumbers(tiers=LINKS.tiers, protocols=(quick, slow))
    unordered = replace(links, ordered_across=False)

    def more_s(spread: Spread) -> float:
        times = [
            cheapest("all_reduce", 8.0, spread, given, available=["all_rail_ring"]).time_s
            for given in (unordered, links)
        ]
        return float(times[0] - times[1])

    assert more_s(Spread.of(8, 8)) == 0.0
    assert more_s(Spread.of(16, 8)) == pytest.approx(50 * US, rel=1e-3)


def test_a_protocol_keeps_one_share_of_the_nic_and_another_of_the_scale_up_port() -> None:
    """LL128: 120 of 128 bytes are data on the wire; inside, the GPU's threads set the pace."""
    plain = two_tiers(inside_bytes_per_s=400e9, nic_bytes_per_s=1e9)
    lines = replace(
        plain, protocols=(Protocol(name="ll128", rate_share=0.4, across_rate_share=120 / 128),)
    )

    across = cheapest("all_reduce", 1e9, Spread.of(16, 8), lines, available=["all_rail_ring"])
    inside = cheapest("all_reduce", 1e9, Spread.of(8, 8), lines, available=["all_rail_ring"])

    assert float(across.across_s) == pytest.approx(2 * 15 / 16 * 1e9 / 8e9 * 128 / 120)
    assert float(inside.inside_s) == pytest.approx(2 * 7 / 8 * 1e9 / 160e9)


@pytest.mark.parametrize(
    ("name", "hops"),
    [
        ("interleaved_ring", 2 * 15),
        ("contiguous_ring", 2 * 2),
        ("all_rail_ring", 2 * 2),
        ("hierarchical", 2 * 1),
        ("halving_doubling", 2 * 1),
        ("direct", 2 * 1),
        ("double_tree", 2 * 1),
    ],
)
def test_each_message_over_a_nic_pays_what_its_protocol_adds(name: str, hops: int) -> None:
    """16 ranks on two supernodes; the plain network has no latency at all."""
    plain = two_tiers(inside_bytes_per_s=450e9, nic_bytes_per_s=50e9)
    slow = replace(plain, protocols=(Protocol(name="simple", across_extra_s=10 * US),))

    def more_s(spread: Spread) -> float:
        times = [
            cheapest("all_reduce", 1e6, spread, given, available=[name]).time_s
            for given in (slow, plain)
        ]
        return float(times[0] - times[1])

    assert more_s(Spread.of(16, 8)) == pytest.approx(hops * 10 * US)
    assert more_s(Spread.of(8, 8)) == 0.0
