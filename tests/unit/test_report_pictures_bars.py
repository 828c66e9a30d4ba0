"""Bars on wide and on narrow pages: the same words and lengths, nothing beyond the edge."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from cli.report_pictures import NARROW, WIDTH, Piece, patterned
from cli.report_pictures_bars import Bar, bars, stacked
from cli.report_pictures_plane import Axis, Point, plane, round_values
from cli.report_pictures_seats import heat
from topologies.fabric_catalogue import catalogue_names

ROWS = [
    Bar(label="ours", value=5.0, text="5 TB", group="TP (tensor parallel)"),
    Bar(label="Megatron's rank order", value=10.0, text="10 TB, step 107 s", colour="c1",
        group="TP (tensor parallel)"),
    Bar(label="nothing", value=0.0, text="none", group="DP (data parallel)"),
]  # fmt: skip
LETTER = 7.0  # pixels of one letter at 12.5 px, at most


def both(page: str) -> tuple[ET.Element, ET.Element]:
    """Return the wide and the narrow picture of a page's piece."""
    wide, narrow = re.findall(r"<svg viewBox.*?</svg>", page, re.DOTALL)[:2]
    return ET.fromstring(wide), ET.fromstring(narrow)


def ends(picture: ET.Element) -> list[float]:
    """Return where each word of a picture ends, at most."""
    found = []
    for text in picture.iter("text"):
        x, size = float(text.get("x", 0)), LETTER * len(text.text or "")
        found.append({"end": x, "middle": x + size / 2}.get(text.get("text-anchor", ""), x + size))
    return found


def test_both_forms_have_the_same_words_and_lengths_in_the_same_proportion() -> None:
    wide, narrow = both(bars("cut", ROWS))

    assert sorted(t.text or "" for t in wide.iter("text")) == sorted(
        t.text or "" for t in narrow.iter("text")
    )
    widths = [[float(r.get("width", 0)) for r in one.iter("rect")] for one in (wide, narrow)]
    assert widths[0][0] / widths[0][1] == pytest.approx(0.5, abs=0.01)
    assert widths[1] == [190, 380, 0]
    assert wide.get("aria-label") == narrow.get("aria-label")


def test_on_a_narrow_page_no_word_ends_beyond_its_edge() -> None:
    pieces = [Piece(label="a part with a long name", value=1, text="1 s", colour="c0")] * 3
    points = [
        Point(label="a candidate with a long name", x=2, low=1, high=3, y=5, text="", best=True,
              colour="c0")
    ]  # fmt: skip

    pages = (
        bars("cut", ROWS),
        stacked("step", [("a row with a long name", pieces)], 3, "3 s"),
        plane("front", points, Axis(name="time", text=str), Axis(name="bytes", text=str)),
    )

    for page in pages:
        wide, narrow = both(page)
        assert max(ends(narrow)) <= NARROW
        assert max(ends(wide)) <= WIDTH + LETTER
        assert all(float(r.get("x", 0)) + float(r.get("width", 0)) <= NARROW + 0.1
                   for r in narrow.iter("rect"))  # fmt: skip


@pytest.mark.parametrize(("width", "height"), [(40, 12), (12, 40), (5, 5), (0, 10), (300, 32)])
def test_stripes_stay_inside_their_piece_and_slant_the_same_way(
    width: float, height: float
) -> None:
    piece = Piece(label="a", value=1, text="1 s", colour="c0", pattern="stripes")

    drawn = patterned(10, 20, width, height, piece, "a: 1 s")

    found = re.search(r'class="stripes" d="([^"]*)"', drawn)
    if width == 0:
        return
    assert found
    lines = re.findall(r"M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)", found[1])
    assert lines
    for line in lines:
        x1, y1, x2, y2 = map(float, line)
        assert all(10 <= x <= 10 + width + 0.1 for x in (x1, x2))
        assert all(20 - 0.1 <= y <= 20 + height + 0.1 for y in (y1, y2))
        assert x2 - x1 == pytest.approx(y1 - y2, abs=0.11)  # at 45 degrees


def test_a_name_in_the_plane_is_not_struck_by_the_axis() -> None:
    points = [
        Point(label="low", x=2, low=1, high=3, y=0, text="", best=True, colour="c0"),
        Point(label="also low", x=2, low=1, high=3, y=0, text="", best=True, colour="c0"),
        Point(label="high", x=2, low=1, high=3, y=9, text="", best=True, colour="c0"),
    ]

    wide, _ = both(plane("p", points, Axis(name="x", text=str), Axis(name="y", text=str)))

    places = {
        t.text: float(t.get("y", 0)) for t in wide.iter("text") if "halo" in t.get("class", "")
    }
    assert set(places) == {"low", "also low", "high"}
    assert min(places["low"], places["also low"]) <= 26 + 240 - 5
    assert abs(places["low"] - places["also low"]) >= 13


@pytest.mark.parametrize(
    ("least", "most", "about", "values"),
    [(0, 9.9, 4, [0, 2]), (38, 83.8, 4, [40, 50]), (0, 1, 2, [0, 0.5, 1]), (7, 7.4, 4, [7, 7.1])],
)
def test_an_axis_has_round_values(
    least: float, most: float, about: int, values: list[float]
) -> None:
    found = round_values(least, most, about)

    assert found[: len(values)] == pytest.approx(values)
    assert found[-1] <= most + 1e-9
    assert 2 <= len(found) <= 2 * about


def test_few_domains_have_their_bytes_in_words_and_many_do_not() -> None:
    few = heat("t", np.array([[0.0, 3.0], [3.0, 0.0]]), ["a", "b"], lambda v: f"{v:g} B")
    many = heat("t", np.ones((12, 12)), [f"d{i}" for i in range(12)], lambda v: f"{v:g} B")

    assert few.count(">3 B</text>") == 2
    assert ">1 B</text>" not in many


def test_the_longest_name_on_file_stands_whole_beside_a_stacked_bar() -> None:
    longest = max(catalogue_names(), key=len)
    pieces = [Piece(label="gemm", value=1.0, text="1 s", colour="c0")]

    wide, _ = both(stacked("The step", [(longest, pieces)], 1.0, "1 s"))

    label = next(text for text in wide.iter("text") if text.text == longest)
    assert label.get("text-anchor") == "end"
    assert float(label.get("x", 0)) - LETTER * len(longest) >= 0
