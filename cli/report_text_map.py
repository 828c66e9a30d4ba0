"""The map of a seating for a terminal: a character for each block of GPUs, told apart by colour.

Without colour nothing is lost: the character itself is the pipeline stage.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from math import gcd
from typing import TYPE_CHECKING

import numpy as np
from rich.text import Text

from cli.report_html_traffic import bytes_between
from planner.units import format_bytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from cli.planner_plan import Plan
    from planner.layout import Layout
    from planner.place.answer import SeatedDomain

SYMBOLS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
FREE = "·"
_SPARKS = "▁▂▃▄▅▆▇█"
_WORDS = {
    "pp": "pipeline stage",
    "dp": "replica",
    "cp": "part of the sequence",
    "tp": "tensor part",
}
# Okabe and Ito's eight, told apart with every common colour blindness; dark ones carry white.
_COLOURS = (
    "white on #0072b2", "black on #e69f00", "black on #009e73", "black on #cc79a7",
    "black on #56b4e9", "white on #d55e00", "black on #f0e442", "black on #999999",
)  # fmt: skip
_NUMBER = re.compile(r"[0-9]+$")
_MOST_LINES = 12
_MOST_SPARKS = 32
_MOST_DOMAINS = 512  # beyond it the traffic between all pairs takes longer than the plan


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    """Neighbouring domains that look alike.

    Args:
        label: the first and the last name.
        cells: the first value of each block of GPUs, -1 where all of it is free.
    """

    label: str
    cells: tuple[int, ...]


def map_lines(plan: Plan, width: int) -> list[Text]:
    """Return the map of a plan's seats and what leaves each domain.

    Args:
        plan: a seated layout.
        width: columns of the terminal [1].
    """
    digit = _digit(plan.inputs.layout)
    value = coordinate(plan.inputs.layout, digit)
    share = -(-(int(value.max()) + 1) // len(SYMBOLS))  # values that one character stands for
    value //= share
    placement = plan.placement
    seats = [_values(domain, placement.rank_to_gpu, value) for domain in placement.domains]
    together = _together(seats, (width - 4) // 2)
    names = [domain.name for domain in placement.domains]
    cut_down = "free" in plan.inputs.fabric.assumed
    entries = _entries(names, seats, together, _first_to_last_of if cut_down else _first_to_last)
    block = "GPU" if together == 1 else f"{together} GPUs"
    which = "its" if _one_value_each(seats, together) else "its first"
    told = f"  A character is {'a ' if together == 1 else ''}{block}, and says {which} "
    told += _WORDS[digit]
    if any(-1 in entry.cells for entry in entries):
        told += f"; {FREE} is free"
    lines = [Text(f"{told}:")]
    if share > 1:
        run = f"{share} to {2 * share - 1}" if share > 2 else f"{share} and {share + 1}"
        lines.append(Text(f"  {share} in a row share a character, so 1 is {run}."))
    lines += _laid_out(entries, width)
    if cut_down:
        lines.append(Text("  GPUs that are not in the free list are left out."))
    return [*lines, *_leaving(plan)]


def coordinate(layout: Layout, digit: str) -> NDArray[np.int64]:
    """Return the index of every rank along a dense degree, array [ranks]."""
    ranks = np.arange(layout.gpus)
    value, reach = np.zeros(layout.gpus, dtype=np.int64), 1
    for axis in layout.axes:
        if axis.dense == digit:
            value += ranks // axis.stride % axis.size * reach
            reach *= axis.size
    return value


def spark_line(values: Sequence[float]) -> str:
    """Return *values* as a line of blocks, from nothing to the most.

    >>> spark_line([0, 1, 4, 8])
    ' ▁▄█'
    """
    most = max(values, default=0.0)
    if most <= 0:
        return " " * len(values)
    steps = len(_SPARKS)
    return "".join(" " if v <= 0 else _SPARKS[min(steps, -int(-v * steps // most)) - 1]
                   for v in values)  # fmt: skip


def _digit(layout: Layout) -> str:
    return next((d for d in ("pp", "dp", "cp") if getattr(layout, d) > 1), "tp")


def _values(
    domain: SeatedDomain, rank_to_gpu: Sequence[int], value: NDArray[np.int64]
) -> list[int]:
    ranks = sorted(domain.ranks, key=rank_to_gpu.__getitem__)
    return [int(value[rank]) for rank in ranks] + [-1] * (domain.capacity - len(ranks))


def _together(seats: Sequence[Sequence[int]], most: int) -> int:
    """Return how many GPUs one character stands for: whole runs of one value where they fit."""
    run = 0
    for values in seats:
        length = 0
        for here, after in zip(values, [*values[1:], None], strict=True):
            length += 1
            if here != after:
                run, length = gcd(run, length), 0
    widest = max(len(values) for values in seats)
    run = max(run, 1)
    return run * max(1, -(-widest // run // most))


def _entries(
    names: Sequence[str], seats: Sequence[Sequence[int]], together: int,
    label: Callable[[Sequence[str]], str],
) -> list[_Entry]:  # fmt: skip
    """Return the domains, those that look like their neighbour taken together under one label."""
    groups: list[tuple[list[str], tuple[int, ...]]] = []
    for name, values in zip(names, seats, strict=True):
        cells = tuple(
            _cell(values[start : start + together]) for start in range(0, len(values), together)
        )
        if groups and groups[-1][1] == cells:
            groups[-1][0].append(name)
        else:
            groups.append(([name], cells))
    return [_Entry(label=label(alike), cells=cells) for alike, cells in groups]


def _first_to_last(names: Sequence[str]) -> str:
    """Return the first and the last name."""
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"


def _first_to_last_of(names: Sequence[str]) -> str:
    """Return the first and the last name, and how many there are where some between are missing.

    Of a cluster that was cut down to its free GPUs.

    >>> _first_to_last_of(["sn1", "sn2", "sn3"]), _first_to_last_of(["sn1", "sn4"])
    ('sn1 to sn3', '2 of sn1 to sn4')
    """
    first, last = names[0], names[-1]
    low, high = _NUMBER.search(first), _NUMBER.search(last)
    known = (
        low is not None
        and high is not None
        and first[: low.start()] == last[: high.start()]
        and int(high[0]) - int(low[0]) + 1 == len(names)
    )
    alone = known or len(names) == 1
    return _first_to_last(names) if alone else f"{len(names)} of {first} to {last}"


def _cell(values: Sequence[int]) -> int:
    return next((value for value in values if value >= 0), -1)


def _one_value_each(seats: Sequence[Sequence[int]], together: int) -> bool:
    """Return whether no block of GPUs holds two values."""
    return all(
        len(set(values[start : start + together]) - {-1}) <= 1
        for values in seats
        for start in range(0, len(values), together)
    )


def _laid_out(entries: Sequence[_Entry], width: int) -> list[Text]:
    """Return the entries side by side, column below column, some of many."""
    cells = max(len(entry.cells) for entry in entries)
    label = min(max(len(entry.label) for entry in entries), width - cells - 4)
    each = label + 1 + cells + 3
    columns = max(1, (width - 2 + 2) // each)
    shown = entries[: columns * _MOST_LINES]
    rows = -(-len(shown) // columns)
    lines = []
    for row in range(rows):
        line = Text("  ")
        for entry in shown[row::rows]:
            line.append(f"{_shortened(entry.label, label):<{label}} ")
            for cell in entry.cells:
                line.append(*_drawn(cell))
            line.append(" " * (cells - len(entry.cells) + 3))
        line.rstrip()
        lines.append(line)
    if len(entries) > len(shown):
        lines.append(Text(f"  … and {len(entries) - len(shown):,} more that look different"))
    return lines


def _shortened(text: str, most: int) -> str:
    """Return *text* in at most *most* characters, its start and its end.

    >>> _shortened("rack-a-node-01 to rack-b-node-99", 16)
    'rack-a-…-node-99'
    """
    if len(text) <= most:
        return text
    tail = most // 2
    return f"{text[: most - tail - 1]}…{text[-tail:]}"


def _drawn(cell: int) -> tuple[str, str]:
    if cell < 0:
        return FREE, "dim"
    return SYMBOLS[cell], _COLOURS[cell % len(_COLOURS)]


def _leaving(plan: Plan) -> list[Text]:
    """Return what leaves the domains as one line of blocks; nothing where nothing does."""
    placement, layout = plan.placement, plan.inputs.layout
    count = len(placement.domains)
    if placement.objective_bytes <= 0 or not 1 < count <= _MOST_DOMAINS:
        return []
    home = plan.inputs.fabric.domain_index(placement.tier)[np.asarray(placement.rank_to_gpu)]
    total = np.zeros((count, count))
    for family in plan.families:
        total += bytes_between(asdict(family), home[family.members(layout)], count)
    leaving = total.sum(axis=1)
    each = -(-count // _MOST_SPARKS)
    most = [float(leaving[start : start + each].max()) for start in range(0, count, each)]
    line = Text(f"  to and from each {placement.tier} ")
    line.append(spark_line(most), style="#d55e00")
    line.append(f" at most {format_bytes(float(leaving.max()))}")
    return [line]
