"""Files that can be read once only: what a shell's ``<(...)`` or a pipe hands to a command."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from cli.planner_app import main

TREE = "SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[3-4]\nSwitchName=top Switches=s[0-1]\n"
pytestmark = pytest.mark.skipif(
    not Path("/dev/fd").exists(), reason="this system does not name open files"
)


@contextmanager
def piped(content: str) -> Iterator[str]:
    """Yield the name of a pipe that holds *content*, which fits in what a pipe keeps."""
    out, into = os.pipe()
    os.write(into, content.encode())
    os.close(into)
    try:
        yield f"/dev/fd/{out}"
    finally:
        os.close(out)


def test_a_piped_cluster_is_read_and_hashed_once(tmp_path: Path) -> None:
    out = tmp_path / "out.json"

    with piped(TREE) as file:
        code = main(["topology", "import", file, "--gpus-per-node", "2", "--out", str(out)])

    assert code == 0
    told = json.loads(out.read_text())
    assert told["inputs"]["file_sha256"] == sha256(TREE.encode()).hexdigest()


def test_a_piped_cluster_plan_and_allocation_are_as_good_as_files(tmp_path: Path) -> None:
    plan, verdict = tmp_path / "plan.json", tmp_path / "verdict.json"
    (tmp_path / "tree.conf").write_text(TREE)
    words = ["--model", "llama-3.1-8b", "--tp", "2", "--dp", "4", "--ignore-memory"]
    with piped(TREE) as file:
        shown = main(["place", "--cluster", f"{file},gpus-per-node=2", *words])
    made = main(["place", "--cluster", f"{tmp_path / 'tree.conf'},gpus-per-node=2", *words,
                 "--out", str(plan)])  # fmt: skip

    with piped(plan.read_text()) as told, piped("n[1-4]\n") as given:
        code = main(["verify", told, "--allocation", given, "--out", str(verdict)])

    assert (shown, made, code) == (0, 0, 0)
    inputs = json.loads(verdict.read_text())["inputs"]
    assert inputs["plan_sha256"] == sha256(plan.read_bytes()).hexdigest()
    assert inputs["allocation_sha256"] == sha256(b"n[1-4]\n").hexdigest()


@pytest.mark.parametrize("command", ["validate", "calibrate"])
def test_a_piped_table_of_steps_is_hashed_by_what_it_holds(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    table = Path(__file__).parent.parent / "accuracy" / "published_steps.csv"
    lines = table.read_text().splitlines(keepends=True)
    text = lines[0] + "".join(line for line in lines[1:] if "A100" in line)[:40_000]
    text = text[: text.rindex("\n") + 1]

    with piped(text) as file:
        code = main([command, file, "--json"])

    assert code == 0
    inputs = json.loads(capsys.readouterr().out)["inputs"]
    assert inputs["table_sha256"] == sha256(text.encode()).hexdigest()
