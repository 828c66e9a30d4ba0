"""A plan's picture as a file of its own."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from cli.report_pictures_file import write_plan_picture
from planner.errors import InputError
from tests.unit.test_report_html import HOSTILE, small_plan

SVG = "{http://www.w3.org/2000/svg}"


def test_it_has_a_square_for_each_gpu_and_a_bar_for_each_rival(tmp_path: Path) -> None:
    out = tmp_path / "plan.svg"

    write_plan_picture(small_plan(), out)

    root = ET.parse(out).getroot()
    squares = [r for r in root.iter(f"{SVG}rect") if str(r.get("class")).startswith("k ")]
    words = [text.text for text in root.iter(f"{SVG}text")]
    assert len(squares) == 9  # eight ranks and a free seat
    assert sum("free" in str(square.get("class")) for square in squares) == 1
    assert {"lower bound", "this plan", "Megatron's rank order", "greedy"} <= set(words)


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_names(tmp_path: Path, name: str) -> None:
    document, out = small_plan(), tmp_path / "plan.svg"
    document["inputs"]["model"] = document["placement"]["domains"][0]["name"] = name

    write_plan_picture(document, out)

    tags = {element.tag.removeprefix(SVG) for element in ET.parse(out).getroot().iter()}
    assert tags <= {"svg", "title", "style", "g", "rect", "path", "text"}


def test_another_format_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"ends in \.svg"):
        write_plan_picture(small_plan(), tmp_path / "plan.png")
