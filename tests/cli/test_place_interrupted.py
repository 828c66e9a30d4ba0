"""Ctrl-C in a real process: one ends the search, and the best placement so far is printed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from planner.layout import Layout, groups_along

ROOT = Path(__file__).parents[2]
LAYOUT = Layout(tp=8, cp=2, pp=16, dp=4, global_batch=64)
# Free of rules it is proved at once, and each of the rules below takes seconds.
JOB = ("place", "--supernode", "64", "--gpus", "1024", "--model", "llama-3.1-405b", "--tp", "8",
       "--cp", "2", "--pp", "16", "--dp", "4", "--time-limit", "100")  # fmt: skip
COUNTED = ("--rule", "pp at most 3 supernodes")
NAMED = ("--rule", "stage 0 on sn00,sn01")
WENT_ON = 99

# The command, but that it is sent a SIGINT as often as asked, a little after a function is entered
# for the first time. Steps of the search that come later end the process with a code of their own.
STRUCK = f"""
import os, signal, sys
from planner.place import rules_counted, rules_fill, rules_slab_bound, rules_slabs, rules_solve
from planner.place import alternatives, explain
from cli import progress_line
from cli.planner_app import main

def strike(*_):
    os.kill(os.getpid(), signal.SIGINT)
    for step in {{after!r}}:
        setattr(rules_solve, step, lambda *_, **__: os._exit({WENT_ON}))

def struck(*arguments, **named):
    if not entered:
        entered.append(True)
        signal.signal(signal.SIGALRM, strike)
        signal.setitimer(signal.ITIMER_REAL, {{delay_s}})
    return inner(*arguments, **named)

entered = []
inner = getattr({{module}}, {{function!r}})
setattr({{module}}, {{function!r}}, struck)
sys.exit(main({{arguments!r}}))
"""


def _struck_in(
    function: str, *arguments: str, after: tuple[str, ...], delay_s: float = 0.1
) -> subprocess.CompletedProcess[str]:
    module, _, name = function.rpartition(".")
    code = STRUCK.format(
        module=module, function=name, arguments=list(arguments), after=after, delay_s=delay_s
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        # A shell's background jobs start with SIGINT ignored, and their children with them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def _touched(document: dict[str, object], digit: str) -> int:
    """Return how many supernodes the worst group along *digit* touches."""
    seats = document["placement"]["rank_to_gpu"]  # type: ignore[index]
    groups = groups_along([axis.size for axis in LAYOUT.axes], LAYOUT.axes_of(digit))
    return max(len({seats[rank] // 64 for rank in group}) for group in groups.tolist())


@pytest.mark.parametrize(
    ("function", "rule", "after"),
    [
        ("rules_counted.solve_within", COUNTED, ("by_parts", "close")),
        ("rules_slabs.solve_within", NAMED, ("mended", "slab_bound", "close")),
        pytest.param(
            "rules_slab_bound.solve_within", NAMED, ("by_parts", "close"), marks=pytest.mark.nightly
        ),
        pytest.param(
            "rules_solve.mended", NAMED, ("slab_bound", "close"), marks=pytest.mark.nightly
        ),
    ],
)
def test_one_ctrl_c_in_any_step_under_rules_ends_the_search_with_the_best_that_keeps_them(
    function: str, rule: tuple[str, ...], after: tuple[str, ...]
) -> None:
    ran = _struck_in(function, *JOB, *rule, "--json", after=after)

    assert (ran.returncode, ran.stderr.splitlines()[-1:]) == (
        130,
        ["interrupted: this is the best placement so far, with its gap"],
    )
    document = json.loads(ran.stdout)
    assert document["cut"]["interrupted"]
    assert document["cut"]["proof"] == "time_limit"
    assert 0 < document["cut"]["gap"] < 1
    if rule is COUNTED:
        assert _touched(document, "pp") <= 3
    else:
        stage = {seat // 64 for seat in document["placement"]["rank_to_gpu"][:64]}
        assert stage <= {0, 1}


def test_ctrl_c_before_the_rules_are_looked_at_still_prints_a_placement_that_keeps_them() -> None:
    racks = ("place", "--supernode", "72", *JOB[3:], *COUNTED, "--json")  # takes seconds when free
    searches = ("solved_on", "seated_by_slab", "slab_bound", "priced", "by_parts", "close")

    ran = _struck_in("progress_line.ProgressLine.__call__", *racks, after=searches)

    assert ran.returncode == 130
    document = json.loads(ran.stdout)
    assert document["cut"]["interrupted"]
    assert document["rules"]["rules"] == ["pp at most 3 supernodes"]


@pytest.mark.parametrize("asked", [("--explain",), ("--alternatives", "2")])
def test_ctrl_c_in_what_was_asked_for_besides_prints_the_placement(asked: tuple[str, ...]) -> None:
    module = asked[0].removeprefix("--")

    ran = _struck_in(
        f"{module}.solve_ruled_within", *JOB, *asked, "--json", after=("close",), delay_s=1e-3
    )

    assert ran.returncode == 130
    assert ran.stderr.endswith("what was asked for besides was not finished\n")
    document = json.loads(ran.stdout)
    assert document["cut"]["proof"] == "bound"
    assert not {"explain", "alternatives"} & document.keys()
