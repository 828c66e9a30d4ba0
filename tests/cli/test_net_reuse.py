"""``planner net reuse`` as a user runs it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from tests.conftest import Ran
from tests.net_files import faults_of_a_file

Planner = Callable[..., Ran]


def test_times_of_a_file_give_its_fewest_buffers_and_what_is_overwritten(
    planner: Planner, tmp_path: Path
) -> None:
    """Written every 10 us and held for 25 us, three contents are alive at once."""
    file = tmp_path / "schedule.yaml"
    file.write_text(
        "contents:\n"
        "  - {name: a, write: 0 us, read_end: 25 us, buffer: x}\n"
        "  - {name: b, write: 10 us, read_end: 35 us, buffer: y}\n"
        "  - {name: c, write: 20 us, read_end: 45 us, buffer: x}\n"
        "  - {name: d, write: 30 us, read_end: 55 us}\n"
    )

    told = json.loads(planner("net", "reuse", "--schedule", str(file), "--json").out)

    assert told["least_buffers"] == 3
    assert told["seats"] == {"a": 0, "b": 1, "c": 2, "d": 0}
    (early,) = told["overwritten"]
    assert (early["buffer"], early["lost"], early["written"]) == ("x", "a", "c")
    assert early["early_s"] * 1e6 == 5
    assert told["safe"] is False


def test_a_write_that_waits_for_the_read_is_in_order_and_one_that_does_not_is_named(
    planner: Planner, tmp_path: Path
) -> None:
    file = tmp_path / "schedule.yaml"
    operations = (
        "operations:\n"
        "  - {name: w0, buffer: x, writes: first}\n"
        "  - {name: r0, buffer: x, reads: first, after: [w0]}\n"
        "  - {name: w1, buffer: x, writes: second, after: [AFTER]}\n"
    )

    file.write_text(operations.replace("AFTER", "r0"))
    waits = planner("net", "reuse", "--schedule", str(file))
    file.write_text(operations.replace("AFTER", "w0"))
    races = planner("net", "reuse", "--schedule", str(file))

    assert "verdict        safe" in waits.out
    assert "verdict        OVERWRITES" in races.out
    assert "nothing holds back w1 until r0 is over" in races.out
    assert "BROKEN  Every buffer is read for the last time" in races.out


def test_faults_of_a_schedule_come_with_their_lines(planner: Planner, tmp_path: Path) -> None:
    refused = faults_of_a_file(
        planner, tmp_path / "schedule.yaml", "reuse", "--schedule",
        "contents:\n"
        "  - {name: a, write: 9 us, read_end: 5 us}\n"
        "operations:\n"
        "  - {name: w0, buffer: x}\n",
    )  # fmt: skip

    assert "schedule.yaml:2:5: contents[0]: a: read_end=5e-06: expected write=9e-06" in refused
    assert "schedule.yaml:4:5: operations[0]: expected either writes or reads" in refused


def test_a_file_that_says_nothing_is_refused(planner: Planner, tmp_path: Path) -> None:
    refused = faults_of_a_file(
        planner, tmp_path / "schedule.yaml", "reuse", "--schedule", "contents: []\n"
    )

    assert "expected contents with times, or operations with their order" in refused
