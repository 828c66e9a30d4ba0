"""What the touches of other families leave a family room for.

A group along S meets a group along S' in few cells, so few groups along S' mean small parts along S
and few groups held whole. Proofs: ``FORMULATION.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from planner.place.finner import covers

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ROUNDING = 1e-9  # relative; keeps what can be held on the safe side of floating point


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """What the touches of other families leave a family i room for.

    Args:
        touches: t_j of every other family j, shape [others, vectors].
        both: cells that a group of i and one of j have in common at most, n_(i and j); shape
            [others].
        aside: n_(j without i), shape [others].
        lambdas: exponents of covers of the axes outside i by the axes of j outside i, of those
            that take two families or more, shape [covers, others].
        logs: log of what these covers have of the axes themselves, shape [covers].
    """

    touches: NDArray[np.int64]
    both: NDArray[np.int64]
    aside: NDArray[np.int64]
    lambdas: NDArray[np.float64]
    logs: NDArray[np.float64]


def others_of(
    sizes: tuple[int, ...],
    axes: tuple[int, ...],
    among: tuple[tuple[int, ...], ...],
    touches: NDArray[np.int64],
) -> Others:
    """Return what families leave one along *axes* room for.

    Args:
        sizes: axis sizes n_i [1].
        axes: along which the groups of the family run.
        among: axes of the other families.
        touches: of these, shape [vectors, others].
    """
    lambdas, logs = _covers_outside(sizes, axes, among)
    return Others(
        touches=touches.T,
        both=np.array([prod(sizes[a] for a in f if a in axes) for f in among], dtype=np.int64),
        aside=np.array([prod(sizes[a] for a in f if a not in axes) for f in among], dtype=np.int64),
        lambdas=lambdas,
        logs=logs,
    )


@lru_cache(maxsize=256)
def _covers_outside(
    sizes: tuple[int, ...], axes: tuple[int, ...], others: tuple[tuple[int, ...], ...]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return ``lambdas`` and ``logs`` of ``Others``."""
    live = [a for a, n in enumerate(sizes) if n > 1 and a not in axes]
    if not live or len(others) < 2:
        return np.zeros((0, len(others))), np.zeros(0)
    index = {a: k for k, a in enumerate(live)}
    sets = tuple(tuple(index[a] for a in each if a in index) for each in others)
    vertices = covers(sets, len(live))
    lambdas = vertices[:, : len(others)]
    logs = vertices[:, len(others) :] @ np.log([sizes[a] for a in live])
    several = (lambdas > 0).sum(axis=1) > 1
    return lambdas[several], logs[several]


def part_limit(size: int, others: Others, vectors: int) -> NDArray[np.int64]:
    """Return the most cells of one group of *size* that the touches of the others leave room for.

    A group of family i meets a group of family j in at most n_(i and j) cells, so a part of M
    cells touches M / n_(i and j) of them.
    """
    part = np.full(vectors, size)
    for t, both in zip(others.touches, others.both.tolist(), strict=True):
        part = np.minimum(part, t * both)
    return part


def holding(groups: int, others: Others, vectors: int, cells: int) -> NDArray[np.int64]:
    """Return the most of the *groups* of family i of which *cells* or more can be held.

    Groups that meet the same groups of j differ along axes of j alone: n_(j without i) of
    them. Each such class touches at least cells / n_(i and j) groups of j, and no two the same.
    So they touch few classes of every j, and Finner's inequality limits their number.
    """
    most: NDArray[np.int64] = np.full(vectors, groups)
    if not len(others.touches):
        return most
    classes = others.touches // -(-cells // others.both)[:, None]
    most = np.minimum(most, (others.aside[:, None] * classes).min(axis=0))
    if len(others.lambdas):
        logs = others.lambdas @ np.log(np.maximum(classes, 1)) + others.logs[:, None]
        jointly = np.floor(np.exp(logs.min(axis=0)) * (1 + _ROUNDING) + _ROUNDING)
        most = np.minimum(most, jointly.astype(np.int64))
    return most
