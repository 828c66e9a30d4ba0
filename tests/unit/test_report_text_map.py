"""The map of the seats in a terminal: every GPU once, in 80 columns, with colour or without."""

from __future__ import annotations

import io
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from cli.planner_inputs import Asked, read_inputs
from cli.planner_plan import make_plan
from cli.report_text_map import SYMBOLS, map_lines, spark_line

if TYPE_CHECKING:
    from pathlib import Path

    from cli.planner_plan import Plan

PIPED = {"tp": 4, "cp": 1, "dp": 4, "pp": 4, "micro_batch": 1, "global_batch": 64}
UNPIPED = {"tp": 1, "cp": 1, "dp": 64, "pp": 1, "zero_stage": 3, "global_batch": 64}


@cache
def plan(supernode: int, layout: str = "piped", cluster: str | None = None) -> Plan:
    given = PIPED if layout == "piped" else UNPIPED
    return make_plan(
        read_inputs(
            Asked(cluster=cluster, supernode=supernode, gpus=64, model="llama-3.1-8b", layout=given,
                  ignore_memory=True)
        )
    )  # fmt: skip


def printed(of: Plan, width: int = 80, *, colour: bool = False) -> str:
    stream = io.StringIO()
    console = Console(file=stream, width=width, force_terminal=colour, no_color=not colour,
                      color_system="truecolor" if colour else None)  # fmt: skip
    for line in map_lines(of, width):
        console.print(line, no_wrap=True, crop=False)
    return stream.getvalue()


def test_every_block_of_gpus_stands_for_its_stage() -> None:
    text = printed(plan(16))

    together = int(re.findall(r"A character is (\d+) GPUs", text)[0])
    assert "pipeline stage" in text
    seen = dict.fromkeys("0123", 0)
    for first, last, cells in re.findall(r"sn(\d+)(?: to sn(\d+))? +([0-3]+)", text):
        times = int(last or first) - int(first) + 1
        for symbol in cells:
            seen[symbol] += times * together
    assert seen == dict.fromkeys("0123", 16)  # 4 stages of 16 GPUs each


def test_without_a_pipeline_a_character_is_a_replica_and_none_means_two_things() -> None:
    text = printed(plan(8, "unpiped"))  # 64 replicas, and 62 characters

    assert "A character is 2 GPUs, and says its replica:" in text
    assert "2 in a row share a character, so 1 is 2 and 3." in text
    cells = "".join(re.findall(r"sn\d+ (\w{4})\b", text))
    assert sorted(cells) == sorted(SYMBOLS[:32])


@pytest.mark.parametrize("supernode", [8, 16, 48, 64])
def test_no_line_is_wider_than_eighty_columns(supernode: int) -> None:
    for layout in ("piped", "unpiped"):
        assert max(map(len, printed(plan(supernode, layout)).splitlines())) <= 80


def test_colour_only_adds_to_what_is_there_without_it() -> None:
    plain, coloured = printed(plan(8)), printed(plan(8), colour=True)

    assert "\x1b[" not in plain
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


def test_what_leaves_the_supernodes_is_a_line_of_blocks() -> None:
    line = printed(plan(8)).splitlines()[-1]

    assert line.startswith("  to and from each supernode ")
    assert len(re.findall(r"[▁-█]", line)) == 8
    assert re.search(r"at most [\d.]+ [kMGT]?B$", line)
    assert "to and from" not in printed(plan(64))  # nothing leaves


def test_the_highest_block_is_the_most() -> None:
    assert spark_line([8.0, 1.0, 0.0]) == "█▁ "
    assert spark_line([0.0, 0.0]) == "  "
    assert spark_line([]) == ""


def test_where_a_character_must_hold_several_it_says_the_first() -> None:
    lines = map_lines(plan(64, "unpiped"), 40)  # 64 replicas of one GPU in 18 characters
    text = "\n".join(line.plain for line in lines)

    assert "A character is 4 GPUs, and says its first replica" in text
    cells = re.findall(r"sn\d+ (\w+)", text)[0]
    assert cells == SYMBOLS[:32:2]


def test_busy_supernodes_are_not_shown_as_free_ones(tmp_path: Path) -> None:
    # Of eight supernodes the job takes the first; the next is busy, and so is the sixth.
    free = tmp_path / "free.txt"
    free.write_text("sn[00-00]\nsn[02-04]\nsn[06-07]\n")
    layout = {"tp": 4, "cp": 1, "dp": 1, "pp": 2, "micro_batch": 1, "global_batch": 64}
    found = make_plan(
        read_inputs(
            Asked(cluster=None, supernode=8, gpus=64, model="llama-3.1-8b", layout=layout,
                  ignore_memory=True, free=free)
        )
    )  # fmt: skip

    text = printed(found)

    assert "· is free:" in text
    assert "  GPUs that are not in the free list are left out." in text.splitlines()
    label = re.search(r"(\d+) of (sn\d\d) to (sn\d\d)", text)
    assert label is not None
    idle = [domain.name for domain in found.placement.domains if not domain.ranks]
    assert label.groups() == (str(len(idle)), idle[0], idle[-1])
    assert len(idle) == 5
