"""When two clusters, or two layouts, cannot be told apart."""

from __future__ import annotations

from math import hypot, sqrt

from planner.steptime.uncertainty import faster

_SAME = 1e-12  # relative; the same sum in another order


def told_apart(first_s: float, second_s: float, first_spread: float, second_spread: float) -> bool:
    """Return whether the model can tell which of two steps is shorter, at 90 %.

    Args:
        first_s: one step, or what a token takes [s].
        second_s: the other [s].
        first_spread: of the fit of the one, in log [1].
        second_spread: of the other's; clusters may differ in it [1].

    >>> told_apart(1.0, 1.02, 0.1, 0.1), told_apart(1.0, 1.4, 0.1, 0.1)
    (False, True)
    """
    if abs(first_s / second_s - 1.0) < _SAME:
        return False
    return faster(first_s, second_s, hypot(first_spread, second_spread) / sqrt(2.0)).told_apart
