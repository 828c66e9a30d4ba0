"""What one domain pays, layer upon layer: sharper where a part of a grid is itself a puzzle.

A grid is cut along one axis into *layers*, and what a domain holds of each is a part. The bound of
``sheet_parts.py`` for a domain with these parts holds for a number of cells if the cheapest parts
that sum to it are taken, and those are known of all numbers of cells at once. What a part pays
inside its layer is bound in the same way, down to a single axis. Proof: ``FORMULATION.md``,
"Layers upon each other".
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from planner.place.bound import rebate_bytes
from planner.place.clock import look
from planner.place.fillings import Prices, cheapest
from planner.place.floors import floors
from planner.place.question import Charge, Kind, Question
from planner.place.sheet_parts import sheeted
from planner.place.sheet_prices import Fillings
from planner.place.two_parts import in_two_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

_WORK_MOST = 2_000_000  # layers x parts x cells of a domain that are looked at for one axis
_ROUNDING = 1e-12  # relative; sums of a few dozen parts
_SAME = 1e-9  # relative; rebates that are the same


def stacked_bound(question: Question, enough_bytes: float = inf) -> float:
    """Return bytes that every seating of *question* crosses at least, by layers [bytes].

    Args:
        question: the grid, its charges and domains.
        enough_bytes: a bound that need not be better [bytes].
    """
    capacities, cells = question.capacities, question.cells
    most = min(max(capacities), cells)
    if len(capacities) < 2:
        return 0.0
    if len(capacities) == 2:
        held = np.arange(cells - min(*capacities, cells), most + 1)
        held = held[cells - held <= most]
        halved_bytes = stacked_bounds(in_two_parts(question), most)
        both = np.maximum(halved_bytes[held], halved_bytes[cells - held])
        if both.min() >= enough_bytes:
            return float(both.min())
    pays_bytes, rebate = stacked_bounds(question, most), rebate_bytes(question)
    if len(capacities) == 2:
        apart = pays_bytes[held] + pays_bytes[cells - held] - rebate * (1 + _ROUNDING)
        return float(np.maximum(apart, both).min())
    total = cheapest(capacities, cells, Prices(least_bytes=pays_bytes, closer=()))
    return max(0.0, total - rebate - _ROUNDING * total)


def stacked_bounds(question: Question, most: int) -> NDArray[np.float64]:
    """Return the least that a domain of 0, 1, … *most* cells adds to the cut, shape [most + 1].

    By its layers, along whichever axis tells most, and by a first look at the whole. The rebate is
    not taken off, as in ``domain_bound``, which may say more or less [bytes].

    Args:
        question: the grid and its charges; its domains are not looked at.
        most: cells that a domain can hold [1].
    """
    return _stacked_bounds(_told_apart(question), most).copy()


def _told_apart(question: Question) -> Question:
    """Return the same question of one domain whose axes differ in the families along them."""
    along: dict[tuple[int, ...], list[int]] = {}
    for axis, size in enumerate(question.sizes):
        if size > 1:
            families = tuple(k for k, c in enumerate(question.charges) if axis in c.axes)
            along.setdefault(families, []).append(axis)
    merged = {axis: k for k, axes in enumerate(along.values()) for axis in axes}
    weights: dict[tuple[tuple[int, ...], Kind, tuple[float, ...]], float] = {}
    for charge in question.charges:
        axes = tuple(sorted({merged[i] for i in charge.axes if i in merged}))
        if axes:
            key = (axes, charge.kind, charge.units)
            weights[key] = weights.get(key, 0.0) + charge.weight_bytes
    return Question(
        sizes=tuple(question.group_size(axes) for axes in along.values()),
        charges=tuple(
            Charge(axes=axes, kind=kind, weight_bytes=weight, units=units)
            for (axes, kind, units), weight in weights.items()
        ),
        capacities=(question.cells,),
    )


@lru_cache(maxsize=512)
def _stacked_bounds(question: Question, most: int) -> NDArray[np.float64]:
    look()
    best = np.zeros(most + 1)
    best[1:] = floors(question, np.arange(1, most + 1))
    for axis, layers in enumerate(question.sizes):
        size = question.cells // layers
        if 1 < layers < question.cells and layers * min(size, most) * most <= _WORK_MOST:
            best = np.maximum(best, _by_layers(question, axis, most))
    return best


def _by_layers(question: Question, axis: int, most: int) -> NDArray[np.float64]:
    """Return ``stacked_bounds`` by the layers along one axis; noughts where it can not say."""
    layers, domains = question.sizes[axis], -(-question.cells // most)
    of = sheeted(
        replace(question, capacities=(most,) * domains),
        tuple(i for i, n in enumerate(question.sizes) if n > 1 and i != axis),
        ranks=layers + 1,
        counted=True,
        bounds_of=stacked_bounds,
    )
    rebate, given = rebate_bytes(question), of.given_bytes + rebate_bytes(of.beside)
    if abs(given - rebate) > _SAME * max(rebate, abs(of.given_bytes), of.pays_bytes[0].max()):
        return np.zeros(most + 1)  # links that close a chain are counted otherwise across layers
    pays_bytes = of.pays_bytes
    least = Fillings(pays_bytes, most).all_least
    least -= _ROUNDING * layers * float(np.abs(pays_bytes[np.isfinite(pays_bytes)]).max())
    if of.beside.charges:
        least[1:] += floors(of.beside, np.arange(1, most + 1))
    return np.maximum(least, 0.0)
