"""Contents trade places between outer domains: local search on whole blocks, never worse.

Passes after Fiduccia and Mattheyses, as in ``improve.py``, but what moves is the content of an
inner domain, and only to an inner domain of the same class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from planner.place.clock import over

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.labour import Labour
    from planner.place.nets import Nets

_PATIENCE = 12  # swaps in a row that a pass may go without a new best
_TRIED = 6  # swaps of each step that are priced exactly
_ROUNDING = 1e-12
_WORK = 2 * 10**9  # multiplications that one search may take
_STEP = 10**6  # multiplications as long as all else that a step takes


def exchanged(
    nets: Nets, home: NDArray[np.int64], kinds: NDArray[np.int64], labour: Labour
) -> NDArray[np.int64]:
    """Return the outer domain of each content after swaps that make the cost less.

    Args:
        nets: what the contents share.
        home: outer domain of each content, shape [contents] [bytes].
        kinds: class of the inner domain that each content sits in: contents of one class may
            trade places, shape [contents] [bytes].
        labour: what it takes is taken off.

    >>> from planner.place.labour import Labour
    >>> from planner.place.nets import Nets
    >>> pairs = Nets(touches=np.array([[1, 0], [0, 1], [1, 0], [0, 1]], bool),
    ...              weights=np.ones(2), ring=np.zeros(2, bool), links_bytes=np.zeros((4, 4)))
    >>> exchanged(pairs, np.array([0, 0, 1, 1]), np.zeros(4, int), Labour()).tolist()
    [1, 0, 1, 0]
    """
    used, inner = np.unique(home, return_inverse=True)
    step_work = _STEP + (nets.touches.size + nets.links_bytes.size) * len(used)
    allowed = steps = min(_WORK, labour.multiplications) // step_work
    best, cost = inner.copy(), nets.cost_bytes(inner)
    while steps > 0 and not over():
        found, found_cost, taken = _pass(nets, best, kinds, len(used), steps)
        steps -= taken
        if found_cost >= cost * (1 - _ROUNDING):
            break
        best, cost = found, found_cost
    labour.multiplications -= (allowed - steps) * step_work
    swapped: NDArray[np.int64] = used[best]
    return swapped


def _pass(
    nets: Nets, start: NDArray[np.int64], kinds: NDArray[np.int64], domains: int, steps: int
) -> tuple[NDArray[np.int64], float, int]:
    """Return (the best seating met, its cost, swaps made); what was swapped stays locked."""
    home = start.copy()
    cost = best_cost = nets.cost_bytes(home)
    best, locked = start, np.zeros(len(home), dtype=bool)
    since = taken = 0
    while taken < steps and since < _PATIENCE and not over():
        offers = _offers(nets, home, kinds, domains, locked)
        if not offers:
            break
        costs = []
        for one, two in offers:
            home[[one, two]] = home[[two, one]]
            costs.append(nets.cost_bytes(home))
            home[[one, two]] = home[[two, one]]
        pick = int(np.argmin(costs))
        one, two = offers[pick]
        home[[one, two]] = home[[two, one]]
        locked[[one, two]] = True
        cost = costs[pick]
        taken, since = taken + 1, since + 1
        if cost < best_cost * (1 - _ROUNDING):
            best, best_cost, since = home.copy(), cost, 0
    return best, best_cost, max(taken, 1)


def _offers(
    nets: Nets,
    home: NDArray[np.int64],
    kinds: NDArray[np.int64],
    domains: int,
    locked: NDArray[np.bool_],
) -> list[tuple[int, int]]:
    """Return the swaps that look cheapest when each move is priced by itself."""
    seated = np.zeros((domains, len(home)), dtype=np.float32)
    seated[home, np.arange(len(home))] = 1.0
    touches = nets.touches.astype(np.float32)
    weighed = touches * nets.weights.astype(np.float32)
    with np.errstate(invalid="ignore"):  # finite factors; BLAS kernels raise the flag on padding
        held = seated @ touches
        price = weighed @ (held == 0).T.astype(np.float32)
        near = 2 * nets.links_bytes @ seated.T
    price -= (weighed * (held[home] == 1)).sum(axis=1)[:, None]
    price = price + near[np.arange(len(home)), home][:, None] - near
    both = price[:, home]
    both = both + both.T + 4 * nets.links_bytes
    able = (kinds[:, None] == kinds[None, :]) & (home[:, None] != home[None, :])
    able &= ~(locked[:, None] | locked[None, :])
    both = np.where(np.triu(able, 1), both, np.inf)
    count = min(_TRIED, both.size)
    cheapest = np.argpartition(both.ravel(), count - 1)[:count]
    cheapest = np.sort(cheapest[np.isfinite(both.ravel()[cheapest])])
    return [(int(at) // len(home), int(at) % len(home)) for at in cheapest]
