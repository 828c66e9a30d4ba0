"""What one cluster lags behind another is told of the same steps wherever it is told."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from cli.planner_app import main


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, dict[str, Any]]:
    """Return the terminal's page, the board's page and the document of one comparison."""
    folder = tmp_path_factory.mktemp("basis")
    file, page, words = folder / "c.json", folder / "c.html", folder / "c.txt"
    asked = ["--supernode", "4,8", "--gpus", "32", "--model", "qwen3-30b-a3b"]
    with pytest.MonkeyPatch.context() as patch, words.open("w") as stream:
        patch.setenv("COLUMNS", "80")
        patch.setattr("sys.stdout", stream)
        assert main(["compare", *asked, "--out", str(file)]) == 0
        assert main(["report", str(file), "--out", str(page)]) == 0
    return words.read_text(), page.read_text(), json.loads(file.read_text())


def test_the_lag_and_the_price_that_makes_up_for_it_are_of_the_fastest_layouts(
    told: tuple[str, str, dict[str, Any]],
) -> None:
    page, board, document = told

    first_s, other_s = (one["fastest"]["step_s"] for one in document["ranked"])
    shown_first_s, shown_other_s = (one["step"]["total_s"] for one in document["ranked"])
    fewer, share = 100 * (1 - first_s / other_s), 100 * first_s / other_s
    assert abs(fewer - 100 * (1 - shown_first_s / shown_other_s)) > 1  # else nothing is tested
    assert f"  {fewer:.1f} %    no" in page
    assert f"generic-sn4 below {share:.1f} %." in page
    flips = board.partition("Where the winner flips by speed or price")[2].partition("</table>")[0]
    assert re.findall(r">([\d.]+) %<", flips) == [
        f"{fewer:.0f}", f"{100 * (other_s / first_s - 1):.0f}", f"{share:.1f}",
    ]  # fmt: skip
    assert f"trains {fewer:.0f} % fewer tokens a second" in board


def test_how_far_a_flip_holds_stands_beside_where_it_changes(
    told: tuple[str, str, dict[str, Any]],
) -> None:
    page, board, document = told

    flips = [one for one in document["flips"] if one["property"] == "seq"]
    assert flips
    for one in flips:
        held, value = f"{one['held_value']:,.0f} tokens", f"{one['value']:,.0f} tokens"
        assert re.search(rf"sequence length +{held} +{value} ", page)
        assert f">{held}</td><td>{value}</td>" in re.sub(r"<td [^>]*>", "<td>", board)
