"""Flows that a hash puts on equal-cost paths: how full the fullest is expected to be.

Balls into bins: n flows, each on one of k paths with equal chance. The mean is n / k; the fullest
path has more, and the flows on it wait. Spraying, or many queue pairs a flow, takes it back to the
mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, log, sqrt

import numpy as np
from numpy.typing import NDArray

from planner.errors import InputError

MOST_EXACT_FLOWS = 1_024
"""Above this, and above k ln k, the bound stands for the exact number and its time: it is 1 to 5 %
too high there, but too low where flows are fewer (a sixth for 2,000 flows over 2,000 paths)."""
_NEVER = 1e-9
"""A chance that adds no more: above what floats get wrong of it over 100,000 paths."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collisions:
    """Flows hashed over equal-cost paths.

    Args:
        where: the vertex whose equal links they choose from.
        flows: how many choose, n [1].
        paths: how many links, k [1].
        fullest_ratio: flows that the fullest link is expected to carry over the mean n / k: times
            as long as with even use, 1 or more [1].
    """

    where: str
    flows: int
    paths: int
    fullest_ratio: float


def collisions(flows: int, paths: int, where: str = "") -> Collisions:
    """Return what is expected of *flows* flows hashed over *paths* equal paths.

    >>> collisions(8, 4).fullest_ratio.__round__(3)
    1.769
    """
    return Collisions(
        where=where,
        flows=flows,
        paths=paths,
        fullest_ratio=expected_fullest(flows, paths) * paths / flows,
    )


def expected_fullest(flows: int, paths: int) -> float:
    """Return the expected number of flows on the fullest of *paths* equal paths [1].

    E = sum over m of P(fullest > m), with P(fullest <= m) = n! / k^n [x^n] (sum_{i<=m} x^i / i!)^k,
    worked out as k Poisson numbers that sum to n. Above ``MOST_EXACT_FLOWS`` and k ln k
    flows: n / k + sqrt(2 n ln k / k).

    Args:
        flows: n, 1 or more, of equal size [1].
        paths: k, 1 or more [1].

    Source: exact: the multinomial's generating function; bound: M. Raab, A. Steger, "Balls into
    Bins - A Simple and Tight Analysis", RANDOM 1998, theorem 1 (n above k ln k).
    Holds for a hash as good as chance and flows of one size. Fails for polarised hashes (the same
    hash at every switch), which do worse.

    >>> expected_fullest(2, 2), expected_fullest(3, 2), expected_fullest(5, 1)
    (1.5, 2.25, 5.0)
    """
    if flows < 1 or paths < 1:
        raise InputError(f"{flows} flows over {paths} paths: expected one at least of each")
    if paths == 1:
        return float(flows)
    if flows > max(MOST_EXACT_FLOWS, paths * log(paths)):
        return flows / paths + sqrt(2 * flows * log(paths) / paths)
    number = np.arange(flows + 1)
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(number[1:]))])
    chance = np.exp(number * log(flows / paths) - flows / paths - log_factorial)
    all_of_them = exp(flows * log(flows) - flows - log_factorial[flows])
    expected = float(ceil(flows / paths))  # no fewer on the fullest, whatever the hash
    for most in range(ceil(flows / paths), flows):
        over = 1.0 - _sum_chance(chance[: most + 1], flows, paths) / all_of_them
        expected += max(0.0, over)
        if over < _NEVER:
            break
    return round(expected, 12)


def _sum_chance(chance: NDArray[np.float64], total: int, terms: int) -> float:
    """Return the chance that *terms* numbers, each i with *chance* i, add up to *total*."""
    length = 1 << (terms * len(chance)).bit_length()
    return float(np.fft.irfft(np.fft.rfft(chance, length) ** terms, length)[total])
