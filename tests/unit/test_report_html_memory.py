"""Memory in the report: every stage, of many the extremes, and what decides that it fits."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cli.report_html_memory import memory_section, used_bytes


def memory(stages: int, **more: Any) -> dict[str, Any]:
    """Return stages that need 2 GB of weights each and 1 GB for each micro-batch in flight."""
    by_stage = [
        {"stage": i, "kind": "first" if i == 0 else "last" if i == stages - 1 else "middle",
         "parts": {"weights": 2e9, "activations": 1e9 * (stages - i)}}
        for i in range(stages)
    ]  # fmt: skip
    return {
        "worst_stage_bytes": 2e9 + 1e9 * stages, "capacity_bytes": 100e9, "margin_bytes": 5e9,
        "fits": True, "parts": by_stage[0]["parts"], "by_stage": by_stage, "stage": "first", **more,
    }  # fmt: skip


@pytest.mark.parametrize("stages", [1, 2, 3, 16, 17, 40, 100])
def test_at_most_16_bars_hold_every_stage_once_and_both_ends(stages: int) -> None:
    page = memory_section(memory(stages, capacity_bytes=200e9))

    labels = re.findall(r'data-v="(?:\d+)">(stages? [\d to]+)</td>', page)
    covered: list[int] = []
    for label in labels:
        numbers = [int(n) for n in re.findall(r"\d+", label)]
        covered += range(numbers[0], numbers[-1] + 1)
    assert covered == list(range(stages))
    assert len(labels) <= 16
    assert labels[0] == "stage 0"
    assert labels[-1] == f"stage {stages - 1}"
    assert ("share a bar" in page) == (stages > 16)


def test_a_bar_that_several_stages_share_shows_the_fullest() -> None:
    page = memory_section(memory(40))

    row = next(r for r in page.split("<tr")[1:] if "stages 1 to 3<" in r)
    assert "39 GB" in row  # stage 1 keeps 39 of 40 micro-batches
    assert "46 GB" in row  # and 2 GB of weights, 5 GB of margin
    assert "The emptiest, stage 39, needs 8 GB." in page


def test_what_is_told_is_what_decides_that_it_fits() -> None:
    close, over = memory(91), memory(94, fits=False)

    assert used_bytes(close) == 98e9
    page = memory_section(close)
    assert "needs 98 GB with its margin, of 100 GB; it fits, with 2 GB to spare" in page
    assert "It fits only just: 98 % of the memory" in page
    page = memory_section(over)
    assert "it does not fit: 1 GB too much" in page
    assert "only just" not in page


def test_a_plan_of_an_older_make_with_three_stages_says_which_they_are() -> None:
    told = memory(16)
    told["by_stage"] = [told["by_stage"][i] for i in (0, 1, 15)]

    page = memory_section(told)

    assert "the second keeps the most micro-batches" in page
    assert page.count(">stage 1<") == 3  # both pictures and the table
    assert ">stage 2<" not in page


def test_one_stage_alone_is_not_called_the_fullest() -> None:
    assert "A GPU needs 8 GB with its margin" in memory_section(memory(1))


def test_what_no_stage_holds_has_no_column() -> None:
    page = memory_section(memory(4))

    assert re.findall(r"<th [^>]*>([^<]*)</th>", page) == [
        "Stage", "Weights", "Activations", "All", "With margin",
    ]  # fmt: skip
