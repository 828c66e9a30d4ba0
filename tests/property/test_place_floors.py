"""What domains of many sizes pay at least, at once; and how full each is: against every subset."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest

from planner.place.bound import loose_bound, prices_of
from planner.place.fillings import Prices, cheapest, cheapest_parted
from planner.place.floors import floors, taken_out_bytes
from planner.place.question import Charge, Kind, Question
from planner.place.spread import Share
from tests.oracles import digit_groups

KINDS = (Kind.TOUCH, Kind.RING, Kind.PAIRS)
GRIDS = ((2, 3, 2), (4, 3), (12,), (2, 2, 3), (3, 4), (2, 5), (9,), (2, 2, 2))
ROUNDING = 1e-9


def _question(random: np.random.Generator) -> Question:
    sizes = GRIDS[int(random.integers(len(GRIDS)))]
    charges = {}
    for _ in range(int(random.integers(1, 5))):
        count = int(random.integers(1, len(sizes) + 1))
        axes = tuple(sorted(random.choice(len(sizes), size=count, replace=False).tolist()))
        kind = KINDS[int(random.integers(len(KINDS)))]
        weight = float(random.integers(1, 20))
        charges[axes, kind] = Charge(axes=axes, kind=kind, weight_bytes=weight)
    return Question(sizes=sizes, charges=tuple(charges.values()), capacities=(prod(sizes),))


def _paid(question: Question, subset: frozenset[int]) -> float:
    """Return what a domain pays that holds these cells, group by group."""
    total = 0.0
    for charge in question.charges:
        for group in digit_groups(question.sizes, charge.axes):
            held = len(subset & set(group))
            if charge.kind is Kind.TOUCH:
                units = min(held, 1) if len(group) > 1 else 0
            elif charge.kind is Kind.RING:
                units = int(0 < held < len(group))
            else:
                units = held * (len(group) - held)
            total += charge.weight_bytes * units
    return total


def _parts_a_line(question: Question, subset: frozenset[int], axis: int) -> bool:
    lines = digit_groups(question.sizes, (axis,))
    return any(0 < len(subset & set(line)) < len(line) for line in lines)


def _least_paid(
    question: Question, axis: int | None, shares: tuple[Share, ...] = ()
) -> dict[int, float]:
    least: dict[int, float] = {}
    for bits in range(1, 2**question.cells):
        subset = frozenset(c for c in range(question.cells) if bits >> c & 1)
        if axis is None or _parts_a_line(question, subset, axis):
            paid = _paid(question, subset)
            for share in shares:
                for group in digit_groups(question.sizes, share.axes):
                    paid -= share.price_bytes * -(-len(subset & set(group)) // share.most)
            least[len(subset)] = min(least.get(len(subset), paid), paid)
    return least


def _too_high(seeds: range) -> list[str]:
    wrong = []
    for seed in seeds:
        random = np.random.default_rng(5_100_000 + seed)
        question = _question(random)
        axis = int(random.integers(len(question.sizes))) if random.random() < 0.4 else None
        held = np.arange(1, question.cells + 1)
        found = floors(question, held, split_axis=axis)
        for cells, paid in _least_paid(question, axis).items():
            if found[cells - 1] > paid * (1 + ROUNDING) + ROUNDING:
                wrong.append(f"seed {seed}: {cells} cells, {found[cells - 1]} > {paid}")
    return wrong


def test_no_set_of_cells_pays_less_than_the_floor_of_its_size() -> None:
    assert _too_high(range(12)) == []


@pytest.mark.nightly
def test_no_set_of_cells_of_many_more_grids_pays_less_than_the_floor_of_its_size() -> None:
    assert _too_high(range(12, 600)) == []


def test_floors_of_a_large_grid_come_near_the_bounds_of_single_sizes() -> None:
    charges = (
        Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=5.0),
        Charge(axes=(1, 2), kind=Kind.TOUCH, weight_bytes=60.0),
        Charge(axes=(2,), kind=Kind.RING, weight_bytes=3.0),
    )
    question = Question(sizes=(4, 8, 32), charges=charges, capacities=(1024,))
    held = np.arange(256, 385)

    found = floors(question, held)
    close = np.array([loose_bound(question, c) for c in held.tolist()])

    assert (found <= close * (1 + ROUNDING)).all()
    assert (found >= 0.9 * close).all()


@pytest.mark.parametrize("seed", range(30))
def test_a_domain_of_more_cells_pays_no_less_than_one_of_fewer_less_what_taking_out_costs(
    seed: int,
) -> None:
    """Of all sets of cells, of those that part a line, and with a price on pieces of groups."""
    random = np.random.default_rng(3000 + seed)
    question = _question(random)
    charge = question.charges[int(random.integers(len(question.charges)))]
    size = question.group_size(charge.axes)
    shares: tuple[Share, ...] = ()
    if size > 1 and seed % 2:
        most = int(random.integers(1, size))
        price = float(random.integers(1, 30))
        shares = (Share(axes=charge.axes, most=most, price_bytes=price),)
    more = taken_out_bytes(question, shares, question.cells)
    for axis in (None, *(a for a, n in enumerate(question.sizes) if n > 1)):
        least = _least_paid(question, axis, shares)
        for held, paid in least.items():
            for fewer in range(1, held):
                if fewer in least:
                    assert paid >= least[fewer] - more[held - fewer] - ROUNDING


def test_few_sizes_tell_what_all_others_pay_where_nothing_falls() -> None:
    """Of reductions alone more cells never pay less: one size raises all that are fuller."""
    charges = (
        Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=3.0),
        Charge(axes=(1, 2), kind=Kind.TOUCH, weight_bytes=7.0),
    )
    question = Question(sizes=(8, 6, 4), charges=charges, capacities=(96, 96, 96))
    prices = prices_of(question)
    paid = loose_bound(question, 61)

    prices.look_closer(61)

    assert prices.least_bytes[61:] == pytest.approx(
        np.maximum(prices_of(question).least_bytes[61:], paid)
    )


def _rough(random: np.random.Generator, most: int) -> tuple[Prices, list[float]]:
    """Return prices that are too low at first, and what they become."""
    true = [0.0, *random.integers(1, 40, size=most).astype(float).tolist()]
    rough = np.array(true) * random.random(most + 1)
    middle = [(a + b) / 2 for a, b in zip(rough.tolist(), true, strict=True)]
    return Prices(least_bytes=rough, closer=(middle.__getitem__, true.__getitem__)), true


@pytest.mark.parametrize("seed", range(30))
def test_the_cheapest_filling_is_that_of_all_there_are(seed: int) -> None:
    random = np.random.default_rng(seed)
    capacities = random.integers(1, 6, size=int(random.integers(2, 5))).tolist()
    cells = int(random.integers(1, sum(capacities) + 1))
    prices, true = _rough(random, max(capacities))
    all_ways = (h for h in product(*(range(c + 1) for c in capacities)) if sum(h) == cells)

    assert cheapest(capacities, cells, prices) == pytest.approx(
        min(sum(true[c] for c in held) for held in all_ways)
    )


@pytest.mark.parametrize("seed", range(40))
def test_whether_a_price_is_reached_is_told_by_any_bound(seed: int) -> None:
    """A bound in any case; at the price or above it if and only if the cheapest filling is."""
    random = np.random.default_rng(2000 + seed)
    capacities = random.integers(1, 7, size=int(random.integers(2, 5))).tolist()
    cells = int(random.integers(1, sum(capacities) + 1))
    line = int(random.integers(2, 4))
    state = random.bit_generator.state
    for parted in (False, True):

        def found(enough: float, parted: bool = parted) -> float:
            random.bit_generator.state = state
            prices, _ = _rough(random, max(capacities))
            if not parted:
                return cheapest(capacities, cells, prices, enough)
            whole, _ = _rough(random, max(capacities) // line)
            return cheapest_parted(capacities, cells, line, whole, prices, enough)

        sharp = found(np.inf)
        for share in (0.3, 0.7, 0.9, 0.99, 1.01, 1.1, 2.0):
            total = found(share * sharp)
            assert total <= sharp
            assert (total >= share * sharp) == (sharp >= share * sharp)


@pytest.mark.parametrize("seed", range(30))
def test_two_domains_part_a_line_in_the_cheapest_filling_that_parts_one(seed: int) -> None:
    random = np.random.default_rng(1000 + seed)
    line = int(random.integers(2, 4))
    capacities = random.integers(2, 6, size=int(random.integers(2, 4))).tolist()
    cells = sum(capacities) - int(random.integers(0, 3))
    parted, parts = _rough(random, max(capacities))
    whole, lines = _rough(random, max(capacities) // line)
    best = np.inf
    for held in product(*(range(c + 1) for c in capacities)):
        if sum(held) != cells:
            continue
        for apart in product((False, True), repeat=len(held)):
            pairs = list(zip(held, apart, strict=True))
            if sum(apart) < 2 or not all(c if p else c % line == 0 for c, p in pairs):
                continue
            best = min(best, sum(parts[c] if p else lines[c // line] for c, p in pairs))

    assert cheapest_parted(capacities, cells, line, whole, parted) == pytest.approx(best)


def test_only_what_the_cheapest_filling_holds_is_looked_at_closely() -> None:
    charges = (Charge(axes=(0,), kind=Kind.TOUCH, weight_bytes=1.0),)
    question = Question(sizes=(16, 24), charges=charges, capacities=(160, 160, 160))
    prices = prices_of(question)

    cheapest(question.capacities, question.cells, prices)

    assert 0 < len(prices.asked) < 20  # of 97 that a domain may hold
