"""``--plot`` on every command that has it: a picture of what it prints, or a plain error."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.report_pictures_file import png_bytes
from planner.errors import InputError
from tests.conftest import Ran

Planner = Callable[..., Ran]
SVG = "{http://www.w3.org/2000/svg}"
SMALL = ("--gpus", "16", "--model", "llama-3.1-8b", "--global-batch", "32", "--zero", "1")
COMMANDS = {
    "place": ("place", "--supernode", "8", *SMALL, "--tp", "2", "--pp", "2"),
    "step": ("step", "--supernode", "8", *SMALL, "--tp", "2", "--pp", "2"),
    "search": ("search", "--supernode", "8", *SMALL, "--best", "2", "--seq", "4096"),
    "compare": (
        "compare",
        "--cluster",
        "hgx-h100",
        "--cluster",
        "gb200-nvl72",
        *SMALL,
        "--tp",
        "1",
        "--pp",
        "1",
        "--cp",
        "1",
        "--micro-batch",
        "1",
        "--recompute",
        "full",
    ),
}


def skip_without_png() -> None:
    """Skip where PNG cannot be made: no resvg_py, or no font on the machine."""
    pytest.importorskip("resvg_py")
    try:
        png_bytes('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"/>')
    except InputError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", COMMANDS)
def test_a_picture_is_drawn_and_is_the_same_again(
    planner: Planner, tmp_path: Path, name: str
) -> None:
    first, again = tmp_path / "first.svg", tmp_path / "again.svg"

    ran = planner(*COMMANDS[name], "--plot", str(first))
    planner(*COMMANDS[name], "--plot", str(again))

    assert ran.code == 0, ran.err
    assert f"wrote {first}" in ran.err
    root = ET.parse(first).getroot()
    assert root.get("aria-label")
    assert len(list(root.iter(f"{SVG}rect"))) >= 2
    assert first.read_bytes() == again.read_bytes()


def test_a_png_is_drawn_where_its_package_is(planner: Planner, tmp_path: Path) -> None:
    skip_without_png()
    out = tmp_path / "step.png"

    assert planner(*COMMANDS["step"], "--plot", str(out)).code == 0

    assert out.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


@pytest.mark.parametrize("name", COMMANDS)
def test_another_format_is_refused_before_anything_is_computed(
    planner: Planner, tmp_path: Path, name: str
) -> None:
    document = tmp_path / "document.json"

    ran = planner(*COMMANDS[name], "--plot", "picture.pdf", "--out", str(document))

    assert ran.code == 2
    assert "picture.pdf: pictures are SVG or PNG" in ran.err
    assert not document.exists()


def test_a_cluster_is_drawn_as_png_too(planner: Planner, tmp_path: Path) -> None:
    skip_without_png()
    out = tmp_path / "cluster.png"

    assert planner("topology", "draw", "hgx-h100", "--out", str(out)).code == 0

    assert out.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"


def test_a_plan_and_its_picture_are_written_by_one_command(
    planner: Planner, tmp_path: Path
) -> None:
    plan, picture = tmp_path / "plan.json", tmp_path / "plan.svg"

    ran = planner(*COMMANDS["place"], "--out", str(plan), "--plot", str(picture))

    assert ran.code == 0, ran.err
    assert plan.exists()
    assert picture.exists()
