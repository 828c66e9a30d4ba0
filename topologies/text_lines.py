"""A text's lines one at a time: a file of millions is refused before they all stand in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator

from planner.errors import SpecError

_MOST_LINES = 2**21
"""A line for each of a million ranks, and as many comments."""


def numbered_lines(text: str, name: str) -> Iterator[tuple[int, str]]:
    r"""Yield each line of *text* without its end, and its number as editors count, from 1.

    Raises:
        SpecError: *text*, which faults call *name*, has more lines than any list of ranks.

    >>> list(numbered_lines("a\r\nb\n", "f"))
    [(1, 'a'), (2, 'b')]
    """
    if (lines := text.count("\n") + text.count("\r")) > _MOST_LINES:
        raise SpecError(f"{name}: has {lines:,} lines: expected at most {_MOST_LINES:,}")
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        yield number, line.removesuffix("\n")
