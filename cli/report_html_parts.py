"""Pieces of HTML that the parts of a report share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cli.report_pictures import safe

_LONGEST_WORD = 40  # a longer one may break anywhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of the report.

    Args:
        anchor: its id, of our own making.
        title: what it is about.
        body: its HTML.
        plan: which plan it is about, where there are several.
    """

    anchor: str
    title: str
    body: str
    plan: str = ""

    @property
    def heading(self) -> str:
        """Its heading in the page."""
        return f"{self.plan}: {self.title[:1].lower()}{self.title[1:]}" if self.plan else self.title


@dataclass(frozen=True, slots=True)
class Num:
    """A number in a table: what is shown, and what it sorts by."""

    value: float
    text: str


def table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str | Num]]) -> str:
    """Return a table that can be sorted; numbers stand to the right."""
    if not rows:
        return f"<p>{safe(caption)}: none.</p>"
    right = {i for i, cell in enumerate(rows[0]) if isinstance(cell, Num)}
    head = "".join(
        f'<th scope="col"{_n(i in right)}>{safe(text)}</th>' for i, text in enumerate(heads)
    )
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return (
        f'<div class="scroll"><table class="sortable"><caption>{safe(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _n(numeric: bool) -> str:
    return ' class="n"' if numeric else ""


def _cell(cell: str | Num) -> str:
    if isinstance(cell, Num):
        return f'<td class="n" data-v="{cell.value!r}">{safe(cell.text)}</td>'
    endless = ' class="wrap"' if any(len(w) > _LONGEST_WORD for w in cell.split()) else ""
    return f"<td{endless}>{safe(cell)}</td>"
