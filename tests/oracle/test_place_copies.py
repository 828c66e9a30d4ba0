"""One copy of a token for each domain: the price by every choice of experts, the bound by force."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from planner.errors import InputError, PlannerError
from planner.layout import Layout
from planner.network.flows import group_flows
from planner.place import place, solve_question
from planner.place.answer import Proof
from planner.place.borders import sent_bytes
from planner.place.bound import lower_bound
from planner.place.check import CheckedEntry, judged
from planner.place.copies import copy_units
from planner.place.improve import improved
from planner.place.question import Charge, Kind, Question, coarsen, cut_bytes, refine_home
from planner.place.tiles import best_tiles
from planner.traffic import step_families
from tests.oracles import brute_force_cut, copies_that_cross, random_small_shape, slow_cut_bytes
from topologies.fabric_catalogue import generic_cluster
from topologies.model_reader import read_model

SHARE = 1e-9
SPREADS = ([0, 0, 1, 1], [0, 1, 2, 3], [0, 0, 0, 1], [0, 1, 1, 2], [3, 3, 3, 3], [0, 1, 0, 1])


@pytest.mark.parametrize("homes", SPREADS)
@pytest.mark.parametrize(("experts", "top_k"), [(4, 1), (4, 2), (4, 4), (8, 2), (8, 3), (12, 5)])
def test_the_price_is_the_mean_over_every_choice_of_experts(
    homes: list[int], experts: int, top_k: int
) -> None:
    charge = Charge(
        axes=(0,), kind=Kind.COPIES, weight_bytes=1.0, units=copy_units(4, experts, top_k)
    )
    question = Question(sizes=(4,), charges=(charge,), capacities=(4, 4, 4, 4))
    entry = CheckedEntry(
        collective="domain_all_to_all", payload_bytes=1.0, times_per_step=1.0,
        members=[[0, 1, 2, 3]], experts=experts, top_k=top_k,
    )  # fmt: skip
    seats = np.array([4 * home + i for i, home in enumerate(homes)])

    enumerated = copies_that_cross(homes, experts, top_k)

    assert cut_bytes(question, np.array(homes)) == pytest.approx(enumerated, rel=1e-12)
    assert sent_bytes(question, np.array(homes)).sum() == pytest.approx(enumerated, rel=1e-12)
    checked = judged(np.repeat(np.arange(4), 4), seats.tolist(), [entry])
    assert checked.total_bytes == pytest.approx(enumerated, rel=1e-12)


def test_half_of_what_goes_in_and_half_of_what_comes_out_is_each_domains_share() -> None:
    charge = Charge(axes=(0,), kind=Kind.COPIES, weight_bytes=1.0, units=copy_units(4, 4, 1))
    question = Question(sizes=(4,), charges=(charge,), capacities=(3, 1))

    # one expert a token: 3 tokens reach the lone expert by 1/4, its own leaves by 3/4
    assert sent_bytes(question, np.array([0, 0, 0, 1])).tolist() == pytest.approx([0.75, 0.75])


def test_one_copy_a_domain_never_costs_more_than_one_an_expert() -> None:
    for experts, top_k in [(8, 1), (8, 2), (16, 4), (256, 8)]:
        units = copy_units(8, experts, top_k)
        for held, unit in enumerate(units):
            assert unit <= held * (8 - held) * top_k / 8 + 1e-12


def test_entries_that_cannot_be_judged_are_named() -> None:
    entry = CheckedEntry(
        collective="domain_all_to_all", payload_bytes=1.0, times_per_step=1.0,
        members=[[0, 1, 2]], experts=4, top_k=5,
    )  # fmt: skip

    with pytest.raises(PlannerError) as caught:
        judged(np.array([0, 0, 1]), [0, 1, 2], [entry])

    assert "top_k=5 of experts=4" in str(caught.value)
    assert "3 members do not divide experts=4" in str(caught.value)


def _question(seed: int) -> Question:
    """Return a small random question in which some charges are copies of a domain."""
    random = np.random.default_rng(500_000 + seed)
    shape = random_small_shape(random)
    charges: dict[Any, Charge] = {}
    for i, (axes, kind, weight) in enumerate(shape["charges"]):
        size = int(np.prod([shape["sizes"][a] for a in axes]))
        if i == 0 or kind == "pairs":
            experts = size * int(random.integers(1, 4))
            top_k = int(random.integers(1, experts + 1))
            units = copy_units(size, experts, top_k)
            charge = Charge(axes=axes, kind=Kind.COPIES, weight_bytes=weight, units=units)
        else:
            charge = Charge(axes=axes, kind=Kind(kind), weight_bytes=weight)
        charges[axes, charge.kind] = charge
    return Question(
        sizes=shape["sizes"], charges=tuple(charges.values()), capacities=shape["capacities"]
    )


def _wrong(seeds: Iterable[int]) -> list[str]:
    wrong = []
    for seed in seeds:
        question = _question(seed)
        answer = solve_question(question, time_limit_s=60.0, seed=seed)
        best = brute_force_cut(question)
        close = pytest.approx(best, rel=1e-6, abs=SHARE)
        if not (
            answer.objective_bytes == close
            and answer.lower_bound_bytes == close
            and slow_cut_bytes(question, answer.home) == close
            and answer.proof is not Proof.INCUMBENT
            and lower_bound(question) <= best * (1 + SHARE) + SHARE
        ):
            wrong.append(f"seed {seed}: best {best}, {answer}, {question}")
    return wrong


def test_small_questions_with_copies_are_answered_as_well_as_any_seating() -> None:
    assert _wrong(range(40)) == []


@pytest.mark.nightly
def test_many_more_small_questions_with_copies_are_answered_as_well_as_any_seating() -> None:
    assert _wrong(range(40, 1500)) == []


@pytest.mark.parametrize(
    "seeds", [range(2000, 2100), pytest.param(range(2100, 2400), marks=pytest.mark.nightly)]
)
def test_no_small_question_with_copies_has_a_bound_above_its_best_seating(seeds: range) -> None:
    for seed in seeds:
        question = _question(seed)
        best = brute_force_cut(question)

        assert lower_bound(question) <= best * (1 + SHARE) + SHARE, question


def test_boxes_kept_together_and_exchanges_price_copies_as_they_are() -> None:
    units = copy_units(4, 8, 3)
    copies = Charge(axes=(0, 1), kind=Kind.COPIES, weight_bytes=2.0, units=units)
    question = Question(sizes=(2, 2, 3), charges=(copies,), capacities=(4, 4, 4))
    coarse = coarsen(question, (2, 1, 1), (2, 2, 2))
    home = np.array([0, 1, 1, 2, 2, 0])

    fine = refine_home(question, (2, 1, 1), home)

    assert cut_bytes(coarse, home) == pytest.approx(cut_bytes(question, fine))
    assert slow_cut_bytes(question, fine.tolist()) == pytest.approx(cut_bytes(question, fine))
    assert cut_bytes(question, improved(question, fine)) == 0.0
    assert best_tiles(question, 4)[0].cut_bytes == 0.0
    assert best_tiles(question, 3)[0].sides == (1, 1, 3)
    assert best_tiles(question, 3)[0].cut_bytes == pytest.approx(3 * 4 * 2.0 * units[1])


def test_an_expert_layout_of_one_copy_a_domain_is_placed_proved_and_checked() -> None:
    layout = Layout(tp=2, dp=32, ep=8, global_batch=32, seq=4096, ep_copies="domain")
    model = read_model("mixtral-8x7b")
    families = step_families(model, layout)
    exchanges = [family for family in families if family.digit == "ep"]

    placement = place(layout, families, generic_cluster(4, 64), time_limit_s=20.0)

    assert {family.collective for family in exchanges} == {"domain_all_to_all"}
    # one member's tokens: 4096 tokens x 4096 hidden x 2 bytes, split by tp
    assert exchanges[0].payload_bytes == 4096 * 4096 * 2 / 2
    assert placement.checked_bytes == pytest.approx(placement.objective_bytes)
    assert placement.objective_bytes >= placement.lower_bound_bytes > 0
    assert all(rival.cut_bytes >= placement.objective_bytes for rival in placement.baselines)


def test_the_flows_between_gpus_carry_the_copies_that_cross() -> None:
    homes = np.array([0, 0, 0, 1, 1, 2, 3, 3])
    groups = np.array([[0, 1, 3, 5], [2, 4, 6, 7]])

    flows = group_flows("domain_all_to_all", 10.0, groups, homes, experts=8, top_k=3)

    away = homes[flows.sources] != homes[flows.targets]
    crossed = sum(copies_that_cross(homes[group].tolist(), 8, 3) for group in groups)
    assert flows.sizes_bytes[away].sum() == pytest.approx(10.0 * crossed)


def test_flows_without_the_number_of_experts_are_refused() -> None:
    with pytest.raises(InputError, match="experts=0"):
        group_flows("domain_all_to_all", 10.0, np.array([[0, 1]]), np.array([0, 1]))
