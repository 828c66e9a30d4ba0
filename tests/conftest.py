"""What several tests share: the command as a user runs it, and the folder of outside inputs."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

settings.register_profile("repeatable", deadline=None, derandomize=True, database=None)
settings.load_profile("repeatable")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """What one run of the command left."""

    code: int
    out: str
    err: str


def run_here(*words: object) -> Ran:
    """Run ``planner WORDS…`` in this process, in fixtures too that several tests share.

    A process of its own costs about a second, most of it imports.
    """
    from cli.planner_app import main

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        code = main(tuple(map(str, words)))
    said = [stream.buffer.getvalue().decode("utf-8") for stream in (out, err)]
    return Ran(code=code, out=said[0], err=said[1])


@pytest.fixture
def planner(capsys: pytest.CaptureFixture[str]) -> Callable[..., Ran]:
    """Run ``planner ARGUMENTS…`` in this process and return its exit code and output."""
    from cli.planner_app import main

    def run(*arguments: str) -> Ran:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        return Ran(code=code, out=captured.out, err=captured.err)

    return run


@pytest.fixture
def planner_process(tmp_path: Path) -> Callable[..., Ran]:
    """Run ``planner ARGUMENTS…`` as a process of its own, in an empty folder."""

    def run(*arguments: str, **environment: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "cli.planner_app", *arguments],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUTF8": "1", **environment},
            capture_output=True,
            text=True,
            encoding="utf-8",
            stdin=subprocess.DEVNULL,
            timeout=120,
            check=False,
        )
        return Ran(code=done.returncode, out=done.stdout, err=done.stderr)

    return run


@pytest.fixture(scope="session")
def shared_folder() -> Path:
    """Return the folder of outside inputs and measurements, or skip the test."""
    folder = Path(os.environ.get("PLANNER_SHARED", ROOT.parent / "shared"))
    if not (folder / "inputs").is_dir():
        pytest.skip("no folder of outside inputs: set PLANNER_SHARED to one")
    return folder
