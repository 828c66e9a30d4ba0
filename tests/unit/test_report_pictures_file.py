"""Pictures as files of their own: what is drawn, in which format, and what is refused."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from cli import report_pictures_file
from cli.report_html_style import PICTURE_STYLE
from cli.report_pictures import Piece
from cli.report_pictures_file import (
    Sheet,
    flat,
    key,
    png_bytes,
    svg_text,
    write_plan_picture,
    write_sheet,
)
from cli.report_pictures_plots import compare_sheet, search_sheet, step_sheet
from planner.errors import InputError
from planner.steptime.trace import ALIKE
from tests.report_plans import HOSTILE, small_plan
from tests.unit.test_report_timeline import stages

SVG = "{http://www.w3.org/2000/svg}"
TAGS = {"svg", "title", "style", "g", "rect", "path", "text", "polyline", "circle"}


def skip_without_png() -> None:
    """Skip where PNG cannot be made: no resvg_py, or no font on the machine."""
    pytest.importorskip("resvg_py")
    try:
        png_bytes('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>')
    except InputError as error:
        pytest.skip(str(error))


def words(path: Path) -> list[str]:
    return [text.text or "" for text in ET.parse(path).getroot().iter(f"{SVG}text")]


def test_it_has_a_square_for_each_gpu_and_a_bar_for_each_rival(tmp_path: Path) -> None:
    out = tmp_path / "plan.svg"

    write_plan_picture(small_plan(), out)

    root = ET.parse(out).getroot()
    squares = [r for r in root.iter(f"{SVG}rect") if str(r.get("class")).startswith("k ")]
    assert len(squares) == 9  # eight ranks and a free seat
    assert sum("free" in str(square.get("class")) for square in squares) == 1
    assert {"lower bound", "this plan", "Megatron's rank order", "greedy"} <= set(words(out))


@pytest.mark.parametrize("name", HOSTILE)
def test_names_stay_names(tmp_path: Path, name: str) -> None:
    document, out = small_plan(), tmp_path / "plan.svg"
    document["inputs"]["model"] = document["placement"]["domains"][0]["name"] = name

    write_plan_picture(document, out)

    assert {e.tag.removeprefix(SVG) for e in ET.parse(out).getroot().iter()} <= TAGS


def test_another_format_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a name in \.svg or \.png"):
        write_plan_picture(small_plan(), tmp_path / "plan.gif")

    assert list(tmp_path.iterdir()) == []


def test_png_without_its_package_is_refused_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_pictures_file, "find_spec", lambda _: None)

    with pytest.raises(InputError, match=r"pip install 'cluster-topology-planner\[report\]'"):
        write_plan_picture(small_plan(), tmp_path / "plan.png")


def test_a_png_has_the_colours_of_the_picture_on_white(tmp_path: Path) -> None:
    skip_without_png()
    first, again = tmp_path / "plan.png", tmp_path / "again.PNG"

    write_plan_picture(small_plan(), first)
    write_plan_picture(small_plan(), again)

    raw = first.read_bytes()
    assert raw[:8] == b"\x89PNG\r\n\x1a\n"
    assert int.from_bytes(raw[16:20]) == 1600
    assert len(raw) > 5000  # not an empty page
    assert raw == again.read_bytes()


def test_a_stylesheet_for_renderers_has_one_theme_and_no_variable() -> None:
    plain = flat(PICTURE_STYLE)

    assert "var(" not in plain
    assert "@media" not in plain
    assert ":has(" not in plain
    assert "svg text{fill:#1a1a1a}" in plain
    assert len(re.findall(r"\{", plain)) == len(re.findall(r"\}", plain))


def test_a_key_goes_on_in_the_next_line() -> None:
    pieces = [Piece(label=f"a rather long label {i}", value=1, text="1 B", colour="c0")
              for i in range(12)]  # fmt: skip

    root = ET.fromstring(key(pieces))

    assert len(root.findall("rect")) == 12
    assert len({rect.get("y") for rect in root.findall("rect")}) == 3
    ends = [float(t.get("x", 0)) + 7 * len(t.text or "") for t in root.findall("text")]
    assert max(ends) <= 960


def test_pictures_stand_below_each_other_with_their_headings() -> None:
    one = '<div class="frame"><svg viewBox="0 0 960 100"><rect/></svg></div><ul></ul>'

    root = ET.fromstring(svg_text(Sheet(title="t", pictures=[("One", one), ("", one)]), ""))

    inner = root.findall(f"{SVG}svg")
    assert [float(each.get("y", 0)) for each in inner] == [64, 188]
    assert root.get("viewBox") == "0 0 960 312"


def test_the_sheet_of_a_plan_says_what_its_boxes_bars_and_colours_are(tmp_path: Path) -> None:
    out = tmp_path / "plan.svg"

    write_plan_picture(small_plan(), out)

    # all 120 bytes go between the two boxes, and the pipeline has two stages
    told = words(out)
    assert told[1].endswith("the bar under it, what goes to and from others: 120 B at most")
    assert told[1].startswith("Each box is a supernode, each square a GPU; ")
    assert {"Stage 0", "Stage 1"} <= set(told)


def test_the_sheet_of_a_step_has_its_passes_and_its_parts(tmp_path: Path) -> None:
    out = tmp_path / "step.svg"

    write_sheet(step_sheet(small_plan(), stages(2, 3)), out)

    text = out.read_text(encoding="utf-8")
    assert text.count("stage 0, forward") == 3
    title = f"In time, stage by stage; {ALIKE}"
    assert {title, "Part by part", "matrix products 1.75 s"} <= set(words(out))


def layout(**more: int) -> dict[str, int]:
    return {"tp": 1, "cp": 1, "ep": 1, "etp": 1, "dp": 1, "pp": 1, "vpp": 1, **more}


def searched() -> dict[str, Any]:
    best = [
        {"layout": layout(tp=8), "step": {"total_s": 2.0}, "tie_with_first": True},
        {"layout": layout(dp=8), "step": {"total_s": 2.1}, "tie_with_first": True},
        {"layout": layout(pp=8), "step": {"total_s": 4.0}, "tie_with_first": False},
    ]
    front = [{"layout": layout(tp=8), "step_s": s, "memory_bytes": m}
             for s, m in ((2.0, 9e9), (3.0, 5e9), (700.0, 1e9))]  # fmt: skip
    inputs = {"model": "tiny", "gpus": 8, "cluster": "box"}
    return {"inputs": inputs, "best": best, "pareto": front, "layouts_considered": 12_345}


def test_the_sheet_of_a_search_has_the_best_and_the_front(tmp_path: Path) -> None:
    out = tmp_path / "search.svg"

    write_sheet(search_sheet(searched()), out)

    said = words(out)
    assert {"1. tp 8", "2. dp 8", "3. pp 8", "2 s", "2.1 s, a tie with the first", "4 s"} <= set(
        said
    )
    assert any(text.endswith("1 take more than 3 times as long") for text in said)
    circles = list(ET.parse(out).getroot().iter(f"{SVG}circle"))
    assert len(circles) == 2


def test_the_sheet_of_a_comparison_has_what_falls_on_each_cut(tmp_path: Path) -> None:
    out = tmp_path / "compare.svg"
    ranked = [
        {"cluster": name, "label": "own best", "layout": layout(tp=8), "tie_with_first": False,
         "step": {"tokens_per_s": rate}, "crossed_bytes": cut}
        for name, rate, cut in (("big", 2000.0, {"tp": 0.0, "dp": 5e12}), ("small", 1000.0, {}))
    ]  # fmt: skip

    write_sheet(compare_sheet({"ranked": ranked}), out)

    said = words(out)
    assert {"1. big, tp 8", "2. small, tp 8", "2,000", "1,000", "5 TB", "none"} <= set(said)
    assert "DP (data parallel)" in said
    assert "TP (tensor parallel)" not in said  # nowhere does any of it cross


def test_a_machine_without_fonts_is_told_so_instead_of_a_picture_without_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    resvg_py = pytest.importorskip("resvg_py")
    whole = resvg_py.svg_to_bytes

    def without_fonts(**options: Any) -> bytes:
        return bytes(whole(**options, skip_system_fonts=True))

    monkeypatch.setattr(resvg_py, "svg_to_bytes", without_fonts)

    with pytest.raises(InputError, match="PNG needs a font, and this machine has none"):
        png_bytes("<svg/>")
