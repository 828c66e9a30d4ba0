"""Parts of sheets: what a domain pays by its parts, by hand and by every set of cells there is."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations, repeat
from math import inf, prod
from time import monotonic

import numpy as np
import pytest
from numpy.typing import NDArray

from planner.place import Proof, clock, solve_question
from planner.place.clock import ending
from planner.place.question import Charge, Kind, Question
from planner.place.sheet_choice import part_choice
from planner.place.sheet_cuttings import Cuttings, cut_sheet, ruled_sheet
from planner.place.sheet_parts import sheeted
from planner.place.sheet_prices import Fillings, SheetPrices, sheet_prices
from planner.place.whole_numbers import Effort
from tests.oracles import brute_force_cut, digit_groups

Parts = tuple[int, ...]
MANY = Effort(listed=30_000, nodes=20_000)
ROUNDING = 1e-9
SOLVER = 2e-6
GRIDS = ((2, 2, 3), (4, 3), (2, 3, 2), (3, 2, 2), (4, 2), (2, 5), (3, 3), (6, 2), (3, 1, 3))


def _charge(kind: Kind, weight_bytes: float, *axes: int) -> Charge:
    return Charge(axes=axes, kind=kind, weight_bytes=weight_bytes)


def _question(sizes: Parts, capacities: Parts, *charges: Charge) -> Question:
    return Question(sizes=sizes, charges=charges, capacities=capacities)


# By hand


def test_a_group_across_two_sheets_is_paid_once_however_small_the_part() -> None:
    """4 x 2 in one group of eight: parts of 3 and 1 touch it once, and one domain gives it back."""
    of = sheeted(_question((4, 2), (4, 4), _charge(Kind.TOUCH, 3.0, 0, 1)), (0,))
    assert of.pays((3, 1)) == pytest.approx(3.0)
    assert of.given_bytes == pytest.approx(3.0)
    assert sheet_prices(of, inf).bound_bytes == pytest.approx(3.0)  # two domains, one link


def test_every_part_touches_a_group_however_small_it_is() -> None:
    """2 x 2 sheets of four in rows and columns: one touches 1 + 1 of them, two 3, three 4."""
    of = sheeted(
        _question(
            (4, 2, 2), (12, 4), _charge(Kind.TOUCH, 1.0, 0, 1), _charge(Kind.TOUCH, 1.0, 0, 2)
        ),
        (0,),
    )
    assert of.pays((3,)) == pytest.approx(2.0)
    assert of.pays((3, 1)) == pytest.approx(3.0)
    assert of.pays((3, 2, 1)) == pytest.approx(4.0)
    assert of.pays((4, 4, 4)) == pytest.approx(4.0)


def test_two_cells_of_a_first_part_cannot_lie_along_both_axes() -> None:
    """Of 2 x 2, two cells lie in one line and across two others: 1 + 2 of weight 1."""
    of = sheeted(
        _question(
            (2, 2, 2), (2, 2, 2, 2), _charge(Kind.TOUCH, 1.0, 0), _charge(Kind.TOUCH, 1.0, 1, 2)
        ),
        (0, 1),
    )
    assert of.pays((2,)) == pytest.approx(3.0)
    assert of.part_bytes[2] == pytest.approx(1.0)
    assert of.across_bytes[0, 2] == pytest.approx(1.0)


def test_a_ring_longer_than_any_domain_gives_nothing_back() -> None:
    """Two domains of four hold half a ring of eight each, and each pays for its hop."""
    of = sheeted(_question((2, 4), (4, 4), _charge(Kind.RING, 7.0, 0, 1)), (0,))
    assert of.given_bytes == 0.0
    assert sheet_prices(of, inf).bound_bytes == pytest.approx(14.0)


def test_a_ring_that_a_domain_can_hold_whole_is_not_charged_across_sheets() -> None:
    question = _question((2, 2), (4, 3), _charge(Kind.RING, 7.0, 0, 1))
    assert sheet_prices(sheeted(question, (0,)), inf).bound_bytes == 0.0


def test_what_is_neither_inside_nor_across_adds_its_own_bound() -> None:
    """Pairs of four cells in two domains of two: 2 x 2 there, and back; lines stay whole."""
    of = sheeted(
        _question((2, 2), (2, 2), _charge(Kind.PAIRS, 1.0, 0, 1), _charge(Kind.TOUCH, 1.0, 0)),
        (0,),
    )
    assert of.beside_bytes == pytest.approx(8.0)
    assert sheet_prices(of, inf).bound_bytes == pytest.approx(8.0)


def test_pairs_held_whole_cost_less_than_half_of_them() -> None:
    """Three sheets of one cell: held 1, 2, 3 of them pay 2, 2, 0, so slopes are 2, 0 and -2."""
    of = sheeted(_question((2, 3), (6, 6), _charge(Kind.PAIRS, 1.0, 1)), (0,))
    assert of.pays((1,)) <= 2.0
    assert of.pays((1, 1, 1)) <= ROUNDING
    assert of.pays((2, 2, 2)) <= ROUNDING


def test_parts_past_those_that_are_told_apart_pay_as_the_cheapest_of_them() -> None:
    """Pairs of 14, a cell in every sheet: c of them pay c (14 - c), and all of them nothing."""
    of = sheeted(_question((1, 14), (14, 1), _charge(Kind.PAIRS, 1.0, 1)), (0,))
    for c in range(1, 15):
        assert of.pays((1,) * c) <= c * (14 - c) + ROUNDING
    assert of.pays((1,)) > 0


def test_three_rows_of_four_are_chosen_and_proved_to_be_best() -> None:
    """Rows of 4 in domains of 4: each of 4 columns is cut twice; rows and columns give back 23."""
    of = sheeted(
        _question((4, 3), (4, 4, 4), _charge(Kind.TOUCH, 5.0, 0), _charge(Kind.TOUCH, 2.0, 1)),
        (0,),
    )
    assert of.given_bytes == pytest.approx(3 * 5.0 + 4 * 2.0)
    choice = part_choice(sheet_prices(of, inf), Cuttings(of), 20.0, monotonic() + 60.0, MANY)
    assert choice.bound_bytes == pytest.approx(4 * 2 * 2.0, rel=SOLVER)
    assert choice.cuttings == ((4,), (4,), (4,))


def test_the_parts_of_a_cutting_that_do_not_fit_together_cost_more() -> None:
    """3 x 3 in 5 + 4: a square of four leaves an L, which touches every row and column."""
    of = sheeted(
        _question((3, 3, 2), (9, 9), _charge(Kind.TOUCH, 1.0, 0), _charge(Kind.TOUCH, 1.0, 1)),
        (0, 1),
    )
    cuttings = Cuttings(of)
    assert of.part_bytes[[4, 5]].tolist() == pytest.approx([4.0, 5.0])  # 2 + 2, and 2 x 3 less one
    assert cuttings.learn((5, 4)) == (cuttings.more_bytes[5, 4] > 0)
    sheet = _question((3, 3), (5, 4), *of.sheet.charges)
    assert 4.0 + 5.0 - 6.0 + cuttings.more_bytes[5, 4] <= brute_force_cut(sheet) + ROUNDING
    assert not cuttings.learn((5, 4))  # nothing new


def test_ctrl_c_while_a_sheet_is_seated_ends_the_search_that_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A seating of the sheet is in hand by then, but it is no answer to the whole."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("planner.place.solve._halved", interrupt)
    sheet = _question((3, 3), (9,), _charge(Kind.TOUCH, 1.25, 0), _charge(Kind.TOUCH, 1.0, 1))
    with pytest.raises(KeyboardInterrupt):
        cut_sheet(sheet, (4, 3, 2))


def test_a_sheet_that_was_cut_short_is_no_answer_for_the_next_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    charges = _charge(Kind.TOUCH, 19.0, 0), _charge(Kind.PAIRS, 1.0, 1)
    sheet, parts = _question((4, 6), (24,), *charges), (7, 9, 8)
    assert ruled_sheet(sheet, parts).proof is Proof.INCUMBENT
    looks = chain([0.0], repeat(2.0))

    with ending(1.0), monkeypatch.context() as patch:  # the time is up at the second look
        patch.setattr(clock, "monotonic", lambda: next(looks))
        short = cut_sheet(sheet, parts)

    assert short == ruled_sheet(sheet, parts)
    later = cut_sheet(sheet, parts)
    assert short.lower_bound_bytes < later.lower_bound_bytes
    assert later.proof is Proof.BOUND


# By every set of cells


def _questions(seeds: range) -> Iterator[Question]:
    for seed in seeds:
        random = np.random.default_rng(480_000 + seed)
        sizes = GRIDS[random.integers(len(GRIDS))]
        largest = int(random.integers(2, prod(sizes) + 1))
        charges: dict[tuple[Parts, Kind], Charge] = {}
        for _ in range(int(random.integers(2, 6))):
            kind = list(Kind)[random.integers(len(Kind))]
            count = int(random.integers(1, len(sizes) + 1))
            axes = tuple(sorted(random.choice(len(sizes), size=count, replace=False).tolist()))
            members = prod(sizes[i] for i in axes)
            units: tuple[float, ...] = ()
            if kind is Kind.COPIES:
                units = tuple(j * (members - j) / (1.0 + j) for j in range(members + 1))
            weight_bytes = float(10 ** random.uniform(-2, 2))
            charges[axes, kind] = Charge(
                axes=axes, kind=kind, weight_bytes=weight_bytes, units=units
            )
        capacities: Parts = (largest,) * -(-prod(sizes) // largest)
        if random.random() < 0.5 and prod(sizes) % largest:
            capacities = (*capacities[1:], prod(sizes) % largest)  # no seat to spare
        elif random.random() < 0.5:
            capacities = (*capacities, int(random.integers(1, largest + 1)))
        yield Question(sizes=sizes, charges=tuple(charges.values()), capacities=capacities)


def _paid_by_sets(question: Question) -> NDArray[np.float64]:
    """Return what a domain is charged that holds each set of cells, shape [2 ** cells].

    Every group touched for a reduction or a chain; of a chain that is closed so much as the dearer
    of both has in common only if it is held in part, as for a ring.
    """
    sets = np.arange(2**question.cells)[:, None]
    chains = {c.axes: c.weight_bytes for c in question.charges if c.kind is Kind.CHAIN}
    ends = {c.axes: c.weight_bytes for c in question.charges if c.kind is Kind.ENDS}
    paid = np.zeros(len(sets))
    for charge in question.charges:
        size, w = question.group_size(charge.axes), charge.weight_bytes
        if size < 2 or charge.kind is Kind.ENDS:
            continue
        held = np.stack(
            [
                (sets >> np.array(members) & 1).sum(axis=1)
                for members in digit_groups(question.sizes, charge.axes)
            ]
        )
        closed = min(w, ends.get(charge.axes, 0.0)) if charge.axes in chains else 0.0
        unit = {
            Kind.TOUCH: w * (held > 0),
            Kind.CHAIN: w * (held > 0) - closed * (held == size),
            Kind.RING: w * ((held > 0) & (held < size)),
            Kind.PAIRS: w * held * (size - held),
        }
        found = unit.get(charge.kind)
        if found is None:
            found = w * np.array(charge.units)[held]
        paid += found.sum(axis=0)
    return paid


def _least_by_parts(question: Question, axes: Parts) -> dict[Parts, float]:
    """Return the least that is charged for a set of cells, by the parts that it has of sheets."""
    sets = np.arange(2**question.cells)[:, None]
    parts = np.stack(
        [(sets >> np.array(cells) & 1).sum(axis=1) for cells in digit_groups(question.sizes, axes)],
        axis=1,
    )
    parts = -np.sort(-parts, axis=1)
    least: dict[Parts, float] = {}
    for row, paid in zip(parts.tolist(), _paid_by_sets(question).tolist(), strict=True):
        key = tuple(k for k in row if k)
        least[key] = min(least.get(key, inf), paid)
    return least


def _overcharged(seeds: range) -> list[str]:
    found = []
    for question in _questions(seeds):
        for count in range(1, len(question.sizes)):
            for axes in combinations(range(len(question.sizes)), count):
                of = sheeted(question, axes)
                for parts, least in _least_by_parts(question, axes).items():
                    if 0 < sum(parts) <= max(question.capacities):
                        pays = of.pays(parts)
                        if pays > least * (1 + ROUNDING) + ROUNDING:
                            found.append(f"{parts} pay {pays} > {least}: {axes} {question}")
    return found


def test_no_set_of_cells_is_charged_more_than_its_groups_cost() -> None:
    assert _overcharged(range(15)) == []


@pytest.mark.nightly
@pytest.mark.parametrize("seeds", [range(15, 40), range(1000, 1600)])
def test_none_of_many_more_sets_of_cells_is_charged_more(seeds: range) -> None:
    assert _overcharged(seeds) == []


# Fillings


def _partitions(cells: int, largest: int) -> Iterator[Parts]:
    if not cells:
        yield ()
    for k in range(min(cells, largest), 0, -1):
        for rest in _partitions(cells - k, k):
            yield (k, *rest)


def test_fillings_are_those_of_all_partitions_whose_price_is_low_enough() -> None:
    random = np.random.default_rng(5)
    for _ in range(30):
        ranks, largest, cells = (int(random.integers(a, b)) for a, b in ((1, 5), (2, 7), (6, 13)))
        price = random.normal(size=(ranks, largest + 1))
        fillings = Fillings(price, cells)
        each = {
            parts: sum(price[min(i, ranks - 1), k] for i, k in enumerate(parts))
            for parts in _partitions(cells, largest)
        }
        assert fillings.least(cells) == pytest.approx(min(each.values()))
        limit = float(np.median(list(each.values())))
        sizes = random.random(largest + 1) < 0.7
        low = {parts for parts, paid in each.items() if paid <= limit + ROUNDING}
        assert set(fillings.below(cells, limit + ROUNDING, 10_000) or []) == low
        only = Fillings(np.where(sizes, price, inf), cells)
        some = only.below(cells, limit + ROUNDING, 10_000)
        assert set(some or []) == {parts for parts in low if sizes[list(parts)].all()}
        assert each[fillings.cheapest(cells)] == pytest.approx(min(each.values()))
        if len(low) > 1:
            assert fillings.below(cells, limit + ROUNDING, len(low) - 1) is None


def test_what_parts_of_a_sheet_cost_together_is_never_more_than_its_best_seating() -> None:
    """The charges of first parts, and what a cutting costs beyond them, against brute force."""
    random = np.random.default_rng(11)
    for _ in range(12):
        weights = 10 ** random.uniform(-1, 1, size=4)
        charges = (
            _charge(Kind.TOUCH, float(weights[0]), 0),
            _charge(Kind.RING, float(weights[1]), 1),
            _charge(Kind.TOUCH, float(weights[2]), 0, 2),
        )
        of = sheeted(_question((3, 3, 2), (9, 9), *charges), (0, 1))
        cuttings = Cuttings(of)
        for parts in ((5, 4), (4, 3, 2), (6, 3), (3, 3, 3)):
            cuttings.learn(parts)
            held = list(parts)
            jointly = (of.pays_bytes - of.across_bytes)[0, held]  # as if each were a first part
            most = brute_force_cut(_question((3, 3), parts, *of.sheet.charges))
            alone = float(of.part_bytes[held].sum()) - 3 * float(weights[0])
            more_jointly = float(jointly.sum() - of.part_bytes[held].sum())
            more = cuttings.more_bytes[parts] + more_jointly
            together = cut_sheet(of.sheet, parts).lower_bound_bytes
            assert alone + more == pytest.approx(max(together, alone + more_jointly))
            assert alone + cuttings.more_bytes[parts] <= most * (1 + ROUNDING) + ROUNDING


def test_parts_that_cost_terabytes_are_priced_where_whole_sheets_cost_nothing() -> None:
    """Whole sheets fill two of the domains, so that all fillings known at first are free."""
    pairs, ends = _charge(Kind.PAIRS, 1e9, 0), _charge(Kind.ENDS, 6e9, 1)
    answer = solve_question(_question((5, 3), (7, 8, 10, 9), pairs, ends))
    assert (answer.objective_bytes, answer.proof) == (0.0, Proof.BOUND)
    ring, every = _charge(Kind.RING, 1e12, 0), _charge(Kind.PAIRS, 1e12, 0, 1)
    question = _question((4, 3), (6, 6), ring, every)
    assert sheet_prices(sheeted(question, (1,)), inf).bound_bytes <= brute_force_cut(question)


# Choices


@pytest.mark.parametrize(
    "seeds", [range(1000, 1025), pytest.param(range(1025, 1100), marks=pytest.mark.nightly)]
)
def test_a_choice_from_few_fillings_says_no_more_than_what_was_left_out_allows(
    seeds: range,
) -> None:
    """Good prices and any, as few fillings as leave a choice: brute force is never undercut."""
    for question in _questions(seeds):
        if question.cells > 10:
            continue
        best = brute_force_cut(question)
        random = np.random.default_rng(question.cells)
        for axis in range(len(question.sizes) if best else 0):
            of = sheeted(question, (axis,))
            off = random.normal(scale=float(of.pays_bytes[0].max()) / 3, size=of.largest)
            drawn = SheetPrices(of=of, price_bytes=np.append(0.0, off))
            for prices in (sheet_prices(of, inf), drawn):
                for listed, above in ((6, 1.5), (9, 1.0), (9, 4.0)):
                    few = Effort(listed=listed, nodes=100)
                    choice = part_choice(
                        prices, Cuttings(of), above * best, monotonic() + 60.0, few
                    )
                    assert choice.bound_bytes <= best * (1 + SOLVER), question


@pytest.mark.parametrize(
    "seeds", [range(2000, 2030), pytest.param(range(2030, 2060), marks=pytest.mark.nightly)]
)
def test_the_bound_of_a_choice_is_what_its_parts_and_cuttings_pay(seeds: range) -> None:
    dearer = 0
    for question in _questions(seeds):
        best = brute_force_cut(question)
        of = sheeted(question, (0,))
        if not best or len(question.sizes) > 2:
            continue
        cuttings = Cuttings(of)
        choice = part_choice(sheet_prices(of, inf), cuttings, best, monotonic() + 60.0, MANY)
        if not choice.cuttings:
            continue
        more = sum(cuttings.more_bytes[parts] for parts in choice.cuttings)
        pays = sum(of.pays(parts) for _, parts in choice.domains)
        paid = pays + more - of.given_bytes + of.beside_bytes
        size = abs(pays) + more + of.given_bytes
        assert choice.bound_bytes == pytest.approx(max(0.0, min(paid, best)), abs=1e-5 * size)
        dearer += more > 0
    assert dearer > 0
