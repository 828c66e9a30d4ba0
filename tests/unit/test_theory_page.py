"""The figures on the page of the theory are those of the code, and of every seating there is."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from planner.place.bound import lower_bound, rebate_bytes
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.place.sharing import sharpened_bound
from planner.place.touch_search import least_touches

DOCS = Path(__file__).resolve().parents[2] / "docs"
ROWS = Charge(kind=Kind.TOUCH, axes=(0,), weight_bytes=10.0)
COLUMNS = Charge(kind=Kind.TOUCH, axes=(1,), weight_bytes=1.0)


def fours(cells: tuple[int, ...]) -> Iterator[list[tuple[int, ...]]]:
    """Yield every way to part *cells* into fours."""
    if not cells:
        yield []
        return
    for others in combinations(cells[1:], 3):
        rest = tuple(cell for cell in cells[1:] if cell not in others)
        for parts in fours(rest):
            yield [(cells[0], *others), *parts]


def test_any_four_ranks_touch_rows_times_columns_of_at_least_four() -> None:
    touched = [
        (len({cell // 4 for cell in four}), len({cell % 4 for cell in four}))
        for four in combinations(range(16), 4)
    ]

    assert min(rows * columns for rows, columns in touched) == 4
    assert min(10 * rows + columns for rows, columns in touched) == 14
    assert least_touches((4, 4), ((0,), (1,)), (10.0, 1.0), 4) == pytest.approx(14)


def test_whole_rows_meet_the_bound_and_squares_and_diagonals_do_not() -> None:
    question = Question(sizes=(4, 4), charges=(ROWS, COLUMNS), capacities=(4, 4, 4, 4))
    rank = np.arange(16)
    row, column = rank // 4, rank % 4

    cuts = [cut_bytes(question, home)
            for home in (row, row // 2 * 2 + column // 2, (row + column) % 4)]  # fmt: skip

    assert cuts == [12, 44, 132]
    assert rebate_bytes(question) == 44
    assert lower_bound(question) == pytest.approx(12)


def test_sharing_lifts_the_bound_to_the_best_of_every_seating() -> None:
    question = Question(sizes=(6, 2), charges=(ROWS, COLUMNS), capacities=(4, 4, 4))
    best = np.inf
    for parts in fours(tuple(range(12))):
        home = np.empty(12, np.int64)
        for domain, part in enumerate(parts):
            home[list(part)] = domain
        best = min(best, cut_bytes(question, home))

    assert lower_bound(question) == pytest.approx(16)
    assert sharpened_bound(question, 1e9) == pytest.approx(24)
    assert best == 24


def test_a_pipeline_of_two_stages_crosses_twelve_at_least_and_twenty_where_stages_are_halved() -> (
    None
):
    hops = Charge(kind=Kind.CHAIN, axes=(1,), weight_bytes=1.0)
    question = Question(sizes=(4, 2), charges=(ROWS, hops), capacities=(6, 2))
    least: dict[tuple[int, int], float] = {}
    for two in combinations(range(8), 2):  # innermost axis first: ranks 0 to 3 are stage 0
        home = np.isin(np.arange(8), two).astype(np.int64)
        six = (int((home[:4] == 0).sum()), int((home[4:] == 0).sum()))
        least[six] = min(least.get(six, np.inf), cut_bytes(question, home))

    assert least == {(4, 2): 12, (2, 4): 12, (3, 3): 20}


def test_the_page_prints_these_figures_and_its_links_lead_somewhere() -> None:
    page = (DOCS / "theory.md").read_text(encoding="utf-8")

    for figure in ("56 - 44 = **12**", "Squares cut 44, diagonals 132", "= 16.", "**24**",
                   "stay inside: 12.", "split: 20."):  # fmt: skip
        assert figure in page
    for link in re.findall(r"\]\(([^)]+)\)", page):
        assert (DOCS / link).is_file()
    ET.parse(DOCS / "theory-bound.svg")
