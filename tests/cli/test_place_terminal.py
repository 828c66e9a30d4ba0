"""``planner place`` on a terminal: coloured, 80 columns wide, and without colour where asked."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

SMALL = ("place", "--supernode", "8", "--gpus", "32", "--model", "llama-3.1-8b", "--tp", "4",
         "--pp", "4", "--vpp", "1", "--cp", "1", "--dp", "2", "--zero", "1", "--micro-batch", "1",
         "--global-batch", "32", "--ignore-memory")  # fmt: skip


def on_a_terminal(
    folder: Path, *, arguments: tuple[str, ...] = SMALL, code: int = 0, **environment: str
) -> str:
    """Return what the command writes to a terminal of 80 columns."""
    leader, follower = pty.openpty()
    plain = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR", "COLUMNS"}}
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.planner_app", *arguments],
        cwd=folder, stdin=subprocess.DEVNULL, stdout=follower, stderr=subprocess.DEVNULL,
        env={**plain, "PYTHONPATH": str(ROOT), "TERM": "xterm-256color", "COLUMNS": "80",
             "COLORTERM": "truecolor", "PYTHONUTF8": "1", **environment},
    )  # fmt: skip
    os.close(follower)
    chunks = []
    while True:
        try:
            chunk = os.read(leader, 65536)
        except OSError:  # the other side is closed
            break
        if not chunk:
            break
        chunks.append(chunk)
    os.close(leader)
    assert process.wait(60) == code
    return b"".join(chunks).decode().replace("\r\n", "\n")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_gets_colour_and_no_color_takes_it_away(tmp_path: Path) -> None:
    coloured = on_a_terminal(tmp_path)
    plain = on_a_terminal(tmp_path, NO_COLOR="1")

    background = re.compile(r"\x1b\[[0-9;]*48;2;")
    assert background.search(coloured)
    assert not background.search(plain)
    bare = [re.sub(r"\x1b\[[0-9;]*m", "", text) for text in (coloured, plain)]
    assert bare[0] == bare[1]
    assert max(map(len, bare[0].splitlines())) <= 80
    assert "pipeline stage" in bare[0]


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_page_of_html_is_not_poured_over_a_terminal(tmp_path: Path) -> None:
    assert on_a_terminal(tmp_path, arguments=("report", "plan.json"), code=2) == ""
