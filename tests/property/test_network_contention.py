"""Laws of families that share links: what leaves a supernode is the formulas', nobody gains."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.layout import Layout
from planner.network.contention import phase_pressures
from planner.network.loads import loads_of
from planner.network.wiring import wiring_of
from planner.steptime.columns import columns_of
from planner.steptime.shared_links import active_families
from planner.traffic import Family, step_families
from topologies.fabric_catalogue import generic_cluster
from topologies.model_reader import read_model

MODELS = {"dense": read_model("llama-3.1-8b"), "experts": read_model("mixtral-8x7b")}
LAYOUTS = (
    ("dense", Layout(tp=4, dp=3, global_batch=6)),
    ("dense", Layout(tp=2, cp=2, dp=3, global_batch=6, zero_stage=0)),
    ("dense", Layout(pp=4, dp=3, global_batch=12, zero_stage=3)),
    ("dense", Layout(tp=2, pp=2, vpp=2, dp=3, global_batch=12, sequence_parallel=False)),
    ("experts", Layout(ep=4, dp=12, global_batch=12)),
    ("experts", Layout(tp=2, ep=2, etp=2, dp=6, global_batch=12)),
)
FABRIC = generic_cluster(5, 12)  # 5 + 5 + 2
HOMES = FABRIC.domain_index("supernode")


def leaving_bytes(family: Family, members: np.ndarray, seats: np.ndarray) -> float:
    """Return what one execution sends out of supernodes, group by group, by the book's formulas.

    A ring laid contiguously leaves each of the k domains once with 2 V (n - 1) / n (half of it for
    a gather), however many rails share it; an all-to-all sends v n_i (n - n_i) out of each domain.
    """
    total = 0.0
    for group in members:
        homes = [int(HOMES[seats[rank]]) for rank in group]
        counts = list(Counter(homes).values())
        n, k = len(group), len(counts)
        match family.collective:
            case "all_reduce":
                total += 2 * (n - 1) / n * family.payload_bytes * (k if k > 1 else 0)
            case "all_gather" | "reduce_scatter":
                total += (n - 1) / n * family.payload_bytes * (k if k > 1 else 0)
            case "all_to_all":
                total += family.payload_bytes * sum(c * (n - c) for c in counts)
            case "ring":
                total += family.payload_bytes * (k if k > 1 else 0)
            case "chain":
                pairs = pairwise(homes)
                total += family.payload_bytes * sum(a != b for a, b in pairs)
            case _:
                pytest.fail(f"no formula for {family.collective}")
    return total


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(LAYOUTS), st.permutations(range(12)))
def test_what_leaves_supernodes_is_what_the_formulas_say(
    case: tuple[str, Layout], order: list[int]
) -> None:
    model, layout = case
    seats = np.array(order)
    wiring = wiring_of(FABRIC)
    active = active_families(layout, step_families(MODELS[model], layout), columns_of(layout))

    loads = loads_of(wiring, active, seats)

    is_nic, is_gpu = wiring.links.is_nic, wiring.links.is_gpu
    out = is_gpu[wiring.links.tails] & is_nic[wiring.links.heads]
    for one, load in zip(active, loads, strict=True):
        expected = leaving_bytes(one.family, one.members, seats)
        assert float(load.load_bytes[out].sum()) == pytest.approx(expected), one.family.name


@settings(max_examples=40, deadline=None)
@given(
    st.sampled_from(LAYOUTS),
    st.permutations(range(12)),
    st.floats(min_value=1e-3, max_value=1e3),
)
def test_nobody_gains_by_sharing_and_a_longer_phase_shares_less(
    case: tuple[str, Layout], order: list[int], lasts_s: float
) -> None:
    model, layout = case
    wiring = wiring_of(FABRIC)
    active = active_families(layout, step_families(MODELS[model], layout), columns_of(layout))

    phases = [
        phase_pressures(wiring, active, order, {"forward": lasts, "backward": lasts})
        for lasts in (lasts_s, 2 * lasts_s)
    ]

    for short, long in zip(*phases, strict=True):
        for first, second in zip(short.families, long.families, strict=True):
            assert first.slowdown_ratio >= 1 - 1e-12
            if short.phase_s is not None:
                assert second.slowdown_ratio <= first.slowdown_ratio + 1e-9
        busiest = max(one.busy_s for one in short.links)
        assert busiest <= sum(one.busy_s for one in short.families) * (1 + 1e-9)
        assert busiest >= max(one.busy_s for one in short.families) * (1 - 1e-9)


def test_what_was_routed_before_is_what_routing_anew_gives() -> None:
    fabric = generic_cluster(supernode=8, gpus=64)
    layouts = [
        Layout(tp=4, dp=16, global_batch=64),
        Layout(tp=8, dp=8, global_batch=64),
        Layout(tp=4, cp=2, dp=4, pp=2, global_batch=64),
        Layout(tp=2, cp=4, dp=4, pp=2, global_batch=64),
    ]
    model = read_model("llama-3.1-8b")
    orders = [np.arange(64), np.arange(64)[::-1].copy(), np.random.default_rng(1).permutation(64)]
    kept = wiring_of(fabric)

    for layout, seats in [(one, order) for one in layouts for order in orders] * 2:
        active = active_families(layout, step_families(model, layout), columns_of(layout))
        again = loads_of(kept, active, seats)
        anew = loads_of(replace(kept, routed={}), active, seats)

        for one, other in zip(again, anew, strict=True):
            assert np.array_equal(one.load_bytes, other.load_bytes)
            assert np.array_equal(one.flows, other.flows)
