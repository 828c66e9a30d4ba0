"""A text's lines one at a time: a file of millions is refused before they all stand in memory."""

from __future__ import annotations

import io
from collections.abc import Iterator


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    r"""Yield each line of *text* without its end, and its number as editors count, from 1.

    >>> list(numbered_lines("a\r\nb\n"))
    [(1, 'a'), (2, 'b')]
    """
    for number, line in enumerate(io.StringIO(text, newline=None), 1):
        yield number, line.removesuffix("\n")
