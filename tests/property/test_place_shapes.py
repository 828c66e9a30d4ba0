"""Shapes of all domains together: no seating cuts less than their bound, and slabs are seatings."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pytest

from planner.errors import PlannerError
from planner.place import shapes, touch_search
from planner.place.bound import _domain_bound
from planner.place.child import in_child
from planner.place.merge import counted_bounds
from planner.place.nested_fill import nested_fillings
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.seat_line import line_fillings
from planner.place.shapes import relaxed_bound, shape_rules, whole_bound
from planner.place.solve import Work, solve_question
from tests.oracles import brute_force_cut, random_small_shape

ROUNDING = 1e-9


def _question(seed: int) -> Question:
    shape = random_small_shape(np.random.default_rng(500_000 + seed))
    return Question(
        sizes=shape["sizes"],
        charges=tuple(Charge(axes=a, kind=Kind(k), weight_bytes=w) for a, k, w in shape["charges"]),
        capacities=shape["capacities"],
    )


def _touching(*weights: float) -> tuple[Charge, ...]:
    return tuple(
        Charge(axes=(axis,), kind=Kind.TOUCH, weight_bytes=weight)
        for axis, weight in enumerate(weights)
    )


def _undercut(seeds: Iterable[int]) -> tuple[list[str], int]:
    """Return (bounds above the best seating's cut, bounds looked at)."""
    wrong, looked_at = [], 0
    for seed in seeds:
        question = _question(seed)
        best = brute_force_cut(question)
        for slack in (1.0, 1.4):
            cut = best * slack
            rules = shape_rules(question, cut)
            if rules is None or not cut:
                continue
            looked_at += 1
            bounds = (relaxed_bound(rules), whole_bound(rules, 10.0))
            wrong += [
                f"seed {seed}: bound {bound} > best {best}: {question}"
                for bound in bounds
                if min(bound, cut) > best * (1 + ROUNDING) + ROUNDING
            ]
    return wrong, looked_at


@pytest.mark.parametrize(
    "seeds", [range(80), pytest.param(range(80, 400), marks=pytest.mark.nightly)]
)
def test_no_choice_of_shapes_is_dearer_than_the_best_seating(seeds: range) -> None:
    wrong, looked_at = _undercut(seeds)

    assert wrong == []
    assert looked_at > 0.25 * len(seeds)


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(8))
def test_no_choice_of_shapes_is_dearer_than_any_of_thousands_of_best_seatings(part: int) -> None:
    wrong, _ = _undercut(range(1000 + 500 * part, 1500 + 500 * part))

    assert wrong == []


def test_two_columns_in_two_large_domains_and_a_small_one_are_proved_by_shapes() -> None:
    """64 x 2 cells in 48 + 48 + 32: no domain alone shows that 48 more columns are parted."""
    question = Question(sizes=(64, 2), charges=_touching(35.4, 1.0), capacities=(48, 48, 32))
    columns_parted = 48  # each large domain holds a row of 48, the small one 16 columns whole
    cut = 2 * 35.4 + columns_parted

    rules = shape_rules(question, cut)

    assert rules is not None
    assert relaxed_bound(rules) < cut * 0.99
    assert whole_bound(rules, 10.0) == pytest.approx(cut)


def test_many_shapes_are_chosen_from_in_a_process_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The same is proved there, and Ctrl-C need not wait for it."""
    question = Question(sizes=(64, 2), charges=_touching(35.4, 1.0), capacities=(48, 48, 32))
    cut = 2 * 35.4 + 48
    rules = shape_rules(question, cut)
    assert rules is not None
    asked: list[float] = []

    def noted(function: Any, arguments: tuple[Any, ...], time_limit_s: float) -> Any:
        asked.append(time_limit_s)
        return in_child(function, arguments, time_limit_s)

    monkeypatch.setattr(shapes, "in_child", noted)
    monkeypatch.setattr(shapes, "_PROMPT_SHAPES", len(rules.cost_bytes) - 1)

    assert whole_bound(rules, 10.0) == pytest.approx(cut)
    assert asked == [10.0]


def test_a_domain_of_whole_rows_leaves_columns_to_the_others() -> None:
    """64 x 16 cells in 384 + 384 + 256: six whole rows, then columns of ten, one of them shared."""
    rows, columns = 4.43, 1.0
    question = Question(
        sizes=(64, 16), charges=_touching(rows, columns), capacities=(384, 384, 256)
    )

    answer = solve_question(question, time_limit_s=60.0)

    assert answer.objective_bytes == pytest.approx(10 * rows + 65 * columns)
    assert answer.lower_bound_bytes == pytest.approx(answer.objective_bytes)


def test_a_solver_whose_bound_is_above_the_seating_is_not_believed() -> None:
    question = Question(sizes=(64, 2), charges=_touching(35.4, 1.0), capacities=(48, 48, 32))
    work = Work(question=question, seed=0)
    work.offer(np.repeat([0, 1, 2], question.capacities), "one after the other")

    with pytest.raises(PlannerError, match="fault of the planner"):
        work.believe(1e6)


def test_weights_far_apart_do_not_lift_the_solvers_bound_above_the_best_seating() -> None:
    charges = (
        Charge(axes=(0, 2), kind=Kind.PAIRS, weight_bytes=1.0),
        Charge(axes=(1, 2, 3), kind=Kind.PAIRS, weight_bytes=2.0),
        Charge(axes=(0, 1, 2), kind=Kind.TOUCH, weight_bytes=3138952.2029204783),
        Charge(axes=(0,), kind=Kind.CHAIN, weight_bytes=0.0038802538038696364),
        Charge(axes=(1, 2, 3), kind=Kind.TOUCH, weight_bytes=0.6943316788490294),
    )
    question = Question(sizes=(2, 1, 3, 2), charges=charges, capacities=(10, 3))
    best = brute_force_cut(question)

    rules = shape_rules(question, best * 1.000002)

    assert rules is not None
    assert whole_bound(rules, 10.0) <= best * (1 + ROUNDING)


@pytest.mark.parametrize("capacities", [(1,), (2,), (1, 1), (0, 3)])
def test_a_single_cell_crosses_nothing_wherever_it_sits(capacities: tuple[int, ...]) -> None:
    for sizes in ((), (1,), (1, 1)):
        answer = solve_question(Question(sizes=sizes, charges=(), capacities=capacities))

        assert answer.objective_bytes == answer.lower_bound_bytes == 0
        assert len(answer.home) == 1


def test_seats_to_spare_are_left_in_domains_of_any_size() -> None:
    """32 lines of 8 cells in domains that hold 8 or 7 whole lines: more domains than are needed."""
    charges = (
        Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=100.0),
        Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=1.0),
    )
    question = Question(sizes=(8, 8, 4), charges=charges, capacities=(64, 63, 62, 61, 60, 60))

    answer = solve_question(question, time_limit_s=60.0)
    homes = np.array(answer.home)

    assert (np.bincount(homes, minlength=6) <= question.capacities).all()
    # A slice of the third axis is 8 lines: one fits a domain whole, three lose a line each, which
    # parts all 8 lines along the second axis.
    assert answer.objective_bytes == 3 * 8
    assert answer.lower_bound_bytes == pytest.approx(24)


@pytest.mark.parametrize("fill", [nested_fillings, line_fillings])
@pytest.mark.parametrize("held", [(72, 72, 72, 40), (5, 100, 0, 151), (256,)])
def test_every_filling_seats_every_cell_once(fill: object, held: tuple[int, ...]) -> None:
    question = Question(sizes=(8, 2, 16), charges=_touching(3.0, 1.0, 0.5), capacities=held)

    homes = list(fill(question, held))  # type: ignore[operator]

    assert homes
    for home in homes:
        assert np.bincount(home, minlength=len(held)).tolist() == list(held)


def test_boxes_within_boxes_split_one_ring_in_eight_and_not_every_ring() -> None:
    """16 rings of 16 in fourteen domains of 18 and one of 4: each holds one ring and two cells."""
    ring = Charge(axes=(0,), kind=Kind.RING, weight_bytes=1.0)
    question = Question(sizes=(16, 16), charges=(ring,), capacities=(*(18,) * 14, 4))

    best = min(cut_bytes(question, home) for home in nested_fillings(question, question.capacities))

    assert best == 15  # two rings parted, among eight domains and among seven
    assert solve_question(question, time_limit_s=0.0).lower_bound_bytes == 15


def test_domains_whose_searches_tell_other_families_have_no_rules_in_common(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A search that is cut short tells its dearest family: not the same one in every domain."""
    pairs = Charge(axes=(0,), kind=Kind.PAIRS, weight_bytes=4.0)
    touch = Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=1.0)
    question = Question(sizes=(5, 2), charges=(pairs, touch), capacities=(2, 9, 6))
    best = brute_force_cut(question)
    monkeypatch.setattr(touch_search, "VECTORS", 2)
    _domain_bound.cache_clear()

    rules, bound = shape_rules(question, 1000.0), max(counted_bounds(question, 1000.0))
    _domain_bound.cache_clear()

    assert rules is None
    assert bound <= best
