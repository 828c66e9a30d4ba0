"""Seatings of real questions: never worse than a baseline, whole boxes round dead GPUs."""

from __future__ import annotations

import numpy as np
import pytest

from planner.errors import InputError
from planner.layout import Layout, groups_along
from planner.place import Proof, place, solve_question
from planner.place.baselines import baselines
from planner.place.question import Charge, Kind, Question, ask, cut_bytes
from planner.traffic import step_families
from topologies.fabric_catalogue import generic_cluster
from topologies.model_reader import read_model


def test_two_dead_gpus_cost_their_domains_a_box_and_split_none() -> None:
    model = read_model("llama-3.1-405b")
    layout = Layout(tp=8, dp=7, pp=18, global_batch=2016, seq=8192)
    question = ask(layout, step_families(model, layout), (*(16,) * 62, 15, 15))

    answer = solve_question(question, time_limit_s=1.0)

    home = np.array(answer.home)
    tensor_groups = home[groups_along(question.sizes, (0,))]
    assert (tensor_groups == tensor_groups[:, :1]).all()
    assert np.bincount(home).max() <= 16
    for _, rival in baselines(question, 0):
        assert answer.objective_bytes <= cut_bytes(question, rival) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("capacities", "expected"),
    [((8,) * 16, 43.2), ((48, 48, 32), 12.4)],
)
def test_128_blocks_by_touches_are_proved(capacities: tuple[int, ...], expected: float) -> None:
    charges = tuple(
        Charge(axes=(axis,), kind=Kind.TOUCH, weight_bytes=weight)
        for axis, weight in enumerate((4.0, 1.0, 0.2))
    )
    question = Question(sizes=(2, 16, 4), charges=charges, capacities=capacities)

    answer = solve_question(question, time_limit_s=60.0)

    assert answer.objective_bytes == pytest.approx(expected)
    assert answer.lower_bound_bytes == pytest.approx(expected)
    assert answer.proof in (Proof.BOUND, Proof.SOLVER)


def test_the_405b_layout_in_384_384_256_is_proved() -> None:
    model = read_model("llama-3.1-405b")
    layout = Layout(tp=16, dp=16, pp=4, global_batch=2048, seq=8192)
    question = ask(layout, step_families(model, layout), (384, 384, 256))

    answer = solve_question(question, time_limit_s=60.0)

    assert answer.proof in (Proof.BOUND, Proof.SOLVER)
    # One stage in two supernodes: its gradients cross once (4 bytes reduced, 2 gathered, each
    # parameter); 32 of the 48 x 16 pipeline hops cross, forward and backward, 128 micro-batches.
    parameters = model.parameters() / 4
    hop_bytes = 8192 * 16384 * 2 / 16
    hops = 32 * 16 * 2 * 128 * hop_bytes
    assert answer.objective_bytes == pytest.approx(parameters * (4 + 2) + hops, rel=1e-6)


def test_what_the_cut_does_not_model_is_refused() -> None:
    layout = Layout(tp=2, dp=8, ep=8, global_batch=8, seq=4096, sequence_parallel=False)
    families = step_families(read_model("mixtral-8x7b"), layout)

    with pytest.raises(InputError, match="gather"):
        place(layout, families, generic_cluster(8, 16))


def test_ulysses_sends_whole_key_value_heads() -> None:
    layout = Layout(tp=8, cp=4, dp=1, cp_kind="ulysses", global_batch=1, seq=8192)
    families = {f.name: f for f in step_families(read_model("llama-3.1-405b"), layout)}

    # 2048 tokens, 16 query heads a TP rank: a peer gets 4 of q and of o, and one head each of k, v.
    assert families["cp_forward_exchange"].payload_bytes == 2048 * (2 * 4 + 2 * 1) * 128 * 2


def test_a_family_that_costs_nothing_changes_no_answer() -> None:
    paid = tuple(
        Charge(axes=(axis,), kind=Kind.TOUCH, weight_bytes=weight)
        for axis, weight in enumerate((5.0, 2.0, 3.0))
    )
    free = Charge(axes=(0, 1), kind=Kind.TOUCH, weight_bytes=0.0)
    without, with_it = (
        solve_question(
            Question(sizes=(4, 4, 4), charges=charges, capacities=(15,) * 5), time_limit_s=0.0
        )
        for charges in (paid, (*paid, free))
    )

    assert with_it.objective_bytes == pytest.approx(without.objective_bytes)
    assert with_it.lower_bound_bytes == pytest.approx(without.lower_bound_bytes)
