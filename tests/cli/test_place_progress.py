"""What a user sees of a long search, and what is kept when it is interrupted."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from time import monotonic, sleep

import jsonschema
import numpy as np
import pytest

from cli.progress_line import ProgressLine, StageLine
from planner.place import Progress, Proof, solve_question
from planner.place.question import Charge, Kind, Question, cut_bytes
from planner.search.stages import Stage
from tests.conftest import Ran

SCHEMA = Path(__file__).parents[2] / "cli" / "schemas" / "place.json"
UNEVEN = ("--supernode", "72", "--gpus", "256", "--model", "llama-3.1-8b", "--tp", "4", "--cp",
          "2", "--dp", "8", "--pp", "4", "--global-batch", "64")  # fmt: skip


def _open_question() -> Question:
    """8 x 8 x 4 cells in 72 + 72 + 72 + 40: nothing fits, so the search goes through every step."""
    charges = tuple(
        Charge(axes=(axis,), kind=Kind.TOUCH, weight_bytes=weight)
        for axis, weight in enumerate((4.0, 1.5, 1.0))
    )
    return Question(sizes=(8, 8, 4), charges=charges, capacities=(72, 72, 72, 40))


def test_progress_never_gets_worse_and_ends_at_the_answer() -> None:
    told: list[Progress] = []

    answer = solve_question(_open_question(), time_limit_s=0.0, progress=told.append)

    cuts = [progress.cut_bytes for progress in told]
    bounds = [progress.lower_bound_bytes for progress in told]
    assert cuts == sorted(cuts, reverse=True)
    assert bounds == sorted(bounds)
    assert cuts[-1] == answer.objective_bytes
    assert all(0 <= progress.gap <= 1 for progress in told)


def test_an_interrupted_search_keeps_its_best_seating_and_claims_no_proof() -> None:
    question = _open_question()

    def interrupt(progress: Progress) -> None:
        raise KeyboardInterrupt

    answer = solve_question(question, progress=interrupt)

    assert answer.interrupted
    assert answer.proof is Proof.INCUMBENT
    assert answer.lower_bound_bytes < answer.objective_bytes
    assert cut_bytes(question, np.array(answer.home)) == answer.objective_bytes


def test_ctrl_c_prints_the_best_placement_with_its_gap_and_exits_130(
    planner: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(line: ProgressLine, progress: Progress) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ProgressLine, "__call__", interrupt)

    ran = planner("place", *UNEVEN, "--json")

    assert ran.code == 130
    assert "best placement so far" in ran.err
    document = json.loads(ran.out)
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator(schema).validate(document)
    assert document["cut"]["interrupted"]
    assert document["cut"]["proof"] == "time_limit"
    assert sorted(document["placement"]["rank_to_gpu"]) == list(range(256))


def test_an_interrupted_placement_says_so_where_it_says_that_it_is_not_proved(
    planner: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(line: ProgressLine, progress: Progress) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ProgressLine, "__call__", interrupt)

    ran = planner("place", *UNEVEN)

    assert ran.code == 130
    assert "(the search was interrupted)" in " ".join(ran.out.split())


def test_a_gap_that_rounding_leaves_is_none() -> None:
    progress = Progress(cut_bytes=7.89e12, lower_bound_bytes=7.89e12 * (1 - 1e-14), method="tiles")

    assert progress.gap == 0.0


@dataclass
class Clock:
    """What says how late it is, moved on by hand [s]."""

    now_s: float = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock that lines are told by."""
    found = Clock()
    monkeypatch.setattr("cli.progress_line.monotonic", found)
    return found


def terminal(monkeypatch: pytest.MonkeyPatch, *, live: bool) -> io.StringIO:
    told = io.StringIO()
    monkeypatch.setattr(told, "isatty", lambda: live)
    monkeypatch.setattr("sys.stderr", told)
    return told


SOME = Progress(cut_bytes=10e12, lower_bound_bytes=9e12, method="tiles")


def test_a_terminal_gets_one_line_that_is_written_over(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    told = terminal(monkeypatch, live=True)
    line = ProgressLine(20.0)
    clock.now_s += 5.0

    line(SOME)
    line.close()

    shown = told.getvalue()
    assert "10 TB cross, at least 9 TB must: gap 10 %; 5 of 20 s; Ctrl-C keeps it" in shown
    assert "\n" not in shown
    assert all(len(part) <= 79 for part in shown.split("\r"))


def test_a_gap_between_two_numbers_that_print_alike_is_said_without_the_second(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    told = terminal(monkeypatch, live=True)
    line = ProgressLine(20.0)
    clock.now_s += 5.0

    line(replace(SOME, cut_bytes=23.786e12, lower_bound_bytes=23.78e12))
    line.close()

    shown = told.getvalue()
    assert "23.8 TB cross, 0.0252 % of it perhaps for nothing; 5 of 20 s" in shown
    assert all(len(part) <= 79 for part in shown.split("\r"))


def test_a_line_goes_on_counting_while_nothing_better_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    told = terminal(monkeypatch, live=True)
    line = ProgressLine(20.0)

    line(SOME)  # within the first second: nothing is said
    sleep(3.2)
    line.close()

    assert re.search("gap 10 %; [23] of 20 s", told.getvalue())


def test_a_search_that_ends_within_a_second_says_nothing(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    told = terminal(monkeypatch, live=True)
    line = ProgressLine(20.0)
    clock.now_s += 0.9

    line(SOME)
    line.close()

    assert told.getvalue() == ""


def test_a_log_gets_a_line_only_now_and_then(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    told = terminal(monkeypatch, live=False)
    line = ProgressLine(60.0)

    for _ in range(30):
        clock.now_s += 1.0
        line(SOME)
    line.close()

    assert told.getvalue().count("\n") == 2  # 11 s and 22 s after the start


def test_a_stage_says_what_is_done_and_left_and_leaves_a_terminals_line_empty(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    told = terminal(monkeypatch, live=True)
    line = StageLine()
    line(Stage(what="reading"))
    clock.now_s += 10.0
    line(Stage(what="choosing", done=0, of=6, now="a"))
    clock.now_s += 20.0

    line(Stage(what="choosing", done=4, of=6, now="b: 7 layouts seated"))
    line.close()

    written = told.getvalue().split("\r")
    assert written[-3].rstrip() == (
        "choosing: 4 of 6, 30 s so far, about 10 s left; b: 7 layouts seated"
    )
    assert [written[-2].strip(), written[-1]] == ["", ""]
    assert max(map(len, written)) < 80


def test_a_terminals_line_goes_on_counting_while_nothing_is_told(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    told = terminal(monkeypatch, live=True)
    line = StageLine()
    clock.now_s += 40.0

    line(Stage(what="choosing"))
    clock.now_s += 1.0
    ends_s = monotonic() + 20.0
    while "41 s" not in told.getvalue() and monotonic() < ends_s:
        sleep(0.05)
    line.close()

    written = told.getvalue()
    assert "choosing: 40 s so far" in written
    assert "choosing: 41 s so far" in written


def test_a_log_is_told_of_a_stage_once_in_ten_seconds(
    monkeypatch: pytest.MonkeyPatch, clock: Clock
) -> None:
    told = terminal(monkeypatch, live=False)
    line = StageLine()

    for _ in range(15):
        line(Stage(what="choosing"))
        clock.now_s += 1.0
    line.close()

    assert told.getvalue() == "choosing: 11 s so far\n"
