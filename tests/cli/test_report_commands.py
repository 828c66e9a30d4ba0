"""The command in a report asks for the same plan: the same inputs, the same hash."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cli.report_html_words import command_of
from tests.conftest import Ran

Planner = Callable[..., Ran]
SMALL = ("--gpus", "32", "--model", "llama-3.1-8b", "--global-batch", "64")
ASKED: dict[str, tuple[str, ...]] = {
    "little": ("--gpus", "32", "--supernode", "8"),
    "no cluster": ("--gpus", "16", "--model", "llama-3.1-8b"),
    "degrees": (*SMALL, "--supernode", "8", "--tp", "2", "--pp", "4", "--zero", "1"),
    "a cluster rebuilt": (*SMALL, "--cluster", "hgx-h100", "--supernode", "16", "--tp", "2"),
    "an order": (*SMALL, "--supernode", "8", "--order", "tp-cp-ep-pp-dp", "--seed", "3"),
    "over memory": (*SMALL, "--supernode", "8", "--tp", "1", "--pp", "1", "--zero", "0",
                    "--recompute", "none", "--ignore-memory"),
    "an objective": (*SMALL, "--supernode", "8", "--objective", "bottleneck"),
    "flat rings": (*SMALL, "--supernode", "8", "--reductions", "flat", "--tp", "2"),
    "a rule": (*SMALL, "--supernode", "8", "--tp", "2", "--rule", "tp within supernode"),
}  # fmt: skip


def documented(planner: Planner, *arguments: str) -> dict[str, Any]:
    ran = planner("place", *arguments, "--json")
    assert ran.code == 0, ran.err
    document: dict[str, Any] = json.loads(ran.out)
    return document


@pytest.mark.parametrize("name", ASKED)
def test_the_command_of_a_plan_makes_it_again(planner: Planner, name: str) -> None:
    document = documented(planner, *ASKED[name])

    program, command, *arguments = shlex.split(command_of(document))
    ran = planner(command, *arguments)

    assert program == "planner"
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["inputs"]["sha256"] == document["inputs"]["sha256"]


def test_what_only_a_file_can_say_stands_before_the_command(
    planner: Planner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("layout.yaml").write_text("schedule: gpipe\n", encoding="utf-8")
    document = documented(planner, *SMALL, "--supernode", "8", "--pp", "2", "--layout",
                          "layout.yaml")  # fmt: skip

    comment, _, command = command_of(document).partition("\n")

    assert comment == '# layout.yaml: {"schedule": "gpipe"}'
    Path("layout.yaml").write_text(comment.removeprefix("# layout.yaml: "), encoding="utf-8")
    again = planner(*shlex.split(command)[1:])
    assert json.loads(again.out)["inputs"]["sha256"] == document["inputs"]["sha256"]
