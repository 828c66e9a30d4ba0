"""How far a comparison is: what it is at, and how much of that is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """What is being done.

    Args:
        what: in words, the same as long as it goes on.
        done, of: parts of it that are finished, and all of them; 0 where nobody can tell [1].
        now: what of it is done at the moment, in words.
    """

    what: str
    done: int = 0
    of: int = 0
    now: str = ""


Tell = Callable[[Stage], None]


def untold(_: Stage) -> None:
    """Tell nobody."""
