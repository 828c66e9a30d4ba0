"""The report's parts stand in the order in which a board asks for them, and none is empty."""

from __future__ import annotations

import re
from pathlib import Path

from cli.report_html import report
from tests.report_plans import crossing_bytes, saved, small_plan

ASKED = [
    "Recommendation", "Cluster", "Who sits where", "What crosses", "Traffic between supernodes",
    "The step", "Memory of each stage", "Bill of materials, power and money",
    "Assumed numbers and premises", "Where this comes from",
]  # fmt: skip


def sections(page: str) -> dict[str, str]:
    """Return the parts of a page by their headings, in order."""
    found = re.findall(r"<section[^>]*><h2[^>]*>(.*?)</h2>(.*?)</section>", page, re.DOTALL)
    return dict(found)


def test_one_plan_is_told_in_the_order_of_the_questions(tmp_path: Path) -> None:
    found = sections(report([saved(tmp_path, small_plan())]))

    assert list(found) == ASKED
    for heading, body in found.items():
        assert re.sub(r"<[^>]+>", "", body).strip(), heading


def test_plans_side_by_side_come_before_each_of_them(tmp_path: Path) -> None:
    plans = [saved(tmp_path, small_plan(), name) for name in ("a.json", "b.json")]

    headings = list(sections(report(plans)))

    assert headings[:3] == ["Recommendation", "Plans side by side", "a: cluster"]
    assert headings[-3:] == ASKED[-3:]
    assert headings.index("b: cluster") == headings.index("a: memory of each stage") + 1


def test_a_plan_in_which_nothing_crosses_has_no_empty_heading(tmp_path: Path) -> None:
    document = small_plan()
    document["traffic"] = []

    page = report([saved(tmp_path, crossing_bytes(document))])

    assert "nothing leaves a supernode, which no seating can better" in page
    assert "<h3>By family</h3>" not in page
    assert "No groups talk to each other." in page
    assert "counted again it is not" not in page
    assert 'type="radio"' not in page
