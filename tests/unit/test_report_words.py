"""Words of both pages: prices of rules in time, memory that fits only just, cells of tables."""

from __future__ import annotations

import pytest

from cli.compare_csv import csv_cell
from cli.property_words import PROPERTIES, span_words
from cli.report_pictures import safe
from cli.report_words import close_words, plain_cell, price_in_time
from planner.search.experts import expert_counts


@pytest.mark.parametrize(
    "text",
    ["=HYPERLINK(1)", "+1", "-1+cmd|' /C calc'!A0", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "  =1",
     "\uff1d1"],
)  # fmt: skip
def test_a_cell_that_a_spreadsheet_would_run_begins_with_an_apostrophe(text: str) -> None:
    assert plain_cell(text) == f"'{text}"
    assert csv_cell(text).lstrip('"').startswith("'")


@pytest.mark.parametrize("text", ["llama-3.1", "tp8 cp2", "a=b", "", "0.5"])
def test_other_cells_stay_as_they_are(text: str) -> None:
    assert plain_cell(text) == text


@pytest.mark.parametrize("code", [0x202A, 0x202E, 0x2066, 0x2069, 0x200F, 0x061C, 0x2060, 0xFEFF])
def test_characters_that_turn_or_hide_text_are_shown_as_unknown(code: int) -> None:
    assert safe(f"a{chr(code)}b") == "a\ufffdb"


@pytest.mark.parametrize(
    ("ruled_s", "free_s", "said"),
    [
        (1.002, 1.0, "2 ms of a step (0.2 %): 1.00 s with the rules, 1 s without"),
        (98.0, 100.0,
         "2 s of a step (2 %), which is shorter with them: 98 s with the rules, 100 s without"),
        (1.0001, 1.0, "a step is as long without them"),
    ],
)  # fmt: skip
def test_a_rule_may_cost_time_or_save_it(ruled_s: float, free_s: float, said: str) -> None:
    assert price_in_time(ruled_s, free_s) == said


def test_only_what_fits_by_less_than_a_twentieth_is_warned_of() -> None:
    assert close_words(94.9, 100.0) == ""
    assert "95 %" in close_words(95.0, 100.0)
    assert "100 %" in close_words(100.0, 100.0)
    assert close_words(100.1, 100.0) == ""


def test_the_span_of_experts_that_is_told_is_the_one_that_is_looked_at() -> None:
    counts = expert_counts(256)

    assert (min(counts), max(counts)) == (64, 2048)
    assert span_words(PROPERTIES) == "experts: a quarter to 8 times; in flight: 1 at least"
