"""What ``planner place`` prints in 80 columns: nothing is cut off, every number has its word."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
SMALL = ("place", "--supernode", "8", "--gpus", "64", "--model", "mixtral-8x7b")


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_second_answers_keep_their_step_and_drop_degrees_that_cross_in_none(
    planner: Planner,
) -> None:
    layout = ("--tp", "2", "--cp", "2", "--ep", "4", "--pp", "4", "--ignore-memory")

    page = planner(*SMALL, *layout, "--alternatives", "3").out

    table = page.partition("The best others tried that cross something else\n")[2].partition(
        "\n\n"
    )[0]
    head, _, *rows = table.splitlines()
    assert head.split()[0] == "placement"
    assert head.split()[-1] == "step"
    assert all(re.search(r"(%|as long)\s*$", row) for row in rows if "TB" in row or "GB" in row)
    assert all(row.startswith("  ") for row in rows)  # names that go on are indented, too
    assert "…" not in table
    assert "DP sums gradients over the context parallel ranks, too" in " ".join(page.split())


def test_memory_far_beyond_the_gpu_keeps_its_names_and_numbers(planner: Planner) -> None:
    page = planner(*SMALL, "--tp", "1", "--pp", "1", "--zero", "0", "--ignore-memory").out

    table = page.partition("Memory of the fullest GPU")[2].partition("\n\n")[0]
    assert "…" not in table
    for name in ("activations", "gradients", "optimizer", "weights", "margin", "all"):
        assert re.search(rf"^  {name} +[\d.]+ [GM]B", table, re.MULTILINE), name


def test_memory_that_fits_only_just_is_warned_of(planner: Planner, tmp_path: Path) -> None:
    layout = ("--tp", "8", "--cp", "2", "--dp", "8", "--pp", "8", "--vpp", "15", "--zero", "1")
    full, roomy = tmp_path / "full.json", tmp_path / "roomy.json"

    page = planner("place", "--supernode", "64", "--model", "llama-3.1-405b", *layout,
                   "--micro-batch", "1", "--out", str(full)).out  # fmt: skip
    other = planner(*SMALL, "--tp", "4", "--cp", "1", "--ep", "4", "--pp", "4", "--vpp", "1",
                    "--zero", "1", "--micro-batch", "1", "--out", str(roomy)).out  # fmt: skip

    shares = []
    for out in (full, roomy):
        memory = json.loads(out.read_text())["memory"]
        shares.append((memory["worst_stage_bytes"] + memory["margin_bytes"])
                      / memory["capacity_bytes"])  # fmt: skip
    assert 0.95 <= shares[0] <= 1
    assert shares[1] < 0.95
    assert "It fits only just: 99.9 % of the memory" in page
    assert "It fits only just" not in other
    assert "It fits only just: 99.9 % of the memory" in planner("report", str(full)).out


def test_a_rule_is_priced_in_seconds_and_as_a_share_of_the_step(
    planner: Planner, tmp_path: Path
) -> None:
    out = tmp_path / "ruled.json"
    layout = ("--tp", "2", "--ep", "4", "--pp", "4", "--ignore-memory")

    page = planner(*SMALL, *layout, "--rule", "pp within supernode", "--out", str(out)).out
    free = planner(*SMALL, *layout, "--json").out

    rules = json.loads(out.read_text())["rules"]
    assert rules["free_step_s"] == json.loads(free)["step"]["total_s"]
    assert rules["step_s"] == json.loads(out.read_text())["step"]["total_s"]
    told = " ".join(page.split())
    assert re.search(r"in time [\d.]+ m?s of a step \([\d.]+ %\)", told)
    report = planner("report", str(out)).out
    assert "In time: " in report
    assert "keeping the rule: pp within supernode" in report


@pytest.mark.parametrize(
    ("free", "told"),
    [
        (["0-7"] * 4 + ["0-6"] * 3 + ["0-3"] * 2, "8 (4 of them) and 7+7+7+4+4 free"),
        (["0-7"] * 4 + ["0-6"] * 3 + ["0-4", "0-3", "0-3", "0-1"],
         "8 (4 of them) and 7+7+7+5 and 3 supernodes more with 2 to 4 free"),
    ],
)  # fmt: skip
def test_supernodes_of_which_a_part_is_free_are_told_with_how_much(
    planner: Planner, tmp_path: Path, free: list[str], told: str
) -> None:
    file = tmp_path / "free.txt"
    lines = [f"sn{i:02}.board00:{part}\n" for i, part in enumerate(free)]
    file.write_text("".join(lines), encoding="utf-8")
    layout = ("--tp", "1", "--cp", "1", "--pp", "1", "--dp", "48", "--micro-batch", "1")

    ran = planner("place", "--supernode", "8", "--gpus", "128", "--free", str(file), "--model",
                  "llama-3.1-8b", *layout, "--ignore-memory", "--time-limit", "5")  # fmt: skip

    assert ran.code == 0, ran.err
    assert f"in them {told}; " in " ".join(ran.out.split())
