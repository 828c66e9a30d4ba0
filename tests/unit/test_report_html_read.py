"""What ``planner report`` refuses to read, with the fault named."""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import pytest

from cli.report_html import report
from cli.report_html_read import read_plan
from planner.errors import InputError
from tests.report_plans import saved, small_plan


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"", "cut off"),
        (b'{"schema": "planner.place/1", "axes": [', "cut off here"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[1, 2]", "no plan"),
        (b'{"schema": "planner.search/1"}', "no plan"),
        (b'{"a": NaN}', "NaN"),
        (b'{"a": 1e999}', "1e999"),
        (b'{"a": 1, "a": 2}', "twice"),
        (b"[" * 100_000, "nested too deeply"),
        (b"<html>", "no JSON"),
    ],
)
def test_what_is_no_plan_is_refused_and_named(tmp_path: Path, text: bytes, said: str) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(text)

    with pytest.raises(InputError) as error:
        read_plan(path)

    assert said in str(error.value)
    assert "plan.json" in str(error.value)


def damaged(document: dict[str, Any], where: str, value: Any) -> dict[str, Any]:
    changed: Any = copy.deepcopy(document)
    *path, last = [int(step) if step.isdigit() else step for step in where.split(".")]
    inner = changed
    for step in path:
        inner = inner[step]
    inner[last] = value
    return dict(changed)


@pytest.mark.parametrize(
    ("where", "value", "said"),
    [
        ("placement.domains.0.ranks", [0, 1, 2, 2], "each rank from 0 to 7 exactly once"),
        ("placement.domains.0.ranks", [0, 1, 2, 99], "each rank from 0 to 7 exactly once"),
        ("placement.domains.0.capacity", 3, "4 ranks on 3 GPUs"),
        ("placement.rank_to_gpu.0", 1, "two ranks on one GPU"),
        ("placement.rank_to_gpu.0", -1, "placement.rank_to_gpu[0]: expected at least 0"),
        ("placement.gpus", [], "expected 8 names"),
        ("axes.1.stride", 3, "axes[1].stride: expected 2"),
        ("axes.2.size", 4, "have 16 ranks in all"),
        ("traffic.0.axes", ["zz"], "traffic[0].axes"),
        ("traffic.0.members", [[0, 1]], "traffic[0].members"),
        ("cut.gap", 2, "cut.gap: expected at most 1"),
        ("cut.proof", "trust me", "cut.proof: expected one of"),
        ("step.total_s", "long", "step.total_s: expected number"),
        ("step.total_s", True, "step.total_s: expected number"),
        ("step.critical_path.0.seconds", "x", "critical_path[0].seconds"),
        ("inputs.sha256", "beef", "inputs.sha256"),
        ("memory", {}, "memory.parts: is missing"),
    ],
)
def test_a_damaged_plan_is_refused_and_the_fault_named(
    tmp_path: Path, where: str, value: Any, said: str
) -> None:
    with pytest.raises(InputError) as error:
        saved(tmp_path, damaged(small_plan(), where, value))

    assert said in str(error.value)


def test_every_key_may_be_missing_without_a_traceback(tmp_path: Path) -> None:
    """Whatever one key of the document is missing: a page, or a refusal."""

    def keys(value: Any, at: str = "") -> list[str]:
        items = value.items() if isinstance(value, dict) else enumerate(value[:1])
        found = []
        for key, item in items:
            found.append(f"{at}{key}")
            if isinstance(item, dict | list):
                found += keys(item, f"{at}{key}.")
        return found

    for where in keys(small_plan()):
        values: tuple[Any, ...] = (None, "x", [], -1)
        for value in values:
            try:
                report([saved(tmp_path, damaged(small_plan(), where, value))])
            except InputError:
                continue


def test_a_name_of_ten_thousand_characters_is_cut(tmp_path: Path) -> None:
    long = "W" * 10_000
    document = damaged(small_plan(), "inputs.model", long)
    document["inputs"]["assumed"] = {long: "a source " * 1000}

    plan = saved(tmp_path, document)
    page = report([plan])

    assert plan.document["inputs"]["model"] == "W" * 127 + "…"
    assert max(map(len, re.findall(r"W+", page))) == 127
    assert len(plan.document["inputs"]["assumed"]["W" * 127 + "…"]) == 400
