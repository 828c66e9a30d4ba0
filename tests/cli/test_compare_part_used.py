"""``planner compare`` of racks that the GPUs do not fill: what a part of each would bring."""

from __future__ import annotations

import html
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cli import compare_report
from cli.report_html_contradictions import part_recounted
from tests.conftest import Ran

Planner = Callable[..., Ran]


@pytest.fixture
def without_flips(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for no flips and no gains: they take seconds, and are asked for elsewhere."""
    none = compare_report._After()
    monkeypatch.setattr(compare_report, "_seated_flips", lambda *_: none)
    monkeypatch.setattr(compare_report, "_gains", lambda *_: {})


@pytest.mark.usefixtures("without_flips")
def test_what_a_part_of_each_rack_brings_is_in_the_document_and_on_its_page(
    planner: Planner, tmp_path: Path
) -> None:
    # 16 GPUs fill three racks of 5 and one seat: 4 of each of 4 racks
    asked = ("--supernode", "5", "--gpus", "16", "--model", "llama-3.1-8b", "--seq", "4096",
             "--global-batch", "1024")  # fmt: skip
    file = tmp_path / "compared.json"

    assert planner("compare", *asked, "--json", "--out", str(file)).code == 0
    plan = tmp_path / "plan.json"
    assert planner("place", *asked, "--time-limit", "30", "--json", "--out", str(plan)).code == 0
    placed = json.loads(plan.read_text(encoding="utf-8"))
    page = html.unescape(planner("report", str(file)).out)
    plan_page = html.unescape(planner("report", str(plan)).out)

    one = json.loads(file.read_text(encoding="utf-8"))["ranked"][0]
    part = one["part_used"]
    assert part == placed["part_used"]
    assert (part["gpus_of_each"], part["supernodes"], part["cluster_gpus"]) == (4, 4, 20)
    assert part["step_s"] < 0.98 * one["step"]["total_s"]
    assert "generic-sn5: With 4 of the 5 GPUs of each supernode used, of 4 supernodes, " in page
    assert "With 4 of the 5 GPUs of each supernode used, of 4 supernodes, " in plan_page
    assert f"{part['step_s']:.1f} s instead of {one['step']['total_s']:.1f} s" in page


@pytest.mark.usefixtures("without_flips")
def test_of_racks_that_are_full_the_document_tells_no_part(planner: Planner) -> None:
    ran = planner("compare", "--supernode", "4", "--gpus", "8", "--model", "llama-3.1-8b", "--json")

    assert "part_used" not in json.loads(ran.out)["ranked"][0]


def test_a_part_that_contradicts_the_rest_of_its_file_is_refused() -> None:
    part = {"gpus_of_each": 4, "supernodes": 4, "cluster_gpus": 20, "step_s": 24.6}
    step = {"total_s": 25.5}
    wrong = {**part, "gpus_of_each": 3, "cluster_gpus": 21, "step_s": 26.0}

    assert not [*part_recounted({"part_used": part, "step": step}, 16)]
    assert not [*part_recounted({"step": step}, 16)]
    assert [*part_recounted({"part_used": wrong, "step": step}, 16)] == [
        "part_used.gpus_of_each: expected 16 GPUs in all, got 12",
        "part_used.cluster_gpus: expected a multiple of 4 above 12, got 21",
        "part_used.step_s: expected less than the step, 25.5 s, got 26 s",
    ]
