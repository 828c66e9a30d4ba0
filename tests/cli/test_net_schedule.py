"""``planner net schedule`` as a user runs it."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Ran

Planner = Callable[..., Ran]
MIB = 2**20

CROSSES_MIB = {
    # 192 MiB over 8+8: k edges of a ring carry 2 (n-1)/n V each, a tree V up and V down
    "contiguous_ring": 2 * 2 * 15 / 16 * 192,
    "interleaved_ring": 16 * 2 * 15 / 16 * 192,
    "all_rail_ring": 2 * 2 * 15 / 16 * 192,
    "hierarchical": 2 * 192,
    "halving_doubling": 2 * 192,
    "direct": 2 * 16 * 8 / 16 * 192,
    "double_tree": 2 * 192,
    "one_shot": 16 * 8 * 192,
    "switch_tree": 2 * 192,
    "network_reduction": 2 * 192,
}


def test_all_algorithms_of_an_all_reduce_are_proved_and_cross_as_their_forms_say(
    planner: Planner,
) -> None:
    told = json.loads(planner("net", "schedule", "--json").out)["schedules"]

    assert {row["algorithm"]: row["crossing_bytes"] / MIB for row in told} == pytest.approx(
        CROSSES_MIB
    )
    assert all(row["crossing_bytes"] == pytest.approx(row["closed_form_bytes"]) for row in told)
    assert not any(row["faults"] for row in told)


def test_fewer_slots_than_news_has_hops_are_told_as_a_race(planner: Planner) -> None:
    ring = ("net", "schedule", "--algorithm", "contiguous_ring", "--members", "4,4")

    few, enough = planner(*ring, "--slots", "6").out, planner(*ring, "--slots", "7").out

    assert "RACE" in few
    assert "step 6 of 0 to 1 may land before 1 has" in few
    assert "BROKEN  No message is overwritten" in few
    assert "RACE" not in enough
    assert "holds   No message is overwritten" in enough


def test_moves_are_written_one_a_line(planner: Planner, tmp_path: Path) -> None:
    file = tmp_path / "moves.csv"

    ran = planner(
        "net", "schedule", "--collective", "chain", "--algorithm", "send", "--members", "2,1",
        "--moves", str(file),
    )  # fmt: skip

    assert ran.err == f"wrote {file}\n"
    rows = list(csv.DictReader(file.read_text().splitlines()))
    assert [(row["source"], row["target"], row["units"]) for row in rows] == [
        ("0", "1", "0"),
        ("1", "2", "1"),
    ]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--members", "8,x"), "--members: 'x': expected a whole number from 1 to 128"),
        (("--members", "100,100"), "200 ranks: expected at most 128"),
        (("--algorithm", "none"), "--algorithm none: all_reduce has contiguous_ring"),
        (("--moves", "m.csv"), "--moves: needs an --algorithm"),
        (("--slots", "0"), "--slots: '0': expected a whole number from 1"),
    ],
)
def test_what_cannot_be_scheduled_is_refused(
    planner: Planner, arguments: tuple[str, ...], says: str
) -> None:
    ran = planner("net", "schedule", *arguments)

    assert ran.code == 2
    assert says in ran.err
