"""What one domain pays, layer upon layer: sharper where a part of a sheet is itself a puzzle.

A grid is cut along one axis into *layers*, and what a domain holds of each is a part. The bound of
``sheet_parts.py`` for a domain with these parts holds for a number of cells if the cheapest parts
that sum to it are taken, and those are known of all numbers of cells at once. Proof:
``FORMULATION.md``, "Layers upon each other".
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import rebate_bytes
from planner.place.clock import look
from planner.place.floors import floors
from planner.place.sheet_parts import sheeted
from planner.place.sheet_prices import Fillings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from planner.place.question import Question

_LAYER_MOST = 64  # cells of a layer, past which its parts are too many to look at each
_SHARP_MOST = 32  # cells of a part, past which a sharp bound of what it pays takes too long
_TOLD_MOST = 40  # layers whose parts are told apart
_ROUNDING = 1e-12  # relative; sums of a few dozen parts
_SAME = 1e-9  # relative; rebates that are the same


def stacked_bounds(question: Question, most: int) -> NDArray[np.float64]:
    """Return the least that a domain of 0, 1, … *most* cells adds to the cut, shape [most + 1].

    By its layers, along whichever axis tells most. The rebate is not taken off, as in
    ``domain_bound``, which may say more or less [bytes].

    Args:
        question: the grid and its charges; its domains are not looked at.
        most: cells that a domain can hold [1].
    """
    return _stacked_bounds(replace(question, capacities=(question.cells,)), most).copy()


@lru_cache(maxsize=64)
def _stacked_bounds(question: Question, most: int) -> NDArray[np.float64]:
    best = np.zeros(most + 1)
    for axis, layers in enumerate(question.sizes):
        if layers > 1 and layers < question.cells <= _LAYER_MOST * layers:
            look()
            best = np.maximum(best, _by_layers(question, axis, most))
    return best


def _by_layers(question: Question, axis: int, most: int) -> NDArray[np.float64]:
    """Return ``stacked_bounds`` by the layers along one axis; noughts where it can not say."""
    layers, domains = question.sizes[axis], -(-question.cells // most)
    of = sheeted(
        replace(question, capacities=(most,) * domains),
        tuple(i for i, n in enumerate(question.sizes) if n > 1 and i != axis),
        rough=True,
        ranks=min(layers + 1, _TOLD_MOST),
    )
    rebate = rebate_bytes(question)
    if abs(of.given_bytes + rebate_bytes(of.beside) - rebate) > _SAME * rebate:
        return np.zeros(most + 1)  # links that close a chain are counted otherwise across layers
    parts = set(range(1, of.largest + 1))
    pays_bytes = of.looked_closer(parts, sharp=of.largest <= _SHARP_MOST).pays_bytes
    least = Fillings(pays_bytes, most).all_least
    least -= _ROUNDING * layers * float(np.abs(pays_bytes[np.isfinite(pays_bytes)]).max())
    if of.beside.charges:
        least[1:] += floors(of.beside, np.arange(1, most + 1))
    return np.maximum(least, 0.0)
