"""Who is first, how surely, and with which degrees: at one value, and proved between two.

Between two networks a step is taken to lie between its steps on both: see ``brackets.py``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING

from planner.search.best_steps import BEHIND
from planner.search.brackets import fast_and_slow
from planner.search.incumbent import spelled_degrees
from planner.search.ties import told_apart

if TYPE_CHECKING:
    from planner.search.axes import Axis
    from planner.search.best_steps import Steps
    from planner.search.incumbent import Incumbent
    from planner.search.pool import Pool

NO_FIT, TIE = "nothing fits", "a tie at the top"
ONLY, SURELY = "only ", " surely first"
"""How a standing is told: ``only x fits``, ``x surely first``."""


def spreads_of(pools: Sequence[Pool]) -> dict[str, float]:
    """Return the spread of the fit of each cluster's steps, in log [1]."""
    return {pool.name: pool.spread for pool in pools}


def first_of(tokens_s: Mapping[str, float], winner: str) -> str:
    """Return who is fastest; the *winner* of today stays until it is 0.1 % behind.

    >>> first_of({"a": 1.0, "b": 1.0005}, "b"), first_of({"a": 1.0, "b": 1.002}, "b")
    ('b', 'a')
    """
    first = min(tokens_s, key=lambda name: tokens_s[name])
    if not isfinite(tokens_s[first]):
        return NO_FIT
    return winner if tokens_s[winner] <= tokens_s[first] * (1.0 + BEHIND) else first


def standing(tokens_s: Mapping[str, float], spreads: Mapping[str, float]) -> str:
    """Return how sure it is who is first.

    Args:
        tokens_s: cluster to what a token takes [s].
        spreads: of their fits, in log [1].
    """
    first, second = sorted(tokens_s, key=lambda name: tokens_s[name])[:2]
    if tokens_s[second] == inf:
        return NO_FIT if tokens_s[first] == inf else f"{ONLY}{first} fits"
    sure = told_apart(tokens_s[first], tokens_s[second], spreads[first], spreads[second])
    return f"{first}{SURELY}" if sure else TIE


def _times(steps: Steps, axis: Axis, factor: float) -> dict[str, float]:
    return {pool.name: token_s for pool, token_s in steps.ranked(axis.change(factor))}


def winner_at(steps: Steps, axis: Axis, factor: float) -> str:
    """Return who is fastest at a factor of a property."""
    return first_of(_times(steps, axis, factor), steps.winner.name)


def winner_stays(
    steps: Steps, axis: Axis, before: str, near_factor: float, far_factor: float
) -> bool:
    """Whether the winner's step on the slower end is within reach of all others' on the faster."""
    if before != steps.winner.name:
        return before == NO_FIT
    fast, slow = fast_and_slow(axis, near_factor, far_factor)
    most_s = steps.token_s(steps.winner, slow)
    others = [pool for pool in steps.pools if pool is not steps.winner]
    return all(most_s <= steps.token_s(one, fast) * (1.0 + BEHIND) for one in others)


def tie_at(steps: Steps, axis: Axis, factor: float) -> str:
    """Return how sure it is who is first at a factor of a property."""
    return standing(_times(steps, axis, factor), spreads_of(steps.pools))


def standing_stays(
    steps: Steps, axis: Axis, before: str, near_factor: float, far_factor: float
) -> bool:
    """Whether who is first, or that nobody surely is, holds with all steps between their ends."""
    if before == NO_FIT or before.startswith(ONLY):
        return True  # memory does not ask what the network is
    ends = fast_and_slow(axis, near_factor, far_factor)
    least, most = ({pool.name: steps.token_s(pool, end) for pool in steps.pools} for end in ends)
    spread = min(spreads_of(steps.pools).values())
    if before == TIE:
        exact = {pool.name for pool in steps.pools
                 if min(steps.best(pool, end).row for end in ends) >= 0}  # fmt: skip
        return len(exact) > 1 and _is_tied(least, most, exact, spread)
    first = before.removesuffix(SURELY)
    widest = max(spreads_of(steps.pools).values())
    return all(
        most[first] < least[name] and told_apart(most[first], least[name], widest, widest)
        for name in least if name != first
    )  # fmt: skip


def _is_tied(
    least: Mapping[str, float], most: Mapping[str, float], exact: Collection[str], spread: float
) -> bool:
    """Whether the first two cannot be told apart, wherever each step lies between its ends.

    Two that are never told apart, and nobody that may surely be faster than both.
    """
    one, other = sorted(exact, key=lambda name: most[name])[:2]
    if told_apart(least[one], most[other], spread, spread):
        return False
    if told_apart(most[one], least[other], spread, spread):
        return False
    enough_s = min(most[one], most[other])
    return not any(
        least[name] < enough_s and told_apart(least[name], enough_s, spread, spread)
        for name in least
    )


def layout_at(steps: Steps, incumbent: Incumbent, axis: Axis, factor: float) -> str:
    """Return the degrees of the winner's best; today's stay until another is 0.1 % faster."""
    change = axis.change(factor)
    best = steps.best(steps.winner, change)
    if best.row < 0:
        return NO_FIT
    if incumbent.step_s(change) <= best.step_s * (1.0 + BEHIND):
        return incumbent.words
    return spelled_degrees(steps.winner.layout(best.row))


def layout_stays(
    steps: Steps,
    incumbent: Incumbent,
    axis: Axis,
    before: str,
    near_factor: float,
    far_factor: float,
) -> bool:
    """Whether today's degrees on the slower end are within reach of the best on the faster."""
    if before != incumbent.words:
        return False
    if before == NO_FIT:
        return True
    fast, slow = fast_and_slow(axis, near_factor, far_factor)
    best_s = steps.best(steps.winner, fast).step_s
    return incumbent.step_s(slow) <= best_s * (1.0 + BEHIND)
