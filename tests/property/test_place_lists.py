"""Lists that a solver chooses from leave out nothing that a seating below their limit holds.

A choice that cannot be is taken for a proof; so every seating at the limit or below must be one of
the choices, and cost no more there than it cuts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations
from math import inf
from time import monotonic
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from planner.errors import PlannerError
from planner.place import sheet_choice, sheet_names, stage_choice
from planner.place.question import Kind, Question, cut_bytes
from planner.place.sheet_choice import Listed, allowed_bytes, part_choice
from planner.place.sheet_cuttings import Cuttings
from planner.place.sheet_names import named_choice
from planner.place.sheet_parts import Sheeted, sheeted
from planner.place.sheet_prices import SheetPrices, sheet_prices
from planner.place.solve import solve_question
from planner.place.stage_choice import choice_of
from planner.place.stage_prices import stage_prices
from planner.place.stages import patterns_of, staged
from planner.place.whole_numbers import Chosen, Effort, Model
from tests.oracles import brute_force_cut
from tests.small_questions import Drawn

MANY = Effort(listed=30_000, nodes=20_000)
SOLVER = 2e-6
NOTHING = Chosen(times=None, least=-inf)
GRIDS = ((2, 2, 3), (4, 3), (2, 3, 2), (3, 2, 2), (2, 2, 2), (2, 5), (3, 4), (2, 6))
KINDS = (Kind.TOUCH, Kind.RING, Kind.PAIRS, Kind.CHAIN, Kind.CHAIN, Kind.ENDS)
DRAWN = Drawn(first_seed=4_570_000, grids=GRIDS, kinds=KINDS, spare_share=0.4)


class _Asked:
    """What a solver was asked to choose from, and every choice after the first list."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, solve: bool) -> None:
        self.solve = solve
        self.lists: list[Any] = []
        self.models: list[Model] = []
        for module in (sheet_choice, stage_choice):
            monkeypatch.setattr(module, "least_choice", self._choice(module.least_choice))
        for module in (sheet_choice, sheet_names):
            monkeypatch.setattr(module, "best_of", self._best_of(module.best_of))

    def _choice(self, inner: Any) -> Any:
        def choice(model: Model, *arguments: Any) -> Chosen:
            self.models.append(model)
            chosen: Chosen = inner(model, *arguments) if self.solve else NOTHING
            return chosen

        return choice

    def _best_of(self, inner: Any) -> Any:
        def best_of(prices: SheetPrices, listed: Listed, *arguments: Any) -> Any:
            begun = len(self.models)
            found = inner(prices, listed, *arguments)
            self.lists += [listed] * (len(self.models) - begun)
            return found

        return best_of

    def taken(self) -> Iterator[tuple[Listed, Model]]:
        """Yield what was asked since the last time."""
        yield from zip(self.lists, self.models, strict=True)
        self.lists, self.models = [], []


def _costs(model: Model, times: Counter[int], named: int) -> float:
    """Return the least that the choice costs with these *times* of the first *named* unknowns.

    The others are free; infinite where the rules do not allow it.
    """
    low, high = np.zeros(len(model.cost_bytes)), model.highest.astype(float).copy()
    high[:named] = low[:named] = [times[column] for column in range(named)]
    assert (low <= model.highest).all()
    solved = milp(
        model.cost_bytes / max(float(model.cost_bytes.max()), 1e-300),
        integrality=model.whole,
        bounds=Bounds(low, high),
        constraints=LinearConstraint(model.rows, model.least, model.most),
    )
    return float(model.cost_bytes @ solved.x) if solved.x is not None else inf


def _sheets_of(of: Sheeted) -> NDArray[np.int64]:
    """Return the sheet of every cell: their numbers run along the outer axes, the first fastest."""
    number, step, left = np.zeros(of.question.cells, np.int64), 1, np.arange(of.question.cells)
    for axis, size in enumerate(of.question.sizes):
        if axis not in of.axes:
            number += left % size * step
            step *= size
        left = left // size
    return number


def _columns(of: Sheeted, listed: Listed, home: NDArray[np.int64]) -> Counter[int] | str:
    """Return how often a seating takes every column of a list; or what the list is without."""
    held = np.zeros((len(of.question.capacities), of.sheets), dtype=np.int64)
    np.add.at(held, (home, _sheets_of(of)), 1)
    named, start = len(listed.alike) > 1, 0
    columns: dict[tuple[int, tuple[int, ...], tuple[int, ...]], int] = {}
    for k, each in enumerate(listed.fillings):
        columns |= {(k, one.parts, one.sheets): start + j for j, one in enumerate(each)}
        start += len(each)
    times: Counter[int] = Counter()
    for capacity, row in zip(of.question.capacities, held, strict=True):
        parts = sorted((-int(row[r]), int(r)) for r in np.flatnonzero(row))
        cells = tuple(-minus for minus, _ in parts)
        sheets = tuple(r if named else 0 for _, r in parts)
        key = of.stock.sizes.index(min(capacity, of.question.cells)), cells, sheets
        if cells or key in columns:
            if key not in columns:
                return f"filling {key}"
            times[columns[key]] += 1
    places = {parts: j for j, parts in enumerate(listed.cuttings)}
    for sheet in range(of.sheets):
        parts_of = tuple(sorted((held[:, sheet][held[:, sheet] > 0]).tolist(), reverse=True))
        if parts_of not in places:
            return f"cutting {parts_of}"
        kind = sheet if named else 0
        times[start + kind * len(listed.cuttings) + places[parts_of]] += 1
    return times


def _seatings(question: Question, most_bytes: float) -> Iterator[NDArray[np.int64]]:
    """Yield the best seating and drawn ones that cut no more than *most_bytes*."""
    yield np.array(solve_question(question, time_limit_s=0.0).home)
    random = np.random.default_rng(question.cells)
    seats = np.repeat(np.arange(len(question.capacities)), question.capacities)
    drawn = [random.permutation(seats)[: question.cells] for _ in range(60)]
    yield from [home for home in drawn if cut_bytes(question, home) <= most_bytes][:4]


def _missing_of_sheets(
    numbers: range, monkeypatch: pytest.MonkeyPatch, *, solve: bool
) -> tuple[list[str], int]:
    """Return what lists of parts are without, and how many seatings were looked for in them."""
    found, looked, asked = [], 0, _Asked(monkeypatch, solve=solve)
    for question in DRAWN.questions(numbers):
        best = brute_force_cut(question)
        homes = list(_seatings(question, 1.3 * best + 1e-3))
        for count in range(1, len(question.sizes)):
            for axes in combinations(range(len(question.sizes)), count):
                of = sheeted(question, axes)
                prices, ends_s = sheet_prices(of, inf), monotonic() + 60.0
                for limit in (best, 1.3 * best + 1e-3) if best else ():
                    list(asked.taken())
                    part_choice(prices, Cuttings(of), limit, ends_s, MANY)
                    named_choice(prices, Cuttings(of), limit, ends_s, MANY)
                    for listed, model in asked.taken():
                        base = prices.chosen_from_bytes
                        reach = base + listed.share * allowed_bytes(prices, limit)
                        for home in homes:
                            cut = cut_bytes(question, home)
                            if cut > min(limit, reach) * (1 + 1e-12):
                                continue
                            looked += 1
                            fault = _fault(of, listed, model, home, cut - base, reach)
                            found += [f"{fault} {axes} {limit} {question}"] if fault else []
    return found, looked


def _fault(
    of: Sheeted, listed: Listed, model: Model, home: NDArray[np.int64], above: float, scale: float
) -> str:
    times = _columns(of, listed, home)
    if isinstance(times, str):
        return f"no {times}"
    width = sum(map(len, listed.fillings)) + len(listed.cuttings) * len(listed.alike)
    costs = _costs(model, times, width)
    return f"costs {costs}, cuts {above}" if costs > above + SOLVER * (1 + scale) else ""


def test_parts_of_every_good_seating_are_listed_at_no_more_than_it_cuts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, looked = _missing_of_sheets(range(12), monkeypatch, solve=False)

    assert found == []
    assert looked > 100


def _missing_of_stages(numbers: range, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], int]:
    """Return the same of patterns, which are the first unknowns, in the order of the model."""
    found, looked, asked = [], 0, _Asked(monkeypatch, solve=False)
    for question in DRAWN.questions(numbers):
        of, best = staged(question), brute_force_cut(question)
        if of is None or not best:
            continue
        sizes = of.domains[0].tolist()
        homes = list(_seatings(question, 1.3 * best))
        priced = stage_prices(of, homes[0], inf)
        for limit in (best, 1.3 * best):
            at_best = patterns_of(of, homes[0]) if cut_bytes(question, homes[0]) <= limit else None
            choice_of(of, priced, limit, 60.0, MANY, at_best)
            model = asked.models.pop()
            rows = model.rows.toarray()[: of.stages + len(sizes)]
            patterns = np.flatnonzero(rows[of.stages :].sum(axis=0))
            places = {tuple(rows[:, j].astype(int).tolist()): j for j in patterns.tolist()}
            for home in homes:
                if cut_bytes(question, home) > limit * (1 + 1e-12):
                    continue
                looked += 1
                times: Counter[int] = Counter()
                for capacity, held in zip(
                    question.capacities, patterns_of(of, home).tolist(), strict=True
                ):
                    kind = [int(size == capacity) for size in sizes]
                    place = places.get((*held, *kind))
                    if place is None and any(held):
                        found.append(f"no {held} {limit} {question}")
                    elif place is not None:
                        times[place] += 1
                if _costs(model, times, len(patterns)) == inf:
                    found.append(f"refused {limit} {question}")
    return found, looked


def test_patterns_of_every_good_seating_are_listed_and_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, looked = _missing_of_stages(range(60), monkeypatch)

    assert found == []
    assert looked > 20


@pytest.mark.nightly
def test_parts_of_every_good_seating_of_many_questions_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert _missing_of_sheets(range(12, 100), monkeypatch, solve=False)[0] == []
    assert _missing_of_sheets(range(100, 104), monkeypatch, solve=True)[0] == []
    assert _missing_of_stages(range(60, 300), monkeypatch)[0] == []


def test_a_list_without_a_pattern_of_the_seating_in_hand_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refused = 0
    inner = stage_choice._listed
    for question in DRAWN.questions(range(12)):
        of = staged(question)
        home = np.array(solve_question(question, time_limit_s=0.0).home)
        cut = cut_bytes(question, home)
        if of is None or not cut:
            continue
        known, priced = patterns_of(of, home), stage_prices(of, home, inf)

        def without(*arguments: Any, held: NDArray[np.int64] = known) -> Any:
            listed = inner(*arguments)
            assert listed is not None
            kept = (listed.rows != held[0]).any(axis=1)
            return replace(
                listed, rows=listed.rows[kept], classes=listed.classes[kept],
                cost_bytes=listed.cost_bytes[kept],
            )  # fmt: skip

        choice_of(of, priced, 1.5 * cut, 60.0, MANY, known)
        with monkeypatch.context() as patched:
            patched.setattr(stage_choice, "_listed", without)
            with pytest.raises(PlannerError, match="leaves out"):
                choice_of(of, priced, 1.5 * cut, 60.0, MANY, known)
        refused += 1

    assert refused > 0
