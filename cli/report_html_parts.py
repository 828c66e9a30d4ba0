"""Pieces of HTML that the parts of a report share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cli.report_pictures import safe

_LONGEST_WORD = 40  # a longer one may break anywhere
_BREAKS, _BREAK = re.compile(r"(?<=[a-z0-9][._])(?=[a-z])"), "<wbr>"  # where a key may break
_MOST_COLUMNS = 3  # that a telephone shows side by side; more become a card for each row
_BROAD = 10  # that a tablet shows side by side, likewise


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
    """Return a table that can be sorted; numbers stand to the right.

    On narrow pages a row of many columns becomes a card with its heads beside its cells. The roles
    are written out, for a table that is laid out otherwise is none to some screen readers.
    """
    if not rows:
        return f"<p>{safe(caption)}: none.</p>"
    right = {i for i, cell in enumerate(rows[0]) if isinstance(cell, Num)}
    head = "".join(
        f'<th scope="col" role="columnheader"{_n(i in right)}>{safe(text)}</th>'
        for i, text in enumerate(heads)
    )
    body = "".join(f'<tr role="row">{"".join(map(_cell, row, heads))}</tr>' for row in rows)
    style = "sortable cards" if len(heads) > _MOST_COLUMNS else "sortable"
    style += " broad" if len(heads) > _BROAD else ""
    return (
        f'<div class="scroll"><table class="{style}" role="table">'
        f"<caption>{safe(caption)}</caption>"
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )


def filled_table(caption: str, heads: Sequence[str], rows: Sequence[Sequence[str | Num]]) -> str:
    """Return a table without the columns in which nothing stands."""
    kept = [i for i in range(len(heads)) if any(_text(row[i]) for row in rows)]
    return table(caption, [heads[i] for i in kept], [[row[i] for i in kept] for row in rows])


def _text(cell: str | Num) -> str:
    return cell.text if isinstance(cell, Num) else cell


def _n(numeric: bool) -> str:
    return ' class="n"' if numeric else ""


def _cell(cell: str | Num, head: str) -> str:
    text = _text(cell)
    classes = ["n"] if isinstance(cell, Num) else []
    if any(len(word) > _LONGEST_WORD for word in text.split()):
        classes.append("wrap")
    if not text:
        classes.append("none")
    style = f' class="{" ".join(classes)}"' if classes else ""
    sorts = f' data-v="{cell.value!r}"' if isinstance(cell, Num) else ""
    shown = _BREAKS.sub(_BREAK, safe(text))
    return f'<td role="cell" data-h="{safe(head)}"{style}{sorts}>{shown}</td>'
