"""Points on a terminal: a scatter of plain characters, at most 80 columns, no colour needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log

from cli.report_pictures_plane import Axis

WIDTH, HEIGHT = 64, 14
_LABEL = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One point; the later drawn covers the earlier in its cell."""

    x: float
    y: float
    mark: str = "o"


def scatter(points: Sequence[Point], x: Axis, y: Axis) -> list[str]:
    """Return the lines of a plot; both axes are logarithmic where they span more than 10 times.

    >>> lines = scatter([Point(x=1, y=1), Point(x=2, y=4, mark="1")],
    ...                 Axis(name="x", text=str), Axis(name="y", text=str))
    >>> len(lines), max(map(len, lines)) <= 80
    (17, True)
    """
    across, up = _placed([p.x for p in points], WIDTH), _placed([p.y for p in points], HEIGHT)
    rows = [[" "] * WIDTH for _ in range(HEIGHT)]
    for point, column, row in zip(points, across, up, strict=True):
        rows[HEIGHT - 1 - row][column] = point.mark
    lowest, highest = min(p.y for p in points), max(p.y for p in points)
    labels = {0: y.text(highest), HEIGHT - 1: y.text(lowest)}
    lines = [f"{y.name:>{_LABEL}}"]
    lines += [
        f"{labels.get(i, ''):>{_LABEL}} |{''.join(row)}".rstrip() for i, row in enumerate(rows)
    ]
    lines.append(f"{'':>{_LABEL}} +{'-' * WIDTH}")
    left, right = x.text(min(p.x for p in points)), x.text(max(p.x for p in points))
    middle = WIDTH - len(left) - len(right)
    lines.append(f"{'':>{_LABEL}}  {left}{x.name:^{max(middle, 0)}}{right}")
    return lines


def _placed(values: Sequence[float], cells: int) -> list[int]:
    """Return the cell of each value, the least in the first and the most in the last."""
    low, high = min(values), max(values)
    if low == high:
        return [0] * len(values)
    if low > 0 and high / low > 10:
        values = [log(v) for v in values]
        low, high = log(low), log(high)
    return [round((v - low) / (high - low) * (cells - 1)) for v in values]
