"""``place --time-limit``: the whole run ends near it, with the best so far and its gap."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]

ROOT = Path(__file__).parents[2]
RACKS = ("place", "--supernode", "72", "--model", "deepseek-v3", "--json")
SEATED = (*RACKS, "--tp", "2", "--ep", "64", "--pp", "8", "--dp", "64", "--ignore-memory")
READING_S = 3.0  # CPU seconds for imports, choosing the layout, its step and the page
BESIDES_S = 2.0  # after the limit; it takes half of this on one idle core


def _processor_s(*arguments: str) -> tuple[float, dict[str, object]]:
    """Return the processor's seconds of a run and of its solvers, and its document."""
    with subprocess.Popen(
        [sys.executable, "-m", "cli.planner_app", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as child:  # fmt: skip
        assert child.stdout is not None
        text = child.stdout.read()
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0
    return used.ru_utime + used.ru_stime, json.loads(text)


def test_a_limit_ends_the_whole_run_and_the_gap_is_told() -> None:
    """Nine placements are timed and looked at without it: 16 s of one core, and more."""
    took_s, document = _processor_s(*RACKS, "--objective", "time", "--time-limit", "1")

    assert took_s < READING_S + BESIDES_S
    assert document["cut"]["proof"] == "time_limit"  # type: ignore[index]
    assert 0 < document["cut"]["gap"] <= 1  # type: ignore[index]


@pytest.mark.parametrize(
    "asked",
    [
        (),
        ("--objective", "bottleneck"),
        ("--objective", "time"),
        ("--tiers", "weighted"),
        ("--rule", "tp within supernode", "--rule", "pp at most 8 supernodes"),
        ("--explain", "--alternatives", "2"),
    ],
)
def test_whatever_is_asked_a_limit_that_is_over_at_once_gives_a_placement(
    planner: Planner, asked: tuple[str, ...]
) -> None:
    ran = planner(*SEATED, *asked, "--time-limit", "0.01")

    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    cut = document["cut"]
    assert cut["checked_bytes"] == pytest.approx(cut["objective_bytes"])
    assert not cut.get("interrupted", False)
    if asked in ((), ("--explain", "--alternatives", "2"), ("--tiers", "weighted")):
        assert cut["objective_bytes"] <= min(one["cut_bytes"] for one in document["baselines"])


def test_a_limit_that_is_not_reached_changes_nothing_but_itself(planner: Planner) -> None:
    asked = ("place", "--supernode", "64", "--gpus", "256", "--model", "llama-3.1-8b", "--json")
    plain, limited = planner(*asked), planner(*asked, "--time-limit", "600")

    one, two = json.loads(plain.out), json.loads(limited.out)
    assert one["inputs"].pop("time_limit_s") == 20
    assert two["inputs"].pop("time_limit_s") == 600
    for document in (one, two):
        del document["inputs"]["sha256"]
    assert one == two
