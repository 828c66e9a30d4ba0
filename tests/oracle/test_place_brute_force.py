"""The proved answer against every seating there is, and faults planted in the model's rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pulp
import pytest

from planner.place import formulate as rules
from planner.place import solve_question
from planner.place.answer import Proof
from planner.place.copies import copy_units
from planner.place.milp import Solved, solve_milp
from planner.place.question import Charge, Kind, Question
from planner.place.touch_search import least_touches
from tests.oracles import brute_force_cut, random_small_shape, slow_cut_bytes

SHARE = 1e-9
SOLVER_SHARE = 1e-6  # HiGHS' own tolerance on a bound


def _question(seed: int) -> Question:
    shape = random_small_shape(np.random.default_rng(100_000 + seed))
    return Question(
        sizes=shape["sizes"],
        charges=tuple(Charge(axes=a, kind=Kind(k), weight_bytes=w) for a, k, w in shape["charges"]),
        capacities=shape["capacities"],
    )


def _odd_question(seed: int) -> Question:
    """Return a question with copies, an axis of one cell and a domain without seats."""
    question, random = _question(seed), np.random.default_rng(300_000 + seed)
    place = int(random.integers(len(question.sizes) + 1))
    along: dict[tuple[int, ...], tuple[int, ...]] = {}
    charges: dict[tuple[tuple[int, ...], Kind, tuple[float, ...]], Charge] = {}
    for charge in question.charges:
        kind, units, size = charge.kind, charge.units, question.group_size(charge.axes)
        if kind in (Kind.PAIRS, Kind.TOUCH) and random.random() < 0.4:
            top_k = int(random.integers(1, size + 1))
            kind, units = Kind.COPIES, copy_units(size, 2 * size, top_k)
        if charge.axes not in along:
            axes = [axis + (axis >= place) for axis in charge.axes]
            along[charge.axes] = tuple(sorted([*axes, place] if random.random() < 0.4 else axes))
        axes_now = along[charge.axes]
        charges[axes_now, kind, units] = replace(charge, axes=axes_now, kind=kind, units=units)
    return Question(
        sizes=(*question.sizes[:place], 1, *question.sizes[place:]),
        charges=tuple(charges.values()),
        capacities=(*question.capacities, 0),
    )


def _wrong_answers(
    seeds: Iterable[int], question_of: Callable[[int], Question] = _question
) -> tuple[list[str], Counter[Proof]]:
    wrong, proofs = [], Counter[Proof]()
    for seed in seeds:
        question = question_of(seed)
        answer = solve_question(question, time_limit_s=60.0, seed=seed)
        best = brute_force_cut(question)
        proofs[answer.proof] += 1
        held = np.bincount(answer.home, minlength=len(question.capacities))
        close = pytest.approx(best, rel=SHARE, abs=SHARE)
        if not (
            (held <= question.capacities).all()
            and answer.objective_bytes == close
            and answer.lower_bound_bytes == close
            and slow_cut_bytes(question, answer.home) == close
            and answer.proof is not Proof.INCUMBENT
        ):
            wrong.append(f"seed {seed}: best {best}, {answer}, {question}")
    return wrong, proofs


@pytest.mark.parametrize(
    "seeds", [range(80), pytest.param(range(80, 300), marks=pytest.mark.nightly)]
)
def test_small_questions_are_answered_as_well_as_any_seating_and_proved(seeds: range) -> None:
    wrong, proofs = _wrong_answers(seeds)

    assert wrong == []
    assert proofs[Proof.BOUND] > len(seeds) / 3
    assert proofs[Proof.SOLVER] > len(seeds) / 30


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 400), marks=pytest.mark.nightly)]
)
def test_copies_axes_of_one_cell_and_domains_without_seats_are_answered_as_well(
    seeds: range,
) -> None:
    wrong, _ = _wrong_answers(seeds, _odd_question)

    assert wrong == []


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(300, 2500, 200))
def test_many_more_small_questions_are_answered_as_well_as_any_seating(start: int) -> None:
    wrong, _ = _wrong_answers(range(start, start + 200))

    assert wrong == []


# One small question for each rule, so that each rule decides somewhere.
def _asked(
    sizes: tuple[int, ...],
    capacities: tuple[int, ...],
    *charges: tuple[tuple[int, ...], Kind, float],
) -> Question:
    return Question(
        sizes=sizes,
        capacities=capacities,
        charges=tuple(Charge(axes=a, kind=k, weight_bytes=w) for a, k, w in charges),
    )


QUESTIONS = (
    _asked((2, 4), (4, 4), ((0,), Kind.TOUCH, 3.0), ((1,), Kind.TOUCH, 1.0)),
    _asked((2, 4), (5, 3), ((0,), Kind.TOUCH, 3.0), ((1,), Kind.TOUCH, 1.0)),
    _asked((9,), (3, 3, 3), ((0,), Kind.PAIRS, 1.0)),
    _asked((4, 2), (5, 3), ((0,), Kind.PAIRS, 1.0), ((1,), Kind.TOUCH, 2.5)),
    _asked((2, 4), (3, 3, 2), ((1,), Kind.RING, 1.0), ((0,), Kind.TOUCH, 1.0)),
    _asked((3, 3), (4, 5), ((0,), Kind.CHAIN, 1.0), ((1,), Kind.TOUCH, 0.4)),
    _asked((6,), (1, 1, 4), ((0,), Kind.CHAIN, 1.0), ((0,), Kind.ENDS, 0.5)),
    _asked(
        (2, 2, 2),
        (3, 3, 2),
        ((0,), Kind.TOUCH, 1.0),
        ((1, 2), Kind.TOUCH, 2.0),
        ((2,), Kind.PAIRS, 0.3),
    ),
    _asked((2, 3), (2, 3, 3), ((0, 1), Kind.TOUCH, 1.0), ((0,), Kind.RING, 2.0)),
)


def _solved(question: Question) -> Solved:
    in_order = np.repeat(np.arange(len(question.capacities)), question.capacities)
    return solve_milp(question, in_order[: question.cells], 1.0, 60.0, 0)


def _is_right(question: Question) -> bool:
    try:
        solved = _solved(question)
    except Exception:  # noqa: BLE001 - a model that cannot be solved is caught as well
        return False
    best = brute_force_cut(question)
    if solved.home is None or not solved.closed:
        return False
    held = np.bincount(solved.home, minlength=len(question.capacities))
    return bool(
        (held <= question.capacities).all()
        and slow_cut_bytes(question, solved.home) <= best * (1 + SHARE) + SHARE
        and abs(solved.lower_bound_bytes - best) <= SOLVER_SHARE * max(1.0, best)
    )


@pytest.mark.parametrize("number", range(len(QUESTIONS)))
def test_the_model_alone_finds_and_proves_the_best_seating(number: int) -> None:
    assert _is_right(QUESTIONS[number])


def _nothing(*_: object) -> None:
    """Leave a rule out."""


@pytest.mark.parametrize("rule", ["_respect_capacities", "_seat_every_cell"])
def test_a_rule_left_out_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, rule, _nothing)

    assert not all(map(_is_right, QUESTIONS))


def test_touches_that_no_seat_forces_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def free(model: rules.Model, axes: tuple[int, ...]) -> None:
        for g in range(model.question.groups(axes)):
            for s in range(len(model.question.capacities)):
                model.touch[axes, g, s] = rules._binary(model, f"touch_{axes}_{g}_{s}")

    monkeypatch.setattr(rules, "_mark_touches", free)

    assert not all(map(_is_right, QUESTIONS))


def test_hops_that_no_seat_forces_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "_apart", lambda model, name, *_: rules._share(model, name))

    assert not all(map(_is_right, QUESTIONS))


def test_a_ring_priced_as_a_reduction_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        rules, "_ring_cost", lambda model, charge, g, _: rules._touch_cost(model, charge, g)
    )

    assert not all(map(_is_right, QUESTIONS))


def test_an_all_to_all_priced_along_a_straight_line_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def straight(model: rules.Model, charge: Charge, g: int, members: list[int]) -> object:
        touched = rules._touch_cost(model, charge, g)
        return (len(members) - 1) * touched

    monkeypatch.setattr(rules, "_pairs_cost", straight)

    assert not all(map(_is_right, QUESTIONS))


def test_a_bound_that_cuts_off_the_best_seating_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rules, "least_touches", lambda *asked: 1.3 * least_touches(*asked))

    assert not all(map(_is_right, QUESTIONS))


def test_unequal_domains_taken_for_equal_ones_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def order_all(model: rules.Model) -> None:
        for s in range(len(model.question.capacities) - 1):
            for b in range(model.question.cells):
                earlier = [model.seat[c, s] for c in range(b)]
                rules._require(model, model.seat[b, s + 1] <= pulp.lpSum(earlier))

    monkeypatch.setattr(rules, "_order_equal_domains", order_all)

    assert not all(map(_is_right, QUESTIONS))


def test_the_cells_of_a_chain_taken_for_interchangeable_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def order_every_axis(model: rules.Model) -> None:
        for low, high in pairwise(range(model.question.cells)):
            rules._require(model, model.seat[low, 0] >= model.seat[high, 0])

    # the lone seat is best given to the middle of the chain: 2, against 1 + 2 at an end
    middle = _asked((3,), (1, 2), ((0,), Kind.CHAIN, 1.0), ((0,), Kind.ENDS, 2.0))
    assert brute_force_cut(middle) == 2.0
    assert _is_right(middle)

    monkeypatch.setattr(rules, "_order_axes", order_every_axis)

    assert not _is_right(middle)
