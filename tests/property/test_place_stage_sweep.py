"""Stage after stage: a sweep finds the cheapest choice of patterns that there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import inf, prod

import numpy as np
import pytest

from planner.layout import Layout
from planner.place import Proof
from planner.place.clock import TimeUp
from planner.place.question import Charge, Kind, Question, ask, cut_bytes
from planner.place.solve import solve_question
from planner.place.stage_joins import Beyond, Pairs
from planner.place.stage_prices import Priced, Prices, priced_at, stage_prices
from planner.place.stage_sweep import StageDealing
from planner.place.stage_ways import cheapest_ways
from planner.place.stages import Staged, pattern_bytes, patterns_of, staged
from planner.place.sweep import swept
from planner.traffic import step_families
from tests.oracles import brute_force_cut
from tests.small_questions import small_pipelines, ways_to_hold
from topologies.model_reader import read_model

ROUNDING = 1e-9
SOLVER = 2e-6  # what stages cost together is a solver's word
EVERYTHING = 10**9


class _Said(Beyond):
    """Says that cuttings and stages that follow each other cost more: any numbers will do."""

    def cutting_bytes(self, parts: tuple[int, ...]) -> float:
        return float(sum((i + 1) * k for i, k in enumerate(parts)) % 5)

    def joined_bytes(self, stage: int, pairs: Pairs) -> float:
        ends = (stage == 1) + 2 * (stage == self.of.stages - 1)
        return float((ends + sum(n * (3 * a + 5 * b) for (a, b), n in pairs)) % 4)


def _beyond_bytes(of: Staged, held: np.ndarray, beyond: Beyond) -> tuple[float, float]:
    """Return what cuttings of the stages cost more, and what stages that follow each other do."""
    cut = sum(
        beyond.cutting_bytes(tuple(sorted((int(k) for k in column if k), reverse=True)))
        for column in held.T
    )
    joined = 0.0
    for j in range(1, of.stages):
        two = Counter((int(a), int(b)) for a, b in held[:, j - 1 : j + 1] if a or b)
        joined += beyond.joined_bytes(j, frozenset(two.items()))
    return cut, joined


def _least(of: Staged, said: _Said | None) -> float:
    """Return the least that any way to hold cells of stages costs, counted one by one."""
    best = inf
    for held in ways_to_hold(of.question, of.sheet.cells):
        paid = float(pattern_bytes(of, held).sum()) - of.given_bytes
        if said is not None:
            paid += sum(_beyond_bytes(of, held, said))
        best = min(best, paid)
    return best


def _small(seeds: range) -> Iterator[tuple[Question, Staged]]:
    for question in small_pipelines(seeds):
        of = staged(question)
        if of is not None and question.cells <= 12:
            yield question, of


def _drawn(of: Staged, seed: int) -> Priced:
    random = np.random.default_rng(seed)
    pieces = random.random((of.stages, len(of.pieces[0]))) * 0.3 * of.pays_bytes.max()
    cells = random.normal(scale=0.3 * of.pays_bytes.max(), size=of.stages)
    return priced_at(of, Prices(cell_bytes=cells, piece_bytes=pieces))


@pytest.mark.parametrize("more", [False, True])
@pytest.mark.parametrize(
    "seeds", [range(12), pytest.param(range(12, 150), marks=pytest.mark.nightly)]
)
def test_a_sweep_finds_what_counting_every_choice_of_patterns_finds(
    seeds: range, *, more: bool
) -> None:
    asked = 0
    for seed, (question, of) in enumerate(_small(seeds)):
        said = _Said(of=of, slack_bytes=inf, ends_s=inf) if more else None
        least = _least(of, said)
        priced = _drawn(of, seed)
        found = swept(
            StageDealing(priced.patterns, said), 2 * abs(least) + 50.0, 0.0, EVERYTHING, inf
        )
        assert found.ended
        assert found.bound_bytes == pytest.approx(least, rel=ROUNDING, abs=1e-6), question
        assert found.held is not None
        assert (found.held.sum(axis=0) == of.sheet.cells).all()
        assert (found.held.sum(axis=1) <= question.capacities).all()
        none = swept(StageDealing(priced.patterns, said), least, 0.0, EVERYTHING, inf)
        assert none.held is None
        assert none.bound_bytes <= least * (1 + ROUNDING) + 1e-6
        asked += 1
    assert asked > len(seeds) / 2


@pytest.mark.parametrize(
    "seeds", [range(100, 130), pytest.param(range(3000, 3400), marks=pytest.mark.nightly)]
)
def test_no_seating_of_a_small_pipeline_cuts_less_than_a_sweep_says(seeds: range) -> None:
    for question in small_pipelines(seeds):
        best, of = brute_force_cut(question), staged(question)
        if of is None or not best:
            continue
        any_home = np.repeat(np.arange(len(question.capacities)), question.capacities)
        priced = stage_prices(of, any_home[: question.cells], inf)
        for most in (30, 300, EVERYTHING):
            for known_bytes in (0.0, 0.9 * best):
                beyond = Beyond(of=of, slack_bytes=best, ends_s=inf)
                found = swept(
                    StageDealing(priced.patterns, beyond), 1.5 * best, known_bytes, most, inf
                )
                assert found.bound_bytes <= best * (1 + SOLVER), question


@pytest.mark.parametrize(
    "seeds", [range(200, 230), pytest.param(range(4000, 4400), marks=pytest.mark.nightly)]
)
def test_stages_with_one_reduction_are_seated_as_the_sweep_says(seeds: range) -> None:
    """Every choice of patterns is a seating there: the least is the optimum, by brute force."""
    for question in small_pipelines(seeds):
        kept = tuple(c for c in question.charges if c.axes != (0,))
        bare = Question(sizes=question.sizes, charges=kept, capacities=question.capacities)
        best, of = brute_force_cut(bare), staged(bare)
        if of is None or not best or of.closing_bytes:
            continue
        any_home = np.repeat(np.arange(len(bare.capacities)), bare.capacities)[: bare.cells]
        dealing = StageDealing(stage_prices(of, any_home, inf).patterns)
        found = swept(dealing, 1.5 * best, 0.0, EVERYTHING, inf)
        assert found.bound_bytes == pytest.approx(best, rel=ROUNDING), bare


def _of_eight_cells() -> Staged:
    """Two stages of four in domains of six and two: the least way cuts 12.

    One stage is whole, of the other two cells lie elsewhere: 10 for its second part, a hop each.
    """
    charge = Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=10.0)
    hop = Charge(axes=(1,), kind=Kind.CHAIN, weight_bytes=1.0)
    of = staged(Question(sizes=(4, 2), charges=(charge, hop), capacities=(6, 2)))
    assert of is not None
    return of


def _two_families(seed: int) -> tuple[Question, np.ndarray]:
    """Return stages with two families each in three domains, and a seating, shape [cells]."""
    random = np.random.default_rng(7_300_000 + seed)
    sizes = ((2, 4, 2), (3, 3, 2), (2, 3, 3), (4, 2, 2))[random.integers(4)]
    kinds = [(Kind.TOUCH, Kind.RING, Kind.PAIRS)[k] for k in random.integers(3, size=2)]
    weights = random.integers(1, 20, size=3).astype(float).tolist()
    charges = tuple(
        Charge(axes=(axis,), kind=kind, weight_bytes=weight)
        for axis, (kind, weight) in enumerate(zip((*kinds, Kind.CHAIN), weights, strict=True))
    )
    cells = prod(sizes)
    capacities = (cells - 2 * (cells // 3), cells // 3, cells // 3)
    home = random.permutation(np.repeat(np.arange(3), capacities))
    return Question(sizes=sizes, charges=charges, capacities=capacities), home


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(1000, 1400), marks=pytest.mark.nightly)]
)
def test_what_stages_cost_together_is_no_more_than_their_cheapest_seating_cuts(
    seeds: range,
) -> None:
    cut_and_joined = 0
    for seed in seeds:
        question, home = _two_families(seed)
        of = staged(question)
        assert of is not None
        held, beyond = patterns_of(of, home), Beyond(of=of, slack_bytes=1e3, ends_s=inf)
        cheapest = cheapest_ways(of, held, inf)
        if cheapest is None:
            continue
        paid = float(pattern_bytes(of, held).sum()) - of.given_bytes
        cut, joined = _beyond_bytes(of, held, beyond)

        assert paid + cut + joined <= cut_bytes(question, cheapest) * (1 + SOLVER), question
        cut_and_joined += cut > 0 and joined > 0
    assert cut_and_joined > len(seeds) / 20


class _Late(Beyond):
    """Has the time run out when the first way is found that costs less than the cut."""

    def cutting_bytes(self, parts: tuple[int, ...]) -> float:
        del parts
        raise TimeUp


def test_a_sweep_that_is_cut_short_keeps_what_it_proved() -> None:
    of = _of_eight_cells()
    poor = _drawn(of, 0)
    late = _Late(of=of, slack_bytes=0.0, ends_s=inf)

    found = swept(StageDealing(poor.patterns, late), 20.0, 0.0, EVERYTHING, inf)

    assert not found.ended
    assert found.held is None
    assert poor.bound_bytes + 1.0 < found.bound_bytes <= 12.0


def test_racks_of_eighteen_blocks_are_proved_where_a_solver_left_two_per_cent() -> None:
    """16 blocks in each of 16 stages, racks of 18 and one of 4: 37 parts of stages, 114 runs.

    Counted by hand from its patterns, e.g. (9, 9) five times and (7, 7, 4) twice.
    """
    part_bytes, hop_bytes = 255.988682784, 60.129542144
    question = Question(
        sizes=(16, 16),
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=part_bytes),
            Charge(axes=(1,), kind=Kind.CHAIN, weight_bytes=hop_bytes),
        ),
        capacities=(18,) * 14 + (4,),
    )
    answer = solve_question(question, time_limit_s=60.0)
    assert answer.proof is Proof.BOUND
    assert answer.objective_bytes == pytest.approx((37 - 16) * part_bytes + (114 - 16) * hop_bytes)


def test_a_proof_that_two_stages_cost_more_together_is_a_solvers() -> None:
    """DeepSeek-V3 in racks of 72: two stages that follow cost more than each by itself."""
    model = read_model("deepseek-v3")
    layout = Layout(tp=4, cp=8, ep=32, dp=2, pp=16, seq=8192, global_batch=4096)
    question = ask(layout, step_families(model, layout), (72,) * 14 + (16,))
    answer = solve_question(question, time_limit_s=60.0)
    assert answer.proof is Proof.SOLVER
    assert answer.objective_bytes == pytest.approx(196.0784e12, rel=1e-5)
