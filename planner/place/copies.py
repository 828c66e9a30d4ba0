"""One copy of a token for each domain: how many copies cross when experts share domains.

A token that picks top_k of E experts is sent once to every other domain that holds one of them and
is forwarded inside (node-limited dispatch, DeepEP style); the combine comes back the same way,
summed in the domain first.
"""

from __future__ import annotations

from functools import lru_cache
from math import comb


def reach_share(experts: int, top_k: int, there: int) -> float:
    """Return the chance that a token picks at least one of the experts of a domain.

    1 - C(E - E_d, k) / C(E, k): the k distinct experts are drawn evenly.

    Args:
        experts: E, routed experts [1].
        top_k: experts that a token picks [1].
        there: E_d, experts in the domain [1].

    >>> reach_share(256, 8, 32)  # one of 8 nodes, picked freely
    0.6618315000478099
    """
    return 1.0 - comb(experts - there, top_k) / comb(experts, top_k)


@lru_cache(maxsize=256)
def copy_units(size: int, experts: int, top_k: int) -> tuple[float, ...]:
    """Return the copies that reach a domain holding j of *size* members, for j = 0 to size.

    h(j) = (n - j) (1 - C(E - E j / n, k) / C(E, k)), for one token on each member. The first
    factor falls in a straight line and the second rises ever less, so h is concave: no split of
    what several domains hold is cheaper than its corners.

    Args:
        size: n, members of the group; each holds experts / size experts [1].
        experts: E, routed experts [1].
        top_k: experts that a token picks [1].

    >>> copy_units(4, 4, 2)
    (0.0, 1.5, 1.6666666666666667, 1.0, 0.0)
    """
    each = experts // size
    return tuple((size - j) * reach_share(experts, top_k, each * j) for j in range(size + 1))
