"""What ``planner net`` shows: figures one below the other, a sentence, and the premises."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import NamedTuple

from planner.network.premises import Premise

WIDTH = 80
_MARKS = {True: "holds", False: "BROKEN", None: "assumed"}


class Row(NamedTuple):
    """One figure: what it is, its value, and a remark."""

    label: str
    value: str
    remark: str = ""


def net_text(
    title: str,
    case: str,
    rows: Sequence[Row],
    says: Sequence[str],
    premises: Sequence[Premise],
    source: str,
) -> str:
    """Return the text of one model, at most 80 columns wide."""
    label = max((len(row.label) for row in rows), default=0)
    value = max((len(row.value) for row in rows if row.remark), default=0)
    lines = [title, "", _wrapped(case, "  "), ""]
    for row in rows:
        start = f"  {row.label:<{label}}  {row.value:<{value}}"
        if not row.remark:
            lines.append(start.rstrip())
            continue
        indent = " " * (len(start) + 2)
        lines.append(_wrapped(row.remark, indent, first=start + "  "))
    lines.append("")
    lines += [_wrapped(sentence, "  ") for sentence in says]
    lines += ["", "Premises", premises_text(premises), "",
              _wrapped(source, " " * len("Source: "), first="Source: ")]  # fmt: skip
    return "\n".join(lines) + "\n"


def premises_text(premises: Sequence[Premise]) -> str:
    """Return each premise, whether it holds, and what becomes of the answer where it does not."""
    lines = []
    for premise in premises:
        mark = f"  {_MARKS[premise.holds]:<8}"
        lines.append(_wrapped(f"{premise.states}.", " " * len(mark), first=mark))
        if premise.holds is not True:
            lines.append(_wrapped(f"Otherwise: {premise.otherwise}.", " " * len(mark)))
    return "\n".join(lines)


def with_table(text: str, table: str) -> str:
    """Return *text* with *table* behind its first paragraph."""
    title, case, rest = text.split("\n\n", 2)
    return "\n\n".join([title, case, table, rest.lstrip("\n")])


def table_text(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a plain table: first column to the left, the others to the right."""
    cells = [list(head), *[list(row) for row in rows]]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return "\n".join(
        ("  " + "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )).rstrip()
        for row in cells
    )  # fmt: skip


def _wrapped(text: str, indent: str, *, first: str | None = None) -> str:
    return fill(
        text,
        WIDTH,
        initial_indent=indent if first is None else first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
