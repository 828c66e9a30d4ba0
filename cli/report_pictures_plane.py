"""Points in a plane, with the range of their x and the front of the best of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10

from cli.report_pictures import NARROW, WIDTH, number, picture, safe, twice, word

_UP = 4  # values beside the y axis, about


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
        colour: class of its colour.
    """

    label: str
    x: float
    low: float
    high: float
    y: float
    text: str
    best: bool
    colour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One axis of a plane.

    Args:
        name: what it measures.
        text: a value as people read it.
    """

    name: str
    text: Callable[[float], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Frame:
    """Where a plane is drawn, and from and up to where its axes go."""

    left: float
    top: float
    width: float
    height: float
    x_least: float
    x_most: float
    y_most: float

    def at_x(self, x: float) -> float:
        return self.left + self.width * (x - self.x_least) / (self.x_most - self.x_least)

    def at_y(self, y: float) -> float:
        return self.top + self.height * (1 - y / self.y_most)


def plane(title: str, points: Sequence[Point], x: Axis, y: Axis) -> str:
    """Return points with their x intervals; those on the front are filled, and joined."""
    x_most = max(point.high for point in points) * 1.05 or 1.0
    x_least = min(point.low for point in points) * 0.9
    x_least = x_least if x_least > x_most / 3 else 0.0  # far from 0, the axis starts near them
    y_most = max(point.y for point in points) * 1.1 or 1.0
    scales = {"x_least": x_least, "x_most": x_most, "y_most": y_most}
    told = f"{title}: " + "; ".join(f"{p.label} {p.text}" for p in points[:12])
    wide = _Frame(left=110, top=26, width=WIDTH - 250, height=240, **scales)
    narrow = _Frame(left=62, top=26, width=NARROW - 72, height=220, **scales)
    return twice(
        picture(told, 318, _axes(wide, x, y, 4) + _front(wide, points) + _beside(wide, points)),
        picture(told, 298, _axes(narrow, x, y, 2) + _front(narrow, points)
                + _above(narrow, points), width=NARROW),
    )  # fmt: skip


def _axes(frame: _Frame, x: Axis, y: Axis, ticks: int) -> str:
    left, foot = frame.left, frame.top + frame.height
    corner = f"M{number(left)} {number(frame.top)}V{number(foot)}h{number(frame.width)}"
    parts = [f'<path class="axis" d="{corner}"/>']
    for at in round_values(frame.x_least, frame.x_most, ticks):
        parts.append(_tick(frame.at_x(at), foot, "v4"))
        parts.append(word(frame.at_x(at), foot + 17, x.text(at), anchor="middle", style="small"))
    for at in round_values(0.0, frame.y_most, _UP):
        parts.append(_tick(left, frame.at_y(at), "h-4"))
        parts.append(word(left - 7, frame.at_y(at) + 4, y.text(at), anchor="end", style="small"))
    middle = (left + frame.width + left) / 2
    parts.append(word(middle, foot + 34, x.name, anchor="middle", style="small", most=100))
    if frame.x_least:
        parts.append(word(middle, foot + 47, f"(starts at {x.text(frame.x_least)}, not at 0)",
                          anchor="middle", style="small"))  # fmt: skip
    return "".join([*parts, word(0, 12, y.name, style="small")])


def _tick(x: float, y: float, line: str) -> str:
    return f'<path class="axis" d="M{number(x)} {number(y)}{line}"/>'


def round_values(least: float, most: float, about: int) -> list[float]:
    """Return *about* so many round values in a range: 1, 2 or 5 of a power of ten apart.

    >>> round_values(0, 125, 4), round_values(38, 83.8, 4)
    ([0.0, 20.0, 40.0, 60.0, 80.0, 100.0, 120.0], [40.0, 50.0, 60.0, 70.0, 80.0])
    """
    rough = (most - least) / about
    power = 10.0 ** floor(log10(rough))
    step = power * min((1, 2, 5, 10), key=lambda digit: abs(log10(power * digit / rough)))
    first = ceil(least / step - 1e-9)
    return [k * step for k in range(first, floor(most / step + 1e-9) + 1)]


def _front(frame: _Frame, points: Sequence[Point]) -> str:
    """Return the line through the front, and each point with its range."""
    front = sorted((p for p in points if p.best), key=lambda p: (p.x, p.y))
    parts = []
    if len(front) > 1:
        steps = " ".join(f"{number(frame.at_x(p.x))},{number(frame.at_y(p.y))}" for p in front)
        parts.append(f'<polyline class="front" points="{steps}"/>')
    for p in points:
        x, y = frame.at_x(p.x), frame.at_y(p.y)
        if p.high > p.low:
            ends = f"M{number(frame.at_x(p.low))} {number(y)}H{number(frame.at_x(p.high))}"
            parts.append(f'<path class="whisker" d="{ends}"/>')
        style = p.colour if p.best else "open"
        parts.append(
            f'<circle cx="{number(x)}" cy="{number(y)}" r="6" class="{style} edge"><title>'
            f"{safe(p.label)}: {safe(p.text)}</title></circle>"
        )
    return "".join(parts)


def _beside(frame: _Frame, points: Sequence[Point]) -> str:
    """Return the points' names to the right of their ranges, none on another or on the axis."""
    parts, last, foot = [], -20.0, frame.top + frame.height
    for p in sorted((p for p in points if p.label), key=lambda p: frame.at_y(p.y)):
        line = max(min(frame.at_y(p.y) + 4, foot - 5), last + 13)
        last = line
        parts.append(word(frame.at_x(p.high) + 8, line, p.label, most=22, style="small halo"))
    return "".join(parts)


def _above(frame: _Frame, points: Sequence[Point]) -> str:
    """Return the points' names above them, where there is no room beside, none on another."""
    parts, last = [], -20.0
    for p in sorted((p for p in points if p.label), key=lambda p: frame.at_y(p.y)):
        line = max(frame.at_y(p.y) - 10, last + 13)
        last = line
        half = 2.8 * min(len(p.label), 30)
        x = min(max(frame.at_x(p.x), frame.left + half), NARROW - half)
        parts.append(word(x, line, p.label, anchor="middle", most=30, style="small halo"))
    return "".join(parts)
