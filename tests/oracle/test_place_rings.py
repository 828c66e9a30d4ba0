"""Flat rings, walked edge by edge, against their price; and against every seating."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from planner.errors import InputError
from planner.layout import Layout
from planner.place import Proof, place, solve_question
from planner.place.question import Question, ask, charges_of, cut_bytes
from planner.place.rings import laid
from planner.traffic import Family, step_families
from tests.oracles import brute_force_cut, digit_groups, slow_cut_bytes
from topologies.fabric_catalogue import generic_cluster
from topologies.model_reader import read_model

PASSES = {"all_reduce": 2, "reduce_scatter": 1, "all_gather": 1}


def _family(collective: str, axes: tuple[int, ...], size: int) -> Family:
    return Family(
        name="dp_reduce", digit="dp", axes=axes, group_size=size, groups=1, collective=collective,
        payload_bytes=60.0, times_per_step=3.0, phase="end",
    )  # fmt: skip


def _walked(members: list[int], home: list[int], passes: int) -> float:
    """Return what a ring over *members* crosses in that order: n - 1 chunks of V / n a pass."""
    chunk_bytes = 60.0 / len(members)
    crossed = 0.0
    for _ in range(3 * passes * (len(members) - 1)):
        for one, other in pairwise([*members, members[0]]):
            crossed += chunk_bytes * (home[one] != home[other])
    return crossed


@pytest.mark.parametrize("collective", sorted(PASSES))
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (0, 2), (0, 1, 2)])
def test_a_flat_ring_is_priced_as_walked_chunk_by_chunk(
    collective: str, axes: tuple[int, ...]
) -> None:
    sizes = (2, 3, 2)
    size = int(np.prod([sizes[i] for i in axes]))
    family = _family(collective, axes, size)
    random = np.random.default_rng(3)
    for _ in range(20):
        home = random.permutation(np.repeat(np.arange(4), 3))
        groups = digit_groups(sizes, axes)
        by_domain = [sorted(group, key=lambda rank: (home[rank], rank)) for group in groups]
        walked = {
            "flat": sum(_walked(g, home.tolist(), PASSES[collective]) for g in by_domain),
            "flat-in-rank-order": sum(
                _walked(g, home.tolist(), PASSES[collective]) for g in groups
            ),
        }
        for reductions, crossed in walked.items():
            charges = charges_of(laid([family], reductions))
            question = Question(sizes=sizes, charges=charges, capacities=(3, 3, 3, 3))

            assert cut_bytes(question, home) == pytest.approx(crossed), reductions


def test_two_members_exchange_the_same_whatever_the_ring() -> None:
    family = _family("all_reduce", (0,), 2)
    for reductions in ("hierarchical", "flat", "flat-in-rank-order"):
        question = Question(
            sizes=(2,), charges=charges_of(laid([family], reductions)), capacities=(1, 1)
        )

        assert cut_bytes(question, np.array([0, 1])) == 2 * 60.0 * 3


def test_an_unknown_way_to_reduce_is_refused() -> None:
    with pytest.raises(InputError, match="hierarchical, flat, flat-in-rank-order"):
        laid([], "tree")


@pytest.mark.parametrize("reductions", ["flat", "flat-in-rank-order"])
def test_small_layouts_with_flat_rings_are_answered_as_well_as_any_seating(reductions: str) -> None:
    model = read_model("llama-3.1-8b")
    for layout in (
        Layout(tp=2, dp=4, global_batch=16),
        Layout(dp=4, pp=2, global_batch=16),
        Layout(cp=2, dp=2, pp=2, global_batch=16),
    ):
        families = laid(step_families(model, layout), reductions)
        for capacities in ((4, 4), (3, 5), (3, 3, 2), (4, 3, 3)):
            question = ask(layout, families, capacities)

            answer = solve_question(question, time_limit_s=60.0)

            best = brute_force_cut(question)
            assert answer.proof is not Proof.INCUMBENT
            assert answer.objective_bytes == pytest.approx(best, rel=1e-9)
            assert slow_cut_bytes(question, answer.home) == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("reductions", ["flat", "flat-in-rank-order"])
def test_a_placement_with_flat_rings_is_checked_and_no_baseline_is_better(reductions: str) -> None:
    layout = Layout(tp=2, cp=2, dp=8, pp=2, global_batch=64)
    families = laid(step_families(read_model("llama-3.1-8b"), layout), reductions)

    placement = place(layout, families, generic_cluster(8, 64), time_limit_s=5.0)

    assert placement.checked_bytes == pytest.approx(placement.objective_bytes)
    assert sum(placement.by_family.values()) == pytest.approx(placement.objective_bytes)
    assert all(rival.cut_bytes >= placement.objective_bytes for rival in placement.baselines)
