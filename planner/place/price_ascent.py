"""The best prices of parts: each guess is where what was seen so far promises the most.

What prices prove is the least of many sums that are linear in them, so it has one hill. Every guess
adds the sums that were least there; the linear programme of all that are known says how high the
hill can be within reach of the best prices, and no higher ones are there once that is what is had.
(A bundle method with a trust region: Marsten, Hogan, Blankenship 1975.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from planner.place.clock import over

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from planner.place.part_choice import Choices

    Prices = NDArray[np.float64]

_MET = 1e-9  # relative; less is no better
_FIRST_REACH = 0.1  # how far the first guess may be away, times what a part costs
_FARTHER = 2.0  # times as far may the next be where most of what was promised was had
_NEARER = 1.3  # by which it comes nearer where more was lost than was promised; 2 ends too early
_MOST = 0.5  # of what was promised
_FAILED = 60  # guesses in a row without a better bound, after which there is none to be had


class Guess(Protocol):
    """Prices that were tried."""

    @property
    def price_bytes(self) -> Prices:
        """The prices of all parts [bytes]."""

    @property
    def bound_bytes(self) -> float:
        """What they prove [bytes]."""

    @property
    def told_bytes(self) -> float:
        """The sum of what was least, which may prove less, constants not taken off [bytes]."""

    def join(self, choices: Choices) -> None:
        """Add what was least to what is chosen from."""


T = TypeVar("T", bound=Guess)


def best_prices(
    choices: Choices,
    begun: Sequence[T],
    at: Callable[[Prices], T],
    cut_bytes: float,
    turns: int,
) -> T:
    """Return the best guess, the best so far when the time is up.

    Args:
        choices: nothing chosen from yet.
        begun: guesses to begin with.
        at: tries prices [bytes].
        cut_bytes: stop when this is reached [bytes].
        turns: guesses at most [1].
    """
    for one in begun:
        one.join(choices)
    best = max(begun, key=lambda one: one.bound_bytes)
    reach, failed = _FIRST_REACH, 0
    for _ in range(turns):
        if best.bound_bytes >= cut_bytes or failed > _FAILED or over():
            break
        tip = choices.prices(best.price_bytes, reach)
        promised = choices.value_bytes - best.told_bytes
        enough = _MET * abs(best.bound_bytes)
        if promised <= enough:
            break
        guess = at(tip)
        guess.join(choices)
        more = guess.bound_bytes - best.bound_bytes
        if more > enough:
            best, failed = guess, 0
            reach *= _FARTHER if more > _MOST * promised else 1.0
        else:
            failed += 1
            reach /= _NEARER if -more > promised else 1.0
    return best
