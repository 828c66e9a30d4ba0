"""What the README shows is what happens: its commands run, its output is the output."""

from __future__ import annotations

import doctest
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import ROOT, Ran

README = (ROOT / "README.md").read_text(encoding="utf-8")
SET_UP = re.search(r"```sh\n(.*?)```", README, re.DOTALL)
OUTPUT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


@dataclass(frozen=True, slots=True)
class Shown:
    """One command of a console block and the output shown below it."""

    command: str
    output: str


def blocks() -> Iterator[tuple[Shown, ...]]:
    """Yield the commands of each ``console`` block of the README."""
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        shown = []
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.replace("\\\n", " ").partition("\n")
            shown.append(Shown(command, output))
        yield tuple(shown)


@pytest.mark.parametrize("block", list(blocks()), ids=lambda block: block[0].command[:60])
def test_a_block_of_the_readme_runs_and_prints_what_it_shows(
    block: tuple[Shown, ...],
    planner: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    for shown in block:
        program, *arguments = shlex.split(shown.command)
        assert program == "planner", "a console block shows the planner's own commands"

        ran = planner(*arguments)

        seen = ran.out + ran.err
        assert ran.code == 0 or "error:" in shown.output, seen
        if shown.output.strip():
            assert doctest.OutputChecker().check_output(shown.output, seen, OUTPUT), seen


def test_the_set_up_is_two_commands_and_the_checks_install_in_the_same_way() -> None:
    assert SET_UP is not None
    lines = [line for line in SET_UP.group(1).splitlines() if line and not line.startswith("#")]
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")

    assert len(lines) == 2
    assert lines[0] == "pip install . && planner place --supernode 64"
    install, test = lines[1].split(" && ")
    assert install.removeprefix("pip install ") in ci
    assert f"\n{test} 2>&1" in ci


def test_every_folder_file_and_command_the_readme_names_is_there() -> None:
    named = re.findall(r"\]\((?!https?:|#)([^)#]+)", README)

    assert [name for name in named if not (ROOT / name).exists()] == []
