"""Two pictures of a seating: who sits where, and what goes between the domains."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, sqrt
from typing import TYPE_CHECKING

import numpy as np

from cli.report_pictures import WIDTH, box, number, picture, safe, word

if TYPE_CHECKING:
    from numpy.typing import NDArray

STAGE_COLOURS = 10
HEAT_COLOURS = 7
LIGHT_COLOURS = 7  # of a lit family: grey is for groups inside one domain
_MOST_CELLS = 4096
_MOST_HEAT = 64
_CELLS = (15.0, 13.0, 11.0, 9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0)
_LEAST_SHRUNK = 0.7  # of the largest squares: so much smaller may they be for rows alike
_LETTER = 6.8  # pixels of a digit in a room's name
_BETWEEN = 14  # pixels from room to room
_TALLEST = 640  # pixels: a map is seen at once, and fits a page of paper
_FEW_HEAT = 10  # so few domains have room for their bytes in words


@dataclass(frozen=True, slots=True, kw_only=True)
class Light:
    """A family whose groups can be lit up.

    Args:
        letter: names its classes.
        group: group of each rank, array [ranks].
        crosses: whether a group is in more than one domain, array [groups].
    """

    letter: str
    group: NDArray[np.int64]
    crosses: NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A domain as it is drawn.

    Args:
        label: written above it.
        name: what it says when pointed at.
        capacity: GPUs it has [1].
        ranks: in the order of their GPUs.
        leaving: what leaves it, as a share of the most that leaves any [1].
        text: the same as people read it.
    """

    label: str
    name: str
    capacity: int
    ranks: Sequence[int]
    leaving: float
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Grid:
    cell: float
    columns: int
    rows: int
    per_row: int
    height: float

    @property
    def width(self) -> float:
        return self.columns * self.cell


@dataclass(frozen=True, slots=True, kw_only=True)
class Seats:
    """The map of domains, a square for each GPU, coloured by pipeline stage.

    Above 4,096 GPUs a square stands for several that sit side by side, and says how many.

    Args:
        title: what is shown.
        rooms: the domains.
        stage: pipeline stage of each rank, array [ranks].
        lights: families that can be lit up.
        told: what a rank is, in words.
        axes: sizes of the axes for the script, innermost first.
    """

    title: str
    rooms: Sequence[Room]
    stage: NDArray[np.int64]
    lights: Sequence[Light]
    told: Callable[[int], str]
    axes: str


def seats(shown: Seats) -> str:
    """Return the map as one picture, for a file of its own."""
    grid, shade = _grid_of(shown), _shade(shown.stage)
    parts = []
    for i, room in enumerate(shown.rooms):
        x = (i % grid.per_row) * (grid.width + _BETWEEN) + 2
        y = (i // grid.per_row) * grid.height + 14
        parts.append(_room(room, x, y, grid, shade, shown))
    rows = ceil(len(shown.rooms) / grid.per_row)
    return picture(shown.title, rows * grid.height + 6, "".join(parts))


def flowing_seats(shown: Seats) -> str:
    """Return the map as a picture for each domain: a page puts as many side by side as it can."""
    grid, shade = _grid_of(shown), _shade(shown.stage)
    width, height = number(grid.width + _BETWEEN), number(grid.height)
    parts = []
    for i, room in enumerate(shown.rooms):
        if i and i % grid.per_row == 0:
            parts.append('<i class="row"></i>')
        parts.append(
            f'<svg class="domain" aria-hidden="true" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}">{_room(room, 2, 14, grid, shade, shown)}</svg>'
        )
    return (
        f'<div class="cells" role="img" aria-label="{safe(shown.title)}" '
        f'data-axes="{shown.axes}">{"".join(parts)}</div>'
    )


def _together(stage: NDArray[np.int64]) -> int:
    """Return how many ranks a square stands for."""
    return max(1, ceil(stage.size / _MOST_CELLS))


def _grid_of(shown: Seats) -> _Grid:
    together = _together(shown.stage)
    widest = max(ceil(room.capacity / together) for room in shown.rooms)
    return _grid(widest, len(shown.rooms), max(len(room.label) for room in shown.rooms))


def _shade(stage: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the colour of each rank's stage, array [ranks]."""
    stages = int(stage.max()) + 1
    if stages > STAGE_COLOURS:
        return stage * STAGE_COLOURS // stages
    return stage * (STAGE_COLOURS - 1) // max(stages - 1, 1)


def _grid(cells: int, rooms: int, letters: int) -> _Grid:
    """Return the largest squares whose rooms fit the page, a little smaller for rows alike.

    Args:
        cells: squares of a room [1].
        rooms: as many [1].
        letters: of the longest name of a room [1].

    >>> [(one.per_row, one.cell) for one in (_grid(64, 16, 4), _grid(384, 3, 4), _grid(8, 128, 5))]
    [(8, 13.0), (3, 11.0), (16, 11.0)]
    >>> _grid(8, 13, 4).per_row, _grid(8, 17, 4).per_row, _grid(32, 128, 8).per_row
    (13, 9, 13)
    """
    columns = _columns(cells)
    fitting = [
        grid for cell in _CELLS if (grid := _of_cell(cell, columns, ceil(cells / columns), rooms))
    ] or [_rows_alike(_CELLS[-1], columns, ceil(cells / columns), rooms, 1)]
    largest = fitting[0]
    whole = [
        grid for grid in fitting
        if rooms % grid.per_row == 0 and grid.cell >= _LEAST_SHRUNK * largest.cell
        and grid.width + _BETWEEN >= _LETTER * letters
    ]  # fmt: skip
    return whole[0] if whole else largest


def _of_cell(cell: float, columns: int, rows: int, rooms: int) -> _Grid | None:
    """Return the map with squares of *cell*, None where it is too large for a page."""
    widest = int((WIDTH - 4) // (columns * cell + _BETWEEN))
    if widest < 1:
        return None
    grid = _rows_alike(cell, columns, rows, rooms, widest)
    return grid if ceil(rooms / grid.per_row) * grid.height <= _TALLEST else None


def _rows_alike(cell: float, columns: int, rows: int, rooms: int, widest: int) -> _Grid:
    """Return the map whose rows hold as many rooms each as the fewest rows allow."""
    per_row = ceil(rooms / ceil(rooms / widest))
    return _Grid(cell=cell, columns=columns, rows=rows, per_row=per_row, height=rows * cell + 30)


def _columns(cells: int) -> int:
    """Return how wide a room is: its squares fill whole rows where they can.

    >>> [_columns(cells) for cells in (1, 8, 64, 72, 384, 97)]
    [1, 4, 8, 9, 24, 13]
    """
    side = sqrt(cells)
    whole = [c for c in range(ceil(side), int(side * 2) + 1) if cells % c == 0]
    return whole[0] if whole else ceil(side * 1.25)


def _room(
    room: Room, x: float, y: float, grid: _Grid, shade: NDArray[np.int64], shown: Seats
) -> str:
    together = _together(shown.stage)
    most = max(4, int((grid.width + _BETWEEN - 4) / _LETTER))
    parts = [
        word(x, y - 3, room.label, style="small", most=most),
        box(
            x - 1,
            y - 1,
            grid.width + 2,
            grid.rows * grid.cell + 2,
            "room",
            f"{room.name}: {room.text}",
        ),
        box(x, y + grid.rows * grid.cell + 3, grid.width * room.leaving, 4, "leaving"),
    ]
    for k in range(ceil(room.capacity / together)):
        ranks = room.ranks[k * together : (k + 1) * together]
        place = (x + k % grid.columns * grid.cell, y + k // grid.columns * grid.cell)
        side = grid.cell - 1
        if not ranks:
            parts.append(box(*place, side, side, "k free", "no rank sits here"))
            continue
        rank = ranks[0]
        shades = [f"s{int(shade[rank])}"]
        for light in shown.lights:
            group = light.group[ranks]
            crossing = group[light.crosses[group]]
            shades.append(
                f"{light.letter}{int(crossing[0]) % LIGHT_COLOURS if crossing.size else 'i'}"
            )
        told = shown.told(rank)
        text = told if together == 1 else f"{len(ranks)} ranks from {told}"
        more = f' data-r="{rank}"' if together == 1 else ""
        parts.append(box(*place, side, side, f"k {' '.join(shades)}", text, more))
    return "".join(parts)


def gathered(
    between: NDArray[np.float64], names: Sequence[str]
) -> tuple[NDArray[np.float64], list[str]]:
    """Return the traffic of at most 64 runs of neighbouring domains, and their names."""
    count = len(names)
    if count <= _MOST_HEAT:
        return between, list(names)
    each = ceil(count / _MOST_HEAT)
    starts = range(0, count, each)
    sums = np.add.reduceat(np.add.reduceat(between, list(starts), axis=0), list(starts), axis=1)
    runs = [f"{names[s]}–{names[min(s + each, count) - 1]}" for s in starts]
    return sums, runs


def heat(
    title: str, between: NDArray[np.float64], names: Sequence[str], text: Callable[[float], str]
) -> str:
    """Return the heat map of *between*, darker for more, and its key."""
    values, labels = gathered(between, names)
    count, most = len(labels), float(values.max())
    written = count <= _FEW_HEAT
    cell = 62.0 if written else min(26.0, 620.0 / count)
    left, top = 120.0, 20.0
    steps = (
        np.ceil(values / most * HEAT_COLOURS).astype(int)
        if most > 0
        else np.zeros(values.shape, int)
    )
    parts = [box(left, top, cell * count, cell * count, "room")]
    rows: Mapping[int, str] = dict(enumerate(labels))
    every = max(1, ceil(12 / cell))
    for i, label in rows.items():
        if i % every == 0:
            parts.append(
                word(
                    left - 6,
                    top + i * cell + cell / 2 + 4,
                    label,
                    anchor="end",
                    style="small",
                    most=20,
                )
            )
        for j in range(count):
            if steps[i, j]:
                side = max(cell - 0.5, 1)
                shown = float(values[i, j]) / (2 if i == j else 1)  # both halves of a run
                inside = " (between the domains of this run)" if i == j else ""
                parts.append(
                    box(left + j * cell, top + i * cell, side, side, f"h{steps[i, j]}",
                        f"{label} and {labels[j]}: {text(shown)}{inside}")
                )  # fmt: skip
                if written:
                    parts.append(word(left + (j + 0.5) * cell, top + (i + 0.5) * cell + 4,
                                      text(shown), anchor="middle",
                                      style=f"on-h{steps[i, j]}"))  # fmt: skip
    parts.append(word(left, top - 7, labels[0], style="small", most=24))
    parts.append(
        word(left + cell * count, top - 7, labels[-1], anchor="end", style="small", most=24)
    )
    x, y = left + cell * count + 30, top + 12
    if x + 150 <= WIDTH and most > 0:
        parts.append(word(x, y, "Bytes of one step", style="strong"))
        parts.append(box(x, y + 10, 16, 16, "room") + word(x + 24, y + 23, "none"))
        for step in range(1, HEAT_COLOURS + 1):
            line = y + 10 + step * 20
            parts.append(box(x, line, 16, 16, f"h{step}"))
            parts.append(word(x + 24, line + 13, f"up to {text(most * step / HEAT_COLOURS)}"))
    told = f"{title}, {count} by {count}; the most between two is {text(most)}"
    return picture(told, max(top + cell * count + 6, 200 if most else 0), "".join(parts))


def key_of_stages(stages: int) -> str:
    """Return the colour scale of the pipeline stages as a small picture."""
    shown = min(stages, STAGE_COLOURS)
    shades = [i * (STAGE_COLOURS - 1) // max(shown - 1, 1) for i in range(shown)]
    parts = [word(0, 14, "Stage 0")]
    parts += [box(56 + i * 24, 2, 24, 15, f"s{shade}") for i, shade in enumerate(shades)]
    parts.append(word(62 + shown * 24, 14, f"Stage {stages - 1}"))
    return f'<svg viewBox="0 0 400 20" class="scale" aria-hidden="true">{"".join(parts)}</svg>'
