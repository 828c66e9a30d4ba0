"""Flows that a hash puts on equal-cost paths: how full the fullest is expected to be.

Balls into bins: n flows, each on one of k paths with equal chance. The mean is n / k; the fullest
path has more, and the flows on it wait. Spraying, or many queue pairs a flow, takes it back to the
mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, exp, lgamma, log, sqrt

import numpy as np

from planner.errors import InputError

MOST_EXACT_FLOWS = 4_096
"""Above this the bound, 1 to 5 % too high there, stands for the exact number and its tenths of a
second."""
_NEVER = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Collisions:
    """Flows hashed over equal-cost paths.

    Args:
        where: the vertex whose equal links they choose from.
        flows: how many choose, n [1].
        paths: how many links, k [1].
        fullest_flows: flows that the fullest link is expected to carry [1].
        fullest_ratio: the same over the mean n / k: times as long as with even use, 1 or more [1].
    """

    where: str
    flows: int
    paths: int
    fullest_flows: float
    fullest_ratio: float


def collisions(flows: int, paths: int, where: str = "") -> Collisions:
    """Return what is expected of *flows* flows hashed over *paths* equal paths.

    >>> collisions(8, 4).fullest_flows.__round__(3)
    3.538
    """
    fullest = expected_fullest(flows, paths)
    return Collisions(
        where=where,
        flows=flows,
        paths=paths,
        fullest_flows=fullest,
        fullest_ratio=fullest * paths / flows,
    )


def expected_fullest(flows: int, paths: int) -> float:
    """Return the expected number of flows on the fullest of *paths* equal paths [1].

    E = sum over m of P(fullest > m), with P(fullest <= m) = n! / k^n [x^n] (sum_{i<=m} x^i / i!)^k,
    worked out as k Poisson numbers that sum to n. Above ``MOST_EXACT_FLOWS`` flows:
    n / k + sqrt(2 n ln k / k).

    Args:
        flows: n, 1 or more, of equal size [1].
        paths: k, 1 or more [1].

    Source: exact: the multinomial's generating function; bound: M. Raab, A. Steger, "Balls into
    Bins - A Simple and Tight Analysis", RANDOM 1998, theorem 1 (n well above k ln k).
    Holds for a hash as good as chance and flows of one size. Fails for polarised hashes (the same
    hash at every switch), which do worse.

    >>> expected_fullest(2, 2), expected_fullest(3, 2), expected_fullest(5, 1)
    (1.5, 2.25, 5.0)
    """
    if flows < 1 or paths < 1:
        raise InputError(f"{flows} flows over {paths} paths: expected one at least of each")
    if paths == 1:
        return float(flows)
    if flows > MOST_EXACT_FLOWS:
        return flows / paths + sqrt(2 * flows * log(paths) / paths)
    expected = 0.0
    for most in range(flows):
        over = 1.0 - _all_within(most, flows, paths) if most >= ceil(flows / paths) else 1.0
        expected += over
        if over < _NEVER:
            break
    return round(expected, 12)


def _all_within(most: int, flows: int, paths: int) -> float:
    """Return the chance that no path has more than *most* of the flows."""
    mean = flows / paths
    number = np.arange(most + 1)
    log_factorial = np.array([lgamma(i + 1) for i in number])
    chance = np.exp(number * log(mean) - mean - log_factorial)
    length = 1 << (paths * most + 1).bit_length()
    sums = np.fft.irfft(np.fft.rfft(chance, length) ** paths, length)
    all_of_them = exp(flows * log(flows) - flows - lgamma(flows + 1))
    return float(min(1.0, sums[flows] / all_of_them))
