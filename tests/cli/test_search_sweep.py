"""``planner search --sweep``: killed in the middle, resumed, and the same as one run."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
SWEEP = "models: [llama-3.1-8b]\nsupernodes: [2, 4, 8, 64]\ngpus: [8, 16]\n"


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    path = tmp_path / "sweep.yaml"
    path.write_text(SWEEP)
    return path


def rows(path: Path) -> list[Any]:
    with sqlite3.connect(path) as database:
        return database.execute("SELECT * FROM results ORDER BY position").fetchall()


def test_a_killed_sweep_is_resumed_to_the_same_bytes(
    planner: Planner, sweep: Path, tmp_path: Path
) -> None:
    whole, parts = tmp_path / "whole.sqlite", tmp_path / "parts.sqlite"
    first = planner("search", "--sweep", str(sweep), "--into", str(whole), "--json")
    assert first.code == 0, first.err
    process = subprocess.Popen(
        [sys.executable, "-m", "cli.planner_app", "search", "--sweep", str(sweep), "--into",
         str(parts)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.02)
        if parts.exists() and parts.stat().st_size and _count(parts) >= 1:
            break
    process.send_signal(signal.SIGKILL)
    process.wait()

    second = planner("search", "--sweep", str(sweep), "--into", str(parts), "--resume", "--json")

    assert second.code == 0, second.err
    assert second.out == first.out
    assert rows(parts) == rows(whole)
    results = json.loads(second.out)["results"]
    assert len(results) == 8
    refused = [one for one in results if one["best"] is None]
    assert {(one["supernode"], one["gpus"]) for one in refused} == {(64, 8), (64, 16)}


def _count(path: Path) -> int:
    try:
        with sqlite3.connect(path, timeout=1) as database:
            return int(database.execute("SELECT COUNT(*) FROM results").fetchone()[0])
    except sqlite3.Error:
        return 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("models: 3\nfoo: 1\n", ("models", "foo")),
        ("supernodes: [8, x]\n", ("supernodes[1]",)),
        ("gpus: [8, 8]\n", ("same twice",)),
        ("3\n", ("expected a sweep",)),
    ],
)
def test_every_fault_of_a_sweep_is_named(
    planner: Planner, tmp_path: Path, text: str, said: tuple[str, ...]
) -> None:
    bad = tmp_path / "bad.yaml"
    bad.write_text(text)

    ran = planner("search", "--sweep", str(bad), "--into", str(tmp_path / "x.sqlite"))

    assert ran.code == 2
    assert all(part in ran.err for part in said), ran.err


def test_a_sweep_needs_somewhere_to_go(planner: Planner, sweep: Path) -> None:
    ran = planner("search", "--sweep", str(sweep))

    assert ran.code == 2
    assert "--into" in ran.err
