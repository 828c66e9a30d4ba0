"""Explicit schedules against closed forms: proved, counted over the cut, timed step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.collectives import broadcasts, exchanges, reductions, trees
from planner.collectives.cost import cheapest
from planner.collectives.count import (
    crossing_payloads,
    flat_ring_payloads,
    moved,
    one_copy_payloads,
)
from planner.collectives.links import Spread, two_tiers
from planner.collectives.schedule import Schedule, Seating
from planner.collectives.verify import faults_of
from planner.collectives.walks import tree_load

SHARDED: dict[str, Callable[[str, Seating], Schedule]] = {
    "contiguous_ring": reductions.contiguous_ring,
    "interleaved_ring": reductions.interleaved_ring,
    "all_rail_ring": reductions.all_rail_ring,
    "direct": reductions.direct,
    "hierarchical": reductions.hierarchical,
    "halving_doubling": reductions.halving_doubling,
}
WHOLE: list[Callable[[Seating], Schedule]] = [
    trees.double_tree,
    trees.one_shot,
    trees.switch_tree,
    trees.network_reduction,
    broadcasts.broadcast_chain,
    broadcasts.broadcast_tree,
    broadcasts.broadcast_hierarchical,
    exchanges.direct_all_to_all,
    exchanges.hierarchical_all_to_all,
    exchanges.one_copy_all_to_all,
    exchanges.ring_exchange,
    exchanges.chain,
]
HALVES = ("all_reduce", "reduce_scatter", "all_gather")


def _all_schedules(seating: Seating) -> Iterator[Schedule]:
    for collective in HALVES:
        for make in SHARDED.values():
            yield make(collective, seating)
    for whole in WHOLE:
        yield whole(seating)


def _counts(seating: Seating) -> list[int]:
    return [len(domain) for domain in seating.domains]


seatings = st.lists(st.integers(0, 4), min_size=1, max_size=11).map(
    lambda domain_of: Seating(domain_of=tuple(domain_of))
)


@given(seating=seatings)
@settings(max_examples=40, deadline=None)
def test_every_schedule_is_correct_on_every_spread(seating: Seating) -> None:
    for schedule in _all_schedules(seating):
        assert faults_of(schedule) == (), (schedule.collective, schedule.algorithm)


@pytest.mark.parametrize("counts", [[5, 5, 2], [7], [1, 1, 1], [3, 2], [11, 2], [1, 6, 4, 2]])
def test_uneven_and_prime_spreads_are_correct(counts: list[int]) -> None:
    for schedule in _all_schedules(Seating.of_counts(counts)):
        assert faults_of(schedule) == (), (schedule.collective, schedule.algorithm)


@given(seating=seatings)
@settings(max_examples=60, deadline=None)
def test_a_hierarchical_walk_reaches_the_contract_s_bytes_on_every_spread(seating: Seating) -> None:
    for collective in HALVES:
        schedule = reductions.hierarchical(collective, seating)
        crossed = Fraction(moved(schedule).crossing, schedule.units)
        assert crossed == crossing_payloads(collective, _counts(seating))


@given(seating=seatings)
@settings(max_examples=60, deadline=None)
def test_contiguous_rings_cross_k_times_and_trees_2_v_k_minus_1(seating: Seating) -> None:
    counts = _counts(seating)
    for collective in HALVES:
        for name in ("contiguous_ring", "all_rail_ring"):
            schedule = SHARDED[name](collective, seating)
            crossed = Fraction(moved(schedule).crossing, schedule.units)
            assert crossed == flat_ring_payloads(collective, counts)
    for tree in (trees.double_tree, trees.switch_tree):
        schedule = tree(seating)
        crossed = Fraction(moved(schedule).crossing, schedule.units)
        assert crossed == 2 * (len(counts) - 1)


@given(seating=seatings)
@settings(max_examples=60, deadline=None)
def test_exchanges_cross_as_often_as_the_contract_says(seating: Seating) -> None:
    counts, n = _counts(seating), seating.ranks
    for exchange in (exchanges.direct_all_to_all, exchanges.hierarchical_all_to_all):
        assert moved(exchange(seating)).crossing == sum(c * (n - c) for c in counts)
    hops = n - 1
    assert moved(exchanges.ring_exchange(seating)).crossing == hops * crossing_payloads(
        "ring", counts
    )
    changes = sum(a != b for a, b in zip(seating.domain_of, seating.domain_of[1:], strict=False))
    assert moved(exchanges.chain(seating)).crossing == changes
    assert moved(exchanges.one_copy_all_to_all(seating)).crossing == one_copy_payloads(counts)


@given(seating=seatings)
@settings(max_examples=60, deadline=None)
def test_in_an_interleaved_ring_as_many_edges_cross_as_can(seating: Seating) -> None:
    n, most = seating.ranks, max(_counts(seating))
    edges = n if 2 * most <= n else 2 * (n - most)

    schedule = reductions.interleaved_ring("reduce_scatter", seating)

    assert moved(schedule).crossing == (n - 1) * (edges if n > 1 else 0)


@given(seating=seatings)
@settings(max_examples=60, deadline=None)
def test_stand_ins_load_all_nics_of_a_domain_alike(seating: Seating) -> None:
    """Domain i sends V (n - n_i)/n over n_i NICs: what the cost model takes for the smallest."""
    schedule = reductions.hierarchical("reduce_scatter", seating)
    by_nic, n = moved(schedule).by_nic, seating.ranks

    for domain in seating.domains:
        wanted = Fraction(n - len(domain), n * len(domain)) * schedule.units
        assert {by_nic.get(rank, 0) for rank in domain} == {wanted}


@pytest.mark.parametrize("k", range(2, 34))
def test_the_busiest_node_of_the_double_tree_sends_what_the_cost_model_says(k: int) -> None:
    schedule = trees.double_tree(Seating.of_counts([2] * k))

    busiest = max(moved(schedule).by_domain.values()) / schedule.units

    assert busiest == float(tree_load(k))


V = 1680.0 * 2**20
INSIDE, NIC, INSIDE_START, NIC_START = 450e9, 50e9, 1e-6, 5e-6


def _lockstep_s(schedule: Schedule, payload_bytes: float, starts: bool) -> float:
    """Return the time when each step waits for its slowest port, in either direction."""
    unit = payload_bytes / schedule.units
    total = 0.0
    for step in range(schedule.steps):
        busy: dict[tuple[int, str, bool], float] = {}
        start = 0.0
        for move in (m for m in schedule.moves if m.step == step):
            near = schedule.place(move.source) == schedule.place(move.target)
            rate, latency = (INSIDE, INSIDE_START) if near else (NIC, NIC_START)
            for who, way in ((move.source, "out"), (move.target, "in")):
                key = (who, way, near)
                busy[key] = busy.get(key, 0.0) + len(move.units) * unit / rate
            start = max(start, latency)
        total += max(busy.values(), default=0.0) + (start if starts else 0.0)
    return total


EVEN = [(8, 8), (16, 8), (12, 4), (8, 2), (6, 6), (9, 3), (4, 1)]


def _without_folds() -> Iterator[tuple[str, int, int]]:
    """Folding overlaps inside and across in lock-step: it is bounded in a test of its own."""
    for name in sorted(SHARDED):
        for n, m in EVEN:
            powers = all(size & (size - 1) == 0 for size in (m, n // m))
            if name != "halving_doubling" or powers:
                yield name, n, m


@pytest.mark.parametrize(("name", "n", "m"), list(_without_folds()))
@pytest.mark.parametrize("collective", HALVES)
def test_the_closed_form_is_the_schedule_s_own_time_on_even_spreads(
    name: str, collective: str, n: int, m: int
) -> None:
    """Rings overlap start-ups in a way that lock-step does not, so theirs are left at zero."""
    starts = name in {"hierarchical", "halving_doubling", "direct"}
    links = two_tiers(
        inside_bytes_per_s=INSIDE,
        nic_bytes_per_s=NIC,
        inside_latency_s=INSIDE_START * starts,
        nic_latency_s=NIC_START * starts,
    )
    schedule = SHARDED[name](collective, Seating.of_counts([m] * (n // m)))

    closed = cheapest(collective, V, Spread.of(n, m), links, available=[name])

    assert float(closed.time_s) == pytest.approx(_lockstep_s(schedule, V, starts), rel=1e-9)


@pytest.mark.parametrize(("n", "m"), [(6, 6), (12, 4), (9, 3), (20, 4), (7, 7), (33, 3), (13, 1)])
def test_folding_costs_no_more_than_the_closed_form_of_halving(n: int, m: int) -> None:
    links = two_tiers(
        inside_bytes_per_s=INSIDE,
        nic_bytes_per_s=NIC,
        inside_latency_s=INSIDE_START,
        nic_latency_s=NIC_START,
    )
    schedule = reductions.halving_doubling("all_reduce", Seating.of_counts([m] * (n // m)))

    closed = cheapest("all_reduce", V, Spread.of(n, m), links, available=["halving_doubling"])

    steps_s = _lockstep_s(schedule, V, starts=True)
    assert steps_s * (1 - 1e-9) <= float(closed.time_s) <= 1.25 * steps_s


@pytest.mark.parametrize(("n", "m"), EVEN)
def test_ports_and_nics_of_trees_switches_and_exchanges_carry_the_closed_form_s_bytes(
    n: int, m: int
) -> None:
    seating, spread = Seating.of_counts([m] * (n // m)), Spread.of(n, m)
    links = two_tiers(
        inside_bytes_per_s=1.0, nic_bytes_per_s=1.0, inside_reduction=True, across_reduction=True
    )
    k = n // m
    cases = [
        ("all_reduce", "double_tree", trees.double_tree(seating)),
        ("all_reduce", "switch_reduction" if k == 1 else "switch_tree", trees.switch_tree(seating)),
        ("all_to_all", "direct", exchanges.direct_all_to_all(seating)),
        ("all_to_all", "hierarchical", exchanges.hierarchical_all_to_all(seating)),
    ]
    for collective, name, schedule in cases:
        payload = 1.0 if collective == "all_reduce" else 1.0 * n * n
        pair = payload if collective == "all_reduce" else 1.0
        closed = cheapest(collective, pair, spread, links, available=[name])
        counted = moved(schedule)
        ranks = range(n)
        port = max((counted.by_port.get(r, 0) for r in ranks), default=0) / schedule.units
        nic = max((counted.by_nic.get(r, 0) for r in ranks), default=0) / schedule.units
        if m > 1:
            assert port * payload == pytest.approx(float(closed.inside_s)), name
        if collective == "all_to_all" or k == 2:
            assert nic * payload == pytest.approx(float(closed.across_s)), name
