"""``planner compare`` of several models: a verdict for all of them, then each one's page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rich.text import Text

from cli.compare_page import print_comparison
from cli.joint_table import joint_rows
from cli.joint_verdict import joint_document, joint_of, joint_sentences, why_none
from cli.page_tables import simple_table
from cli.planner_output import document

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from cli.compare_report import Comparison
    from cli.joint_verdict import Joint


def models_document(documents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the document of several models: each one's comparison, and the verdict for all."""
    asked = {
        "models": [one["inputs"]["clusters"][0]["model"] for one in documents],
        "comparisons_sha256": [one["inputs"]["sha256"] for one in documents],
    }
    body = {"comparisons": documents, "joint": joint_document(joint_of(documents))}
    return document("compare-models", asked, body)


def print_models(
    console: Console, each: Sequence[Comparison], documents: Sequence[Mapping[str, Any]]
) -> None:
    """Print the page of a comparison, of several models after a verdict for all of them."""
    if len(each) > 1:
        joint = joint_of(documents)
        currency = each[0].prices.currency if each[0].prices else ""
        for line in joint_sentences(joint, currency) if joint else [why_none(documents)]:
            console.print(Text(line, style="bold green"))
        if joint is not None:
            console.print()
            console.print(_joint_table(joint, documents))
    for found, told in zip(each, documents, strict=True):
        if len(each) > 1:
            console.print()
            console.rule(Text(found.first.candidate.model.name, style="bold"))
        print_comparison(console, found, told["inputs"]["sha256"])


def _joint_table(joint: Joint, documents: Sequence[Mapping[str, Any]]) -> Table:
    table = simple_table("  with the layouts shown", *(one.cluster for one in joint.order))
    for row in joint_rows(joint, documents):
        table.add_row(f"  {row.name}", *(cell.text for cell in row.cells))
    return table
