"""Bars and stacked bars: on wide pages a line each, on narrow ones their words above them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from cli.report_pictures import (
    NARROW,
    WIDTH,
    Piece,
    legend,
    number,
    patterned,
    picture,
    twice,
    word,
)

_LABEL_WIDTH, _VALUE_WIDTH = 190, 270
_ROW, _NARROW_ROW, _WORDS_ROW = 26, 34, 20
_STACKED_LEFT, _STACKED_ROW, _CLOSE_ROW = 150.0, 40, 28
_FEW_ROWS = 6  # more stand closer together, so that a page of paper holds them
_LETTER = 7.0  # pixels of one letter, generously
_NARROW_LETTERS = 56  # that a line of a narrow picture holds


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar(Piece):
    """One bar: a piece alone.

    Args:
        group: heading above it, when it differs from the bar's before.
    """

    colour: str = "c0"
    group: str = ""


def bars(title: str, rows: Sequence[Bar]) -> str:
    """Return bars on one scale from 0."""
    return _on_one_scale(title, rows, max((row.value for row in rows), default=1.0) or 1.0)


def rival_bars(title: str, rows: Sequence[Bar]) -> str:
    """Return bars on one scale from 0, of which those far beyond the rest are broken and say so.

    One more than four times as long as the rest would leave nothing of the others to see.
    """
    return _on_one_scale(title, rows, _full(rows))


def _on_one_scale(title: str, rows: Sequence[Bar], full: float) -> str:
    told = f"{title}: " + "; ".join(f"{row.label} {row.text}" for row in rows[:12])
    return twice(_wide(told, rows, full), _narrow(told, rows, full))


def _full(rows: Sequence[Bar]) -> float:
    """Return where the scale of bars that may break ends."""
    values = sorted((row.value for row in rows), reverse=True)
    scale = values[0] if values else 1.0
    rest = next((value for value in values if value * 4 < scale), 0.0)
    kept = [value for value in values if value * 4 >= scale]
    broken = rest > 0 and len(kept) <= len(values) // 2
    return (rest * 1.25 if broken else scale) or 1.0


def _wide(told: str, rows: Sequence[Bar], full: float) -> str:
    room = WIDTH - _LABEL_WIDTH - _VALUE_WIDTH
    parts, axis, y, group = [], "", 4.0, ""
    for row in rows:
        if row.group and row.group != group:
            group = row.group
            parts.append(word(4, y + 16, group, style="strong"))
            y += _ROW
        length = _length(row, full, room)
        parts.append(word(_LABEL_WIDTH - 8, y + 15, row.label, anchor="end", most=32))
        parts.append(_bar(row, _LABEL_WIDTH, y + 3, length, 16))
        if row.value > full:
            parts.append(_gap(_LABEL_WIDTH + room * 0.9, y + 1, 20))
        parts.append(word(_LABEL_WIDTH + length + 8, y + 15, _note(row, full), most=40))
        axis += f"M{_LABEL_WIDTH} {number(y)}v{_ROW - 4}"
        y += _ROW
    parts.append(f'<path class="axis" d="{axis}"/>')
    return picture(told, y + 4, "".join(parts))


def _narrow(told: str, rows: Sequence[Bar], full: float) -> str:
    parts, y, group = [], 0.0, ""
    for row in rows:
        if row.group and row.group != group:
            group = row.group
            parts.append(word(0, y + 18, group, style="strong"))
            y += 22
        note = _note(row, full)
        parts.append(word(0, y + 13, row.label, most=max(_NARROW_LETTERS - len(note), 8)))
        parts.append(word(NARROW, y + 13, note, anchor="end"))
        parts.append(_bar(row, 0, y + 17, _length(row, full, NARROW), 11))
        if row.value > full:
            parts.append(_gap(NARROW * 0.9, y + 16, 14))
        y += _NARROW_ROW if row.value > 0 else _WORDS_ROW
    return picture(told, y + 2, "".join(parts), width=NARROW)


def _length(row: Bar, full: float, room: float) -> float:
    return max(room * min(row.value / full, 1), 1.5 if row.value > 0 else 0.0)


def _bar(row: Bar, x: float, y: float, length: float, height: float) -> str:
    return patterned(x, y, length, height, row, f"{row.label}: {row.text}")


def _note(row: Bar, full: float) -> str:
    return f"{row.text} (off the scale)" if row.value > full else row.text


def _gap(x: float, y: float, height: float) -> str:
    """Return the white zigzag of a broken bar."""
    half = number(height / 2)
    return (
        f'<path class="gap" d="M{number(x)} {number(y)}l-5 {half} 5 0-5 {half}h8l5-{half}-5 0 '
        f'5-{half}z"/>'
    )


def stacked(title: str, rows: Sequence[tuple[str, Sequence[Piece]]], full: float, mark: str) -> str:
    """Return stacked bars that share the scale from 0 to *full*, whose end is marked.

    Args:
        title: what is shown.
        rows: label and pieces of each bar.
        full: where the scale is marked.
        mark: what to write there.
    """
    longest = max([full, *(sum(piece.value for piece in pieces) for _, pieces in rows)]) or 1.0
    told = f"{title}: " + "; ".join(f"{p.label} {p.text}" for _, pieces in rows for p in pieces)
    wide, y = [], 22.0
    left, room = _STACKED_LEFT, WIDTH - _STACKED_LEFT - 20.0
    pitch = _STACKED_ROW if len(rows) <= _FEW_ROWS else _CLOSE_ROW
    for label, pieces in rows:
        wide.append(word(left - 8, y + pitch / 2 + 1, label, anchor="end", most=20))
        wide.append(_pieces(pieces, left, y, room / longest, pitch - 8))
        y += pitch
    wide.append(_end(left + room * full / longest, 16, y, mark))
    wide.append(f'<path class="axis" d="M{number(left)} 18V{number(y)}"/>')
    narrow, below = [], 18.0
    for label, pieces in rows:
        narrow.append(word(0, below + 14, label, most=_NARROW_LETTERS))
        narrow.append(_pieces(pieces, 0, below + 19, NARROW / longest, 22))
        below += 44
    narrow.append(_end(NARROW * full / longest, 16, below, mark))
    return twice(
        picture(told, y + 4, "".join(wide)),
        picture(told, below + 4, "".join(narrow), width=NARROW),
    ) + legend(_keys(rows))


def _pieces(pieces: Sequence[Piece], x: float, y: float, per_unit: float, height: float) -> str:
    """Return the pieces of one bar, each with its name where there is room for it."""
    parts = []
    for piece in pieces:
        length = per_unit * piece.value
        title = f"{piece.label}: {piece.text}"
        parts.append(patterned(x, y, length, height, piece, title))
        if length > _LETTER * len(piece.label) + 8 and not piece.pattern:
            parts.append(
                word(x + length / 2, y + height / 2 + 4, piece.label, anchor="middle",
                     style=f"on-{piece.colour}")
            )  # fmt: skip
        x += length
    return "".join(parts)


def _end(x: float, top: float, foot: float, mark: str) -> str:
    """Return the dashed line at the end of the scale, with what it stands for."""
    line = f'<path class="mark" d="M{number(x)} {number(top)}V{number(foot)}"/>'
    return line + word(x, top - 4, mark, anchor="end")


def _keys(rows: Sequence[tuple[str, Sequence[Piece]]]) -> list[Piece]:
    """Return each label once, with its value where only one bar has it."""
    keys: dict[str, Piece] = {}
    for _, pieces in rows:
        for piece in pieces:
            known = keys.get(piece.label)
            keys[piece.label] = piece if known is None else replace(piece, text="")
    return list(keys.values())
