"""The README's pictures show what the commands beside them make."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.readme_pictures import (
    CLUSTER,
    REPORT,
    SEATS,
    chunks,
    lead_in,
    lead_of,
    make_report,
    tour_commands,
    with_lead,
)
from tests.conftest import Ran

AGAIN = "python -m tests.cli.readme_pictures makes it again"


def test_the_cluster_is_drawn_as_the_command_draws_it(planner: Callable[..., Ran]) -> None:
    drawn = planner("topology", "draw", "llama3-roce").out

    assert drawn == CLUSTER.read_text(encoding="utf-8"), AGAIN


def test_the_tour_ends_in_a_report_of_its_plans() -> None:
    *places, report = tour_commands()

    assert len(places) >= 2
    assert {command[0] for command in places} == {"place"}
    assert report[0] == "report"
    assert set(report[1:-2]) == {command[command.index("--out") + 1] for command in places}


@pytest.mark.parametrize("path", [REPORT, SEATS], ids=lambda path: path.name)
def test_a_picture_of_the_report_is_whole_and_says_what_it_shows(path: Path) -> None:
    raw = path.read_bytes()

    kinds = [kind for kind, _ in chunks(raw)]
    assert kinds[0] == b"IHDR"
    assert kinds[-1] == b"IEND"
    assert lead_in(raw).startswith("Take "), AGAIN
    assert len(raw) < 300_000


@pytest.mark.nightly
def test_the_picture_of_the_report_says_what_the_report_says(tmp_path: Path) -> None:
    page = make_report(tmp_path).read_text(encoding="utf-8")

    for path in (REPORT, SEATS):
        assert lead_in(path.read_bytes()) == lead_of(page), AGAIN


def test_a_text_is_read_back_from_a_picture() -> None:
    marked = with_lead(REPORT.read_bytes(), "Take this: 1 TB")

    assert [kind for kind, _ in chunks(marked)][-1] == b"IEND"
    assert "Take this: 1 TB" in {body.partition(b"\0")[2].decode("latin-1")
                                 for kind, body in chunks(marked) if kind == b"tEXt"}  # fmt: skip
