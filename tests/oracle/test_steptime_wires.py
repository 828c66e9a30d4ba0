"""The fast twin of the collectives' cost against the full comparison of algorithms."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.collectives.cost import cheapest
from planner.collectives.links import LinkNumbers, Protocol, Spread, two_tiers
from planner.steptime.spread import Spreads
from planner.steptime.wires import (
    Wire,
    all_reduce_s,
    all_to_all_s,
    gather_s,
    hop_s,
    wires_of,
)

SIZES = st.sampled_from([1, 2, 4, 8, 16, 64])
ALONE = Spread.of(1, 1)


# NCCL hands on 128 KiB at a time up and down a tree of this depth (src/enqueue.cc)
FILLING = Protocol(name="simple", fill_bytes=131072.0)


def links(inside: float, nic: float, latency: float) -> LinkNumbers:
    plain = two_tiers(
        inside_bytes_per_s=inside, nic_bytes_per_s=nic, inside_latency_s=latency,
        nic_latency_s=3 * latency,
    )  # fmt: skip
    return replace(plain, protocols=(FILLING,))


def on_trees(numbers: LinkNumbers) -> LinkNumbers:
    """Return *numbers* with the NICs at what NCCL's tuner gives a tree: 0.8, the mean of its
    factors at 16 to 256 MiB.
    """
    slower = tuple(replace(tier, efficiency_share=0.8) for tier in numbers.outer)
    return replace(numbers, tiers=(numbers.inside, *slower))


def wire(spread: Spread, numbers: LinkNumbers) -> Wire:
    spreads = Spreads(tp=spread, cp=ALONE, ep=ALONE, etp=ALONE, dp=ALONE, edp=ALONE, pp=ALONE)
    return wires_of(spreads, numbers).tp


@given(SIZES, SIZES, st.floats(1e3, 1e10), st.sampled_from([0.0, 1e-6, 1e-5]))
@settings(max_examples=80)
def test_gathers_cost_what_one_ring_a_rail_does(
    together: int, supernodes: int, payload: float, latency: float
) -> None:
    spread, numbers = Spread.of(together * supernodes, together), links(400e9, 50e9, latency)

    for collective in ("all_gather", "reduce_scatter"):
        expected = cheapest(
            collective, payload, spread, numbers, available=["all_rail_ring"]
        ).time_s
        assert float(gather_s(payload, wire(spread, numbers))) == pytest.approx(
            float(expected), rel=1e-9
        )


@given(SIZES, SIZES, st.floats(1e3, 1e10), st.sampled_from([0.0, 1e-6, 1e-5]))
@settings(max_examples=80)
def test_an_all_reduce_costs_what_a_stock_library_picks(
    together: int, supernodes: int, payload: float, latency: float
) -> None:
    spread, numbers = Spread.of(together * supernodes, together), links(400e9, 50e9, latency)

    expected = min(
        float(cheapest("all_reduce", payload, spread, on, available=[walk]).time_s)
        for walk, on in (("all_rail_ring", numbers), ("double_tree", on_trees(numbers)))
    )

    assert float(all_reduce_s(payload, wire(spread, numbers))) == pytest.approx(
        float(expected), rel=1e-9
    )


@given(SIZES, SIZES, st.floats(1e3, 1e8))
@settings(max_examples=60)
def test_an_all_to_all_costs_what_going_straight_does(
    together: int, supernodes: int, pair: float
) -> None:
    spread, numbers = Spread.of(together * supernodes, together), links(400e9, 50e9, 0.0)

    expected = cheapest("all_to_all", pair, spread, numbers, available=["direct"]).time_s

    assert float(all_to_all_s(pair, wire(spread, numbers))) == pytest.approx(
        float(expected), rel=1e-9
    )


@given(SIZES, SIZES, st.floats(1e3, 1e9))
@settings(max_examples=60)
def test_a_ring_hop_costs_what_its_slowest_neighbours_do(
    together: int, supernodes: int, hop: float
) -> None:
    spread, numbers = Spread.of(together * supernodes, together), links(400e9, 50e9, 1e-6)

    expected = cheapest("ring", hop, spread, numbers).time_s

    assert float(hop_s(hop, wire(spread, numbers))) == pytest.approx(float(expected), rel=1e-9)
