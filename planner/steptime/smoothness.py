"""How well any smooth model could order a group's layouts: what its own other rows tell of each.

A model that misses an effect of TP, PP or the micro-batch is off alike on layouts that are alike.
So the residuals log(measured / predicted) of a group are smoothed over the layouts' degrees, and
each layout is corrected by what all *others* say: a Gaussian process, whose width, noise and
length are those under which the group's residuals are most likely. What it cannot order is scatter
from one layout to the next, or an effect that shows in one layout alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from numpy.typing import NDArray

LEAST_LAYOUTS = 8
"""Layouts that a surface over three or four degrees needs at least [1]."""

_SHIFT = 0.3
"""Width in log of what all layouts of a group are off by alike: a clock, a framework [1]."""
_WIDTHS = (0.05, 0.1, 0.2)
_NOISES = (0.01, 0.02, 0.04, 0.08)
_DOUBLINGS = (0.5, 1.0, 2.0, 4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Surface:
    """What the residuals of a group say of each other.

    Args:
        others_say: of each layout, what the rest of the group predicts [1].
        misfit: less the log of how likely the residuals are [1].
    """

    others_say: NDArray[np.float64]
    misfit: float


def told_by_others(
    log2_ratio: NDArray[np.float64], log_ratio: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return of each layout the residual that the other layouts of its group tell [1].

    Covariance shift^2 + width^2 exp(-d^2 / 2 length^2) + noise^2 on the diagonal, d the distance
    in doublings of degrees. Left out in closed form: y_i - (C^-1 y)_i / (C^-1)_ii.

    Args:
        log2_ratio: log2 of each layout's degrees, layouts x degrees [1].
        log_ratio: log(measured / predicted) of each layout [1].

    Source: Rasmussen and Williams, Gaussian Processes for Machine Learning, eq. 5.12 and 5.8.
    Holds for effects that go on over a doubling of a degree or more. Fails for one that is in a
    single layout, which is scatter to it.

    >>> degree = np.arange(9.0)[:, None]
    >>> np.round(told_by_others(degree, 0.02 * degree[:, 0])[4], 3)
    np.float64(0.08)
    """
    squares = np.sum((log2_ratio[:, None, :] - log2_ratio[None, :, :]) ** 2, axis=-1)
    choices = product(_WIDTHS, _NOISES, _DOUBLINGS)
    surfaces = [_surface(squares, log_ratio, *one) for one in choices]
    return min(surfaces, key=lambda surface: surface.misfit).others_say


def _surface(
    squares: NDArray[np.float64],
    log_ratio: NDArray[np.float64],
    width: float,
    noise: float,
    length: float,
) -> _Surface:
    covariance = _SHIFT**2 + width**2 * np.exp(-0.5 * squares / length**2)
    covariance += noise**2 * np.eye(len(log_ratio))
    inverse = np.linalg.inv(covariance)
    weighed = inverse @ log_ratio
    return _Surface(
        others_say=log_ratio - weighed / np.diag(inverse),
        misfit=float(0.5 * log_ratio @ weighed + 0.5 * np.linalg.slogdet(covariance).logabsdet),
    )
