"""The busiest border of small questions against every seating there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import permutations, product
from math import prod
from typing import TYPE_CHECKING

import numpy as np
import pytest

from planner.errors import InputError
from planner.place import objective_model as rules
from planner.place import solve_question
from planner.place.answer import Proof
from planner.place.borders import sent_bytes
from planner.place.copies import copy_units
from planner.place.milp import solve_border
from planner.place.objective import BorderAnswer, least_busy
from planner.place.objective_alone import alone_bound_bytes, group_limits
from planner.place.objective_bound import border_bound_s, boxes_kept, parted_bound_bytes
from planner.place.objective_search import border_times_s, less_busy, stages_swapped
from planner.place.question import Charge, Kind, Question, cut_bytes
from tests.oracles import (
    brute_force_border_s,
    digit_groups,
    every_seating,
    slow_border_bytes,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

SHARE = 1e-9
_GRIDS = ((2, 2), (6,), (2, 3), (5,), (4,), (2, 2, 2), (3, 2), (7,), (2, 4))
_KINDS = ("touch", "touch", "touch", "pairs", "ring", "chain", "ends", "copies")


def _asked(seed: int, kinds: tuple[str, ...] = _KINDS) -> tuple[Question, tuple[float, ...]]:
    """Return a question of 8 cells or fewer in 2 or 3 domains, and the domains' uplinks."""
    random = np.random.default_rng(900_000 + seed)
    sizes = _GRIDS[random.integers(len(_GRIDS))]
    cells, domains = prod(sizes), int(random.integers(2, 4))
    spare = int(random.choice([0, 0, 1, 2]))
    if random.random() < 0.3 and cells % domains == 0:
        capacities = (cells // domains,) * domains
    else:
        cuts = np.sort(random.integers(1, cells + spare, domains - 1))
        parts = np.diff([0, *cuts.tolist(), cells + spare])
        capacities = tuple(int(p) for p in parts if p)
    if len(capacities) < 2:
        capacities = (cells, 1)
    charges: dict[tuple[tuple[int, ...], str], Charge] = {}
    for _ in range(int(random.integers(1, 5))):
        axes = tuple(i for i in range(len(sizes)) if random.random() < 0.5) or (0,)
        kind = str(random.choice(kinds))
        size = prod(sizes[i] for i in axes)
        units: tuple[float, ...] = ()
        if kind == "copies":
            units = copy_units(size, 2 * size, int(random.integers(1, size + 1)))
        weight = float(random.integers(1, 6)) if random.random() < 0.5 else random.uniform(0.1, 9)
        charges[axes, kind] = Charge(
            axes=axes, kind=Kind(kind), weight_bytes=float(weight), units=units
        )
        if kind == "ends":
            chain = Charge(axes=axes, kind=Kind.CHAIN, weight_bytes=float(random.integers(1, 6)))
            charges.setdefault((axes, "chain"), chain)
    if random.random() < 0.5:
        rates = tuple(float(c) for c in capacities)
    else:
        rates = tuple(float(r) for r in random.choice([1.0, 1.0, 2.0, 5.0], len(capacities)))
    return Question(sizes=sizes, charges=tuple(charges.values()), capacities=capacities), rates


def _answered(seed: int) -> tuple[Question, tuple[float, ...], BorderAnswer, float]:
    question, rates = _asked(seed)
    total = solve_question(question, time_limit_s=60.0, seed=seed)
    answer = least_busy(question, rates, total, time_limit_s=60.0, seed=seed)
    return question, rates, answer, brute_force_border_s(question, rates)


def _wrong(seeds: Iterable[int]) -> tuple[list[str], Counter[Proof], int]:
    wrong, proofs, best_found = [], Counter[Proof](), 0
    for seed in seeds:
        question, rates, answer, best_s = _answered(seed)
        proofs[answer.proof] += 1
        best_found += answer.objective_s <= best_s * (1 + SHARE)
        held = np.bincount(answer.home, minlength=len(rates))
        sent = slow_border_bytes(question, answer.home)
        busy_s = max(b / r for b, r in zip(sent, rates, strict=True))
        proved = answer.proof is not Proof.INCUMBENT
        if not (
            (held <= question.capacities).all()
            and busy_s == pytest.approx(answer.objective_s, rel=SHARE, abs=SHARE)
            and answer.lower_bound_s <= best_s * (1 + 1e-6) + SHARE
            and answer.objective_s >= best_s * (1 - SHARE)
            and (not proved or answer.objective_s <= best_s * (1 + 1e-6))
            and (not proved or answer.lower_bound_s == answer.objective_s)
        ):
            wrong.append(f"seed {seed}: best {best_s}, {answer}, {question}, {rates}")
    return wrong, proofs, best_found


@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 200), marks=pytest.mark.nightly)]
)
def test_small_questions_have_no_less_busy_border_than_the_answers(seeds: range) -> None:
    wrong, proofs, best_found = _wrong(seeds)

    assert wrong == []
    assert proofs[Proof.BOUND] > len(seeds) / 4
    assert proofs[Proof.SOLVER] > len(seeds) / 60
    assert proofs[Proof.INCUMBENT] == 0
    assert best_found >= len(seeds) - 1


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(200, 4200, 500))
def test_many_more_small_questions_have_no_less_busy_border(start: int) -> None:
    wrong, _, best_found = _wrong(range(start, start + 500))

    assert wrong == []
    assert best_found >= 490


def test_what_borders_send_is_what_crosses_message_by_message() -> None:
    random = np.random.default_rng(5)
    for seed in range(200):
        question, _ = _asked(seed)
        seats = np.repeat(np.arange(len(question.capacities)), question.capacities)
        home = random.permutation(seats)[: question.cells]

        sent = sent_bytes(question, home)

        assert sent.tolist() == pytest.approx(slow_border_bytes(question, home.tolist()))
        assert sent.sum() == pytest.approx(cut_bytes(question, home))


def test_no_border_is_below_its_bounds_in_any_random_seating() -> None:
    _no_border_is_below(range(1000, 1070))


@pytest.mark.nightly
@pytest.mark.parametrize("seeds", [range(1070, 1200), range(20_000, 23_000)])
def test_nor_is_any_in_thousands_more(seeds: range) -> None:
    _no_border_is_below(seeds)


def _no_border_is_below(seeds: Iterable[int]) -> None:
    random = np.random.default_rng(6)
    for seed in seeds:
        question, rates = _asked(seed)
        seats = np.repeat(np.arange(len(rates)), question.capacities)
        home = random.permutation(seats)[: question.cells]
        held = np.bincount(home, minlength=len(rates))
        sent = slow_border_bytes(question, home.tolist())
        busy_s = max(b / r for b, r in zip(sent, rates, strict=True))

        limits = group_limits(question, rates, busy_s * (1 + SHARE))
        for s, bytes_sent in enumerate(sent):
            least = alone_bound_bytes(question, int(held[s]), limits[s])
            assert least <= bytes_sent * (1 + SHARE) + SHARE, (question, home)
            for axes, here, _ in limits[s]:
                of_one = [(home[line] == s).sum() for line in digit_groups(question.sizes, axes)]
                assert max(of_one) <= here, (question, home)
        assert border_bound_s(question, rates, 0.0, busy_s) <= busy_s * (1 + SHARE)


@pytest.mark.parametrize(
    "seeds", [range(4000, 4100), pytest.param(range(4100, 4300), marks=pytest.mark.nightly)]
)
def test_no_seating_that_parts_a_box_said_to_be_kept_is_less_busy(seeds: range) -> None:
    kept = 0
    for seed in seeds:
        question, rates = _asked(seed, ("touch", "touch", "ring", "pairs", "chain"))
        domains, cells = len(rates), question.cells
        homes = [
            home
            for home in product(range(domains), repeat=cells)
            if all(home.count(s) <= c for s, c in enumerate(question.capacities))
        ]
        chosen = homes[:: max(1, len(homes) // 40)]
        times = [
            max(b / r for b, r in zip(slow_border_bytes(question, home), rates, strict=True))
            for home in chosen
        ]
        best = int(np.argmin(times))
        limit_s = 1.2 * times[best]  # above the least, so that some parting seating could beat it
        sides = boxes_kept(question, np.array(chosen[best]), rates, limit_s)
        for axis in (axis for axis, side in enumerate(sides) if side > 1):
            kept += 1
            lines = digit_groups(question.sizes, (axis,))
            for home, busy_s in zip(chosen, times, strict=True):
                if any(len({home[cell] for cell in line}) > 1 for line in lines):
                    assert busy_s >= limit_s * (1 - SHARE)
    assert kept >= len(seeds) / 30


@pytest.mark.parametrize(
    "seeds", [range(4300, 4340), pytest.param(range(4340, 4400), marks=pytest.mark.nightly)]
)
def test_no_seating_that_parts_a_line_cuts_less_than_it_is_said_to(seeds: range) -> None:
    met = 0
    for seed in seeds:
        question, _ = _asked(seed, ("touch", "ring", "pairs", "chain", "copies"))
        homes = every_seating(question.cells, question.capacities)
        for axis, size in enumerate(question.sizes):
            if size == 1:
                continue
            lines = np.array(digit_groups(question.sizes, (axis,)))
            parting = homes[(homes[:, lines] != homes[:, lines[:, :1]]).any(axis=(1, 2))]
            cuts = [cut_bytes(question, home.astype(np.int64)) for home in parting[:400]]
            bound = parted_bound_bytes(question, axis)

            assert bound <= min(cuts, default=bound) * (1 + SHARE) + SHARE
            met += bound >= min(cuts, default=np.inf) * (1 - SHARE)
    assert met >= len(seeds) / 5


def test_a_domain_holds_no_more_of_a_group_than_it_may_part_others_for() -> None:
    # pairs of 10 bytes stay together: 4 seats hold 2 of them, so of a line of 4 across the pairs
    # they hold 2; with 3 of it and one of the other line they part two pairs, half of 10 bytes
    # sent for each, and half of a byte at least for each line
    pairs = Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=10.0)
    lines = Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=1.0)
    question = Question(sizes=(2, 4), charges=(pairs, lines), capacities=(4, 2, 2))
    rates = (1.0, 1.0, 1.0)

    limits = group_limits(question, rates, 4.9)

    assert limits[0] == (((0,), 2, 2), ((1,), 2, 1))
    assert limits[1] == (((0,), 2, 2), ((1,), 1, 2))
    assert group_limits(question, rates, 10.9)[0][1] == ((1,), 2, 2)
    assert group_limits(question, rates, 11.1)[0][1] == ((1,), 3, 2)
    # the two seats hold one cell of each of two lines, in three domains each: 2 x 2/3 bytes
    least_s = border_bound_s(question, rates, 0.0, 4.9)
    assert least_s == pytest.approx(4 / 3)
    assert least_s == pytest.approx(brute_force_border_s(question, rates))


def test_a_middle_stage_is_bounded_by_both_its_hops() -> None:
    chain = Charge(axes=(0,), kind=Kind.CHAIN, weight_bytes=6.0)
    question = Question(sizes=(4,), charges=(chain,), capacities=(1,) * 4)

    # four domains, two ends: some domain holds a middle stage and sends half of two hops
    assert border_bound_s(question, (1.0,) * 4, 18.0, 6.0) == pytest.approx(6.0)


def test_stages_change_places_where_that_spares_the_busiest_border() -> None:
    # stages of four replicas in 6 + 6 + 4 seats: by stages in order the middle domain has a
    # parted stage and two borders of hops; with the whole stages in the middle it has one of them
    chain = Charge(axes=(1,), kind=Kind.CHAIN, weight_bytes=1.0)
    replicas = Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=9.0)
    question = Question(sizes=(4, 4), charges=(chain, replicas), capacities=(6, 6, 4))
    home = np.array([0] * 6 + [1] * 6 + [2] * 4)
    rates = np.array([6.0, 6.0, 4.0])
    before = border_times_s(question, rates, home)

    after = border_times_s(question, rates, stages_swapped(question, rates, home))

    assert after.max() < before.max()
    assert brute_force_of_stages(question, rates, home) == pytest.approx(after.max())


def brute_force_of_stages(
    question: Question, rates: NDArray[np.float64], home: NDArray[np.int64]
) -> float:
    grid = home.reshape(4, 4)
    found = []
    for order in permutations(range(4)):
        sent = slow_border_bytes(question, grid[list(order)].ravel().tolist())
        found.append(max(b / float(r) for b, r in zip(sent, rates, strict=True)))
    return min(found)


def test_exchanges_never_make_the_busiest_border_busier_and_often_less_busy() -> None:
    random = np.random.default_rng(7)
    shorter = 0
    for seed in range(2000, 2016):
        question, rates = _asked(seed)
        seats = np.repeat(np.arange(len(rates)), question.capacities)
        home = random.permutation(seats)[: question.cells]
        speeds = np.array(rates)
        before = border_times_s(question, speeds, home).max()

        found = less_busy(question, speeds, home, seed=seed)

        after = border_times_s(question, speeds, found).max()
        assert after <= before * (1 + SHARE)
        assert (np.bincount(found, minlength=len(rates)) <= question.capacities).all()
        shorter += after < before * (1 - 1e-6)
    assert shorter >= 6


def test_equal_tiles_that_share_the_least_cut_evenly_are_proved() -> None:
    question = Question(
        sizes=(2, 16, 4),
        charges=tuple(
            Charge(axes=(axis,), kind=Kind.TOUCH, weight_bytes=weight)
            for axis, weight in enumerate((4.0, 1.0, 0.2))
        ),
        capacities=(8,) * 16,
    )
    total = solve_question(question)

    answer = least_busy(question, (2.0,) * 16, total)

    # the 2 x 4 x 1 tile cuts 43.2, and each of the 16 borders sends as much: 43.2 / 16 / 2
    assert answer.proof is Proof.BOUND
    assert answer.objective_s == pytest.approx(1.35)


def test_the_middle_of_a_pipeline_is_not_busier_than_it_must() -> None:
    # four stages, four replicas, four domains of four: by stages the middle ones carry two hops
    # for each replica (4 x 2 / 2), the outer ones one; reductions of 1 cost 3/4 if spread out
    chain = Charge(axes=(0,), kind=Kind.CHAIN, weight_bytes=1.0)
    replicas = Charge(axes=(1,), kind=Kind.TOUCH, weight_bytes=10.0)
    question = Question(sizes=(4, 4), charges=(chain, replicas), capacities=(4,) * 4)

    answer = least_busy(question, (1.0,) * 4, solve_question(question), time_limit_s=30.0)

    assert answer.objective_s == pytest.approx(4.0)
    assert answer.lower_bound_s <= 4.0


def test_ctrl_c_while_borders_are_bounded_keeps_the_seating_in_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=1.0)
    question = Question(sizes=(3, 4), charges=(lines,), capacities=(5, 5, 2))
    total = solve_question(question)

    def interrupted(*asked: object) -> tuple[int, ...]:
        raise KeyboardInterrupt

    monkeypatch.setattr("planner.place.objective.boxes_kept", interrupted)
    answer = least_busy(question, (1.0,) * 3, total)

    assert answer.interrupted
    assert answer.home == total.home
    assert answer.proof is Proof.INCUMBENT


def test_a_domain_without_an_uplink_is_refused() -> None:
    question = Question(
        sizes=(4,), charges=(Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=1.0),),
        capacities=(2, 2),
    )  # fmt: skip

    with pytest.raises(InputError, match="no uplink"):
        least_busy(question, (1.0, 0.0), solve_question(question))


@pytest.mark.parametrize("rule", ["_reduced", "_ringed", "_exchanged", "_passed"])
def test_a_rule_that_sends_nothing_is_noticed(rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong_bounds() -> int:
        wrong = 0
        for seed in range(3000, 3012):
            question, rates = _asked(seed, ("touch", "ring", "pairs", "chain", "copies"))
            home = np.repeat(np.arange(len(rates)), question.capacities)[: question.cells]
            solved = solve_border(question, list(rates), home, 1.0, 30.0, 0)
            best_s = brute_force_border_s(question, rates)
            found_s = solved.lower_bound_bytes / (sum(rates) / len(rates))
            wrong += abs(found_s - best_s) > 1e-5 * max(1.0, best_s)
        return wrong

    if rule == "_reduced":
        assert wrong_bounds() == 0

    monkeypatch.setattr(rules, rule, lambda model, *_: [0.0] * len(model.question.capacities))

    assert wrong_bounds() > 0
