"""When a whole run is to end: long steps look at it, and what is in hand then is the answer.

It is looked at between a step's own parts and changes nothing until the time is up: a run that is
not cut short finds the same as one without an end.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_ends_s: ContextVar[float] = ContextVar("ends_s", default=inf)


class TimeUp(BaseException):
    """The time of the whole run is up: whoever has an answer in hand returns it."""


@contextmanager
def ending(ends_s: float) -> Iterator[None]:
    """Have the run within end when ``time.monotonic()`` is *ends_s*, or sooner if one around does.

    What must be done though the time is up is done within ``unhurried``.
    """
    token = _ends_s.set(min(ends_s, _ends_s.get()))
    try:
        yield
    finally:
        _ends_s.reset(token)


@contextmanager
def at_most_until(ends_s: float) -> Iterator[None]:
    """Have a step within end when ``time.monotonic()`` is *ends_s*; what comes after it goes on.

    What it gave until then is what it gives. The end of the whole run stays everybody's.
    """
    try:
        with ending(ends_s):
            yield
    except TimeUp:
        look()


@contextmanager
def unhurried() -> Iterator[None]:
    """Let what is within take the time that it needs."""
    token = _ends_s.set(inf)
    try:
        yield
    finally:
        _ends_s.reset(token)


def end_s() -> float:
    """Return ``time.monotonic()`` when the run is to end, infinite if nobody said [s]."""
    return _ends_s.get()


def left_s() -> float:
    """Return the time left, 0 when it is up [s]."""
    return max(0.0, _ends_s.get() - monotonic())


def look() -> None:
    """Raise ``TimeUp`` if the time is up."""
    if over():
        raise TimeUp


def over() -> bool:
    """Return whether the time is up: for steps that have something in hand of their own."""
    return monotonic() > _ends_s.get()
