"""How much may be seated for one purpose: a count, not seconds, so that an answer is repeatable."""

from __future__ import annotations

from collections.abc import Callable

MOST_RANKS = 1_000_000
"""Ranks that are seated for all flips of a comparison at most, and as many for its gains [1]: some
20 s."""
QUESTION_RANKS = 72_000
"""Of them for one flip or gain [1]: those of three clusters of 1,024 GPUs take 69,000 at most."""


class SpentError(Exception):
    """What may be seated is spent: what was asked is told without seats."""


class Effort:
    """Ranks that are seated, layout by layout, up to a most for all and for each question.

    Args:
        told: is told after each layout.

    >>> effort = Effort()
    >>> effort.take(70_000), effort.layouts
    (None, 1)
    >>> effort.take(10_000)
    Traceback (most recent call last):
    planner.search.effort.SpentError
    >>> effort.begin()
    >>> effort.take(10_000), effort.layouts
    (None, 2)
    """

    def __init__(self, told: Callable[[Effort], None] | None = None) -> None:
        self._told, self._begun_at, self.ranks, self.layouts = told, 0, 0, 0

    def begin(self) -> None:
        """Begin a question, which has a most of its own."""
        self._begun_at = self.ranks

    @property
    def question_share(self) -> float:
        """How much of what one question may take is spent [1]."""
        return (self.ranks - self._begun_at) / QUESTION_RANKS

    def take(self, ranks: int) -> None:
        """Count a layout of *ranks* that is about to be seated [1].

        Raises:
            SpentError: it would be more than the most.
        """
        then = self.ranks + ranks
        if then > MOST_RANKS or then - self._begun_at > QUESTION_RANKS:
            raise SpentError
        self.ranks = then
        self.layouts += 1
        if self._told is not None:
            self._told(self)
