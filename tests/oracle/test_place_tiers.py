"""All tiers at once against every nested seating there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import comb, prod
from time import monotonic

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.place import solve_question
from planner.place.answer import Proof
from planner.place.kept import kept_axes
from planner.place.question import Charge, Kind, Question
from planner.place.tiers import SeatedTiers, TierBound, seat_tiers
from planner.place.tree import Tree
from tests.oracles import digit_groups, group_units, slow_cut_bytes

CLOSE = 1e-7
GRIDS = (
    (2, 2, 2), (2, 4), (8,), (3, 3), (9,), (2, 3), (6,), (3, 2), (4, 2), (7,), (2, 2), (2, 1, 4),
)  # fmt: skip
MOST_SEATINGS = 8000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A tiny grid and a tiny tree."""

    sizes: tuple[int, ...]
    charges: tuple[Charge, ...]
    tree: Tree
    asked: int
    weights: tuple[float, ...] | None

    def question(self, tier: int) -> Question:
        return Question(
            sizes=self.sizes, charges=self.charges, capacities=self.tree.capacities[tier]
        )


def random_case(seed: int) -> Case:
    """Return a case with two or three tiers, even or not, with or without spare seats."""
    random = np.random.default_rng(7_000_000 + seed)
    while True:
        sizes = GRIDS[random.integers(len(GRIDS))]
        cells = prod(sizes)
        if random.random() < 0.5:
            inner = _even(random, cells)
        else:
            domains = int(random.integers(3, 6))
            parts = 1 + np.bincount(
                random.integers(0, domains, max(0, cells - domains + int(random.integers(0, 3)))),
                minlength=domains,
            )
            inner = tuple(int(p) for p in parts)
        if len(inner) >= 3 and sum(inner) >= cells and _seatings(cells, inner) <= MOST_SEATINGS:
            break
    tree = _tree(random, inner)
    charges: dict[tuple[tuple[int, ...], Kind], float] = {}
    for _ in range(int(random.integers(1, 5))):
        axes = tuple(i for i in range(len(sizes)) if random.random() < 0.5) or (0,)
        kind = Kind(str(random.choice(["touch", "touch", "touch", "pairs", "ring", "chain"])))
        weight = float(random.integers(1, 6)) if random.random() < 0.6 else random.uniform(0.1, 9)
        charges[axes, kind] = weight
        if kind is Kind.CHAIN and random.random() < 0.3:
            charges[axes, Kind.ENDS] = float(random.integers(1, 4))
    tiers = len(tree.names)
    return Case(
        sizes=sizes,
        charges=tuple(Charge(axes=a, kind=k, weight_bytes=w) for (a, k), w in charges.items()),
        tree=tree,
        asked=int(random.integers(0, tiers - 1)),
        weights=(*random.uniform(0, 2, tiers - 1).tolist(), 0.0)
        if random.random() < 0.25
        else None,
    )


def _even(random: np.random.Generator, cells: int) -> tuple[int, ...]:
    fitting = [d for d in range(3, cells + 1) if cells % d == 0 and d <= 6]
    if not fitting:
        return ()
    domains = int(random.choice(fitting))
    return (cells // domains,) * domains


def _seatings(cells: int, inner: tuple[int, ...]) -> int:
    """Return how many seatings there are, all domains told apart."""
    ways = [1] + [0] * cells
    for capacity in inner:
        ways = [
            sum(ways[n - h] * comb(n, h) for h in range(min(n, capacity) + 1))
            for n in range(cells + 1)
        ]
    return ways[cells]


def _tree(random: np.random.Generator, inner: tuple[int, ...]) -> Tree:
    capacities, parents = [inner], []
    while len(capacities[-1]) > 3 or (len(capacities) == 1 and len(capacities[-1]) > 2):
        count = len(capacities[-1])
        outers = int(random.integers(2, count))
        if random.random() < 0.5 and count % outers == 0:
            parent = np.repeat(np.arange(outers), count // outers)
        else:
            extra = random.integers(0, outers, count - outers)
            parent = np.sort(np.concatenate([np.arange(outers), extra]))
        parents.append(parent)
        held = np.bincount(parent, weights=capacities[-1], minlength=outers).astype(int)
        capacities.append(tuple(int(h) for h in held))
    parents.append(np.zeros(len(capacities[-1]), np.int64))
    capacities.append((sum(inner),))
    return Tree(
        names=tuple(f"tier{t}" for t in range(len(capacities))),
        capacities=tuple(capacities),
        parents=tuple(parents),
        uplinks_bytes_per_s=tuple((1.0,) * len(c) for c in capacities),
    )


def named_seatings(cells: int, capacities: Sequence[int]) -> NDArray[np.int64]:
    """Return every seating of the cells, all domains told apart, shape [seatings, cells]."""
    homes = np.zeros((1, 0), np.int64)
    for _ in range(cells):
        held = np.stack([(homes == s).sum(axis=1) for s in range(len(capacities))], axis=1)
        homes = np.concatenate(
            [
                np.column_stack([rows, np.full(len(rows), s)])
                for s, capacity in enumerate(capacities)
                for rows in [homes[held[:, s] < capacity]]
            ]
        )
    return homes


def cuts_of_all(case: Case) -> NDArray[np.float64]:
    """Return the cut at every tier of every seating, shape [seatings, tiers]."""
    homes = named_seatings(prod(case.sizes), case.tree.capacities[0])
    cuts = np.zeros((len(homes), len(case.tree.names)))
    for tier in range(len(case.tree.names)):
        for charge in case.charges:
            for members in digit_groups(case.sizes, charge.axes):
                code = homes[:, members] @ (8 ** np.arange(len(members)))
                _, first, which = np.unique(code, return_index=True, return_inverse=True)
                sides = homes[first][:, members].tolist()
                units = np.array([group_units(charge.kind.value, row) for row in sides])
                cuts[:, tier] += charge.weight_bytes * units[which.ravel()]
        if tier + 1 < len(case.tree.names):
            homes = case.tree.parents[tier][homes]
    return cuts


def seated(case: Case) -> SeatedTiers:
    answer = solve_question(case.question(case.asked), time_limit_s=20.0)
    return seat_tiers(
        case.question(case.asked),
        case.tree,
        case.asked,
        np.array(answer.home),
        asked_bound=TierBound(
            cut_bytes=answer.objective_bytes,
            lower_bound_bytes=answer.lower_bound_bytes,
            proof=answer.proof,
            among="all",
        ),
        weights=case.weights,
        ends_s=monotonic() + 10,
    )


def faults_of(case: Case, found: SeatedTiers, told: Counter[str]) -> list[str]:
    """Return what is wrong with a seating, its bounds or its proofs; count what is proved."""
    faults = []
    held = np.bincount(found.home, minlength=len(case.tree.capacities[0]))
    if (held > case.tree.capacities[0]).any():
        faults.append("a domain is overfull")
    home = found.home
    for tier in range(len(case.tree.names)):
        slow = slow_cut_bytes(case.question(tier), home.tolist())
        if abs(slow - found.bounds[tier].cut_bytes) > CLOSE * max(1.0, slow):
            faults.append(f"tier {tier} cuts {slow}, said {found.bounds[tier].cut_bytes}")
        if tier + 1 < len(case.tree.names):
            home = case.tree.parents[tier][home]
    cuts = cuts_of_all(case)
    if case.weights is not None:
        return faults + _weighted_faults(case, found, cuts, told)
    alive, proved = np.ones(len(cuts), bool), True
    for place, tier in enumerate(found.order):
        bound = found.bounds[tier]
        told["inside"] += tier < case.asked and bound.among != "all"
        least = cuts[alive if bound.among != "all" else slice(None), tier].min()
        if bound.lower_bound_bytes > least * (1 + CLOSE) + CLOSE:
            faults.append(f"tier {tier}: bound {bound} above {least}")
        proven = bound.proof is not Proof.INCUMBENT
        if proven and abs(bound.cut_bytes - least) > CLOSE * max(1.0, least):
            faults.append(f"tier {tier}: {bound} is proved, but {least} is possible")
        best = cuts[alive, tier].min()
        proved &= proven
        if place and len(case.tree.capacities[tier]) > 1:
            told["tiers"] += 1
            told["proved"] += proved
            told["best"] += bound.cut_bytes <= best + CLOSE * max(1.0, best)
        alive &= cuts[:, tier] <= bound.cut_bytes + CLOSE * max(1.0, bound.cut_bytes)
    return faults


def _weighted_faults(
    case: Case, found: SeatedTiers, cuts: NDArray[np.float64], told: Counter[str]
) -> list[str]:
    least = float((cuts @ np.array(case.weights)).min())
    told["weighted"] += 1
    told["weighted best"] += found.weighted_s <= least * (1 + CLOSE) + CLOSE
    told["weighted proved"] += found.weighted_bound_s >= least * (1 - CLOSE) - CLOSE
    if found.weighted_bound_s > least * (1 + CLOSE) + CLOSE:
        return [f"weighted bound {found.weighted_bound_s} above {least}"]
    if found.weighted_s < least * (1 - CLOSE) - CLOSE:
        return [f"weighted {found.weighted_s} below {least}"]
    return []


def wrong_seatings(seeds: Iterable[int]) -> tuple[list[str], Counter[str]]:
    told: Counter[str] = Counter()
    wrong = []
    for seed in seeds:
        case = random_case(seed)
        faults = faults_of(case, seated(case), told)
        wrong += [f"seed {seed}: {fault}; {case}" for fault in faults]
    return wrong, told


@pytest.mark.parametrize(
    "seeds", [range(60), pytest.param(range(60, 200), marks=pytest.mark.nightly)]
)
def test_every_tier_is_bounded_and_proved_as_every_nested_seating_says(seeds: range) -> None:
    wrong, told = wrong_seatings(seeds)

    assert wrong == []
    assert told["best"] >= 0.98 * told["tiers"]
    assert told["proved"] >= 0.9 * told["tiers"]
    assert told["weighted best"] >= 0.9 * told["weighted"] > 0


def parted_all_the_same(seeds: Iterable[int], told: Counter[str]) -> list[str]:
    """Return the axes said to be whole that some seating parts which cuts no more."""
    wrong = []
    for seed in seeds:
        case = random_case(seed)
        question = case.question(0)
        homes = named_seatings(question.cells, question.capacities)
        cuts = cuts_of_all(case)[:, 0]
        for share in (1.0, 1.1, 1.5):
            cut = float(cuts.min()) * share
            as_good = homes[cuts <= cut * (1 + 1e-9)]
            kept = kept_axes(question, cut, set())
            told["axes"] += len(question.sizes)
            told["kept"] += len(kept)
            wrong += [
                f"seed {seed}: axis {axis} up to {cut}: {case}"
                for axis in kept
                for line in digit_groups(question.sizes, [axis])
                if (as_good[:, line] != as_good[:, line[:1]]).any()
            ]
    return wrong


@pytest.mark.parametrize(
    "seeds", [range(40), pytest.param(range(40, 120), marks=pytest.mark.nightly)]
)
def test_no_seating_as_good_parts_a_line_that_is_said_to_stay_whole(seeds: range) -> None:
    told: Counter[str] = Counter()

    assert parted_all_the_same(seeds, told) == []
    assert told["kept"] > len(seeds) / 6


@pytest.mark.nightly
def test_in_thousands_more_no_seating_as_good_parts_a_line_said_to_stay_whole() -> None:
    assert parted_all_the_same(range(200, 3000), Counter()) == []


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(200, 4200, 400))
def test_thousands_more_are_bounded_and_proved_as_every_nested_seating_says(start: int) -> None:
    wrong, told = wrong_seatings(range(start, start + 400))

    assert wrong == []
    assert told["best"] >= 0.98 * told["tiers"]
