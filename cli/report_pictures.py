"""Pictures as SVG text: bars, stacked bars and points, with their words for those who cannot see.

Colours are classes (``c0`` to ``c7``): one stylesheet serves light, dark and paper. All text goes
through ``safe``: a name from a file can never become markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

WIDTH = 960
_UNSEEN = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_LABEL_WIDTH, _VALUE_WIDTH = 190, 270
_ROW = 26


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar.

    Args:
        label: what it is.
        value: how long it is, at least 0.
        text: the value as people read it.
        colour: class of its colour.
        group: heading above it, when it differs from the bar's before.
    """

    label: str
    value: float
    text: str
    colour: str = "c0"
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One piece of a stacked bar.

    Args:
        label: what it is.
        value: how long it is, at least 0.
        text: the value as people read it.
        colour: class of its colour.
    """

    label: str
    value: float
    text: str
    colour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point of a plane, with the range of its x.

    Args:
        label: what it is.
        x: where it is.
        low: least x of its interval.
        high: most x of its interval.
        y: where it is.
        text: both values as people read them.
        best: on the front: no other is better in both.
        colour: class of its colour; left out, one of eight in turn.
    """

    label: str
    x: float
    low: float
    high: float
    y: float
    text: str
    best: bool
    colour: str = ""


def safe(text: object) -> str:
    r"""Return *text* for HTML and SVG: nothing in it is markup, nothing in it is unseen.

    >>> safe('<b onclick="x">\u202e')
    '&lt;b onclick=&quot;x&quot;&gt;\ufffd'
    """
    return html.escape(_UNSEEN.sub("\ufffd", str(text)), quote=True)


def number(value: float) -> str:
    """Return a coordinate with at most one decimal, the same on every machine.

    >>> number(3.0), number(2.26), number(-0.01)
    ('3', '2.3', '0')
    """
    text = f"{value:.1f}".removesuffix(".0")
    return "0" if text == "-0" else text


def picture(title: str, height: float, body: str, *, width: float = WIDTH) -> str:
    """Return an SVG with its name for screen readers, in a frame that scrolls on narrow pages."""
    return (
        f'<div class="frame"><svg viewBox="0 0 {number(width)} {number(height)}" role="img" '
        f'aria-label="{safe(title)}">{body}</svg></div>'
    )


def word(
    x: float, y: float, text: str, *, anchor: str = "start", style: str = "", most: int = 60
) -> str:
    """Return one line of text, cut at *most* characters."""
    shown = text if len(text) <= most else text[: most - 1] + "…"
    placed = "" if anchor == "start" else f' text-anchor="{anchor}"'
    classed = f' class="{style}"' if style else ""
    return f'<text x="{number(x)}" y="{number(y)}"{placed}{classed}>{safe(shown)}</text>'


def box(
    x: float, y: float, width: float, height: float, style: str, title: str = "", more: str = ""
) -> str:
    """Return one rectangle, with what it says when pointed at."""
    start = (
        f'<rect x="{number(x)}" y="{number(y)}" width="{number(max(width, 0))}" '
        f'height="{number(height)}" class="{style}"{more}'
    )
    return f"{start}><title>{safe(title)}</title></rect>" if title else f"{start}/>"


def bars(title: str, rows: Sequence[Bar], *, may_break: bool = False) -> str:
    """Return bars on one scale from 0.

    Where they may break, bars of rivals far beyond the rest are broken and say so: one more than
    four times as long would leave nothing of the others to see.
    """
    values = sorted((row.value for row in rows), reverse=True)
    scale = values[0] if values else 1.0
    rest = next((value for value in values if value * 4 < scale), 0.0)
    kept = [value for value in values if value * 4 >= scale]
    broken = may_break and rest > 0 and len(kept) <= len(values) // 2
    full = (rest * 1.25 if broken else scale) or 1.0
    room = WIDTH - _LABEL_WIDTH - _VALUE_WIDTH
    parts, axis, y, group = [], "", 4.0, ""
    for row in rows:
        if row.group and row.group != group:
            group = row.group
            parts.append(word(0, y + 16, group, style="strong"))
            y += _ROW
        beyond = row.value > full
        length = room * min(row.value / full, 1)
        parts.append(word(_LABEL_WIDTH - 8, y + 15, row.label, anchor="end", most=32))
        parts.append(
            box(_LABEL_WIDTH, y + 3, max(length, 1.5 if row.value > 0 else 0), 16, row.colour,
                f"{row.label}: {row.text}")
        )  # fmt: skip
        if beyond:
            at = _LABEL_WIDTH + room * 0.9
            parts.append(
                f'<path class="gap" d="M{number(at)} {number(y + 1)}'
                'l-5 10 5 0-5 10h8l5-10-5 0 5-10z"/>'
            )
        note = f"{row.text} (off the scale)" if beyond else row.text
        parts.append(word(_LABEL_WIDTH + length + 8, y + 15, note, most=40))
        axis += f"M{_LABEL_WIDTH} {number(y)}v{_ROW - 4}"
        y += _ROW
    parts.append(f'<path class="axis" d="{axis}"/>')
    told = "; ".join(f"{row.label} {row.text}" for row in rows[:12])
    return picture(f"{title}: {told}", y + 4, "".join(parts))


def stacked(title: str, rows: Sequence[tuple[str, Sequence[Piece]]], full: float, mark: str) -> str:
    """Return stacked bars that share the scale from 0 to *full*, whose end is marked.

    Args:
        title: what is shown.
        rows: label and pieces of each bar.
        full: where the scale is marked.
        mark: what to write there.
    """
    longest = max([full, *(sum(piece.value for piece in pieces) for _, pieces in rows)])
    left, room = 130.0, WIDTH - 130.0 - 20.0
    parts, y = [], 22.0
    for label, pieces in rows:
        parts.append(word(left - 8, y + 21, label, anchor="end", most=20))
        x = left
        for piece in pieces:
            length = room * piece.value / longest
            parts.append(
                box(x, y, length, 32, f"{piece.colour} edge", f"{piece.label}: {piece.text}")
            )
            if length > 7 * len(piece.label) + 8:
                parts.append(
                    word(
                        x + length / 2,
                        y + 20,
                        piece.label,
                        anchor="middle",
                        style=f"on-{piece.colour}",
                    )
                )
            x += length
        y += 40
    end = left + room * full / longest
    parts.append(f'<path class="mark" d="M{number(end)} 16V{number(y)}"/>')
    parts.append(word(end, 12, mark, anchor="end"))
    parts.append(f'<path class="axis" d="M{number(left)} 18V{number(y)}"/>')
    told = "; ".join(f"{p.label} {p.text}" for _, pieces in rows for p in pieces)
    body = "".join(parts)
    return picture(f"{title}: {told}", y + 4, body) + legend(_keys(rows))


def _keys(rows: Sequence[tuple[str, Sequence[Piece]]]) -> list[Piece]:
    """Return each label once, with its value where only one bar has it."""
    keys: dict[str, Piece] = {}
    for _, pieces in rows:
        for piece in pieces:
            known = keys.get(piece.label)
            keys[piece.label] = piece if known is None else replace(piece, text="")
    return list(keys.values())


def legend(pieces: Sequence[Piece]) -> str:
    """Return the key of a picture as a list in the page."""
    items = "".join(
        '<li><svg class="key" viewBox="0 0 12 12" aria-hidden="true">'
        f"{box(0, 0, 12, 12, p.colour + ' edge')}</svg> {safe(p.label)}"
        f"{f' <b>{safe(p.text)}</b>' if p.text else ''}</li>"
        for p in pieces
    )
    return f'<ul class="legend">{items}</ul>'


def plane(
    title: str, points: Sequence[Point], x_name: str, y_name: str,
    x_text: Callable[[float], str], y_text: Callable[[float], str],
) -> str:  # fmt: skip
    """Return points with their x intervals; those on the front are filled, and joined."""
    left, top, width, height = 110.0, 14.0, WIDTH - 250.0, 250.0
    x_most = max(point.high for point in points) * 1.05 or 1.0
    x_least = min(point.low for point in points) * 0.9
    x_least = x_least if x_least > x_most / 3 else 0.0  # far from 0, the axis starts near them
    y_most = max(point.y for point in points) * 1.1 or 1.0

    def at_x(x: float) -> float:
        return left + width * (x - x_least) / (x_most - x_least)

    def at_y(y: float) -> float:
        return top + height * (1 - y / y_most)

    parts = [
        f'<path class="axis" d="M{number(left)} {number(top)}v{number(height)}h{number(width)}"/>'
    ]
    for i in range(5):
        x, y = x_least + (x_most - x_least) * i / 4, y_most * i / 4
        parts.append(word(at_x(x), top + height + 16, x_text(x), anchor="middle", style="small"))
        parts.append(word(left - 6, at_y(y) + 4, y_text(y), anchor="end", style="small"))
    starts = f" (starts at {x_text(x_least)})" if x_least else ""
    parts.append(word(left + width / 2, top + height + 34, x_name + starts, anchor="middle",
                      most=100))  # fmt: skip
    parts.append(word(left + 6, top + 10, y_name))
    front = sorted((p for p in points if p.best), key=lambda p: (p.x, p.y))
    if len(front) > 1:
        steps = " ".join(f"{number(at_x(p.x))},{number(at_y(p.y))}" for p in front)
        parts.append(f'<polyline class="front" points="{steps}"/>')
    for i, p in enumerate(points):
        x, y = at_x(p.x), at_y(p.y)
        if p.high > p.low:
            ends = f"M{number(at_x(p.low))} {number(y)}H{number(at_x(p.high))}"
            parts.append(f'<path class="whisker" d="{ends}"/>')
        style = (p.colour or f"c{i % 8}") if p.best else "open"
        parts.append(
            f'<circle cx="{number(x)}" cy="{number(y)}" r="6" class="{style} edge"><title>'
            f"{safe(p.label)}: {safe(p.text)}</title></circle>"
        )
        parts.append(word(at_x(p.high) + 8, y + 4, p.label, most=22, style="small"))
    told = "; ".join(f"{p.label} {p.text}" for p in points[:12])
    return picture(f"{title}: {told}", top + height + 42, "".join(parts))
