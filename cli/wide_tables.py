"""Tables too wide for the page: cut between columns, never inside a value."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import RenderableType
from rich.table import Column, Table
from rich.text import Text


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitted:
    """A column, and whether it must wrap for even alone it is too wide."""

    column: Column
    need: int
    wraps: bool


def tables_within(table: Table, width: int) -> list[Table]:
    """Return *table* as it is where *width* characters hold it, else as several, one below another.

    Before that its columns move together and headings break, a name also behind a hyphen. Each of
    several begins with the first column, so that a row can be told. Only a value that is too wide
    alone is wrapped, and a label that is keeps its indent.
    """
    columns = table.columns
    if table.box is None or len(columns) < 2 or any(one.ratio for one in columns):
        return [table]  # a grid, which wraps
    gap = _gap(table, table.padding)
    needs = [_need(one) for one in columns]
    between = len(columns) - 1
    width -= 2 * table.show_edge  # a character for each edge, drawn or blank
    if sum(map(_natural, columns)) + gap * between <= width:
        return [table]
    every = [_fitted(one, need, need) for one, need in zip(columns, needs, strict=True)]
    top, right, bottom, _ = table.padding
    whole = [max(need, _widest(one.cells)) for one, need in zip(columns, needs, strict=True)]
    for least in (whole, needs):  # labels wrap only where moving together is not enough
        for padding in (table.padding, (top, right, bottom, 0)):
            room = width - _gap(table, padding) * between
            if sum(least) <= room:
                return [_part(table, every, padding=padding, room=room)]
    first = _fitted(columns[0], needs[0], (width - gap) // 2)
    rest = width - first.need
    parts: list[list[_Fitted]] = [[]]
    used = 0
    for column, need in zip(columns[1:], needs[1:], strict=True):
        one = _fitted(column, need, rest - gap)
        if parts[-1] and used + gap + one.need > rest:
            parts.append([])
            used = 0
        parts[-1].append(one)
        used += gap + one.need
    return [
        _part(table, [first, *some], padding=table.padding, room=width - gap * len(some))
        for some in parts
    ]


def _fitted(column: Column, need: int, most: int) -> _Fitted:
    return _Fitted(column=column, need=min(need, most), wraps=not column.no_wrap or need > most)


def _gap(table: Table, padding: tuple[int, int, int, int]) -> int:
    """Return the characters between two columns: the padding of both and the line between them."""
    _, right, _, left = padding
    return (max(left, right) if table.collapse_padding else left + right) + 1


def _natural(column: Column) -> int:
    """Return the width in which no line of a column wraps."""
    lines = _lines(column.header, *column.cells)
    return max([column.width or column.min_width or 1, *map(cell_len, lines)])


def _widest(cells: Iterable[RenderableType]) -> int:
    """Return the characters of the longest line of *cells* [1]."""
    return max([1, *map(cell_len, _lines(*cells))])


def _need(column: Column) -> int:
    """Return the least width in which no value loses a character or is broken inside a word."""
    lines = _lines(*column.cells)
    pieces = lines if column.no_wrap else [piece for line in lines for piece in _pieces(line)]
    heading = [piece for line in _lines(column.header) for piece in _heading_pieces(line)]
    return max([column.width or column.min_width or 1, *map(cell_len, (*pieces, *heading))])


def _pieces(line: str) -> list[str]:
    """Return the words of a line that wraps, the first with what indents it."""
    first, *others = line.split() or [""]
    return [line[: len(line) - len(line.lstrip())] + first, *others]


def _heading_pieces(line: str) -> list[str]:
    """Return the words of a heading, parted behind their hyphens, the first with its indent.

    >>> _heading_pieces("  generic-sn384 *"), _heading_pieces("cut")
    (['  generic-', 'sn384', '*'], ['cut'])
    """
    return [
        part for word in _pieces(line) for part in re.findall(r" *[^- ]*-+|[^-]+", word) or [""]
    ]


def _broken(heading: RenderableType, width: int) -> RenderableType:
    """Return a heading in lines of *width* characters, names broken behind hyphens if they must.

    >>> print(_broken("generic-sn384", 8), _broken("best of 32", 8), _broken("all", 2))
    generic-
    sn384 best of
    32 all
    """
    if not isinstance(heading, str):
        return heading
    lines: list[str] = []
    for whole in heading.split("\n"):
        line = ""
        for piece in _heading_pieces(whole):
            joint = "" if not line or line.endswith("-") else " "
            if line and cell_len(f"{line}{joint}{piece}") > width:
                lines.append(line)
                line, joint = "", ""
            line += joint + piece
        lines.append(line)
    return "\n".join(lines)


def _hung(cell: RenderableType, width: int) -> RenderableType:
    """Return a label in lines of *width* characters, all indented as its first one is.

    >>> print(_hung("  one more NIC a GPU", 14), _hung("  leaf", 8))
      one more NIC
      a GPU   leaf
    """
    if not isinstance(cell, str) or cell_len(cell) <= width or not cell.startswith(" "):
        return cell
    indent = cell[: len(cell) - len(cell.lstrip())]
    lines = [indent]
    for word in cell.split():
        line = f"{lines[-1]}{'' if lines[-1] == indent else ' '}{word}"
        if cell_len(line) > width and lines[-1] != indent:
            lines.append(indent + word)
        else:
            lines[-1] = line
    return "\n".join(lines)


def _lines(*cells: RenderableType) -> list[str]:
    texts = [cell.plain if isinstance(cell, Text) else str(cell) for cell in cells]
    return [line for text in texts for line in text.split("\n")]


def _part(
    table: Table, chosen: Sequence[_Fitted], *, padding: tuple[int, int, int, int], room: int
) -> Table:
    """Return the chosen columns as a table that fills *room* at most."""
    part = Table(title=table.title, title_justify=table.title_justify, box=table.box,
                 padding=padding, collapse_padding=table.collapse_padding,
                 pad_edge=table.pad_edge, show_edge=table.show_edge,
                 show_header=table.show_header)  # fmt: skip
    widths = [one.need for one in chosen]
    for wanted in ([_widest(one.column.cells) for one in chosen],  # its heading may wrap
                   [_widest([one.column.header]) for one in chosen]):  # fmt: skip
        widths = _shared(widths, wanted, room)
    for one, width in zip(chosen, widths, strict=True):
        part.add_column(_broken(one.column.header, width), justify=one.column.justify,
                        no_wrap=not one.wraps, overflow="fold", width=width,
                        style=one.column.style)  # fmt: skip
    for row, (label, *cells) in zip(
        table.rows, zip(*(one.column.cells for one in chosen), strict=True), strict=True
    ):
        part.add_row(_hung(label, widths[0]), *cells, style=row.style, end_section=row.end_section)
    return part


def _shared(needs: Sequence[int], wanted: Sequence[int], room: int) -> list[int]:
    """Return the width of each column: what *room* leaves goes to those that want least more.

    So a number stays beside its unit while a sentence wraps.

    >>> _shared([4, 5, 9], [7, 20, 12], 25)
    [7, 6, 12]
    """
    widths = list(needs)
    left = room - sum(needs)
    for i in sorted(range(len(needs)), key=lambda i: wanted[i] - needs[i]):
        more = min(max(left, 0), max(wanted[i] - needs[i], 0))
        widths[i] += more
        left -= more
    return widths
