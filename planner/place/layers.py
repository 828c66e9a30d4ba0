"""How many cells touches leave room for, layer by layer.

Finner's inequality holds for boxes with sides of any real length. Cut along an axis a set falls
into layers: of families that do not run along it the layers touch groups of their own, which add
up; of those that do, every layer touches no more than all together. Whole touches of every layer,
each with Finner's inequality to itself, rule out what real boxes do not. Proof: ``FORMULATION.md``.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib.stride_tricks import as_strided

from planner.place.finner import covers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SPLITS_MOST = 200  # touches of a layer that are told apart; the square of it is what a layer costs
_BOXES_MOST = 2000  # of whole sides, past which layers are asked at once
_CLOSE = 1.15  # times the cells: touches with more room as a real box are not looked at
_NONE = -(2**40)  # cells of touches below 0, far from what any sum makes up for
_ROUNDING = 1e-9  # relative; keeps what there is room for on the safe side of floating point


def room_for(
    sizes: tuple[int, ...],
    families: Sequence[tuple[int, ...]],
    touches: NDArray[np.int64],
    held: int | NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Return whether *held* cells can lie in so many groups, as far as layers tell.

    Args:
        sizes: axis sizes n_i [1].
        families: axes S along which the groups of each family run.
        touches: groups touched of each family, shape [vectors, families].
        held: cells, of all or of each [1].

    >>> import numpy as np
    >>> tight = np.array([[5, 16, 65], [5, 15, 72]])  # 5 x 16 x 65 is more than 72 x 72
    >>> room_for((16, 16, 4), ((0,), (1,), (2,)), tight, 72).tolist()
    [False, True]
    """
    room = np.ones(len(touches), dtype=bool)
    if not families:
        return room
    close = _real_room(sizes, tuple(families), touches) < _CLOSE * held
    cells = np.broadcast_to(held, len(touches))
    sides, volumes = _boxes(sizes, tuple(families))
    for row in np.flatnonzero(close).tolist():
        if (volumes[(sides <= touches[row]).all(axis=1)] >= cells[row]).any():
            continue  # a box has room
        t, enough = tuple(touches[row].tolist()), int(cells[row])
        room[row] = _least_room(sizes, tuple(families), t, enough) >= enough
    return room


@lru_cache(maxsize=64)
def _boxes(
    sizes: tuple[int, ...], families: tuple[tuple[int, ...], ...]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the touches of all boxes of whole sides, [boxes, families], and their cells, [boxes].

    Of no box where there are too many.
    """
    if prod(sizes) > _BOXES_MOST:
        return np.zeros((0, len(families)), dtype=np.int64), np.zeros(0, dtype=np.int64)
    sides = np.indices(sizes).reshape(len(sizes), -1).T + 1
    volumes = sides.prod(axis=1)
    along = [sides[:, list(axes)].prod(axis=1) for axes in families]
    touches = volumes[:, None] // np.array(along).T
    return touches, volumes


def _real_room(
    sizes: tuple[int, ...], families: tuple[tuple[int, ...], ...], touches: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return the cells of the real box with so many touches, by Finner's inequality."""
    live = [a for a, n in enumerate(sizes) if n > 1]
    index = {a: k for k, a in enumerate(live)}
    vertices = covers(tuple(tuple(index[a] for a in f if a in index) for f in families), len(live))
    lambdas, mus = vertices[:, : len(families)], vertices[:, len(families) :]
    logs = np.log(np.maximum(touches, 1)) @ lambdas.T + mus @ np.log([sizes[a] for a in live])
    room: NDArray[np.float64] = np.exp(logs.min(axis=1))
    return room


def _least_room(
    sizes: tuple[int, ...], families: tuple[tuple[int, ...], ...], t: tuple[int, ...], held: int
) -> int:
    """Return the most cells by the axis that leaves the least room, or the first too little."""
    least = prod(sizes)
    for layers, layer, apart, along, sets in _ways_to_cut(sizes, families):
        split, work = [], 1
        for k in sorted(apart, key=t.__getitem__):
            work *= t[k] + 1
            if work > _SPLITS_MOST:
                break
            split.append(k)
        shared = [k for k in along if t[k] < held]
        if not split or not shared:
            continue
        told = tuple([sets[k] for k in split + shared])
        caps, wide = tuple([t[k] for k in split]), tuple([t[k] for k in shared])
        least = min(least, _most_in_layers(layer, layers, told, caps, wide, held))
        if least < held:
            break
    return least


@lru_cache(maxsize=256)
def _ways_to_cut(
    sizes: tuple[int, ...], families: tuple[tuple[int, ...], ...]
) -> list[tuple[int, tuple[int, ...], list[int], list[int], list[tuple[int, ...]]]]:
    """Return of each axis: layers, axis sizes of one, families apart and along it, their axes."""
    ways = []
    for axis, n in enumerate(sizes):
        if n < 2:
            continue
        layer = tuple(1 if a == axis else size for a, size in enumerate(sizes))
        apart = [k for k, f in enumerate(families) if axis not in f]
        along = [k for k, f in enumerate(families) if axis in f]
        sets = [tuple(a for a in f if a != axis) for f in families]
        ways.append((n, layer, apart, along, sets))
    return ways


@lru_cache(maxsize=50_000)
def _most_in_layers(
    layer: tuple[int, ...],
    layers: int,
    sets: tuple[tuple[int, ...], ...],
    split: tuple[int, ...],
    along: tuple[int, ...],
    enough: int,
) -> int:
    """Return the most cells of *layers* layers, sum_j V(t_j) with sum_j t_j <= split.

    Args:
        layer: axis sizes of a layer.
        layers: how many there are [1].
        sets: axes of the families in a layer, first those whose touches are split.
        split: touches to be split among layers.
        along: touches of the other families, of every layer.
        enough: once there is room for so many, no more are counted [1].
    """
    one = _cells_of_a_layer(layer, sets, split, along)
    best, twice, left = np.zeros_like(one), one, layers
    while left > 1 and best[split] < enough:
        if left & 1:
            best = np.maximum(twice, _together(best, twice))
        left >>= 1
        if best[split] < enough:
            twice = _together(twice, twice)
    if best[split] >= enough:
        return int(best[split])
    back = (slice(None, None, -1),) * best.ndim  # the last time, what is left of all touches
    return int(max(twice[split], (best[back] + twice).max()))


def _cells_of_a_layer(
    layer: tuple[int, ...],
    sets: tuple[tuple[int, ...], ...],
    split: tuple[int, ...],
    along: tuple[int, ...],
) -> NDArray[np.int64]:
    """Return the most cells of one layer by its touches, shape [split + 1]; 0 if it has none."""
    live = [a for a, n in enumerate(layer) if n > 1]
    index = {a: k for k, a in enumerate(live)}
    shape = tuple(t + 1 for t in split)
    if not live:
        most = np.ones(shape)
    else:
        vertices = covers(tuple(tuple(index[a] for a in s if a in index) for s in sets), len(live))
        lambdas, mus = vertices[:, : len(sets)], vertices[:, len(sets) :]
        logs = mus @ np.log([layer[a] for a in live])
        logs = logs + lambdas[:, len(split) :] @ np.log(along)
        told = np.indices(shape).reshape(len(split), -1)
        total = lambdas[:, : len(split)] @ np.log(np.maximum(told, 1)) + logs[:, None]
        most = np.exp(total.min(axis=0)).reshape(shape)
    cells: NDArray[np.int64] = np.floor(most * (1 + _ROUNDING) + _ROUNDING).astype(np.int64)
    for axis in range(len(split)):
        cells[(slice(None),) * axis + (0,)] = 0
    return cells


def _together(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the most cells of two sets of layers by the touches of both."""
    more = b > 0  # what fewer touches hold as well is left out
    for axis in range(b.ndim):
        here = (slice(None),) * axis
        more[(*here, slice(1, None))] &= b[(*here, slice(1, None))] > b[(*here, slice(None, -1))]
    of = _less(a)[more]
    of += b[more].reshape(-1, *(1,) * b.ndim)
    found: NDArray[np.int64] = np.maximum(a, of.max(axis=0, initial=0))
    return found


def _less(a: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a[k - t] by t and k, shape [*a.shape, *a.shape]; far below 0 where k < t somewhere."""
    padded = np.full([2 * n - 1 for n in a.shape], _NONE, dtype=np.int64)
    first = tuple(slice(n - 1, None) for n in a.shape)
    padded[first] = a
    back = [-stride for stride in padded.strides]
    return as_strided(padded[first], (*a.shape, *a.shape), (*back, *padded.strides))
