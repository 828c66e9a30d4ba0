"""Programs that read what we write, as tests start them: where absent, a test skips and says so.

Daemons listen on the loopback address only and are ended by their process numbers.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from planner.layout import Layout
from topologies.export_seats import SeatedPlan, seated_plan
from topologies.fabric_catalogue import load_cluster

SHARED = Path(os.environ.get("PLANNER_SHARED", Path(__file__).resolve().parents[2] / "shared"))
TREE = "SwitchName=s0 Nodes=n[1-2]\nSwitchName=s1 Nodes=n[3-4]\nSwitchName=top Switches=s[0-1]\n"
SCATTERED = (5, 0, 3, 6, 1, 7, 2, 4)  # GPUs of ranks 0 to 7 on four machines of two


def tool(*names: str) -> None:
    absent = [name for name in names if shutil.which(name) is None]
    if absent:
        pytest.skip(f"not installed here: {', '.join(absent)}")


def spread_plan(folder: Path, seats: tuple[int, ...] = SCATTERED) -> SeatedPlan:
    path = folder / "tree.conf"
    path.write_text(TREE, encoding="utf-8")
    fabric = load_cluster(f"{path},gpus-per-node=2")
    layout = Layout(tp=2, dp=len(seats) // 2, global_batch=60 * len(seats), seq=2048)
    return seated_plan(layout, fabric, seats, source="a test")


def homes(plan: SeatedPlan) -> dict[int, str]:
    return {seat.rank: seat.host for seat in plan.seats}


def ran(words: list[str], environment: dict[str, str], *, limit_s: float = 60) -> str:
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=limit_s, check=False,
            env={**os.environ, **environment},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        pytest.skip(f"{words[0]} does not answer within {limit_s:.0f} s on this machine")
    return done.stdout + done.stderr


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def running(commands: list[list[str]], folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    with (folder / "daemons.log").open("w") as log:
        started = [subprocess.Popen(words, stdout=log, stderr=log) for words in commands]
        try:
            yield started
        finally:
            for one in reversed(started):
                one.terminate()
            for one in started:
                try:
                    one.wait(timeout=10)
                except subprocess.TimeoutExpired:
                    one.kill()
                    one.wait()
