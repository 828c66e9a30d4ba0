"""Inner domains that stay in one pipeline stage, against every seating there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from math import prod

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.place.kept_stages import stage_boxes
from planner.place.labour import Labour
from planner.place.question import Charge, Kind, Question
from planner.place.tree import Tree
from tests.oracle.test_place_tiers import Case, cuts_of_all, named_seatings

# cells of a stage along one or two axes, stages, cells of an inner domain, inner of each outer one
SHAPES = (
    ((4,), 2, 2, (2, 2)), ((4,), 2, 2, (3, 1)), ((2, 2), 2, 2, (2, 2)), ((2,), 4, 2, (2, 2)),
    ((3,), 3, 3, (2, 1)), ((4,), 3, 4, (2, 1)), ((2,), 4, 2, (1, 2, 1)), ((2, 2), 2, 2, (1, 2, 1)),
)  # fmt: skip


def random_case(seed: int) -> Case:
    """Return a pipeline of stages with one reduction each, in equal inner and any outer domains."""
    random = np.random.default_rng(8_000_000 + seed)
    stage, stages, held, outer = SHAPES[random.integers(len(SHAPES))]
    inside = tuple(range(len(stage)))
    weights = random.integers(1, 7, 2) if random.random() < 0.5 else random.uniform(0.2, 6, 2)
    charges = [
        Charge(axes=inside, kind=Kind.TOUCH, weight_bytes=float(weights[0])),
        Charge(axes=(len(stage),), kind=Kind.CHAIN, weight_bytes=float(weights[1]) / 2.0),
    ]
    domains = sum(outer)
    parents = np.repeat(np.arange(len(outer)), outer)
    capacities = (
        (held,) * domains,
        tuple(int(n) * held for n in outer),
        (held * domains,),
    )
    return Case(
        sizes=(*stage, stages),
        charges=tuple(charges),
        tree=Tree(
            names=("inner", "outer", "cluster"),
            capacities=capacities,
            parents=(parents, np.zeros(len(outer), np.int64)),
            uplinks_bytes_per_s=tuple((1.0,) * len(c) for c in capacities),
        ),
        asked=0,
        weights=None,
    )


def stages_held(case: Case, homes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the most stages that an inner domain of each seating reaches into."""
    stage = np.arange(prod(case.sizes)) // prod(case.sizes[:-1])
    most = np.zeros(len(homes), np.int64)
    for domain in range(len(case.tree.capacities[0])):
        held = [((homes == domain) & (stage == s)).any(axis=1) for s in range(case.sizes[-1])]
        most = np.maximum(most, np.sum(held, axis=0))
    return most


def wrong_claims(seeds: Iterable[int], told: Counter[str]) -> list[str]:
    wrong = []
    for seed in seeds:
        case = random_case(seed)
        questions = [case.question(tier) for tier in range(3)]
        homes = named_seatings(prod(case.sizes), case.tree.capacities[0])
        cuts = cuts_of_all(case)
        for share in (1.0, 1.1, 1.3):
            cut = float(cuts[:, 0].min()) * share
            as_good = cuts[:, 0] <= cut * (1 + 1e-9)
            least = float(cuts[as_good, 1].min())
            boxes = stage_boxes(questions, case.tree, (cut, least, 0.0), 0, 1)
            told["asked"] += 1
            if boxes is None:
                continue
            told["boxes"] += 1
            answer = Labour().answer(boxes.question)
            assert answer is not None
            bound = answer.lower_bound_bytes
            told["met"] += abs(bound - least) <= 1e-6 * least
            if bound > least * (1 + 1e-7) + 1e-7:
                wrong.append(f"seed {seed}: bound {bound} above {least} up to {cut}: {case}")
            if stages_held(case, homes[as_good]).max() > 1:
                wrong.append(f"seed {seed}: an inner domain has two stages up to {cut}: {case}")
    return wrong


@pytest.mark.parametrize(
    "seeds", [range(50), pytest.param(range(50, 150), marks=pytest.mark.nightly)]
)
def test_no_seating_as_good_parts_an_inner_domain_said_to_stay_in_a_stage(seeds: range) -> None:
    told: Counter[str] = Counter()

    assert wrong_claims(seeds, told) == []
    assert told["boxes"] > 0.54 * len(seeds)
    assert told["met"] > 0.9 * told["boxes"]


@pytest.mark.nightly
def test_nor_does_any_in_thousands_more() -> None:
    assert wrong_claims(range(150, 3000), Counter()) == []


def test_outer_domains_are_bounded_by_whole_inner_ones() -> None:
    # 16 x 16 boxes of 16, ratio of prices about one: 4 x 8 boxes each, by hand
    question = Question(
        sizes=(256, 16),
        charges=(
            Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=17.7),
            Charge(axes=(1,), kind=Kind.CHAIN, weight_bytes=1.0),
        ),
        capacities=(16,) * 256,
    )
    questions = [
        question,
        Question(sizes=(256, 16), charges=question.charges, capacities=(512,) * 8),
    ]
    capacities = ((16,) * 256, (512,) * 8, (4096,))
    tree = Tree(
        names=("leaf", "pod", "cluster"),
        capacities=capacities,
        parents=(np.repeat(np.arange(8), 32), np.zeros(8, np.int64)),
        uplinks_bytes_per_s=tuple((1.0,) * len(c) for c in capacities),
    )
    leaf = 16 * 15 * 17.7 + 15 * 256  # each a sixteenth of a stage: 15 more a stage, all hops
    pod = 16 * 1 * 17.7 + 3 * 256  # 2 pods to a stage, 3 borders along each pipeline

    boxes = stage_boxes([*questions, question], tree, (leaf, pod, 0.0), 0, 1)

    assert boxes is not None
    assert boxes.sides == (16, 1)
    answer = Labour().answer(boxes.question)
    assert answer is not None
    assert answer.lower_bound_bytes == pytest.approx(pod)
